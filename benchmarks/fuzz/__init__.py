"""Drawn inputs, good and bad: every result is right or a clear error.

Each input is a number. It seeds a generator that draws an estimator (or a pool, a norm, a loss, a
kernel, a command) with parameters and data. ``verdict.py`` says what counts as a failure. Start
reading at ``cases.py``, which knows all kinds of inputs; ``command.py`` runs them.
"""
