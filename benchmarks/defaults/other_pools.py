"""Test errors of pools with ``alpha="auto"`` and with fixed values, on 3,000 training rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks.harness.jobs import Record
from benchmarks.harness.measure import measure_call

SETS = ("satimage", "letter", "pendigits")
PENALTIES = ("auto", 1e-6, 1e-4, 1e-3, 1e-2)
ROWS = 3000


def list_pools() -> dict[str, tuple[Any, int]]:
    """Return each pool with the number of its features in a model."""
    from mixnorm.pools import Boxes, Pieces, Stumps

    return {
        "stumps": (Stumps(), 80),
        "boxes": (Boxes(), 80),
        "pieces": (Pieces(n_centers=200, n_radii=15), 20),
    }


def measure(data: str, pool: str) -> Record:
    """Return the test error in percent and the seconds of a fit, by penalty."""
    from mixnorm import ShareBoostClassifier, datasets

    stored = datasets.load(data)
    kept = np.random.default_rng(0).permutation(len(stored.y))[:ROWS]
    X, y = stored.X[kept], stored.y[kept]
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    X, X_test = (X - mean) / deviation, (stored.X_test - mean) / deviation
    used, size = list_pools()[pool]
    errors, seconds = {}, {}
    for alpha in PENALTIES:
        model = ShareBoostClassifier(size, pool=used, alpha=alpha, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, cost = measure_call(partial(model.fit, X, y))
        errors[str(alpha)] = 100.0 * float(np.mean(model.predict(X_test) != stored.y_test))
        seconds[str(alpha)] = cost.seconds
    return {"status": "ok", "errors": errors, "seconds": seconds}


def describe(record: Record) -> str:
    """Return one line about a pool on a dataset."""
    return ", ".join(f"{error:.1f} % at {alpha}" for alpha, error in record["errors"].items())


def make_table(found: Mapping[str, Record]) -> Table | None:
    """Return the errors by dataset, pool and penalty; None if nothing was measured."""
    title = "Test errors in % by alpha: 80 stumps, 80 boxes or 20 pieces"
    made = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    made.add_column("data, pool")
    for alpha in PENALTIES:
        made.add_column(str(alpha), justify="right")
    for key, record in found.items():
        data, _, pool = key.partition("/pool-")
        if pool and record.get("status") == "ok":
            made.add_row(
                f"{data}, {pool}", *(f"{error:.1f}" for error in record["errors"].values())
            )
    return made if made.row_count else None
