"""Compiled block coordinate descent. Each loop has a plain NumPy twin in the tests.

A row of the weights is one block. ``kind`` says which norm a row has: 1, 2, or 0 for the largest
magnitude.

Fast mathematics lets compilers reorder sums, which vectorises the loops over outputs. The flags
leave out ``nnan`` and ``ninf``: the caller has to see an overflow, to give the step up.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mixnorm._compile import ENTRY, INNER


@njit(
    **INNER,
    cache=True,
    nogil=True,
    fastmath={"contract", "nsz", "arcp", "reassoc"},
)
def shrink(row, amount, kind):  # type: ignore[no-untyped-def]
    """Overwrite ``row`` with its proximal point for ``amount`` times its norm."""
    size = row.shape[0]
    if kind == 2:
        square = row[0] * row[0]
        for r in range(1, size):
            square += row[r] * row[r]
        norm = np.sqrt(square)
        # Compared before dividing: a row of zeros has norm zero.
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
        # By Moreau's identity this is the row less its projection on the l1 ball of radius
        # ``amount``: all entries above a common level are cut to it.
        cut = level(row, amount)
        for r in range(size):
            if row[r] > cut:
                row[r] = cut
            elif row[r] < -cut:
                row[r] = -cut


@njit(**INNER, cache=True, nogil=True)
def level(row, amount):  # type: ignore[no-untyped-def]
    """Return the cut ``c`` with ``sum(max(|row| - c, 0)) = amount`` (:eq:`common-cut`).

    It is zero if the magnitudes sum to less than ``amount``.
    """
    # Michelot's method: entries at or below the cut drop out until none does. In exact arithmetic
    # the cut never falls, so that no entry comes back. Rounding may lower it a little and bring
    # entries back that differ from the cut by rounding only; the cut is right then. Every other
    # round has fewer entries than the one before, so that there are at most ``size`` rounds.
    size = row.shape[0]
    # ``row[0] * 0.0`` is a zero of the type of the row. A literal would be a double, and turn the
    # whole loop to double precision for single-precision data.
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
        # None is left if ``amount`` is so small that rounding hides it; the cut stays as it is.
        if left >= count or left == 0:
            break
        count = left
        cut = (part - amount) / count
    return cut


@njit(
    **INNER,
    cache=True,
    nogil=True,
    fastmath={"contract", "nsz", "arcp", "reassoc"},
)
def minimise_row(own, slope, steep, alpha, kind, move):  # type: ignore[no-untyped-def]
    """Minimise over one row (:eq:`row-step`), whose curvature is ``steep``; tell if it changed.

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
    # Most rows of a sparse solution stay at zero. Their change is exactly zero, and the caller can
    # skip the update of the gradient, which is nearly all of the work.
    return change > 0.0


@njit(**ENTRY, cache=True, nogil=True, fastmath={"contract", "nsz", "arcp", "reassoc"})
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
                # The matrix is symmetric: row j is read in place of column j, which is contiguous.
                for i in range(n_rows):
                    factor, line = gram[j, i], gradient[i]
                    for r in range(n_outputs):
                        line[r] += factor * move[r]


@njit(**ENTRY, cache=True, nogil=True, fastmath={"contract", "nsz", "arcp", "reassoc"})
def separate_epochs(gram, weights, gradient, steps, alpha, kind, epochs):  # type: ignore[no-untyped-def]
    """Do the same if each output has its own Hessian, ``gram`` of shape (row, row, output).

    ``steps`` are the largest diagonal entries over the outputs. A row's norm couples the outputs,
    and only with one curvature for all of them is the step a proximal map of that norm.
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
                    factors, line = gram[j, i], gradient[i]
                    for r in range(n_outputs):
                        line[r] += factors[r] * move[r]


@njit(**ENTRY, cache=True, nogil=True, fastmath={"contract", "nsz", "arcp", "reassoc"})
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
            # The gradient of a row is computed when it is needed, in time of the samples. Keeping
            # all gradients up to date would take that time once for each row.
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
