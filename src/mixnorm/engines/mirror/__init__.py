"""Online mirror descent: rows come one at a time.

Open ``engine.py`` first. The engine may import ``losses``, ``norms`` and ``kernels``.
"""

from mixnorm.engines.mirror.engine import (
    ORIGINS,
    PERCEPTRON,
    RULES,
    BlockLearner,
    KernelLearner,
    Learner,
    NotFiniteError,
    Plan,
    RowLearner,
    build,
    by_blocks,
)

__all__ = [
    "ORIGINS",
    "PERCEPTRON",
    "RULES",
    "BlockLearner",
    "KernelLearner",
    "Learner",
    "NotFiniteError",
    "Plan",
    "RowLearner",
    "build",
    "by_blocks",
]
