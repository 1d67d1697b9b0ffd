"""The measuring process of ``benchmarks.mkl_table1``: some methods on one split of a dataset.

``python -m benchmarks.mkl_table1.child ORDER``; ORDER is JSON. It writes a line of JSON as soon
as a method is finished or has used up its CPU seconds.
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.harness.limit import OutOfTime, limit_seconds
from benchmarks.harness.measure import read_cpu_seconds
from benchmarks.harness.version import hash_source
from benchmarks.mkl_table1.methods import METHODS, Problem, make_problem


def run_methods(order: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the record of every method."""
    given = make_problem(
        order["data"], order["split"], order["rows"], order["folds"], order["grid"]
    )
    digest = hash_source()
    for method in order["methods"]:
        yield {"method": method, "source": digest} | run_method(method, given, order["limit"])


def run_method(method: str, given: Problem, limit: float) -> dict[str, Any]:
    """Return the test accuracy and the chosen parameters of one method, or the failure."""
    began = read_cpu_seconds()
    try:
        with limit_seconds(limit):
            outcome = METHODS[method](given)
    except OutOfTime:
        return {"status": "timeout", "limit": limit}
    except Exception as error:
        return {"status": "failed", "message": f"{type(error).__name__}: {error}"}
    return {
        "status": "ok",
        "accuracy": 100 * float(np.mean(outcome.labels == given.rows.y_test)),
        "seconds": read_cpu_seconds() - began,
        "rows": len(given.y),
        "tested": len(given.rows.y_test),
        "facts": {key: as_number(value) for key, value in outcome.facts.items()},
    }


def as_number(value: Any) -> Any:
    """Return a value that JSON can store."""
    return value.item() if isinstance(value, np.generic) else value


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    answers = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # some libraries print
        for found in run_methods(json.loads(sys.argv[1])):
            print(json.dumps(found), file=answers, flush=True)
