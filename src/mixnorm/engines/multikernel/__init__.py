"""Weights of several kernels, learned with the machine on their weighted sum.

Open ``engine.py`` first. The engine may import ``losses`` and ``kernels``.
"""

from mixnorm.engines.multikernel.engine import KernelSolution, check_row_costs, solve
from mixnorm.engines.multikernel.machine import HingeTarget, SquaredTarget, estimate_workspace_bytes
from mixnorm.engines.multikernel.penalty import KernelPenalty
from mixnorm.engines.multikernel.settings import MultikernelSettings

__all__ = [
    "HingeTarget",
    "KernelPenalty",
    "KernelSolution",
    "MultikernelSettings",
    "SquaredTarget",
    "check_row_costs",
    "estimate_workspace_bytes",
    "solve",
]
