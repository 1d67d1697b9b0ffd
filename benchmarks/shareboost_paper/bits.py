"""Copies of the same bits: the paper's Appendix C, second family.

``python -m benchmarks.shareboost_paper.bits ORDER`` prints the features that ShareBoost and the
mixed norms use. ORDER is JSON. "Drawn" rows come from ``make_redundant_bits``. The "whole"
distribution has one row for each possible outcome, weighted by its probability, as in the paper's
argument.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks.harness.bar import Check
from benchmarks.harness.measure import read_cpu_seconds

CLASSES, COPIES = (16, 32, 64), (2, 4, 8, 16)
ZEROED, ROWS_PER_CLASS = 0.1, 40
NORMS = ("linf,1", "l2,1")
# Penalties as shares of the largest one with a nonzero weight.
SHARES = (0.8, 0.3, 0.1, 0.03, 0.01)
TOL = 1e-5
ALPHA = 1e-6


def list_outcomes(
    n_classes: int, n_copies: int, zeroed: float = ZEROED
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``X, y, weight`` with the full row of each class, and one row per zeroed copy."""
    from mixnorm.datasets import make_redundant_bits

    full, y = make_redundant_bits(n_classes, n_copies, n_classes, zeroed=0.0, random_state=0)
    bits = full.shape[1] // n_copies
    parts, weights = [full], [np.full(n_classes, 1 - zeroed)]
    for copy in range(n_copies):
        part = full.copy()
        part[:, copy * bits : (copy + 1) * bits] = 0.0
        parts.append(part)
        weights.append(np.full(n_classes, zeroed / n_copies))
    return np.concatenate(parts), np.tile(y, n_copies + 1), np.concatenate(weights)


def draw_examples(n_classes: int, n_copies: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``X, y, weight`` of examples drawn at random."""
    from mixnorm.datasets import make_redundant_bits

    X, y = make_redundant_bits(
        n_classes, n_copies, ROWS_PER_CLASS * n_classes, zeroed=ZEROED, random_state=0
    )
    return X, y, np.ones(len(y))


def measure_norm(
    norm: str, X: np.ndarray, y: np.ndarray, weight: np.ndarray
) -> dict[str, list[Any]]:
    """Return features in use and training error in percent for falling penalties."""
    from mixnorm import MixedNormClassifier

    model = MixedNormClassifier(norm, tol=TOL, max_iter=10_000)
    largest = model.path(X, y, alphas=1, sample_weight=weight).alpha_max
    path = model.path(X, y, alphas=largest * np.asarray(SHARES), sample_weight=weight)
    errors = []
    for at in range(len(path)):
        found = np.argmax(X @ path.coef(at).T + path.intercepts[at], axis=1)
        errors.append(100 * float(np.average(found != y, weights=weight)))
    return {"features": path.n_features.tolist(), "errors": errors}


def measure_shareboost(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, rounds: int
) -> dict[str, list[Any]]:
    """Return ShareBoost's features and training error in percent, round by round."""
    from benchmarks.shareboost_paper.classes import fit_quietly
    from mixnorm import GreedyOptions, ShareBoostClassifier

    model = ShareBoostClassifier(
        min(rounds, X.shape[1]), alpha=ALPHA, options=GreedyOptions(scale="max")
    )
    model = fit_quietly(lambda X, y: model.fit(X, y, sample_weight=weight), X, y)
    wrong = [found != y for found in model.staged_predict(X)]
    errors = [100 * float(np.average(rows, weights=weight)) for rows in wrong]
    return {"features": list(range(1, len(errors) + 1)), "errors": errors}


def measure(
    classes: Sequence[int] = CLASSES, copies: Sequence[int] = COPIES
) -> dict[str, dict[str, Any]]:
    """Return the curves by data, number of classes, and number of copies."""
    found: dict[str, Any] = {}
    began = read_cpu_seconds()
    for k in classes:
        bits = int(k).bit_length() - 1
        for s in copies:
            for data, make in (("drawn", draw_examples), ("whole", list_outcomes)):
                X, y, weight = make(k, s)
                curves: dict[str, Any] = {norm: measure_norm(norm, X, y, weight) for norm in NORMS}
                curves["ShareBoost"] = measure_shareboost(X, y, weight, 3 * bits)
                found[f"{data}/{k}/{s}"] = curves
    return {"curves": found, "seconds": read_cpu_seconds() - began}  # type: ignore[dict-item]


# --- the report


def count_needed(curve: Mapping[str, Sequence[float]], error: float) -> int | None:
    """Return the number of features of the first model with at most this error."""
    pairs = zip(curve["features"], curve["errors"], strict=True)
    return next((int(count) for count, found in pairs if found <= error), None)


def make_tables(found: Mapping[str, Any]) -> Iterator[Table]:
    """Yield a table for the drawn rows and one for the whole distribution."""
    for data, words in (("drawn", "drawn rows"), ("whole", "the whole distribution")):
        mine = {k: v for k, v in _get_curves(found).items() if k.startswith(data)}
        if not mine:
            continue
        title = f"copies of the same bits, {words}: features in use"
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        columns = ["classes", "bits", "copies", "columns", "ShareBoost to 5 %", "to 0 %"]
        for norm in NORMS:
            columns += [f"{norm} to 0 %", *(f"at {share:g}" for share in SHARES)]
        for column in columns:
            table.add_column(column, justify="right")
        for key, curves in mine.items():
            k, s = map(int, key.split("/")[1:])
            bits = k.bit_length() - 1
            greedy = [_format_count(count_needed(curves["ShareBoost"], error)) for error in (5, 0)]
            row = [str(k), str(bits), str(s), str(bits * s), *greedy]
            for norm in NORMS:
                row += [
                    _format_count(count_needed(curves[norm], 0)),
                    *map(str, curves[norm]["features"]),
                ]
            table.add_row(*row)
        yield table


def check_bar(found: Mapping[str, Any]) -> Iterator[Check]:
    """Check that linf,1 uses all copies of the whole distribution, and ShareBoost few."""
    whole = {k: v for k, v in _get_curves(found).items() if k.startswith("whole")}
    if not whole:
        return
    few, all_ = [], []
    for key, curves in whole.items():
        k, s = map(int, key.split("/")[1:])
        bits = k.bit_length() - 1
        count = count_needed(curves["ShareBoost"], 0)
        few += [] if count is not None and count <= 2 * bits else [f"{k} with {s} copies"]
        spread_over = set(curves["linf,1"]["features"])
        all_ += [] if spread_over == {bits * s} else [f"{k} with {s} copies"]
    text = "for all" if not all_ else f"not with {', '.join(all_)}"
    yield Check("copies", "linf,1 at any penalty", "all copies in use", text, not all_)
    text = "for all" if not few else f"not with {', '.join(few)}"
    asked = "two features a bit or fewer to 0 %"
    yield Check("copies", "ShareBoost", asked, text, not few)


def _get_curves(found: Mapping[str, Any]) -> Mapping[str, Any]:
    curves: Mapping[str, Any] = found.get("all", {}).get("curves", {})
    return curves


def _format_count(value: int | None) -> str:
    return "" if value is None else str(value)


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
