"""Models with weights of columns and an intercept for every score."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from mixnorm._array import MatrixLike
from mixnorm._linear import linear_scores
from mixnorm.models.checks import check_floats, check_whole
from mixnorm.models.inputs import Inputs
from mixnorm.models.outputs import ClassOutputs, NumberOutputs, TaskOutputs
from mixnorm.pools import Cost

# Dense rows are cut to the columns in use if these are less than one in four.
_COLUMNS_PER_USED = 4


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear model that keeps only the weights of the columns in use.

    Parameters
    ----------
    features : ndarray of shape (n_used,)
        The columns with a weight that is not zero, rising.
    weights : ndarray of shape (n_scores, n_used)
        Their weights.
    intercept : ndarray of shape (n_scores,)
        The intercept of every score.
    inputs : Inputs
        The columns.
    outputs : ClassOutputs, NumberOutputs or TaskOutputs
        What the scores mean. Weights are in the units of the targets.
    """

    features: np.ndarray
    weights: np.ndarray
    intercept: np.ndarray
    inputs: Inputs
    outputs: ClassOutputs | NumberOutputs | TaskOutputs

    @classmethod
    def of(cls, coef: np.ndarray, intercept: np.ndarray, inputs: Inputs, outputs: Any) -> Self:
        """Return the model with weights ``(n_scores, n_features)`` of all columns."""
        # A model of a few among a million columns is small, whatever the width of the data.
        features = np.flatnonzero(np.any(coef != 0.0, axis=0))
        return cls(features, coef[:, features], intercept, inputs, outputs)

    @cached_property
    def coef(self) -> np.ndarray:
        """Weights of all columns: ``(n_scores, n_features)``."""
        coef = np.zeros((len(self.weights), self.inputs.n_features), self.weights.dtype)
        coef[:, self.features] = self.weights
        return coef

    def scores(self, X: MatrixLike) -> np.ndarray:
        """Return the scores of new rows: ``(n_samples, n_scores)``."""
        few = len(self.features) < self.inputs.n_features // _COLUMNS_PER_USED
        # Copying the columns in use is worth it if they are few: the product then reads no others.
        if isinstance(X, np.ndarray) and few:
            return linear_scores(X[:, self.features], self.weights.T, self.intercept)
        return linear_scores(X, self.coef.T, self.intercept)

    def cost(self) -> Cost:
        """Return the cost of a prediction: a multiplication for each weight."""
        return Cost(self.weights.size, 0)

    def check(self, max_bytes: int) -> None:
        """Raise unless ``scores`` can work with the parts, which may come from anybody's file."""
        weights, n_features = self.weights, self.inputs.n_features
        # Transposed, since there may be no columns in use but never no scores.
        check_floats(weights.T, (None, None), "the weights")
        n_scores, n_used = weights.shape
        check_floats(self.intercept, (n_scores,), "the intercept")
        if not np.all(np.isfinite(self.intercept)):
            raise ValueError("the intercept must be finite")
        self.inputs.check(n_scores, max_bytes)
        self.outputs.check(n_scores)
        check_whole(self.features, (n_used,), n_features, "support_")
        # Two equal columns would overwrite each other in ``coef``.
        if np.any(np.diff(self.features) <= 0):
            raise ValueError("support_ must rise")
