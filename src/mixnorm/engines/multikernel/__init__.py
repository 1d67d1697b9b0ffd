"""Machines on weighted sums of kernels, and the weights.

Open ``engine.py`` first. The engine may import ``losses`` and ``kernels``.
"""

from mixnorm.engines.multikernel.engine import (
    HingeTarget,
    KernelPenalty,
    KernelSolution,
    SquaredTarget,
    bytes_beside,
    check_row_costs,
    solve,
)

__all__ = [
    "HingeTarget",
    "KernelPenalty",
    "KernelSolution",
    "SquaredTarget",
    "bytes_beside",
    "check_row_costs",
    "solve",
]
