"""Piecewise linear predictors and a Gaussian SVM on mnist: the paper's section A.2.

``python -m benchmarks.shareboost_paper.pieces ORDER`` measures one of the two and prints JSON;
ORDER is JSON. Both get the same principal components of the pixels, found on the training part.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks.harness import splits
from benchmarks.harness.bar import Check
from benchmarks.harness.measure import measure_call

PIECES, SVM = "pieces", "svm"
METHODS = (PIECES, SVM)
COMPONENTS, CENTRES, RADII, ANCHORS = 50, 1500, 35, 230
MOST_ERROR, LEAST_RATIO = 1.7, 20.0
# With fifty columns per piece, the default ridge of the estimators overfits.
ALPHA = 3e-5
POINTS = 10  # models of the path whose error is shown
# gamma is one of GAMMAS times scikit-learn's "scale", chosen by three folds of FOLD_ROWS rows.
GAMMAS = (0.5, 1.0, 2.0, 4.0)
SVM_C, FOLD_ROWS = 10.0, 6000


def measure(method: str, **options: Any) -> dict[str, Any]:
    """Fit one method and return errors, seconds and the number of anchors or support vectors."""
    X, y, X_test, y_test = compute_components(options.get("rows"))
    if method == SVM:
        return measure_svm(X, y, X_test, y_test)
    return measure_pieces(X, y, X_test, y_test, options)


def compute_components(
    rows: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return mnist as principal components; ``rows`` limits the training rows."""
    from sklearn.decomposition import PCA

    X, y, X_test, y_test = splits.load_parts("mnist")
    X, y = X[:rows], y[:rows]
    X, X_test = (np.asarray(part, np.float32).reshape(len(part), -1) / 255 for part in (X, X_test))
    found = PCA(COMPONENTS, svd_solver="covariance_eigh").fit(X)
    X, X_test = (np.ascontiguousarray(found.transform(part), np.float32) for part in (X, X_test))
    return X, y, X_test, y_test


def measure_pieces(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Fit ShareBoost with pieces; errors at about ``POINTS`` sizes up to the number of anchors."""
    from mixnorm import GreedyOptions, ShareBoostClassifier
    from mixnorm.pools import Pieces

    count = options.get("anchors", ANCHORS)
    pool = Pieces(options.get("centres", CENTRES), options.get("radii", RADII))
    alpha = options.get("alpha", ALPHA)
    model = ShareBoostClassifier(
        count,
        pool=pool,
        alpha=alpha,
        random_state=0,
        options=GreedyOptions(rule="l1", scale="max", atoms_per_round=2),
    )
    _, cost = measure_call(lambda: model.fit(X, y))
    sizes = sorted({-(-count * part // POINTS) for part in range(1, POINTS + 1)})
    return {
        "alpha": alpha,
        "rows": len(X),
        "seconds": cost.seconds,
        "peak_bytes": cost.peak_bytes,
        "points": [
            [size, 100 * float(np.mean(model.truncate(size).predict(X_test) != y_test))]
            for size in sizes
        ],
    }


def measure_svm(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray
) -> dict[str, Any]:
    """Fit the SVM, with gamma chosen by cross-validation on a part of the training rows."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    some = np.random.default_rng(0).permutation(len(X))[:FOLD_ROWS]
    grid = {"gamma": [factor / (X.shape[1] * float(X.var())) for factor in GAMMAS]}
    search = GridSearchCV(SVC(C=SVM_C), grid, cv=3)
    _, cost = measure_call(lambda: search.fit(X[some], y[some]))
    model = SVC(C=SVM_C, cache_size=1000, **search.best_params_)
    _, fit = measure_call(lambda: model.fit(X, y))
    error = 100 * float(np.mean(model.predict(X_test) != y_test))
    return {
        "rows": len(X),
        "seconds": fit.seconds,
        "search_seconds": cost.seconds,
        "gamma": search.best_params_["gamma"],
        "C": SVM_C,
        "points": [[int(model.n_support_.sum()), error]],
    }


def make_tables(found: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the table: anchors or support vectors, test error, seconds, ratio of the counts."""
    if not found:
        return
    title = f"mnist, {COMPONENTS} principal components"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("", "rows", "anchors", "test error %", "seconds", "vectors / anchors"):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    vectors = found[SVM]["points"][-1][0] if SVM in found else None
    for method, record in found.items():
        for place, (count, error) in enumerate(record["points"]):
            last = place == len(record["points"]) - 1
            spent = f"{record['seconds']:.3g}" if last else ""
            ratio = f"{vectors / count:.0f}" if vectors and method == PIECES else ""
            label = (method, str(record["rows"])) if place == 0 else ("", "")
            table.add_row(*label, str(count), f"{error:.2f}", spent, ratio, end_section=last)
    yield table


def check_bar(found: Mapping[str, Any]) -> Iterator[Check]:
    """Check the error of the last model, and the ratio of support vectors to its anchors."""
    if PIECES not in found:
        return
    count, error = found[PIECES]["points"][-1]
    asked, text = f"<= {MOST_ERROR:g} %", f"{error:.2f} %"
    yield Check("pieces", f"error with {count} anchors", asked, text, error <= MOST_ERROR)
    if SVM in found:
        vectors, theirs = found[SVM]["points"][-1]
        text = f"{vectors / count:.0f} ({vectors:,} of the SVM, {theirs:.2f} %)"
        enough = vectors >= LEAST_RATIO * count
        yield Check("pieces", "support vectors / anchors", f">= {LEAST_RATIO:g}", text, enough)


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
