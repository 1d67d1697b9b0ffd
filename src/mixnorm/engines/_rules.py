"""How the greedy engine chooses the next atom."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mixnorm._array import device_of, epsilon, namespace, to_numpy

if TYPE_CHECKING:
    from mixnorm.engines._corrective import Support
    from mixnorm.engines.greedy import PreparedPool

# Candidates of the cheap rule that a costlier rule looks at more closely.
_SHORTLIST = 8


@dataclass(frozen=True)
class Choice:
    """An atom, its centred columns (one per row), the gradient in their weights, their means."""

    atom: Any
    rows: Any
    slope: Any
    offset: Any = None

    @property
    def gradient(self) -> float:
        """The l1 norm of the gradient."""
        xp = namespace(self.slope)
        return float(xp.sum(xp.abs(self.slope)))


def choose(
    support: Support, pool: PreparedPool, rule: str, exclude: frozenset[Hashable]
) -> Choice | None:
    """Return the atom that ``rule`` prefers, or None if no atom has any gradient left."""
    cheap, refine = RULES[rule]
    m = 1 if refine is None else _SHORTLIST
    found = pool.top(support.centred_residual(), cheap, m, exclude)
    atoms = [atom for atom, score in found if score > support.noise]
    choices = _look(support, [(atom, pool.columns(atom)) for atom in atoms])
    if refine is None or len(choices) < 2:
        return choices[0] if choices else None
    gains = refine(support, choices)
    return choices[max(range(len(choices)), key=gains.__getitem__)]


def _look(support: Support, found: list[tuple[Any, Any]]) -> list[Choice]:
    """Compute the gradients of all candidates in one product."""
    if not found:
        return []
    xp = namespace(support.residual)
    rows, offsets = support.centred(xp.concat([part for _, part in found]))
    slopes, start, choices = rows @ support.residual, 0, []
    for atom, part in found:
        at = slice(start, start + part.shape[0])
        choices.append(Choice(atom, rows[at, :], slopes[at, :], offsets[at]))
        start = at.stop
    return choices


def line_gains(support: Support, choices: list[Choice]) -> list[float]:
    """Return how far the loss falls along each choice's gradient."""
    return [_line_gain(support, choice) for choice in choices]


def column_gains(support: Support, choices: list[Choice]) -> list[float]:
    """Return the gain ``1/2 g^T H^{-1} g`` of a Newton step on each choice's columns alone."""
    return [_column_gain(support, choice) for choice in choices]


def joint_gains(support: Support, choices: list[Choice]) -> list[float]:
    """Return the gain of a Newton step on a choice's columns and all chosen ones together.

    Under the per-output curvature model that also drives the corrective step, so that it costs a
    fraction of ``column_gains`` and sees how much of a column the chosen ones explain already.
    Newton's model promises far too much where the curvature grows along the step, as it does for a
    column that is large on few samples; but no column can take away more loss than lies on the
    samples it touches, so that the gain is cut there.
    """
    blocks = [choice.rows for choice in choices]
    slopes = [choice.slope for choice in choices]
    ridge, left = 2.0 * support.problem.alpha, support.gradient()
    gains = support.curvature().gains(support.design, blocks, slopes, ridge, left)
    values: list[float] = to_numpy(gains).tolist()
    if support.problem.loss.constant_curvature:
        return values
    best = 0.0
    for index in sorted(range(len(values)), key=values.__getitem__, reverse=True):
        if values[index] <= best:  # cut or not, it is not the largest
            break
        values[index] = min(values[index], _touched(support, blocks[index]))
        best = max(best, values[index])
    return values


def _touched(support: Support, rows: Any) -> float:
    """Return the loss on the samples that ``rows`` touch, each counted by how far it is touched."""
    xp = namespace(rows)
    reach = xp.where(support.problem.weight > 0, xp.sum(xp.abs(rows), axis=0), 0.0)
    errors = xp.sum(xp.abs(support.residual), axis=1)
    share = float(reach @ errors) / (float(xp.max(reach)) * float(xp.sum(errors)))
    return support.value * share


def _line_gain(support: Support, choice: Choice) -> float:
    """Take a few one-dimensional Newton steps; one that overshoots is halved."""
    problem = support.problem
    loss, target, weight = problem.loss, problem.target, problem.weight
    gradient = choice.slope
    xp = namespace(gradient)
    norm = float(xp.sum(gradient * gradient))
    change = (gradient.T @ choice.rows).T
    scores, residual, value = support.scores, support.residual, support.value
    penalty, length = 2.0 * problem.alpha * norm, 0.0
    best = objective = value
    for _ in range(4):
        slope = float(xp.sum(change * residual)) - penalty * length
        bend = loss.hessian_form(change, residual, target, weight) + penalty
        if bend <= 0.0 or abs(slope) <= 1e-3 * norm:
            break
        move = slope / bend
        for _ in range(10):
            value, residual = loss.value_and_residual(
                scores - (length + move) * change, target, weight
            )
            objective = value + 0.5 * penalty * (length + move) ** 2
            if objective < best:
                break
            move *= 0.5
        else:
            break
        best, length = objective, length + move
    return support.value - best


def _column_gain(support: Support, choice: Choice) -> float:
    """Use the true Hessian of each column over all outputs; the columns of an atom add up."""
    problem, rows = support.problem, choice.rows
    xp = namespace(rows)
    eye = xp.eye(problem.n_outputs, dtype=rows.dtype, device=device_of(rows))
    gain = 0.0
    for row in range(rows.shape[0]):
        hessian = problem.loss.column_hessian(
            rows[row, :], support.residual, problem.target, problem.weight
        )
        # A shift-invariant loss has a null direction; the gradient has no part in it.
        floor = epsilon(rows) * 32.0 * float(xp.sum(xp.linalg.diagonal(hessian)))
        hessian = hessian + eye * (2.0 * problem.alpha + floor)
        step = xp.linalg.solve(hessian, choice.slope[row, :][:, None])
        gain += 0.5 * float(choice.slope[row, :] @ step[:, 0])
    return gain


#: The cheap rule that shortlists, and the gains that decide among the shortlist (None: the first).
RULES: dict[str, tuple[str, Callable[[Support, list[Choice]], list[float]] | None]] = {
    "column": ("l1", column_gains),
    "joint": ("l1", joint_gains),
    "l1": ("l1", None),
    "l2": ("l2", None),
    "line": ("l1", line_gains),
}
