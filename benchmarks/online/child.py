"""The measuring process of ``benchmarks.online``: one learner on one stream, or on a raw table.

``python -m benchmarks.online.child ORDER``; ORDER is JSON with data and method, or with a job of
``JOBS`` and what it takes, and the last line of the output is JSON.
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

from benchmarks.harness.measure import REPEATS, SHORT, cpu_seconds, measure_call
from benchmarks.harness.version import source
from benchmarks.online import raw_tables, units
from benchmarks.online.data import Stream, load
from benchmarks.online.learners import COARSE, METHODS, Learner, Ours, Outcome

ONE_BY_ONE = "mnist"  # where single rows are timed as well
LEARNED, FITTED = 10_000, 2_000  # rows for ``learn_one`` and ``partial_fit``
SPEED_SECONDS = 3.0  # of passes beside an earlier commit
FIRST = (300, 20)  # rows and columns of a first call: compiling is all that it does


def measure(data: str, method: str) -> dict[str, Any]:
    """Return rows a second, mistakes, and what the first pass took longer."""
    learner = METHODS[method]
    stream = load(data).first(learner.rows)
    with tempfile.TemporaryDirectory(prefix="mixnorm-bench-") as folder:
        inputs, searched = learner.convert(stream, Path(folder)), {}
        if learner.grid:
            learner, searched = tuned(learner, inputs)
        found = passes(learner, inputs) | searched
    if isinstance(learner, Ours):
        found |= {"source": source()}
        if data == ONE_BY_ONE and not searched:
            found |= one_by_one(learner, stream)
    return found


def tuned(learner: Learner, inputs: Any) -> tuple[Learner, dict[str, Any]]:
    """Return the learner with the settings that make the fewest mistakes in a pass of their own.

    The mistakes of all settings and the seconds of the search are returned too.
    """
    learner.setup()
    began, counts = cpu_seconds(), []
    for settings in learner.grid:
        wrong = learner.with_settings(settings).mistakes(inputs, COARSE)
        if wrong is None:
            raise RuntimeError(f"{learner} counts no mistakes to choose by.")
        counts.append(wrong)
    chosen = learner.grid[counts.index(min(counts))]
    searched = {"settings": chosen, "counts": counts, "search_seconds": cpu_seconds() - began}
    return learner.with_settings(chosen), searched


def passes(learner: Learner, inputs: Any) -> dict[str, Any]:
    """Time a first pass and later ones, each by a fresh model; the fastest of the later counts.

    Other work on the machine only adds seconds, most of all to learners with threads of their own.
    """
    _, imported = measure_call(learner.setup)
    outcome, first = timed(learner, inputs)
    later: list[float] = []
    while len(later) < (REPEATS if later and later[0] < SHORT else 1):
        again, seconds = timed(learner, inputs, outcome.rows)
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


def timed(learner: Learner, inputs: Any, rows: int | None = None) -> tuple[Outcome, float]:
    """Run one pass, and return it with its CPU seconds."""
    outcome, cost = measure_call(lambda: learner.learn(inputs, rows))
    return outcome, cost.seconds if outcome.seconds is None else outcome.seconds


def one_by_one(learner: Ours, stream: Stream) -> dict[str, float]:
    """Return the CPU seconds of ``learn_one`` and of ``partial_fit`` of one row, means."""
    labels, classes = stream.y.tolist(), np.arange(stream.classes)

    def learned() -> float:
        model = learner.model().partial_fit(stream.X[:1], stream.y[:1], classes=classes)
        rows = list(stream.X[1 : LEARNED + 1])
        model.learn_one(rows[0], labels[1])
        began = cpu_seconds()
        for row, label in zip(rows, labels[1:], strict=False):
            model.learn_one(row, label)
        return (cpu_seconds() - began) / len(rows)

    def fitted() -> float:
        model = learner.model().partial_fit(stream.X[:1], stream.y[:1], classes=classes)
        rows = [(stream.X[at : at + 1], stream.y[at : at + 1]) for at in range(1, FITTED + 1)]
        began = cpu_seconds()
        for X, y in rows:
            model.partial_fit(X, y)
        return (cpu_seconds() - began) / len(rows)

    # As for whole passes: the first one is not counted.
    learned(), fitted()
    return {
        "learn_one_seconds": min(learned() for _ in range(REPEATS)),
        "partial_fit_seconds": min(fitted() for _ in range(REPEATS)),
    }


def tables(table: str, method: str) -> dict[str, Any]:
    """Return the mistakes of one method on a raw table."""
    found = raw_tables.measure(table, method)
    return found | ({"source": source()} if raw_tables.METHODS[method].ours else {})


def affine(table: str) -> dict[str, Any]:
    """Return by how much the mistakes on a raw table change with units and origins."""
    return units.measure(table) | {"source": source()}


def speed(data: str, method: str) -> dict[str, Any]:
    """Return the rows a second of one of our learners, of whichever package is imported.

    The fastest pass of several seconds of them counts: a pass over isolet is a few hundredths of a
    second, and other work on the machine only adds to it.
    """
    learner, stream, later = METHODS[method], load(data), []
    outcome, _ = timed(learner, stream)
    while len(later) < REPEATS or sum(later) < SPEED_SECONDS:
        later.append(timed(learner, stream)[1])
    return {
        "rows": outcome.rows,
        "mistakes": outcome.mistakes,
        "rate": outcome.rows / min(later),
        "passes": len(later),
        "package": package(),
    }


def first() -> dict[str, Any]:
    """Return the CPU seconds of a first ``partial_fit``, import and compiling included.

    The calls after it show what is left to compile: the same rows in Fortran order and read-only,
    as CSR, and one row by ``learn_one``.
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
    return found | {"seconds": cost.seconds, "wall": cost.wall, "package": package()}


def package() -> str:
    """Return the folder that mixnorm was imported from."""
    import mixnorm

    return str(Path(str(mixnorm.__file__)).parent)


JOBS = {"pass": measure, "tables": tables, "affine": affine, "speed": speed, "first": first}


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # raw features: the others' scores overflow
    order = json.loads(sys.argv[1])
    print(json.dumps(JOBS[order.pop("job", "pass")](**order)))
