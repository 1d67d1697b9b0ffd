"""The measuring process of ``benchmarks.online``: one learner on one stream or raw table.

In ``python -m benchmarks.online.child ORDER``, ORDER is JSON with data and method, or with a job of
``JOBS`` and its arguments. The last line of the output is JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.harness.measure import REPEATS, SHORT, measure_call, read_cpu_seconds
from benchmarks.harness.version import hash_source
from benchmarks.online import raw_tables, units
from benchmarks.online.data import Stream, load
from benchmarks.online.learners import COARSE, METHODS, Learner, Ours, Outcome

ONE_BY_ONE = "mnist"  # the dataset on which single rows are timed as well
LEARNED, FITTED = 10_000, 2_000  # rows for ``learn_one`` and ``partial_fit``
SPEED_SECONDS = 3.0  # of repeated passes, to compare with an earlier commit
FIRST = (300, 20)  # rows and columns of a first call, which are few: it only compiles


def measure(data: str, method: str) -> dict[str, Any]:
    """Return rows per second, mistakes, and the extra time of the first pass."""
    learner = METHODS[method]
    stream = load(data).first(learner.rows)
    with tempfile.TemporaryDirectory(prefix="mixnorm-bench-") as folder:
        inputs, searched = learner.convert(stream, Path(folder)), {}
        if learner.grid:
            learner, searched = tune(learner, inputs)
        found = time_passes(learner, inputs) | searched
    if isinstance(learner, Ours):
        found |= {"source": hash_source()}
        if data == ONE_BY_ONE and not searched:
            found |= time_single_rows(learner, stream)
    return found


def tune(learner: Learner, inputs: Any) -> tuple[Learner, dict[str, Any]]:
    """Return the learner with the settings that make the fewest mistakes in one pass.

    Return also the mistakes of all settings, and the seconds of the search.
    """
    learner.setup()
    began, counts = read_cpu_seconds(), []
    for settings in learner.grid:
        wrong = learner.with_settings(settings).mistakes(inputs, COARSE)
        if wrong is None:
            raise RuntimeError(f"{learner} counts no mistakes, so its settings cannot be chosen.")
        counts.append(wrong)
    chosen = learner.grid[counts.index(min(counts))]
    searched = {"settings": chosen, "counts": counts, "search_seconds": read_cpu_seconds() - began}
    return learner.with_settings(chosen), searched


def time_passes(learner: Learner, inputs: Any) -> dict[str, Any]:
    """Time a first pass and later passes, each by a fresh model; the fastest later one counts.

    Other work on the machine can only add seconds, mostly for learners with their own threads.
    """
    _, imported = measure_call(learner.setup)
    outcome, first = time_pass(learner, inputs)
    later: list[float] = []
    while len(later) < (REPEATS if later and later[0] < SHORT else 1):
        again, seconds = time_pass(learner, inputs, outcome.rows)
        if again.mistakes != outcome.mistakes:
            raise RuntimeError(
                f"{outcome.mistakes} mistakes in the first pass, {again.mistakes} in a later one."
            )
        later.append(seconds)
    counted = outcome.mistakes is not None
    seconds = min(later)
    return {
        "rows": outcome.rows,
        "mistakes": outcome.mistakes if counted else learner.mistakes(inputs),
        "batched": not counted,
        "seconds": seconds,
        "later_seconds": later,
        "rate": outcome.rows / seconds,
        "extra_seconds": imported.seconds + max(0.0, first - seconds),
    }


def time_pass(learner: Learner, inputs: Any, rows: int | None = None) -> tuple[Outcome, float]:
    """Run one pass, and return its outcome and CPU seconds."""
    outcome, cost = measure_call(lambda: learner.learn(inputs, rows))
    return outcome, cost.seconds if outcome.seconds is None else outcome.seconds


def time_single_rows(learner: Ours, stream: Stream) -> dict[str, float]:
    """Return the mean CPU seconds of ``learn_one`` and of ``partial_fit`` with one row."""
    labels, classes = stream.y.tolist(), np.arange(stream.classes)

    def time_learn_one() -> float:
        model = learner.model().partial_fit(stream.X[:1], stream.y[:1], classes=classes)
        rows = list(stream.X[1 : LEARNED + 1])
        model.learn_one(rows[0], labels[1])
        began = read_cpu_seconds()
        for row, label in zip(rows, labels[1:], strict=False):
            model.learn_one(row, label)
        return (read_cpu_seconds() - began) / len(rows)

    def time_partial_fit() -> float:
        model = learner.model().partial_fit(stream.X[:1], stream.y[:1], classes=classes)
        rows = [(stream.X[at : at + 1], stream.y[at : at + 1]) for at in range(1, FITTED + 1)]
        began = read_cpu_seconds()
        for X, y in rows:
            model.partial_fit(X, y)
        return (read_cpu_seconds() - began) / len(rows)

    # As with whole passes, the first one does not count.
    time_learn_one(), time_partial_fit()
    return {
        "learn_one_seconds": min(time_learn_one() for _ in range(REPEATS)),
        "partial_fit_seconds": min(time_partial_fit() for _ in range(REPEATS)),
    }


def count_mistakes(table: str, method: str) -> dict[str, Any]:
    """Return the mistakes of one method on a raw table."""
    found = raw_tables.measure(table, method)
    return found | ({"source": hash_source()} if raw_tables.METHODS[method].ours else {})


def measure_affine(table: str) -> dict[str, Any]:
    """Return the change of mistakes on a raw table with units and origins of columns."""
    return units.measure(table) | {"source": hash_source()}


def measure_speed(data: str, method: str) -> dict[str, Any]:
    """Return the rows per second of one of our learners, with the imported package.

    Passes are repeated for several seconds, and the fastest counts. A pass over isolet takes a few
    hundredths of a second, and other work on the machine can only add to it.
    """
    learner, stream, later = METHODS[method], load(data), []
    outcome, _ = time_pass(learner, stream)
    while len(later) < REPEATS or sum(later) < SPEED_SECONDS:
        later.append(time_pass(learner, stream)[1])
    return {
        "rows": outcome.rows,
        "mistakes": outcome.mistakes,
        "rate": outcome.rows / min(later),
        "passes": len(later),
        "package": find_package(),
    }


def measure_first_call() -> dict[str, Any]:
    """Return the CPU seconds of a first ``partial_fit``, including import and compilation.

    The calls after it show what is compiled later: for the same rows in Fortran order and
    read-only, for CSR rows, and for one row in ``learn_one``.
    """
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal(FIRST), rng.integers(3, size=FIRST[0])
    fixed = X.copy()
    fixed.flags.writeable = False

    def call(*kinds: Any) -> Any:
        from mixnorm import MirrorDescentClassifier

        return [MirrorDescentClassifier().partial_fit(rows, y) for rows in kinds][-1]

    model, cost = measure_call(lambda: call(X))
    later = {
        "layout": lambda: call(np.asfortranarray(X), fixed),
        "sparse": lambda: call(sparse.csr_array(X)),
        "single": lambda: model.learn_one(X[0], y[0]),
    }
    found = {f"{name}_seconds": measure_call(run)[1].seconds for name, run in later.items()}
    return found | {"seconds": cost.seconds, "wall": cost.wall, "package": find_package()}


def find_package() -> str:
    """Return the folder that mixnorm was imported from."""
    import mixnorm

    return str(Path(str(mixnorm.__file__)).parent)


JOBS = {
    "pass": measure,
    "tables": count_mistakes,
    "affine": measure_affine,
    "speed": measure_speed,
    "first": measure_first_call,
}


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # scores of other learners overflow on raw features
    order = json.loads(sys.argv[1])
    print(json.dumps(JOBS[order.pop("job", "pass")](**order)))
