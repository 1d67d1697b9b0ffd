"""Online mirror descent, which learns from one row at a time.

Open ``engine.py`` first. The engine may import ``losses``, ``norms``, ``kernels``, ``models`` and
``multikernel``.
"""

from mixnorm.engines.mirror.block_learner import BlockLearner, by_blocks
from mixnorm.engines.mirror.engine import build
from mixnorm.engines.mirror.kernel_learner import KernelLearner, KernelLearnerState
from mixnorm.engines.mirror.plan import (
    PERCEPTRON,
    InterruptedLearning,
    NotFiniteError,
    Plan,
    Rows,
    are_compiled,
    rule_error,
)
from mixnorm.engines.mirror.row_learner import RowLearner, RowWorkspace
from mixnorm.engines.mirror.state import LearnerState

__all__ = [
    "PERCEPTRON",
    "BlockLearner",
    "InterruptedLearning",
    "KernelLearner",
    "KernelLearnerState",
    "LearnerState",
    "NotFiniteError",
    "Plan",
    "RowLearner",
    "RowWorkspace",
    "Rows",
    "are_compiled",
    "build",
    "by_blocks",
    "rule_error",
]
