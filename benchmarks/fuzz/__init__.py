"""Fuzz tests: every drawn input, good or bad, gives a right result or a clear error.

Each input has a number, which seeds a generator. The generator draws an estimator (or a pool, a
norm, a loss, a kernel, a command) with parameters and data. ``verdict.py`` defines a failure. Start
reading at ``cases.py``, which knows all kinds of inputs; ``command.py`` runs them.
"""
