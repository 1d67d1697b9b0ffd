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
from mixnorm.engines.proximal.settings import DEFAULT_SETTINGS, ProximalSettings


class Model:
    """Gram matrices of a block, weighted by a curvature (``G`` of :eq:`loss-model`).

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
    settings : ProximalSettings
        How many rows are enough, and how eigenvalues are computed.
    """

    def __init__(
        self,
        block: ColumnSet,
        curvature: np.ndarray,
        *,
        fit_intercept: bool,
        exact: bool,
        settings: ProximalSettings = DEFAULT_SETTINGS,
    ) -> None:
        self._settings = settings
        rows = max(settings.least_model_rows, settings.rows_per_column * block.size)
        stride = 1 if exact else max(1, curvature.shape[0] // rows)
        self._curvature = curvature
        self._intercept = fit_intercept
        self.totals = np.sum(curvature, axis=0)
        # Only ever a divisor of what is zero too if the total is zero: any positive number serves.
        self.positive_totals = np.where(self.totals > 0.0, self.totals, 1.0)
        self.means = block.means(curvature) if fit_intercept else None
        self.gram = block.gram(curvature, self.means, stride)
        # The largest over the outputs: a step of a whole row needs one bound for all of them.
        self.diagonal = np.max(np.diagonal(self.gram, axis1=1, axis2=2), axis=0)

    def part(self, rows: np.ndarray) -> Model:
        """Return the model of some of the columns."""
        if len(rows) == self.gram.shape[1]:
            return self
        # Not recomputed from the data: the part of a Gram matrix is the Gram matrix of the part.
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
        """Return the step of the intercept that goes with a step of the scores.

        It is minus the weighted mean of the step: what the means ``m`` take from the columns in
        :eq:`loss-model`, the intercept takes from the scores.
        """
        if not self._intercept:
            return np.zeros(scores.shape[1], dtype=scores.dtype)
        # Two cases, since a product with a vector is a call of BLAS and ``einsum`` is not.
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
        # One over this is a step size: an estimate that is too low makes the steps diverge.
        margin = self._settings.spectral_margin
        if self.gram.shape[1] <= self._settings.largest_dense_spectrum:
            return float(np.max(np.linalg.eigvalsh(self.gram), initial=0.0)) * (1.0 + margin)
        # A fixed start, so that two fits of the same data give the same numbers.
        normal = np.random.default_rng(0).standard_normal((self.gram.shape[1],))
        start = normal.astype(self.gram.dtype)
        values = [
            eigsh(gram, k=1, v0=start, tol=0.1 * margin, return_eigenvectors=False)[0]
            for gram in self.gram
            if np.any(gram)  # ARPACK raises for a matrix of zeros
        ]
        return float(max(values, default=0.0)) * (1.0 + margin)
