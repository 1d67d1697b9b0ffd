"""The backward pass: it drops atoms one at a time, and keeps the better model of each size."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from mixnorm.engines.greedy.engine import Run, record
from mixnorm.engines.greedy.rules import Choice


def prune(run: Run) -> None:
    """Drop atoms from the last model of a run until one is left.

    The atom that is dropped raises the objective least, by the curvature model, once the other
    weights are fitted again (:eq:`removal-cost`). From each size the pass goes on from the better
    of its own model and the forward one.
    """
    found: set[int] = set()  # sizes whose model is from this pass
    support = run.support
    for size in range(len(run.path.rounds) - 1, 0, -1):
        began = time.perf_counter()
        costs = support.removal_costs()
        trial = support.without(min(costs, key=costs.__getitem__))
        # The penalty of the forward model of this size, so that the two objectives can be compared.
        trial.set_alpha(run.path.rounds[size - 1].alpha)
        outcome = trial.correct(*run.tolerance(size))
        if trial.objective < run.path.rounds[size - 1].objective:
            run.put(size, record(trial, math.nan, outcome, began))  # its atom is set below
            found.add(size)
            support = trial
        else:
            support = run.load(run.path.rounds[:size])
        if run.report():
            break
    run.path = run.requested_path()
    _level_objectives(run, found)
    for size in sorted(found & set(range(1, len(run.path.rounds) + 1))):
        _set_atom(run, size)
    # The support may be that of one atom: the run goes on from the largest model.
    run.support = run.load(run.path.rounds)
    run.polish()


def _level_objectives(run: Run, found: set[int]) -> None:
    """Solve models again that are worse than the next smaller one.

    Models are solved to a tolerance, so that dropping an atom that is almost useless can lower the
    objective. The larger model is then solved again, from the smaller one. Its size is added to
    ``found``.
    """
    penalty = run.support.problem.penalty
    for size in range(2, len(run.path.rounds) + 1):
        smaller, larger = run.path.rounds[size - 2 : size]
        # Each size may have a penalty of its own: both objectives are with that of the larger.
        if larger.objective <= smaller.loss + larger.alpha * penalty.value(smaller.weights):
            continue
        began, support = time.perf_counter(), run.load(run.path.rounds[: size - 1])
        support.set_alpha(larger.alpha)
        # Any atom of the larger model makes the smaller one larger, and keeps its objective at
        # least.
        atom = next(atom for atom in larger.support if atom not in support.blocks)
        rows, offset = run.columns(atom)
        support.append(atom, rows, offset=offset)
        outcome = support.correct(*run.tolerance(size))
        run.put(size, record(support, math.nan, outcome, began))
        found.add(size)


def _set_atom(run: Run, size: int) -> None:
    """Set the atom of a round: the one that the next smaller model lacks, with its gradient there.

    Where the smaller model lacks several, it is the last of the support.
    """
    made, smaller = run.path.rounds[size - 1], run.load(run.path.rounds[: size - 1])
    new = [atom for atom in made.support if atom not in smaller.blocks]
    atom = new[0] if len(new) == 1 else made.support[-1]
    rows, _ = run.columns(atom)
    gradient = Choice(atom, rows, smaller.slope_at_zero(rows)).gradient
    run.put(size, replace(made, atom=atom, gradient=gradient))
