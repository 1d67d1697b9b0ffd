"""Batch learning under a norm, with a duality gap.

Open ``engine.py`` first. The engine may import ``losses`` and ``norms``.
"""

from mixnorm.engines.proximal.design import SeparateDesign, SharedDesign
from mixnorm.engines.proximal.engine import PATH_EFFORT, PATIENCE, Solution, alpha_max, path, solve
from mixnorm.engines.proximal.mixture import LossMixture
from mixnorm.engines.proximal.settings import ProximalSettings

__all__ = [
    "PATH_EFFORT",
    "PATIENCE",
    "LossMixture",
    "ProximalSettings",
    "SeparateDesign",
    "SharedDesign",
    "Solution",
    "alpha_max",
    "path",
    "solve",
]
