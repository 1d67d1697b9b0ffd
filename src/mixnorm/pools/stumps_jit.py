"""Compiled loops of the stumps pool. Each has a plain NumPy twin in the tests."""

from __future__ import annotations

import numpy as np
from numba import njit

from mixnorm._compile import ENTRY, INNER


@njit(**INNER, cache=True, nogil=True)
def first_from(edges, low, high, value):  # type: ignore[no-untyped-def]
    """Return the place of the first edge from ``low`` to ``high`` that is not below a value."""
    while low < high:  # halved each time
        middle = (low + high) // 2
        if edges[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@njit(**ENTRY, cache=True, nogil=True)
def code_columns(X, edges, starts, codes, begin, stop):  # type: ignore[no-untyped-def]
    """Write into ``codes`` how many thresholds of its column lie below each entry of some rows.

    ``edges[starts[j]:starts[j + 1]]`` are the thresholds of column ``j``, in increasing order.
    """
    # Columns outside, so that the thresholds of one stay in the cache for all rows of the call.
    for j in range(X.shape[1]):
        first, last = starts[j], starts[j + 1]
        for i in range(begin, stop):
            codes[j, i] = first_from(edges, first, last, X[i, j]) - first


@njit(**ENTRY, cache=True, nogil=True, fastmath={"contract"})
def threshold_scores(codes, modes, starts, columns, residual, total, squared, scores, begin, stop):  # type: ignore[no-untyped-def]
    """Write the norm of the gradient of every stump of ``columns[begin:stop]`` into ``scores``.

    The gradient of ``1[x <= threshold]`` is the sum of the residuals of the rows at or below it:
    sums by code, added up. Rows with a column's most frequent code are not visited, their sum being
    what is left of the total.
    """
    n_samples, n_outputs = residual.shape
    for c in range(begin, stop):
        j = columns[c]
        first, count = starts[j], starts[j + 1] - starts[j]
        if count == 0:
            continue
        sums = np.zeros((count + 1, n_outputs), dtype=residual.dtype)
        mode = modes[j]
        for i in range(n_samples):
            code = codes[j, i]
            if code != mode:
                for k in range(n_outputs):
                    sums[code, k] += residual[i, k]
        # What is left of the total: of sparse data nearly all rows have the code of zero.
        for k in range(n_outputs):
            rest = total[k]
            for code in range(count + 1):
                rest -= sums[code, k]
            sums[mode, k] = rest
        # In double: rounding of a running sum would grow with the number of thresholds.
        running = np.zeros(n_outputs, dtype=np.float64)
        for b in range(count):
            norm = 0.0
            for k in range(n_outputs):
                running[k] += sums[b, k]
                norm += running[k] * running[k] if squared else abs(running[k])
            scores[first + b] = np.sqrt(norm) if squared else norm


@njit(**ENTRY, cache=True, nogil=True)
def stump_scores(X, columns, starts, edges, tables, scores, begin, stop):  # type: ignore[no-untyped-def]
    """Add to ``scores`` what the stumps of some rows give.

    Column ``columns[c]`` has the thresholds ``edges[starts[c]:starts[c + 1]]``, and for each number
    of thresholds below an entry a row of ``tables``, from ``starts[c] + c`` on.
    """
    n_outputs = scores.shape[1]
    for i in range(begin, stop):
        for c in range(len(columns)):
            # A column with ``t`` thresholds has ``t + 1`` rows in the tables: hence the ``c`` more.
            row = first_from(edges, starts[c], starts[c + 1], X[i, columns[c]]) + c
            for k in range(n_outputs):
                scores[i, k] += tables[row, k]
