r"""Projections on the :math:`\ell_1` ball and on balls of maxima, from sorted magnitudes.

For magnitudes :math:`a_1 \ge a_2 \ge \dots` let :math:`d_j = a_1 - a_j`, the depth below the
largest. Cutting all magnitudes at :math:`a_1 - t` takes away :math:`\sum_j (t - d_j)_+`. This is
:math:`\lambda` where :math:`t = (\lambda + d_1 + \dots + d_c)/c`, with :math:`c` the number of
depths below :math:`t`: those for which :math:`j d_j - (d_1 + \dots + d_j) < \lambda`. Depths are
differences of magnitudes, so that :math:`t` is exact to rounding even where it is far smaller than
these. The page on mixed norms has the formula (:eq:`cut-height`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixnorm._array import Array, device_of, epsilon, is_numpy, namespace
from mixnorm.norms.vectors import concatenate, row_maxima, row_norms, row_sums, vector_norm

# A safeguard: Newton's method ends after about ten steps, on the right piece of the function.
_MOST_STEPS_TO_CUTS = 200
# Passes over the values before they are sorted instead.
_MOST_PASSES = 12
# Entries of a chunk of rows, which fits into the processor's cache.
_ENTRIES_PER_CHUNK_OF_ROWS = 2**15


class SortedRows:
    """Rows of magnitudes, sorted once to find where a cut takes a given sum from a row.

    Overwrites ``A`` where that is a NumPy array of float64: a new array of its size would cost as
    much as the sorting.
    """

    def __init__(self, A: Array) -> None:
        xp = namespace(A)
        where = {"dtype": xp.float64, "device": device_of(A)}
        n_rows, width = A.shape
        ranked = xp.astype(A, xp.float64, copy=False)
        if is_numpy(ranked):
            # In place and by an unstable sort: equal magnitudes need no order.
            ranked.sort(axis=1)
        else:
            ranked = xp.sort(ranked, axis=1, stable=False)
        # A copy: the line below would turn a view of the last column into zeros.
        self._largest = xp.asarray(ranked[:, -1], copy=True)
        # The array holds minus the depths now, largest depth first, and is reused step by step:
        # after the products with -width, ..., -1 and the sum with ``_total`` it holds j d_j - (d_1
        # + ... + d_j).
        ranked -= self._largest[:, None]
        self._total = xp.cumulative_sum(xp.flip(ranked, axis=1), axis=1)  # minus sums of depths
        ranked *= xp.arange(-width, 0, **where)
        ranked += xp.flip(self._total, axis=1)
        self._ends = ranked  # at these amounts one more entry is cut
        # Rows are counted by a product with ones, several times as quick as a sum along short rows.
        self._ones = xp.ones((width,), **where)
        self._base = xp.arange(n_rows, device=device_of(A)) * width - 1

    def find_heights(self, amount: float) -> tuple[Any, Any]:
        """Return how far below its largest entry each row is cut, and how many entries are.

        They are ``t`` and ``c`` of :eq:`cut-height`.
        """
        xp = namespace(self._ends)
        count = xp.astype(self._ends <= amount, xp.float64) @ self._ones
        count = xp.maximum(count, xp.ones_like(count))  # rows that are not finite have none
        # The place in the flat array of the sum of the depths that are cut, one look-up per row.
        place = self._base + xp.astype(count, self._base.dtype)
        total = xp.take(xp.reshape(self._total, (-1,)), place)
        return (amount - total) / count, count

    def find_cuts(self, amount: float) -> tuple[Any, Any]:
        """Return the cuts that take ``amount`` from each row, and how many entries they touch.

        A row that holds less is cut at zero. A larger ``amount`` lowers a cut by ``1 / count``
        times the difference.
        """
        heights, count = self.find_heights(amount)
        cuts = self._largest - heights
        return namespace(cuts).maximum(cuts, namespace(cuts).zeros_like(cuts)), count


def find_height(values: Array, radius: float) -> tuple[float, float]:
    """Return the largest value and the height ``t`` to which the projection takes it.

    The projection of the magnitudes ``values`` on the ``l1`` ball is
    ``max(0, t - (largest - values))``; their sum is above ``radius``.
    """
    xp = namespace(values)
    largest = float(values.max() if is_numpy(values) else xp.max(values))
    values = xp.astype(values, xp.float64, copy=False)
    if is_numpy(values):
        values, settled = _drop_zeros(values, largest, radius)
        if settled:
            return largest, (radius + float((largest - values).sum())) / len(values)
    heights, _ = SortedRows(xp.asarray(values[None, :], copy=True)).find_heights(radius)
    return largest, float(heights[0])


def _drop_zeros(values: np.ndarray, largest: float, radius: float) -> tuple[np.ndarray, bool]:
    """Drop values that become zero, and tell whether all that are left stay positive.

    A projection cuts off at least what it would if all values stayed positive. Values below that
    are dropped, again and again, which for most values ends soon.

    References
    ----------
    C. Michelot, "A finite algorithm for finding the projection of a point onto the canonical
    simplex", J. Optimization Theory and Applications 50, 1986.
    """
    for _ in range(_MOST_PASSES):
        # Two lower bounds of what is cut off: the largest value keeps at most the radius, and what
        # is taken from all values alike is least if all of them stay.
        least = max(largest - radius, (float(values.sum()) - radius) / len(values))
        left = values >= least
        count = np.count_nonzero(left)
        if count in (0, len(values)):  # none: all are equal but for rounding
            return values, True
        values = np.compress(left, values)  # several times as quick as values[left]
    return values, False


def project_magnitudes(values: Array, radius: float) -> Any:
    """Return the projection of magnitudes from outside of an ``l1`` ball on it.

    This is :eq:`cut-height` with the radius as the amount: the part above the cut is kept.
    Overwrites ``values``.
    """
    xp = namespace(values)
    largest, t = find_height(values, radius)
    values -= largest
    values += t
    if is_numpy(values):
        return np.maximum(values, 0.0, out=values)
    return xp.maximum(values, xp.zeros_like(values))


def find_row_cuts(A: Array, amount: float) -> Any:
    """Return the cuts of the magnitudes of rows that take ``amount`` from each.

    These are the cuts of the proximal map (:eq:`common-cut` with a known amount).
    """
    xp = namespace(A)
    found = []
    for rows in _cut_into_chunks(A):
        sizes = xp.abs(rows)
        left = row_sums(sizes) > amount if is_numpy(A) else None
        with np.errstate(invalid="ignore"):  # rows that are not finite are cut at NaN
            cuts = SortedRows(_select_rows(sizes, left)).find_cuts(amount)[0]
        found.append(xp.astype(_fill_rows(cuts, left), A.dtype, copy=False))
    return concatenate(found)


def find_common_cuts(parts: Sequence[Array], radius: float) -> Any:
    r"""Return the cuts of the magnitudes of rows that add up to ``radius``.

    The sum of the rows' largest magnitudes is above ``radius``. This is the projection on the
    :math:`\ell_{\infty,1}` ball (:eq:`common-cut`): each row that does not vanish loses the same
    amount :math:`\lambda`, and the sum of the cuts is a convex, decreasing, piecewise linear
    function of :math:`\lambda`. Newton's method starts below the root, never steps over it, and is
    exact once it is on the right piece.

    References
    ----------
    G. Chau, B. Wohlberg, P. Rodriguez, "Efficient projection onto the :math:`\ell_{\infty,1}` mixed
    norm ball using a Newton root search method", SIAM J. Imaging Sciences 12(1), 2019.
    """
    xp = namespace(parts[0])
    # All chunks are sorted once, before Newton's method: each of its steps is then one look-up per
    # row.
    chunks = [rows for part in parts for rows in _cut_into_chunks(part)]
    sums = [row_norms(rows, 1.0) for rows in chunks]
    peaks = concatenate([row_maxima(rows) for rows in chunks])
    widest = max(part.shape[1] for part in parts)
    amount = _bound_amount(peaks, concatenate(sums), widest, radius)
    # The amount only grows: nothing is left of rows that hold less.
    left = [total > amount if is_numpy(total) else None for total in sums]
    tables = [SortedRows(xp.abs(_select_rows(*pair))) for pair in zip(chunks, left, strict=True)]
    cuts = _find_amount(tables, amount, radius)
    return xp.astype(
        concatenate([_fill_rows(*pair) for pair in zip(cuts, left, strict=True)]),
        peaks.dtype,
        copy=False,
    )


def _cut_into_chunks(A: Array) -> list[Any]:
    """Cut a NumPy matrix into chunks of rows that fit into the processor's cache.

    New pages of memory would cost more than the work on them.
    """
    step = max(1, _ENTRIES_PER_CHUNK_OF_ROWS // max(A.shape[1], 1))
    if not is_numpy(A) or A.shape[0] <= step:
        return [A]
    return [A[first : first + step] for first in range(0, A.shape[0], step)]


def _select_rows(rows: Array, left: np.ndarray | None) -> Any:
    """Return the rows that are left; all of them without a mask."""
    return rows if left is None or np.all(left) else rows[left]


def _fill_rows(cuts: Array, left: np.ndarray | None) -> Any:
    """Return the cuts of the rows that are left, and zeros for the others."""
    if left is None or np.all(left):
        return cuts
    found = np.zeros(len(left))
    found[left] = cuts
    return found


def _find_amount(tables: list[SortedRows], amount: float, radius: float) -> list[Any]:
    """Return the cuts that add up to ``radius``, by Newton's method from an amount below."""
    xp = namespace(tables[0]._ends)
    cuts: list[Any] = []
    for _ in range(_MOST_STEPS_TO_CUTS):
        # The slope of the sum of the cuts is minus the sum of 1 / count over the rows that are cut
        # above zero. The sum is convex, so that a step from below ends below the root.
        total = slope = 0.0
        cuts = []
        for table in tables:
            cut, count = table.find_cuts(amount)
            total += float(xp.sum(cut))
            slope += float(xp.sum(xp.where(cut > 0.0, 1.0 / count, xp.zeros_like(count))))
            cuts.append(cut)
        if not slope > 0.0:
            break
        step = (total - radius) / slope
        rounding = 4.0 * epsilon(cuts[0])
        if abs(total - radius) <= rounding * radius or abs(step) <= rounding * amount:
            break
        amount += step
    # Rounding must not leave the cuts outside of the ball.
    factor = radius / total if total > radius else 1.0
    return [cut * factor for cut in cuts]


def _bound_amount(peaks: Array, sums: Array, widest: int, radius: float) -> float:
    """Return an amount not above the root, from the largest entries and the sums of the rows.

    A cut falls at most as fast as if one entry of the row were cut, and at least as fast as if all
    were.
    """
    largest, t = find_height(peaks, radius)
    least = largest - t
    if vector_norm(sums, 1.0) > radius * widest:
        largest, t = find_height(sums, radius * widest)
        least = max(least, largest - t)
    # The bounds are exact but for rounding. Newton's method has to start below the root.
    return max(least * (1.0 - 64.0 * epsilon(sums)), 0.0)
