"""Compiled loops over vectors: samples as they come, powers of norms, and the tree of their sums.

An index lists columns; an empty index means all of the first ``count`` columns.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

# Children of a node of the tree that sums powers of norms. Wide, as summing 64 numbers anew is as
# fast as a few jumps through memory; a sum that is only corrected would drift.
BRANCHES = 64

# Lets compilers reorder sums, and so vectorise them. Without ``nnan`` and ``ninf``: the loops rely
# on comparisons with NaN and infinity to find samples that are not finite.
_REORDERING = {"contract", "reassoc", "nsz", "arcp"}
# With divisions that raise, compilers do not vectorise. Nobody calls these functions from C, and
# those that Python never calls need no wrapper for it either. Wrappers take a fifth of the compile
# time.
_ENTRY_JIT: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}
_INNER_JIT: dict[str, Any] = {**_ENTRY_JIT, "no_cpython_wrapper": True}
entry, fast_entry = njit(**_ENTRY_JIT), njit(**_ENTRY_JIT, fastmath=_REORDERING)
plain, compiled = njit(**_INNER_JIT), njit(**_INNER_JIT, fastmath=_REORDERING)


@plain
def raise_to(values, exponent, out, held, other, count):  # type: ignore[no-untyped-def]
    """Write powers of the first ``count`` values, which are not negative.

    The relative error is about that of rounding, times the logarithm of the result. ``held`` and
    ``other`` are scratch space. Passes over rows of 784 columns take 2.3 to 2.9 times as long with
    the C library's ``pow`` (``python -m benchmarks tricks``).
    """
    # Three loops without branches in place of one with them: each is vectorised.
    split(values.view(np.int64), held.view(np.int64), out, count)
    power_series(held, exponent, out, other, count)
    exponents(other, held.view(np.int64), count)
    for j in range(count):
        out[j] = out[j] * held[j] if values[j] > 0.0 else 0.0


@plain
def split(given, mantissa, exponent, count):  # type: ignore[no-untyped-def]
    """Write the mantissas, between 1 and 2, and the exponents of floating numbers."""
    # A double has 52 bits of mantissa, then 11 of exponent, which is offset by 1023. The masks take
    # the mantissa and give it the exponent zero.
    for j in range(count):
        mantissa[j] = (given[j] & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000
        exponent[j] = float(np.int32(given[j] >> 52) - np.int32(1023))


@plain
def exponents(whole, bits, count):  # type: ignore[no-untyped-def]
    """Write powers of two."""
    # The exponent bits alone are a power of two.
    for j in range(count):
        bits[j] = np.int64(np.int32(whole[j]) + np.int32(1023)) << 52


@compiled
def power_series(mantissa, exponent, out, whole, count):  # type: ignore[no-untyped-def]
    """Turn binary exponents in ``out`` into powers, up to powers of two; write their exponents.

    The logarithm is twice an inverse hyperbolic tangent. It and the exponential are series of fixed
    length, so that the loop has no branches.
    """
    for j in range(count):
        # With m = sqrt(2) (1 + t) / (1 - t), log2(m) = 1/2 + 2 / ln(2) artanh(t), and |t| < 0.172:
        # ten terms of the series are exact up to rounding.
        t = (mantissa[j] - 1.4142135623730951) / (mantissa[j] + 1.4142135623730951)
        s = t * t
        y = s * (1.0 / 19.0) + 1.0 / 17.0
        y = y * s + 1.0 / 15.0
        y = y * s + 1.0 / 13.0
        y = y * s + 1.0 / 11.0
        y = y * s + 1.0 / 9.0
        y = y * s + 1.0 / 7.0
        y = y * s + 1.0 / 5.0
        y = y * s + 1.0 / 3.0
        y = y * s + 1.0
        # Clipped to the range of normal numbers, of which the exponent's bits can be written.
        binary = exponent * (0.5 + out[j] + 2.8853900817779268 * t * y)
        binary = binary if binary > -1021.0 else -1021.0
        binary = binary if binary < 1021.0 else 1021.0
        # The nearest whole number: cutting off rounds down, as the argument is positive. What is
        # left is at most a half, and 14 terms of the exponential are exact up to rounding.
        nearest = float(np.int32(binary + 1022.5)) - 1022.0
        x = (binary - nearest) * 0.6931471805599453
        y = x * (1.0 / 6227020800.0) + 1.0 / 479001600.0
        y = y * x + 1.0 / 39916800.0
        y = y * x + 1.0 / 3628800.0
        y = y * x + 1.0 / 362880.0
        y = y * x + 1.0 / 40320.0
        y = y * x + 1.0 / 5040.0
        y = y * x + 1.0 / 720.0
        y = y * x + 1.0 / 120.0
        y = y * x + 1.0 / 24.0
        y = y * x + 1.0 / 6.0
        y = y * x + 0.5
        y = y * x + 1.0
        out[j] = y * x + 1.0
        whole[j] = nearest


@compiled
def climb(tree, levels, index, count):  # type: ignore[no-untyped-def]
    """Compute the sums above the leaves ``index``, which are sorted; above all without an index."""
    shift = 1
    for level in range(levels.shape[0] - 2):
        below, above = levels[level], levels[level + 1]
        shift *= BRANCHES
        if index.shape[0] == 0:
            for block in range(levels[level + 2] - above):
                tree[above + block] = block_sum(tree, below + block * BRANCHES, above)
            continue
        # The index is sorted, so that columns of one block follow each other and it is summed once.
        done = -1
        for e in range(count):
            block = index[e] // shift
            if block != done:
                done = block
                tree[above + block] = block_sum(tree, below + block * BRANCHES, above)


@compiled
def block_sum(tree, start, end):  # type: ignore[no-untyped-def]
    """Return the sum of one block of a level of the tree."""
    total = 0.0
    for place in range(start, min(start + BRANCHES, end)):
        total += tree[place]
    return total


@compiled
def square_columns(count, index, n_outputs, unit, theta, size):  # type: ignore[no-untyped-def]
    """Write the squared norms of columns, in units, and return the largest.

    Without an index these are the first columns.
    """
    for e in range(count):
        size[e] = 0.0
    whole, r = index.shape[0] == 0, 0
    while whole and r + 4 <= n_outputs:  # four at a time, to read and write the sums less often
        a, b, c, d = theta[r], theta[r + 1], theta[r + 2], theta[r + 3]
        for j in range(count):
            size[j] += (a[j] * a[j] + b[j] * b[j]) + (c[j] * c[j] + d[j] * d[j])
        r += 4
    while r < n_outputs:
        a = theta[r]
        if whole:
            for j in range(count):
                size[j] += a[j] * a[j]
        else:
            for e in range(count):
                size[e] += a[index[e]] * a[index[e]]
        r += 1
    # Into units at the end, once for each column. Squares of sums that have outgrown their unit are
    # still far from overflow.
    largest, part = 0.0, 1.0 / (unit * unit)
    for e in range(count):
        size[e] *= part
        largest = max(largest, size[e])
    return largest


@plain
def put(count, index, values, out):  # type: ignore[no-untyped-def]
    """Write values to their columns; without an index to the first ones."""
    if index.shape[0] == 0:
        for j in range(count):
            out[j] = values[j]
    else:
        for e in range(count):
            out[index[e]] = values[e]


@plain
def count_entries(row):  # type: ignore[no-untyped-def]
    """Return the number of entries that are not zero; -1 if an entry is not finite."""
    # Two counts and no early return, which would keep the loop from being vectorised.
    count, finite = 0, 0
    for j in range(row.shape[0]):
        count += row[j] != 0.0
        finite += abs(row[j]) < math.inf
    return count if finite == row.shape[0] else -1


@plain
def spread(places, entries, value):  # type: ignore[no-untyped-def]
    """Write a whole sample, from its entries."""
    for j in range(value.shape[0]):
        value[j] = 0.0
    for e in range(places.shape[0]):
        value[places[e] + 1] = entries[e]


@plain
def shift(row, value):  # type: ignore[no-untyped-def]
    """Write a whole sample, behind the place of the intercept."""
    value[0] = 0.0
    for j in range(row.shape[0]):
        value[j + 1] = row[j]


@plain
def pack_stored(places, entries, count, index, value):  # type: ignore[no-untyped-def]
    """Write places and values of entries that are not zero."""
    # Without a branch: each entry is written, and the next one overwrites it if it was zero.
    for e in range(places.shape[0]):
        index[count], value[count] = places[e] + 1, entries[e]
        count += entries[e] != 0.0


@plain
def pack(row, count, index, value):  # type: ignore[no-untyped-def]
    """Write places and values of a row's entries that are not zero."""
    for j in range(row.shape[0]):
        index[count], value[count] = j + 1, row[j]
        count += row[j] != 0.0


@plain
def pack_whole(count, sample, index, value):  # type: ignore[no-untyped-def]
    """Write places and values of the entries of a whole sample that are not zero."""
    found = 0
    for j in range(count):
        index[found], value[found] = j, sample[j]
        found += sample[j] != 0.0
    return found


@plain
def scale_by(count, index, factor, value, out, scale):  # type: ignore[no-untyped-def]
    """Write values times the factors of their columns."""
    if index.shape[0] == 0:
        for j in range(count):
            out[j] = value[j] * factor[j] * scale
    else:
        for e in range(count):
            out[e] = value[e] * factor[index[e]] * scale


@compiled
def move_means(gain, raw, mean, inverse, top, value):  # type: ignore[no-untyped-def]
    """Move the means of all columns but the first towards a sample, and measure it from them.

    Returns the sum of the magnitudes of the inputs, and how many are farther out than all before.
    """
    total, far = abs(value[0]), 0.0  # of the same type, so that compilers vectorise
    for j in range(1, mean.shape[0]):
        mean[j] += gain * (raw[j] - mean[j])
        away = raw[j] - mean[j]
        value[j] = away * inverse[j]
        total += abs(value[j])
        far += 1.0 if abs(away) > top[j] else 0.0
    return total, int(far)


@compiled
def largest(values):  # type: ignore[no-untyped-def]
    """Return the largest magnitude; zero of no values."""
    found = 0.0
    for j in range(values.shape[0]):
        found = max(found, abs(values[j]))
    return found


@compiled
def magnitude(count, values):  # type: ignore[no-untyped-def]
    """Return the sum of the magnitudes of the first ``count`` values."""
    total = 0.0
    for j in range(count):
        total += abs(values[j])
    return total
