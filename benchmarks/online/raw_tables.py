"""Raw tables for ``benchmarks.online``, and the mistakes of all methods on them.

Columns are left as they are, in double precision. A table with few rows is read in several random
orders, because the result of a single order is mostly luck. Figures are totals or means over them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.drawn_tables import DRAWN
from benchmarks.harness.splits import load_parts
from benchmarks.online.data import Stream
from benchmarks.online.learners import METHODS as LEARNERS
from benchmarks.online.learners import OURS_GRID, Learner, Ours, River, VowpalWabbit, combine

#: scikit-learn's own sets, by the names of its loaders.
LOADED = ("wine", "breast_cancer")
TABLES = (*LOADED, "pendigits", *DRAWN)
FEW_ROWS, ORDERS = 1000, 5

# Wider grids than for images and texts, so that the best step sizes are not at an end.
VW_GRID = combine(
    loss_function=("squared", "logistic"), learning_rate=(0.1, 0.3, 0.5, 1, 3, 10, 30)
)
RIVER_GRID = combine(lr=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0))

METHODS: dict[str, Learner] = {
    "mirror": LEARNERS["mirror"],
    "mirror-tuned": Ours(name="MirrorDescentClassifier", grid=OURS_GRID),
    "vw": VowpalWabbit(),
    "vw-tuned": VowpalWabbit(grid=VW_GRID),
    "river": River(zeros=True, standard=True),
    "river-tuned": River(zeros=True, standard=True, grid=RIVER_GRID),
}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return raw columns in double precision and labels from zero up, in stored order."""
    if name in DRAWN:
        X, y = DRAWN[name]()
    elif name in LOADED:
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    else:
        X, y, _, _ = load_parts(name)
    X = np.asarray(X, dtype=np.float64).reshape(len(X), -1)
    return X, np.unique(y, return_inverse=True)[1]


def draw_orders(rows: int) -> list[np.ndarray]:
    """Return the random orders of a table: five if there are few rows, else one."""
    count = ORDERS if rows < FEW_ROWS else 1
    return [np.random.default_rng(seed).permutation(rows) for seed in range(count)]


def load_streams(name: str) -> list[Stream]:
    """Return a table in each of its orders."""
    X, y = load(name)
    return [Stream(np.ascontiguousarray(X[order]), y[order]) for order in draw_orders(len(y))]


@contextmanager
def convert(learner: Learner, given: list[Stream]) -> Iterator[list[Any]]:
    """Yield the converted streams of a learner, each in its own folder."""
    with tempfile.TemporaryDirectory(prefix="mixnorm-bench-") as name:
        folders = [Path(name) / str(place) for place in range(len(given))]
        for folder in folders:
            folder.mkdir()
        yield [learner.convert(*pair) for pair in zip(given, folders, strict=True)]


def measure(table: str, method: str) -> dict[str, Any]:
    """Return the mistakes of one method in every order of a table, and their mean.

    A tuned learner has one setting for all orders, the one with the fewest mistakes in total. It is
    chosen on the same rows, so its figures are optimistic.
    """
    learner, given, found = METHODS[method], load_streams(table), {}
    with convert(learner, given) as inputs:
        learner.setup()
        if learner.grid:
            tried = [
                count_mistakes(learner.with_settings(settings), inputs, given)
                for settings in learner.grid
            ]
            totals = [sum(counts) for counts in tried]
            best = totals.index(min(totals))
            counts, found = tried[best], {"settings": learner.grid[best], "totals": totals}
        else:
            counts = count_mistakes(learner, inputs, given)
    return found | {"rows": len(given[0].y), "counts": counts, "mistakes": float(np.mean(counts))}


def count_mistakes(learner: Learner, inputs: list[Any], given: list[Stream]) -> list[int]:
    """Return the mistakes of a fresh model in each order: rows predicted before they are learned.

    Raises
    ------
    RuntimeError
        If a pass did not see all rows, or the learner counts no mistakes.
    """
    counts = []
    for one, stream in zip(inputs, given, strict=True):
        outcome = learner.learn(one, len(stream.y))
        if outcome.rows != len(stream.y) or outcome.mistakes is None:
            raise RuntimeError(f"{learner} saw {outcome.rows} of {len(stream.y)} rows: {outcome}.")
        counts.append(outcome.mistakes)
    return counts
