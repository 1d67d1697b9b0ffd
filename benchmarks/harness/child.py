"""The measuring process: it reads one job, runs it, and appends its results to a file.

``python -m benchmarks.harness.child JOB.json``; started by ``benchmarks.harness.jobs.run_job``.
Each stage is written as soon as it is finished. A process that the limit stops in its second call
therefore leaves the results of the first.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import statistics
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import splits
from benchmarks.harness.measure import REPEATS, SHORT, limit_cpu, measure_call
from benchmarks.harness.methods import Method

# Times are compared on all training rows (resampling 0), where a second call follows unless the
# first took LONG seconds. On other resamplings only errors count, so the second call is made only
# if the first took less than CHEAP seconds.
CHEAP, LONG = 5.0, 30.0


def find_method(suite: str, name: str) -> Method:
    """Return ``METHODS[name]`` of a suite given as an importable module."""
    method: Method = importlib.import_module(suite).METHODS[name]
    return method


def run(job: dict[str, Any], report: Path) -> None:
    """Run one job, and append a line of JSON for each finished stage."""

    def report_stage(**stage: Any) -> None:
        with report.open("a") as file:
            file.write(json.dumps(stage) + "\n")

    method = find_method(job["suite"], job["method"])
    split = splits.read(Path(job["folder"]), job["resampling"])
    X = method.convert(split.X)
    split = dataclasses.replace(split, X=X, X_test=method.convert(split.X_test))
    _, cost = measure_call(method.setup)
    report_stage(import_seconds=cost.seconds, x_bytes=splits.count_bytes(X), rows=len(split.y))

    size = min(job["size"], method.most(X))
    tuned = job.get("tuned")
    if tuned is None:
        limit_cpu(job["limit"])
        (tuned, _), cost = measure_call(
            lambda: count_failures(lambda: method.tune(X, split.y, size))
        )
        if tuned:
            report_stage(search_seconds=cost.seconds, tuned=tuned)

    limit_cpu(job["limit"])
    (fitted, stopped), first = measure_call(
        lambda: count_failures(lambda: method.fit(X, split.y, size, **tuned))
    )
    report_stage(
        unconverged=stopped,
        points=score_models(method, fitted, size, split),
        seconds=first.seconds,
        first_seconds=first.seconds,
        wall_seconds=first.wall,
        peak_bytes=first.peak_bytes,
        peak_total_bytes=first.total_bytes,
        calls=1,
    )
    del fitted
    if first.seconds < (LONG if job["resampling"] == 0 else CHEAP):
        later: list[float] = []
        while len(later) < (REPEATS if later and later[0] < SHORT else 1):
            limit_cpu(job["limit"])
            _, cost = measure_call(
                lambda: count_failures(lambda: method.fit(X, split.y, size, **tuned))
            )
            later.append(cost.seconds)
        report_stage(seconds=statistics.median(later), later_seconds=later, calls=1 + len(later))


def count_failures(call: Callable[[], Any]) -> tuple[Any, int]:
    """Return the result of ``call``, and the number of its fits that did not converge."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, sum(each.category.__name__ == "ConvergenceWarning" for each in caught)


def score_models(
    method: Method, fitted: Any, size: int, split: splits.Split
) -> list[dict[str, Any]]:
    """Return the test error in percent of every model of the fit."""
    points = []
    for point in method.points(fitted, size):
        wrong = np.asarray(point.predict(split.X_test)) != split.y_test
        points.append(
            {
                "size": point.size,
                "features": point.features,
                "error": 100 * float(np.mean(wrong)),
                "share": point.share,
            }
        )
    return points


if __name__ == "__main__":
    order = json.loads(Path(sys.argv[1]).read_text())
    run(order, Path(order["report"]))
