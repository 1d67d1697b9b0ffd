"""Mistakes when columns have other units and another origin.

Each column ``x`` in turn is replaced by ``a x + b``, and then all columns at once. ``b`` is in
standard deviations of ``a x``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.online.data import Stream
from benchmarks.online.learners import Learner
from benchmarks.online.raw_tables import METHODS, count_mistakes, load_streams

#: Changes of one column: a factor, and an offset in standard deviations of the result.
CHANGES = ((1e6, 0.0), (-1e-6, 0.0), (1.0, 1e3), (-1.0, -1e3), (1e-6, 1e3), (1e6, -1e3))
#: Draws with a different change of each column.
DRAWS, SIZE, OFFSET = 5, 6.0, 1e3


def change_columns(X: np.ndarray, factor: Any, offset: Any) -> np.ndarray:
    """Return ``factor * X`` plus ``offset`` standard deviations of that, for each column.

    For a constant column, which has no deviation, the offset is in units of the factor.
    """
    made = X * factor
    deviation = made.std(axis=0)
    unit = np.abs(np.broadcast_to(factor, deviation.shape))
    return np.asarray(made + offset * np.where(deviation > 0, deviation, unit))


def change_each(X: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield tables with one changed column, and descriptions of the change."""
    for column in range(X.shape[1]):
        for factor, offset in CHANGES:
            other = X.copy()
            other[:, [column]] = change_columns(X[:, [column]], factor, offset)
            yield f"column {column}: {factor:g} x {offset:+g} deviations", other


def change_all(X: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield tables with all columns changed, first alike, then each by its own draw."""
    for factor, offset in CHANGES:
        yield f"all: {factor:g} x {offset:+g} deviations", change_columns(X, factor, offset)
    for seed in range(DRAWS):
        rng, columns = np.random.default_rng(seed), X.shape[1]
        factors = rng.choice([-1.0, 1.0], columns) * 10 ** rng.uniform(-SIZE, SIZE, columns)
        yield f"all: draw {seed}", change_columns(X, factors, rng.uniform(-OFFSET, OFFSET, columns))


def measure(table: str, method: str = "mirror") -> dict[str, Any]:
    """Return the mistakes in all orders of a table, and their largest change."""
    given, learner = load_streams(table), METHODS[method]
    learner.setup()
    total = sum(count_mistakes(learner, list(given), given))
    found: dict[str, Any] = {"rows": len(given[0].y), "orders": len(given), "mistakes": total}
    for kind, make in (("single", change_each), ("together", change_all)):
        counts = _count_totals(learner, given, make)
        worst = max(counts, key=lambda name: abs(counts[name] - total))
        found[kind] = {
            "change": abs(counts[worst] - total) / max(total, 1),
            "mistakes": counts[worst],
            "worst": worst,
            "tried": len(counts),
        }
    return found


def _count_totals(learner: Learner, given: list[Stream], make: Any) -> dict[str, int]:
    """Return the total mistakes of all orders, by change."""
    totals: dict[str, int] = {}
    for stream in given:
        for name, X in make(stream.X):
            other = [Stream(X, stream.y)]
            totals[name] = totals.get(name, 0) + count_mistakes(learner, list(other), other)[0]
    return totals
