"""Forward greedy selection with a full correction after every choice.

The engine knows nothing of features: a prepared pool scores its atoms for a residual and hands out
an atom's columns, a loss turns scores into a residual, and that is all.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mixnorm._array import Array, namespace
from mixnorm.engines._core.corrective import Outcome, Problem, Support
from mixnorm.engines.greedy.choice import Limits, choose, choose_several, still_helps
from mixnorm.engines.greedy.evidence import first_alpha, follow_evidence
from mixnorm.engines.greedy.rules import RULES, Choice
from mixnorm.engines.greedy.tuning import check as check_adjusts
from mixnorm.engines.greedy.tuning import tune as tune_last
from mixnorm.engines.penalties import Penalty, as_penalty
from mixnorm.losses import SmoothLoss
from mixnorm.models import Path, Round
from mixnorm.pools import PreparedPool, as_prepared

__all__ = ["PreparedPool", "select"]

# Tolerance and floor of a round: the gain left is compared with ``tol`` times the objective, or
# times a share of the empty model's loss once the objective is below that share (separable data).
# Rounds before the last stop earlier: they only have to point at the next column.
_LAST = (1.0, 0.02)
_EARLIER = (20.0, 0.1)
# Columns that fit before more room is made, where a budget and not their number ends a run.
_CAPACITY = 64


def select(
    pool: PreparedPool,
    loss: SmoothLoss,
    target: Any,
    *,
    n_atoms: int,
    n_outputs: int,
    weight: Array,
    alpha: float | str = 0.0,
    n_rows: float | None = None,
    penalty: str | Penalty = "ridge",
    rule: str = "l1",
    swaps: int = 0,
    backward: int = 0,
    tune: int = 0,
    atoms_per_round: int = 1,
    max_inputs: int | None = None,
    rounds_per_input: int = 1,
    budget: float | None = None,
    fit_intercept: bool = True,
    tol: float = 1e-4,
    max_iter: int = 1000,
    start: Path | None = None,
    on_round: Callable[[Path], bool] | None = None,
) -> Path:
    r"""Choose atoms one at a time, re-optimising all chosen columns after each.

    Minimises :math:`\sum_i w_i\, \ell(W^\top x_i + b, y_i) + \alpha\, \Omega(W)` over at most
    ``n_atoms`` atoms of the pool.

    Parameters
    ----------
    pool : PreparedPool
        Scores atoms and hands out their columns. An object of another class will do, if it has
        ``top`` and ``columns``; what else it may have is asked for where it is there.
    loss : SmoothLoss
        The loss; ``target`` is what its ``encode`` returned.
    n_atoms, n_outputs : int
        Atoms to choose, outputs to fit.
    weight : array of shape (n_samples,)
        Sample weights that sum to one; their namespace, dtype and device rule the computation.
    alpha : float or "auto"
        Weight of the penalty on all weights but the intercept. ``"auto"`` finds one for each size
        by the evidence of the weights (:eq:`evidence-alpha`).
    n_rows : float, optional
        Number of rows counted by their weights, for ``"auto"``; the number of samples by default.
    penalty : {"ridge", "linf,1", "l1"} or penalty object
        The penalty :math:`\Omega`; see :mod:`mixnorm.engines.penalties`.
    rule : {"l1", "l2", "line", "column", "joint", "exact"}
        How the next atom is chosen.
    swaps : int
        Replacement steps after each round: the older atom that costs least to drop gives way to
        the best other one, if that lowers the objective.
    backward : int
        Go that many atoms further, then drop atoms one at a time, always the one that costs least,
        and keep the better model of each size. Models of successive sizes need not be nested then.
    tune : int
        Sweeps that adjust the atoms of the last model themselves, where the pool can.
    atoms_per_round : int
        Atoms taken from one scan of the pool. They still come in one by one, each with its own
        round, unless those before have made them useless.
    max_inputs : int, optional
        Most columns of the data that all atoms together may read.
    rounds_per_input : int
        Rounds before one more column may be read, as long as other atoms help: what is read is
        made the most of first, and the next column is chosen knowing that.
    budget : float, optional
        Most that all atoms together may cost.
    tol : float
        The last round ends when the estimated gain left is below ``tol`` times the objective
        (or 2 % of the empty model's loss, if that is more); earlier rounds at twenty times that (or
        10 %).
    max_iter : int
        Most iterations of one corrective step.
    start : Path, optional
        A path to continue.
    on_round : callable, optional
        Called with the path so far after each round, and after each step back; returning True ends
        the run.

    Returns
    -------
    Path
        A keyboard interrupt after the first round ends the run and keeps the rounds done.

    Notes
    -----
    A round costs one scan of the pool, and a few products with the chosen columns: an L-BFGS
    method whose starting matrix is the factored per-output curvature of the chosen columns.
    """
    pool, limits = as_prepared(pool), Limits(max_inputs, budget, rounds_per_input)
    _check(rule, swaps, backward, tune, atoms_per_round, start)
    limits.check(pool)
    check_adjusts(pool, tune)
    rows = float(weight.shape[0]) if n_rows is None else float(n_rows)
    auto = isinstance(alpha, str)
    first = first_alpha(rows) if auto else float(alpha)
    problem = Problem(loss, target, weight, n_outputs, first, max_iter, as_penalty(penalty))
    furthest = n_atoms + backward
    capacity = furthest if budget is None else min(furthest, _CAPACITY)
    support = Support(problem, fit_intercept, capacity)
    support.correct(min(tol, 1e-6), 0.0)
    plan = Plan(
        pool,
        rule,
        swaps,
        limits,
        atoms_per_round,
        tol,
        n_atoms,
        furthest,
        on_round,
        rows if auto else None,
    )
    run = Run(plan, support, Path((), support.value, support.intercept()))
    if start is not None and start.rounds:
        run.go_on_from(start)
    try:
        ended = run.forward()
        if backward and not ended:
            from mixnorm.engines.greedy.backward import prune

            prune(run)
        if tune and not ended:
            tune_last(run, tune)
    except KeyboardInterrupt:
        if not run.path.rounds:
            raise
        run.path = replace(run.path, interrupted=True)
    return run.wanted()


def _check(
    rule: str, swaps: int, backward: int, tune: int, atoms_per_round: int, start: Path | None
) -> None:
    if rule not in RULES:
        raise ValueError(f"rule={rule!r} is not known; choose one of {sorted(RULES)}.")
    for name, value, least in (
        ("swaps", swaps, 0),
        ("backward", backward, 0),
        ("tune", tune, 0),
        ("atoms_per_round", atoms_per_round, 1),
    ):
        if value < least:
            raise ValueError(f"{name}={value!r} must be at least {least}.")
    if backward and start is not None and start.rounds:
        raise ValueError(
            f"backward={backward} cannot continue a path: a step back reaches all sizes. "
            "Set backward=0, or start anew."
        )


@dataclass(frozen=True)
class Plan:
    """What a run is told: how to choose, within which limits, how exactly, and how far."""

    pool: PreparedPool
    rule: str
    swaps: int
    limits: Limits
    per_round: int
    tol: float
    n_atoms: int
    furthest: int
    on_round: Callable[[Path], bool] | None
    #: Number of rows where the penalty follows the evidence; None where it is given.
    evidence_rows: float | None = None


class Run:
    """A run of the engine: the path so far, and the support that its last model stands on."""

    def __init__(self, plan: Plan, support: Support, path: Path) -> None:
        self.plan, self.support, self.path = plan, support, path
        self._empty = support.branch()

    def wanted(self) -> Path:
        """Return the path without the rounds beyond those that were asked for."""
        return replace(self.path, rounds=self.path.rounds[: self.plan.n_atoms])

    def load(self, rounds: tuple[Round, ...]) -> Support:
        """Return a support with the atoms and weights of the last of some rounds."""
        support = self.empty()
        if not rounds:
            return support
        done, row = rounds[-1], 0
        for atom in done.support:
            rows, offset = self.columns(atom)
            support.append(atom, rows, done.weights[row : row + rows.shape[0], :], offset)
            row += rows.shape[0]
        support.set_alpha(done.alpha)
        support.start_from(done.intercept)
        return support

    def empty(self) -> Support:
        """Return a support without atoms, with room of its own and the present penalty."""
        support = self._empty.branch(own_room=True)
        support.set_alpha(self.support.problem.alpha)
        return support

    def recorded(self, gradient: float, outcome: Outcome, began: float) -> Round:
        """Return the model that the support holds, as a round."""
        return record(self.support, next(reversed(self.support.blocks)), gradient, outcome, began)

    def columns(self, atom: Any) -> tuple[Any, Any]:
        """Return the centred columns of an atom and their means; the pool's may be far away."""
        if atom in self.support.blocks:
            return self.support.columns(atom)
        return self._empty.centred(self.plan.pool.columns(atom))

    def go_on_from(self, start: Path) -> None:
        """Take up a path where it ended."""
        kept = min(self.plan.n_atoms, len(start.rounds))
        rounds, limits = start.rounds[:kept], self.plan.limits
        if not limits.left(self.plan.pool, rounds[-1].support).kept():
            raise ValueError(
                f"The path to continue reads or costs more than max_inputs={limits.inputs} and "
                f"budget={limits.budget} allow. Raise them, or start anew."
            )
        self.path = replace(start, rounds=rounds, interrupted=False, exhausted=False)
        self.support = self.load(rounds)

    def forward(self) -> bool:
        """Add atoms as far as planned, or as they help; True if the caller ends the run."""
        plan = self.plan
        while len(self.path.rounds) < plan.furthest:
            began, taken = time.perf_counter(), frozenset(self.support.blocks)
            count = min(plan.per_round, plan.furthest - len(self.path.rounds))
            choices = choose_several(self.support, plan.pool, plan.rule, taken, plan.limits, count)
            for place, choice in enumerate(choices):
                fit = choice if place == 0 else self._still_fits(choice)
                if fit is not None:
                    self._add(fit, began)
                    began = time.perf_counter()
                    if self.report():
                        self.polish()
                        return True
            if not choices:
                self.polish()
                exhausted = len(self.path.rounds) < plan.n_atoms
                self.path = replace(self.path, exhausted=exhausted)
                break
        return False

    def report(self) -> bool:
        """Tell the caller how far the run is; True if it is to end."""
        return self.plan.on_round is not None and bool(self.plan.on_round(self.wanted()))

    def tolerance(self, size: int) -> tuple[float, float]:
        """Return tolerance and floor of a round: tight for the model that was asked for."""
        looser, floor = _LAST if size == self.plan.n_atoms else _EARLIER
        return looser * self.plan.tol, floor * self.path.null_loss

    def polish(self) -> None:
        """Solve the last round to the tolerance of a last round."""
        if not self.path.rounds:
            return
        *earlier, last = self.path.rounds
        began = time.perf_counter()
        outcome = self.support.correct(*self.tolerance(self.plan.n_atoms))
        made = record(self.support, last.atom, last.gradient, outcome, began)
        made = replace(
            made,
            seconds=made.seconds + last.seconds,
            iterations=made.iterations + last.iterations,
        )
        self.path = replace(self.path, rounds=(*earlier, made))

    def _still_fits(self, choice: Choice) -> Choice | None:
        """Return a choice made with others as it stands after these; None if it is not wanted."""
        plan, blocks = self.plan, self.support.blocks
        if choice.atom in blocks or not plan.limits.left(plan.pool, blocks, paced=True).fits(
            choice.atom
        ):
            return None
        return still_helps(self.support, choice)

    def _add(self, choice: Choice, began: float) -> None:
        """Add one atom, correct, and try the replacements."""
        support, plan = self.support, self.plan
        tolerance = self.tolerance(len(self.path.rounds) + 1)
        support.append(choice.atom, choice.rows, offset=choice.offset)
        goal = support.objective - support.promised_drop(choice.rows, choice.gradient)
        outcome = support.correct(*tolerance, goal)
        for _ in range(plan.swaps):
            swapped = _swap(support, plan, tolerance)
            if swapped is None:
                break
            support, outcome = swapped
        if plan.evidence_rows is not None:
            outcome = follow_evidence(support, plan.evidence_rows, tolerance, outcome)
        made = record(support, choice.atom, choice.gradient, outcome, began)
        self.support = support
        self.path = replace(self.path, rounds=(*self.path.rounds, made))


def _swap(
    support: Support, plan: Plan, tolerance: tuple[float, float]
) -> tuple[Support, Outcome] | None:
    """Replace the cheapest atom by a better one; None if that does not lower the objective.

    The newest atom stays: it was the best given the others, which may not be the best given it.
    """
    if len(support.blocks) < 2:
        return None
    costs = support.removal_costs()
    newest = next(reversed(support.blocks))
    cheapest = min((atom for atom in costs if atom != newest), key=costs.__getitem__)
    trial = support.without(cheapest)
    trial.correct(*tolerance)
    choice = choose(trial, plan.pool, plan.rule, frozenset(support.blocks), plan.limits)
    if choice is None:
        return None
    trial.append(choice.atom, choice.rows, offset=choice.offset)
    outcome = trial.correct(*tolerance)
    return (trial, outcome) if trial.objective < support.objective else None


def record(support: Support, atom: Any, gradient: float, outcome: Outcome, began: float) -> Round:
    """Return the model that a support holds as a round."""
    xp = namespace(support.weights)
    first = int(support.has_intercept)
    return Round(
        atom=atom,
        support=tuple(support.blocks),
        weights=xp.asarray(support.weights[first:, :], copy=True),
        intercept=support.intercept(),
        loss=support.value,
        objective=support.objective,
        gradient=gradient,
        seconds=time.perf_counter() - began,
        iterations=outcome.iterations,
        gap=outcome.gap,
        converged=outcome.converged and math.isfinite(support.value),
        alpha=support.problem.alpha,
    )
