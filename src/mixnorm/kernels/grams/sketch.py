"""Low-rank stand-ins for many kernels, by which the largest gradients are found quickly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from mixnorm._distinct import draw_rows, find_distinct_rows
from mixnorm._threads import one_thread
from mixnorm.kernels.functions.evaluate import Evaluator, Side
from mixnorm.kernels.functions.kernels import WidthKernel
from mixnorm.kernels.functions.metrics import Rows

# Metrics whose kernels fall with the distance.
_FALLING = ("chi2", "cityblock", "sqeuclidean")
# Entries of a kernel below this part of the largest are set to zero.
_LEAST_ENTRY = 1e-30


@dataclass(frozen=True)
class LandmarkSettings:
    """How landmarks are chosen: more of them make a scan more exact, and slower.

    Attributes
    ----------
    candidates : int
        Rows that are drawn as candidates, for each landmark.
    remainder : float
        No more landmarks are chosen once the remainder is below this part of the largest diagonal
        entry. Estimates of gradients need no more, as the leading kernels are scored exactly.
    excess : float
        Landmarks are chosen again if the remainder of some row exceeds that by this factor.
    choices : int
        The most choices, the first included.
    sample_rows : int
        Rows that show how fast kernels fall with the distance.
    """

    candidates: int = 2
    remainder: float = 1e-5
    excess: float = 10.0
    choices: int = 3
    sample_rows: int = 16


_LANDMARKS = LandmarkSettings()


@dataclass(frozen=True)
class _Share:
    """The common basis of kernels of one metric on the same columns.

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
    r"""Low-rank stand-ins of kernels, :math:`K_m \approx Q M_m Q^\top` (:eq:`stand-in`).

    Kernels of one metric on the same columns share the basis :math:`Q`, the span of their sum at a
    few landmarks. The values of a kernel between the landmarks are interpolated to all rows.

    Parameters
    ----------
    shares : list
        The bases, with the kernels in them.
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
        r"""Return estimates of two norms of the gradient of every kernel (:eq:`stand-in-norms`).

        :math:`\sqrt{\mathrm{tr}\, G^\top K_m G}`, and the root mean square of :math:`K_m G` under
        the weights of the samples.
        """
        functional, empirical = np.zeros((2, self.n_kernels))
        # With Z = Q' G, and Q orthonormal under the weights, the two norms are those of
        # :eq:`stand-in-norms`: the root of <Z, M Z> and the length of M Z.
        transposed = np.ascontiguousarray(G.T, dtype=self._shares[0].basis.dtype)
        for share in self._shares:
            Z = np.ascontiguousarray((transposed @ share.basis).T)
            Y = share.mixes @ Z
            functional[share.members] = np.einsum("mrk,rk->m", Y, Z)
            empirical[share.members] = np.einsum("mrk,mrk->m", Y, Y)
        # M is positive semi-definite only up to rounding, so that a norm near zero may come out
        # negative.
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
    # A second copy of a landmark has no remainder, and its row would make the factor singular.
    # Copies are merged, and their weights added.
    first, which = find_distinct_rows([points.X for points in side.points.values()])
    side, weight = side.part(first), np.bincount(which, weights=weight)
    rank = min(rank, len(first))
    some = draw_rows(weight, min(len(first), _LANDMARKS.candidates * rank), generator)
    shares = []
    with one_thread():
        for (group, metric), members in evaluator.plan(range(len(evaluator.kernels))).items():
            # Functions that are not of a metric have nothing in common.
            for own in ([m] for m in members) if metric is None else (members,):
                part, numbers = side.restrict([group], own), np.asarray(own)
                share = _build_share(evaluator, part, group, numbers, weight, rank, some, which)
                shares.append(share)
    return Sketch(shares, len(evaluator.kernels))


def _build_share(
    evaluator: Evaluator,
    side: Side,
    group: int,
    members: np.ndarray,
    weight: np.ndarray,
    rank: int,
    some: np.ndarray,
    which: np.ndarray,
) -> _Share:
    """Return the common basis of some kernels and their matrices (:eq:`interpolated-kernel`).

    The rows of ``side`` are distinct. Training row ``i`` equals row ``which[i]`` of these, and
    ``some`` are the candidates for landmarks.
    """
    some = _add_spread(side.points[group].X, some)
    leading = _spanning_kernels(
        evaluator, side.part(some[:: max(1, len(some) // _LANDMARKS.sample_rows)]), members
    )
    diagonals = evaluator.diagonals(side, leading)
    sizes = np.mean(diagonals, axis=1)
    # Without this, the kernel with the largest values would choose all landmarks.
    scales = 1.0 / np.where(sizes > 0.0, sizes, 1.0)
    diagonal = scales @ diagonals
    for attempt in range(_LANDMARKS.choices):
        between = _compute_matrices(evaluator, side.part(some), leading)
        factor, pivots = _choose_landmarks(np.einsum("m,mij->ij", scales, between), rank)
        landmarks = some[pivots]
        features = _compute_features(evaluator, side, leading, scales, landmarks, factor)
        # What is left is the squared distance of each row from the span of the landmarks; the sum
        # of the leading kernels has a mean diagonal of len(leading).
        left = diagonal - np.einsum("ij,ij->i", features, features)
        enough = float(np.max(left)) <= _LANDMARKS.excess * _LANDMARKS.remainder * len(leading)
        if enough or len(pivots) == rank or attempt + 1 == _LANDMARKS.choices:
            break
        # Rows far from all landmarks are candidates of the next choice.
        further = np.argpartition(-left, min(rank, len(left) - 1))[:rank]
        some = np.union1d(landmarks, further)
    root = np.sqrt(weight)[:, None]
    basis, R = _orthonormal(features * root)
    # R C^-1 of :eq:`interpolated-kernel`, by a triangular system with C instead of an inverse.
    turn = linalg.solve_triangular(factor, R.T, lower=True, trans="T", check_finite=False).T
    inner = _compute_matrices(evaluator, side.part(landmarks), members)
    dtype = evaluator.dtype
    return _Share(
        members,
        # Dividing by the roots of the weights makes the basis orthonormal under them, and ``which``
        # repeats the rows that were merged.
        np.ascontiguousarray(basis / root, dtype=dtype)[which],
        np.ascontiguousarray(turn @ inner @ turn.T, dtype=dtype),
    )


def _add_spread(X: Rows, some: np.ndarray) -> np.ndarray:
    """Return candidates for landmarks; a single column adds values over its whole range."""
    if not isinstance(X, np.ndarray) or X.shape[1] != 1 or X.dtype.kind != "f":
        return some
    # Random rows of a skewed column seldom reach its ends, and a function is interpolated worst
    # beyond the outermost landmarks.
    values = X[:, 0]
    order = np.argsort(values, kind="stable")
    grid = np.linspace(float(values[order[0]]), float(values[order[-1]]), len(some) // 2 + 1)
    near = order[np.minimum(np.searchsorted(values, grid, sorter=order), len(order) - 1)]
    return np.union1d(some[::3], near)


def _spanning_kernels(evaluator: Evaluator, side: Side, members: np.ndarray) -> np.ndarray:
    """Return the kernels whose span is taken for the span of all.

    The spans of kernels that fall with a distance are nested, so the widest and the narrowest are
    enough. Of other kernels all are needed.
    """
    kernels = [evaluator.kernels[m] for m in members]
    if kernels[0].metric not in _FALLING or len(members) <= 2:
        return members
    widths = [float(kernel.tau) for kernel in kernels if isinstance(kernel, WidthKernel)]
    if len({type(kernel) for kernel in kernels}) == 1 and widths:
        return members[sorted({int(np.argmin(widths)), int(np.argmax(widths))})]
    sums = [float(np.sum(matrix)) for matrix in _compute_matrices(evaluator, side, members)]
    ends = {int(np.argmin(sums)), int(np.argmax(sums))}
    return members[sorted(ends)]


def _orthonormal(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return orthonormal columns of the same span, and the triangular factor between the two.

    The Cholesky factor of their products is exact enough here, and four times as fast as QR.
    """
    try:
        # Squaring loses half of the digits. The features come from pivots above 1e-5 of the
        # largest, so that enough are left; if not, Cholesky's method fails and QR takes over.
        R = linalg.cholesky(columns.T @ columns, check_finite=False)
    except linalg.LinAlgError:
        return np.linalg.qr(columns)
    found = linalg.solve_triangular(R, columns.T, trans="T", check_finite=False).T
    return np.asarray(found), R


def _compute_features(
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


def _compute_matrices(evaluator: Evaluator, side: Side, members: np.ndarray) -> np.ndarray:
    """Return the kernels between all rows of a side, in float64."""
    found = np.empty((len(members), side.n_rows, side.n_rows))
    for rows, m, block in evaluator.blocks(side, side, members):
        found[np.searchsorted(members, m), rows] = block
    return found


def _choose_landmarks(K: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the triangular factor of a matrix on some of its rows, and these rows.

    Always the row with the largest remainder comes next.
    """
    tolerance = _LANDMARKS.remainder * float(np.max(np.diagonal(K)))
    # LAPACK stops where no remainder is above ``tol``, also for a matrix of zeros if it is
    # positive. It counts pivots from one.
    factor, pivots, found, _ = linalg.lapack.dpstrf(K, tol=max(tolerance, 1e-300), lower=1)
    found = max(1, min(int(found), rank))
    corner = np.tril(factor[:found, :found])
    if not corner[0, 0] > 0.0:  # all is zero
        return np.ones((1, 1)), pivots[:1] - 1
    return corner, pivots[:found] - 1


def exact_factor(K: np.ndarray, enough: float = 1e-14) -> np.ndarray:
    """Return ``F`` with ``F @ F.T`` equal to a Gram matrix in float64, up to rounding.

    It has one column for each direction of the matrix above ``enough`` times its largest entry.

    Examples
    --------
    >>> import numpy as np
    >>> exact_factor(np.ones((3, 3))).shape
    (3, 1)
    """
    return pivoted_factor(K, enough)[0]


def pivoted_factor(K: np.ndarray, enough: float = 1e-14) -> tuple[np.ndarray, np.ndarray]:
    """Return the factor of :func:`exact_factor`, and the rows in which it is triangular.

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
    # Products of tiny entries would be subnormal numbers, which are slow.
    K = np.where(np.abs(K) > _LEAST_ENTRY * largest, K, 0.0)
    # Each of n elimination steps may leave a rounding error, so the tolerance grows with n.
    factor, pivots, found, _ = linalg.lapack.dpstrf(K, tol=enough * largest * len(K), lower=1)
    rows = np.empty((len(K), int(found)))
    # The factor is that of the permuted matrix, so its rows go back to where they came from.
    rows[pivots - 1] = np.tril(factor)[:, : int(found)]
    return rows, np.asarray(pivots[: int(found)] - 1, dtype=np.intp)
