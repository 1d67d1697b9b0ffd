"""Measure tricks that a simpler line of code could replace; each must be 1.2 times as fast.

``powers`` compares ``raise_to`` of the mirror engine with the C library's ``pow``, on arrays and in
passes of ``MirrorDescentClassifier`` over rows. ``subnormals`` compares kernels with numbers below
the usual range, read as they are and as zeros. Each time is a median of alternating repeats.

All of it is in ``command.py``.
"""
