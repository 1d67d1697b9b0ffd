"""Bounds of the theory on your data, each as a value with its theorem.

Open ``bound.py`` first, then ``matrix.py``. The room may import ``norms`` and ``data``. Learners
are arguments of its functions.
"""

from mixnorm.bounds.bound import Bound
from mixnorm.bounds.estimate import Estimate, rademacher_estimate
from mixnorm.bounds.greedy import shareboost, shareboost_drops, shareboost_generalization
from mixnorm.bounds.kernels import (
    kernel_learning,
    local_rademacher,
    sparse_kernels,
    sparse_kernels_generalization,
    sparse_kernels_rate,
    sparse_kernels_steps,
    tensor_rate,
)
from mixnorm.bounds.matrix import excess_risk, rademacher
from mixnorm.bounds.online import best_regret, mistakes, regret

__all__ = [
    "Bound",
    "Estimate",
    "best_regret",
    "excess_risk",
    "kernel_learning",
    "local_rademacher",
    "mistakes",
    "rademacher",
    "rademacher_estimate",
    "regret",
    "shareboost",
    "shareboost_drops",
    "shareboost_generalization",
    "sparse_kernels",
    "sparse_kernels_generalization",
    "sparse_kernels_rate",
    "sparse_kernels_steps",
    "tensor_rate",
]
