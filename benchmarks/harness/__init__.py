"""Shared parts of the benchmarks: jobs in separate processes, data, other libraries, tables.

Start with ``jobs.py``, which runs a job in a process; ``child.py`` is that process. ``methods.py``
has the interface of a method, and ``commands.py`` the steps that most commands share.
"""
