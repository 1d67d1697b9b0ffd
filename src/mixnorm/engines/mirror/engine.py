"""Online mirror descent: learning from samples as they come, under the norms of the batch engines.

A learner holds ``theta``, minus the sum of the gradients so far, and plays the weights
``mirror(rate * theta)`` of a strongly convex norm, scaled into a ball where there is one. For mixed
norms of columns or entries that costs a pass over the sample's entries that are not zero
(:class:`RowLearner`); any other norm, the trace norm for one, has its weights computed once for a
block of samples (:class:`BlockLearner`). Both keep an account: what was lost, and what the theory
promises of it.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from mixnorm.engines.mirror.block_learner import BlockLearner, by_blocks
from mixnorm.engines.mirror.kernel_learner import KernelLearner, KernelLearnerState
from mixnorm.engines.mirror.plan import (
    ORIGINS,
    PERCEPTRON,
    RULES,
    NotFiniteError,
    Plan,
    are_compiled,
)
from mixnorm.engines.mirror.row_learner import RowLearner
from mixnorm.norms import MixedNorm

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
]


class Learner(Protocol):
    """What estimators ask of a learner."""

    plan: Plan
    n_features: int
    n_outputs: int
    numbers: np.ndarray

    def learn(
        self,
        X: Any,
        labels: np.ndarray,
        targets: np.ndarray,
        importance: np.ndarray,
        order: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn from samples one after the other; return each one's loss and mistakes."""
        ...

    def weights(self, averaged: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return weights ``(n_outputs, n_features)`` and intercepts, in units of the inputs."""
        ...

    def grow(self, n_features: int, n_outputs: int) -> None:
        """Make room for more features and outputs, whose weights are zero."""
        ...


def build(plan: Plan, n_features: int, n_outputs: int) -> Any:
    """Return the learner for a plan: by rows where the norm and the losses allow it."""
    norm = plan.smooth(n_features, n_outputs)
    by_rows = isinstance(norm, MixedNorm) and norm.groups is None and are_compiled(plan.losses)
    return (RowLearner if by_rows else BlockLearner)(plan, n_features, n_outputs)
