"""Features needed for a fixed error as the number of classes grows: the paper's Figure 2.

``python -m benchmarks.shareboost_paper.classes ORDER`` prints the curves of one method on one pool
for growing subsets of the classes. ORDER is JSON. A curve has the test error by number of features.
Subsets are nested: the first 2, 4, ... classes in a random order. There are a few such orders.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks.harness import splits
from benchmarks.harness.bar import Check
from benchmarks.harness.measure import read_cpu_seconds
from benchmarks.shareboost.growth import fit_slope
from benchmarks.shareboost_paper import chars

SHARED, APART = "ShareBoost", "one-vs-rest"
METHODS = (SHARED, APART)
CLASSES = (2, 4, 8, 13, 20, 26)
# Chars74K has 36, digits and capitals.
OF_36 = (2, 4, 8, 16, 24, 36)
# Rounds of ShareBoost, and of one-vs-rest per class. Beyond these, errors fall slowly.
ROUNDS = {
    ("letter", "columns"): (16, 16),
    ("letter", "stumps"): (120, 40),
    ("isolet", "columns"): (80, 15),
    ("isolet", "stumps"): (120, 20),
    ("chars74k", "patches"): (150, 25),
}
# Test errors in percent. Those that both methods reach are shown; the paper has 20 and 8.
LADDER = (50.0, 40.0, 30.0, 20.0, 15.0, 12.0, 10.0, 8.0)
# Two classes may need only one feature, the minimum, which flattens the curve. The exponent is
# therefore also fitted from this number of classes on.
FROM = 4
ALPHAS = (1e-6, 1e-5, 1e-4)

Curve = Sequence[Sequence[float]]  # pairs of features and test error
Curves = Mapping[str, Sequence[Curve]]  # by number of classes, one per order


# --- figures


def count_needed(curve: Curve, error: float) -> int | None:
    """Return the number of features of the first model with at most this error, or None."""
    return next((int(features) for features, found in curve if found <= error), None)


def average_needed(curves: Sequence[Curve], error: float) -> float | None:
    """Return the mean number of features needed, or None if a curve never gets there."""
    counts = [count_needed(curve, error) for curve in curves]
    found = [count for count in counts if count is not None]
    return float(np.mean(found)) if found and len(found) == len(counts) else None


def find_targets(
    methods: Iterable[Curves], ladder: Sequence[float] = LADDER, *, by_pair: bool = False
) -> list[float]:
    """Return the errors that every method reaches on every subset of the classes."""
    every = list(methods)
    return [
        e
        for e in ladder
        if all(len(count_by_classes(c, e, by_pair=by_pair)) == len(c) for c in every)
    ]


def count_by_classes(curves: Curves, error: float, *, by_pair: bool = False) -> dict[int, float]:
    """Return the features needed, by number of classes.

    With ``by_pair``, ``error`` is the error with the most classes. With fewer classes it is
    smaller, in proportion to the number of other classes, so that the error of every pair is the
    same.
    """
    most = max(int(k) for k in curves)
    shares = {k: (int(k) - 1) / (most - 1) if by_pair else 1.0 for k in curves}
    found = {int(k): average_needed(group, error * shares[k]) for k, group in curves.items()}
    return {k: count for k, count in found.items() if count is not None}


def fit_exponent(found: Mapping[int, float], least: int = 0) -> float | None:
    """Return ``e`` of ``features = c * classes ** e`` by least squares, from ``least`` classes on.

    None with fewer than two numbers of classes.
    """
    kept = {k: count for k, count in found.items() if k >= least}
    return fit_slope(kept.keys(), kept.values()) if len(kept) > 1 else None


# --- the measuring process


def draw_subsets(
    n_classes: int, sizes: Sequence[int], orders: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the kept classes for every size and order; all classes come only once."""
    for size in sizes:
        for order in range(orders if size < n_classes else 1):
            yield size, np.random.default_rng(order).permutation(n_classes)[:size]


def measure(
    data: str,
    pool: str,
    method: str,
    *,
    sizes: Sequence[int] | None = None,
    orders: int = 5,
    rounds: int | None = None,
    rows: int | None = None,
) -> dict[str, Any]:
    """Return the curves of one method; ``rows`` limits the training rows."""
    X, y, X_test, y_test = load_table(data, pool, rows)
    sizes = sizes or (OF_36 if data == "chars74k" else CLASSES)
    began = read_cpu_seconds()
    alpha = choose_alpha(lambda a: make_estimator(data, pool, method, a, rounds), X, y)
    curves: dict[str, list[Curve]] = {}
    for size, kept in draw_subsets(len(np.unique(y)), sizes, orders):
        train, test = np.isin(y, kept), np.isin(y_test, kept)
        model = fit_quietly(
            make_estimator(data, pool, method, alpha, rounds).fit, X[train], y[train]
        )
        curves.setdefault(str(size), []).append(measure_curve(model, X_test[test], y_test[test]))
    return {"alpha": alpha, "seconds": read_cpu_seconds() - began, "curves": curves}


def load_table(
    data: str, pool: str, rows: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training and test part in single precision, with patches as columns."""
    if pool == "patches":
        return chars.make_patches(rows)
    X, y, X_test, y_test = splits.load_parts(data)
    X, X_test = np.asarray(X, dtype=np.float32), np.asarray(X_test, dtype=np.float32)
    return X[:rows], y[:rows], X_test, y_test


def make_estimator(
    data: str, pool: str, method: str, alpha: float, rounds: int | None = None
) -> Any:
    """Return the estimator of a method."""
    from mixnorm import GreedyOptions, OneVsRestGreedy, ShareBoostClassifier
    from mixnorm.pools import Columns, Stumps

    shared, apart = ROUNDS[data, pool]
    atoms = Stumps() if pool == "stumps" else Columns()
    options = GreedyOptions(scale="max")  # as in the paper
    given: dict[str, Any] = {"pool": atoms, "alpha": alpha, "options": options}
    if method == SHARED:
        return ShareBoostClassifier(min(shared, rounds or shared), **given)
    return OneVsRestGreedy(min(apart, rounds or apart), **given)


def choose_alpha(make: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the ridge with the smallest error on a held-out fifth of the training rows."""
    from sklearn.model_selection import train_test_split

    X, X_out, y, y_out = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
    errors = [np.mean(fit_quietly(make(a).fit, X, y).predict(X_out) != y_out) for a in ALPHAS]
    return ALPHAS[int(np.argmin(errors))]


def measure_curve(model: Any, X: np.ndarray, y: np.ndarray) -> Curve:
    """Return the number of features and the error in percent after every round."""
    errors = [100 * float(np.mean(found != y)) for found in model.staged_predict(X)]
    used = getattr(model, "n_features_used_", range(1, len(errors) + 1))
    return [(int(count), error) for count, error in zip(used, errors, strict=True)]


def fit_quietly(fit: Any, X: np.ndarray, y: np.ndarray) -> Any:
    """Fit without the warning that two classes need fewer features than requested."""
    from mixnorm.exceptions import FewerFeaturesWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewerFeaturesWarning)
        return fit(X, y)


# --- the report


def list_pairs(found: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Curves]]]:
    """Yield each dataset and pool with the curves of both methods."""
    for name in dict.fromkeys(key.rsplit("/", 1)[0] for key in found):
        keys = {method: f"{name}/{method}" for method in METHODS}
        if all(key in found for key in keys.values()):
            yield name, {method: found[key]["curves"] for method, key in keys.items()}


def make_tables(found: Mapping[str, Any]) -> Iterator[Table]:
    """Yield tables for each dataset and pool: features needed by number of classes."""
    for name, curves in list_pairs(found):
        yield _make_table(f"{name}: features needed, by number of classes", curves)
        if find_targets(curves.values(), by_pair=True):
            title = f"{name}: the same, error in proportion to the number of other classes"
            yield _make_table(title, curves, by_pair=True)


def _make_table(title: str, curves: Mapping[str, Curves], *, by_pair: bool = False) -> Table:
    sizes = [int(k) for k in curves[SHARED]]
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("error %", justify="right")
    table.add_column("", no_wrap=True)
    for column in (*map(str, sizes), "exponent", f"from {FROM}"):
        table.add_column(column, justify="right", no_wrap=True)
    for error in find_targets(curves.values(), by_pair=by_pair):
        needs = {
            method: count_by_classes(curves[method], error, by_pair=by_pair) for method in METHODS
        }
        for method, need in needs.items():
            cells = [f"{need[k]:.1f}" for k in sizes]
            growth = [_format_number(fit_exponent(need, least)) for least in (0, FROM)]
            table.add_row(f"{error:g}" if method == SHARED else "", method, *cells, *growth)
        ratios = [f"{needs[APART][k] / needs[SHARED][k]:.1f}" for k in sizes]
        table.add_row("", "ratio", *ratios, end_section=True)
    return table


def check_bar(found: Mapping[str, Any]) -> Iterator[Check]:
    """Check that ShareBoost's features grow more slowly than classes and than one-vs-rest's."""
    for name, curves in list_pairs(found):
        for error in find_targets(curves.values()):
            shared, apart = (count_by_classes(curves[method], error) for method in METHODS)
            # With two classes, one-vs-rest solves the same problem for each class.
            above = [k for k in shared if k > 2 and shared[k] >= apart[k]]
            text = f"not with {above} classes" if above else "with any number of classes"
            place = f"{name} to {error:g} %"
            yield Check("classes", place, "fewer features", text, not above)
            ours, theirs = fit_exponent(shared), fit_exponent(apart)
            if ours is not None and theirs is not None:
                shown = f"{ours:.2f}"
                yield Check("classes", place, "exponent < 1", shown, ours < 1)
                shown += f" against {theirs:.2f}"
                yield Check("classes", place, "below one-vs-rest's", shown, ours < theirs)


def _format_number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
