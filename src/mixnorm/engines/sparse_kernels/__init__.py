"""Few kernels out of thousands, chosen greedily or by the lasso.

Open ``engine.py`` first. The engine may import ``kernels``, ``losses``, ``_core``, ``greedy`` and
``multikernel``.
"""

from mixnorm.engines.sparse_kernels.engine import ALGORITHMS, STEPS, select
from mixnorm.engines.sparse_kernels.lasso import block_minimiser

__all__ = ["ALGORITHMS", "STEPS", "block_minimiser", "select"]
