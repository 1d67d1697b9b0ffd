"""The measuring process of ``benchmarks.tensor``: one order.

In ``python -m benchmarks.tensor.child ORDER``, ORDER is JSON with part, limit, and the arguments of
the part. The last line of the output is JSON.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import warnings
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness.limit import OutOfTime, limit_seconds
from benchmarks.harness.measure import measure_call
from benchmarks.harness.version import hash_source
from benchmarks.mkl.child import time_calls
from benchmarks.tensor.data import Part, Split, centre, draw_synthetic, make_split
from benchmarks.tensor.methods import METHODS, TOL, Problem, list_gammas, make_kernel, make_loss
from benchmarks.tensor.models import MODELS, choose_model

SPLIT = 0  # the split whose training part is the problem of ``path`` and ``losses``
SIGNS = ("hinge", "logistic")  # losses whose target is the sign of the centred target
# Short calls are repeated for AGAIN CPU seconds, but at most MOST_CALLS times.
AGAIN, MOST_CALLS = 2.0, 50


def measure(part: str, limit: float, **order: Any) -> dict[str, Any]:
    """Carry out one order; calls that exceed the limit are stopped."""
    if part == "tables":
        return measure_split(limit=limit, **order)
    method = METHODS[order["method"]]
    problem, imported = measure_call(lambda: make_problem(part, order))
    try:
        found = {"status": "ok"} | time_solver(method, problem, limit)
        found["extra_seconds"] += imported.seconds
    except OutOfTime:
        found = {"status": "timeout", "limit": limit}
    if method.gapped:
        found |= collect_certificate(problem)
    return found | ({"source": hash_source()} if method.ours else {})


def make_problem(part: str, order: dict[str, Any]) -> Problem:
    """Return the problem of an order."""
    rows = (
        draw_synthetic(order["rows"])
        if part == "scaling"
        else make_split(order["data"], SPLIT).train
    )
    loss = order.get("loss", "squared")
    y = np.where(rows.y > rows.y.mean(), 1.0, -1.0) if loss in SIGNS else centre(rows.y)
    values, tol = list_gammas(order["gammas"]), order.get("tol") or TOL
    return Problem(rows.X, y, make_kernel(order["kernel"]), values, make_loss(loss), tol)


def time_solver(method: Any, problem: Any, limit: float) -> dict[str, Any]:
    """Solve, at least twice if that is quick, and return facts and cost."""
    facts: Any
    _, loaded = measure_call(lambda: method.run(problem.few()))
    (facts, first), later = time_calls(method, problem, limit)
    while later and sum(later) < AGAIN and len(later) < MOST_CALLS:
        later.append(measure_call(lambda: method.run(problem))[1].seconds)
    return {**facts} | {
        "seconds": statistics.median(later) if later else first.seconds,
        "later_seconds": later,
        "extra_seconds": loaded.seconds + max(0.0, first.seconds - (later or [first.seconds])[0]),
        "peak_bytes": first.total_bytes,
    }


def collect_certificate(problem: Problem) -> dict[str, Any]:
    """Return the number of solved values of ``gamma``, the largest gap and the evaluations."""
    solved = problem.solved
    return {
        "done": len(solved),
        "reached": sum(one.relative <= problem.tol for one in solved),
        "gap": max((one.relative for one in solved), default=None),
        "evaluations": sum(one.evaluations for one in solved),
    }


def measure_split(data: str, seed: int, model: str, degree: int, limit: float) -> dict[str, Any]:
    """Return the errors of one model on one split, with raw and with centred targets."""
    given = make_split(data, seed)
    found: dict[str, Any] = {"status": "ok", "source": hash_source()}
    try:
        for target, middle in (("raw", 0.0), ("centred", float(given.train.y.mean()))):
            with limit_seconds(limit):
                result, cost = measure_call(partial(select_model, model, degree, given, middle))
            found[target] = result | {"seconds": cost.seconds}
    except OutOfTime:
        return {"status": "timeout", "limit": limit}
    return found


def select_model(model: str, degree: int, given: Split, middle: float) -> dict[str, Any]:
    """Fit a path of models, choose one, and return its test error."""
    train = Part(given.train.X, given.train.y - middle)
    return choose_model(MODELS[model](train, degree), given, middle)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(sys.stderr):  # some libraries print
        answer = measure(**json.loads(sys.argv[1]))
    print(json.dumps(answer))
