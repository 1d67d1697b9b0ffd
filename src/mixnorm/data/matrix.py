"""Matrices the columns pool can scan: in memory, mapped from a file, or sparse.

Each offers the same three things without ever copying the whole matrix: a pass over blocks of rows
(column statistics), the product ``X^T R``, and single columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mixnorm._array import device_of, is_numpy, namespace, to_numpy

# A block of rows read at once: large enough to stream from disk, small enough for copies of it to
# stay in the cache (fresh memory costs more than the arithmetic).
_BLOCK_BYTES = 1 << 21
# The same for other libraries, mostly on a device, where many small steps cost more.
_BLOCK_BYTES_THERE = 1 << 28
# Entries of a sparse matrix looked at together.
_BLOCK_ENTRIES = 1 << 18
# Rows that stand for all where there are at least twice as many, for curvatures.
SAMPLES = 8192
# OpenBLAS multiplies without packing its operands while m*n*k stays below this; packing the large
# operand of such a thin product would cost more than the product itself.
_UNPACKED = 1_000_000


class DenseScan:
    """A dense matrix of any array namespace; integers and half floats are converted by blocks."""

    def __init__(self, X: Any, dtype: Any) -> None:
        self._X = X
        self.dtype = dtype
        self.shape: tuple[int, int] = tuple(X.shape)

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of consecutive rows in the working dtype."""
        n, d = self.shape
        size = _BLOCK_BYTES if is_numpy(self._X) else _BLOCK_BYTES_THERE
        step = max(1, size // max(1, 8 * d))
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            yield rows, self._convert(self._X[rows, :])

    def columns(self, index: Sequence[int]) -> Any:
        """Return columns in the working dtype, one per row.

        Several are gathered in one pass over the rows: a table in row order that lies in a file is
        then read once, not once per column.
        """
        X = self._X
        if not is_numpy(X):
            xp = namespace(X)
            chosen = xp.asarray(index, device=device_of(X))
            return self._convert(xp.take(X, chosen, axis=1)).T
        rows = np.empty((len(index), self.shape[0]), dtype=self.dtype)
        step = max(1, _BLOCK_BYTES // max(1, X.itemsize * self.shape[1]))
        for start in range(0, self.shape[0], step):
            block = slice(start, start + step)
            rows[:, block] = X[block, index].T
        return rows

    def gradient(self, residual: Any) -> Any:
        """Return ``X^T residual``, of shape ``(n_features, n_outputs)``."""
        X = self._X
        if not is_numpy(X):
            return (residual.T @ self._convert(X)).T
        if X.dtype == self.dtype and X.flags.c_contiguous and self._is_thin(residual.shape[1]):
            return self._thin_gradient(residual)
        if X.dtype == self.dtype and not isinstance(X, np.memmap):
            return (residual.T @ X).T if X.flags.c_contiguous else X.T @ residual
        total = np.zeros((self.shape[1], residual.shape[1]), dtype=self.dtype)
        for rows, block in self.blocks():
            total += block.T @ residual[rows]
        return total

    def moments(
        self, weights: Any, samples: Any, known: ColumnStatistics, unit: Any
    ) -> tuple[Any, Any, Any]:
        """Return weighted sums of ``z = (x - mean) / unit`` and of ``z * z``.

        Both have shape ``(n_features, n_outputs)`` for weights ``(n_samples, n_outputs)``. The last
        are sums of ``z * z`` weighted by ``samples``, of shape ``(n_features,)``. Of many rows a
        sample stands for all.
        """
        n, (d, k) = self.shape[0], (self.shape[1], weights.shape[1])
        xp, device = namespace(weights), device_of(weights)
        first = xp.zeros((k, d), dtype=self.dtype, device=device)
        second, plain = xp.zeros_like(first), xp.zeros_like(first[0, :])
        # Differences of numbers near the largest float would overflow: both are halved then.
        largest = float(np.max(known.largest, initial=0.0))
        half = 0.5 if largest > 0.25 * float(np.finfo(known.mean.dtype).max) else 1.0
        inverse = xp.asarray(1.0 / unit / half, device=device)
        centre = xp.asarray(half * known.mean, device=device)
        for rows, block in self._sample() if n >= 2 * SAMPLES else self.blocks():
            part = weights[rows, :].T
            counts = samples[rows] > 0
            if not bool(xp.all(counts)):  # rows that do not count may hold anything
                block = xp.where(counts[:, None], block, centre / half)
            values = (block if half == 1.0 else half * block) - centre
            values *= inverse
            first += part @ values
            values *= values
            second += part @ values
            plain += samples[rows] @ values
        share = n / SAMPLES if n >= 2 * SAMPLES else 1.0
        return share * first.T, share * second.T, share * plain

    def _sample(self) -> Iterator[tuple[Any, Any]]:
        """Yield some rows, drawn at random but always the same ones, in blocks."""
        drawn = np.random.default_rng(0).choice(self.shape[0], SAMPLES, replace=False)
        drawn.sort()
        step = max(1, _BLOCK_BYTES // max(1, 8 * self.shape[1]))
        xp, device = namespace(self._X), device_of(self._X)
        if not is_numpy(self._X):
            rows = xp.asarray(drawn, device=device)
            yield rows, self._convert(xp.take(self._X, rows, axis=0))
            return
        for start in range(0, SAMPLES, step):
            rows = drawn[start : start + step]
            yield rows, self._convert(self._X[rows, :])

    def _convert(self, array: Any) -> Any:
        if array.dtype == self.dtype:
            return array
        return namespace(array).astype(array, self.dtype)

    def _is_thin(self, n_outputs: int) -> bool:
        return 16 * self.shape[1] * n_outputs <= _UNPACKED

    def _thin_gradient(self, residual: np.ndarray) -> np.ndarray:
        """Accumulate small unpacked products over blocks of rows (C order, few outputs)."""
        X, gemm = self._X, _gemm(self.dtype)
        d, k = self.shape[1], residual.shape[1]
        step = _UNPACKED // (d * k)
        by_sample = np.ascontiguousarray(residual)
        total = np.zeros((d, k), dtype=self.dtype, order="F")
        for start in range(0, X.shape[0], step):
            block = slice(start, start + step)
            total = gemm(
                1.0, X[block].T, by_sample[block].T, beta=1.0, c=total, trans_b=1, overwrite_c=1
            )
        return total


class SparseScan:
    """A sparse matrix, held by columns; it is never made dense."""

    def __init__(self, X: Any, dtype: Any) -> None:
        X = sp.csc_array(X, dtype=dtype)
        if not X.has_canonical_format:  # entries given in parts are added up, in a copy
            X = X.copy()
            X.sum_duplicates()
        self._X = X
        self._transposed = self._X.T
        self.dtype = dtype
        self.shape: tuple[int, int] = self._X.shape

    def columns(self, index: Sequence[int]) -> np.ndarray:
        """Return columns as dense rows."""
        X, rows = self._X, np.zeros((len(index), self.shape[0]), dtype=self.dtype)
        for row, j in zip(rows, index, strict=True):
            part = slice(X.indptr[j], X.indptr[j + 1])
            row[X.indices[part]] = X.data[part]
        return rows

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        """Return ``X^T residual``."""
        return np.asarray(self._transposed @ np.ascontiguousarray(residual))

    def moments(
        self, weights: np.ndarray, samples: np.ndarray, known: ColumnStatistics, unit: Any
    ) -> tuple[Any, Any, Any]:
        """Return weighted sums of ``z = (x - mean) / unit`` and of ``z * z``."""
        weights = np.concatenate([weights, samples[:, None]], axis=1)
        total = weights.sum(axis=0)
        sums = np.asarray(self._transposed @ weights) / unit[:, None]
        squares = np.empty_like(sums)
        for columns in self.column_blocks():
            part = self._X[:, columns]
            part.data[samples[part.indices] == 0] = 0.0  # what does not count may hold anything
            part.data = np.square(part.data / np.repeat(unit[columns], np.diff(part.indptr)))
            squares[columns] = part.T @ weights
        shift = (known.mean / unit)[:, None]
        first = sums - shift * total
        second = squares - shift * (sums + first)
        return first[:, :-1], second[:, :-1], second[:, -1]

    @property
    def by_column(self) -> Any:
        """The matrix in compressed sparse column form."""
        return self._X

    def column_blocks(self) -> Iterator[slice]:
        """Yield ranges of columns that have a moderate number of entries together."""
        ends, width = self._X.indptr, self.shape[1]
        start = 0
        while start < width:
            stop = int(np.searchsorted(ends, ends[start] + _BLOCK_ENTRIES, side="right")) - 1
            stop = min(max(stop, start + 1), width)
            yield slice(start, stop)
            start = stop


def _gemm(dtype: Any) -> Callable[..., np.ndarray]:
    """Return the BLAS routine for ``dtype`` (imported late: SciPy's wrappers take a moment)."""
    from scipy.linalg.blas import dgemm, sgemm

    return sgemm if np.dtype(dtype) == np.float32 else dgemm


def scan(X: Any, dtype: Any) -> DenseScan | SparseScan:
    """Return the scan that suits ``X``."""
    return SparseScan(X, dtype) if sp.issparse(X) else DenseScan(X, dtype)


def is_list_of_tables(X: Any) -> bool:
    """Tell whether ``X`` is a list of tables, the rows of one task each."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and getattr(X[0], "ndim", 1) == 2


@dataclass(frozen=True)
class ColumnStatistics:
    """What a scan knows of each column, over rows of positive weight; NumPy arrays.

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
        """Half the largest deviation of each column from its mean; the whole may overflow."""
        low, mean, high = 0.5 * self.low, 0.5 * self.mean, 0.5 * self.high
        return np.asarray(np.maximum(high - mean, mean - low))

    def about_zero(self) -> ColumnStatistics:
        """Return the same with zero in place of the means: what counts without an intercept."""
        deviation = np.hypot(self.mean, self.deviation)
        return ColumnStatistics(self.low, self.high, np.zeros_like(self.mean), deviation)


def column_ranges(matrix: DenseScan | SparseScan, weight: Any) -> tuple[Any, Any]:
    """Return each column's smallest and largest value over rows of positive weight.

    Both come back as NumPy arrays of length ``n_features``.
    """
    if isinstance(matrix, SparseScan):
        return _sparse_ranges(matrix, to_numpy(weight))
    lows, highs = [], []
    for _, block in _used_blocks(matrix, weight):
        xp = namespace(block)
        lows.append(to_numpy(xp.min(block, axis=0)))
        highs.append(to_numpy(xp.max(block, axis=0)))
    return np.min(lows, axis=0), np.max(highs, axis=0)


def column_statistics(matrix: DenseScan | SparseScan, weight: Any) -> ColumnStatistics:
    """Return ranges, means and deviations of all columns, in one pass where numbers are moderate.

    Deviations are exact to rounding however large the means are beside them: blocks of rows are
    centred before they are squared.
    """
    if isinstance(matrix, SparseScan):
        return _sparse_statistics(matrix, to_numpy(weight))
    moments = _Moments(matrix.shape[1])
    lows, highs = [], []
    for part, block in _used_blocks(matrix, weight):
        xp = namespace(block)
        lows.append(to_numpy(xp.min(block, axis=0)))
        highs.append(to_numpy(xp.max(block, axis=0)))
        moments.add(part, block)
    low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    half = 0.5 * high - 0.5 * low
    mean, deviation = moments.mean, moments.deviation
    unsafe = (half > 0.0) & ~_squares_are_safe(half)
    unsafe |= ~np.isfinite(deviation)  # of a constant column, where its sum rounds up
    if np.any(unsafe):  # again, in units in which no square overflows or vanishes
        centre = np.where(unsafe, 0.5 * low + 0.5 * high, 0.0).astype(low.dtype)
        unit = np.where(unsafe & (half > 0.0), half, 1.0).astype(low.dtype)
        moments = _Moments(matrix.shape[1])
        for part, block in _used_blocks(matrix, weight):
            xp, device = namespace(block), device_of(block)
            shifted = block - xp.asarray(centre, device=device)
            moments.add(part, shifted / xp.asarray(unit, device=device))
        mean = np.where(unsafe, centre + unit * moments.mean, mean)
        deviation = np.where(unsafe, unit * moments.deviation, deviation)
    return ColumnStatistics(low, high, mean.astype(low.dtype), deviation.astype(low.dtype))


class _Moments:
    """Weighted mean and variance of columns, gathered block by block (Chan, Golub and LeVeque)."""

    def __init__(self, width: int) -> None:
        self._weight = 0.0
        self.mean = np.zeros(width)
        self._squares = np.zeros(width)

    def add(self, weight: Any, block: Any) -> None:
        """Add a block of rows with their weights, which are positive."""
        xp = namespace(block)
        total = float(xp.sum(weight, dtype=xp.float64))
        share = weight / total
        with np.errstate(over="ignore", invalid="ignore"):  # such columns are gone over again
            mean = share @ block
            squares = block - mean[None, :]
            squares *= squares
            squares = to_numpy(share @ squares).astype(np.float64)
            step = to_numpy(mean).astype(np.float64) - self.mean
            whole = self._weight + total
            self.mean = self.mean + step * (total / whole)
            between = step * step * (self._weight * total / whole)
            self._squares = self._squares + total * squares + between
        self._weight = whole

    @property
    def deviation(self) -> np.ndarray:
        """The weighted standard deviation of each column."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.sqrt(self._squares / self._weight))


def _squares_are_safe(half: np.ndarray) -> np.ndarray:
    """Tell of half ranges whether squares of deviations keep all their digits."""
    info = np.finfo(half.dtype)
    least, most = np.sqrt(info.tiny) / info.eps, np.sqrt(info.max) * info.eps
    return np.asarray((half > least) & (half < most))


def _used_blocks(matrix: DenseScan, weight: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the rows of positive weight in blocks, each with its weights."""
    for rows, block in matrix.blocks():
        xp, part = namespace(block), weight[rows]
        used = part > 0
        if not bool(xp.all(used)):
            kept = xp.nonzero(used)[0]
            part, block = xp.take(part, kept), xp.take(block, kept, axis=0)
        if block.shape[0]:
            yield part, block


def _sparse_ranges(matrix: SparseScan, weight: np.ndarray) -> tuple[Any, Any]:
    X = matrix.by_column
    if not np.all(weight > 0):
        X = X[np.flatnonzero(weight > 0), :]
    return X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()


def _sparse_statistics(matrix: SparseScan, weight: np.ndarray) -> ColumnStatistics:
    """Go over the entries alone: those that are not stored differ from the mean by the mean."""
    low, high = _sparse_ranges(matrix, weight)
    unit = np.maximum(np.abs(low), np.abs(high)).astype(np.float64)
    unit[unit == 0.0] = 1.0  # otherwise no square overflows in this unit
    share = weight / np.sum(weight, dtype=np.float64)
    mean, variance = np.empty(len(unit)), np.empty(len(unit))
    for columns in matrix.column_blocks():
        mean[columns], variance[columns] = _sparse_moments(matrix, columns, share, unit[columns])
    deviation = unit * np.sqrt(variance)
    return ColumnStatistics(low, high, (unit * mean).astype(low.dtype), deviation.astype(low.dtype))


def _sparse_moments(
    matrix: SparseScan, columns: slice, share: np.ndarray, unit: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and variances of some columns, in given units."""
    X, width = matrix.by_column, columns.stop - columns.start
    ends = X.indptr[columns.start : columns.stop + 1]
    column = np.repeat(np.arange(width), np.diff(ends))
    shares = share[X.indices[ends[0] : ends[-1]]]
    values = np.where(shares > 0.0, X.data[ends[0] : ends[-1]] / unit[column], 0.0)
    mean = np.bincount(column, weights=shares * values, minlength=width)
    stored = np.bincount(column, weights=shares, minlength=width)
    spread = shares * (values - mean[column]) ** 2
    variance = np.bincount(column, weights=spread, minlength=width)
    return mean, variance + np.maximum(1.0 - stored, 0.0) * mean**2
