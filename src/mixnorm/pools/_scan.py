"""Matrices the columns pool can scan: in memory, mapped from a file, or sparse.

Each offers the same three things without ever copying the whole matrix: a pass over blocks of rows
(column statistics), the product ``X^T R``, and single columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from mixnorm._array import device_of, is_numpy, namespace, to_numpy

# A block of rows read at once: large enough to stream from disk, small beside any matrix that
# would not fit in memory.
_BLOCK_BYTES = 1 << 23
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
        step = max(1, _BLOCK_BYTES // max(1, 8 * d))
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
        self._X = sp.csc_array(X, dtype=dtype)
        self._transposed = self._X.T
        self.dtype = dtype
        self.shape: tuple[int, int] = self._X.shape

    def columns(self, index: Sequence[int]) -> np.ndarray:
        """Return columns as dense rows."""
        X, rows = self._X, np.zeros((len(index), self.shape[0]), dtype=self.dtype)
        for row, j in zip(rows, index, strict=True):
            part = slice(X.indptr[j], X.indptr[j + 1])
            np.add.at(row, X.indices[part], X.data[part])
        return rows

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        """Return ``X^T residual``."""
        return np.asarray(self._transposed @ np.ascontiguousarray(residual))

    @property
    def by_column(self) -> Any:
        """The matrix in compressed sparse column form."""
        return self._X


def _gemm(dtype: Any) -> Callable[..., np.ndarray]:
    """Return the BLAS routine for ``dtype`` (imported late: SciPy's wrappers take a moment)."""
    from scipy.linalg.blas import dgemm, sgemm

    return sgemm if np.dtype(dtype) == np.float32 else dgemm


def scan(X: Any, dtype: Any) -> DenseScan | SparseScan:
    """Return the scan that suits ``X``."""
    return SparseScan(X, dtype) if sp.issparse(X) else DenseScan(X, dtype)


def column_ranges(matrix: DenseScan | SparseScan, weight: Any) -> tuple[Any, Any]:
    """Return each column's smallest and largest value over rows of positive weight.

    Both come back as NumPy arrays of length ``n_features``.
    """
    if isinstance(matrix, SparseScan):
        return _sparse_ranges(matrix, to_numpy(weight))
    lows, highs = [], []
    for rows, block in matrix.blocks():
        xp, used = namespace(block), weight[rows] > 0
        if not bool(xp.all(used)):
            block = xp.take(block, xp.nonzero(used)[0], axis=0)
        if block.shape[0]:
            lows.append(to_numpy(xp.min(block, axis=0)))
            highs.append(to_numpy(xp.max(block, axis=0)))
    return np.min(lows, axis=0), np.max(highs, axis=0)


def _sparse_ranges(matrix: SparseScan, weight: np.ndarray) -> tuple[Any, Any]:
    X = matrix.by_column
    if not np.all(weight > 0):
        X = X[np.flatnonzero(weight > 0), :]
    return X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
