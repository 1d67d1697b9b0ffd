"""The interface of a solver in ``benchmarks.matrix``, ours or another library's."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from benchmarks.matrix.gap import Problem, compute_norm, compute_value


@dataclass(frozen=True)
class Model:
    """Coefficients at one penalty, one row per feature."""

    alpha: float
    W: np.ndarray


@dataclass(frozen=True)
class Solver:
    """Base of all solvers. Solvers have no state, so a name and settings identify them.

    ``work`` is the result of a call: "one model" at a given penalty, a whole "path", or a "search"
    for a number of features. Ratios compare solvers that do the same work. ``environment`` names
    the separate environment of a library (empty: the common one). ``grid`` has the tolerances to
    try, from loose to tight. The first one with a small enough gap is timed. A solver without a
    grid gets the gap itself as tolerance.
    """

    needs: ClassVar[str] = ""
    environment: ClassVar[str] = ""
    ours: ClassVar[bool] = False
    work: ClassVar[str] = "one model"
    grid: tuple[float, ...] = ()

    def setup(self) -> None:
        """Import what ``solve`` needs; this counts as extra time of the first call."""
        importlib.import_module(self.needs)

    def convert(self, problem: Problem) -> Any:
        """Return the arrays in the type and order that the library takes; not timed."""
        return np.asfortranarray(problem.X), np.asfortranarray(problem.target)

    def solve(self, inputs: Any, problem: Problem, tol: float) -> Any:
        """Solve once; this call is timed."""
        raise NotImplementedError

    def models(self, fitted: Any, problem: Problem) -> Sequence[Model]:
        """Return the solutions of one call; not timed."""
        return [Model(float(problem.alphas[0]), np.asarray(fitted))]

    def get_claimed_gaps(self, fitted: Any) -> list[float] | None:
        """Return the gaps that the solver itself reports, on our scale; not timed."""
        return None


# The number of features that a search looks for, and its maximal number of calls. At a gap of 1e-3
# the number of features is not monotone in the penalty, so a search may miss it and needs a bound.
SIZE, CALLS = 40, 14


def search(
    fit: Callable[[float, Any], tuple[Any, np.ndarray]], largest: float, start: Any
) -> tuple[float, Any]:
    """Return the penalty and the solution with 40 features, or with the most below 40.

    ``fit(penalty, start)`` returns a solution and its coefficients. The penalty is halved from
    ``largest`` until there are too many features, then bisected on a log scale; each call starts
    from the last solution that had few enough features.
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
    """Return the gaps of solutions, by the shared gap function."""
    values = [compute_value(problem, model.W, model.alpha) for model in models]
    worst = max(values, key=lambda each: each.relative)
    last = models[-1]
    found: dict[str, Any] = {
        "relative_gap": worst.relative,
        "gaps": [each.gap for each in values],
        "objective": values[-1].objective,
        "alpha": last.alpha,
        "norm_value": compute_norm(last.W, problem.norm),
        "features": int(np.count_nonzero(np.any(last.W != 0, axis=1))),
        "models": len(models),
    }
    if problem.norm == "trace":
        sizes = np.linalg.svd(last.W, compute_uv=False)
        found["rank"] = int(np.count_nonzero(sizes > 1e-8 * max(sizes[0], 1e-300)))
    return found


def search_tolerance(solver: Solver, problem: Problem) -> Iterator[dict[str, Any]]:
    """Yield results for tighter and tighter tolerances; the last is the loosest that is enough.

    The search goes through ``grid`` from its loose end in steps of two. At the end it tries the
    tolerance that the last step skipped.
    """
    inputs = solver.convert(problem)

    def try_place(place: int) -> dict[str, Any]:
        tol = solver.grid[place]
        found = compute_gaps(problem, solver.models(solver.solve(inputs, problem, tol), problem))
        return {"tol": tol, "relative_gap": found["relative_gap"]}

    last = len(solver.grid) - 1
    below, place = -1, 0
    best = try_place(place)
    yield best
    while best["relative_gap"] > problem.tol and place < last:
        below, place = place, min(place + 2, last)
        best = try_place(place)
        yield best
    if best["relative_gap"] <= problem.tol and place - below > 1:
        between = try_place(place - 1)
        yield between if between["relative_gap"] <= problem.tol else best
