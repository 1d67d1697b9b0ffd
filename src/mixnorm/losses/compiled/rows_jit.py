"""Losses of one sample, compiled: value and derivative in its scores.

Engines that learn from one sample at a time call them with the code and the constants that a loss
declares. The tests compare each with the loss itself.
"""

from __future__ import annotations

import math

from numba import njit

from mixnorm._compile import ENTRY, INNER
from mixnorm.losses.codes import LOGISTIC, MARGIN_BOX, PERCEPTRON, SOFTMAX


@njit(**ENTRY, cache=True, nogil=True)
def best_class(scores):  # type: ignore[no-untyped-def]
    """Return the class with the largest score, the first of several."""
    best = 0
    for r in range(1, scores.shape[0]):
        if scores[r] > scores[best]:
            best = r
    return best


@njit(**ENTRY, cache=True, nogil=True)
def label_loss(code, constants, scores, label, residual):  # type: ignore[no-untyped-def]
    """Return the loss of a joint loss; write its derivative into ``residual``."""
    n_outputs = scores.shape[0]
    if code == SOFTMAX:
        largest = -math.inf
        for r in range(n_outputs):
            residual[r] = scores[r] + (constants[0] if r != label else 0.0)
            largest = max(largest, residual[r])
        own, total = residual[label] - largest, 0.0
        for r in range(n_outputs):
            residual[r] = math.exp(residual[r] - largest)
            total += residual[r]
        rest = 0.0
        for r in range(n_outputs):
            residual[r] /= total
            if r != label:
                rest += residual[r]
        residual[label] = -rest
        return math.log(total) - own
    for r in range(n_outputs):
        residual[r] = 0.0
    if code == PERCEPTRON:
        best = best_class(scores)
        if best == label:
            return 0.0
        residual[best], residual[label] = 1.0, -1.0
        return 1.0
    worst, offence = label, 0.0
    for r in range(n_outputs):
        excess = 1.0 + scores[r] - scores[label]
        if r != label and excess > offence:
            worst, offence = r, excess
    if worst != label:
        residual[worst], residual[label] = 1.0, -1.0
    return offence


@njit(**ENTRY, cache=True, nogil=True)
def number_loss(code, constants, score, target):  # type: ignore[no-untyped-def]
    """Return a scalar loss of one score, and its derivative."""
    if code == LOGISTIC:
        margin = target * score
        if margin > 0.0:
            small = math.exp(-margin)
            return math.log1p(small), -target * small / (1.0 + small)
        small = math.exp(margin)
        return math.log1p(small) - margin, -target / (1.0 + small)
    if code == MARGIN_BOX:
        loss, slope = box_loss(constants, 1.0 - target * score)
        return loss, -target * slope
    return box_loss(constants, score - target)


@njit(**INNER, cache=True, nogil=True)
def box_loss(constants, distance):  # type: ignore[no-untyped-def]
    """Return the loss of a :class:`~mixnorm.losses.box.Box` at a distance, and its derivative."""
    curvature, kink, low, high = constants[0], constants[1], constants[2], constants[3]
    rest = distance - min(max(distance, -kink), kink)
    if (low == 0.0 and rest < 0.0) or (high == 0.0 and rest > 0.0):
        return 0.0, 0.0
    if curvature == 0.0:
        slope = high if rest > 0.0 else (low if rest < 0.0 else 0.0)
        return rest * slope, slope
    free = rest / curvature
    slope = min(max(free, low), high)
    if slope == free:
        return 0.5 * rest * slope, slope
    return (rest - 0.5 * curvature * slope) * slope, slope
