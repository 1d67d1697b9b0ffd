"""Rules that rank the candidates of the greedy engine by their gains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mixnorm._array import Array, device_of, epsilon, namespace, tiny, to_numpy
from mixnorm.engines._core.line_search import backtrack
from mixnorm.pools import capped_gain

if TYPE_CHECKING:
    from mixnorm.engines._core.corrective import Support

# A trial of the exact rule ends when this share of the largest gain is left: less would not change
# the order of candidates often. A constant, as a rule knows the support and the choices alone.
_SHARE_LEFT_OF_GAIN = 0.02
# Gains below this share of the objective are rounding errors.
_ROUNDING_OF_GAINS = 1e-10
# The shortest part of a Newton step along a gradient that is tried.
_SHORTEST_PART_OF_STEP = 0.5**10


@dataclass(frozen=True)
class Choice:
    """An atom that may come in."""

    atom: Any
    #: Its centred columns, one per row.
    rows: Array
    #: The gradient of the objective in their weights, less what kinks of the penalty take.
    slope: Array
    #: The means of the columns.
    offset: Array | None = None
    price: float = 1.0
    #: The gain it promised when it was chosen with others.
    promise: float = 0.0

    @property
    def gradient(self) -> float:
        """The l1 norm of the gradient."""
        xp = namespace(self.slope)
        return float(xp.sum(xp.abs(self.slope)))


def sum_gains(support: Support, choices: list[Choice]) -> list[float]:
    """Return the squared l1 norms of the gradients, to which the gains are about proportional."""
    return [choice.gradient**2 for choice in choices]


def square_gains(support: Support, choices: list[Choice]) -> list[float]:
    """Return the squared l2 norms of the gradients."""
    return [float(namespace(one.slope).sum(one.slope * one.slope)) for one in choices]


def line_gains(support: Support, choices: list[Choice]) -> list[float]:
    """Return how far the loss falls along each choice's gradient, the rule ``"line"``."""
    return [_compute_line_gain(support, choice) for choice in choices]


def column_gains(support: Support, choices: list[Choice]) -> list[float]:
    """Return the gain of a Newton step on each choice's columns alone (:eq:`column-gain`)."""
    return [_compute_column_gain(support, choice) for choice in choices]


def joint_gains(support: Support, choices: list[Choice]) -> list[float]:
    """Return the gain of a Newton step on a choice's columns and all chosen ones together.

    The step uses the curvature model of the corrective step (:eq:`joint-gain`). It costs a fraction
    of ``column_gains``, and takes into account how much of a column the chosen ones explain. The
    gain is far too large where the curvature grows along the step, as it does for a column that is
    large on few samples of one class. But a column can lower the loss of an output at most by the
    loss on the samples that it touches, and gains are capped there (:eq:`capped-gain`).
    """
    blocks = [choice.rows for choice in choices]
    slopes = [choice.slope for choice in choices]
    gains = support.newton_gains(blocks, slopes)
    if support.problem.loss.constant_curvature:  # the gains are exact
        total = namespace(gains).sum(gains, axis=0)
    else:
        total = capped_gain(gains, support.touched_loss(blocks))
    return [float(gain) for gain in to_numpy(total)]


def exact_gains(support: Support, choices: list[Choice]) -> list[float]:
    """Return how far the objective falls when all weights are fitted again with each choice."""
    support.curvature(fresh=True)  # once for all trials, which extend it by their columns
    promised = max(joint_gains(support, choices))
    before, gains = support.objective, []
    for choice in choices:
        trial = support.branch()  # shares the memory of the columns, and writes behind them
        trial.append(choice.atom, choice.rows, offset=choice.offset)
        share = _SHARE_LEFT_OF_GAIN * promised / before if before > 0.0 else 0.0
        trial.correct(max(share, _ROUNDING_OF_GAINS), 0.0)
        gains.append(before - trial.objective)
    return gains


def _compute_line_gain(support: Support, choice: Choice) -> float:
    """Return the fall of the objective along the gradient.

    It takes at most four Newton steps in one dimension; a step that overshoots is halved.
    """
    problem, gradient = support.problem, choice.slope
    loss, target, weight, penalty = problem.loss, problem.target, problem.weight, problem.penalty
    xp = namespace(gradient)
    squares, kinks = gradient * gradient, problem.kink * choice.gradient
    norm = float(xp.sum(squares))
    change = (gradient.T @ choice.rows).T
    scores, residual = support.scores, support.residual
    best, length, move = support.value, 0.0, 0.0

    def fall(part: float) -> tuple[float, float, Any] | None:
        """Return objective, length and residual after part of the move, or None."""
        ahead = length + part * move  # scores are linear along the line: no product with columns
        value, residual = loss.value_and_residual(scores - ahead * change, target, weight)
        objective = value + problem.alpha * penalty.value(-ahead * gradient)
        return (objective, ahead, residual) if objective < best else None

    for _ in range(
        4
    ):  # gains are compared, not used: four steps leave an error that hardly matters
        weights = -length * gradient
        pull = float(xp.sum(penalty.gradient(weights) * gradient))
        slope = float(xp.sum(change * residual)) + problem.alpha * pull - kinks
        bend = loss.hessian_form(change, residual, target, weight)
        bend += problem.alpha * float(xp.sum(penalty.curvature(weights) * squares))
        # A slope of a thousandth of the first: what is left to gain is a millionth.
        if bend <= 0.0 or abs(slope) <= 1e-3 * norm:
            break
        move = slope / bend
        found, _ = backtrack(fall, least=_SHORTEST_PART_OF_STEP)
        if found is None:
            break
        best, length, residual = found
    return support.value - best


def _compute_column_gain(support: Support, choice: Choice) -> float:
    """Return the sum of the gains of an atom's columns, each with its Hessian over all outputs."""
    problem, rows, slopes = support.problem, choice.rows, choice.slope
    xp = namespace(rows)
    eye = xp.eye(problem.n_outputs, dtype=rows.dtype, device=device_of(rows))
    if problem.kink > 0.0 and problem.loss.shift_invariant:
        # The kink takes unequal parts of the outputs, so that the slope may lie partly in the null
        # space of the Hessian, where no step gains anything.
        slopes = slopes - xp.mean(slopes, axis=1, keepdims=True)
    gain = 0.0
    for row in range(rows.shape[0]):
        hessian = problem.loss.column_hessian(
            rows[row, :], support.residual, problem.target, problem.weight
        )
        # The Hessian of a shift-invariant loss has a null vector, orthogonal to the gradient.
        floor = epsilon(rows) * 32.0 * float(xp.sum(xp.linalg.diagonal(hessian)))
        hessian = hessian + eye * (problem.new_ridge + floor + tiny(rows))
        step = xp.linalg.solve(hessian, slopes[row, :][:, None])
        gain += 0.5 * float(slopes[row, :] @ step[:, 0])
    return gain


Gains = Callable[["Support", list[Choice]], list[float]]

#: For each rule, the cheap rule that makes a shortlist, and the gains that rank it. With None the
#: first atom of the shortlist is chosen.
RULES: dict[str, tuple[str, Gains | None]] = {
    "column": ("l1", column_gains),
    "exact": ("l1", exact_gains),
    "joint": ("l1", joint_gains),
    "l1": ("l1", None),
    "l2": ("l2", None),
    "line": ("l1", line_gains),
}
#: The gains by which the cheap rules rank.
NORMS: dict[str, Gains] = {"l1": sum_gains, "l2": square_gains}
