"""Many tasks under one norm.

Open ``learner.py`` first, then ``problem.py``.
"""
