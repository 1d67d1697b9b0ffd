"""Matrices of kernels on training rows: stored, computed when asked for, or factored.

Open ``base.py`` first, then ``stack.py``. It may import ``functions``.
"""
