"""The way back: atoms are dropped one at a time, and the better model of each size is kept."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

from mixnorm.engines._core.corrective import Outcome, Support
from mixnorm.engines.greedy.engine import Run, record
from mixnorm.engines.greedy.rules import Choice
from mixnorm.models import Round


def prune(run: Run) -> None:
    """Go from the last model of a run down to one atom.

    An atom costs what the objective would rise by if it were dropped and the others re-optimised,
    as the curvature model sees it. From each size the way goes on from the better model, that of
    the way there or that of the way back.
    """
    found: set[int] = set()  # sizes whose model is from the way back
    support = run.support
    for size in range(len(run.path.rounds) - 1, 0, -1):
        began = time.perf_counter()
        costs = support.removal_costs()
        trial = support.without(min(costs, key=costs.__getitem__))
        trial.set_alpha(run.path.rounds[size - 1].alpha)
        outcome = trial.correct(*run.tolerance(size))
        if trial.objective < run.path.rounds[size - 1].objective:
            _put(run, size, _made(trial, outcome, began))
            found.add(size)
            support = trial
        else:
            support = run.load(run.path.rounds[:size])
        if run.report():
            break
    run.path = run.wanted()
    _level(run, found)
    for size in sorted(found & set(range(1, len(run.path.rounds) + 1))):
        _tell(run, size)
    run.support = run.load(run.path.rounds)
    run.polish()


def _made(support: Support, outcome: Outcome, began: float) -> Round:
    """Return the model as a round; which atom it is about is told in the end."""
    return record(support, next(reversed(support.blocks)), math.nan, outcome, began)


def _put(run: Run, size: int, made: Round) -> None:
    rounds = run.path.rounds
    run.path = replace(run.path, rounds=(*rounds[: size - 1], made, *rounds[size:]))


def _level(run: Run, found: set[int]) -> None:
    """See to it that no model is worse than a smaller one.

    Models are solved to a tolerance, so that dropping an atom that is worth next to nothing can
    lower the objective. The larger model is then solved anew, from the smaller one.
    """
    penalty = run.support.problem.penalty
    for size in range(2, len(run.path.rounds) + 1):
        smaller, larger = run.path.rounds[size - 2 : size]
        # Each size may have a penalty of its own: both are measured with that of the larger.
        if larger.objective <= smaller.loss + larger.alpha * penalty.value(smaller.weights):
            continue
        began, support = time.perf_counter(), run.load(run.path.rounds[: size - 1])
        support.set_alpha(larger.alpha)
        atom = next(atom for atom in larger.support if atom not in support.blocks)
        rows, offset = run.columns(atom)
        support.append(atom, rows, offset=offset)
        outcome = support.correct(*run.tolerance(size))
        _put(run, size, _made(support, outcome, began))
        found.add(size)


def _tell(run: Run, size: int) -> None:
    """Say of the model of a size which atom the next smaller one lacks, and its gradient there.

    Where that is not one atom, the last of the support stands for the round.
    """
    made, smaller = run.path.rounds[size - 1], run.load(run.path.rounds[: size - 1])
    new: list[Any] = [atom for atom in made.support if atom not in smaller.blocks]
    atom = new[0] if len(new) == 1 else made.support[-1]
    rows, _ = run.columns(atom)
    gradient = Choice(atom, rows, smaller.slope_at_zero(rows)).gradient
    _put(run, size, replace(made, atom=atom, gradient=gradient))
