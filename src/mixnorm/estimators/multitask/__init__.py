"""Many tasks under one norm.

Open ``learner.py`` first, then ``problem.py``. The folder may import ``_common``, ``mixed_norm``,
``engines``, ``models`` and ``losses``.
"""
