"""The measuring process of ``benchmarks.mkl``: one method on one stack of kernels, or many rows.

``python -m benchmarks.mkl.child ORDER``; ORDER is JSON with part, data, method and limit, and the
last line of the output is JSON.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import warnings
from typing import Any

import numpy as np

from benchmarks.harness.limit import OutOfTime, limited
from benchmarks.harness.measure import REPEATS, SHORT, Cost, measure_call
from benchmarks.harness.version import source
from benchmarks.mkl.data import WIDTHS, Kernels, Rows, everything, kernels, split, synthetic
from benchmarks.mkl.methods import METHODS, Inputs, Method, Outcome, facts_of

FEW = 12  # training rows of every class, for the call that loads and compiles
LONG = 60.0  # seconds of a first call after which there is no second one
RANK, MEMORY = 256, "2 GiB"
SYNTHETIC = (50_000, 5_000)
PREDICTED = 4_000  # of the rows learned from, where all are


def measure(part: str, data: str, method: str, limit: float) -> dict[str, Any]:
    """Return what one order asks for, each call within the limit."""
    try:
        if part == "stack":
            found = on_stack(data, METHODS[method], limit)
        else:
            large = part == "large"
            rows = everything(data, PREDICTED) if large else synthetic(*SYNTHETIC)
            found = on_rows(rows, limit) | {"seen": large}
    except OutOfTime:
        return {"status": "timeout", "limit": limit}
    return {"status": "ok"} | found


def on_stack(data: str, method: Method, limit: float) -> dict[str, Any]:
    """Return CPU seconds, accuracy and memory of one method on stored kernels."""
    made = kernels(split(data))
    stack, few = made.K.nbytes, made.few(FEW)
    _, loaded = measure_call(lambda: warm_up(method, few))
    inputs, y_test = method.convert(made), made.y_test
    del made  # only what the method holds is left
    (outcome, first), later = calls(method, inputs, limit)
    found = {
        "rows": len(inputs.y),
        "seconds": statistics.median(later) if later else first.seconds,
        "later_seconds": later,
        "extra_seconds": loaded.seconds + max(0.0, first.seconds - (later or [first.seconds])[0]),
        "accuracy": 100 * float(np.mean(outcome.labels == y_test)),
        "stack_bytes": stack,
        "held_bytes": inputs.held,
        "peak_bytes": first.peak_bytes,
    }
    return found | outcome.facts | ({"source": source()} if method.ours else {})


def warm_up(method: Method, few: Kernels) -> None:
    """Import, load and compile the code of a call, whose memory is not that of the data."""
    method.setup()
    method.run(method.convert(few))


def calls(method: Method, inputs: Inputs, limit: float) -> tuple[tuple[Outcome, Cost], list[float]]:
    """Return the first call, and the CPU seconds of later ones: several where they are short."""
    with limited(limit):
        outcome, first = measure_call(lambda: method.run(inputs))
    later: list[float] = []
    while first.seconds < LONG and len(later) < (REPEATS if later and later[0] < SHORT else 1):
        later.append(measure_call(lambda: method.run(inputs))[1].seconds)
    return (outcome, first), later


def on_rows(rows: Rows, limit: float) -> dict[str, Any]:
    """Return the cost of learning from many rows, kernels being known by their factors."""
    from mixnorm import MKLClassifier
    from mixnorm.kernels import gaussian_bank

    def run(X: np.ndarray, y: np.ndarray) -> Outcome:
        # Gaussian kernels have a trace of one for each row: normalising would change nothing.
        settings = {"factors": "nystrom", "rank": RANK, "memory": MEMORY, "normalize": None}
        bank = gaussian_bank(WIDTHS, **settings)
        model = MKLClassifier(bank).fit(X, y)
        return Outcome(model.predict(rows.X_test), facts_of(model))

    _, loaded = measure_call(lambda: run(rows.X[:500], rows.y[:500]))
    with limited(limit):
        outcome, cost = measure_call(lambda: run(rows.X, rows.y))
    return outcome.facts | {
        "rows": len(rows.y),
        "tested": len(rows.y_test),
        "rank": RANK,
        "seconds": cost.seconds,
        "wall_seconds": cost.wall,
        "extra_seconds": loaded.seconds,
        "accuracy": 100 * float(np.mean(outcome.labels == rows.y_test)),
        "peak_bytes": cost.peak_bytes,
        "total_bytes": cost.total_bytes,
        "source": source(),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(sys.stderr):  # some libraries print
        answer = measure(**json.loads(sys.argv[1]))
    print(json.dumps(answer))
