"""Gradients of all columns estimated on a sample of rows, with bounds of their errors.

Reading all columns of a large table in each round would take most of the time of a fit. A sample of
rows in memory ranks them. The leaders are then computed on all rows, and the bounds say which of
the others can be left out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mixnorm._array import is_sparse
from mixnorm.data import ColumnStatistics
from mixnorm.pools.blocks.base import RowSample

# Probability that some bound of a whole fit fails, and the number of estimates of an entry that it
# covers: rounds, their requests, and a few fits.
_FAILURE, _ESTIMATES = 1e-6, 1e4


class ColumnScreen:
    """Estimates of gradients from a sample of rows (:eq:`screen-bound`).

    Parameters
    ----------
    sample : RowSample
        The rows.
    statistics : ColumnStatistics
        Statistics of the columns over all rows.
    divisors : ndarray of shape (n_features,)
        The scales of the columns, infinite for those that cannot be chosen.
    centred : bool
        Whether columns are measured from their means.
    n_rows : int
        Number of rows that the sample was drawn from.
    """

    def __init__(
        self,
        sample: RowSample,
        statistics: ColumnStatistics,
        divisors: np.ndarray,
        centred: bool,
        n_rows: int,
    ) -> None:
        self.sample, self._n_rows = sample, n_rows
        self._mean = statistics.mean if centred else np.zeros(len(divisors))
        self._inverse = 1.0 / divisors.astype(np.float64)
        farthest = 2.0 * statistics.half_farthest if centred else statistics.largest
        #: The largest magnitude of each scaled column on any row.
        self._reach = farthest * self._inverse
        self._X = sample.X if is_sparse(sample.X) else self._standardise(np.asarray(sample.X))

    def _standardise(self, X: np.ndarray) -> np.ndarray:
        """Return the scaled columns, one per row."""
        rows = np.empty((X.shape[1], X.shape[0]), dtype=X.dtype)
        for j in range(X.shape[1]):
            rows[j] = (X[:, j] - self._mean[j]) * self._inverse[j]
        return rows

    def estimate(self, residual: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return estimates of the gradients of scaled columns, and bounds of their errors.

        Parameters
        ----------
        residual : ndarray of shape (n, n_outputs)
            The residual on the rows of the sample, weighted such that its sums stand for all rows.
        largest : ndarray of shape (n_outputs,)
            The largest magnitude of the residual of any row of the table.
        """
        found, squares = self._moments(residual)
        count, (d, k) = len(residual), found.shape
        log = math.log(3.0 * 2.0 * d * k * _ESTIMATES / _FAILURE)
        # An entry of the sum, as an estimate of the whole sum, is ``count * residual * column``.
        variance = np.maximum(count * squares - found * found, 0.0)
        spread = 2.0 * self._n_rows * self._reach[:, None] * largest[None, :]
        with np.errstate(invalid="ignore"):
            radius = np.sqrt(2.0 * variance * log / count) + 3.0 * spread * log / count
        return found, np.where(np.isfinite(radius), radius, np.inf)

    def _moments(self, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of ``z r`` and of ``(z r)²`` over rows, for scaled columns ``z``."""
        X = self._X
        squared = residual * residual
        if not is_sparse(X):
            squares = np.empty((len(X), residual.shape[1]))
            for start in range(0, len(X), _COLUMNS_AT_ONCE):
                part = X[start : start + _COLUMNS_AT_ONCE]
                squares[start : start + len(part)] = (part * part) @ squared
            return np.asarray(X @ residual, dtype=np.float64), squares
        # With x = stored entries: sum (x - m)² q = sum x² q - 2 m sum x q + m² sum q.
        mean, inverse = self._mean[:, None], self._inverse[:, None]
        first = np.asarray(X.T @ residual, dtype=np.float64)
        square = type(X)((X.data * X.data, X.indices, X.indptr), shape=X.shape)
        second = np.asarray(square.T @ squared, dtype=np.float64)
        cross = np.asarray(X.T @ squared, dtype=np.float64)
        total = squared.sum(axis=0, dtype=np.float64)
        squares = second - 2.0 * mean * cross + mean * mean * total
        found = first - mean * residual.sum(axis=0, dtype=np.float64)
        return found * inverse, np.maximum(squares, 0.0) * inverse * inverse


# Columns whose squares are made at once: a copy of all would take the memory of the sample again.
_COLUMNS_AT_ONCE = 16


class Gradients:
    """What is known of the gradients of all columns at one model: estimates, bounds, exact ones."""

    def __init__(self, at: Any, found: np.ndarray, radius: np.ndarray) -> None:
        #: The model.
        self.at = at
        self._found, self._radius = found, radius
        self.exact = np.zeros(len(found), dtype=bool)

    def set_exact(self, columns: np.ndarray | slice, gradient: np.ndarray) -> None:
        """Note the gradients of some columns on all rows."""
        self._found[columns], self._radius[columns] = gradient, 0.0
        self.exact[columns] = True

    @property
    def guess(self) -> np.ndarray:
        """The best estimates."""
        return self._found

    @property
    def most(self) -> np.ndarray:
        """The largest magnitudes that are possible."""
        return np.asarray(np.abs(self._found) + self._radius)
