"""What the proximal engine multiplies by: one matrix for all outputs, or one for each.

Scores have shape ``(n_samples, n_outputs)`` and lie output by output in memory, as the losses want
them. With one matrix per task, ``n_samples`` is that of the largest task: the rows that a smaller
task lacks have weight zero, and score zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from scipy import sparse

_MODERATE = 1e12


class Block(Protocol):
    """Some columns of a design, ready for many products."""

    #: Number of columns.
    size: int

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the scores that ``weights`` of shape ``(size, n_outputs)`` give."""
        ...

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """Return columnsᵀ theta, of shape ``(size, n_outputs)``."""
        ...

    def gram(self, curvature: np.ndarray, means: np.ndarray | None, stride: int = 1) -> np.ndarray:
        """Return Gram matrices ``(n_factors, size, size)`` with rows weighted by ``curvature``.

        ``means``, of shape ``(size, n_factors)``, is subtracted from the columns. With ``stride``
        every so many rows stand for all.
        """
        ...

    def means(self, curvature: np.ndarray) -> np.ndarray:
        """Return the weighted means of the columns, ``(size, n_factors)``."""
        ...

    def part(self, rows: np.ndarray) -> Block:
        """Return the block of some of its columns."""
        ...


class Design(Protocol):
    """The data as a linear map from weights ``(n_features, n_outputs)`` to scores."""

    n_samples: int
    n_features: int
    n_outputs: int
    #: All outputs have the same matrix.
    shared: bool
    dtype: Any

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the scores of all rows."""
        ...

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """Return ``Xᵀ theta``, of shape ``(n_features, n_outputs)``."""
        ...

    def block(self, rows: np.ndarray) -> Block:
        """Return the columns of these features."""
        ...


class SharedDesign:
    """One matrix for all outputs: dense or sparse.

    Examples
    --------
    >>> import numpy as np
    >>> design = SharedDesign(np.eye(3), 2)
    >>> design.gradient(np.ones((3, 2))).shape
    (3, 2)
    """

    shared = True

    def __init__(self, X: Any, n_outputs: int) -> None:
        self._X: Any = X
        if sparse.issparse(X):
            self._X = self._X.tocsc()
        self.n_samples, self.n_features = X.shape
        self.n_outputs = n_outputs
        self.dtype = X.dtype
        self.sparse = sparse.issparse(X)

    def single(self) -> SharedDesign:
        """Return the design in single precision; a dense one column by column."""
        if self.sparse:
            return SharedDesign(self._X.astype(np.float32), self.n_outputs)
        return SharedDesign(self._X.astype(np.float32, order="F"), self.n_outputs)

    def moderate(self) -> bool:
        """Whether no number is so large that its square would overflow in single precision."""
        values = self._X.data if self.sparse else self._X
        least, most = np.min(values, initial=0.0), np.max(values, initial=0.0)
        return bool(least > -_MODERATE and most < _MODERATE)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return ``X W``, output by output."""
        used = np.flatnonzero(np.any(weights != 0.0, axis=1))
        if len(used) == 0:
            return np.zeros((self.n_outputs, self.n_samples), dtype=self.dtype).T
        if len(used) < self.n_features // 2:
            return self.block(used).scores(weights[used])
        return np.asfortranarray(self._X @ weights)

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """Return ``Xᵀ theta``."""
        return np.ascontiguousarray(self._X.T @ theta)

    def block(self, rows: np.ndarray) -> Block:
        """Return the columns of these features, laid out for many products."""
        if self.sparse:
            return SparseBlock(self._X[:, rows])
        if self._X.flags.f_contiguous:
            return DenseBlock(self._X.T[rows])
        return DenseBlock(np.ascontiguousarray(self._X[:, rows].T))


class DenseBlock:
    """Columns of a dense matrix, one per row of a contiguous array."""

    def __init__(self, columns: np.ndarray) -> None:
        self._columns = columns
        self.size = len(columns)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the scores, output by output."""
        return np.asarray((weights.T @ self._columns).T)

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """Return columnsᵀ theta."""
        return np.ascontiguousarray(self._columns @ theta)

    def means(self, curvature: np.ndarray) -> np.ndarray:
        """Return the weighted means of the columns."""
        return np.asarray(self._columns @ curvature / _totals(curvature))

    def gram(self, curvature: np.ndarray, means: np.ndarray | None, stride: int = 1) -> np.ndarray:
        """Return weighted Gram matrices of the columns."""
        columns, weights = self._columns[:, ::stride], curvature[::stride]
        factors = weights.shape[1]
        if stride > 1:
            weights = weights * (_totals(curvature) / _totals(weights))
        total = np.empty((factors, self.size, self.size), dtype=columns.dtype)
        for factor in range(factors):
            shifted = columns if means is None else columns - means[:, factor, None]
            shifted = shifted * np.sqrt(weights[:, factor])
            total[factor] = shifted @ shifted.T
        return total

    def rooted(self, weight: np.ndarray, means: np.ndarray | None) -> np.ndarray:
        """Return the columns less their means, times the roots of one weight per row."""
        shifted = self._columns if means is None else self._columns - means
        return np.asarray(shifted * np.sqrt(weight))

    def part(self, rows: np.ndarray) -> Block:
        """Return some of the columns."""
        return self if len(rows) == self.size else DenseBlock(self._columns[rows])


class SparseBlock:
    """Columns of a sparse matrix, which stay sparse."""

    def __init__(self, columns: Any) -> None:
        self._columns = columns.tocsr()
        self._transposed = columns.T.tocsr()
        self.size = columns.shape[1]

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the scores, output by output."""
        return np.asfortranarray(self._columns @ np.ascontiguousarray(weights))

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """Return columnsᵀ theta."""
        return np.asarray(self._transposed @ np.ascontiguousarray(theta))

    def means(self, curvature: np.ndarray) -> np.ndarray:
        """Return the weighted means of the columns."""
        return np.asarray(self.gradient(curvature) / _totals(curvature))

    def gram(self, curvature: np.ndarray, means: np.ndarray | None, stride: int = 1) -> np.ndarray:
        """Return weighted Gram matrices of the columns; means come off afterwards."""
        total = np.empty((curvature.shape[1], self.size, self.size), dtype=curvature.dtype)
        for factor in range(curvature.shape[1]):
            scaled = self._columns.multiply(curvature[:, factor, None]).tocsr()
            total[factor] = (self._transposed @ scaled).toarray()
        if means is not None:
            outer = means.T[:, :, None] * means.T[:, None, :]
            total -= outer * _totals(curvature)[:, None, None]
        return total

    def part(self, rows: np.ndarray) -> Block:
        """Return some of the columns."""
        return self if len(rows) == self.size else SparseBlock(self._columns[:, rows])


class SeparateDesign:
    """One matrix per task, with the same features.

    Examples
    --------
    >>> import numpy as np
    >>> design = SeparateDesign([np.eye(2), np.ones((3, 2))])
    >>> design.scores(np.ones((2, 2))).T
    array([[1., 1., 0.],
           [2., 2., 2.]])
    """

    shared = False

    def __init__(self, Xs: Sequence[Any]) -> None:
        self._blocks = [SharedDesign(X, 1) for X in Xs]
        self.n_samples = max(X.shape[0] for X in Xs)
        self.n_features = Xs[0].shape[1]
        self.n_outputs = len(Xs)
        self.dtype = Xs[0].dtype

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return each task's scores, with zeros below those of the smaller tasks."""
        return _stacked(self._blocks, weights, self.n_samples)

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """Return each task's ``Xᵀ theta``."""
        return _gathered(self._blocks, theta, [block.n_samples for block in self._blocks])

    def block(self, rows: np.ndarray) -> Block:
        """Return these features of every task."""
        sizes = [block.n_samples for block in self._blocks]
        return SeparateBlock([block.block(rows) for block in self._blocks], sizes, self.n_samples)


class SeparateBlock:
    """Some features of every task."""

    def __init__(self, blocks: list[Any], sizes: list[int], n_samples: int) -> None:
        self._blocks, self._sizes, self._n_samples = blocks, sizes, n_samples
        self.size = blocks[0].size

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return each task's scores."""
        return _stacked(self._blocks, weights, self._n_samples)

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """Return each task's columnsᵀ theta."""
        return _gathered(self._blocks, theta, self._sizes)

    def means(self, curvature: np.ndarray) -> np.ndarray:
        """Return the weighted means of each task's columns."""
        parts = [
            block.means(curvature[:size, task, None])
            for task, (block, size) in enumerate(zip(self._blocks, self._sizes, strict=True))
        ]
        return np.concatenate(parts, axis=1)

    def gram(self, curvature: np.ndarray, means: np.ndarray | None, stride: int = 1) -> np.ndarray:
        """Return a weighted Gram matrix per task."""
        total = np.empty((len(self._blocks), self.size, self.size), dtype=curvature.dtype)
        for task, (block, size) in enumerate(zip(self._blocks, self._sizes, strict=True)):
            mean = None if means is None else means[:, task, None]
            total[task] = block.gram(curvature[:size, task, None], mean)[0]
        return total

    def part(self, rows: np.ndarray) -> Block:
        """Return some of the features."""
        if len(rows) == self.size:
            return self
        blocks = [block.part(rows) for block in self._blocks]
        return SeparateBlock(blocks, self._sizes, self._n_samples)


def _stacked(blocks: Sequence[Any], weights: np.ndarray, n_samples: int) -> np.ndarray:
    scores = np.zeros((len(blocks), n_samples), dtype=weights.dtype)
    for task, block in enumerate(blocks):
        own = block.scores(weights[:, task, None])[:, 0]
        scores[task, : len(own)] = own
    return scores.T


def _gathered(blocks: Sequence[Any], theta: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    parts = [
        block.gradient(theta[:size, task, None])
        for task, (block, size) in enumerate(zip(blocks, sizes, strict=True))
    ]
    return np.concatenate(parts, axis=1)


def _totals(curvature: np.ndarray) -> np.ndarray:
    """Return the sum of each column, or 1 where it is nothing."""
    totals = np.sum(curvature, axis=0)
    return np.where(totals > 0.0, totals, 1.0).astype(curvature.dtype)
