"""The compiled loops of JointBoost: weighted histograms, and the steps that a subset grows by.

Tables are flat: they have a part for each feature, in it a part for each class, and in this the
sums up to and including every bin. Feature ``j`` has bins ``starts[j]`` to ``starts[j + 1]`` of all
bins.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mixnorm._compile import ENTRY, INNER

# Added to the mass of a side, so that the gain of an empty side is 0. It changes no other mass, as
# weights sum to one.
LEAST_MASS = 1e-300
# A feature is passed over only if its bound is below the gain to reach by more than this.
_ROUNDING_OF_BOUNDS = 1e-9
# Of gains that differ by less, the first is taken. Rounding must not choose, or a weight of two
# could have another result than a row that is there twice.
TIE = 1e-12


@njit(**INNER, cache=True, error_model="numpy")
def _fill_tables(row, weights, target, mass, signed):  # type: ignore[no-untyped-def]
    """Fill the tables of one feature, whose bins are in ``row``."""
    n_samples, n_classes = weights.shape
    size = len(mass) // n_classes
    total = np.zeros((size, n_classes))
    right = np.zeros((size, n_classes))
    for i in range(n_samples):
        b = row[i]
        for c in range(n_classes):
            total[b, c] += weights[i, c]
        if target[i] >= 0:  # the one class in which the label is +1, if there is one
            right[b, target[i]] += weights[i, target[i]]
    # Rows add to [bin, class], which lies together in memory; thresholds are scanned by class.
    for c in range(n_classes):
        so_far, so_far_signed = 0.0, 0.0
        for b in range(size):
            so_far += total[b, c]
            so_far_signed += 2.0 * right[b, c] - total[b, c]
            mass[c * size + b] = so_far
            signed[c * size + b] = so_far_signed


@njit(**ENTRY, cache=True, nogil=True, error_model="numpy")
def histograms(codes, features, starts, weights, target, mass, signed, begin, stop):  # type: ignore[no-untyped-def]
    """Fill the tables ``mass`` and ``signed`` with the sums of ``w`` and of ``w z``.

    Features are those of ``features[begin:stop]``.

    Row ``i`` has label +1 in class ``target[i]`` (none if that is negative) and -1 in all others,
    so that ``w z`` differs from ``-w`` in one entry per row.
    """
    n_classes = weights.shape[1]
    for j in range(begin, stop):
        part = slice(starts[j] * n_classes, starts[j + 1] * n_classes)
        _fill_tables(codes[features[j]], weights, target, mass[part], signed[part])


@njit(**INNER, cache=True, inline="always", error_model="numpy")
def _compute_gain(low_mass, low_signed, mass, signed):  # type: ignore[no-untyped-def]
    """Return the sum of ``(sum w z)^2 / sum w`` over both sides of a threshold.

    It is the first part of :eq:`joint-gain-of-stump`.

    The sums of the upper side are differences, with rounding errors. They are clipped, since no
    mean of labels is beyond one, so that the error of the gain is no more than rounding.
    """
    high_mass = max(mass - low_mass, 0.0)
    high_signed = min(max(signed - low_signed, -high_mass), high_mass)
    low = low_signed * low_signed / (low_mass + LEAST_MASS)
    return low + high_signed * high_signed / (high_mass + LEAST_MASS)


# Without NaN and signed zeros a maximum can be taken over several cuts at once.
@njit(
    **INNER,
    cache=True,
    error_model="numpy",
    fastmath={"nnan", "nsz"},
)
def _find_best_gain(mass, signed, low_mass, low_signed, all_mass, all_signed):  # type: ignore[no-untyped-def]
    """Return the largest gain over the thresholds of a feature, when a class joins a subset."""
    best = 0.0
    for b in range(len(mass) - 1):  # no rows are above the last bin
        gain = _compute_gain(low_mass[b] + mass[b], low_signed[b] + signed[b], all_mass, all_signed)
        best = max(best, gain)
    return best


@njit(**INNER, cache=True, error_model="numpy")
def _find_best_cut(low_mass, low_signed, all_mass, all_signed):  # type: ignore[no-untyped-def]
    """Return the threshold of one feature at which a subset gains most."""
    # Two passes, as in ``_choose``. No rows are above the last bin.
    top = 0.0
    for b in range(len(low_mass) - 1):
        top = max(top, _compute_gain(low_mass[b], low_signed[b], all_mass, all_signed))
    for b in range(len(low_mass) - 1):
        if _compute_gain(low_mass[b], low_signed[b], all_mass, all_signed) >= top - TIE:
            return b
    return 0


@njit(**INNER, cache=True, error_model="numpy")
def _choose(best, waiting, constant, outside):  # type: ignore[no-untyped-def]
    """Return the class and the feature with the largest gain, other classes included, and it."""
    # Two passes: the largest gain, then the first one that is as good up to rounding.
    top = -np.inf
    for c in range(len(waiting)):
        if waiting[c]:
            for j in range(len(best)):
                top = max(top, best[j, c] + (outside - constant[c]))
    for c in range(len(waiting)):
        if waiting[c]:
            for j in range(len(best)):
                if best[j, c] + (outside - constant[c]) >= top - TIE:
                    return c, j, top
    return -1, -1, top  # not reached while a class is waiting


@njit(**INNER, cache=True, error_model="numpy")
def _scan_feature(  # type: ignore[no-untyped-def]
    mass, signed, low_mass, low_signed, joined, waiting, all_mass, all_signed, bound, needed, best
):
    """Add a class to the sums of a subset, and find the gain of each class that waits to join."""
    size = len(low_mass)
    if joined >= 0:
        for b in range(size):
            low_mass[b] += mass[joined * size + b]
            low_signed[b] += signed[joined * size + b]
    for c in range(len(waiting)):
        if waiting[c] and bound[c] >= needed[c]:
            part = slice(c * size, (c + 1) * size)
            best[c] = _find_best_gain(
                mass[part], signed[part], low_mass, low_signed, all_mass[c], all_signed[c]
            )
        else:  # it cannot be the best; the bound keeps later bounds valid
            best[c] = bound[c]


@njit(**ENTRY, cache=True, nogil=True, error_model="numpy")
def scan(  # type: ignore[no-untyped-def]
    tables, starts, low, sums, joined, waiting, bound, needed, best, begin, stop
):
    """Fill ``best[j, c]`` with the best gain of feature ``j`` when class ``c`` joins a subset.

    The first rows of ``tables``, ``low`` and ``sums`` are sums of ``w``, the second ones of
    ``w z``. Those in ``low`` are the sums of the subset up to each bin, to which class ``joined``
    is added first (none if that is negative). ``sums[:, c]`` are the sums of subset and class over
    all rows. The gain is replaced by ``bound[j, c]``, which is never less, where that is below
    ``needed[c]`` or the class is not ``waiting``. Features are those from ``begin`` to ``stop``.
    """
    n_classes = len(waiting)
    mass, signed = tables[0], tables[1]
    low_mass, low_signed, all_mass, all_signed = low[0], low[1], sums[0], sums[1]
    for j in range(begin, stop):
        first, end = starts[j], starts[j + 1]
        _scan_feature(
            mass[first * n_classes : end * n_classes],
            signed[first * n_classes : end * n_classes],
            low_mass[first:end],
            low_signed[first:end],
            joined,
            waiting,
            all_mass,
            all_signed,
            bound[j],
            needed,
            best[j],
        )


@njit(**ENTRY, cache=True, nogil=True, error_model="numpy")
def join(  # type: ignore[no-untyped-def]
    tables, starts, low, sums, waiting, bound, needed, best, alone, constant, totals
):
    """Let the class with the largest gain join a subset, and bound the gains of the next step.

    For any threshold ``(s + t)^2 / (v + w) <= s^2 / v + t^2 / w``: the gain of a subset with a
    class is at most the sum of their separate gains, ``best`` and ``alone`` (:eq:`joint-bound`).
    Features whose bound is below the gain at the last best threshold are passed over, which does
    not change the result.

    Returns the class, the feature, the bin below the threshold and the gain.
    """
    # Loops in place of array operations, which take several times as long to compile.
    n_features, n_classes = best.shape
    mass, signed, all_mass, all_signed = tables[0], tables[1], sums[0], sums[1]
    # Classes outside gain by their constants, and one that joins loses its own.
    outside = 0.0
    for c in range(n_classes):
        if waiting[c]:
            outside += constant[c]
    chosen, feature, gain = _choose(best, waiting, constant, outside)
    first, end = starts[feature], starts[feature + 1]
    size = end - first
    at = first * n_classes + chosen * size
    here = np.empty((2, size))
    for b in range(size):
        here[0, b] = low[0, first + b] + mass[at + b]
        here[1, b] = low[1, first + b] + signed[at + b]
    own_mass, own_signed = all_mass[chosen], all_signed[chosen]
    cut = _find_best_cut(here[0], here[1], own_mass, own_signed)
    waiting[chosen] = False
    outside -= constant[chosen]
    # From now on column ``c`` is of the subset with the chosen class and class ``c``.
    for c in range(n_classes):
        all_mass[c] = own_mass + totals[0, c]
        all_signed[c] = own_signed + totals[1, c]
    floor = 0.0  # the gain of the next class at this threshold
    for c in range(n_classes):
        if waiting[c]:
            at = first * n_classes + c * size + cut
            next_gain = _compute_gain(
                here[0, cut] + mass[at], here[1, cut] + signed[at], all_mass[c], all_signed[c]
            )
            floor = max(floor, next_gain + (outside - constant[c]))
    for c in range(n_classes):
        needed[c] = floor - (outside - constant[c]) - _ROUNDING_OF_BOUNDS
        for j in range(n_features):
            bound[j, c] = best[j, chosen] + alone[j, c]
    return chosen, feature, cut, gain
