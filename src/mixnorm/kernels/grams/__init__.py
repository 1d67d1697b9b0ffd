"""Matrices of kernels on training rows: stored, computed when asked for, or factored.

Open ``base.py`` first, then ``stack.py``. It may import ``functions``.
"""

from mixnorm.kernels.grams.subnormal import with_subnormals_as_zero

__all__ = ["with_subnormals_as_zero"]
