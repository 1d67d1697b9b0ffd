"""One method on one dataset for ``benchmarks.trees``: a process of its own, JSON on its last line.

``python -m benchmarks._trees ORDER``; ORDER is JSON with data, method and inputs.
"""

from __future__ import annotations

import functools
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import _data
from benchmarks._measure import measured
from benchmarks._peers import LightGBM, XGBoost

TREES = {"lightgbm": LightGBM(), "xgboost": XGBoost()}
POOLS = ("boxes", "stumps")
# At most so many comparisons: "at most 300 stumps", of which a box has one or two.
STUMPS = 300
# Boosting rounds at which the trees' error is taken.
ROUNDS = (1, 2, 3, 5, 8, 12, 16, 20, 25, 30, 40, 50, 65, 80, 100)
# Settings tried, on a fifth of the training rows: the ridge, and the share of the rounds in which
# the inputs come in.
ALPHAS = (1e-5, 1e-4, 1e-3, 3e-3, 1e-2)
SHARES = (0.0, 0.5)
# The model whose predictions are timed, and the rows.
SMALL, MANY = 40, 1_000_000


def measure(data: str, method: str, inputs: int) -> dict[str, Any]:
    """Return the error curve of a method against what a prediction costs."""
    split = load(data)
    if method in TREES:
        return trees(split, method, inputs)
    return ours(split, method, inputs)


def load(data: str) -> _data.Split:
    """Return a dataset with labels from zero on, in single precision."""
    split = _data.made(_data.RECIPES.get(data) or _data.Recipe(data))
    classes, y = np.unique(split.y, return_inverse=True)
    y_test = np.searchsorted(classes, split.y_test)
    X, X_test = (np.asarray(part, dtype=np.float32) for part in (split.X, split.X_test))
    return _data.Split(X, y, X_test, y_test)


def trees(split: _data.Split, method: str, inputs: int) -> dict[str, Any]:
    """Fit on all columns, and again on those that it found most important."""
    maker = TREES[method]
    first, search = measured(lambda: maker.model().fit(split.X, split.y))
    order = np.argsort(-first.feature_importances_, kind="stable")
    chosen = np.sort(order[:inputs])
    X, X_test = split.X[:, chosen], np.ascontiguousarray(split.X_test[:, chosen])
    model, cost = measured(lambda: maker.model().fit(X, split.y))
    steps = comparisons(model, method, X_test)
    classes = len(np.unique(split.y))
    curve = []
    for rounds in ROUNDS:
        error = 100 * float(np.mean(predict_rounds(model, method, X_test, rounds) != split.y_test))
        # A comparison for every inner node on the way, and an addition for every tree.
        curve.append([float(steps[: rounds * classes].sum()) + rounds * classes, error, rounds])
    return {
        "seconds": cost.seconds,
        "search_seconds": search.seconds,
        "inputs": len(chosen),
        "curve": curve,
    }


def predict_rounds(model: Any, method: str, X: np.ndarray, rounds: int) -> np.ndarray:
    """Predict with the first boosting rounds."""
    if method == "lightgbm":
        return np.asarray(model.predict(X, num_iteration=rounds))
    return np.asarray(model.predict(X, iteration_range=(0, rounds)))


def comparisons(model: Any, method: str, X: np.ndarray) -> np.ndarray:
    """Return by tree how many nodes a row passes on average."""
    X = X[:1000]
    if method == "lightgbm":
        frame = model.booster_.trees_to_dataframe()
        leaves = frame[frame["left_child"].isna()]
        keys = leaves["node_index"].str.split("L").str[1].fillna("0").astype(int)
        depth = {
            (tree, leaf): level - 1
            for tree, leaf, level in zip(
                leaves["tree_index"], keys, leaves["node_depth"], strict=True
            )
        }
        passed = model.predict(X, pred_leaf=True)
    else:
        from xgboost import DMatrix

        frame, level = model.get_booster().trees_to_dataframe(), dict[str, int]()
        for node in frame.itertuples():
            level.setdefault(node.ID, 0)
            if node.Feature != "Leaf":
                level[node.Yes] = level[node.No] = level[node.ID] + 1
        depth = {tuple(map(int, name.split("-"))): value for name, value in level.items()}
        passed = model.get_booster().predict(DMatrix(X), pred_leaf=True).reshape(len(X), -1)
    return np.asarray(
        [
            np.mean([depth[tree, int(leaf)] for leaf in leaves])
            for tree, leaves in enumerate(passed.T)
        ]
    )


def ours(split: _data.Split, method: str, inputs: int) -> dict[str, Any]:
    """Choose ridge and pace on a fifth of the training rows, then fit on all of them."""
    rng = np.random.default_rng(0)
    aside = np.zeros(len(split.y), dtype=bool)
    for label in np.unique(split.y):
        own = np.flatnonzero(split.y == label)
        aside[rng.permutation(own)[: len(own) // 5]] = True
    tried, search = [], 0.0
    for share in SHARES:
        for alpha in ALPHAS:
            model, cost = fit(method, split.X[~aside], split.y[~aside], inputs, alpha, share)
            search += cost
            model = within(model)
            error = 100 * float(np.mean(model.predict(split.X[aside]) != split.y[aside]))
            tried.append([error, share, alpha])
    _, share, alpha = min(tried)
    model, seconds = fit(method, split.X, split.y, inputs, alpha, share)
    curve = []
    for size, predicted in enumerate(model.staged_predict(split.X_test), start=1):
        cost = model.truncate(size).cost_
        error = 100 * float(np.mean(predicted != split.y_test))
        curve.append([cost.total, error, size])
    return {
        "seconds": seconds,
        "search_seconds": search,
        "alpha": alpha,
        "share": share,
        "tried": tried,
        "inputs": len(model.selected_),
        "curve": curve,
        "within": len(within(model).path_["loss"]),
    }


def fit(
    method: str, X: np.ndarray, y: np.ndarray, inputs: int, alpha: float, share: float
) -> tuple[Any, float]:
    """Fit a model of at most ``STUMPS`` atoms, and return it with the CPU seconds."""
    from mixnorm import ShareBoostClassifier
    from mixnorm.pools import Boxes, Stumps

    pool = Boxes() if method == "boxes" else Stumps()
    model = ShareBoostClassifier(
        STUMPS,
        pool=pool,
        alpha=alpha,
        max_inputs=inputs,
        rounds_per_input=max(1, round(share * STUMPS / inputs)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer stumps than asked for may be there
        _, cost = measured(lambda: model.fit(X, y))
    return model, cost.seconds


def within(model: Any) -> Any:
    """Return the largest model of a path with at most ``STUMPS`` comparisons."""
    counts = np.cumsum([_sides(atom) for atom in model.path_["feature"]])
    return model.truncate(int(np.searchsorted(counts, STUMPS, side="right")))


def _sides(atom: Any) -> int:
    return len(atom) if isinstance(atom[0], tuple) else 1


def predictions(data: str) -> dict[str, Any]:
    """Time predictions of ``SMALL`` stumps, and of trees that err no less."""
    from mixnorm import ShareBoostClassifier
    from mixnorm.pools import Stumps

    split = load(data)
    model = ShareBoostClassifier(SMALL, pool=Stumps(), alpha=1e-4).fit(split.X, split.y)
    error = 100 * float(np.mean(model.predict(split.X_test) != split.y_test))
    lean, found = model.predictor(), {}
    rows = np.resize(split.X_test, (MANY, split.X.shape[1]))
    found["mixnorm"] = _timed(lean, model.predict, split.X_test[0], rows) | {"error": error}
    for name, maker in TREES.items():
        whole = maker.model().fit(split.X, split.y)
        guesses = ((r, predict_rounds(whole, name, split.X_test, r)) for r in ROUNDS)
        errors = {r: 100 * float(np.mean(guess != split.y_test)) for r, guess in guesses}
        enough = next((r for r in ROUNDS if errors[r] <= error), ROUNDS[-1])
        small = maker.model().set_params(n_estimators=enough).fit(split.X, split.y)
        one = functools.partial(_one_row, small)
        timed = _timed(one, small.predict, split.X_test[0], rows)
        found[name] = timed | {"error": errors[enough], "rounds": enough}
    found["memory"] = {"many": _best(lambda: rows.max(axis=1), 3)}
    return found


def _one_row(model: Any, row: np.ndarray) -> Any:
    return model.predict(row[None, :])


def _timed(
    one: Callable[[np.ndarray], Any], many: Callable[[np.ndarray], Any], row: Any, rows: Any
) -> dict[str, float]:
    one(row), many(rows[:1000])
    single = _best(lambda: [one(row) for _ in range(200)], 5) / 200
    return {"one": single, "many": _best(lambda: many(rows), 3)}


def _best(call: Callable[[], Any], times: int) -> float:
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        spent.append(time.perf_counter() - began)
    return min(spent)


if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")
    result = predictions(order["data"]) if order["method"] == "predict" else measure(**order)
    print(json.dumps(result))
