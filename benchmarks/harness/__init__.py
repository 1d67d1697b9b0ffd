"""Parts that the benchmarks share: jobs in processes of their own, data, peers, terminal tables.

Start with ``jobs.py``, which runs a job in a process; ``child.py`` is that process. ``methods.py``
says what a method offers, and ``commands.py`` has what most commands do.
"""
