"""Online mirror descent: rows come one at a time.

Open ``engine.py`` first. The engine may import ``losses``, ``norms``, ``kernels`` and
``multikernel``.
"""

from mixnorm.engines.mirror import layout
from mixnorm.engines.mirror.engine import (
    ORIGINS,
    PERCEPTRON,
    RULES,
    BlockLearner,
    KernelLearner,
    KernelLearnerState,
    Learner,
    NotFiniteError,
    Plan,
    RowLearner,
    are_compiled,
    build,
    by_blocks,
)
from mixnorm.engines.mirror.rows_jit import learn_row, scores_of

__all__ = [
    "ORIGINS",
    "PERCEPTRON",
    "RULES",
    "BlockLearner",
    "KernelLearner",
    "KernelLearnerState",
    "Learner",
    "NotFiniteError",
    "Plan",
    "RowLearner",
    "are_compiled",
    "build",
    "by_blocks",
    "layout",
    "learn_row",
    "scores_of",
]
