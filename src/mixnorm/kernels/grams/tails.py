"""Tail sums: the trace of a kernel less its largest eigenvalues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm._numbers import check_count
from mixnorm._threads import one_thread

if TYPE_CHECKING:
    from mixnorm.kernels.grams.stack import KernelStack

#: Multiplies the matrix by a table, in the dtype of the table.
Product = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class TailSettings:
    """How the largest eigenvalues are found, and how exactly.

    Attributes
    ----------
    dense_rows : int
        Up to this size all eigenvalues are computed. A Krylov space has a fixed cost for its small
        matrices, which pays only for more rows.
    spare_columns, most_products : int
        Columns beside the ``tail`` ones, and most products: up to (tail + 8) * 8 dimensions. The
        spare columns speed up the convergence of the last eigenvalue that is wanted.
    missing_of_tail, missing_of_trace : float
        The space is large enough if less than this part of the tail, or of the trace, is missing.
    even_lengths : float
        A block is made orthogonal once more if the lengths of its directions differ by a larger
        factor, because the directions of short ones are then mostly rounding.
    thin_tail : float
        Tails below this part of the trace show the rounding of float32.
    """

    dense_rows: int = 300
    spare_columns: int = 8
    most_products: int = 8
    missing_of_tail: float = 1e-3
    missing_of_trace: float = 1e-9
    even_lengths: float = 1e-2
    thin_tail: float = 1e-3


_TAILS = TailSettings()


def as_tails(tail: int | Sequence[int]) -> list[int]:
    """Return the numbers of eigenvalues to leave out, checked."""
    tails = [check_count("tail", number, 0) for number in np.atleast_1d(tail).tolist()]
    if not tails:
        raise ValueError("tail is an empty list; give at least one whole number.")
    return tails


def tails_of(
    product: Product,
    diagonal: np.ndarray,
    tails: Sequence[int],
    dtype: DTypeLike,
    weight: np.ndarray | None = None,
) -> np.ndarray:
    r"""Return the tail sums of one matrix, one for each number in ``tails`` (:eq:`tail-sum`).

    With weights :math:`w` of the rows, the eigenvalues are those of :math:`\sqrt{w_i} K_{ij}
    \sqrt{w_j}` over the mean weight: those of the matrix in which rows are repeated.
    """
    n = len(diagonal)
    if n == 0:
        return np.zeros(len(tails))
    if weight is not None:
        share = weight / np.mean(weight)
        # Rows i and j scaled by the roots of their weights have the eigenvalues of the matrix in
        # which they are repeated, apart from zeros, and the matrix stays symmetric.
        product = partial(_multiply_weighted, product, np.sqrt(share)[:, None])
        diagonal = share * diagonal
    # In double precision, because the tail is a difference of the trace and a sum nearly as large.
    trace = float(np.sum(diagonal, dtype=np.float64))
    wanted = max((tail for tail in tails if tail < n), default=0)
    largest = _largest_eigenvalues(product, trace, n, wanted, dtype) if wanted else np.empty(0)
    removed = np.concatenate([[0.0], np.cumsum(largest)])
    left = [0.0 if tail >= n else trace - float(removed[tail]) for tail in tails]
    # A tail is never negative; rounding may make that of a kernel of low rank slightly so.
    return np.maximum(left, 0.0) / n


def _multiply_weighted(product: Product, roots: np.ndarray, table: np.ndarray) -> np.ndarray:
    roots = roots.astype(table.dtype, copy=False)
    return roots * product(roots * table)


def _largest_eigenvalues(
    product: Product, trace: float, n: int, wanted: int, dtype: DTypeLike
) -> np.ndarray:
    """Return the largest eigenvalues, in decreasing order."""
    # The space may grow to ``most_products`` blocks. If that is half of all directions, the full
    # decomposition costs no more.
    if n <= _TAILS.dense_rows or 2 * _TAILS.most_products * (wanted + _TAILS.spare_columns) > n:
        dense = product(np.eye(n))
        with one_thread() if n <= _TAILS.dense_rows else nullcontext():
            return np.linalg.eigvalsh(0.5 * (dense + dense.T))[::-1][:wanted]
    basis, values, vectors = _build_krylov_space(product, trace, n, wanted, dtype)
    with one_thread():
        # A thin tail is what cancellation leaves of trace and sum, of which float32 knows 7 digits.
        if dtype == np.float64 or trace - np.sum(values[-wanted:]) > _TAILS.thin_tail * trace:
            return values[::-1][:wanted]
        # The error of an eigenvalue is the square of that of its vector, so that vectors in float32
        # are good enough for a product in float64.
        vectors = np.linalg.qr(basis @ vectors)[0]
    small = vectors.T @ product(vectors)
    return np.linalg.eigvalsh(0.5 * (small + small.T))[::-1]


def _build_krylov_space(
    product: Product, trace: float, n: int, wanted: int, dtype: DTypeLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the basis of a block Krylov space, and eigenvalues and vectors of the matrix in it.

    The eigenvalues are in increasing order, and the vectors are those of the largest. Power
    iteration keeps the last block alone; with all blocks, few products are enough also for narrow
    kernels, whose eigenvalues hardly differ.
    """
    block = _draw_start(n, wanted + _TAILS.spare_columns).astype(dtype)
    basis, small = block, np.empty((0, 0))
    for step in range(_TAILS.most_products):
        image = product(block)
        with one_thread():
            # The matrix within the space gains the new block's products with all directions. Its
            # own part is symmetric up to rounding, and made so; the part for the old directions is
            # used on both sides.
            seen = basis.T @ image
            old, new = np.split(seen.astype(np.float64), [len(small)])
            small = np.block([[small, old], [old.T, 0.5 * (new + new.T)]])
            rest = image - basis @ seen
            values, vectors = np.linalg.eigh(small)
            # The residual of a Ritz vector comes from its part in the last block alone: the images
            # of all earlier blocks lie in the space.
            vectors = vectors[:, -wanted:]
            missing = _estimate_missing(values, rest @ vectors[len(old) :].astype(dtype), wanted)
            tail = trace - float(np.sum(values[-wanted:]))
            if (
                missing <= max(_TAILS.missing_of_tail * tail, _TAILS.missing_of_trace * trace)
                or step == _TAILS.most_products - 1
            ):
                break
            block = _new_directions(rest, basis)
            basis = np.concatenate([basis, block], axis=1)
    return basis, values, vectors


def _estimate_missing(values: np.ndarray, residuals: np.ndarray, wanted: int) -> float:
    """Estimate by how much the largest eigenvalues in a space fall short of the true ones.

    The error of an eigenvalue is at most the length of its vector's residual, and about the square
    of that over the distance to the other eigenvalues, which are smaller than all those wanted.
    """
    squares = np.sum(np.square(residuals, dtype=np.float64), axis=0)
    # The guard avoids a division by zero; the minimum below then takes the length itself.
    apart = np.maximum(values[-wanted:] - values[-wanted - 1], 1e-300)
    return float(np.sum(np.minimum(np.sqrt(squares), squares / apart)))


@lru_cache(maxsize=1)
def _draw_start(n: int, columns: int) -> np.ndarray:
    """Return random orthonormal directions, the same for all matrices of a size."""
    return np.linalg.qr(np.random.default_rng(0).standard_normal((n, columns)))[0]


def _new_directions(rest: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the rest of a block, orthogonal to the old directions."""
    # Each projection is done twice; otherwise rounding errors in old directions would grow.
    found, triangle = np.linalg.qr(rest - basis @ (basis.T @ rest))
    lengths = np.abs(np.diagonal(triangle))
    if np.min(lengths) > _TAILS.even_lengths * np.max(lengths):
        return found
    return np.linalg.qr(found - basis @ (basis.T @ found))[0]


def tail_sums(
    K: MatrixLike | KernelStack,
    tail: int | Sequence[int],
    sample_weight: ArrayLike | None = None,
) -> np.ndarray:
    r"""Return the tail sums of kernel matrices, a measure of how rich their spaces are.

    The tail sum of a matrix is the mean of its diagonal without the share of the largest
    eigenvalues (:eq:`tail-sum`),

    .. math:: r_m = \frac1n \sum_{j > \zeta} \lambda_j(K_m)
                  = \frac1n \Bigl(\operatorname{tr} K_m - \sum_{j \le \zeta} \lambda_j(K_m)\Bigr)

    Eigenvalues are in decreasing order. The tail sum is small if a few directions explain the
    kernel, and large, up to the mean of its diagonal, if the kernel tells all samples apart.

    Parameters
    ----------
    K : array of shape (n, n) or (n_kernels, n, n), list of matrices, or KernelStack
        Symmetric positive semi-definite matrices.
    tail : int or list of int
        The number :math:`\zeta` of eigenvalues left out. With as many as rows, the sum is 0.
    sample_weight : array of shape (n,), optional
        Positive weights of the rows; a row of weight two counts as two rows.

    Returns
    -------
    array of shape (n_kernels,), or (len(tail), n_kernels) for a list
        In float64, and at least 0.

    Notes
    -----
    Up to 300 rows all eigenvalues are computed. Beyond, the largest come from a block Krylov space
    grown until they settle, 2 to 8 products of the matrix with ``tail + 8`` columns; sums agree
    with those of all eigenvalues to about 1e-3 of themselves or 1e-7 of the mean diagonal. The
    start is drawn with a fixed seed: the same matrix always has the same tail sums.

    References
    ----------
    J. Li, Y. Liu, R. Yin, H. Zhang, L. Ding, W. Wang, "Multi-class learning: from theory to
    algorithm", NeurIPS 2018.

    Examples
    --------
    >>> import numpy as np
    >>> K = np.diag([4.0, 2.0, 1.0, 1.0])
    >>> tail_sums(K, 1)
    array([1.])
    >>> tail_sums([K, 2 * K], [0, 2, 4])
    array([[2. , 4. ],
           [0.5, 1. ],
           [0. , 0. ]])
    """
    from mixnorm.kernels.grams.check import check_finite
    from mixnorm.kernels.grams.stack import KernelStack

    if isinstance(K, KernelStack):
        return K.tail_sums(tail, sample_weight)
    stack = KernelStack(K)
    for m, matrix in enumerate(stack.matrices):
        check_finite(matrix, m)
    return stack.tail_sums(tail, sample_weight)
