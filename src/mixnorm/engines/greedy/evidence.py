"""The weight of the penalty, chosen by the evidence of the data while the path grows.

The penalty is taken as the logarithm of a prior on the weights. The evidence is largest where the
fitted weights have the size that this prior expects (:eq:`evidence-alpha`). No rows are held out.
Columns in other units give another penalty, but the same model.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mixnorm._array import epsilon
from mixnorm.engines.greedy.settings import DEFAULT_SETTINGS, GreedySettings

if TYPE_CHECKING:
    from mixnorm.engines._core.corrective import Outcome, Support

# Least variance of the noise of targets that are numbers, in units of their largest deviation from
# the mean: below it, the penalty would follow rounding errors.
_LEAST_NOISE = 1e-8
# The largest penalty: columns of deviation one then hardly count.
_LARGEST_ALPHA = 1.0


def first_alpha(n_rows: float) -> float:
    """Return the penalty of the first round, before there are weights."""
    return min(_LARGEST_ALPHA, 1.0 / max(n_rows, 1.0))


def follow_evidence(
    support: Support,
    n_rows: float,
    tolerance: tuple[float, float],
    outcome: Outcome,
    settings: GreedySettings = DEFAULT_SETTINGS,
) -> Outcome:
    """Set the penalty and fit the weights in turn, until the penalty hardly changes.

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
    settings : GreedySettings
        When to change the penalty, and how often.

    Returns
    -------
    Outcome
        How the last corrective step ended, with the iterations of all of them.
    """
    for _ in range(settings.alpha_changes):
        best, present = _compute_best_alpha(support, n_rows), support.problem.alpha
        if max(best, present) <= settings.alpha_ratio * min(best, present):
            break
        support.set_alpha(best)
        outcome = support.correct(*tolerance).plus(outcome.iterations)
    return outcome


def _compute_best_alpha(support: Support, n_rows: float) -> float:
    """Return the penalty with the largest evidence, given the present weights.

    This is the right side of :eq:`evidence-alpha`.
    """
    problem = support.problem
    size = problem.penalty.degree * n_rows * problem.penalty.value(support.column_weights)
    if not size > 0.0:  # all weights are zero, as under an infinite penalty
        return _LARGEST_ALPHA
    determined = support.count_determined()
    # Many determined weights or much noise call for more penalty, large weights for less.
    found = determined * _estimate_noise(support, n_rows, determined) / size
    if not math.isfinite(found):
        return problem.alpha
    return min(max(found, epsilon(problem.weight)), _LARGEST_ALPHA)


def _estimate_noise(support: Support, n_rows: float, determined: float) -> float:
    """Return the variance of the targets around the scores; one for a loss on labels."""
    problem = support.problem
    if problem.loss.is_classifier:
        return 1.0
    # Degrees of freedom left, for each row. They are kept positive: with as many weights as rows
    # the residual is zero, and the noise is unknown.
    left = problem.n_outputs - determined / n_rows
    return max(2.0 * support.value / max(left, 0.1 * problem.n_outputs), _LEAST_NOISE)
