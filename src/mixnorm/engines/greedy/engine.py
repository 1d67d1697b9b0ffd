"""Forward greedy selection with a full correction after every choice.

The engine does not know what atoms are. A prepared pool scores its atoms for a residual and returns
their columns, and a loss gives the residual at some scores.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mixnorm._array import Array, namespace
from mixnorm._numbers import check_count
from mixnorm.engines._core.corrective import CorrectionProblem, Outcome, Support
from mixnorm.engines.greedy.block_support import BlockSupport
from mixnorm.engines.greedy.choice import Limits, choose, still_helps
from mixnorm.engines.greedy.evidence import first_alpha, follow_evidence
from mixnorm.engines.greedy.rules import RULES, Choice
from mixnorm.engines.greedy.settings import DEFAULT_SETTINGS, GreedySettings
from mixnorm.engines.greedy.tuning import check as check_adjusts
from mixnorm.engines.greedy.tuning import tune as tune_last
from mixnorm.engines.penalties import Penalty, as_penalty
from mixnorm.losses import SmoothLoss
from mixnorm.models import Path, Round
from mixnorm.pools import BlockPool, PreparedPool, as_prepared

__all__ = ["PreparedPool", "select"]

# The empty model is solved at least to this tolerance: all later losses are relative to its loss.
_EMPTY_MODEL_TOLERANCE = 1e-6


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
    resume: Path | None = None,
    save: Callable[[Path], None] | None = None,
    settings: GreedySettings = DEFAULT_SETTINGS,
) -> Path:
    r"""Choose atoms one at a time, and fit the weights of all chosen columns again after each.

    Minimises :math:`\sum_i w_i\, \ell(W^\top x_i + b, y_i) + \alpha\, \Omega(W)` over at most
    ``n_atoms`` atoms of the pool (:eq:`shareboost-objective`).

    Parameters
    ----------
    pool : PreparedPool
        Scores atoms and returns their columns. An object of another class needs ``top`` and
        ``columns``; its other abilities are used where it has them.
    loss : SmoothLoss
        The loss.
    target : object
        The targets, as returned by the ``encode`` of the loss.
    n_atoms, n_outputs : int
        Number of atoms to choose, and of outputs to fit.
    weight : array of shape (n_samples,)
        Sample weights that sum to one. The engine computes in their namespace and dtype and on
        their device.
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
        Most replacement steps after each round. A step replaces the older atom that costs least to
        drop by the best other one, if that lowers the objective.
    backward : int
        Choose this many atoms more, then drop atoms one at a time, always the one that costs least,
        and keep the better model of each size. Models of successive sizes need not be nested then.
    tune : int
        Most sweeps that adjust the atoms of the last model, for pools with atoms that have
        parameters.
    atoms_per_round : int
        Number of atoms to take from one scan of the pool. They still come in one by one, each with
        its own round; an atom that earlier ones have made useless is left out.
    max_inputs : int, optional
        Largest number of features of the data that all atoms together may read.
    rounds_per_input : int
        Rounds before one more feature may be read, as long as other atoms help. The engine then
        uses the features at hand before it chooses the next.
    budget : float, optional
        Largest total price of all atoms.
    tol : float
        The last round ends when the estimated gain left is below ``tol`` times the objective, or
        ``tol`` times 2 % of the empty model's loss, if that is more. Earlier rounds end at twenty
        times ``tol``, with 10 % of that loss.
    max_iter : int
        Largest number of iterations of one corrective step.
    start : Path, optional
        A path to continue.
    on_round : callable, optional
        Called with the path so far after each round, and after each step back. The run ends if it
        returns True.
    resume : Path, optional
        The path that ``save`` got last in an earlier run with the same arguments. The run ends with
        the same numbers as that one would have.
    save : callable, optional
        Called with the path so far after each scan of the pool.
    settings : GreedySettings
        Numbers that shape the algorithms.

    Returns
    -------
    Path
        The model after each round. A keyboard interrupt after the first round ends the run and
        keeps the rounds so far.

    Notes
    -----
    A round costs one scan of the pool and a few products with the chosen columns. The weights are
    fitted by L-BFGS around the factored curvature of the chosen columns (:eq:`curvature-blocks`).
    """
    pool, limits = as_prepared(pool), Limits(max_inputs, budget, rounds_per_input)
    _check(rule, swaps, backward, tune, atoms_per_round, start)
    limits.check(pool)
    check_adjusts(pool, tune)
    n_rows = float(weight.shape[0]) if n_rows is None else float(n_rows)
    auto = isinstance(alpha, str)
    plan = GreedyPlan(
        pool, rule, swaps, limits, atoms_per_round, tol, n_atoms, n_atoms + backward, on_round,
        n_rows if auto else None, settings, save,
    )  # fmt: skip
    # The evidence needs weights. The first round starts from a guess, and is corrected after it.
    first = first_alpha(n_rows) if auto else float(alpha)
    problem = CorrectionProblem(
        loss, target, weight, n_outputs, first, max_iter, as_penalty(penalty)
    )
    run = _start_run(plan, _make_support(plan, problem, fit_intercept))
    if start is not None and start.rounds:
        run.continue_path(start.first(n_atoms))
    if resume is not None and resume.rounds:
        run.continue_path(resume)
    return run.finish(backward, tune)


def _make_support(plan: GreedyPlan, problem: CorrectionProblem, fit_intercept: bool) -> Any:
    """Return a support without atoms: of rows in memory, or of a table of row blocks."""
    if isinstance(plan.pool, BlockPool):
        if plan.rule in ("line", "column"):
            raise TypeError(
                f"rule={plan.rule!r} compares features on rows in memory, and not in a table of "
                "row blocks. Choose 'joint', 'exact', 'l1' or 'l2'."
            )
        return BlockSupport(plan.pool, problem, fit_intercept)
    capacity, settings = plan.furthest, plan.settings
    if plan.limits.budget is not None:  # ``n_atoms`` may be far more than the budget pays for
        capacity = min(capacity, settings.budget_columns)
    return Support(problem, fit_intercept, capacity)


def _start_run(plan: GreedyPlan, support: Any) -> Run:
    """Return a run whose path has the empty model alone."""
    support.correct(min(plan.tol, _EMPTY_MODEL_TOLERANCE), 0.0)
    return Run(plan, support, Path((), support.value, support.intercept()))


def _check(
    rule: str, swaps: int, backward: int, tune: int, atoms_per_round: int, start: Path | None
) -> None:
    """Raise for options that are out of range, or do not go together."""
    if rule not in RULES:
        raise ValueError(f"rule={rule!r} is not known; choose one of {sorted(RULES)}.")
    for name, value in {"swaps": swaps, "backward": backward, "tune": tune}.items():
        check_count(name, value, least=0)
    check_count("atoms_per_round", atoms_per_round)
    if backward and start is not None and start.rounds:
        raise ValueError(
            f"backward={backward} cannot continue a path, because steps back change models of all "
            "sizes. Set backward=0, or leave start at None."
        )


@dataclass(frozen=True)
class GreedyPlan:
    """The settings of a run: the rule of choice, the limits, the tolerance and the sizes."""

    pool: PreparedPool
    rule: str
    swaps: int
    limits: Limits
    atoms_per_round: int
    tol: float
    n_atoms: int
    furthest: int
    on_round: Callable[[Path], bool] | None
    #: Number of rows where the penalty follows the evidence; None where it is given.
    evidence_rows: float | None = None
    settings: GreedySettings = DEFAULT_SETTINGS
    save: Callable[[Path], None] | None = None


class Run:
    """A run of the engine: the path so far, and the support of its last model."""

    def __init__(self, plan: GreedyPlan, support: Support, path: Path) -> None:
        self.plan, self.support, self.path = plan, support, path
        self._empty = support.branch()

    def finish(self, backward: int, tune: int) -> Path:
        """Take all steps, forward, back and of tuning; return the path that was asked for."""
        try:
            ended = self.forward()
            if backward and not ended:
                from mixnorm.engines.greedy.backward import prune

                prune(self)
            if tune and not ended:
                tune_last(self, tune)
        except KeyboardInterrupt:
            if not self.path.rounds:  # nothing to keep
                raise
            self.path = replace(self.path, interrupted=True)
        return self.requested_path()

    def requested_path(self) -> Path:
        """Return the path without the rounds beyond ``n_atoms``."""
        return self.path.first(self.plan.n_atoms)

    def load(self, rounds: tuple[Round, ...]) -> Support:
        """Return a support with the atoms and weights of the last of some rounds."""
        support = self.make_empty()
        if not rounds:
            return support
        done, row = rounds[-1], 0
        for atom in done.support:
            rows, offset = self.columns(atom)
            support.append(atom, rows, done.weights[row : row + rows.shape[0], :], offset)
            row += rows.shape[0]
        # Each round may have a penalty of its own. Intercepts are stored for columns that are not
        # centred, which the support's are.
        support.set_alpha(done.alpha)
        support.start_from(done.intercept)
        return support

    def make_empty(self) -> Support:
        """Return a support without atoms, with memory of its own and the present penalty."""
        # Memory of its own, as a trial and the present support both go on to grow.
        support = self._empty.branch(own_room=True)
        support.set_alpha(self.support.problem.alpha)
        return support

    def put(self, size: int, model: Round) -> None:
        """Make ``model`` the one of a size on the path, in place of the one that was there."""
        rounds = self.path.rounds
        self.path = replace(self.path, rounds=(*rounds[: size - 1], model, *rounds[size:]))

    def put_last(self, atom: Any, outcome: Outcome, began: float) -> None:
        """Put the model of the support in place of the last one; time and iterations add up."""
        last = self.path.rounds[-1]
        made = record(self.support, last.gradient, outcome.plus(last.iterations), began, atom)
        self.put(len(self.path.rounds), replace(made, seconds=made.seconds + last.seconds))

    def columns(self, atom: Any) -> tuple[Any, Any]:
        """Return the centred columns of an atom, and their means.

        Those of chosen atoms are at hand; to make them again may take the pool long.
        """
        if atom in self.support.blocks:
            return self.support.columns(atom)
        return self._empty.read(self.plan.pool, atom)

    def continue_path(self, start: Path) -> None:
        """Take over the rounds of another path."""
        rounds, limits = start.rounds, self.plan.limits
        # Limits may be tighter than when the path was made.
        if not limits.allowance(self.plan.pool, rounds[-1].support).is_kept():
            raise ValueError(
                f"The path to continue reads or costs more than max_inputs={limits.inputs} and "
                f"budget={limits.budget} allow. Raise them, or leave start at None."
            )
        self.path = replace(start, rounds=rounds, interrupted=False, exhausted=False)
        self.support = self.load(rounds)

    def forward(self) -> bool:
        """Add atoms as planned, as long as they help; return True if the caller ends the run."""
        plan = self.plan
        while len(self.path.rounds) < plan.furthest:
            began, taken = time.perf_counter(), frozenset(self.support.blocks)
            count = min(plan.atoms_per_round, plan.furthest - len(self.path.rounds))
            choices = choose(
                self.support, plan.pool, plan.rule, taken, plan.limits, count, plan.settings
            )
            for place, choice in enumerate(choices):
                # The first is as the scan saw it; the others are looked at again once it is in.
                fit = choice if place == 0 else self._recheck_choice(choice)
                if fit is not None:
                    self._add_atom(fit, began)
                    began = time.perf_counter()
                    if self.report():
                        self.polish()
                        return True
            if self.plan.save is not None and choices:
                # A run that is resumed loads the path. So does this one, to go on with the same
                # numbers.
                self.support = self.load(self.path.rounds)
                self.plan.save(self.path)
            if not choices:
                # The last model was solved as an earlier one, and turns out to be the last.
                self.polish()
                exhausted = len(self.path.rounds) < plan.n_atoms
                self.path = replace(self.path, exhausted=exhausted)
                break
        return False

    def report(self) -> bool:
        """Give the caller the path so far; return True if the run is to end."""
        return self.plan.on_round is not None and bool(self.plan.on_round(self.requested_path()))

    def tolerance(self, size: int) -> tuple[float, float]:
        """Return the tolerance and the floor of a round, which are tightest for ``n_atoms``."""
        settings = self.plan.settings
        last = size == self.plan.n_atoms
        looser, floor = settings.last_round if last else settings.earlier_rounds
        return looser * self.plan.tol, floor * self.path.null_loss

    def polish(self) -> None:
        """Solve the last round of the path to the tolerance of the last round of a run."""
        if self.path.rounds:
            began = time.perf_counter()
            outcome = self.support.correct(*self.tolerance(self.plan.n_atoms))
            self.put_last(self.path.rounds[-1].atom, outcome, began)

    def _recheck_choice(self, choice: Choice) -> Choice | None:
        """Return a choice with its gradient after others came in; None if it is of no use now."""
        plan, blocks = self.plan, self.support.blocks
        allowed = plan.limits.allowance(plan.pool, blocks, paced=True)
        if choice.atom in blocks or not allowed.fits(choice.atom):
            return None
        return still_helps(self.support, choice, plan.settings)

    def _add_atom(self, choice: Choice, began: float) -> None:
        """Add one atom, fit all weights again, and try replacements."""
        support, plan = self.support, self.plan
        tolerance = self.tolerance(len(self.path.rounds) + 1)
        support.append(choice.atom, choice.rows, offset=choice.offset)
        # The theorem's drop for this atom (:eq:`round-drop`): the fit goes on until it is reached.
        goal = support.objective - support.promised_drop(choice.rows, choice.gradient)
        outcome = support.correct(*tolerance, goal)
        for _ in range(plan.swaps):
            swapped = _swap_atom(support, plan, tolerance)
            if swapped is None:
                break
            support, outcome = swapped
        if plan.evidence_rows is not None:
            outcome = follow_evidence(
                support, plan.evidence_rows, tolerance, outcome, plan.settings
            )
        self.support = support
        made = record(support, choice.gradient, outcome, began, choice.atom)
        self.put(len(self.path.rounds) + 1, made)


def _swap_atom(
    support: Support, plan: GreedyPlan, tolerance: tuple[float, float]
) -> tuple[Support, Outcome] | None:
    """Replace the cheapest atom by a better one; return None if that does not lower the objective.

    The newest atom stays. It was chosen as the best beside the others, while the others were chosen
    without it. What the others cost to drop is :eq:`removal-cost`.
    """
    if len(support.blocks) < 2:
        return None
    costs = support.removal_costs()
    newest = next(reversed(support.blocks))
    cheapest = min((atom for atom in costs if atom != newest), key=costs.__getitem__)
    # Refitted before the choice, which goes by the residual of the model without the atom. The old
    # atom is excluded too, or it would often come straight back.
    trial = support.without(cheapest)
    trial.correct(*tolerance)
    choices = choose(
        trial, plan.pool, plan.rule, frozenset(support.blocks), plan.limits, 1, plan.settings
    )
    if not choices:
        return None
    (choice,) = choices
    trial.append(choice.atom, choice.rows, offset=choice.offset)
    outcome = trial.correct(*tolerance)
    return (trial, outcome) if trial.objective < support.objective else None


def record(
    support: Support, gradient: float, outcome: Outcome, began: float, atom: Any = None
) -> Round:
    """Return the model of a support as a round, which is about its last atom by default."""
    return Round(
        atom=next(reversed(support.blocks)) if atom is None else atom,
        support=tuple(support.blocks),
        # A copy, so that the path cannot change with the support.
        weights=namespace(support.weights).asarray(support.column_weights, copy=True),
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
