"""Tuning: adjust the parameters of the chosen atoms together with all weights.

Pools offer this where atoms have parameters, as patches have templates. A sweep asks the pool for
steps of all atoms at once, goes along them as far as the loss falls enough, and then fits all
weights again (:eq:`patch-tuning`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from mixnorm._array import namespace
from mixnorm.engines._core.corrective import Outcome, Support

if TYPE_CHECKING:
    from mixnorm.engines.greedy.engine import Run
    from mixnorm.pools import PreparedPool


class Adjustment(Protocol):
    """Steps that a pool has found for some atoms; users' pools may return objects like it."""

    #: How fast the loss falls along the steps.
    slope: float

    def move(self, length: float) -> list[tuple[Any, float]]:
        """Return the atoms after steps of this length, from where they began.

        Each atom comes with a factor for its weights, since its columns have another scale. The
        pool goes on with the atoms of the last call.
        """
        ...


def check(pool: PreparedPool, sweeps: int) -> None:
    """Raise unless the pool can adjust its atoms."""
    if sweeps and not pool.adjustable:
        name = type(pool.given).__name__.removeprefix("Prepared")
        raise TypeError(
            f"tune={sweeps} adjusts atoms, which {name} cannot do (it has no method adjust). Set "
            "tune=0, or choose a pool of patches."
        )


def tune(run: Run, sweeps: int) -> None:
    """Adjust the atoms of the last model, which is replaced after each sweep.

    A keyboard interrupt keeps the sweeps so far.
    """
    if not run.path.rounds or not sweeps:
        return
    # Beyond the requested size there may be models that the path does not return.
    if run.plan.furthest > run.plan.n_atoms:  # a backward pass has changed models of all sizes
        run.path = run.requested_path()
        run.support = run.load(run.path.rounds)
    settings = run.plan.settings
    length, tolerance = settings.first_step, run.tolerance(run.plan.n_atoms)
    for _ in range(sweeps):
        began = time.perf_counter()
        found = _take_sweep(run, length, tolerance)
        if found is None:
            break
        before, (run.support, length, outcome) = run.support.objective, found
        run.put_last(None, outcome, began)
        if run.report() or run.support.objective > (1.0 - settings.least_sweep_fall) * before:
            break
        length = min(1.0, settings.step_growth * length)


def _take_sweep(
    run: Run, length: float, tolerance: tuple[float, float]
) -> tuple[Support, float, Outcome] | None:
    """Return a better support, the length of the step to it and the outcome of its fit; or None."""
    support, pool, settings = run.support, run.plan.pool, run.plan.settings
    problem, atoms = support.problem, list(support.blocks)
    weights, residual = support.column_weights, support.residual
    # By the chain rule: derivatives in the columns are those in the scores, times the weights.
    curvature = problem.loss.curvature(residual, problem.target, problem.weight)
    bends = (weights * weights) @ namespace(weights).broadcast_to(curvature, residual.shape).T
    adjustment: Adjustment = pool.adjust(atoms, weights @ residual.T, bends)
    try:
        for _ in range(settings.step_lengths):
            trial = _replace_atoms(run, adjustment.move(length), atoms)
            # At the old weights: what the steps alone gain. The fit of the weights costs more, and
            # is not worth it if they gain nothing.
            least = settings.least_fall_share * length * adjustment.slope
            if trial.value < support.value - least:
                outcome = trial.correct(*tolerance)
                if trial.objective < support.objective:
                    return trial, length, outcome
            length *= 0.5
    except BaseException:  # a keyboard interrupt, say: the pool must go on with the atoms before
        adjustment.move(0.0)
        raise
    adjustment.move(0.0)
    return None


def _replace_atoms(run: Run, moved: list[tuple[Any, float]], before: list[Any]) -> Support:
    """Return a support with the adjusted atoms in place of those before, and their weights."""
    support, trial = run.support, run.make_empty()
    trial.forget_curvature()  # that of the empty model would be extended atom by atom
    for (atom, ratio), old in zip(moved, before, strict=True):
        rows, offset = trial.centre(run.plan.pool.columns(atom))
        trial.append(atom, rows, support.weights[support.blocks[old], :] * ratio, offset)
    trial.start_from(support.intercept())
    return trial
