"""Held-out errors and log losses of paths: with the defaults, and for each penalty of a grid.

``python -m benchmarks.defaults.child ORDER`` prints one JSON object; started by
``benchmarks.defaults``.
"""

from __future__ import annotations

import json
import sys
import warnings
from functools import partial
from typing import Any

import numpy as np

from benchmarks.defaults import other_pools, penguins
from benchmarks.harness.drawn_tables import DRAWN
from benchmarks.harness.measure import measure_call

SIZES = (5, 10, 20, 40)
#: Penalties of the grid, in standard units of the columns.
GRID = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
# Folds are drawn REPEATS times for datasets with fewer than FEW_ROWS rows.
REPEATS, FEW_ROWS = 10, 1000
STORED = (
    "chars74k_kaggle",
    "dna",
    "glass",
    "iris",
    "isolet",
    "letter",
    "mfeat",
    "mnist",
    "pendigits",
    "reuters_r52",
    "satimage",
    "segment",
    "svmguide2",
    "usps",
    "vehicle",
    "vowel",
    "wine",
)
#: scikit-learn's own sets; its iris and wine are the stored ones.
SKLEARN = ("breast_cancer", "digits")
DATA = (*STORED, *SKLEARN, *DRAWN)


def load(name: str) -> tuple[Any, np.ndarray]:
    """Return raw columns and labels of a training part."""
    if name in DRAWN:
        return DRAWN[name]()
    if name in SKLEARN:
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return X, y
    from mixnorm import datasets as stored

    bunch = stored.load(name)
    X = bunch.X
    return (X if hasattr(X, "tocsr") else X.reshape(len(X), -1)), bunch.y


def draw_folds(y: np.ndarray, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return stratified folds, drawn ten times if there are few rows.

    With two hundred rows, one row is half a point of error. With a single draw of the folds, the
    best of seven penalties would be the luckiest one. A class with few rows is in fewer folds.
    """
    from sklearn.model_selection import RepeatedStratifiedKFold

    repeats = REPEATS if len(y) < FEW_ROWS else 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        splitter = RepeatedStratifiedKFold(n_splits=count, n_repeats=repeats, random_state=0)
        return list(splitter.split(np.zeros(len(y)), y))


def score_path(model: Any, X: Any, y: np.ndarray) -> dict[str, list[float]]:
    """Return error in percent and log loss by size; rows of unseen classes have no log loss."""
    known = np.isin(y, model.classes_)
    place = np.searchsorted(model.classes_, y[known])
    found: dict[str, list[float]] = {}
    longest = len(model.path_["loss"])
    for size in SIZES:
        if size <= longest:
            smaller = model.truncate(size)
            wrong = smaller.predict(X) != y
            chances = smaller.predict_proba(X)[known][np.arange(len(place)), place]
            lost = -np.log(np.maximum(chances, 1e-15))
            found[str(size)] = [100.0 * float(np.mean(wrong)), float(np.mean(lost))]
    return found


def measure(data: str, count: int = 5) -> dict[str, Any]:
    """Score paths with the defaults and with every penalty of the grid on the same folds."""
    X, y = load(data)
    splits = draw_folds(y, count)
    found = {str(alpha): _measure_path(X, y, alpha, splits) for alpha in ("auto", *GRID)}
    return {"status": "ok", "rows": len(y), "columns": X.shape[1], "alphas": found}


def _measure_path(X: Any, y: np.ndarray, alpha: float | str, splits: list[Any]) -> dict[str, Any]:
    """Return mean scores by size of paths with one penalty, and the seconds of a fit."""
    from mixnorm import ShareBoostClassifier

    parts, costs = [], []
    for train, test in splits:
        model, X_train = ShareBoostClassifier(min(max(SIZES), X.shape[1]), alpha=alpha), X[train]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = partial(model.fit, X_train, y[train])
            costs.append(measure_call(fit)[1].seconds)
        parts.append(score_path(model, X[test], y[test]))
    kept = [size for size in parts[0] if all(size in part for part in parts)]
    mean = {size: np.mean([part[size] for part in parts], axis=0).tolist() for size in kept}
    return {"at": mean, "seconds": float(np.mean(costs))}


def time_path(data: str, repeats: int = 5) -> dict[str, Any]:
    """Return the CPU seconds of a default path on all rows: the fastest of several warm fits.

    The fastest one counts, because other work on the machine can only add seconds.
    """
    from mixnorm import ShareBoostClassifier

    X, y = load(data)
    size = min(max(SIZES), X.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = partial(ShareBoostClassifier(size).fit, X, y)
        costs = [measure_call(fit)[1].seconds for _ in range(1 + repeats)]
    return {"status": "ok", "seconds": min(costs[1:]), "first_seconds": costs[0]}


if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    jobs = {"measure": measure, "timed": time_path}
    jobs |= {"penguins": penguins.measure, "pools": other_pools.measure}
    print(json.dumps(jobs[order.pop("job")](**order)))
