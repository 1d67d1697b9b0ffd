"""Base classes of matrices and of sets of their columns, and statistics of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ColumnStatistics:
    """Statistics of each column over rows of positive weight; NumPy arrays.

    ``low`` and ``high`` are the smallest and largest value, ``mean`` and ``deviation`` the weighted
    mean and standard deviation.
    """

    low: np.ndarray
    high: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    @property
    def largest(self) -> np.ndarray:
        """The largest magnitude of each column."""
        return np.asarray(np.maximum(np.abs(self.low), np.abs(self.high)))

    @property
    def half_farthest(self) -> np.ndarray:
        """Half the largest deviation of each column from its mean, as the whole may overflow."""
        # Halves before the difference: low and high may have opposite signs near the largest float.
        low, mean, high = 0.5 * self.low, 0.5 * self.mean, 0.5 * self.high
        return np.asarray(np.maximum(high - mean, mean - low))

    def about_zero(self) -> ColumnStatistics:
        """Return the statistics about zero, not about the means, as without an intercept."""
        # The mean square about zero is the variance plus the squared mean; ``hypot`` does not
        # overflow on the way.
        deviation = np.hypot(self.mean, self.deviation)
        return ColumnStatistics(self.low, self.high, np.zeros_like(self.mean), deviation)


class ColumnSet:
    """Some columns of a matrix, ready for many products. All arrays are NumPy's."""

    #: Number of columns.
    size: int

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return columns times ``weights`` of shape ``(size, n_outputs)``, output by output."""
        raise NotImplementedError

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        """Return columnsᵀ residual, of shape ``(size, n_outputs)``."""
        raise NotImplementedError

    def means(self, curvature: np.ndarray) -> np.ndarray:
        """Return the means of the columns, ``(size, n_factors)``, weighted by ``curvature``."""
        return np.asarray(self.gradient(curvature) / positive_totals(curvature))

    def gram(self, curvature: np.ndarray, means: np.ndarray | None, stride: int = 1) -> np.ndarray:
        """Return Gram matrices ``(n_factors, size, size)`` with rows weighted by ``curvature``.

        ``means``, of shape ``(size, n_factors)``, is subtracted from the columns. With ``stride``
        the matrices may be estimated from every ``stride``-th row.
        """
        raise NotImplementedError

    def part(self, index: np.ndarray) -> ColumnSet:
        """Return the columns at ``index``, which is in increasing order if it has all of them."""
        return self if len(index) == self.size else self._subset(index)

    def _subset(self, index: np.ndarray) -> ColumnSet:
        raise NotImplementedError


class BaseMatrix:
    """Base of matrices."""

    #: The shape of the table.
    shape: tuple[int, int]
    #: The dtype of products with it.
    dtype: Any
    _X: Any

    def columns(self, index: np.ndarray) -> ColumnSet:
        """Return some columns, laid out for many products."""
        raise NotImplementedError

    def gradient(self, residual: Any) -> Any:
        """Return ``Xᵀ residual``, of shape ``(n_features, n_outputs)``."""
        raise NotImplementedError

    def keep_rows(self, array: np.ndarray) -> np.ndarray:
        """Return an array by row where it is to stay: here in memory, as it is.

        Tables that do not fit into memory put large ones into files.
        """
        return array

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return ``X weights``, output by output, for entries in the working dtype.

        Where most rows of ``weights`` are zero, only the columns of the other rows are read.
        """
        used = np.flatnonzero(np.any(weights != 0.0, axis=1))
        if len(used) == 0:
            # Output by output in memory, like all scores: transposed from (output, sample).
            return np.zeros((weights.shape[1], self.shape[0]), dtype=self.dtype).T
        # Of few columns the copy is cheaper than reading all.
        if len(used) < self.shape[1] // 2:
            return self.columns(used).scores(weights[used])
        return np.asfortranarray(self._X @ weights)


def positive_totals(curvature: np.ndarray) -> np.ndarray:
    """Return the sum of each column, or 1 where it is zero."""
    totals = np.sum(curvature, axis=0)
    return np.where(totals > 0.0, totals, 1.0).astype(curvature.dtype)
