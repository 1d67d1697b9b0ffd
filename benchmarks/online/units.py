"""Columns in other units and with another origin: how many mistakes that changes.

Each column ``x`` in turn is replaced by ``a x + b``, and then all of them at once. ``b`` is given
in standard deviations of the new column.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.online.data import Stream
from benchmarks.online.learners import Learner
from benchmarks.online.raw_tables import METHODS, mistakes, streams

#: Changes of one column: factor, and offset in deviations of the result.
CHANGES = ((1e6, 0.0), (-1e-6, 0.0), (1.0, 1e3), (-1.0, -1e3), (1e-6, 1e3), (1e6, -1e3))
#: Draws with a change of its own for every column.
DRAWS, SIZE, OFFSET = 5, 6.0, 1e3


def changed(X: np.ndarray, factor: Any, offset: Any) -> np.ndarray:
    """Return ``factor * X`` plus ``offset`` standard deviations of that, for each column.

    A constant column has no deviation: the offset is then in units of the factor.
    """
    made = X * factor
    deviation = made.std(axis=0)
    unit = np.abs(np.broadcast_to(factor, deviation.shape))
    return np.asarray(made + offset * np.where(deviation > 0, deviation, unit))


def singles(X: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the table with one column changed, and what was done to it."""
    for column in range(X.shape[1]):
        for factor, offset in CHANGES:
            other = X.copy()
            other[:, [column]] = changed(X[:, [column]], factor, offset)
            yield f"column {column}: {factor:g} x {offset:+g} deviations", other


def together(X: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the table with all columns changed: alike, and each by a draw of its own."""
    for factor, offset in CHANGES:
        yield f"all: {factor:g} x {offset:+g} deviations", changed(X, factor, offset)
    for seed in range(DRAWS):
        rng, columns = np.random.default_rng(seed), X.shape[1]
        factors = rng.choice([-1.0, 1.0], columns) * 10 ** rng.uniform(-SIZE, SIZE, columns)
        yield f"all: draw {seed}", changed(X, factors, rng.uniform(-OFFSET, OFFSET, columns))


def measure(table: str, method: str = "mirror") -> dict[str, Any]:
    """Return the mistakes in all orders of a table, and the largest change of their number."""
    given, learner = streams(table), METHODS[method]
    learner.setup()
    total = sum(mistakes(learner, list(given), given))
    found: dict[str, Any] = {"rows": len(given[0].y), "orders": len(given), "mistakes": total}
    for kind, make in (("single", singles), ("together", together)):
        counts = _totals(learner, given, make)
        worst = max(counts, key=lambda name: abs(counts[name] - total))
        found[kind] = {
            "change": abs(counts[worst] - total) / max(total, 1),
            "mistakes": counts[worst],
            "worst": worst,
            "tried": len(counts),
        }
    return found


def _totals(learner: Learner, given: list[Stream], make: Any) -> dict[str, int]:
    """Return the mistakes in all orders by the change that was made."""
    totals: dict[str, int] = {}
    for stream in given:
        for name, X in make(stream.X):
            other = [Stream(X, stream.y)]
            totals[name] = totals.get(name, 0) + mistakes(learner, list(other), other)[0]
    return totals
