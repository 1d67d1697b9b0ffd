"""Bounds: what the theory promises on your data, each as a value with its theorem."""

from mixnorm.bounds._bound import Bound
from mixnorm.bounds._estimate import Estimate, rademacher_estimate
from mixnorm.bounds._greedy import shareboost, shareboost_drops, shareboost_generalization
from mixnorm.bounds._kernels import (
    kernel_learning,
    local_rademacher,
    sparse_kernels,
    sparse_kernels_generalization,
    sparse_kernels_rate,
    sparse_kernels_steps,
    tensor_rate,
)
from mixnorm.bounds._matrix import excess_risk, rademacher
from mixnorm.bounds._online import best_regret, mistakes, regret

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
