"""The measuring process of ``benchmarks.sparse_mkl``: one order.

In ``python -m benchmarks.sparse_mkl.child ORDER``, ORDER is JSON with part, kernels, rows, method
and limit, and with draw or rounds. The last line of the output is JSON.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import statistics
import sys
import time
import warnings
from typing import Any

import numpy as np

from benchmarks.harness.limit import OutOfTime, limit_seconds
from benchmarks.harness.measure import measure_call, read_cpu_seconds
from benchmarks.harness.version import hash_source
from benchmarks.mkl.child import time_calls
from benchmarks.mkl.data import Rows
from benchmarks.sparse_mkl.data import (
    FEW_WIDTHS,
    OUTPUTS,
    TEST_SEED,
    draw_design,
    draw_rows,
    make_bank,
    measure_error,
)
from benchmarks.sparse_mkl.methods import (
    ALPHA,
    METHODS,
    Boosting,
    Greedy,
    Learner,
    Model,
    Splines,
    count_features,
)

FEW = (60, 5)  # rows and columns of a first call, which loads and compiles
RANK = 64  # of the low-rank approximations: the estimators' default
LITTLE = 2**27  # bytes for kernels that are computed when used: the estimators' default
ALGORITHMS = {"functional": "gomp", "empirical": "l2"}  # by rule
ADDITIVE = {"relevant": 4, "tested": 2_000}
BESIDE = {"boosting": Boosting(), "splines": Splines()}  # others on additive designs


class Watched:
    """A pool that times its scans, and checks them against a slow exact twin."""

    def __init__(self, pool: Any, twin: Any = None) -> None:
        self.pool, self.twin = pool, twin
        self.seconds: list[float] = []
        self.wall: list[float] = []
        self.exact: list[int] = []
        #: Relative differences between the best score and that of the kernel found, if not 0.
        self.short: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pool, name)

    def top(self, residual: Any, rule: str, m: int, exclude: Any) -> Any:
        """Return what the pool finds, and record time and agreement."""
        scored, wall, cpu = self.pool.n_exact, time.perf_counter(), read_cpu_seconds()
        found = self.pool.top(residual, rule, m, exclude)
        self.seconds.append(read_cpu_seconds() - cpu)
        self.wall.append(time.perf_counter() - wall)
        self.exact.append(self.pool.n_exact - scored)
        if self.twin is not None:
            best = self.twin.top(residual, rule, m, exclude)
            if best and found and found[0][0] != best[0][0]:
                own = float(self.twin.scores(residual, rule, [found[0][0]])[0])
                self.short.append(1.0 - own / best[0][1])
        return found


def measure(part: str, kernels: int, rows: int, method: str, **order: Any) -> dict[str, Any]:
    """Carry out one order; calls that exceed the limit are stopped."""
    limit = order["limit"]
    try:
        if part in ("scan", "agree"):
            found = measure_rounds(kernels, rows, method, order["rounds"], twin=part == "agree")
        elif part == "fit":
            X, y = draw_design(rows, count_features(kernels), 0, outputs=OUTPUTS)
            found = measure_costs(METHODS[method], Rows(X, y, X[:0], y[:0]), limit, tuned=False)[1]
        elif part == "table":
            learner = METHODS[method]
            given = draw_rows(rows, count_features(kernels), order["draw"], learner.classes)
            found = measure_in_table(learner, given, limit)
        else:
            found = measure_additive(kernels, rows, order["draw"], limit)
    except OutOfTime:
        return {"status": "timeout", "limit": limit}
    ours = part != "table" or METHODS[method].ours
    return {"status": "ok"} | found | ({"source": hash_source()} if ours else {})


# --- scans


def measure_rounds(
    kernels: int, rows: int, rule: str, number: int, *, twin: bool
) -> dict[str, Any]:
    """Choose kernels for several outputs by one rule, and return the times of the scans."""
    from mixnorm.engines import sparse_kernels
    from mixnorm.losses import Squared

    X, y = draw_design(rows, count_features(kernels), 0, outputs=OUTPUTS)
    weight, loss = np.full(rows, 1.0 / rows), Squared()
    pool, made = make_pool(X, weight)
    watched = Watched(pool, make_reference(X, weight) if twin else None)
    y = (y - y.mean(axis=0)) / np.max(np.abs(y - y.mean(axis=0)))
    path = sparse_kernels.select(
        watched,
        loss,
        loss.encode(y, OUTPUTS, weight),
        n_kernels=number,
        n_outputs=OUTPUTS,
        weight=weight,
        algorithm=ALGORITHMS[rule],
        alpha=ALPHA,
        n_steps=number,
    )
    later = slice(1, None) if len(watched.seconds) > 1 else slice(None)  # the first one loads
    return {
        "rounds": len(path.rounds),
        "scans": len(watched.seconds),
        "seconds": statistics.median(watched.seconds[later]),
        "wall_seconds": statistics.median(watched.wall[later]),
        "most_seconds": max(watched.seconds[later]),
        "first_seconds": watched.seconds[0],
        "made_seconds": made,
        "exact": statistics.mean(watched.exact),
        "sketch_bytes": pool.sketch.nbytes,
    } | ({"different": len(watched.short), "short": watched.short} if twin else {})


def make_pool(X: np.ndarray, weight: np.ndarray) -> tuple[Any, float]:
    """Return the pool of approximated kernels, as in the estimators, and its CPU seconds."""
    from mixnorm.pools import KernelPool

    def make() -> Any:
        known = make_bank().fit(X)
        grams = dataclasses.replace(known, memory=LITTLE).grams(partly=False)
        return KernelPool(grams, weight, known.sketch(weight, RANK), known.gram)

    pool, cost = measure_call(make)
    return pool, cost.seconds


def make_reference(X: np.ndarray, weight: np.ndarray) -> Any:
    """Return the pool without approximations, which scores all kernels exactly in every scan."""
    from mixnorm.pools import KernelPool

    known = make_bank().fit(X)
    return KernelPool(known.grams(partly=False), weight, matrix=known.gram)


# --- fits


def measure_in_table(learner: Learner, rows: Rows, limit: float) -> dict[str, Any]:
    """Return cost, number of kernels and held-out error of one method on one draw."""
    model, found = measure_costs(learner, rows, limit)
    missed = measure_error(np.asarray(model.predict(rows.X_test)), rows.y_test, learner.classes)
    return found | {"used": model.kernels, "error": missed}


@dataclasses.dataclass(frozen=True)
class Tuned:
    """A learner with its chosen parameters."""

    learner: Learner
    chosen: dict[str, Any]

    def run(self, inputs: Any) -> Model:
        """Fit once."""
        return self.learner.run(inputs, **self.chosen)


def measure_costs(
    learner: Learner, rows: Rows, limit: float, *, tuned: bool = True
) -> tuple[Any, dict[str, Any]]:
    """Search by inner folds, and fit at least twice if that is quick; return model and cost."""
    _, loaded = measure_call(lambda: warm_up(learner, rows))
    with limit_seconds(limit):
        inputs, made = measure_call(lambda: learner.convert(rows))
    peaks, chosen, searched = [made.total_bytes], {}, {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if tuned:
            with limit_seconds(limit):
                chosen, cost = measure_call(lambda: learner.tune(inputs))
            peaks.append(cost.total_bytes)
            searched = {"search_seconds": cost.seconds, "chosen": select_scalars(chosen)}
        (model, first), later = time_calls(Tuned(learner, chosen), inputs, limit)
    return model, searched | {
        "seconds": statistics.median(later) if later else first.seconds,
        "later_seconds": later,
        "wall_seconds": first.wall,
        # Kernels that are not stored are computed in every fit, and count there.
        "made_seconds": made.seconds if learner.stored else 0.0,
        "extra_seconds": loaded.seconds + max(0.0, first.seconds - (later or [first.seconds])[0]),
        "peak_bytes": max(*peaks, first.total_bytes),
        "warned": sum("Converge" in one.category.__name__ for one in caught),
    }


def select_scalars(chosen: dict[str, Any]) -> dict[str, Any]:
    """Return the chosen parameters without arrays."""
    return {name: value for name, value in chosen.items() if not isinstance(value, np.ndarray)}


def warm_up(learner: Learner, rows: Rows) -> None:
    """Make a small call, which imports and compiles code."""
    n, d = FEW
    X, y = rows.X[:n, :d], rows.y[:n]
    learner.setup()
    learner.run(learner.convert(Rows(X, y, X, y)))


# --- additive designs


def measure_additive(kernels: int, rows: int, seed: int, limit: float) -> dict[str, Any]:
    """Return the first columns that our learner finds, and the errors and times of all methods."""
    features, relevant = kernels // len(FEW_WIDTHS), ADDITIVE["relevant"]
    X, y = draw_design(rows, features, seed, relevant)
    X_test, y_test = draw_design(ADDITIVE["tested"], features, TEST_SEED + seed, relevant)
    given = Rows(X, y, X_test, y_test)
    ours = Greedy(widths=FEW_WIDTHS)
    warm_up(ours, given)
    with limit_seconds(limit):
        model, cost = measure_call(lambda: ours.run(given, **ours.tune(given)))
    columns = [int(kernel) // len(FEW_WIDTHS) for kernel in model.fitted.selected_kernels_]
    found = {
        "seconds": cost.seconds,
        "columns": list(dict.fromkeys(columns)),
        "used": len(columns),
        "error": measure_error(model.predict(X_test), y_test, classes=False),
    }
    for name, peer in BESIDE.items():
        warm_up(peer, given)
        with limit_seconds(limit):
            other, cost = measure_call(lambda peer=peer: peer.run(given, **peer.tune(given)))
        found[f"{name}_error"] = measure_error(other.predict(X_test), y_test, classes=False)
        found[f"{name}_seconds"] = cost.seconds
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(sys.stderr):  # some libraries print
        answer = measure(**json.loads(sys.argv[1]))
    print(json.dumps(answer))
