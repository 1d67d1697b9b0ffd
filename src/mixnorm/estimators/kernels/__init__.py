"""Learning with many kernels, and with one.

Open ``mkl.py`` first, then ``base.py``.
"""
