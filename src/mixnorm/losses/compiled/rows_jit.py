"""Losses of one sample, compiled: value and derivative in its scores.

Engines that learn from a sample at a time call them. Each loss is that of the class named beside
its code, and the tests hold the two together.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

PERCEPTRON = 0  # one for a mistake; its derivative is that of the hinge of the class predicted
MULTICLASS_HINGE = 1
SOFTMAX = 2  # MarginSoftmax, and MultinomialLogistic with a margin of zero
SQUARED = 3
ABSOLUTE = 4
HUBER = 5
EPSILON_INSENSITIVE = 6
HINGE = 7
SQUARED_HINGE = 8
LOGISTIC = 9


@njit(cache=True, nogil=True)
def best_class(scores):  # type: ignore[no-untyped-def]
    """Return the class with the largest score, the first of several."""
    best = 0
    for r in range(1, scores.shape[0]):
        if scores[r] > scores[best]:
            best = r
    return best


@njit(cache=True, nogil=True)
def label_loss(code, constant, scores, label, residual):  # type: ignore[no-untyped-def]
    """Return the loss of a joint loss; write its derivative into ``residual``.

    ``constant`` is the margin of the soft-max.
    """
    n_outputs = scores.shape[0]
    if code == SOFTMAX:
        largest = -math.inf
        for r in range(n_outputs):
            residual[r] = scores[r] + (constant if r != label else 0.0)
            largest = max(largest, residual[r])
        own, total = residual[label] - largest, 0.0
        for r in range(n_outputs):
            residual[r] = math.exp(residual[r] - largest)
            total += residual[r]
        for r in range(n_outputs):
            residual[r] /= total
        rest = 0.0
        for r in range(n_outputs):
            if r != label:
                rest += residual[r]
        residual[label] = -rest
        return math.log(total) - own
    residual[:] = 0.0
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


@njit(cache=True, nogil=True)
def number_loss(code, constant, score, target):  # type: ignore[no-untyped-def]
    """Return a scalar loss of one score, and its derivative.

    ``constant`` is Huber's bend, or the width of the insensitive tube.
    """
    if code >= HINGE:
        margin = target * score
        if code == LOGISTIC:
            if margin > 0.0:
                small = math.exp(-margin)
                return math.log1p(small), -target * small / (1.0 + small)
            small = math.exp(margin)
            return math.log1p(small) - margin, -target / (1.0 + small)
        short = max(0.0, 1.0 - margin)
        if code == HINGE:
            return short, -target if short > 0.0 else 0.0
        return short * short, -2.0 * target * short
    error = score - target
    size = abs(error)
    if code == SQUARED or (code == HUBER and size <= constant):
        return 0.5 * error * error, error
    slope = float(np.sign(error))
    if code == HUBER:
        return constant * (size - 0.5 * constant), constant * slope
    if code == ABSOLUTE:
        return size, slope
    return max(0.0, size - constant), slope if size > constant else 0.0
