"""The measuring process of ``benchmarks.mkl``: one method on stored kernels or on many rows.

In ``python -m benchmarks.mkl.child ORDER``, ORDER is JSON with part, data, method and limit. The
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

from benchmarks.harness.limit import OutOfTime, limit_seconds
from benchmarks.harness.measure import REPEATS, SHORT, Cost, measure_call
from benchmarks.harness.version import hash_source
from benchmarks.mkl.data import (
    WIDTHS,
    Kernels,
    Rows,
    compute_kernels,
    draw_synthetic,
    make_split,
    take_all_rows,
)
from benchmarks.mkl.methods import METHODS, Inputs, Method, Outcome, collect_facts

FEW = 12  # training rows per class in a first call, which loads and compiles
LONG = 60.0  # seconds; after a longer first call there is no second one
RANK, MEMORY = 256, "2 GiB"
SYNTHETIC = (50_000, 5_000)
PREDICTED = 4_000  # training rows to predict, if all rows are training rows


def measure(part: str, data: str, method: str, limit: float) -> dict[str, Any]:
    """Carry out one order, with the limit on each call."""
    try:
        if part == "stack":
            found = measure_on_stack(data, METHODS[method], limit)
        else:
            large = part == "large"
            rows = take_all_rows(data, PREDICTED) if large else draw_synthetic(*SYNTHETIC)
            found = measure_on_rows(rows, limit) | {"seen": large}
    except OutOfTime:
        return {"status": "timeout", "limit": limit}
    return {"status": "ok"} | found


def measure_on_stack(data: str, method: Method, limit: float) -> dict[str, Any]:
    """Return CPU seconds, accuracy and memory of one method on stored kernels."""
    made = compute_kernels(make_split(data))
    stack, few = made.K.nbytes, made.few(FEW)
    _, loaded = measure_call(lambda: warm_up(method, few))
    inputs, y_test = method.convert(made), made.y_test
    del made  # only the arrays of the method stay in memory
    (outcome, first), later = time_calls(method, inputs, limit)
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
    return found | outcome.facts | ({"source": hash_source()} if method.ours else {})


def warm_up(method: Method, few: Kernels) -> None:
    """Make a small call, so that imports and compiled code do not count as memory."""
    method.setup()
    method.run(method.convert(few))


def time_calls(
    method: Method, inputs: Inputs, limit: float
) -> tuple[tuple[Outcome, Cost], list[float]]:
    """Return the first call, and the CPU seconds of later ones (several if they are short)."""
    with limit_seconds(limit):
        outcome, first = measure_call(lambda: method.run(inputs))
    later: list[float] = []
    while first.seconds < LONG and len(later) < (REPEATS if later and later[0] < SHORT else 1):
        later.append(measure_call(lambda: method.run(inputs))[1].seconds)
    return (outcome, first), later


def measure_on_rows(rows: Rows, limit: float) -> dict[str, Any]:
    """Return the cost of learning from many rows with low-rank factors of the kernels."""
    from mixnorm import MKLClassifier
    from mixnorm.kernels import gaussian_bank

    def run(X: np.ndarray, y: np.ndarray) -> Outcome:
        # A Gaussian kernel has ones on its diagonal: normalising by the trace changes nothing.
        settings = {"factors": "nystrom", "rank": RANK, "memory": MEMORY, "normalize": None}
        bank = gaussian_bank(WIDTHS, **settings)
        model = MKLClassifier(bank).fit(X, y)
        return Outcome(model.predict(rows.X_test), collect_facts(model))

    _, loaded = measure_call(lambda: run(rows.X[:500], rows.y[:500]))
    with limit_seconds(limit):
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
        "source": hash_source(),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(sys.stderr):  # some libraries print
        answer = measure(**json.loads(sys.argv[1]))
    print(json.dumps(answer))
