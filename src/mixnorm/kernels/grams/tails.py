"""Tail sums: what is left of the trace of a kernel without its largest eigenvalues."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import lru_cache, partial
from typing import Any

import numpy as np

from mixnorm._threads import one_thread

#: Multiplies the matrix by a table, in the dtype of the table.
Product = Callable[[np.ndarray], np.ndarray]

# Up to this size all eigenvalues are computed.
_SMALL = 300
# Columns beside those asked for, and products at most: a space of (tail + 8) * 8 dimensions.
_SPARE, _STEPS = 8, 8
# The last step is that after which less than this share of the tail, or of the trace, is missing.
_SHARE, _FLOOR = 1e-3, 1e-9
# Directions of a block whose lengths differ by less than this part need not be looked at again.
_APART = 1e-2
# Tails below this share of the trace are where rounding in float32 shows.
_THIN = 1e-3
_SEED = 0


def as_tails(tail: int | Sequence[int]) -> list[int]:
    """Return the numbers of eigenvalues to leave out, checked."""
    tails = []
    for number in np.atleast_1d(np.asarray(tail)).tolist():
        try:
            tails.append(operator.index(number))
        except TypeError:
            raise TypeError(
                f"tail must be a whole number or a list of them, got {number!r}; it is the number "
                "of eigenvalues to leave out."
            ) from None
        if tails[-1] < 0 or isinstance(number, bool):
            raise ValueError(f"tail={number!r} must be a whole number from 0 up, such as 8.")
    if not tails:
        raise ValueError("tail is an empty list; give at least one whole number.")
    return tails


def tails_of(
    product: Product,
    diagonal: Any,
    tails: Sequence[int],
    dtype: Any,
    weight: np.ndarray | None = None,
) -> np.ndarray:
    r"""Return the tail sums of one matrix, one for each number of eigenvalues left out.

    With weights :math:`w` of the rows, those of the matrix :math:`\sqrt{w_i} K_{ij} \sqrt{w_j}`
    over their sum: its eigenvalues are those of the matrix in which rows are repeated.
    """
    n = len(diagonal)
    if n == 0:
        return np.zeros(len(tails))
    if weight is not None:
        share = weight / np.mean(weight)
        product = partial(_between_roots, product, np.sqrt(share)[:, None])
        diagonal = share * diagonal
    trace = float(np.sum(diagonal, dtype=np.float64))
    wanted = max((tail for tail in tails if tail < n), default=0)
    largest = _largest(product, trace, n, wanted, dtype) if wanted else np.empty(0)
    removed = np.concatenate([[0.0], np.cumsum(largest)])
    left = [0.0 if tail >= n else trace - float(removed[tail]) for tail in tails]
    return np.maximum(left, 0.0) / n


def _between_roots(product: Product, roots: np.ndarray, table: np.ndarray) -> np.ndarray:
    roots = roots.astype(table.dtype, copy=False)
    return roots * product(roots * table)


def _largest(product: Product, trace: float, n: int, wanted: int, dtype: Any) -> np.ndarray:
    """Return the largest eigenvalues, in decreasing order."""
    if n <= _SMALL or 2 * _STEPS * (wanted + _SPARE) > n:
        dense = product(np.eye(n))
        with one_thread() if n <= _SMALL else nullcontext():
            return np.linalg.eigvalsh(0.5 * (dense + dense.T))[::-1][:wanted]
    basis, values, vectors = _krylov(product, trace, n, wanted, dtype)
    with one_thread():
        if dtype == np.float64 or trace - np.sum(values[-wanted:]) > _THIN * trace:
            return values[::-1][:wanted]
        # Eigenvalues err by the square of the error of their vectors, so that vectors found in
        # float32 are good enough for a product in float64.
        vectors = np.linalg.qr(basis @ vectors)[0]
    small = vectors.T @ product(vectors)
    return np.linalg.eigvalsh(0.5 * (small + small.T))[::-1]


def _krylov(
    product: Product, trace: float, n: int, wanted: int, dtype: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a block Krylov space: its basis, and what is seen of the matrix from there.

    That is its eigenvalues in increasing order, and the eigenvectors of the largest.

    Where plain power iteration keeps the last block, this keeps them all; for narrow kernels, whose
    eigenvalues hardly differ, that is what makes few products enough.
    """
    block = _start(n, wanted + _SPARE).astype(dtype)
    basis, small = block, np.empty((0, 0))
    for step in range(_STEPS):
        image = product(block)
        with one_thread():
            seen = basis.T @ image
            old, new = np.split(seen.astype(np.float64), [len(small)])
            small = np.block([[small, old], [old.T, 0.5 * (new + new.T)]])
            rest = image - basis @ seen
            values, vectors = np.linalg.eigh(small)
            vectors = vectors[:, -wanted:]
            missing = _missing(values, rest @ vectors[len(old) :].astype(dtype), wanted)
            tail = trace - float(np.sum(values[-wanted:]))
            if missing <= max(_SHARE * tail, _FLOOR * trace) or step == _STEPS - 1:
                break
            block = _new_directions(rest, basis)
            basis = np.concatenate([basis, block], axis=1)
    return basis, values, vectors


def _missing(values: np.ndarray, residuals: np.ndarray, wanted: int) -> float:
    """Return about how much the largest eigenvalues, as seen from a space, are short of the true.

    An eigenvalue errs by at most the length of its vector's residual, and by about the square of
    that over the distance to the eigenvalues that the residual mixes in, which are smaller than
    all those wanted.
    """
    squares = np.sum(np.square(residuals, dtype=np.float64), axis=0)
    apart = np.maximum(values[-wanted:] - values[-wanted - 1], 1e-300)
    return float(np.sum(np.minimum(np.sqrt(squares), squares / apart)))


@lru_cache(maxsize=1)
def _start(n: int, columns: int) -> np.ndarray:
    """Return directions drawn at random, the same ones for all matrices of a size."""
    return np.linalg.qr(np.random.default_rng(_SEED).standard_normal((n, columns)))[0]


def _new_directions(rest: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of what is left of a block, orthogonal to the old directions."""
    # Twice each, or what rounding left of the old directions would grow.
    found, triangle = np.linalg.qr(rest - basis @ (basis.T @ rest))
    lengths = np.abs(np.diagonal(triangle))
    if np.min(lengths) > _APART * np.max(lengths):
        return found
    return np.linalg.qr(found - basis @ (basis.T @ found))[0]


def tail_sums(K: Any, tail: int | Sequence[int], sample_weight: Any = None) -> np.ndarray:
    r"""Return the tail sums of kernel matrices, a measure of how rich their spaces are.

    .. math:: r_m = \frac1n \sum_{j > \zeta} \lambda_j(K_m)
                  = \frac1n \Bigl(\operatorname{tr} K_m - \sum_{j \le \zeta} \lambda_j(K_m)\Bigr)

    Eigenvalues are in decreasing order. A kernel that a few directions explain has a small tail
    sum, one that tells all samples apart a large one, up to the mean of its diagonal.

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
    start is drawn with a fixed seed: the same matrix has the same tail sums always.

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
