"""The base class of Gram matrices of several kernels, and checks of their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from mixnorm._array import ArrayLike
from mixnorm.kernels.grams.tails import as_tails

if TYPE_CHECKING:
    from mixnorm.kernels.functions.evaluate import Evaluator

#: Some rows, columns or kernels: a slice, positions or a mask; None for all.
Index: TypeAlias = "slice | Sequence[int] | np.ndarray | None"
#: A dtype; None for that of the matrices.
DType: TypeAlias = "DTypeLike | None"
#: What :func:`as_positions` makes of an index.
Positions: TypeAlias = "slice | np.ndarray"


class Grams:
    """Base of the Gram matrices of several kernels on the same rows.

    A subclass stores them, computes them at every use, or knows their factors. Engines use these
    methods alone, so that any subclass serves them. A subclass defines ``_add_sum``, ``_energies``,
    ``_products`` and ``_tail_sums``, whose arguments have been checked, and the public methods that
    are not defined here.

    Attributes
    ----------
    n_kernels : int
        Number of kernels.
    dtype : dtype
        Floating dtype of what ``combine`` and ``products`` return.
    factors : list of array of shape (n_samples, rank), or None
        The factors of the kernels; None where there are none.
    """

    n_kernels: int
    dtype: np.dtype[Any]
    factors: list[np.ndarray] | None = None

    def __init__(self, n_kernels: int, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        self.n_kernels, self.shape, self.dtype = n_kernels, shape, dtype

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.shape[0]

    def __repr__(self) -> str:
        about = f"n_kernels={self.n_kernels}, {self._detail()}shape={self.shape}"
        return f"{type(self).__name__}({about}, dtype={self.dtype})"

    def _detail(self) -> str:
        """Return the part of ``repr`` that only this class has."""
        return ""

    def combine(
        self, weights: ArrayLike, rows: Index = None, columns: Index = None, *, dtype: DType = None
    ) -> np.ndarray:
        r"""Return the weighted sum of the matrices, or some of its rows and columns.

        This is the matrix :math:`\sum_m \mu_m K_m` of :eq:`kernel-scores`. Kernels of weight zero
        are not read or computed.

        Parameters
        ----------
        weights : array of shape (n_kernels,)
            The weights, which are converted to the dtype of the sum.
        rows, columns : slice, positions or mask, optional
            The rows and columns to keep; all by default.
        dtype : dtype, optional
            The dtype of the sum; that of the matrices by default.

        Returns
        -------
        array of shape (n_rows, n_columns)
            A new array, in C order.
        """
        scales = as_weights(weights, self.n_kernels, dtype or self.dtype)
        left = as_positions(rows, self.shape[0], "rows")
        right = as_positions(columns, self.shape[1], "columns")
        total = np.zeros((len(list_positions(left)), len(list_positions(right))), scales.dtype)
        self._add_sum(total, scales, left, right)
        return total

    def _add_sum(
        self, total: np.ndarray, scales: np.ndarray, rows: Positions, columns: Positions
    ) -> None:
        """Add the weighted sum of some rows and columns to ``total``."""
        raise NotImplementedError

    def energies(self, A: ArrayLike) -> np.ndarray:
        """Return the sums of ``A_i . A_j K_ij`` for every kernel, in float64 (:eq:`energies`)."""
        return self._energies(as_table(A, self.shape[1], np.float64))

    def _energies(self, table: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def products(self, A: ArrayLike, which: Sequence[int] | None = None) -> np.ndarray:
        """Return each matrix, or those in ``which``, times ``A``.

        Of shape ``(n_kernels, n_samples, n_outputs)``, or ``(len(which), ...)``.
        """
        table = as_table(A, self.shape[1], self.dtype)
        return self._products(table, as_kernel_numbers(which, self.n_kernels))

    def _products(self, table: np.ndarray, which: list[int]) -> np.ndarray:
        raise NotImplementedError

    def diagonals(self) -> np.ndarray:
        """Return the diagonals, of shape ``(n_kernels, n_samples)``, in float64."""
        raise NotImplementedError

    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns of all factors side by side, and the kernel of each column."""
        raise NotImplementedError

    def take(self, rows: Index) -> Grams:
        """Return a copy of the matrices between some of the rows."""
        raise NotImplementedError

    def tail_sums(
        self, tail: int | Sequence[int], sample_weight: ArrayLike | None = None
    ) -> np.ndarray:
        """Return the tail sums of the kernels; see :func:`mixnorm.kernels.tail_sums`."""
        found = self._tail_sums(as_tails(tail), as_row_weights(sample_weight, self.n_samples))
        return np.asarray(found[0]) if np.ndim(tail) == 0 else found

    def _tail_sums(self, tails: list[int], weight: np.ndarray | None) -> np.ndarray:
        """Return the tail sums, of shape ``(len(tails), n_kernels)``."""
        raise NotImplementedError

    def rescale(self, scales: np.ndarray, evaluator: Evaluator) -> None:
        """Multiply the matrices by scales, in place; ``evaluator`` has the scaled kernels."""
        raise NotImplementedError


def as_weights(weights: ArrayLike, n_kernels: int, dtype: DTypeLike) -> np.ndarray:
    """Return the weights of a sum of kernels in ``dtype``, checked.

    A float64 vector beside float32 matrices would turn every one of them into float64.
    """
    vector = np.asarray(weights)
    if vector.shape != (n_kernels,):
        raise ValueError(
            f"weights has shape {vector.shape}, but there are {n_kernels} kernels; "
            "give one weight per kernel."
        )
    if vector.dtype.kind not in "fiub":
        raise TypeError(f"weights must be numbers, got dtype {vector.dtype}; give one per kernel.")
    if not np.all(np.isfinite(vector)):
        worst = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise ValueError(
            f"weights has {vector[worst]} for kernel {worst}; weights must be finite numbers."
        )
    return vector.astype(dtype)


def as_row_weights(weight: ArrayLike | None, n_rows: int) -> np.ndarray | None:
    """Return positive weights of rows in float64, checked; None if all are equal."""
    if weight is None:
        return None
    vector = np.asarray(weight, dtype=np.float64)
    if vector.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {vector.shape}, but there are {n_rows} rows; give one weight "
            "per row."
        )
    if not np.all(np.isfinite(vector) & (vector > 0.0)):
        worst = vector[~(np.isfinite(vector) & (vector > 0.0))][0]
        raise ValueError(
            f"sample_weight has {worst:g}; weights must be positive and finite. Leave rows out "
            "that do not count."
        )
    # Only ratios of weights matter, so equal ones are dropped: None spares a product with the roots
    # of the weights at every use of a matrix.
    return None if n_rows == 0 or np.all(vector == vector[0]) else vector


def as_table(A: ArrayLike, n_rows: int, dtype: DTypeLike) -> np.ndarray:
    """Return ``A`` as a table with one row per column of the matrices, in ``dtype``."""
    table = np.asarray(A, dtype=dtype)
    if table.ndim != 2 or len(table) != n_rows:
        raise ValueError(
            f"A has shape {table.shape}, but must have {n_rows} rows, one per column of the "
            "kernel matrices, and one column per output."
        )
    return table


def as_positions(index: Index, n: int, what: str) -> Positions:
    """Return an index of rows or columns as a slice or as whole numbers from 0 to ``n - 1``.

    Examples
    --------
    >>> as_positions(None, 4, "rows"), as_positions([True, False, True], 3, "rows")
    (slice(0, 4, 1), array([0, 2]))
    >>> as_positions([-1], 4, "rows")
    array([3])
    """
    if index is None:
        return slice(0, n, 1)
    if isinstance(index, slice):
        # A falling slice may end at -1, which as the end of a new slice would mean the last row. It
        # becomes positions instead.
        if (index.step or 1) > 0:
            return slice(*index.indices(n))
        return np.arange(n)[index]
    found = np.asarray(index)
    if found.ndim == 0:
        raise TypeError(
            f"{what} must be a slice, a list of positions or a mask, not {index!r}; "
            f"for a single one write [{index!r}]."
        )
    found = found.reshape(-1)  # numpy.ix_ makes arrays of two axes
    if found.dtype == bool:
        if len(found) != n:
            raise IndexError(
                f"{what} is a mask of length {len(found)}, but there are {n}; give one truth "
                "value for each."
            )
        return np.flatnonzero(found)
    # NumPy makes an empty list an array of floats, which cannot be an index.
    if len(found) == 0:
        return np.empty(0, dtype=np.intp)
    if found.dtype.kind not in "iu":
        raise TypeError(
            f"{what} must be whole numbers or truth values, got dtype {found.dtype}; convert "
            "them with astype."
        )
    found = found.astype(np.intp)
    if found.min() < -n or found.max() >= n:
        stray = found[(found < -n) | (found >= n)][0]
        raise IndexError(f"{what} has {stray}, but there are {n}; positions run from 0 to {n - 1}.")
    return np.where(found < 0, found + n, found)


def list_positions(index: Positions) -> np.ndarray:
    """Return an index made by :func:`as_positions` as an array."""
    if isinstance(index, slice):
        return np.arange(index.start, index.stop, index.step)
    return index


def as_kernel_numbers(which: Index, n_kernels: int) -> list[int]:
    """Return the numbers of some kernels, or of all, as a list."""
    found: list[int] = list_positions(as_positions(which, n_kernels, "which")).tolist()
    return found


def take_part(index: Positions, part: slice) -> Positions:
    """Return some places of an index made by :func:`as_positions`."""
    if not isinstance(index, slice):
        return index[part]
    chosen = range(index.start, index.stop, index.step)[part]
    return slice(chosen.start, chosen.stop, chosen.step)
