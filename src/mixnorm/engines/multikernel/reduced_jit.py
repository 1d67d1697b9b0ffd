"""The problem of kernel weights, on the dual variables that were met on the way.

Of these the best combination is sought, together with the weights of the kernels that go with it:
a problem of a handful of unknowns, solved by the same alternation as the whole.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, error_model="numpy")
def combine(H, linear, t, bounded):  # type: ignore[no-untyped-def]
    """Maximise ``linear . t - t'Ht / 2`` over ``t >= 0``, with a sum of at most one if bounded.

    Works in place, by moving between pairs of entries; what the sum lacks to one is an entry too.
    """
    size = t.shape[0]
    slope = linear - H @ t
    for _ in range(200):
        moved = 0.0
        for i in range(-1, size if bounded else 0):  # -1 is what lacks to one
            for j in range(size):
                if i == j or (i > j):
                    continue
                rise = slope[j] - (slope[i] if i >= 0 else 0.0)
                bend = H[j, j]
                if i >= 0:
                    bend += H[i, i] - 2.0 * H[i, j]
                if not bend > 0.0:
                    continue
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
        if moved <= 1e-10 * abs(linear @ t):
            break


@njit(cache=True, error_model="numpy")
def compute_energies(G, t, out):  # type: ignore[no-untyped-def]
    """Write ``t'G_m t`` for every kernel into ``out``."""
    for m in range(G.shape[0]):
        total = 0.0
        for i in range(t.shape[0]):
            for j in range(t.shape[0]):
                total += t[i] * t[j] * G[m, i, j]
        out[m] = max(total, 0.0)


@njit(cache=True, error_model="numpy")
def compute_touching_weights(sizes, s, scales, offsets, out):  # type: ignore[no-untyped-def]
    """Write ``KernelPenalty.weights`` into ``out``."""
    largest = np.max(sizes)
    total = 0.0
    for m in range(sizes.shape[0]):
        total += (sizes[m] / largest) ** s
    size = largest * total ** (1.0 / s)
    for m in range(sizes.shape[0]):
        inside = max(sizes[m], 1e-9 * size)
        slope = size * (inside / size) ** (s - 1.0) + offsets[m]
        out[m] = inside / (slope * scales[m])


@njit(cache=True, error_model="numpy")
def alternate(G, E, linear, s, scales, offsets, bounded, weights, t, rounds):  # type: ignore[no-untyped-def]
    """Improve the weights of kernels and the combination ``t`` in turn, in place."""
    found, sizes, new = np.empty_like(weights), np.empty_like(weights), np.empty_like(weights)
    for _ in range(rounds):
        H = E.copy()
        for m in range(G.shape[0]):
            H += weights[m] * G[m]
        combine(H, linear, t, bounded)
        compute_energies(G, t, found)
        largest = 0.0
        for m in range(G.shape[0]):
            sizes[m] = weights[m] * np.sqrt(found[m] * scales[m])
            largest = max(largest, sizes[m])
        if not largest > 0.0:
            return
        compute_touching_weights(sizes, s, scales, offsets, new)
        change, top = 0.0, 0.0
        for m in range(G.shape[0]):
            change = max(change, abs(new[m] - weights[m]))
            top = max(top, new[m])
            weights[m] = new[m]
        if change <= 1e-8 * top:
            return
