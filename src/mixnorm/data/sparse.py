"""Sparse matrices, held by columns and never made dense."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from mixnorm._array import SparseMatrix as ScipySparse
from mixnorm.data.base import BaseMatrix, ColumnSet, ColumnStatistics, positive_totals

# Entries of a block of sparse columns.
_ENTRIES_PER_BLOCK_OF_COLUMNS = 1 << 18
# Rows of a block that is made dense.
_ROWS_PER_DENSE_BLOCK = 4096


class SparseMatrix(BaseMatrix):
    """A sparse matrix, kept by columns."""

    def __init__(self, X: ScipySparse, dtype: Any) -> None:
        self._X = sp.csc_array(X, dtype=dtype)
        if not self._X.has_canonical_format:  # several values of one entry are added up, in a copy
            self._X = self._X.copy()
            self._X.sum_duplicates()
        #: The matrix in compressed sparse column form.
        self.by_column: Any = self._X
        self._transposed = self._X.T
        self.dtype = dtype
        self.shape = self._X.shape

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield blocks of consecutive rows, made dense."""
        X = self._X.tocsr()
        for start in range(0, X.shape[0], _ROWS_PER_DENSE_BLOCK):
            rows = slice(start, min(start + _ROWS_PER_DENSE_BLOCK, X.shape[0]))
            yield rows, X[rows].toarray()

    def columns(self, index: np.ndarray) -> SparseColumns:
        """Return some columns, which stay sparse."""
        return SparseColumns(self._X[:, index])

    def column_rows(self, index: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return some columns as dense rows."""
        X, rows = self._X, np.zeros((len(index), self.shape[0]), dtype=self.dtype)
        for row, j in zip(rows, index, strict=True):
            part = slice(X.indptr[j], X.indptr[j + 1])
            row[X.indices[part]] = X.data[part]
        return rows

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        """Return ``Xᵀ residual``."""
        return np.asarray(self._transposed @ np.ascontiguousarray(residual))

    def ranges(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return each column's smallest and largest value over rows of positive weight."""
        X = self._X
        if not np.all(weight > 0):
            X = X[np.flatnonzero(weight > 0), :]
        return X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()

    def statistics(self, weight: np.ndarray) -> ColumnStatistics:
        """Return ranges, means and deviations of all columns, from the stored entries.

        The other entries are zero, so that they differ from the mean by the mean.
        """
        low, high = self.ranges(weight)
        unit = np.maximum(np.abs(low), np.abs(high)).astype(np.float64)
        unit[unit == 0.0] = 1.0  # otherwise no square overflows in this unit
        share = weight / np.sum(weight, dtype=np.float64)
        mean, variance = np.empty(len(unit)), np.empty(len(unit))
        for part in self.column_blocks():
            mean[part], variance[part] = self._mean_and_variance(part, share, unit[part])
        deviation = unit * np.sqrt(variance)
        mean = (unit * mean).astype(low.dtype)
        return ColumnStatistics(low, high, mean, deviation.astype(low.dtype))

    def _mean_and_variance(
        self, columns: slice, share: np.ndarray, unit: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return means and variances of some columns, in given units (:eq:`centred-square`)."""
        X, width = self._X, columns.stop - columns.start
        ends = X.indptr[columns.start : columns.stop + 1]
        column = np.repeat(np.arange(width), np.diff(ends))
        shares = share[X.indices[ends[0] : ends[-1]]]
        values = np.where(shares > 0.0, X.data[ends[0] : ends[-1]] / unit[column], 0.0)
        mean = np.bincount(column, weights=shares * values, minlength=width)
        stored = np.bincount(column, weights=shares, minlength=width)
        spread = shares * (values - mean[column]) ** 2
        variance = np.bincount(column, weights=spread, minlength=width)
        return mean, variance + np.maximum(1.0 - stored, 0.0) * mean**2

    def moments(
        self, weights: np.ndarray, samples: np.ndarray, known: ColumnStatistics, unit: np.ndarray
    ) -> tuple[Any, Any, Any]:
        """Return weighted sums of ``z = (x - mean) / unit`` and of ``z * z``."""
        weights = np.concatenate([weights, samples[:, None]], axis=1)
        total = weights.sum(axis=0)
        sums = np.asarray(self._transposed @ weights) / unit[:, None]
        squares = np.empty_like(sums)
        for columns in self.column_blocks():
            part = self._X[:, columns]
            part.data[samples[part.indices] == 0] = 0.0  # rows of weight zero may hold anything
            part.data = np.square(part.data / np.repeat(unit[columns], np.diff(part.indptr)))
            squares[columns] = part.T @ weights
        shift = (known.mean / unit)[:, None]
        first = sums - shift * total
        second = squares - shift * (sums + first)
        return first[:, :-1], second[:, :-1], second[:, -1]

    def column_blocks(self) -> Iterator[slice]:
        """Yield ranges of columns with a moderate number of entries in each."""
        ends, width = self._X.indptr, self.shape[1]
        start = 0
        while start < width:
            most = ends[start] + _ENTRIES_PER_BLOCK_OF_COLUMNS
            stop = int(np.searchsorted(ends, most, side="right")) - 1
            stop = min(max(stop, start + 1), width)
            yield slice(start, stop)
            start = stop


class SparseColumns(ColumnSet):
    """Columns of a sparse matrix, which stay sparse.

    Parameters
    ----------
    columns : sparse matrix of shape (n_samples, size)
        The columns.
    """

    def __init__(self, columns: sp.csc_array | sp.csr_array) -> None:
        self._columns = columns.tocsr()
        self._transposed = columns.T.tocsr()
        self.size = columns.shape[1]

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return columns times weights, output by output."""
        return np.asfortranarray(self._columns @ np.ascontiguousarray(weights))

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        """Return columnsᵀ residual."""
        return np.asarray(self._transposed @ np.ascontiguousarray(residual))

    def gram(self, curvature: np.ndarray, means: np.ndarray | None, stride: int = 1) -> np.ndarray:
        """Return weighted Gram matrices, from all rows; means are subtracted afterwards."""
        total = np.empty((curvature.shape[1], self.size, self.size), dtype=curvature.dtype)
        for factor in range(curvature.shape[1]):
            scaled = self._columns.multiply(curvature[:, factor, None]).tocsr()
            total[factor] = (self._transposed @ scaled).toarray()
        if means is not None:
            outer = means.T[:, :, None] * means.T[:, None, :]
            total -= outer * positive_totals(curvature)[:, None, None]
        return total

    def _subset(self, index: np.ndarray) -> SparseColumns:
        return SparseColumns(self._columns[:, index])
