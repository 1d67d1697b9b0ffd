"""The penalty that the data speak for, found while the path grows.

A penalty is a prior: weights are as large as it expects them to be. The evidence is largest where
the number of weights that the data determine equals what the penalty of these weights says
(:eq:`evidence-alpha`). Nothing is held out, and columns on other scales give another penalty but
the same model.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mixnorm._array import epsilon

if TYPE_CHECKING:
    from mixnorm.engines._corrective import Outcome, Support

# Least variance of the noise of numbers, in units of their largest deviation from the mean: below
# it, the penalty would follow rounding errors.
_LEAST_NOISE = 1e-8
#: The largest penalty: columns of deviation one then hardly count.
_LARGEST = 1.0
# A penalty within this factor of the one that the weights ask for is left as it is.
_NEAR = 1.5
# Most changes of the penalty in one round. From round to round it changes little.
_CHANGES = 3


def first_alpha(n_rows: float) -> float:
    """Return the penalty to start from, before there are weights to judge by."""
    return min(_LARGEST, 1.0 / max(n_rows, 1.0))


def follow_evidence(
    support: Support, n_rows: float, tolerance: tuple[float, float], outcome: Outcome
) -> Outcome:
    """Set the penalty by the weights, and these by the penalty, until the two agree about.

    Parameters
    ----------
    support : Support
        The chosen columns with their weights at the present penalty.
    n_rows : float
        Number of rows, counted by their weights.
    tolerance : tuple of float
        Tolerance and floor of the corrective steps.
    outcome : Outcome
        How the last of these ended.
    """
    for _ in range(_CHANGES):
        wanted = _wanted(support, n_rows)
        if max(wanted, support.problem.alpha) <= _NEAR * min(wanted, support.problem.alpha):
            break
        support.set_alpha(wanted)
        again = support.correct(*tolerance)
        outcome = again.after(outcome)
    return outcome


def _wanted(support: Support, n_rows: float) -> float:
    """Return the penalty whose evidence is largest for weights like the present ones."""
    problem = support.problem
    least = epsilon(problem.weight)
    size = support.penalty_value()
    determined = support.determined()
    if not size > 0.0:
        return _LARGEST
    found = determined * _noise(support, n_rows, determined)
    found /= problem.penalty.degree * n_rows * size
    return min(max(found, least), _LARGEST) if math.isfinite(found) else problem.alpha


def _noise(support: Support, n_rows: float, determined: float) -> float:
    """Return the variance of the targets around the scores; one where the loss knows its scale."""
    problem = support.problem
    if problem.loss.is_classifier:
        return 1.0
    left = problem.n_outputs - determined / n_rows
    return max(2.0 * support.value / max(left, 0.1 * problem.n_outputs), _LEAST_NOISE)
