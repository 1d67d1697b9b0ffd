"""The compiled pass of mirror descent in kernel coefficients."""

from __future__ import annotations

import numpy as np
from numba import njit

from mixnorm._compile import ENTRY, INNER


@njit(**ENTRY, cache=True, error_model="numpy")
def link(
    squares: np.ndarray, offsets: np.ndarray, q: float, scale: float, rounds: float, out: np.ndarray
) -> None:
    """Write the weights of the kernels into ``out`` (:eq:`mirror-kernels`).

    With ``v_m = (|theta_m| - rounds * offsets_m)_+`` they are ``v_m^(q-1) / |v|_q^(q-2)``, divided
    by ``scale * |theta_m|``. If ``q`` is infinite, only the largest kernel counts.
    """
    largest = 0.0
    for m in range(squares.shape[0]):
        # The soft threshold of the offset; a square may have drifted to just below zero.
        out[m] = max(0.0, np.sqrt(max(squares[m], 0.0)) - rounds * offsets[m])
        largest = max(largest, out[m])
    if not largest > 0.0:
        for m in range(squares.shape[0]):
            out[m] = 0.0
        return
    # Excesses relative to the largest one: their powers lie between zero and one, for an infinite
    # ``q`` too, and the sum is at least one.
    total = 0.0
    for m in range(squares.shape[0]):
        total += (out[m] / largest) ** q
    size = total ** (1.0 / q)  # of the excesses, divided by the largest
    for m in range(squares.shape[0]):
        if out[m] > 0.0:
            share = (out[m] / largest / size) ** (q - 1.0)
            out[m] = share * largest * size / (scale * np.sqrt(squares[m]))


@njit(
    **INNER,
    cache=True,
    error_model="numpy",
    fastmath={"contract"},
)
def add_pair(up: np.ndarray, down: np.ndarray, row: np.ndarray, factor: float) -> None:
    """Add a row times a factor to one vector, and subtract it from another."""
    # In the precision of the vectors, or each product would be made in double.
    scale = up.dtype.type(factor)
    for j in range(row.shape[0]):
        step = scale * row[j]
        up[j] += step
        down[j] -= step


@njit(**ENTRY, cache=True, error_model="numpy")
def one_pass(
    matrices: list[np.ndarray],
    sums: np.ndarray,
    labels: np.ndarray,
    importance: np.ndarray,
    order: np.ndarray,
    offsets: np.ndarray,
    q: float,
    cost: float,
    rounds: float,
    total: float,
    growing: bool,
    squares: np.ndarray,
    A: np.ndarray,
) -> tuple[float, float, float, int]:
    """Learn from samples one after the other; return rounds, total, losses and mistakes.

    ``sums[m, y]`` are the inner products of ``theta_my`` with all samples, and ``squares`` the
    squared sizes of ``theta_m``. Weights are divided by ``rounds / (total * cost)``, where
    ``total`` counts each sample once: all of them from the start, or as they come (``growing``).
    """
    n_kernels, n_classes = sums.shape[0], sums.shape[1]
    weights, scores = np.empty(n_kernels), np.empty(n_classes)
    lost, mistakes = 0.0, 0
    for i in order:
        step = importance[i]
        # Weights change in every round, also without a miss, as ``rounds`` does. Computing them
        # takes time of the kernels, little beside the update of all sums.
        if rounds > 0.0:
            link(squares, offsets, q, rounds / (total * cost), rounds, weights)
        else:
            weights[:] = 0.0
        for k in range(n_classes):
            scores[k] = 0.0
        # Most weights are zero under a sparse norm, and their kernels are passed over.
        for m in range(n_kernels):
            if weights[m] > 0.0:
                for k in range(n_classes):
                    scores[k] += weights[m] * sums[m, k, i]
        y, rival = labels[i], -1
        for k in range(n_classes):
            if k != y and (rival < 0 or scores[k] > scores[rival]):
                rival = k
        hinge = 1.0 - scores[y] + scores[rival]
        # Ties count as mistakes: before the first round all scores are the same.
        mistakes += int(scores[rival] >= scores[y])
        rounds += step
        if growing:
            total += step
        if hinge <= 0.0:
            continue
        lost += step * hinge
        A[i, y] += step
        A[i, rival] -= step
        # The sizes of all kernels follow, used or not: an unused one may come in later. The square
        # is updated before the sums, which enter it as they were (:eq:`mirror-sizes`).
        for m in range(n_kernels):
            rise = sums[m, y, i] - sums[m, rival, i]
            squares[m] += 2.0 * step * (rise + step * matrices[m][i, i])
            add_pair(sums[m, y], sums[m, rival], matrices[m][i], step)
    return rounds, total, lost, mistakes
