"""lp-norm regularisation with tensor kernels.

Open ``learners.py`` first, then ``base.py``.
"""
