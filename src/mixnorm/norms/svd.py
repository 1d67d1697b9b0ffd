"""The largest singular values of a matrix, and no more than are needed.

Up to 128 rows or columns everything comes from the Gram matrix of the smaller side, or from a thin
singular value decomposition where squares would lose digits. For larger matrices, Rayleigh–Ritz
steps in block Krylov spaces find the leading triplets. They are restarted from the triplets found
so far until residuals are small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mixnorm._array import Array, device_of, epsilon, namespace


@dataclass(frozen=True)
class TripletSettings:
    """Sizes that decide between dense decompositions and Krylov spaces, and those of the spaces.

    Attributes
    ----------
    gram_side, gram_side_for_one : int
        Sides up to which the Gram matrix is decomposed: for all triplets, and for the largest
        value, whose eigenvectors are not needed.
    first_block, spare_columns : int
        Columns of the first Krylov block, and columns beside those of a start. The spare ones are
        random: a triplet that the start does not know can be found.
    depth_for_one : int
        Products of a Krylov space for a single triplet.
    restarts : int
        A guard against matrices whose largest values nearly agree; few restarts are enough
        otherwise.
    krylov_share : float
        Share of the triplets beyond which a dense decomposition costs no more.
    """

    gram_side: int = 128
    gram_side_for_one: int = 1000
    first_block: int = 8
    spare_columns: int = 4
    depth_for_one: int = 10
    restarts: int = 60
    krylov_share: float = 0.2


_TRIPLETS = TripletSettings()


class Triplets(NamedTuple):
    """Singular triplets, largest first: ``left @ diag(values) @ right.T`` is the matrix."""

    left: Any
    values: Any
    right: Any

    def transpose(self) -> Triplets:
        """Return the triplets of the transposed matrix."""
        return Triplets(self.right, self.values, self.left)


def allowed_error(A: Array) -> float:
    """Return the allowed relative error: 1e-10, in single precision 1e-5."""
    return 1e-10 if epsilon(A) < 1e-10 else 1e-5


def svd(A: Array) -> Triplets:
    """Return all triplets, by a thin singular value decomposition."""
    left, values, right = namespace(A).linalg.svd(A, full_matrices=False)
    return Triplets(left, values, right.T)


def find_largest_value(A: Array) -> float:
    """Return the largest singular value, or a little more, within the allowed error."""
    if min(A.shape) > _TRIPLETS.gram_side_for_one:
        found, error = _find_largest_triplet(A if A.shape[0] >= A.shape[1] else A.T)
        return float(found.values[0]) + max(error, allowed_error(A) * float(found.values[0]))
    # Squares cost small singular values half of their digits, but not the largest one.
    gram = A.T @ A if A.shape[0] >= A.shape[1] else A @ A.T
    return math.sqrt(max(float(namespace(A).linalg.eigvalsh(gram)[-1]), 0.0))


def find_leading_triplet(A: Array) -> Triplets:
    """Return the triplet of the largest singular value."""
    if A.shape[0] < A.shape[1]:
        return find_leading_triplet(A.T).transpose()
    if A.shape[1] > _TRIPLETS.gram_side:
        return _find_largest_triplet(A)[0]
    xp = namespace(A)
    right = xp.linalg.eigh(A.T @ A)[1][:, -1:]
    return _complete_triplets(A, right)


def find_triplets_above(A: Array, level: float, start: Array | None = None) -> Triplets:
    """Return the triplets of singular values above ``level``.

    ``start`` are guesses of singular vectors of the smaller side, one per column.
    """
    if A.shape[0] < A.shape[1]:
        return find_triplets_above(A.T, level, start).transpose()
    found = _find_by_krylov(A, level, start) if A.shape[1] > _TRIPLETS.gram_side else None
    if found is None:
        found = _find_dense(A, level)
    return _take_leading(found, _count_above(found.values, level))


def _count_above(values: Array, level: float) -> int:
    """Return how many values are above ``level``."""
    xp = namespace(values)
    return int(xp.sum(xp.astype(values > level, xp.int64)))


def _take_leading(found: Triplets, count: int) -> Triplets:
    """Return the leading triplets."""
    return Triplets(found.left[:, :count], found.values[:count], found.right[:, :count])


def find_ball_triplets(A: Array, radius: float) -> Triplets:
    """Return triplets, among them all that the projection on a ball of the trace norm keeps.

    The projection (:eq:`common-cut` for the singular values) takes the same amount from every
    singular value that stays, at least the amount that the leading values alone would need.
    Estimates of these are never too large.
    """
    if A.shape[0] < A.shape[1]:
        return find_ball_triplets(A.T, radius).transpose()
    if A.shape[1] > _TRIPLETS.gram_side:
        xp = namespace(A)
        # If the j leading values alone had to lose the excess, each would lose (sum - radius) / j.
        # The true amount is the largest of these, and at least that of any estimates from below.
        sums = xp.cumulative_sum(
            _ritz_step(A, _start_block(A, None, _TRIPLETS.first_block), depth=2).values
        )
        counts = xp.arange(1, sums.shape[0] + 1, dtype=A.dtype, device=device_of(A))
        least = float(xp.max((sums - radius) / counts))
        found = _find_by_krylov(A, least, None) if least > 1e-6 * radius else None
        if found is not None:
            return _take_leading(found, _count_above(found.values, least))
    return svd(A)


def _find_dense(A: Array, level: float) -> Triplets:
    """Return triplets, among them all above ``level``, from the Gram matrix of the columns.

    The left vectors are orthogonal to about eps times the squared ratio of the largest singular
    value to ``level``; where that is not enough, a singular value decomposition is made.
    """
    xp = namespace(A)
    squares, right = xp.linalg.eigh(A.T @ A)
    largest = float(squares[-1])
    # Squaring the matrix loses the digits of values below sqrt(eps) of the largest. The left
    # vectors are A v / s, so that an error of eps * largest^2 in the square becomes that much over
    # s^2 in them.
    if not level * level * allowed_error(A) >= epsilon(A) * largest:
        return svd(A)
    count = _count_above(squares, level * level)
    right = xp.flip(right[:, right.shape[1] - count :], axis=1)
    return _complete_triplets(A, right)


def _complete_triplets(A: Array, right: Array) -> Triplets:
    """Return triplets with these right vectors."""
    left = A @ right
    values = _column_norms(left)
    return Triplets(left / values, values, right)


def _find_by_krylov(A: Array, level: float, start: Array | None) -> Triplets | None:
    """Return leading triplets of a tall matrix; None where a dense decomposition is better.

    The triplets are exact for ``A - U R^T``, where ``R`` are their residuals, and a prox is
    nonexpansive. The error of the prox is therefore at most the norm of the residuals of the
    triplets above ``level``, if none is missing (:eq:`triplet-error`). Random columns in the first
    block, and one value below ``level`` whose residual leaves no room for another, ensure that.
    """
    xp = namespace(A)
    width = _TRIPLETS.first_block if start is None else start.shape[1] + _TRIPLETS.spare_columns
    block = _start_block(A, start, width)
    # Columns to work on before a Gram matrix and its eigenvectors would have cost as much.
    patience = 0.5 * A.shape[1] * (_TRIPLETS.krylov_share + A.shape[1] / A.shape[0])
    while width <= _TRIPLETS.krylov_share * A.shape[1] and patience > 0.0:
        patience -= width
        found = _ritz_step(A, block, depth=2)
        count = _count_above(found.values[:width], level)
        # All values that were found are above the level, so the block may be too narrow to hold the
        # rest.
        if count == width:  # there may be more
            width *= 2
            block = _start_block(A, found.right, width)
            continue
        errors = _residual_norms(A, found, count + 1)
        excess = found.values[:count] - level
        size = math.sqrt(float(xp.sum(excess * excess)))
        # A third of the allowed error of the prox, whose size is that of the excess; and never less
        # than rounding leaves.
        allowed = max(0.3 * allowed_error(A) * size, 64.0 * epsilon(A) * float(found.values[0]))
        error = math.sqrt(float(xp.sum(xp.minimum(errors[:count], 2.0 * excess) ** 2)))
        # The first value below the level is right up to its residual. What the prox would keep of
        # it, if it were larger by that much, must be small as well.
        room = min(float(errors[count]), float(found.values[count] + errors[count]) - level)
        if error <= allowed and room <= allowed:
            return found
        block = _start_block(A, found.right, width)
    return None


def _find_largest_triplet(A: Array) -> tuple[Triplets, float]:
    """Return the triplet of the largest singular value of a tall matrix, and its residual."""
    block = _start_block(A, None, _TRIPLETS.spare_columns)
    for _ in range(_TRIPLETS.restarts):
        found = _ritz_step(A, block, depth=_TRIPLETS.depth_for_one)
        error = float(_residual_norms(A, found, 1)[0])
        if error <= 0.1 * allowed_error(A) * float(found.values[0]):
            break
        block = _start_block(A, found.right, _TRIPLETS.spare_columns)
    return _take_leading(found, 1), error


def _ritz_step(A: Array, block: Array, depth: int) -> Triplets:
    """Return the best triplets in the space of ``block`` and its products with ``A^T A``."""
    xp = namespace(A)
    # The images are kept, so that the Rayleigh-Ritz step needs no further product with A.
    basis, images = block, [A @ block]
    for _ in range(depth):
        new = _orthogonalize(A.T @ images[-1], basis)
        basis = xp.concat([basis, new], axis=1)
        images.append(A @ new)
    # A times the basis is Q R; the singular values of the small triangle R are the best ones in the
    # space, never too large.
    left, triangle = xp.linalg.qr(xp.concat(images, axis=1))
    inner = svd(triangle)
    return Triplets(left @ inner.left, inner.values, basis @ inner.right)


def _orthogonalize(columns: Array, basis: Array) -> Any:
    """Return an orthonormal basis of what ``columns`` add to one; the rest of it is zero.

    Zero columns in a basis do no harm. The rounding errors of a column that adds nothing would:
    they lie in the span of the basis.
    """
    rest = columns - basis @ (basis.T @ columns)
    size, left_over = _column_norms(columns), _column_norms(rest)
    xp = namespace(columns)
    # A column that lost all digits to the projection adds a direction of noise, not of the space.
    lost = left_over <= 1e3 * epsilon(columns) * size
    rest = rest * xp.where(lost, xp.zeros_like(size), 1.0 / xp.where(lost, size + 1.0, left_over))
    found = svd(rest)
    # Columns of zeros come last, or they would spoil the next decomposition.
    # Columns have length one or zero here. Combinations shorter than 1e-6 are dependent but for
    # rounding.
    adds = xp.astype(found.values > 1e-6, columns.dtype)
    left = found.left * adds
    # Projected a second time: one projection leaves errors of the size of the first one's
    # cancellation.
    return xp.linalg.qr(left - basis @ (basis.T @ left))[0] * adds


def _residual_norms(A: Array, found: Triplets, count: int) -> Any:
    """Return the norms of ``A^T u - s v`` of the leading triplets; ``A v = s u`` holds."""
    return _column_norms(
        A.T @ found.left[:, :count] - found.right[:, :count] * found.values[:count]
    )


def _column_norms(columns: Array) -> Any:
    """Return the Euclidean norms of columns."""
    xp = namespace(columns)
    return xp.sqrt(xp.sum(columns * columns, axis=0))


def _start_block(A: Array, start: Array | None, width: int) -> Any:
    """Return ``width`` orthonormal columns: those of ``start`` first, the others random."""
    xp, n_columns = namespace(A), A.shape[1]
    columns = [] if start is None else [start]
    missing = width - sum(part.shape[1] for part in columns)
    if missing > 0:
        # The same at each call, so that a prox is a function of its arguments.
        noise = np.random.default_rng(width).standard_normal((n_columns, missing))
        columns.append(xp.asarray(noise, dtype=A.dtype, device=device_of(A)))
    return xp.linalg.qr(xp.concat(columns, axis=1)[:, :width])[0]
