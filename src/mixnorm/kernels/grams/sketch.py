"""Stand-ins of low rank for many kernels, to find out quickly which of them are large."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mixnorm._array import is_sparse
from mixnorm._distinct import draw_rows, find_distinct_rows
from mixnorm._threads import one_thread
from mixnorm.kernels.functions.evaluate import Evaluator, Side
from mixnorm.kernels.functions.kernels import WidthKernel

# Rows that landmarks are chosen from, for each landmark.
_CANDIDATES = 2
# Landmarks end where what they leave is below this share of the trace.
_ENOUGH = 1e-5
# Landmarks are chosen anew where a row is left with so much more, so many times.
_FAR = 10.0
_ATTEMPTS = 3
# Metrics whose kernels fall with the distance, and rows to see how fast.
_FALLING = ("chi2", "cityblock", "sqeuclidean")
_FEW = 16
# Entries of a kernel below this are zero, beside its largest.
_NOTHING = 1e-30


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
    first, which = find_distinct_rows([points.X for points in side.points.values()])
    side, weight = side.part(first), np.bincount(which, weights=weight)
    rank = min(rank, len(first))
    some = draw_rows(weight, min(len(first), _CANDIDATES * rank), generator)
    plan = evaluator.plan(range(len(evaluator.kernels)))
    with one_thread():
        shares = [
            _share(
                evaluator,
                side.only([group], members),
                group,
                np.asarray(members),
                weight,
                rank,
                some,
                which,
            )
            for members, group in _groups(plan)
        ]
    return Sketch(shares, len(evaluator.kernels))


def _groups(
    plan: dict[tuple[int, str | None], list[int]],
) -> Iterator[tuple[list[int], int]]:
    """Yield kernels that can share a basis, and their group of columns."""
    for (group, metric), members in plan.items():
        if metric is None:  # functions have nothing in common
            yield from (([m], group) for m in members)
        else:
            yield members, group


def _share(
    evaluator: Evaluator,
    side: Side,
    group: int,
    members: np.ndarray,
    weight: np.ndarray,
    rank: int,
    some: np.ndarray,
    which: np.ndarray,
) -> _Share:
    """Return the common basis of some kernels, and what they are in it.

    The rows of ``side`` are distinct, and ``which`` of them every row equals.
    """
    some = _with_spread(side.points[group].X, some)
    leading = _spanning_kernels(evaluator, side.part(some[:: max(1, len(some) // _FEW)]), members)
    diagonals = evaluator.diagonals(side, leading)
    sizes = np.mean(diagonals, axis=1)
    scales = 1.0 / np.where(sizes > 0.0, sizes, 1.0)
    diagonal = scales @ diagonals
    for attempt in range(_ATTEMPTS):
        between = _matrices(evaluator, side.part(some), leading)
        factor, pivots = _pivoted_cholesky(np.einsum("m,mij->ij", scales, between), rank)
        landmarks = some[pivots]
        features = _features(evaluator, side, leading, scales, landmarks, factor)
        left = diagonal - np.einsum("ij,ij->i", features, features)
        enough = float(np.max(left)) <= _FAR * _ENOUGH * len(leading)
        if enough or len(pivots) == rank or attempt + 1 == _ATTEMPTS:
            break
        # Rows far from all landmarks may be among the next.
        further = np.argpartition(-left, min(rank, len(left) - 1))[:rank]
        some = np.union1d(landmarks, further)
    root = np.sqrt(weight)[:, None]
    basis, R = _orthonormal(features * root)
    turn = linalg.solve_triangular(factor, R.T, lower=True, trans="T", check_finite=False).T
    inner = _matrices(evaluator, side.part(landmarks), members)
    dtype = evaluator.dtype
    return _Share(
        members,
        np.ascontiguousarray(basis / root, dtype=dtype)[which],
        np.ascontiguousarray(turn @ inner @ turn.T, dtype=dtype),
    )


def _with_spread(X: Any, some: np.ndarray) -> np.ndarray:
    """Return candidates for landmarks; of one column, values from end to end are among them."""
    if is_sparse(X) or X.shape[1] != 1 or X.dtype.kind != "f":
        return some
    values = X[:, 0]
    order = np.argsort(values, kind="stable")
    grid = np.linspace(float(values[order[0]]), float(values[order[-1]]), len(some) // 2 + 1)
    near = order[np.minimum(np.searchsorted(values, grid, sorter=order), len(order) - 1)]
    return np.union1d(some[::3], near)


def _spanning_kernels(evaluator: Evaluator, side: Side, members: np.ndarray) -> np.ndarray:
    """Return the kernels whose span stands for that of all.

    Kernels that fall with a distance are contained in each other, from the widest to the narrowest;
    the latter has the smallest values. Of others, all.
    """
    kernels = [evaluator.kernels[m] for m in members]
    if kernels[0].metric not in _FALLING or len(members) <= 2:
        return members
    widths = [float(kernel.tau) for kernel in kernels if isinstance(kernel, WidthKernel)]
    if len({type(kernel) for kernel in kernels}) == 1 and widths:
        return members[sorted({int(np.argmin(widths)), int(np.argmax(widths))})]
    sums = [float(np.sum(matrix)) for matrix in _matrices(evaluator, side, members)]
    ends = {int(np.argmin(sums)), int(np.argmax(sums))}
    return members[sorted(ends)]


def _orthonormal(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return orthonormal columns of the same span, and what turns them back.

    By the factor of their products, which for stand-ins is exact enough and four times as quick.
    """
    try:
        R = linalg.cholesky(columns.T @ columns, check_finite=False)
    except linalg.LinAlgError:
        return np.linalg.qr(columns)
    found = linalg.solve_triangular(R, columns.T, trans="T", check_finite=False).T
    return np.asarray(found), R


def _features(
    evaluator: Evaluator,
    side: Side,
    members: np.ndarray,
    scales: np.ndarray,
    landmarks: np.ndarray,
    factor: np.ndarray,
) -> np.ndarray:
    """Return features of all rows, whose products are the sum of the kernels at the landmarks."""
    columns = np.zeros((side.n_rows, len(landmarks)))
    for rows, m, block in evaluator.blocks(side, side.part(landmarks), members):
        columns[rows] += scales[np.searchsorted(members, m)] * block
    return np.asarray(linalg.solve_triangular(factor, columns.T, lower=True, check_finite=False).T)


def _matrices(evaluator: Evaluator, side: Side, members: np.ndarray) -> np.ndarray:
    """Return the kernels between all rows of a side, in float64."""
    found = np.empty((len(members), side.n_rows, side.n_rows))
    for rows, m, block in evaluator.blocks(side, side, members):
        found[np.searchsorted(members, m), rows] = block
    return found


def _pivoted_cholesky(K: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the triangular factor of some rows of a matrix, and these: the largest left first."""
    tolerance = _ENOUGH * float(np.max(np.diagonal(K)))
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
    return pivoted_factor(K, enough)[0]


def pivoted_factor(K: np.ndarray, enough: float = 1e-14) -> tuple[np.ndarray, np.ndarray]:
    """Return the factor of :func:`exact_factor`, and the rows at which it is triangular.

    Examples
    --------
    >>> import numpy as np
    >>> factor, pivots = pivoted_factor(np.diag([1.0, 4.0]))
    >>> factor[pivots]
    array([[2., 0.],
           [0., 1.]])
    """
    largest = float(np.max(np.diagonal(K), initial=0.0))
    if not largest > 0.0:
        return np.zeros((len(K), 1)), np.zeros(1, dtype=np.intp)
    # Products of what is next to nothing would be too small for the usual format of a float.
    K = np.where(np.abs(K) > _NOTHING * largest, K, 0.0)
    factor, pivots, found, _ = linalg.lapack.dpstrf(K, tol=enough * largest * len(K), lower=1)
    rows = np.empty((len(K), int(found)))
    rows[pivots - 1] = np.tril(factor)[:, : int(found)]
    return rows, np.asarray(pivots[: int(found)] - 1, dtype=np.intp)
