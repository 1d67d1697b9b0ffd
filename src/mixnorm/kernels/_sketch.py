"""Stand-ins of low rank for many kernels, to find out quickly which of them are large."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from mixnorm.kernels._sides import Evaluator, Side
from mixnorm.kernels._threads import one_thread

# Rows that landmarks are chosen from, for each landmark.
_CANDIDATES = 3
# Landmarks end where what they leave is below this share of the trace.
_ENOUGH = 1e-6


@dataclass(frozen=True)
class _Share:
    """What kernels of one metric on the same columns share.

    Attributes
    ----------
    members : array of int
        The kernels.
    basis : array of shape (n_samples, rank)
        Functions of the rows, orthonormal under the weights of the samples.
    mixes : array of shape (len(members), rank, rank)
        Each kernel is about ``basis @ mix @ basis.T``.
    """

    members: np.ndarray
    basis: np.ndarray
    mixes: np.ndarray


class Sketch:
    r"""Low-rank stand-ins of kernels, :math:`K_m \approx Q M_m Q^\top`.

    Kernels of one metric on the same columns share the basis :math:`Q`: the span of their sum at a
    few landmarks. A kernel is known by its values between the landmarks, interpolated to all rows.

    Parameters
    ----------
    shares : list
        What kernels share.
    n_kernels : int
        Number of kernels.
    """

    def __init__(self, shares: Sequence[_Share], n_kernels: int) -> None:
        self._shares = list(shares)
        self.n_kernels = n_kernels

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the stand-ins take."""
        return sum(share.basis.nbytes + share.mixes.nbytes for share in self._shares)

    @property
    def rank(self) -> int:
        """The largest number of landmarks of any kernel."""
        return max(int(share.basis.shape[1]) for share in self._shares)

    def norms(self, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r"""Return two norms of the gradient of every kernel, about.

        :math:`\sqrt{\mathrm{tr}\, G^\top K_m G}`, and the root mean square of :math:`K_m G` under
        the weights of the samples.
        """
        functional, empirical = np.zeros((2, self.n_kernels))
        turned = None
        for share in self._shares:
            if turned is None:
                turned = np.ascontiguousarray(G.T, dtype=share.basis.dtype)
            Z = np.ascontiguousarray((turned @ share.basis).T)
            Y = share.mixes @ Z
            functional[share.members] = np.einsum("mrk,rk->m", Y, Z)
            empirical[share.members] = np.einsum("mrk,mrk->m", Y, Y)
        return np.sqrt(np.maximum(functional, 0.0)), np.sqrt(empirical)


def sketch_of(
    evaluator: Evaluator,
    side: Side,
    weight: np.ndarray,
    rank: int,
    generator: np.random.Generator,
) -> Sketch:
    """Return stand-ins of the kernels of an evaluator on training rows.

    Parameters
    ----------
    evaluator : Evaluator
        The kernels.
    side : Side
        The training rows.
    weight : array of shape (n_samples,)
        Positive weights of the samples, which sum to one.
    rank : int
        Most landmarks of a kernel.
    generator : numpy.random.Generator
        Draws the rows that landmarks are chosen from.
    """
    n = side.n_rows
    rank = min(rank, n)
    some = np.sort(generator.choice(n, min(n, _CANDIDATES * rank), replace=False))
    plan = evaluator.plan(range(len(evaluator.kernels)))
    with one_thread():
        shares = [
            _share(evaluator, side.only([group], members), np.asarray(members), weight, rank, some)
            for members, group in _bundles(plan)
        ]
    return Sketch(shares, len(evaluator.kernels))


def _bundles(plan: dict[tuple[int, str | None], list[int]]) -> Iterator[tuple[list[int], int]]:
    """Yield kernels that can share a basis, and their group of columns."""
    for (group, metric), members in plan.items():
        if metric is None:  # functions have nothing in common
            yield from (([m], group) for m in members)
        else:
            yield members, group


def _share(
    evaluator: Evaluator,
    side: Side,
    members: np.ndarray,
    weight: np.ndarray,
    rank: int,
    some: np.ndarray,
) -> _Share:
    """Return the common basis of some kernels, and what they are in it."""
    between = _matrices(evaluator, side.part(some), members)
    sizes = np.einsum("mii->m", between) / len(some)
    scales = 1.0 / np.where(sizes > 0.0, sizes, 1.0)
    factor, pivots = _pivoted(np.einsum("m,mij->ij", scales, between), rank)
    landmarks, inner = some[pivots], between[:, pivots][:, :, pivots]
    columns = np.zeros((side.n_rows, len(pivots)))
    right = side.part(landmarks)
    for rows, m, block in evaluator.blocks(side, right, members):
        columns[rows] += scales[np.searchsorted(members, m)] * block
    # Columns of the sum at the landmarks, made into features, and these orthonormal.
    features = linalg.solve_triangular(factor, columns.T, lower=True, check_finite=False).T
    features *= np.sqrt(weight)[:, None]
    basis, R = np.linalg.qr(features)
    basis /= np.sqrt(weight)[:, None]
    turn = linalg.solve_triangular(factor, R.T, lower=True, trans="T", check_finite=False).T
    dtype = evaluator.dtype
    return _Share(
        members,
        np.ascontiguousarray(basis, dtype=dtype),
        np.ascontiguousarray(turn @ inner @ turn.T, dtype=dtype),
    )


def _matrices(evaluator: Evaluator, side: Side, members: np.ndarray) -> np.ndarray:
    """Return the kernels between all rows of a side, in float64."""
    found = np.empty((len(members), side.n_rows, side.n_rows))
    for rows, m, block in evaluator.blocks(side, side, members):
        found[np.searchsorted(members, m), rows] = block
    return found


def _pivoted(K: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the triangular factor of some rows of a matrix, and these: the largest left first."""
    trace = float(np.trace(K))
    tolerance = _ENOUGH * trace / max(1, len(K))
    factor, pivots, found, _ = linalg.lapack.dpstrf(K, tol=max(tolerance, 1e-300), lower=1)
    found = max(1, min(int(found), rank))
    corner = np.tril(factor[:found, :found])
    if not corner[0, 0] > 0.0:  # all is zero
        return np.ones((1, 1)), pivots[:1] - 1
    return corner, pivots[:found] - 1


def exact_factor(K: np.ndarray, enough: float = 1e-14) -> np.ndarray:
    """Return ``F`` with ``F @ F.T`` equal to a Gram matrix in float64, but for rounding.

    It has as many columns as the matrix has directions above ``enough`` of its largest entry.

    Examples
    --------
    >>> import numpy as np
    >>> exact_factor(np.ones((3, 3))).shape
    (3, 1)
    """
    largest = float(np.max(np.diagonal(K), initial=0.0))
    if not largest > 0.0:
        return np.zeros((len(K), 1))
    factor, pivots, found, _ = linalg.lapack.dpstrf(K, tol=enough * largest * len(K), lower=1)
    rows = np.empty((len(K), int(found)))
    rows[pivots - 1] = np.tril(factor)[:, : int(found)]
    return rows
