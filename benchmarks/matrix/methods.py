"""The interface of a solver in ``benchmarks.matrix``, ours or a peer's."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from benchmarks.matrix.gap import Problem, norm, value


@dataclass(frozen=True)
class Model:
    """Coefficients at one penalty, one row per feature."""

    alpha: float
    W: np.ndarray


@dataclass(frozen=True)
class Solver:
    """Base of all solvers: stateless, so a name and its settings say everything.

    ``work`` says what a call gives: "one model" at a given penalty, a whole "path", or a "search"
    for a number of features. Ratios are between solvers that do the same work.
    ``environment`` names the environment of its own that a library needs (empty: the common one).
    ``grid`` has the tolerances to try, from loose to tight: the first whose gap is small enough is
    the one that is timed. Without a grid the solver is handed the gap itself.
    """

    needs: ClassVar[str] = ""
    environment: ClassVar[str] = ""
    ours: ClassVar[bool] = False
    work: ClassVar[str] = "one model"
    grid: tuple[float, ...] = ()

    def setup(self) -> None:
        """Import what ``solve`` needs; timed as part of the first call's extra."""
        importlib.import_module(self.needs)

    def convert(self, problem: Problem) -> Any:
        """Give the arrays the type and order the interface takes; not timed."""
        return np.asfortranarray(problem.X), np.asfortranarray(problem.target)

    def solve(self, inputs: Any, problem: Problem, tol: float) -> Any:
        """Solve once; this is what is timed."""
        raise NotImplementedError

    def models(self, fitted: Any, problem: Problem) -> Sequence[Model]:
        """Return the solutions of one call; not timed."""
        return [Model(float(problem.alphas[0]), np.asarray(fitted))]

    def claimed(self, fitted: Any) -> list[float] | None:
        """Return the gaps that the solver itself reports, in our scale; not timed."""
        return None


# Features that a search looks for, and the calls it may make. At a gap of 1e-3 their number is not
# monotone in the penalty; a search that misses the very number ends after its calls.
SIZE, CALLS = 40, 14


def search(
    fit: Callable[[float, Any], tuple[Any, np.ndarray]], largest: float, start: Any
) -> tuple[float, Any]:
    """Return the penalty and the solution with 40 features, or the most below.

    ``fit(penalty, start)`` returns a solution and its coefficients. The penalty is halved from
    ``largest`` until there are too many features, then bisected on a log scale; each call starts
    from the last solution with few enough.
    """
    high, low, best = largest, None, (largest, start)
    for _ in range(CALLS):
        penalty = high / 2 if low is None else float(np.sqrt(high * low))
        solution, W = fit(penalty, best[1])
        used = int(np.count_nonzero(np.any(W != 0, axis=1)))
        if used > SIZE:
            low = penalty
            continue
        best, high = (penalty, solution), penalty
        if used == SIZE:
            break
    return best


def compute_gaps(problem: Problem, models: Sequence[Model]) -> dict[str, Any]:
    """Return the gaps of some solutions by the shared gap function."""
    values = [value(problem, model.W, model.alpha) for model in models]
    worst = max(values, key=lambda each: each.relative)
    last = models[-1]
    found: dict[str, Any] = {
        "relative_gap": worst.relative,
        "gaps": [each.gap for each in values],
        "objective": values[-1].objective,
        "alpha": last.alpha,
        "norm_value": norm(last.W, problem.norm),
        "features": int(np.count_nonzero(np.any(last.W != 0, axis=1))),
        "models": len(models),
    }
    if problem.norm == "trace":
        sizes = np.linalg.svd(last.W, compute_uv=False)
        found["rank"] = int(np.count_nonzero(sizes > 1e-8 * max(sizes[0], 1e-300)))
    return found


def loosest(solver: Solver, problem: Problem) -> Iterator[dict[str, Any]]:
    """Yield what is found as tolerances tighten; the last one is the loosest that will do.

    ``grid`` is walked from its loose end, two places at a time, and the place in between is tried
    at the end.
    """
    inputs = solver.convert(problem)

    def tried(place: int) -> dict[str, Any]:
        tol = solver.grid[place]
        found = compute_gaps(problem, solver.models(solver.solve(inputs, problem, tol), problem))
        return {"tol": tol, "relative_gap": found["relative_gap"]}

    last = len(solver.grid) - 1
    below, place = -1, 0
    best = tried(place)
    yield best
    while best["relative_gap"] > problem.tol and place < last:
        below, place = place, min(place + 2, last)
        best = tried(place)
        yield best
    if best["relative_gap"] <= problem.tol and place - below > 1:
        between = tried(place - 1)
        yield between if between["relative_gap"] <= problem.tol else best
