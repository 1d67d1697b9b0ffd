"""The measuring process of ``benchmarks.advise``: advice on one dataset.

``python -m benchmarks.advise.child ORDER``; ORDER is JSON with part, data and seed. The last line
of the output is JSON.
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from benchmarks.advise.data import DESIGNS, Design, draw_real
from benchmarks.harness.measure import measure_call
from benchmarks.harness.version import hash_source


def measure(part: str, data: str, seed: int) -> dict[str, Any]:
    """Return the advice, and the test errors of all norms."""
    from mixnorm import advise

    given = _load_data(part, data, seed)
    advice, cost = measure_call(lambda: advise(given.X, given.y, groups=given.groups))
    found = {"status": "ok", "seconds": cost.seconds, "wall_seconds": cost.wall}
    found |= {"peak_bytes": cost.total_bytes, "source": hash_source()}
    found |= {"chosen": advice.best_norm_, "verdict": advice.verdict, "why": advice.why}
    found["held"] = {one.name: one.error for one in advice.norms}
    found["places"] = advice.bound_order()
    if part == "isolet":
        return found
    errors = measure_test_errors(advice, given)
    best = min(errors.values())
    return found | {"errors": errors, "slack": compute_slack(given, best)}


def _load_data(part: str, data: str, seed: int) -> Design:
    if part == "designs":
        return DESIGNS[data](np.random.default_rng(seed))
    if part == "isolet":
        from mixnorm.datasets import load

        found = load("isolet")
        return Design(np.asarray(found.X, dtype=np.float64), found.y, None, None)
    return draw_real(data, seed)


def measure_test_errors(advice: Any, given: Design) -> dict[str, float]:
    """Return the error of every norm at its best penalty, on rows that no choice used."""
    # The best penalty falls with the root of the number of rows.
    scale = math.sqrt(advice.n_used / advice.n_samples)
    errors = {}
    for one in advice.norms:
        model = clone(advice.best_estimator_).set_params(norm=one.norm, alpha=one.alpha * scale)
        predicted = model.fit(given.X, given.y).predict(given.X_test)
        if is_classifier(model):
            errors[one.name] = float(np.mean(predicted != given.y_test))
        else:
            left = ((predicted - given.y_test) ** 2).mean(axis=0)
            errors[one.name] = float((left / given.y_test.var(axis=0)).mean())
    return errors


def compute_slack(given: Design, best: float) -> float:
    """Return a standard error of the smallest test error."""
    n = len(given.y_test)
    if np.ndim(given.y_test) == 1:
        return math.sqrt(max(best, 1.0 / n) * (1.0 - best) / n)
    return best * math.sqrt(2.0 / n)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(sys.stderr):
        answer = measure(**json.loads(sys.argv[1]))
    print(json.dumps(answer))
