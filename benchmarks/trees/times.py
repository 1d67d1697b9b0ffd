"""Times of predictions for ``benchmarks.trees``: lean calls, ``predict``, and a million rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.trees.boosters import BOOSTERS
from benchmarks.trees.child import load, measure_error, set_aside, try_settings
from benchmarks.trees.command import SMALL

MANY = 1_000_000


def time_predictions(data: str) -> dict[str, Any]:
    """Time ``SMALL`` stumps, and the cheapest trees with no larger error on held-out rows."""
    from mixnorm import ShareBoostClassifier
    from mixnorm.pools import Stumps

    split = load(data)
    fit_rows, held, _ = set_aside(split.y)
    model = ShareBoostClassifier(SMALL, pool=Stumps()).fit(split.X[fit_rows], split.y[fit_rows])
    enough = measure_error(model.predict(split.X[held]), split.y[held])
    model.fit(split.X, split.y)
    rows = np.resize(split.X_test, (MANY, split.X.shape[1]))
    lean = model.predictor()
    found = {
        "mixnorm": _time_calls(lambda row: lean(row[0]), lean, model.predict, rows)
        | {"error": measure_error(model.predict(split.X_test), split.y_test), "held_out": enough}
    }
    for name, maker in BOOSTERS.items():
        tried = try_settings(split, maker, None)
        good = [each for each in tried if each[0] <= enough] or [min(tried)]
        error, _, settings, rounds = min(good, key=lambda each: each[1])
        small = maker.fit(split.X, split.y, settings, rounds)
        call = maker.lean(small)
        found[name] = _time_calls(call, call, small.predict, rows) | {
            "error": measure_error(small.predict(split.X_test), split.y_test),
            "held_out": error,
            "rounds": rounds,
            "settings": settings,
        }
    found["memory"] = {"many": _time_best(lambda: rows.max(axis=1), 3)}
    return found


def _time_calls(
    one: Callable[[np.ndarray], Any],
    lean: Callable[[np.ndarray], Any],
    predict: Callable[[np.ndarray], Any],
    rows: np.ndarray,
) -> dict[str, float]:
    row = rows[:1]
    for call in (one, lean, predict):
        call(row)
    return {
        "one": _time_best(lambda: [one(row) for _ in range(200)], 5) / 200,
        "one_predict": _time_best(lambda: [predict(row) for _ in range(50)], 5) / 50,
        "many": _time_best(lambda: lean(rows), 3),
        "many_predict": _time_best(lambda: predict(rows), 3),
    }


def _time_best(call: Callable[[], Any], times: int) -> float:
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        spent.append(time.perf_counter() - began)
    return min(spent)
