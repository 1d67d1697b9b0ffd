"""A quadratic model of the loss in the weights of some columns, with the intercept eliminated.

With ``c`` the curvature of every row, the model of the loss a step ``D`` away is
``<g, D> + kappa/2 <D, G D>``, ``G = (A - m)ᵀ diag(c) (A - m)`` (:eq:`loss-model`). The mean ``m``
of the columns, weighted by ``c``, accounts for the intercept, which follows. Outputs that share the
curvature of their rows share one ``G``; otherwise each output has its own.
"""

from __future__ import annotations

import copy

import numpy as np
from scipy.sparse.linalg import eigsh

from mixnorm.data import ColumnSet

# Rows that are enough to shape a step: at least, and for each column of the model.
_LEAST_ROWS_OF_MODEL, _ROWS_PER_COLUMN = 2048, 3
_LARGEST_DENSE_SPECTRUM = 128  # side of matrices whose eigenvalues are all computed
_SPECTRAL_MARGIN = 0.01  # added to the largest eigenvalue, relatively


class Model:
    """Gram matrices of a block, weighted by a curvature.

    Parameters
    ----------
    block : ColumnSet
        The columns.
    curvature : array of shape (n_samples, n_factors)
        One column for all outputs, or one for each.
    fit_intercept : bool
        Whether an intercept follows the weights.
    exact : bool
        Use all rows; otherwise enough to shape a step.
    """

    def __init__(
        self, block: ColumnSet, curvature: np.ndarray, *, fit_intercept: bool, exact: bool
    ) -> None:
        rows = max(_LEAST_ROWS_OF_MODEL, _ROWS_PER_COLUMN * block.size)
        stride = 1 if exact else max(1, curvature.shape[0] // rows)
        self._curvature = curvature
        self._intercept = fit_intercept
        self.totals = np.sum(curvature, axis=0)
        self.positive_totals = np.where(self.totals > 0.0, self.totals, 1.0)
        self.means = block.means(curvature) if fit_intercept else None
        self.gram = block.gram(curvature, self.means, stride)
        self.diagonal = np.max(np.diagonal(self.gram, axis1=1, axis2=2), axis=0)

    def part(self, rows: np.ndarray) -> Model:
        """Return the model of some of the columns."""
        if len(rows) == self.gram.shape[1]:
            return self
        other = copy.copy(self)
        other.gram = self.gram[:, rows[:, None], rows[None, :]]
        other.means = None if self.means is None else self.means[rows]
        other.diagonal = self.diagonal[rows]
        return other

    def product(self, step: np.ndarray) -> np.ndarray:
        """Return ``G D``."""
        if len(self.gram) == 1:
            return np.asarray(self.gram[0] @ step)
        return np.ascontiguousarray((self.gram @ step.T[:, :, None])[:, :, 0].T)

    def follow(self, scores: np.ndarray) -> np.ndarray:
        """Return the step of the intercept that goes with a step of the scores."""
        if not self._intercept:
            return np.zeros(scores.shape[1], dtype=scores.dtype)
        if self._curvature.shape[1] == 1:
            return np.asarray(-(self._curvature[:, 0] @ scores) / self.positive_totals)
        return np.asarray(-np.einsum("ij,ij->j", self._curvature, scores) / self.positive_totals)

    def centre(self, gradient: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient in weights that the intercept follows, and the intercept's own step.

        ``bias`` is the gradient in the intercept.
        """
        if self.means is None:
            return gradient, np.zeros_like(bias)
        return gradient - self.means * bias, np.asarray(bias / self.positive_totals)

    def largest_eigenvalue(self) -> float:
        """Return an upper estimate of the largest eigenvalue of all the matrices."""
        if self.gram.shape[1] <= _LARGEST_DENSE_SPECTRUM:
            return float(np.max(np.linalg.eigvalsh(self.gram), initial=0.0)) * (
                1.0 + _SPECTRAL_MARGIN
            )
        normal = np.random.default_rng(0).standard_normal((self.gram.shape[1],))
        start = normal.astype(self.gram.dtype)
        values = [
            eigsh(gram, k=1, v0=start, tol=0.1 * _SPECTRAL_MARGIN, return_eigenvectors=False)[0]
            for gram in self.gram
            if np.any(gram)
        ]
        return float(max(values, default=0.0)) * (1.0 + _SPECTRAL_MARGIN)
