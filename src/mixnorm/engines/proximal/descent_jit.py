"""Compiled block coordinate descent. Each loop has a plain NumPy twin in the tests.

A row of the weights is one block. ``kind`` says which norm a row has: 1, 2, or 0 for the largest
magnitude.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "arcp", "reassoc"})
def shrink(row, amount, kind):  # type: ignore[no-untyped-def]
    """Overwrite ``row`` with its proximal point for ``amount`` times its norm."""
    size = row.shape[0]
    if kind == 2:
        square = row[0] * row[0]
        for r in range(1, size):
            square += row[r] * row[r]
        norm = np.sqrt(square)
        if norm <= amount:
            row[:] = 0.0
        else:
            scale = 1.0 - amount / norm
            for r in range(size):
                row[r] *= scale
    elif kind == 1:
        for r in range(size):
            if row[r] > amount:
                row[r] -= amount
            elif row[r] < -amount:
                row[r] += amount
            else:
                row[r] = 0.0
    else:
        cut = level(row, amount)
        for r in range(size):
            if row[r] > cut:
                row[r] = cut
            elif row[r] < -cut:
                row[r] = -cut


@njit(cache=True, nogil=True)
def level(row, amount):  # type: ignore[no-untyped-def]
    """Return the cut ``c`` with ``sum(max(|row| - c, 0)) = amount``; zero where the sum is less.

    Entries at or below the cut drop out until none does (Michelot's method). In exact arithmetic
    the cut never falls, so that no entry comes back. Rounding may lower it a little and bring
    entries back that are as large as the cut, but for rounding: it is right then. Every other
    round has fewer entries than the one before, so that there are at most as many as entries.
    """
    size = row.shape[0]
    total, count = row[0] * 0.0, 0
    for r in range(size):
        total += abs(row[r])
        count += 1
    if total <= amount:
        return total * 0.0
    cut = (total - amount) / count
    for _ in range(size):
        part, left = row[0] * 0.0, 0
        for r in range(size):
            value = abs(row[r])
            if value > cut:
                part += value
                left += 1
        if left >= count or left == 0:  # none is left where rounding hides the amount
            break
        count = left
        cut = (part - amount) / count
    return cut


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "arcp", "reassoc"})
def minimise_row(own, slope, steep, alpha, kind, move):  # type: ignore[no-untyped-def]
    """Minimise over one row, whose curvature is ``steep``; tell whether it changed.

    The change is left in ``move``.
    """
    size = own.shape[0]
    for r in range(size):
        move[r] = own[r] - slope[r] / steep
    shrink(move, alpha / steep, kind)
    change = move[0] * 0.0
    for r in range(size):
        move[r] -= own[r]
        own[r] += move[r]
        change += abs(move[r])
    return change > 0.0


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "arcp", "reassoc"})
def shared_epochs(gram, weights, gradient, steps, alpha, kind, epochs):  # type: ignore[no-untyped-def]
    """Go over all rows ``epochs`` times; ``gradient`` is kept up to date with ``weights``.

    ``gram`` is the Hessian of every output; ``steps`` its diagonal.
    """
    n_rows, n_outputs = weights.shape
    move = np.empty(n_outputs, weights.dtype)
    for _ in range(epochs):
        for j in range(n_rows):
            if steps[j] <= 0.0:
                continue
            own, slope = weights[j], gradient[j]
            if minimise_row(own, slope, steps[j], alpha, kind, move):
                for i in range(n_rows):
                    factor, line = gram[j, i], gradient[i]
                    for r in range(n_outputs):
                        line[r] += factor * move[r]


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "arcp", "reassoc"})
def separate_epochs(gram, weights, gradient, steps, alpha, kind, epochs):  # type: ignore[no-untyped-def]
    """Do the same where each output has its own Hessian, ``gram`` of shape (row, row, output)."""
    n_rows, n_outputs = weights.shape
    move = np.empty(n_outputs, weights.dtype)
    for _ in range(epochs):
        for j in range(n_rows):
            if steps[j] <= 0.0:
                continue
            own, slope = weights[j], gradient[j]
            if minimise_row(own, slope, steps[j], alpha, kind, move):
                for i in range(n_rows):
                    factors, line = gram[j, i], gradient[i]
                    for r in range(n_outputs):
                        line[r] += factors[r] * move[r]


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "arcp", "reassoc"})
def residual_epochs(columns, weights, residual, steps, alpha, kind, epochs):  # type: ignore[no-untyped-def]
    """Do the same for least squares from the columns, ``(row, sample)``, without their products.

    ``residual``, ``(sample, output)``, is kept up to date with ``weights``.
    """
    n_rows, n_outputs = weights.shape
    n_samples = residual.shape[0]
    move = np.empty(n_outputs, weights.dtype)
    slope = np.empty(n_outputs, weights.dtype)
    for _ in range(epochs):
        for j in range(n_rows):
            if steps[j] <= 0.0:
                continue
            own, column = weights[j], columns[j]
            slope[:] = 0.0
            for i in range(n_samples):
                value, line = column[i], residual[i]
                for r in range(n_outputs):
                    slope[r] += value * line[r]
            if minimise_row(own, slope, steps[j], alpha, kind, move):
                for i in range(n_samples):
                    value, line = column[i], residual[i]
                    for r in range(n_outputs):
                        line[r] += value * move[r]
