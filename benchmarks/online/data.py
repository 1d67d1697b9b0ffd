"""Streams for ``benchmarks.online``: the training part of a dataset in one random order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from benchmarks.harness.splits import Matrix, is_sparse, load_parts

DATA = ("mnist", "isolet", "pendigits", "letter", "reuters_r52")


@dataclass(frozen=True)
class Stream:
    """Raw rows in single precision, and their labels from zero up."""

    X: Matrix
    y: np.ndarray

    @property
    def classes(self) -> int:
        """The number of classes, including those without a row."""
        return int(self.y.max()) + 1

    def first(self, rows: int | None) -> Stream:
        """Return the first rows, or all for None."""
        return self if rows is None else Stream(self.X[:rows], self.y[:rows])

    def scale(self) -> Stream:
        """Return a stream with columns divided by their largest magnitude."""
        largest = abs(self.X).max(axis=0)
        largest = np.asarray(largest.todense()).ravel() if is_sparse(self.X) else largest
        factor = 1 / np.where(largest == 0, 1, largest).astype(np.float32)
        if is_sparse(self.X):
            return Stream(sparse.csr_matrix(self.X.multiply(factor)), self.y)
        return Stream(self.X * factor, self.y)


def load(name: str) -> Stream:
    """Return a shuffled training part, because isolet is sorted by speaker and letter."""
    X, y, _, _ = load_parts(name)
    _, y = np.unique(y, return_inverse=True)
    order = np.random.default_rng(0).permutation(len(y))
    if is_sparse(X):
        return Stream(sparse.csr_matrix(X[order], dtype=np.float32), y[order])
    X = X.reshape(len(X), -1)[order]
    return Stream(np.ascontiguousarray(X, dtype=np.float32), y[order])
