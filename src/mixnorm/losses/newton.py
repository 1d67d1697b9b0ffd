"""Newton's method for the proximal operators of logistic losses, on all rows at once."""

from __future__ import annotations

import math
from typing import Any

from mixnorm._array import Array, epsilon, is_numpy, namespace
from mixnorm.losses.arrays import clipped

# Logarithms of probabilities below this one are nothing beside one, and are finite.
_LOWEST = -60.0
_LEAST_RATE = 1e-30
_MOST_STEPS = 60
_LONG_STEP = 0.5
_BLOCK = 20_000  # entries that are worked on together, so that they stay in the processor's cache


def damped_softmax(scores: Array, rate: Any) -> Any:
    """Return ``p`` in the simplex with ``ln p + rate p = scores - L``, some ``L`` for each row.

    ``rate``, of shape ``(n_samples, 1)``, is zero or more; with zero, ``p`` is the soft-max.
    """
    xp = namespace(scores)
    n_samples, n_outputs = scores.shape
    length = max(1, _BLOCK // n_outputs)
    if not is_numpy(scores) or n_samples <= length:
        return _damped_softmax(scores, rate)
    parts = [slice(start, start + length) for start in range(0, n_samples, length)]
    found = xp.empty_like(scores)
    for part in parts:
        found[part, :] = _damped_softmax(scores[part, :], rate[part, :])
    return found


def _damped_softmax(scores: Array, rate: Any) -> Any:
    """Solve for ``L`` and ``p`` together.

    The sum of ``p`` falls with ``L`` and is convex in it, so that Newton's method for ``L`` from
    below stays below and cannot fail. The start is below: the equation is averaged with the
    soft-max of the scores for weights, and with equal weights, which are tight for small and for
    large rates. Two to eight steps are enough. ``p`` follows each by a step of fourth order, or
    is guessed anew after a long one.
    """
    xp = namespace(scores)
    n_outputs = scores.shape[1]
    scores = scores - xp.max(scores, axis=1, keepdims=True)
    total = xp.sum(xp.exp(scores), axis=1, keepdims=True)
    level = xp.mean(scores, axis=1, keepdims=True) - rate / n_outputs + math.log(n_outputs)
    level = xp.maximum(level, xp.log(total) - rate / total)
    wanted = clipped(scores - level, low=_LOWEST)
    p = _omega_guess(wanted, rate)
    for _ in range(_MOST_STEPS):
        slope = 1.0 / (1.0 + rate * p)
        step = (wanted - rate * p - xp.log(p)) * slope
        change = xp.sum(p + p * step, axis=1, keepdims=True) - 1.0
        change = change / xp.sum(p * slope, axis=1, keepdims=True)
        step = step - change * slope
        # What a step of first order leaves behind.
        done = float(xp.max(p * step * step)) <= epsilon(p)
        level = level + change
        wanted = clipped(scores - level, low=_LOWEST)
        if not done and float(xp.max(xp.abs(change))) > _LONG_STEP:
            p = _omega_guess(wanted, rate)
            continue
        # A long step of an entry that is next to nothing is still taken with care.
        p = _fourth_order(p, clipped(step, low=-_LONG_STEP, high=_LONG_STEP), slope)
        if done:
            break
    return p / xp.sum(p, axis=1, keepdims=True)


def _fourth_order(p: Any, step: Any, slope: Any) -> Any:
    """Return ``p`` after the step of Fritsch, Shafer and Crowley for Wright's omega function."""
    part = step * slope
    base = 1.0 + (2.0 / 3.0) * step
    return p + p * step * ((base - 0.5 * part) / (base - part))


def _omega_guess(wanted: Any, rate: Any) -> Any:
    """Return ``p`` with ``ln p + rate p`` at most 0.6 from ``wanted``.

    ``rate p`` is Wright's omega function ``w`` of ``x = wanted + ln rate``, which is
    ``x - ln x`` and a little more if ``x`` is above one, and near ``exp(x)`` below.
    """
    xp = namespace(wanted)
    positive = rate > _LEAST_RATE  # a smaller one has no say, and could not be divided by
    some = xp.where(positive, rate, 1.0)
    x = wanted + xp.where(positive, xp.log(some), -math.inf)
    large = clipped(x, low=1.0)
    small = xp.exp(xp.where(x > 1.0, 0.0, wanted))
    small = small / (1.0 + rate * small)
    return xp.where(x > 1.0, (large - xp.log(large)) / some, small)


def damped_logistic(score: Any, rate: Any) -> Any:
    """Return ``q`` between 0 and 1 with ``ln(q / (1 - q)) + rate q + score = 0``.

    ``rate``, of the same shape, is zero or more. With ``s = score + rate q`` this is
    ``q = 1 / (1 + exp(s))``. The root ``s`` is reflected to be positive; there
    ``s - score - rate q(s)`` is concave, and Newton's method from below stays below and cannot
    fail. It starts from ``exp(-s) / 2`` in the place of ``q(s)``, which is less but not by much.
    """
    xp = namespace(score)
    reflected = score + 0.5 * rate < 0.0
    score = xp.where(reflected, -score - rate, score)
    half = 0.5 * rate
    s = clipped(score + half * _omega_guess(-score, half), low=0.0)
    q = logistic(s)
    for _ in range(_MOST_STEPS):
        step = (score - s + rate * q) / (1.0 + rate * q * (1.0 - q))
        done = float(xp.max(q * step * step)) <= epsilon(q)
        s = clipped(s + step, low=0.0)
        q = logistic(s)
        if done:
            break
    return xp.where(reflected, 1.0 - q, q)


def logistic(score: Any) -> Any:
    """Return ``1 / (1 + exp(score))``, never by way of an overflow."""
    xp = namespace(score)
    small = xp.exp(-xp.abs(score))
    return xp.where(score > 0.0, small, 1.0) / (1.0 + small)
