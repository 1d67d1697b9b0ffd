"""Compiled loops of the boxes pool. Each has a plain NumPy twin in the tests."""

from __future__ import annotations

import numpy as np
from numba import njit

from mixnorm._compile import ENTRY, INNER
from mixnorm.pools.stumps_jit import first_from


@njit(**ENTRY, cache=True, nogil=True, fastmath={"contract"})
def parent_sums(rows, ends, residual, totals, begin, stop):  # type: ignore[no-untyped-def]
    """Write the sums of the residuals of some parents' samples, ``rows[ends[p]:ends[p + 1]]``."""
    for p in range(begin, stop):
        totals[p] = 0.0
        for place in range(ends[p], ends[p + 1]):
            for k in range(residual.shape[1]):
                totals[p, k] += residual[rows[place], k]


@njit(**ENTRY, cache=True, nogil=True, fastmath={"contract"})
def best_sides(  # type: ignore[no-untyped-def]
    codes, modes, starts, columns, rows, ends, residual, totals, taken, both, squared, best,
    begin, stop,
):  # fmt: skip
    """Find for parents and columns the side that leaves the largest gradient.

    Pairs of them are numbered parent by parent, and those from ``begin`` to ``stop`` are looked at.
    ``totals`` are the sums of the parents' residuals. Into ``best[p, c]`` go the norm of
    the gradient, the number of the threshold among those of the column, and 1 where the upper part
    is better than the lower (looked at only if ``both[p]``). A side that keeps all samples or none
    is left out, and so are those in ``taken``: sorted numbers ``(2 p + upper) * T + t`` for
    threshold ``t`` of all ``T``. Samples with a column's most frequent code are only counted: their
    sum is what is left of the parent's.
    """
    n_columns, n_outputs, n_thresholds = len(columns), residual.shape[1], starts[-1]
    for task in range(begin, stop):
        p, c = task // n_columns, task % n_columns
        j = columns[c]
        first, count, mode = starts[j], starts[j + 1] - starts[j], modes[j]
        best[p, c, 0] = 0.0
        # In double, whatever the residual: sums of many rows are subtracted from each other below.
        sums = np.zeros((count + 1, n_outputs))
        sizes = np.zeros(count + 1, dtype=np.int64)
        for place in range(ends[p], ends[p + 1]):
            i = rows[place]
            code = codes[j, i]
            sizes[code] += 1
            if code != mode:
                for k in range(n_outputs):
                    sums[code, k] += residual[i, k]
        # The most frequent code may have nearly all rows, as zero in sparse data.
        for k in range(n_outputs):
            rest = totals[p, k]
            for code in range(count + 1):
                rest -= sums[code, k]
            sums[mode, k] = rest
        running = np.zeros(n_outputs)
        below, all_rows = 0, ends[p + 1] - ends[p]
        for t in range(count):
            for k in range(n_outputs):
                running[k] += sums[t, k]
            below += sizes[t]
            # A bin without samples repeats the threshold before; the last one leaves no side above.
            if sizes[t] == 0 or below == all_rows:
                continue
            for upper in range(2 if both[p] else 1):
                norm = 0.0
                for k in range(n_outputs):
                    part = totals[p, k] - running[k] if upper else running[k]
                    norm += part * part if squared else abs(part)
                if norm > best[p, c, 0] and not _has(
                    taken, (2 * p + upper) * n_thresholds + first + t
                ):
                    best[p, c, 0], best[p, c, 1], best[p, c, 2] = norm, t, upper
        if squared:
            best[p, c, 0] = np.sqrt(best[p, c, 0])


@njit(**INNER, cache=True, nogil=True)
def _has(values, value):  # type: ignore[no-untyped-def]
    """Tell whether sorted ``values`` have ``value``."""
    place = np.searchsorted(values, value)
    return place < len(values) and values[place] == value


@njit(**ENTRY, cache=True, nogil=True)
def box_scores(X, columns, lows, highs, weights, scores, begin, stop):  # type: ignore[no-untyped-def]
    """Add to ``scores`` the weights of the boxes that some rows lie in.

    Box ``b`` has the sides ``lows[b, s] < x <= highs[b, s]`` for the entry ``x`` in column
    ``columns[b, s]``.
    """
    n_boxes, n_sides = columns.shape  # boxes of fewer sides are filled up with true ones
    for i in range(begin, stop):
        for b in range(n_boxes):
            inside = True
            for s in range(n_sides):
                value = X[i, columns[b, s]]
                if not (lows[b, s] < value <= highs[b, s]):
                    inside = False
                    break
            if inside:
                for k in range(scores.shape[1]):
                    scores[i, k] += weights[b, k]


@njit(**ENTRY, cache=True, nogil=True)
def table_scores(X, columns, starts, edges, pairs, firsts, sums, scores, begin, stop):  # type: ignore[no-untyped-def]
    """Add to ``scores`` what tables of sums of weights have for some rows.

    A row lies in the cell of a table that the numbers of thresholds below its entries name, in one
    column or two: ``pairs`` has their places in ``columns``.
    """
    n_columns, n_outputs = len(columns), scores.shape[1]
    for i in range(begin, stop):
        codes = np.empty(n_columns, dtype=np.int64)
        for c in range(n_columns):
            value = X[i, columns[c]]
            codes[c] = first_from(edges, starts[c], starts[c + 1], value) - starts[c]
        for t in range(len(pairs)):
            cell = codes[pairs[t, 0]]
            if pairs[t, 1] >= 0:
                second = pairs[t, 1]
                # Row by row: the first column's code times the number of codes of the second.
                cell = cell * (starts[second + 1] - starts[second] + 1) + codes[second]
            cell += firsts[t]
            for k in range(n_outputs):
                scores[i, k] += sums[cell, k]
