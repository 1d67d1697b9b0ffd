"""Features needed for a fixed error as the number of classes grows: the paper's Figure 2.

``python -m benchmarks.shareboost_paper.classes ORDER`` prints the curves of one method on one pool,
of one feature to many, for growing subsets of the classes. ORDER is JSON. Subsets are nested: the
first 2, 4, ... of the classes in a random order, a few orders in all.
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
from benchmarks.harness.measure import cpu_seconds
from benchmarks.shareboost.growth import slope
from benchmarks.shareboost_paper import chars

SHARED, APART = "ShareBoost", "one-vs-rest"
METHODS = (SHARED, APART)
CLASSES = (2, 4, 8, 13, 20, 26)
# Chars74K has 36, digits and capitals.
OF_36 = (2, 4, 8, 16, 24, 36)
# Rounds of ShareBoost and, per class, of one-vs-rest: until errors with all classes fall slowly.
ROUNDS = {
    ("letter", "columns"): (16, 16),
    ("letter", "stumps"): (120, 40),
    ("isolet", "columns"): (80, 15),
    ("isolet", "stumps"): (120, 20),
    ("chars74k", "patches"): (150, 25),
}
# Test errors, in percent: all that both methods reach are shown. The paper's are 20 and 8.
LADDER = (50.0, 40.0, 30.0, 20.0, 15.0, 12.0, 10.0, 8.0)
# Where two classes need one feature the curve lies on its floor: the exponent is also taken from
# here on.
FROM = 4
ALPHAS = (1e-6, 1e-5, 1e-4)

Curve = Sequence[Sequence[float]]  # pairs of features and test error
Curves = Mapping[str, Sequence[Curve]]  # by number of classes, one per order


# --- figures


def count_needed(curve: Curve, error: float) -> int | None:
    """Return the number of features of the first model with at most this error, or None."""
    return next((int(features) for features, found in curve if found <= error), None)


def mean_needed(curves: Sequence[Curve], error: float) -> float | None:
    """Return the mean over curves of the features needed, None if one never gets there."""
    counts = [count_needed(curve, error) for curve in curves]
    found = [count for count in counts if count is not None]
    return float(np.mean(found)) if found and len(found) == len(counts) else None


def targets(
    methods: Iterable[Curves], ladder: Sequence[float] = LADDER, *, by_pair: bool = False
) -> list[float]:
    """Return the errors that every method reaches on every subset of the classes."""
    every = list(methods)
    return [e for e in ladder if all(len(counts(c, e, by_pair=by_pair)) == len(c) for c in every)]


def counts(curves: Curves, error: float, *, by_pair: bool = False) -> dict[int, float]:
    """Return the features needed, by number of classes.

    ``by_pair`` asks for ``error`` with the most classes and for less with fewer, in proportion to
    the number of others that a class can be mistaken for: the same error for every pair.
    """
    most = max(int(k) for k in curves)
    shares = {k: (int(k) - 1) / (most - 1) if by_pair else 1.0 for k in curves}
    found = {int(k): mean_needed(group, error * shares[k]) for k, group in curves.items()}
    return {k: count for k, count in found.items() if count is not None}


def exponent(found: Mapping[int, float], least: int = 0) -> float | None:
    """Return ``e`` of ``features = c * classes ** e`` by least squares, from ``least`` classes on.

    None with fewer than two numbers of classes.
    """
    kept = {k: count for k, count in found.items() if k >= least}
    return slope(kept.keys(), kept.values()) if len(kept) > 1 else None


# --- the measuring process


def subsets(n_classes: int, sizes: Sequence[int], orders: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the classes kept, for every size and order; all classes only once."""
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
    """Return the curves of one method; ``rows`` keeps so many training rows."""
    X, y, X_test, y_test = table_of(data, pool, rows)
    sizes = sizes or (OF_36 if data == "chars74k" else CLASSES)
    began = cpu_seconds()
    alpha = held_out_alpha(lambda a: estimator(data, pool, method, a, rounds), X, y)
    curves: dict[str, list[Curve]] = {}
    for size, kept in subsets(len(np.unique(y)), sizes, orders):
        train, test = np.isin(y, kept), np.isin(y_test, kept)
        model = quietly(estimator(data, pool, method, alpha, rounds).fit, X[train], y[train])
        curves.setdefault(str(size), []).append(curve(model, X_test[test], y_test[test]))
    return {"alpha": alpha, "seconds": cpu_seconds() - began, "curves": curves}


def table_of(
    data: str, pool: str, rows: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training and test part in single precision; patches are columns from here on."""
    if pool == "patches":
        return chars.patches(rows)
    X, y, X_test, y_test = splits.parts(data)
    X, X_test = np.asarray(X, dtype=np.float32), np.asarray(X_test, dtype=np.float32)
    return X[:rows], y[:rows], X_test, y_test


def estimator(data: str, pool: str, method: str, alpha: float, rounds: int | None = None) -> Any:
    """Return a method as it is run."""
    from mixnorm import GreedyOptions, OneVsRestGreedy, ShareBoostClassifier
    from mixnorm.pools import Columns, Stumps

    shared, apart = ROUNDS[data, pool]
    atoms = Stumps() if pool == "stumps" else Columns()
    options = GreedyOptions(scale="max")  # as in the paper
    given: dict[str, Any] = {"pool": atoms, "alpha": alpha, "options": options}
    if method == SHARED:
        return ShareBoostClassifier(min(shared, rounds or shared), **given)
    return OneVsRestGreedy(min(apart, rounds or apart), **given)


def held_out_alpha(make: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the ridge whose full model errs least on a fifth of the training rows held out."""
    from sklearn.model_selection import train_test_split

    X, X_out, y, y_out = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
    errors = [np.mean(quietly(make(a).fit, X, y).predict(X_out) != y_out) for a in ALPHAS]
    return ALPHAS[int(np.argmin(errors))]


def curve(model: Any, X: np.ndarray, y: np.ndarray) -> Curve:
    """Return features and error, in percent, after every round."""
    errors = [100 * float(np.mean(found != y)) for found in model.staged_predict(X)]
    used = getattr(model, "n_features_used_", range(1, len(errors) + 1))
    return [(int(count), error) for count, error in zip(used, errors, strict=True)]


def quietly(fit: Any, X: np.ndarray, y: np.ndarray) -> Any:
    """Fit without the warning that two classes need fewer features than asked for."""
    from mixnorm.exceptions import FewerFeaturesWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewerFeaturesWarning)
        return fit(X, y)


# --- the report


def pairs(found: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Curves]]]:
    """Yield each dataset and pool of which both methods were measured, with their curves."""
    for name in dict.fromkeys(key.rsplit("/", 1)[0] for key in found):
        keys = {method: f"{name}/{method}" for method in METHODS}
        if all(key in found for key in keys.values()):
            yield name, {method: found[key]["curves"] for method, key in keys.items()}


def tables(found: Mapping[str, Any]) -> Iterator[Table]:
    """Yield tables for each dataset and pool: features needed by number of classes."""
    for name, curves in pairs(found):
        yield _table(f"{name}: features needed, by number of classes", curves)
        if targets(curves.values(), by_pair=True):
            title = f"{name}: the same, error in proportion to the number of other classes"
            yield _table(title, curves, by_pair=True)


def _table(title: str, curves: Mapping[str, Curves], *, by_pair: bool = False) -> Table:
    sizes = [int(k) for k in curves[SHARED]]
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("error %", justify="right")
    table.add_column("", no_wrap=True)
    for column in (*map(str, sizes), "exponent", f"from {FROM}"):
        table.add_column(column, justify="right", no_wrap=True)
    for error in targets(curves.values(), by_pair=by_pair):
        needs = {method: counts(curves[method], error, by_pair=by_pair) for method in METHODS}
        for method, need in needs.items():
            cells = [f"{need[k]:.1f}" for k in sizes]
            growth = [_number(exponent(need, least)) for least in (0, FROM)]
            table.add_row(f"{error:g}" if method == SHARED else "", method, *cells, *growth)
        ratios = [f"{needs[APART][k] / needs[SHARED][k]:.1f}" for k in sizes]
        table.add_row("", "ratio", *ratios, end_section=True)
    return table


def checks(found: Mapping[str, Any]) -> Iterator[Check]:
    """Check that ShareBoost's features grow more slowly than classes, and than one-vs-rest's."""
    for name, curves in pairs(found):
        for error in targets(curves.values()):
            shared, apart = (counts(curves[method], error) for method in METHODS)
            # Of two classes each tells itself from the rest with the same features.
            above = [k for k in shared if k > 2 and shared[k] >= apart[k]]
            text = f"not with {above} classes" if above else "with any number of classes"
            place = f"{name} to {error:g} %"
            yield Check("classes", place, "fewer features", text, not above)
            ours, theirs = exponent(shared), exponent(apart)
            if ours is not None and theirs is not None:
                shown = f"{ours:.2f}"
                yield Check("classes", place, "exponent < 1", shown, ours < 1)
                shown += f" against {theirs:.2f}"
                yield Check("classes", place, "below one-vs-rest's", shown, ours < theirs)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
