"""Features divided by powers of two, and sums over all products of two of them.

The gradient of a product is ``sum_i x_i x_j r_i``: for all pairs the matrix ``X^T diag(r) X`` of
each output (:eq:`column-gradient` with products as columns). No product is ever stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from mixnorm._chunks import blocks, run_loop
from mixnorm.data import Matrix, SparseMatrix

# Rows of one matrix product: features times outputs. BLAS is slower with fewer.
_ROWS_PER_PRODUCT = 512
# Samples of one matrix product: the weighted features of a block take some megabytes.
_SAMPLES_PER_PRODUCT = 4096
# Sparse data with a larger share of entries than this are multiplied faster as dense data.
_DENSE_FROM = 0.1
# Entries of a block of sums over rows, for sparse data.
_SUMS_PER_BLOCK = 1 << 22


class _Reduced:
    """Features divided by powers of two."""

    exponents: np.ndarray

    def pair_exponents(self) -> np.ndarray:
        """Return the exponents of the powers that products are divided by."""
        powers = self.exponents
        parts = [powers[i] + powers[i:] for i in range(len(powers))]
        return np.concatenate([*parts, powers[:0]])


class DenseFeatures(_Reduced):
    """Features as rows of a dense array."""

    def __init__(self, Z: np.ndarray, exponents: np.ndarray) -> None:
        self._Z, self.exponents = Z, exponents

    @classmethod
    def of(cls, matrix: Matrix, used: np.ndarray, exponents: np.ndarray) -> Self:
        """Return the rows in use of a matrix, divided by powers of two."""
        Z = np.empty((matrix.shape[1], np.count_nonzero(used)), dtype=matrix.dtype)
        start = 0
        for rows, block in matrix.blocks():
            part = block[used[rows]]
            # ``ldexp`` changes the exponent alone: the division is exact, also where a power of two
            # itself would overflow.
            Z[:, start : start + len(part)] = np.ldexp(part, -exponents).T
            start += len(part)
        return cls(Z, exponents)

    def subset(self, index: np.ndarray) -> Self:
        """Return some of the features."""
        return type(self)(self._Z[index], self.exponents[index])

    def sizes(self, skip_constant: bool) -> np.ndarray:
        """Return the largest magnitude of each pair's product; zero for constants to skip."""
        from mixnorm.pools.products_jit import dense_sizes

        starts = pair_starts(len(self._Z))
        sizes = np.empty(starts[-1], dtype=self._Z.dtype)
        found = starts, skip_constant, sizes
        run_loop(dense_sizes, self._Z, *found, items=len(self._Z), operations=self._Z.size)
        return sizes

    def deviations(self, share: np.ndarray, centred: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the standard deviations of features and of products, in reduced units.

        ``share`` has the weights of the rows, which sum to one. If not centred, return the roots of
        mean squares.
        """
        # A product of m + u and M + U is m M and three terms, which do not cancel however large
        # the means are beside the deviations.
        d = len(self._Z)
        mean = self._Z @ share if centred else np.zeros(d)
        fourth, third, second = (np.zeros((d, d)) for _ in range(3))
        for part in blocks(self._Z.shape[1], _SAMPLES_PER_PRODUCT):
            rest = self._Z[:, part] - mean[:, None]
            weighted, squares = rest * share[part], rest * rest
            second += weighted @ rest.T
            third += weighted @ squares.T
            fourth += (squares * share[part]) @ squares.T
        spread = np.diagonal(second).copy()
        if not centred:
            second = np.zeros((d, d))
        # Variance of u U + m U + M u: that of u U, of the two others, and the covariances.
        # ``mixed`` has the terms with the mean of one factor, its transpose those with the other's.
        mixed = mean[:, None] ** 2 * spread + 2.0 * mean[:, None] * third
        variance = fourth - second**2 + mixed + mixed.T
        variance += 2.0 * np.outer(mean, mean) * second
        upper = np.concatenate([variance[i, i:] for i in range(d)] or [np.empty(0)])
        return np.sqrt(spread), np.sqrt(np.maximum(upper, 0.0))

    def find_two_valued(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Tell which features have no values but their extremes."""
        found = [
            bool(np.all((row == least) | (row == most)))
            for row, least, most in zip(self._Z, low, high, strict=True)
        ]
        return np.asarray(found, dtype=bool)

    def single_norms(self, residual: np.ndarray, rule: str) -> np.ndarray:
        """Return the norms of the features' gradients."""
        return _compute_norms(self._Z @ residual, rule)

    def pair_norms(self, residual: np.ndarray, rule: str) -> np.ndarray:
        """Return the norms of the products' gradients ``Z diag(r) Z^T``, the upper triangle."""
        Z, outputs = self._Z, np.ascontiguousarray(residual.T)
        # Blocks of features, each with all features from its first on: the upper triangle, and
        # little more than it at the diagonal.
        starts = pair_starts(len(Z))
        norms = np.empty(starts[-1], dtype=Z.dtype)
        width = int(np.clip(_ROWS_PER_PRODUCT // len(outputs), 16, 128))
        for first in range(0, len(Z), width):
            block = _compute_block_norms(Z, outputs, rule, first, width)
            for t, row in enumerate(block):
                norms[starts[first + t] : starts[first + t + 1]] = row[t:]
        return norms


def _compute_block_norms(
    Z: np.ndarray, outputs: np.ndarray, rule: str, first: int, width: int
) -> np.ndarray:
    """Return the norms of a block of features with all features from its first on.

    Several outputs share one product: their weighted blocks are stacked.
    """
    block, rest = Z[first : first + width], Z[first:]
    total = np.zeros((len(block), len(rest)), dtype=Z.dtype if rule == "l1" else np.float64)
    together = max(1, _ROWS_PER_PRODUCT // len(block))
    for output in range(0, len(outputs), together):
        weights = outputs[output : output + together]
        gradient = np.zeros((len(weights) * len(block), len(rest)), dtype=Z.dtype)
        for part in blocks(Z.shape[1], _SAMPLES_PER_PRODUCT):
            # One product for several outputs: BLAS is fast on matrices with hundreds of rows.
            stacked = weights[:, None, part] * block[None, :, part]
            gradient += stacked.reshape(len(gradient), -1) @ rest[:, part].T
        gradient = gradient.reshape(len(weights), len(block), len(rest))
        if rule == "l1":
            total += np.abs(gradient, out=gradient).sum(axis=0)
        else:  # in double precision, where no square vanishes
            total += np.square(gradient, dtype=np.float64).sum(axis=0)
    return total if rule == "l1" else np.sqrt(total)


class SparseFeatures(_Reduced):
    """Features of sparse data, stored by columns and by rows."""

    def __init__(self, by_column: sp.csc_array, exponents: np.ndarray) -> None:
        self._columns, self._rows = by_column, by_column.tocsr()
        self.exponents = exponents

    @classmethod
    def of(cls, matrix: SparseMatrix, used: np.ndarray, exponents: np.ndarray) -> Self:
        """Return the rows in use of a sparse matrix, divided by powers of two."""
        X = sp.csc_array(matrix.by_column[np.flatnonzero(used), :])  # a copy
        X.sum_duplicates()
        X.data = np.ldexp(X.data, -np.repeat(exponents, np.diff(X.indptr)))
        return cls(X, exponents)

    def subset(self, index: np.ndarray) -> Self:
        """Return some of the features."""
        return type(self)(self._columns[:, index], self.exponents[index])

    def sizes(self, skip_constant: bool) -> np.ndarray:
        """Return the largest magnitude of each pair's product; zero for constants to skip."""
        from mixnorm.pools.products_jit import sparse_sizes

        return self._run_for_pairs(sparse_sizes, 2, skip_constant)

    def deviations(self, share: np.ndarray, centred: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the standard deviations of features and of products, in reduced units."""
        X = self._columns.astype(np.float64)
        squares, d = X.multiply(X).tocsc(), X.shape[1]
        mean, square = X.T @ share, squares.T @ share
        parts = []
        step = max(1, _SUMS_PER_BLOCK // max(1, d))
        for block in blocks(d, step):
            # Features in [-1, 1] that are mostly zero have small means, so that this cancels
            # little.
            variance = _multiply_weighted(squares, block, share)
            if centred:
                variance -= _multiply_weighted(X, block, share) ** 2
            parts += [row[block.start + i :] for i, row in enumerate(variance)]
        upper = np.concatenate(parts or [np.empty(0)])
        columns = square - mean**2 if centred else square
        return np.sqrt(np.maximum(columns, 0.0)), np.sqrt(np.maximum(upper, 0.0))

    def find_two_valued(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Tell which features have no values but their extremes."""
        X = self._columns
        column = np.repeat(np.arange(len(low)), np.diff(X.indptr))
        strange = (X.data != low[column]) & (X.data != high[column])
        has_zeros = np.diff(X.indptr) < X.shape[0]
        # Zeros that are not stored are a value too: a third one, unless an extreme is zero.
        others = np.bincount(column, weights=strange, minlength=len(low)) > 0
        return np.asarray(~others & ~(has_zeros & (low != 0) & (high != 0)))

    def single_norms(self, residual: np.ndarray, rule: str) -> np.ndarray:
        """Return the norms of the features' gradients."""
        return _compute_norms(self._columns.T @ np.ascontiguousarray(residual), rule)

    def pair_norms(self, residual: np.ndarray, rule: str) -> np.ndarray:
        """Return the norms of the products' gradients, the upper triangle."""
        from mixnorm.pools.products_jit import sparse_norms

        residual = np.ascontiguousarray(residual)
        return self._run_for_pairs(sparse_norms, residual.shape[1], residual, rule == "l2")

    def _run_for_pairs(self, loop: Callable[..., None], width: int, *arguments: Any) -> np.ndarray:
        """Run a compiled loop that adds up ``width`` numbers per row to one number per pair."""
        X, by_row, starts = self._columns, self._rows, pair_starts(len(self.exponents))
        found = np.empty(starts[-1], dtype=X.dtype)
        matrix = (X.indptr, X.indices, X.data, by_row.indptr, by_row.indices, by_row.data)
        # Operations of one feature: its entries, times those of a row, times the numbers per row.
        each = int(np.diff(X.indptr).max(initial=0)) * -(-X.nnz // max(1, X.shape[0])) * width
        run_loop(loop, *matrix, starts, *arguments, found, items=X.shape[1], operations=each)
        return found


#: Features of dense or of sparse data.
ReducedFeatures = DenseFeatures | SparseFeatures


def _multiply_weighted(X: sp.csc_array, block: slice, share: np.ndarray) -> np.ndarray:
    """Return the products of some columns of a sparse matrix with all, with weighted rows."""
    part = X[:, block].multiply(share[:, None]).tocsc()
    return np.asarray((part.T @ X).toarray())


def reduce_features(matrix: Matrix, used: np.ndarray, largest: np.ndarray) -> ReducedFeatures:
    """Divide the features of the rows in use by powers of two, which bring them into [-1, 1]."""
    # The power of two just above the largest magnitude.
    exponents = np.frexp(largest)[1].astype(np.int64)
    if isinstance(matrix, SparseMatrix):
        filled = matrix.by_column.nnz
        if filled <= _DENSE_FROM * matrix.shape[0] * matrix.shape[1]:
            return SparseFeatures.of(matrix, used, exponents)
    return DenseFeatures.of(matrix, used, exponents)


def _compute_norms(gradients: np.ndarray, rule: str) -> np.ndarray:
    """Return the norm of each row."""
    if rule == "l1":
        return np.asarray(np.abs(gradients).sum(axis=1))
    return np.asarray(np.sqrt(np.square(gradients, dtype=np.float64).sum(axis=1)))


def pair_starts(n: int) -> np.ndarray:
    """Return where the pairs of each of ``n`` features begin, and where the last ones end."""
    return np.asarray(np.concatenate([[0], np.cumsum(np.arange(n, 0, -1))]))
