"""Compiled loops of the pieces pool. Each has a plain NumPy twin in the tests."""

from __future__ import annotations

import numpy as np
from numba import njit

from mixnorm._compile import ENTRY, INNER

# Samples that one thread works on at a time: their rows stay in its cache.
_SAMPLES_IN_CACHE = 2048


# No contraction of products and sums here: the results are those of NumPy, bit for bit.
@njit(**ENTRY, cache=True, nogil=True)
def squared_distances(by_column, centres, distances, begin, stop):  # type: ignore[no-untyped-def]
    """Write the squared distances of all samples from some centres into ``distances``."""
    n_columns, n_samples = by_column.shape
    for c in range(begin, stop):
        # Some samples at a time: their sums stay in the cache while all columns pass.
        for start in range(0, n_samples, _SAMPLES_IN_CACHE):
            total = distances[c, start : start + _SAMPLES_IN_CACHE]
            total[:] = 0.0
            for j in range(n_columns):
                column, value = by_column[j, start : start + _SAMPLES_IN_CACHE], centres[c, j]
                for i in range(len(total)):
                    gap = column[i] - value
                    total[i] += gap * gap


@njit(**ENTRY, cache=True, nogil=True, fastmath={"nnan", "nsz"})
def sort_into_rings(distances, limits, table, codes, largest, begin, stop):  # type: ignore[no-untyped-def]
    """Write the number of limits at or below each distance into ``codes``, for some centres.

    ``largest[c, q]`` becomes the largest magnitude of each column of ``table`` over the samples
    with code ``q``.
    """
    n_samples = distances.shape[1]
    n_limits, width = limits.shape[1], table.shape[1]
    for c in range(begin, stop):
        largest[c] = 0.0
        for i in range(n_samples):
            low, high = 0, n_limits
            while low < high:  # halved each time
                middle = (low + high) // 2
                if limits[c, middle] <= distances[c, i]:
                    low = middle + 1
                else:
                    high = middle
            codes[c, i] = low
            for j in range(width):
                largest[c, low, j] = max(largest[c, low, j], abs(table[i, j]))


@njit(**ENTRY, cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def ball_norms(codes, table, residual, inverse, squared, together, norms, begin, stop):  # type: ignore[no-untyped-def]
    """Write the norm of the gradient of every ball of some centres into ``norms``.

    Ball ``q`` of a centre has the samples with codes up to ``q``; its columns are those of
    ``table``, times ``inverse[c, q]``. ``table`` and ``residual`` end with a row of zeros. Samples
    are sorted by code, eight at a time are added to the gradient of their ring, and rings are
    added up. ``together`` centres are processed at a time.
    """
    n_samples = codes.shape[1]
    n_balls, width, n_outputs = inverse.shape[1], table.shape[1], residual.shape[1]
    # Each ring may be filled up by seven rows of zeros.
    order = np.empty(_SAMPLES_IN_CACHE + 8 * (n_balls + 1), dtype=np.int64)
    starts = np.empty(n_balls + 2, dtype=np.int64)
    ends = np.empty(n_balls + 1, dtype=np.int64)
    for first in range(begin, stop, together):
        last = min(first + together, stop)
        rings = np.zeros((last - first, n_balls, n_outputs, width), dtype=table.dtype)
        for start in range(0, n_samples, _SAMPLES_IN_CACHE):
            end = min(start + _SAMPLES_IN_CACHE, n_samples)
            for c in range(first, last):
                _sort_by_code(codes[c, start:end], start, n_samples, order, starts, ends)
                for q in range(n_balls):
                    _add_products(
                        rings[c - first, q], table, residual, order[starts[q] : starts[q + 1]]
                    )
        # A ball is the rings up to its own: each gradient is that of the ball before plus one ring.
        for c in range(first, last):
            gradient = rings[c - first, 0]
            for q in range(n_balls):
                if q > 0:
                    gradient += rings[c - first, q]
                norms[c, q] = _compute_norm(gradient, inverse[c, q], squared)


@njit(**INNER, cache=True, nogil=True)
def _sort_by_code(codes, start, n_samples, order, starts, ends):  # type: ignore[no-untyped-def]
    """Sort samples by code into ``order``, each code's filled up to eights with the row of zeros.

    The samples of code ``q`` lie from ``starts[q]`` to ``starts[q + 1]``.
    """
    # A counting sort: count, add up, place. It keeps the order of samples within a ring.
    starts[:] = 0
    for code in codes:
        starts[code + 1] += 1
    for q in range(len(ends)):
        starts[q + 1] = starts[q] + (starts[q + 1] + 7) // 8 * 8
        ends[q] = starts[q]
    for i in range(len(codes)):
        order[ends[codes[i]]] = start + i
        ends[codes[i]] += 1
    for q in range(len(ends)):
        order[ends[q] : starts[q + 1]] = n_samples


@njit(
    **INNER,
    cache=True,
    nogil=True,
    fastmath={"contract", "reassoc", "nsz"},
)
def _add_products(gradient, table, residual, order):  # type: ignore[no-untyped-def]
    """Add ``residual[i]^T table[i]`` of the samples in ``order``, a multiple of eight, up."""
    n_outputs, width = gradient.shape
    for t in range(0, len(order), 8):
        # Unsigned, so that no negative index need be looked for.
        a, b = np.uint64(order[t]), np.uint64(order[t + 1])
        c, d = np.uint64(order[t + 2]), np.uint64(order[t + 3])
        e, f = np.uint64(order[t + 4]), np.uint64(order[t + 5])
        g, h = np.uint64(order[t + 6]), np.uint64(order[t + 7])
        for k in range(n_outputs):
            ra, rb, rc, rd = residual[a, k], residual[b, k], residual[c, k], residual[d, k]
            re, rf, rg, rh = residual[e, k], residual[f, k], residual[g, k], residual[h, k]
            for j in range(width):
                gradient[k, j] += (
                    (ra * table[a, j] + rb * table[b, j]) + (rc * table[c, j] + rd * table[d, j])
                ) + ((re * table[e, j] + rf * table[f, j]) + (rg * table[g, j] + rh * table[h, j]))


@njit(**INNER, cache=True, nogil=True)
def _compute_norm(gradient, inverse, squared):  # type: ignore[no-untyped-def]
    # In double: scores of thousands of balls are compared, and squares must not overflow.
    total = 0.0
    for k in range(gradient.shape[0]):
        for j in range(gradient.shape[1]):
            part = np.float64(gradient[k, j] * inverse[j])
            total += part * part if squared else abs(part)
    return np.sqrt(total) if squared else total
