"""The measuring process of ``benchmarks.matrix``: one solver on one problem.

``python -m benchmarks.matrix.child ORDER.json`` is started by ``benchmarks.matrix.processes``, with
the Python of the solver's environment. It appends each finished stage to a file. A process either
finds a tolerance (stage "tune") or times calls (stage "time"). Two processes are needed because the
first call must be timed in a fresh one.
"""

from __future__ import annotations

import json
import statistics
import sys
import warnings
from pathlib import Path
from typing import Any

from benchmarks.harness.measure import REPEATS, SHORT, limit_cpu, measure_call
from benchmarks.matrix.classes import LARGEST_PEERS, TRACE_PEERS
from benchmarks.matrix.classes import PEERS as CLASS_PEERS
from benchmarks.matrix.data import Place, read
from benchmarks.matrix.methods import Solver, compute_gaps, search_tolerance
from benchmarks.matrix.ours import Classifier, Regressor, Search
from benchmarks.matrix.ours import Path as ClassifierPath
from benchmarks.matrix.tasks import LOW_RANK_PEERS
from benchmarks.matrix.tasks import PEERS as TASK_PEERS

OURS, OURS_SEARCH = "mixnorm", "mixnorm-search"


def list_solvers(place: Place) -> dict[str, Solver]:
    """Return the solvers of a problem, ours first."""
    if place.part == "multitask":
        return {OURS: Regressor(), **TASK_PEERS}
    if place.part == "multiclass":
        peers = CLASS_PEERS if place.norm == "l2,1" else LARGEST_PEERS
        return {OURS: ClassifierPath(), OURS_SEARCH: Search(), **peers}
    if place.data == "low-rank":
        return {OURS: Regressor(), **LOW_RANK_PEERS}
    return {OURS: Classifier(), **TRACE_PEERS}


def run(order: dict[str, Any], report: Path) -> None:
    """Carry out one order, and append a line of JSON for each finished stage."""

    def report_stage(**stage: Any) -> None:
        with report.open("a") as file:
            file.write(json.dumps(stage) + "\n")

    place = Place(order["part"], order["data"], order["norm"])
    solver = list_solvers(place)[order["method"]]
    problem = read(place, Path(order["folder"]))
    if order["stage"] == "tune":
        limit_cpu(order["limit"])
        for found in search_tolerance(solver, problem):
            report_stage(**found)
            limit_cpu(order["limit"])
        return

    inputs, tol = solver.convert(problem), order["tol"] or problem.tol
    _, cost = measure_call(solver.setup)
    report_stage(import_seconds=cost.seconds, tol=tol, asked=problem.tol)
    limit_cpu(order["limit"])
    fitted, first = measure_call(lambda: solver.solve(inputs, problem, tol))
    costs = {"seconds": first.seconds, "first_seconds": first.seconds, "calls": 1}
    report_stage(peak_bytes=first.peak_bytes, peak_total_bytes=first.total_bytes, **costs)
    report_stage(
        claimed=solver.get_claimed_gaps(fitted),
        **compute_gaps(problem, solver.models(fitted, problem)),
    )
    del fitted
    later: list[float] = []
    while len(later) < (REPEATS if later and later[0] < SHORT else 1):
        limit_cpu(order["limit"])
        _, cost = measure_call(lambda: solver.solve(inputs, problem, tol))
        later.append(cost.seconds)
    report_stage(seconds=statistics.median(later), later_seconds=later, calls=1 + len(later))


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # loose tolerances are requested on purpose
    task = json.loads(Path(sys.argv[1]).read_text())
    run(task, Path(task["report"]))
