"""Learners whose rows come one at a time.

Open ``classifier.py`` first, then ``base.py``. The folder may import ``_common``, ``engines``,
``norms`` and ``losses``.
"""
