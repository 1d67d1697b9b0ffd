"""Quantiles of the columns of a table of blocks, from one pass: sketches that can be joined.

A sketch holds points, which are values with weights. It holds all values as long as these are few,
and else some of them, each of which stands for those just below it (:eq:`sketch-error`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm._array import is_sparse
from mixnorm.data import Block
from mixnorm.pools.blocks.base import RowShares

# Where points are joined, each weighs at most one part in so many of the rows, and at least so many
# parts go to a bin between two quantiles.
_PARTS_OF_SKETCH, _PARTS_OF_BIN = 4096, 16


@dataclass(frozen=True, eq=False)
class QuantileSketch:
    """Values of a column, in increasing order, and what weighs there.

    Attributes
    ----------
    values, weights : ndarray
        The points.
    error : float
        The weight of rows at or below a number, less that of the points, is from zero to ``error``.
    """

    values: np.ndarray
    weights: np.ndarray
    error: float = 0.0

    def ranks(self) -> np.ndarray:
        """Return the shares of the rows at or below each value, right to half the error."""
        sums = np.cumsum(self.weights)
        return np.asarray((sums + 0.5 * self.error) / sums[-1])

    def join(self, other: QuantileSketch, parts: int | None) -> QuantileSketch:
        """Return a sketch of the rows of both; with ``parts``, one of limited size."""
        from mixnorm.pools.blocks.quantiles_jit import merge_points

        values = np.empty(len(self.values) + len(other.values), dtype=self.values.dtype)
        weights = np.empty(len(values))
        points = self.values, self.weights, other.values, other.weights
        size = merge_points(*points, values, weights)
        found = QuantileSketch(
            values[:size].copy(), weights[:size].copy(), self.error + other.error
        )
        return found.limit(parts)

    def limit(self, parts: int | None) -> QuantileSketch:
        """Return a sketch of at most ``2 * parts`` points and one."""
        if parts is None or len(self.values) <= 2 * parts:
            return self
        from mixnorm.pools.blocks.quantiles_jit import pack_points

        values, weights = self.values.copy(), self.weights.copy()
        # Two neighbours together weigh more than this: there are at most twice as many as parts.
        most = float(weights.sum()) / parts
        size = pack_points(values, weights, most)
        return QuantileSketch(values[:size].copy(), weights[:size].copy(), self.error + most)


def count_parts(most: int | None) -> int | None:
    """Return the parts of sketches that are to give ``most`` quantiles; None keeps all values."""
    return None if most is None else max(_PARTS_OF_SKETCH, _PARTS_OF_BIN * most)


#: What is found in some rows: the number of those that count, and a sketch of each column.
Sketches = tuple[int, list[QuantileSketch]]


@dataclass(frozen=True, eq=False)
class SketchColumns:
    """Makes sketches of the columns of a block."""

    shares: RowShares
    parts: int | None

    def __call__(self, block: Block) -> Sketches | None:
        """Return the number of rows that count, and the sketches."""
        weight, X = self.shares(block), block.X
        used = weight > 0.0
        if not used.all():
            X, weight = X[used], weight[used]
        if not len(weight):
            return None
        make = _sketch_sparse if is_sparse(X) else _sketch_dense
        found = make(X, weight, _working_type(X.dtype))
        return len(weight), [each.limit(self.parts) for each in found]


@dataclass(frozen=True)
class JoinSketches:
    """Joins what was found in two parts of a table."""

    parts: int | None

    def __call__(self, left: Sketches | None, right: Sketches | None) -> Sketches | None:
        """Return what is found in both."""
        if left is None or right is None:
            return right if left is None else left
        pairs = zip(left[1], right[1], strict=True)
        return left[0] + right[0], [one.join(other, self.parts) for one, other in pairs]


def _working_type(dtype: np.dtype[Any]) -> Any:
    """Return a type that holds the values exactly, one of two that loops are compiled for."""
    small = dtype.kind in "biu" and dtype.itemsize <= 2
    small = small or (dtype.kind == "f" and dtype.itemsize <= 4)
    return np.float32 if small else np.float64


def _sketch_dense(X: np.ndarray, weight: np.ndarray, kind: Any) -> list[QuantileSketch]:
    return [_count(X[:, j].astype(kind), weight) for j in range(X.shape[1])]


def _sketch_sparse(X: Any, weight: np.ndarray, kind: Any) -> list[QuantileSketch]:
    matrix, found = X.tocsc(), []
    matrix.sum_duplicates()
    for j in range(X.shape[1]):
        part = slice(matrix.indptr[j], matrix.indptr[j + 1])
        stored, rows = matrix.data[part].astype(kind), matrix.indices[part]
        sketch = _count(stored, weight[rows])
        if len(rows) < len(weight):  # zeros that are not stored
            others = np.ones(len(weight), dtype=bool)
            others[rows] = False
            zeros = _count(np.zeros(np.count_nonzero(others), dtype=kind), weight[others])
            sketch = sketch.join(zeros, None)
        found.append(sketch)
    return found


def _count(values: np.ndarray, weight: np.ndarray) -> QuantileSketch:
    """Return the different values, and the sums of their weights."""
    if len(weight) and np.all(weight == weight[0]):
        found, counts = np.unique(values, return_counts=True)
        return QuantileSketch(found, counts * weight[0])
    found, places = np.unique(values, return_inverse=True)
    return QuantileSketch(found, np.bincount(places.ravel(), weights=weight, minlength=len(found)))
