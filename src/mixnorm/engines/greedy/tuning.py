"""Tuning: the chosen atoms themselves are adjusted, together with all weights.

A pool offers this where its atoms have parameters of their own, as patches have templates. A sweep
asks the pool for steps of all atoms at once, goes along them as far as the loss falls enough, and
then re-optimises all weights.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from mixnorm._array import namespace
from mixnorm.engines._core.corrective import Support

if TYPE_CHECKING:
    from mixnorm.engines.greedy.engine import Run
    from mixnorm.pools import PreparedPool

# The first step: steps of atoms that are found one by one are too long when taken together.
_FIRST = 0.3
# Halvings before a sweep is given up, and growth after one that went well.
_HALVINGS = 6
_GROWTH = 1.5
# A step must gain this share of what its slope promises, and a sweep this share of the objective.
_ENOUGH = 0.1
_LEAST_FALL = 1e-3


class Adjustment(Protocol):
    """Steps for some atoms, as a pool finds them.

    ``slope`` is how fast the loss falls along them.
    """

    slope: float

    def move(self, length: float) -> list[tuple[Any, float]]:
        """Return the atoms that a step of this length leads to; zero stays where it began.

        With each comes what its weights are multiplied by, as its column is scaled otherwise. The
        atoms of the last call are the ones that the pool goes on with.
        """
        ...


def check(pool: PreparedPool, sweeps: int) -> None:
    """Raise unless the pool can adjust its atoms."""
    if sweeps and not pool.adjustable:
        name = type(pool.given).__name__.removeprefix("Prepared")
        raise TypeError(
            f"{name} has atoms that cannot be adjusted (it has no method adjust), "
            f"so that tune={sweeps} cannot be done. Set tune=0, or choose a pool of patches."
        )


def tune(run: Run, sweeps: int) -> None:
    """Adjust the atoms of the model asked for, in so many sweeps at most, and replace it.

    An interrupt keeps the sweeps that are done.
    """
    if not run.path.rounds or not sweeps:
        return
    if run.plan.furthest > run.plan.n_atoms:  # steps back have gone over all sizes
        run.path = run.wanted()
        run.support = run.load(run.path.rounds)
    *earlier, last = run.path.rounds
    began, iterations, length = time.perf_counter(), last.iterations, _FIRST
    tolerance = run.tolerance(run.plan.n_atoms)
    for _ in range(sweeps):
        found = _sweep(run, length, tolerance)
        if found is None:
            break
        before, (run.support, length, outcome) = run.support.objective, found
        iterations += outcome.iterations
        made = run.recorded(last.gradient, outcome, began)
        made = replace(made, seconds=made.seconds + last.seconds, iterations=iterations)
        run.path = replace(run.path, rounds=(*earlier, made))
        if run.report() or run.support.objective > (1.0 - _LEAST_FALL) * before:
            break
        length = min(1.0, _GROWTH * length)


def _sweep(run: Run, length: float, tolerance: tuple[float, float]) -> Any:
    """Return a better support, the length of the step to it and how its refit ended; or None."""
    support, pool = run.support, run.plan.pool
    problem, atoms = support.problem, list(support.blocks)
    first = int(support.has_intercept)
    weights, residual = support.weights[first:, :], support.residual
    curvature = problem.loss.curvature(residual, problem.target, problem.weight)
    bends = (weights * weights) @ namespace(weights).broadcast_to(curvature, residual.shape).T
    adjustment: Adjustment = pool.adjust(atoms, weights @ residual.T, bends)
    try:
        for _ in range(_HALVINGS):
            trial = _loaded(run, adjustment.move(length), atoms)
            if trial.value < support.value - _ENOUGH * length * adjustment.slope:
                outcome = trial.correct(*tolerance)
                if trial.objective < support.objective:
                    return trial, length, outcome
            length *= 0.5
    except BaseException:  # a keyboard interrupt, say: the pool goes on with what is kept
        adjustment.move(0.0)
        raise
    adjustment.move(0.0)
    return None


def _loaded(run: Run, moved: list[tuple[Any, float]], before: list[Any]) -> Support:
    """Return a support with the adjusted atoms in place of those before, and their weights."""
    support, trial = run.support, run.empty()
    trial.forget_curvature()
    columns = [run.plan.pool.columns(atom) for atom, _ in moved]
    centred, offsets = trial.centred(namespace(support.weights).concat(columns))
    for (atom, ratio), old, own in zip(moved, before, columns, strict=True):
        start = trial.size - int(trial.has_intercept)
        rows = slice(start, start + own.shape[0])
        weights = support.weights[support.blocks[old], :] * ratio
        trial.append(atom, centred[rows, :], weights, offsets[rows])
    trial.start_from(support.intercept())
    return trial
