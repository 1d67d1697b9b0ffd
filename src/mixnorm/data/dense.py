"""Dense matrices of any array namespace, in memory or mapped from a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from mixnorm._array import Array, device_of, is_numpy, namespace, to_numpy
from mixnorm._chunks import blocks
from mixnorm.data.base import BaseMatrix, ColumnSet, ColumnStatistics, positive_totals

# Bytes of a block of rows: enough to stream from disk, and few enough for copies of the block to
# stay in the cache (new memory costs more than the arithmetic).
_BYTES_PER_ROW_BLOCK = 1 << 21
# The same for other libraries, mostly on a device, where many small steps cost more.
_BYTES_PER_BLOCK_ON_DEVICE = 1 << 28
# Curvatures are estimated on this many rows where there are at least twice as many.
SAMPLES = 8192
# OpenBLAS multiplies without packing its operands while m*n*k is at most this. To pack the large
# operand of such a thin product would cost more than the product itself.
_LARGEST_UNPACKED_PRODUCT = 1_000_000


class DenseMatrix(BaseMatrix):
    """A dense matrix of any array namespace; integers and half floats are converted by blocks."""

    def __init__(self, X: Array, dtype: Any) -> None:
        self._X = X
        self.dtype = dtype
        self.shape = X.shape[0], X.shape[1]

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of consecutive rows in the working dtype."""
        n, step = self.shape[0], self._rows_per_block
        for rows in blocks(n, step):
            yield rows, self._convert(self._X[rows, :])

    @property
    def _rows_per_block(self) -> int:
        size = _BYTES_PER_ROW_BLOCK if is_numpy(self._X) else _BYTES_PER_BLOCK_ON_DEVICE
        return max(1, size // max(1, 8 * self.shape[1]))

    def columns(self, index: np.ndarray) -> DenseColumns:
        """Return some columns, each contiguous in memory."""
        return DenseColumns(self.column_rows(index))

    def column_rows(self, index: Sequence[int] | np.ndarray) -> Any:
        """Return some columns as the rows of an array.

        All of them are gathered in one pass over the rows, so that a file in row order is read
        once, not once per column.
        """
        X = self._X
        if not is_numpy(X):
            xp = namespace(X)
            chosen = xp.asarray(index, device=device_of(X))
            return self._convert(xp.take(X, chosen, axis=1)).T
        # Columns lie together already: each is copied as a whole.
        if X.dtype == self.dtype and X.flags.f_contiguous:
            return np.asarray(X.T[np.asarray(index)])
        rows = np.empty((len(index), self.shape[0]), dtype=self.dtype)
        step = max(1, _BYTES_PER_ROW_BLOCK // max(1, X.itemsize * self.shape[1]))
        for block in blocks(self.shape[0], step):
            rows[:, block] = X[block, index].T
        return rows

    def gradient(self, residual: Array) -> Any:
        """Return ``Xᵀ residual``, of shape ``(n_features, n_outputs)`` (:eq:`column-gradient`)."""
        X = self._X
        if not is_numpy(X):
            # The small factor first: the library then reads X row by row, as it lies.
            return (residual.T @ self._convert(X)).T
        if X.dtype == self.dtype:
            thin = 16 * self.shape[1] * residual.shape[1] <= _LARGEST_UNPACKED_PRODUCT
            # Few outputs: BLAS would repack the large matrix for a product that reads each entry
            # once.
            if X.flags.c_contiguous and thin:
                return self._thin_gradient(to_numpy(residual))
            if not X.flags.c_contiguous:
                return X.T @ residual
            # A mapped file is read by blocks, so that no more of it than a block is in memory.
            if not isinstance(X, np.memmap):
                return (residual.T @ X).T
        total = np.zeros((self.shape[1], residual.shape[1]), dtype=self.dtype)
        for rows, block in self.blocks():
            total += block.T @ residual[rows]
        return total

    def single(self) -> Self:
        """Return a copy in single precision, column by column."""
        # Steps read columns, of which Fortran order keeps each together.
        return type(self)(self._X.astype(np.float32, order="F"), np.dtype(np.float32))

    def largest(self) -> float:
        """Return the largest magnitude of all entries."""
        least, most = np.min(self._X, initial=0.0), np.max(self._X, initial=0.0)
        return float(max(-least, most))

    def ranges(self, weight: Array) -> tuple[np.ndarray, np.ndarray]:
        """Return each column's smallest and largest value over rows of positive weight."""
        return _join_ranges([_extremes(block) for _, block in self._used_blocks(weight)])

    def statistics(self, weight: Array) -> ColumnStatistics:
        """Return ranges, means and deviations of all columns, in one pass where numbers are small.

        Blocks of rows are centred before they are squared, so that deviations are accurate even
        where the means are much larger.
        """
        moments, extremes = _Moments(self.shape[1]), []
        for part, block in self._used_blocks(weight):
            extremes.append(_extremes(block))
            moments.add(part, block)
        low, high = _join_ranges(extremes)
        # Halves: the whole range of a column may exceed the largest float.
        half = 0.5 * high - 0.5 * low
        mean, deviation = moments.mean, moments.deviation
        unsafe = (half > 0.0) & ~_squares_are_safe(half)
        unsafe |= ~np.isfinite(deviation)  # the sum of a constant column may round up
        if np.any(unsafe):  # again, in units in which no square overflows or vanishes
            centre = np.where(unsafe, 0.5 * low + 0.5 * high, 0.0).astype(low.dtype)
            unit = np.where(unsafe & (half > 0.0), half, 1.0).astype(low.dtype)
            moments = _Moments(self.shape[1])
            for part, block in self._used_blocks(weight):
                xp, device = namespace(block), device_of(block)
                shifted = block - xp.asarray(centre, device=device)
                moments.add(part, shifted / xp.asarray(unit, device=device))
            mean = np.where(unsafe, centre + unit * moments.mean, mean)
            deviation = np.where(unsafe, unit * moments.deviation, deviation)
        return ColumnStatistics(low, high, mean.astype(low.dtype), deviation.astype(low.dtype))

    def _used_blocks(self, weight: Array) -> Iterator[tuple[Any, Any]]:
        """Yield the rows of positive weight in blocks, each with its weights."""
        for rows, block in self.blocks():
            xp, part = namespace(block), weight[rows]
            used = part > 0
            if not bool(xp.all(used)):
                # Rows of weight zero may hold anything, also NaN, and must not count.
                kept = xp.nonzero(used)[0]
                part, block = xp.take(part, kept), xp.take(block, kept, axis=0)
            if block.shape[0]:
                yield part, block

    def moments(
        self, weights: Array, samples: Array, known: ColumnStatistics, unit: np.ndarray
    ) -> tuple[Any, Any, Any]:
        """Return weighted sums of ``z = (x - mean) / unit`` and of ``z * z``.

        Both have shape ``(n_features, n_outputs)`` for weights ``(n_samples, n_outputs)``. The last
        are sums of ``z * z`` weighted by ``samples``, of shape ``(n_features,)``.

        Of many rows, the sums are estimated on a sample.
        """
        (n, d), k = self.shape, weights.shape[1]
        xp, device = namespace(weights), device_of(weights)
        first = xp.zeros((k, d), dtype=self.dtype, device=device)
        second, plain = xp.zeros_like(first), xp.zeros_like(first[0, :])
        # Differences of numbers near the largest float would overflow, so both are halved.
        largest = float(np.max(known.largest, initial=0.0))
        half = 0.5 if largest > 0.25 * float(np.finfo(known.mean.dtype).max) else 1.0
        inverse = xp.asarray(1.0 / unit / half, device=device)
        centre = xp.asarray(half * known.mean, device=device)
        for rows, block in self._sample() if n >= 2 * SAMPLES else self.blocks():
            part = weights[rows, :].T
            counts = samples[rows] > 0
            if not bool(xp.all(counts)):  # rows of weight zero may hold anything
                block = xp.where(counts[:, None], block, centre / half)
            values = (block if half == 1.0 else half * block) - centre
            # In place from here on: a block stays in the cache as long as no new memory is touched.
            values *= inverse
            first += part @ values
            values *= values
            second += part @ values
            plain += samples[rows] @ values
        # A sum over a sample stands for that over all rows.
        share = n / SAMPLES if n >= 2 * SAMPLES else 1.0
        return share * first.T, share * second.T, share * plain

    def _sample(self) -> Iterator[tuple[Any, Any]]:
        """Yield blocks of rows that are drawn at random, but are always the same."""
        drawn = np.sort(np.random.default_rng(0).choice(self.shape[0], SAMPLES, replace=False))
        xp, device = namespace(self._X), device_of(self._X)
        for start in range(0, SAMPLES, self._rows_per_block):
            rows = xp.asarray(drawn[start : start + self._rows_per_block], device=device)
            chosen = self._X[rows, :] if is_numpy(self._X) else xp.take(self._X, rows, axis=0)
            yield rows, self._convert(chosen)

    def _convert(self, array: Array) -> Any:
        """Return an array in the working dtype."""
        if array.dtype == self.dtype:
            return array
        return namespace(array).astype(array, self.dtype)

    def _thin_gradient(self, residual: np.ndarray) -> np.ndarray:
        """Accumulate small unpacked products over blocks of rows (C order, few outputs)."""
        from scipy.linalg.blas import dgemm, sgemm  # they take a moment to load

        X, gemm = self._X, sgemm if self.dtype == np.float32 else dgemm
        d, k = self.shape[1], residual.shape[1]
        step = _LARGEST_UNPACKED_PRODUCT // (d * k)
        by_sample = np.ascontiguousarray(residual)
        total = np.zeros((d, k), dtype=self.dtype, order="F")
        for block in blocks(X.shape[0], step):
            total = gemm(
                1.0, X[block].T, by_sample[block].T, beta=1.0, c=total, trans_b=1, overwrite_c=1
            )
        return total


class DenseColumns(ColumnSet):
    """Columns of a dense matrix.

    Parameters
    ----------
    rows : ndarray of shape (size, n_samples)
        The columns as rows of a contiguous array.
    """

    def __init__(self, rows: np.ndarray) -> None:
        self._rows = rows
        self.size = len(rows)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return columns times weights, output by output."""
        return np.asarray((weights.T @ self._rows).T)

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        """Return columnsᵀ residual."""
        return np.ascontiguousarray(self._rows @ residual)

    def gram(self, curvature: np.ndarray, means: np.ndarray | None, stride: int = 1) -> np.ndarray:
        """Return weighted Gram matrices of the columns."""
        rows, weights = self._rows[:, ::stride], curvature[::stride]
        factors = weights.shape[1]
        # The weights of the rows that are read stand for those of all rows.
        if stride > 1:
            weights = weights * (positive_totals(curvature) / positive_totals(weights))
        total = np.empty((factors, self.size, self.size), dtype=rows.dtype)
        for factor in range(factors):
            shifted = rows if means is None else rows - means[:, factor, None]
            # With the roots of the weights on both sides the product is symmetric, and BLAS
            # computes half of it.
            shifted = shifted * np.sqrt(weights[:, factor])
            total[factor] = shifted @ shifted.T
        return total

    def scale_rows(self, weight: np.ndarray, means: np.ndarray | None) -> np.ndarray:
        """Return the columns less their means, times the square root of a weight per row."""
        shifted = self._rows if means is None else self._rows - means
        return np.asarray(shifted * np.sqrt(weight))

    def _subset(self, index: np.ndarray) -> DenseColumns:
        return DenseColumns(self._rows[index])


class _Moments:
    """Weighted mean and variance of columns, updated by blocks (Chan, Golub and LeVeque)."""

    def __init__(self, width: int) -> None:
        self._weight = 0.0
        self.mean = np.zeros(width)
        self._squares = np.zeros(width)

    def add(self, weight: Array, block: Array) -> None:
        """Add a block of rows with their weights, which are positive."""
        xp = namespace(block)
        # Sums of weights and squares are kept in double precision, whatever the dtype of the data.
        total = float(xp.sum(weight, dtype=xp.float64))
        share = weight / total
        with np.errstate(over="ignore", invalid="ignore"):  # such columns are computed again
            mean = share @ block
            squares = block - mean[None, :]
            squares *= squares
            squares = to_numpy(share @ squares).astype(np.float64)
            step = to_numpy(mean).astype(np.float64) - self.mean
            whole = self._weight + total
            self.mean = self.mean + step * (total / whole)
            # The spread of the two means joins the sums of squares within the parts.
            between = step * step * (self._weight * total / whole)
            self._squares = self._squares + total * squares + between
        self._weight = whole

    @property
    def deviation(self) -> np.ndarray:
        """The weighted standard deviation of each column."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.sqrt(self._squares / self._weight))


def _extremes(block: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest value of each column of a block of rows."""
    xp = namespace(block)
    return to_numpy(xp.min(block, axis=0)), to_numpy(xp.max(block, axis=0))


def _join_ranges(ranges: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest value of each column from those of blocks."""
    lows, highs = zip(*ranges, strict=True)
    return np.min(lows, axis=0), np.max(highs, axis=0)


def _squares_are_safe(half: np.ndarray) -> np.ndarray:
    """Tell for each half range whether squares of deviations keep all their digits."""
    info = np.finfo(half.dtype)
    least, most = np.sqrt(info.tiny) / info.eps, np.sqrt(info.max) * info.eps
    return np.asarray((half > least) & (half < most))
