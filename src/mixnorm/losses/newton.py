"""Newton's method for the proximal operators of logistic losses, on all rows at once."""

from __future__ import annotations

import math
from typing import Any

from mixnorm._array import Array, epsilon, is_numpy, namespace
from mixnorm.losses.arrays import clip

# Probabilities with a logarithm below this one do not change a sum of about one; the bound keeps
# all logarithms finite.
_LEAST_LOGARITHM = -60.0
_LEAST_PROX_RATE = 1e-30  # smaller rates change nothing, and a division by them could overflow
_MOST_LOGISTIC_STEPS = 60  # a guard: two to eight steps are enough
_LONG_STEP = 0.5
_ENTRIES_PER_PROX_BLOCK = 20_000  # which stay in the processor's cache


def damped_softmax(scores: Array, rate: Array) -> Any:
    """Return ``p`` in the simplex with ``ln p + rate p = scores - L``, some ``L`` for each row.

    ``rate``, of shape ``(n_samples, 1)``, is zero or more; with zero, ``p`` is the soft-max. This
    is the proximal map of :eq:`damped-softmax`.
    """
    xp = namespace(scores)
    n_samples, n_outputs = scores.shape
    length = max(1, _ENTRIES_PER_PROX_BLOCK // n_outputs)
    if not is_numpy(scores) or n_samples <= length:
        return _solve_damped_softmax(scores, rate)
    found = xp.empty_like(scores)
    for start in range(0, n_samples, length):
        part = slice(start, start + length)
        found[part, :] = _solve_damped_softmax(scores[part, :], rate[part, :])
    return found


def _solve_damped_softmax(scores: Array, rate: Array) -> Any:
    """Solve for ``L`` and ``p`` together.

    The sum of ``p`` falls with ``L`` and is convex in it, so that Newton's method for ``L`` stays
    below the root, where it starts, and converges. The start is the larger of two lower bounds:
    averages of the equation, weighted by the soft-max of the scores (tight for small rates) and
    weighted equally (tight for large rates). Two to eight steps are enough. ``p`` follows each step
    of ``L`` by a step of fourth order, and is guessed again after a long one.
    """
    xp = namespace(scores)
    n_outputs = scores.shape[1]
    # Only differences of scores count; now the largest exponential is one.
    scores = scores - xp.max(scores, axis=1, keepdims=True)
    total = xp.sum(xp.exp(scores), axis=1, keepdims=True)
    level = xp.mean(scores, axis=1, keepdims=True) - rate / n_outputs + math.log(n_outputs)
    level = xp.maximum(level, xp.log(total) - rate / total)
    wanted = clip(scores - level, low=_LEAST_LOGARITHM)
    p = _guess_omega(wanted, rate)
    for _ in range(_MOST_LOGISTIC_STEPS):
        slope = 1.0 / (1.0 + rate * p)
        # The relative Newton step of p at the present level, and then the change of the level for
        # which the sum of p is one to first order.
        step = (wanted - rate * p - xp.log(p)) * slope
        change = xp.sum(p + p * step, axis=1, keepdims=True) - 1.0
        # d p / d L = -p slope, so the level moves by the excess of the sum over the sum of p slope.
        change = change / xp.sum(p * slope, axis=1, keepdims=True)
        step = step - change * slope
        # The error that a step of first order leaves.
        # Convergence is quadratic: when the square of the step is below rounding, one more step is
        # the last.
        done = float(xp.max(p * step * step)) <= epsilon(p)
        level = level + change
        wanted = clip(scores - level, low=_LEAST_LOGARITHM)
        # The local expansion of p is poor after a long move of the level; a new guess costs little
        # more.
        if not done and float(xp.max(xp.abs(change))) > _LONG_STEP:
            p = _guess_omega(wanted, rate)
            continue
        # The step of an entry next to zero may be long, as it hardly counts for `done`.
        p = _take_step(p, clip(step, low=-_LONG_STEP, high=_LONG_STEP), slope)
        if done:
            break
    # The sum is one up to rounding; the exact simplex keeps dual points feasible.
    return p / xp.sum(p, axis=1, keepdims=True)


def _take_step(p: Array, step: Array, slope: Array) -> Any:
    """Return ``p`` after a step of fourth order for Wright's omega function.

    The step is that of Fritsch, Shafer and Crowley (1973).
    """
    part = step * slope
    base = 1.0 + (2.0 / 3.0) * step
    return p + p * step * ((base - 0.5 * part) / (base - part))


def _guess_omega(wanted: Array, rate: Array) -> Any:
    """Return ``p`` with ``ln p + rate p`` at most 0.6 from ``wanted``.

    ``rate p`` is Wright's omega function ``w`` of ``x = wanted + ln rate``, which is
    ``x - ln x`` and a little more if ``x`` is above one, and near ``exp(x)`` below.
    """
    xp = namespace(wanted)
    positive = rate > _LEAST_PROX_RATE
    some = xp.where(positive, rate, 1.0)
    x = wanted + xp.where(positive, xp.log(some), -math.inf)
    large = clip(x, low=1.0)
    small = xp.exp(xp.where(x > 1.0, 0.0, wanted))
    # One step of Newton's method for p = exp(wanted - rate p) from p = exp(wanted), for small
    # rates.
    small = small / (1.0 + rate * small)
    return xp.where(x > 1.0, (large - xp.log(large)) / some, small)


def damped_logistic(score: Array, rate: Array) -> Any:
    """Return ``q`` between 0 and 1 with ``ln(q / (1 - q)) + rate q + score = 0``.

    This is the proximal map of :eq:`damped-logistic`. ``rate``, of the same shape, is zero or more.
    With ``s = score + rate q`` this is
    ``q = 1 / (1 + exp(s))``. The root ``s`` is reflected to be positive; there
    ``s - score - rate q(s)`` is concave, and Newton's method, started below the root, stays below
    it and converges. The start replaces ``q(s)`` by ``exp(-s) / 2``, which is a little smaller.
    """
    xp = namespace(score)
    # s has the sign of score + rate / 2, because s is zero at q = 1/2. With 1 - q in place of q the
    # equation has -score - rate in place of score.
    reflected = score + 0.5 * rate < 0.0
    score = xp.where(reflected, -score - rate, score)
    half = 0.5 * rate
    s = clip(score + half * _guess_omega(-score, half), low=0.0)
    q = logistic(s)
    for _ in range(_MOST_LOGISTIC_STEPS):
        step = (score - s + rate * q) / (1.0 + rate * q * (1.0 - q))
        done = float(xp.max(q * step * step)) <= epsilon(q)
        s = clip(s + step, low=0.0)
        q = logistic(s)
        if done:
            break
    return xp.where(reflected, 1.0 - q, q)


def logistic(score: Array) -> Any:
    """Return ``1 / (1 + exp(score))`` without overflow."""
    xp = namespace(score)
    small = xp.exp(-xp.abs(score))
    return xp.where(score > 0.0, small, 1.0) / (1.0 + small)
