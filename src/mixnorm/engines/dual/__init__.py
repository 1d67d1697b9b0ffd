"""The dual problem of lp-norm regularisation.

Open ``engine.py`` first. The engine may import ``losses`` and ``kernels``.
"""

from mixnorm.engines.dual.contraction import (
    Contraction,
    FeatureContraction,
    LowRankContraction,
    ScaledContraction,
    TensorContraction,
)
from mixnorm.engines.dual.engine import SOLVERS, DualSolution, check_solver, path, solve
from mixnorm.engines.dual.settings import DualSettings

__all__ = [
    "SOLVERS",
    "Contraction",
    "DualSettings",
    "DualSolution",
    "FeatureContraction",
    "LowRankContraction",
    "ScaledContraction",
    "TensorContraction",
    "check_solver",
    "path",
    "solve",
]
