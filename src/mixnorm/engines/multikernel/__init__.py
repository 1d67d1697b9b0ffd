"""Machines on weighted sums of kernels, and the weights.

Open ``engine.py`` first. The engine may import ``losses`` and ``kernels``.
"""

from mixnorm.engines.multikernel.engine import KernelSolution, check_row_costs, solve
from mixnorm.engines.multikernel.machine import HingeTarget, SquaredTarget, bytes_beside
from mixnorm.engines.multikernel.penalty import KernelPenalty

__all__ = [
    "HingeTarget",
    "KernelPenalty",
    "KernelSolution",
    "SquaredTarget",
    "bytes_beside",
    "check_row_costs",
    "solve",
]
