"""The problem of kernel weights, on the dual variables that were met on the way.

Of these the best combination is sought, together with the weights of the kernels that go with it:
a problem of a handful of unknowns, solved by the same alternation as the whole
(:eq:`reduced-problem`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mixnorm._compile import ENTRY, INNER
from mixnorm.engines.multikernel.penalty import LEAST_SIZE

# Most sweeps over all pairs: of at most seven entries, they need far fewer unless rounding stirs.
_MOST_SWEEPS = 200
# Sweeps end when they raise the value by less than this part of it, and the alternation when
# weights change by less than this part of the largest. Both are well below any tolerance.
_LEAST_RELATIVE_RISE, _LEAST_CHANGE = 1e-10, 1e-8


@njit(**INNER, cache=True, error_model="numpy")
def combine(H, linear, t, bounded):  # type: ignore[no-untyped-def]
    """Maximise ``linear . t - t'Ht / 2`` over ``t >= 0``, with a sum of at most one if bounded.

    Works in place, by moving between pairs of entries; what the sum lacks to one is an entry too,
    and has the number -1. A move between two entries keeps the sum. Without a bound only moves from
    the entry -1 are made, that is, single entries change.
    """
    size = t.shape[0]
    slope = linear - H @ t
    for _ in range(_MOST_SWEEPS):
        moved = 0.0
        for i in range(-1, size if bounded else 0):
            for j in range(size):
                if i == j or (i > j):  # each pair once: moves have either sign
                    continue
                rise = slope[j] - (slope[i] if i >= 0 else 0.0)
                bend = H[j, j]
                if i >= 0:
                    bend += H[i, i] - 2.0 * H[i, j]
                if not bend > 0.0:  # twice the same dual variables, up to rounding
                    continue
                # The maximum of the parabola along the move, cut where an entry becomes zero.
                step = rise / bend
                step = max(step, -t[j])
                if i >= 0:
                    step = min(step, t[i])
                elif bounded:
                    step = min(step, 1.0 - np.sum(t))
                if step == 0.0:
                    continue
                t[j] += step
                if i >= 0:
                    t[i] -= step
                for k in range(size):
                    slope[k] -= step * (H[k, j] - (H[k, i] if i >= 0 else 0.0))
                moved += abs(step * rise)
        if moved <= _LEAST_RELATIVE_RISE * abs(linear @ t):
            break


@njit(**ENTRY, cache=True, error_model="numpy")
def compute_energies(G, t, out):  # type: ignore[no-untyped-def]
    """Write ``t'G_m t`` for every kernel into ``out``."""
    for m in range(G.shape[0]):
        total = 0.0
        for i in range(t.shape[0]):
            for j in range(t.shape[0]):
                total += t[i] * t[j] * G[m, i, j]
        out[m] = max(total, 0.0)  # rounding may leave a form slightly negative


@njit(**INNER, cache=True, error_model="numpy")
def compute_touching_weights(sizes, s, scales, offsets, out):  # type: ignore[no-untyped-def]
    """Write ``KernelPenalty.weights`` into ``out`` (:eq:`touching-weights`)."""
    # Powers of ratios to the largest: those of the sizes themselves could overflow.
    largest = np.max(sizes)
    total = 0.0
    for m in range(sizes.shape[0]):
        total += (sizes[m] / largest) ** s
    size = largest * total ** (1.0 / s)
    for m in range(sizes.shape[0]):
        inside = max(sizes[m], LEAST_SIZE * size)
        slope = size * (inside / size) ** (s - 1.0) + offsets[m]
        out[m] = inside / (slope * scales[m])


@njit(**ENTRY, cache=True, error_model="numpy")
def alternate(G, E, linear, s, scales, offsets, bounded, weights, t, rounds):  # type: ignore[no-untyped-def]
    """Improve the weights of kernels and the combination ``t`` in turn, in place."""
    found, sizes, new = np.empty_like(weights), np.empty_like(weights), np.empty_like(weights)
    for _ in range(rounds):
        # For fixed weights the penalty is quadratic: the forms of the kernels add up to one.
        H = E.copy()
        for m in range(G.shape[0]):
            H += weights[m] * G[m]
        combine(H, linear, t, bounded)
        compute_energies(G, t, found)
        largest = 0.0
        for m in range(G.shape[0]):
            sizes[m] = weights[m] * np.sqrt(found[m] * scales[m])
            largest = max(largest, sizes[m])
        if not largest > 0.0:  # the best combination is zero, which touches no weights
            return
        compute_touching_weights(sizes, s, scales, offsets, new)
        change, top = 0.0, 0.0
        for m in range(G.shape[0]):
            change = max(change, abs(new[m] - weights[m]))
            top = max(top, new[m])
            weights[m] = new[m]
        if change <= _LEAST_CHANGE * top:
            return
