"""Compiled loops of the products pool. Each has a plain NumPy twin in the tests.

Pairs of columns ``i <= j`` are numbered row by row of the upper triangle: those of column ``i``
start at ``starts[i]``, in the order of ``j``. A call does the pairs of some columns, which are
counted from both ends in turn, from ``begin`` to ``stop``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mixnorm._compile import ENTRY, INNER


# No entry is NaN; without saying so, smallest and largest are found one entry at a time.
@njit(**ENTRY, cache=True, nogil=True, fastmath={"nnan", "nsz"})
def dense_ranges(Z, starts, lows, highs, begin, stop):  # type: ignore[no-untyped-def]
    """Write the smallest and largest products of two rows of ``Z`` into ``lows`` and ``highs``."""
    n_columns, n_samples = Z.shape
    for c in range(begin, stop):
        i = _alternate_ends(c, n_columns)  # a thread's share of early and late rows is fair
        for j in range(i, n_columns):
            low = high = Z[i, 0] * Z[j, 0]
            for s in range(n_samples):
                value = Z[i, s] * Z[j, s]
                low = min(low, value)
                high = max(high, value)
            lows[starts[i] + j - i], highs[starts[i] + j - i] = low, high


@njit(**ENTRY, cache=True, nogil=True)
def sparse_ranges(  # type: ignore[no-untyped-def]
    pointers, rows, values, row_pointers, columns, row_values, starts, lows, highs, begin, stop,
):  # fmt: skip
    """Do what ``dense_ranges`` does, for a matrix given by columns and by rows."""
    n_columns, n_samples = len(pointers) - 1, len(row_pointers) - 1
    for c in range(begin, stop):
        i = _alternate_ends(c, n_columns)
        low = np.zeros(n_columns - i, dtype=values.dtype)
        high = np.zeros(n_columns - i, dtype=values.dtype)
        count = np.zeros(n_columns - i, dtype=np.int64)
        for t in range(pointers[i], pointers[i + 1]):
            row = rows[t]
            for u in range(row_pointers[row], row_pointers[row + 1]):
                j = columns[u] - i
                if j >= 0:
                    value = values[t] * row_values[u]
                    # Where a product is nowhere zero, the zeros to start from do not count.
                    low[j] = min(low[j], value) if count[j] else value
                    high[j] = max(high[j], value) if count[j] else value
                    count[j] += 1
        for j in range(n_columns - i):
            if count[j] < n_samples:  # some row has a zero that is not stored
                low[j], high[j] = min(low[j], 0), max(high[j], 0)
            lows[starts[i] + j], highs[starts[i] + j] = low[j], high[j]


@njit(**ENTRY, cache=True, nogil=True, fastmath={"contract"})
def sparse_norms(  # type: ignore[no-untyped-def]
    pointers, rows, values, row_pointers, columns, row_values, starts, residual, squared, norms,
    begin, stop,
):  # fmt: skip
    """Write the norm of the gradient of products of two columns into ``norms``.

    Only rows in which both columns have entries are visited.
    """
    n_columns, n_outputs = len(pointers) - 1, residual.shape[1]
    for c in range(begin, stop):
        i = _alternate_ends(c, n_columns)
        gradient = np.zeros((n_columns - i, n_outputs), dtype=residual.dtype)
        for t in range(pointers[i], pointers[i + 1]):
            row = rows[t]
            for u in range(row_pointers[row], row_pointers[row + 1]):
                j = columns[u] - i
                if j >= 0:
                    value = values[t] * row_values[u]
                    for k in range(n_outputs):
                        gradient[j, k] += value * residual[row, k]
        for j in range(n_columns - i):
            norm = 0.0
            for k in range(n_outputs):
                part = np.float64(gradient[j, k])  # its square may overflow in float32
                norm += part * part if squared else abs(part)
            norms[starts[i] + j] = np.sqrt(norm) if squared else norm


@njit(**ENTRY, cache=True, nogil=True, fastmath={"contract"})
def sparse_gradients(  # type: ignore[no-untyped-def]
    pointers, rows, values, row_pointers, columns, row_values, starts, residual, gradients,
    begin, stop,
):  # fmt: skip
    """Add the gradients of products of two columns, one per row, to ``gradients``."""
    n_columns, n_outputs = len(pointers) - 1, residual.shape[1]
    for c in range(begin, stop):
        i = _alternate_ends(c, n_columns)
        for t in range(pointers[i], pointers[i + 1]):
            row = rows[t]
            for u in range(row_pointers[row], row_pointers[row + 1]):
                j = columns[u] - i
                if j >= 0:
                    value = values[t] * row_values[u]
                    for k in range(n_outputs):
                        gradients[starts[i] + j, k] += value * residual[row, k]


@njit(**INNER, cache=True)
def _alternate_ends(c, n):  # type: ignore[no-untyped-def]
    """Return numbers from both ends in turn: early rows of a triangle are long, late ones short."""
    return c // 2 if c % 2 == 0 else n - 1 - c // 2
