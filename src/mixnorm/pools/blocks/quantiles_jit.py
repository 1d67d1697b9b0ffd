"""Compiled loops of the quantile sketches. Each has a plain NumPy twin in the tests."""

from __future__ import annotations

from numba import njit

from mixnorm._compile import ENTRY


@njit(**ENTRY, cache=True, nogil=True)
def merge_points(values, weights, others, other_weights, merged, merged_weights):  # type: ignore[no-untyped-def]
    """Merge two lists of points in increasing order; equal values become one point.

    Return the number of points written into ``merged`` and ``merged_weights``.
    """
    i = j = size = 0
    while i < len(values) or j < len(others):
        both = i < len(values) and j < len(others)
        if j == len(others) or (both and values[i] <= others[j]):
            value, weight = values[i], weights[i]
            i += 1
            if both and others[j] == value:
                weight += other_weights[j]
                j += 1
        else:
            value, weight = others[j], other_weights[j]
            j += 1
        merged[size], merged_weights[size] = value, weight
        size += 1
    return size


@njit(**ENTRY, cache=True, nogil=True)
def pack_points(values, weights, most):  # type: ignore[no-untyped-def]
    """Join neighbours, in place, to points that weigh at most ``most``.

    A point stands for its largest value; one that weighs more stays alone. Return the number of
    points left.
    """
    size = 0
    for i in range(len(values)):
        if size > 0 and weights[size - 1] + weights[i] <= most:
            values[size - 1] = values[i]
            weights[size - 1] += weights[i]
        else:
            values[size], weights[size] = values[i], weights[i]
            size += 1
    return size
