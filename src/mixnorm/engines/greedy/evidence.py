"""The weight of the penalty, chosen by the evidence of the data while the path grows.

The penalty is read as a prior on the weights. The evidence is largest where the fitted weights have
the size that this prior expects (:eq:`evidence-alpha`). No rows are held out. Columns in other
units give another penalty, but the same model.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mixnorm._array import epsilon

if TYPE_CHECKING:
    from mixnorm.engines._core.corrective import Outcome, Support

# Least variance of the noise of numbers, in units of their largest deviation from the mean: below
# it, the penalty would follow rounding errors.
_LEAST_NOISE = 1e-8
#: The largest penalty: columns of deviation one then hardly count.
_LARGEST_ALPHA = 1.0
# A penalty within this factor of the one that the weights ask for is left as it is.
_NEAR = 1.5
# Most changes of the penalty in one round. From round to round it changes little.
_CHANGES = 3


def first_alpha(n_rows: float) -> float:
    """Return the penalty of the first round, before there are weights."""
    return min(_LARGEST_ALPHA, 1.0 / max(n_rows, 1.0))


def follow_evidence(
    support: Support, n_rows: float, tolerance: tuple[float, float], outcome: Outcome
) -> Outcome:
    """Alternate between setting the penalty and refitting the weights, until it hardly changes.

    Parameters
    ----------
    support : Support
        The chosen columns with their weights at the present penalty.
    n_rows : float
        Number of rows, counted by their weights.
    tolerance : tuple of float
        Tolerance and floor of the corrective steps.
    outcome : Outcome
        How the last corrective step ended.

    Returns
    -------
    Outcome
        How the last refit ended, with the iterations of all of them.
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
    """Return the penalty with the largest evidence, given the present weights."""
    problem = support.problem
    least = epsilon(problem.weight)
    size = problem.penalty.degree * n_rows * support.penalty_value()
    determined = support.determined()
    if not size > 0.0:
        return _LARGEST_ALPHA
    found = determined * _noise(support, n_rows, determined)
    found /= size
    return min(max(found, least), _LARGEST_ALPHA) if math.isfinite(found) else problem.alpha


def _noise(support: Support, n_rows: float, determined: float) -> float:
    """Return the variance of the targets around the scores; one where the loss knows its scale."""
    problem = support.problem
    if problem.loss.is_classifier:
        return 1.0
    left = problem.n_outputs - determined / n_rows
    return max(2.0 * support.value / max(left, 0.1 * problem.n_outputs), _LEAST_NOISE)
