"""Stored kernel matrices in one object, which is indexed like a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mixnorm._array import MatrixLike, is_sparse
from mixnorm._chunks import chunks, row_blocks
from mixnorm.kernels.grams.base import (
    Grams,
    Index,
    Positions,
    as_positions,
    list_positions,
    take_part,
)
from mixnorm.kernels.grams.check import check_matrices
from mixnorm.kernels.grams.tails import tails_of

if TYPE_CHECKING:
    from mixnorm.kernels.functions.evaluate import Evaluator

# Entries of a sum that are computed at a time: they stay in the cache while kernels are added.
_ENTRIES_IN_CACHE = 2**17


class KernelStack(Grams):
    """Kernel matrices on the same rows and columns, stored.

    Learners with ``kernel="precomputed"`` take a stack, and a kernel bank that fits into memory
    makes one. A stack has the shape of one matrix and is indexed like one, so that scikit-learn's
    cross-validation takes rows and columns of all matrices at once.

    Parameters
    ----------
    K : array of shape (n_kernels, n_rows, n_columns), a matrix, or a list of matrices
        Matrices of float32 or float64 are kept without a copy; other numbers are converted to one
        of these. A single matrix is a stack of one kernel.

    Attributes
    ----------
    matrices : list of ndarray
        The matrices, one per kernel.
    symmetric : bool
        Whether the matrices are known to be symmetric: ``check()`` passed, or this is a square part
        of such a stack.

    Notes
    -----
    ``combine`` reads every matrix that has a weight once, or half of it if it is known to be
    symmetric, and copies none; ``products`` makes one BLAS call per kernel.

    Examples
    --------
    >>> import numpy as np
    >>> K = np.array([[[2.0, 1.0], [1.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]]])
    >>> stack = KernelStack(K)
    >>> stack
    KernelStack(n_kernels=2, shape=(2, 2), dtype=float64)
    >>> stack.check()
    >>> stack.combine([1.0, 3.0])
    array([[5., 1.],
           [1., 5.]])
    >>> stack[np.ix_([1], [0, 1])].shape
    (1, 2)
    """

    ndim = 2

    def __init__(self, K: MatrixLike | KernelStack) -> None:
        self._keep(_as_matrices(K), False)

    @classmethod
    def _of(cls, matrices: Sequence[np.ndarray] | np.ndarray, symmetric: bool) -> KernelStack:
        """Return a stack of matrices that need no check."""
        stack = cls.__new__(cls)
        stack._keep(list(matrices), symmetric)
        return stack

    def _keep(self, matrices: list[np.ndarray], symmetric: bool) -> None:
        n_rows, n_columns = matrices[0].shape
        super().__init__(len(matrices), (n_rows, n_columns), matrices[0].dtype)
        self.matrices = matrices
        self.symmetric = symmetric

    # --- like a matrix

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> KernelStack:
        if isinstance(key, tuple) and len(key) != 2:
            raise IndexError(
                f"a KernelStack has rows and columns, but the index has {len(key)} entries; "
                "kernels are chosen through stack.matrices."
            )
        first, second = key if isinstance(key, tuple) else (key, None)
        rows = as_positions(first, self.shape[0], "rows")
        columns = as_positions(second, self.shape[1], "columns")
        same = bool(np.array_equal(list_positions(rows), list_positions(columns)))
        taken = [_take_entries(matrix, rows, columns) for matrix in self.matrices]
        return KernelStack._of(taken, self.symmetric and same)

    # --- checks

    def check(self, square: bool = True) -> None:
        """Raise a ValueError that names the first matrix that is not a kernel, and says why.

        Parameters
        ----------
        square : bool, default=True
            Whether rows and columns are the same samples. The matrices must then be symmetric,
            have no negative diagonal entry and no entry larger than the diagonal allows, and a
            principal block of at most 128 rows, drawn with a fixed seed, must have no negative
            eigenvalue. With False, all entries must be finite, and nothing else is checked.
        """
        check_matrices(self.matrices, square)
        if square:
            self.symmetric = True

    # --- as Gram matrices

    def _add_sum(
        self, total: np.ndarray, scales: np.ndarray, rows: Positions, columns: Positions
    ) -> None:
        from mixnorm.kernels.grams.sums_jit import add_block, add_columns, mirror

        which = np.flatnonzero(scales)
        whole = slice(0, self.shape[0], 1)
        # Only one half of symmetric matrices is read.
        half = self.symmetric and all(isinstance(p, slice) and p == whole for p in (rows, columns))
        width = total.shape[1]
        # Kernel by kernel, the sum would be read and written once per kernel; by blocks it stays in
        # the cache while all kernels are added.
        for part in row_blocks(len(total), _ENTRIES_IN_CACHE, width) if total.size else ():
            some = take_part(rows, part)
            across = slice(0, part.stop, 1) if half else columns
            sums = total[part, : part.stop] if half else total[part]
            for m in which:
                if isinstance(across, slice):
                    add_block(sums, self.matrices[m][some, across], scales[m])
                else:
                    add_columns(sums, self.matrices[m][some], across, scales[m])
        if half:
            for some in chunks(len(total), len(total)):
                mirror(total, some.start, some.stop)

    def _energies(self, table: np.ndarray) -> np.ndarray:
        from mixnorm.kernels.grams.sums_jit import energy_of_rows

        table = np.ascontiguousarray(table)
        if not self.symmetric:
            return np.asarray(np.einsum("mnc,nc->m", self.products(table), table))
        # Only the rows where the table is not zero are read, up to the diagonal.
        support = np.flatnonzero(np.any(table != 0.0, axis=1))
        found = np.zeros(self.n_kernels)
        for part in row_blocks(len(support), _ENTRIES_IN_CACHE, len(table)):
            some = support[part]
            products = table[some] @ table[: some[-1] + 1].T
            for m, matrix in enumerate(self.matrices):
                found[m] += energy_of_rows(matrix, some, products)
        return found

    def _products(self, table: np.ndarray, which: list[int]) -> np.ndarray:
        # If less than half of the rows of the table are not zero, only these rows of symmetric
        # matrices are read.
        matrices = [self.matrices[m] for m in which]
        found = np.empty((len(matrices), self.shape[0], table.shape[1]), dtype=self.dtype)
        support = np.flatnonzero(np.any(table != 0.0, axis=1))
        sparse = self.symmetric and 2 * len(support) < len(table)
        transposed = np.ascontiguousarray(table[support].T) if sparse else None
        for matrix, product in zip(matrices, found, strict=True):
            if transposed is None:
                np.matmul(matrix, table, out=product)
            else:  # rows lie together in memory, columns do not
                product[...] = (transposed @ matrix[support]).T
        return found

    def diagonals(self) -> np.ndarray:
        """Return the diagonals, of shape ``(n_kernels, n_rows)``, in float64."""
        self.check_square("diagonals")
        return np.asarray([np.diagonal(matrix) for matrix in self.matrices], dtype=np.float64)

    def take(self, rows: Index) -> KernelStack:
        """Return a copy of the matrices between some of the rows."""
        from mixnorm.kernels.grams.sums_jit import take_half

        self.check_square("take")
        index = list_positions(as_positions(rows, self.n_samples, "rows"))
        taken = np.empty((self.n_kernels, len(index), len(index)), dtype=self.dtype)
        # Only an increasing index keeps the lower triangle of the part in the lower triangle of the
        # matrix.
        half = self.symmetric and bool(np.all(index[1:] > index[:-1]))
        for matrix, place in zip(self.matrices, taken, strict=True):
            if half:
                for some in chunks(len(index), 8 * len(index)):  # writing to new memory is slow
                    take_half(matrix, index, place, some.start, some.stop)
            else:
                np.take(matrix[index], index, axis=1, out=place)
        return KernelStack._of(taken, self.symmetric)

    def _tail_sums(self, tails: list[int], weight: np.ndarray | None) -> np.ndarray:
        self.check_square("tail_sums")
        sums = [
            tails_of(partial(multiply, matrix), np.diagonal(matrix), tails, matrix.dtype, weight)
            for matrix in self.matrices
        ]
        return np.stack(sums, axis=1)

    def rescale(self, scales: np.ndarray, evaluator: Evaluator) -> None:
        """Multiply the matrices in place."""
        for matrix, scale in zip(self.matrices, scales, strict=True):
            matrix *= scale

    def check_square(self, what: str) -> None:
        """Raise unless the matrices are square."""
        if self.shape[0] != self.shape[1]:
            raise ValueError(
                f"{what} needs square kernel matrices, got {self.shape[0]} rows and "
                f"{self.shape[1]} columns; give the kernels of the training rows against "
                "themselves."
            )


def multiply(K: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Return ``K @ Q`` in the dtype of ``Q``, converting only some rows of ``K`` at a time."""
    if K.dtype == Q.dtype:
        return np.asarray(K @ Q)
    found = np.empty((len(K), Q.shape[1]), dtype=Q.dtype)
    for part in row_blocks(len(K), _ENTRIES_IN_CACHE, K.shape[1]):
        np.matmul(K[part].astype(Q.dtype), Q, out=found[part])
    return found


def _as_matrices(K: MatrixLike | KernelStack) -> list[np.ndarray]:
    """Return the matrices of a stack, all of one floating dtype and one shape."""
    if isinstance(K, KernelStack):
        return list(K.matrices)
    if isinstance(K, np.ndarray):
        if K.ndim == 2:
            K = K[None]
        if K.ndim != 3:
            raise ValueError(
                f"K has {K.ndim} axes; give an array of shape (n_kernels, n_rows, n_columns), one "
                "matrix, or a list of matrices."
            )
    elif not isinstance(K, (list, tuple)):
        raise TypeError(
            f"K must be an array or a list of matrices, got {type(K).__name__}; convert it with "
            "numpy.asarray."
        )
    if len(K) == 0:
        raise ValueError("K holds no kernels; give at least one matrix.")
    matrices = [_as_matrix(matrix, m) for m, matrix in enumerate(K)]
    shape = matrices[0].shape
    for m, matrix in enumerate(matrices):
        if matrix.shape != shape:
            raise ValueError(
                f"kernel {m} has shape {matrix.shape}, but kernel 0 has {shape}; all kernels must "
                "be of the same rows and columns."
            )
    dtype = np.result_type(*matrices)
    return [matrix.astype(dtype, copy=False) for matrix in matrices]


def _as_matrix(matrix: MatrixLike, m: int) -> np.ndarray:
    """Return one matrix in float32 or float64, without a copy if it has such a dtype."""
    if is_sparse(matrix):
        raise TypeError(
            f"kernel {m} is a sparse matrix; kernel matrices are dense, convert it with toarray()."
        )
    found = np.asarray(matrix)
    if found.dtype.kind not in "fiub":
        raise TypeError(
            f"kernel {m} has dtype {found.dtype}; kernel matrices hold real numbers, convert it "
            "with astype."
        )
    if found.ndim != 2:
        raise ValueError(f"kernel {m} has {found.ndim} axes instead of 2; give matrices.")
    small = found.dtype.kind == "f" and found.dtype.itemsize <= 4
    return found.astype(np.float32 if small else np.float64, copy=False)


def _take_entries(matrix: np.ndarray, rows: Positions, columns: Positions) -> np.ndarray:
    """Return some rows and columns of a matrix: a view where both are slices."""
    some = matrix[rows]
    if isinstance(columns, slice):
        return some[:, columns]
    return np.take(some, columns, axis=1)
