"""The data of the proximal engine: one matrix for all outputs, or one for each task.

Scores have shape ``(n_samples, n_outputs)`` and lie output by output in memory, as the losses want
them. With one matrix per task, ``n_samples`` is that of the largest task: the rows that a smaller
task lacks have weight zero and score zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mixnorm._array import Array
from mixnorm.data import BaseMatrix, ColumnSet, Matrix, as_matrix


class SharedDesign:
    """One matrix for all outputs.

    Parameters
    ----------
    X : array, sparse matrix or BaseMatrix of shape (n_samples, n_features)
        The data.
    n_outputs : int
        Number of outputs.

    Examples
    --------
    >>> import numpy as np
    >>> design = SharedDesign(np.eye(3), 2)
    >>> design.gradient(np.ones((3, 2))).shape
    (3, 2)
    """

    shared = True

    def __init__(self, X: Array | BaseMatrix, n_outputs: int) -> None:
        self.matrix: BaseMatrix = X if isinstance(X, BaseMatrix) else as_matrix(X, X.dtype)
        self.n_samples, self.n_features = self.matrix.shape
        self.n_outputs = n_outputs
        self.dtype = self.matrix.dtype

    def keep_rows(self, array: np.ndarray) -> np.ndarray:
        """Return an array by row where it is to stay, in memory or in a file."""
        return self.matrix.keep_rows(array)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the scores ``X W``."""
        return self.matrix.scores(weights)

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """Return ``Xᵀ theta``."""
        # Solvers read the gradient row by row, in whatever order the product comes back.
        return np.ascontiguousarray(self.matrix.gradient(theta))

    def block(self, rows: np.ndarray) -> ColumnSet:
        """Return the columns of these features."""
        return self.matrix.columns(rows)


class _PerTask:
    """A matrix, or some of its columns, for each task.

    ``sizes`` are the numbers of rows of the tasks, and ``n_samples`` is the largest.
    """

    def __init__(self, parts: Sequence[Matrix | ColumnSet], sizes: Sequence[int]) -> None:
        self._parts, self._sizes = parts, sizes
        self.n_samples = max(sizes)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return each task's scores, with zeros below those of the smaller tasks."""
        # A row for each task, transposed at the end: scores then lie output by output in memory.
        scores = np.zeros((len(self._parts), self.n_samples), dtype=weights.dtype)
        for task, (part, size) in enumerate(zip(self._parts, self._sizes, strict=True)):
            scores[task, :size] = part.scores(weights[:, task, None])[:, 0]
        return scores.T

    def keep_rows(self, array: np.ndarray) -> np.ndarray:
        """Return an array by row as it is, in memory."""
        return array

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """Return the product of the transposed columns of every task with its column of theta."""
        pairs = zip(self._parts, self._own(theta), strict=True)
        return np.concatenate([part.gradient(own) for part, own in pairs], axis=1)

    def _own(self, table: np.ndarray) -> Iterator[np.ndarray]:
        """Yield each task's column of a table, without the rows that the task lacks."""
        for task, size in enumerate(self._sizes):
            yield table[:size, task, None]


class SeparateDesign(_PerTask):
    """One matrix per task, with the same features.

    Parameters
    ----------
    Xs : sequence of arrays or sparse matrices of shape (n_samples, n_features)
        The data of each task, which may differ in their numbers of rows.

    Examples
    --------
    >>> import numpy as np
    >>> design = SeparateDesign([np.eye(2), np.ones((3, 2))])
    >>> design.scores(np.ones((2, 2))).T
    array([[1., 1., 0.],
           [2., 2., 2.]])
    """

    shared = False

    def __init__(self, Xs: Sequence[Array]) -> None:
        self._matrices = [as_matrix(X, X.dtype) for X in Xs]
        super().__init__(self._matrices, [matrix.shape[0] for matrix in self._matrices])
        self.n_features = Xs[0].shape[1]
        self.n_outputs = len(Xs)
        self.dtype = Xs[0].dtype

    def block(self, rows: np.ndarray) -> ColumnSet:
        """Return these features of every task."""
        return SeparateColumns([matrix.columns(rows) for matrix in self._matrices], self._sizes)


class SeparateColumns(_PerTask, ColumnSet):
    """Some features of every task."""

    # ``_PerTask`` comes first among the bases: its products replace those of ``ColumnSet``.

    def __init__(self, columns: Sequence[ColumnSet], sizes: Sequence[int]) -> None:
        super().__init__(columns, sizes)
        self._columns = columns
        self.size = columns[0].size

    def gram(self, curvature: np.ndarray, means: np.ndarray | None, stride: int = 1) -> np.ndarray:
        """Return a weighted Gram matrix per task, from all rows."""
        # ``stride`` is not used: it is chosen for the rows of the largest task, and would leave a
        # small one with too few.
        total = np.empty((len(self._columns), self.size, self.size), dtype=curvature.dtype)
        pairs = zip(self._columns, self._own(curvature), strict=True)
        for task, (columns, own) in enumerate(pairs):
            mean = None if means is None else means[:, task, None]
            total[task] = columns.gram(own, mean)[0]
        return total

    def _subset(self, index: np.ndarray) -> SeparateColumns:
        return SeparateColumns([columns.part(index) for columns in self._columns], self._sizes)


#: The data as a linear map from weights ``(n_features, n_outputs)`` to scores.
Design = SharedDesign | SeparateDesign
