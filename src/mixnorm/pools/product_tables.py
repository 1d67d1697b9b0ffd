"""Features divided by powers of two, and sums over all products of two of them.

The gradient of a product is ``sum_i x_i x_j r_i``: for all pairs the matrix ``X^T diag(r) X`` of
each output (:eq:`column-gradient` with products as columns). No product is ever stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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

    def ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and the largest value of each pair's product."""
        raise NotImplementedError

    def sizes(self, skip_constant: bool) -> np.ndarray:
        """Return the largest magnitude of each pair's product; zero for constants to skip."""
        return measure_ranges(*self.ranges(), skip_constant)


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

    def ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and the largest value of each pair's product."""
        from mixnorm.pools.products_jit import dense_ranges

        starts = pair_starts(len(self._Z))
        low, high = (np.empty(starts[-1], dtype=self._Z.dtype) for _ in range(2))
        found = starts, low, high
        run_loop(dense_ranges, self._Z, *found, items=len(self._Z), operations=self._Z.size)
        return low, high

    def deviations(self, share: np.ndarray, centred: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the standard deviations of features and of products, in reduced units.

        ``share`` has the weights of the rows, which sum to one. If not centred, return the roots of
        mean squares.
        """
        mean = self._Z @ share if centred else np.zeros(len(self._Z))
        columns, products, _ = find_deviations(self.moments(share, mean), mean, centred)
        return columns, products

    def moments(self, share: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return sums over rows of ``u U``, ``u U²`` and ``u² U²``, for deviations from means."""
        d = len(self._Z)
        second, third, fourth = (np.zeros((d, d)) for _ in range(3))
        for part in blocks(self._Z.shape[1], _SAMPLES_PER_PRODUCT):
            rest = self._Z[:, part] - mean[:, None]
            weighted, squares = rest * share[part], rest * rest
            second += weighted @ rest.T
            third += weighted @ squares.T
            fourth += (squares * share[part]) @ squares.T
        return second, third, fourth

    def find_two_valued(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Tell which features have no values but their extremes."""
        return np.asarray(self.count_others(low, high) == 0)

    def count_others(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return how many values of each feature are neither of two."""
        found = [
            np.count_nonzero((row != least) & (row != most))
            for row, least, most in zip(self._Z, low, high, strict=True)
        ]
        return np.asarray(found, dtype=np.int64)

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

    def pair_gradients(self, residual: np.ndarray) -> np.ndarray:
        """Return the gradients of the products, ``(n_outputs, n_pairs)``, in double precision."""
        Z, outputs = self._Z, np.ascontiguousarray(residual.T)
        starts = pair_starts(len(Z))
        found = np.empty((len(outputs), starts[-1]))
        width = int(np.clip(_ROWS_PER_PRODUCT // len(outputs), 16, 128))
        for first in range(0, len(Z), width):
            for output, gradient in _block_gradients(Z, outputs, first, width):
                at = slice(output, output + len(gradient))
                for t in range(gradient.shape[1]):
                    pairs = slice(starts[first + t], starts[first + t + 1])
                    found[at, pairs] = gradient[:, t, t:]
        return found

    def single_gradients(self, residual: np.ndarray) -> np.ndarray:
        """Return the gradients of the features, ``(n_outputs, n_features)``."""
        return np.asarray((self._Z @ residual).T, dtype=np.float64)


def find_deviations(
    moments: tuple[np.ndarray, ...], mean: np.ndarray, centred: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the deviations of features and products, and the means of products.

    If not centred, return roots of mean squares, and means that are no use.
    """
    # A product of m + u and M + U is m M and three terms, which do not cancel however large
    # the means are beside the deviations.
    second, third, fourth = moments
    spread = np.diagonal(second).copy()
    if not centred:
        second = np.zeros_like(second)
    # Variance of u U + m U + M u: that of u U, of the two others, and the covariances.
    # ``mixed`` has the terms with the mean of one factor, its transpose those with the other's.
    mixed = mean[:, None] ** 2 * spread + 2.0 * mean[:, None] * third
    variance = fourth - second**2 + mixed + mixed.T
    variance += 2.0 * np.outer(mean, mean) * second
    means = upper_triangle(second + np.outer(mean, mean))
    return np.sqrt(spread), np.sqrt(np.maximum(upper_triangle(variance), 0.0)), means


def upper_triangle(square: np.ndarray) -> np.ndarray:
    """Return the upper triangle of a matrix, row by row."""
    return np.concatenate([square[i, i:] for i in range(len(square))] or [np.empty(0)])


def measure_ranges(low: np.ndarray, high: np.ndarray, skip_constant: bool) -> np.ndarray:
    """Return the largest magnitude of each range; zero for constants to skip."""
    sizes = np.maximum(-low, high)
    if skip_constant:
        sizes[low == high] = 0.0
    return np.asarray(sizes)


def _compute_block_norms(
    Z: np.ndarray, outputs: np.ndarray, rule: str, first: int, width: int
) -> np.ndarray:
    """Return the norms of a block of features with all features from its first on.

    Several outputs share one product: their weighted blocks are stacked.
    """
    shape = min(width, len(Z) - first), len(Z) - first
    total = np.zeros(shape, dtype=Z.dtype if rule == "l1" else np.float64)
    for _, gradient in _block_gradients(Z, outputs, first, width):
        if rule == "l1":
            total += np.abs(gradient, out=gradient).sum(axis=0)
        else:  # in double precision, where no square vanishes
            total += np.square(gradient, dtype=np.float64).sum(axis=0)
    return total if rule == "l1" else np.sqrt(total)


def _block_gradients(
    Z: np.ndarray, outputs: np.ndarray, first: int, width: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield gradients of a block of features with all from its first on, of some outputs each.

    They come with the number of the first of these outputs.
    """
    block, rest = Z[first : first + width], Z[first:]
    together = max(1, _ROWS_PER_PRODUCT // len(block))
    for output in range(0, len(outputs), together):
        weights = outputs[output : output + together]
        gradient = np.zeros((len(weights) * len(block), len(rest)), dtype=Z.dtype)
        for part in blocks(Z.shape[1], _SAMPLES_PER_PRODUCT):
            # One product for several outputs: BLAS is fast on matrices with hundreds of rows.
            stacked = weights[:, None, part] * block[None, :, part]
            gradient += stacked.reshape(len(gradient), -1) @ rest[:, part].T
        yield output, gradient.reshape(len(weights), len(block), len(rest))


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

    def ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and the largest value of each pair's product."""
        from mixnorm.pools.products_jit import sparse_ranges

        low = np.empty(pair_starts(len(self.exponents))[-1], dtype=self._columns.dtype)
        return low, self._run_for_pairs(sparse_ranges, 2, low)

    def deviations(self, share: np.ndarray, centred: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the standard deviations of features and of products, in reduced units."""
        return sparse_deviations(self.moments(share, centred), centred)

    def moments(self, share: np.ndarray, centred: bool) -> tuple[np.ndarray, ...]:
        """Return the means of features, of their squares, of products and of squared products.

        Those of products are needed, and not zero, where features are centred.
        """
        X = self._columns.astype(np.float64)
        squares, d = X.multiply(X).tocsc(), X.shape[1]
        starts = pair_starts(d)
        means, mean_squares = (np.zeros(starts[-1]) for _ in range(2))
        step = max(1, _SUMS_PER_BLOCK // max(1, d))
        for block in blocks(d, step):
            wanted = [(squares, mean_squares), (X, means)]
            for matrix, found in wanted if centred else wanted[:1]:
                for i, row in enumerate(_multiply_weighted(matrix, block, share), block.start):
                    found[starts[i] : starts[i + 1]] = row[i:]
        return X.T @ share, squares.T @ share, means, mean_squares

    def find_two_valued(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Tell which features have no values but their extremes."""
        return np.asarray(self.count_others(low, high) == 0)

    def count_others(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return how many values of each feature are neither of two."""
        X = self._columns
        column = np.repeat(np.arange(len(low)), np.diff(X.indptr))
        strange = (X.data != low[column]) & (X.data != high[column])
        others = np.bincount(column[strange], minlength=len(low))
        # Zeros that are not stored are a value too: a third one, unless an extreme is zero.
        zeros = X.shape[0] - np.diff(X.indptr)
        return np.asarray(others + np.where((low != 0) & (high != 0), zeros, 0), dtype=np.int64)

    def single_norms(self, residual: np.ndarray, rule: str) -> np.ndarray:
        """Return the norms of the features' gradients."""
        return _compute_norms(self._columns.T @ np.ascontiguousarray(residual), rule)

    def pair_norms(self, residual: np.ndarray, rule: str) -> np.ndarray:
        """Return the norms of the products' gradients, the upper triangle."""
        from mixnorm.pools.products_jit import sparse_norms

        residual = np.ascontiguousarray(residual)
        return self._run_for_pairs(sparse_norms, residual.shape[1], residual, rule == "l2")

    def pair_gradients(self, residual: np.ndarray) -> np.ndarray:
        """Return the gradients of the products, ``(n_outputs, n_pairs)``, in double precision."""
        from mixnorm.pools.products_jit import sparse_gradients

        residual = np.ascontiguousarray(residual)
        X, by_row, starts = self._columns, self._rows, pair_starts(len(self.exponents))
        found = np.zeros((starts[-1], residual.shape[1]))
        matrix = (X.indptr, X.indices, X.data, by_row.indptr, by_row.indices, by_row.data)
        sparse_gradients(*matrix, starts, residual, found, 0, X.shape[1])
        return found.T

    def single_gradients(self, residual: np.ndarray) -> np.ndarray:
        """Return the gradients of the features, ``(n_outputs, n_features)``."""
        return np.asarray(self._columns.T @ np.ascontiguousarray(residual), dtype=np.float64).T

    def _run_for_pairs(self, loop: Callable[..., None], width: int, *arguments: Any) -> np.ndarray:
        """Run a compiled loop that adds up ``width`` numbers per row to one number per pair."""
        X, by_row, starts = self._columns, self._rows, pair_starts(len(self.exponents))
        found = np.empty(starts[-1], dtype=X.dtype)
        matrix = (X.indptr, X.indices, X.data, by_row.indptr, by_row.indices, by_row.data)
        # Operations of one feature: its entries, times those of a row, times the numbers per row.
        each = int(np.diff(X.indptr).max(initial=0)) * -(-X.nnz // max(1, X.shape[0])) * width
        run_loop(loop, *matrix, starts, *arguments, found, items=X.shape[1], operations=each)
        return found


def sparse_deviations(
    moments: tuple[np.ndarray, ...], centred: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the standard deviations of features and of products from their moments."""
    mean, square, means, mean_squares = moments
    # Features in [-1, 1] that are mostly zero have small means, so that this cancels little.
    columns = square - mean**2 if centred else square
    return np.sqrt(np.maximum(columns, 0.0)), np.sqrt(np.maximum(mean_squares - means**2, 0.0))


#: Features of dense or of sparse data.
ReducedFeatures = DenseFeatures | SparseFeatures


def _multiply_weighted(X: sp.csc_array, block: slice, share: np.ndarray) -> np.ndarray:
    """Return the products of some columns of a sparse matrix with all, with weighted rows."""
    part = X[:, block].multiply(share[:, None]).tocsc()
    return np.asarray((part.T @ X).toarray())


def reduce_features(matrix: Matrix, used: np.ndarray, largest: np.ndarray) -> ReducedFeatures:
    """Divide the features of the rows in use by powers of two, which bring them into [-1, 1]."""
    exponents = find_exponents(largest)
    if isinstance(matrix, SparseMatrix) and is_thin(matrix.by_column):
        return SparseFeatures.of(matrix, used, exponents)
    return DenseFeatures.of(matrix, used, exponents)


def pair_exponents(powers: np.ndarray) -> np.ndarray:
    """Return the exponents of the powers of two that products are divided by."""
    parts = [powers[i] + powers[i:] for i in range(len(powers))]
    return np.concatenate([*parts, powers[:0]])


def find_exponents(largest: np.ndarray) -> np.ndarray:
    """Return the powers of two just above the largest magnitudes."""
    return np.frexp(largest)[1].astype(np.int64)


def is_thin(X: Any) -> bool:
    """Tell whether a sparse matrix has so few entries that it is faster as it is than dense."""
    return bool(X.nnz <= _DENSE_FROM * X.shape[0] * X.shape[1])


def _compute_norms(gradients: np.ndarray, rule: str) -> np.ndarray:
    """Return the norm of each row."""
    if rule == "l1":
        return np.asarray(np.abs(gradients).sum(axis=1))
    return np.asarray(np.sqrt(np.square(gradients, dtype=np.float64).sum(axis=1)))


def pair_starts(n: int) -> np.ndarray:
    """Return where the pairs of each of ``n`` features begin, and where the last ones end."""
    return np.asarray(np.concatenate([[0], np.cumsum(np.arange(n, 0, -1))]))
