"""The measuring process of ``benchmarks.trees``: one method on one dataset.

In ``python -m benchmarks.trees.child ORDER``, ORDER is JSON with data, method and inputs. For trees
it has budgets too: the operations per row of small models, by the name of our model. The last line
of the output is JSON.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.harness import splits
from benchmarks.harness.measure import measure_call
from benchmarks.harness.tuning import draw_rows
from benchmarks.trees.boosters import BOOSTERS, Booster

POOLS = ("boxes", "stumps")
# Maximal number of comparisons; a stump has one, and a box one or two.
STUMPS = 300
# Settings to try: the ridge, and the share of the rounds over which inputs come in.
ALPHAS = (1e-5, 1e-4, 1e-3, 3e-3, 1e-2)
SHARES = (0.0, 0.5)
# Settings are compared on a fifth of the training rows, at most ASIDE of them.
ASIDE = 1000
# Rounds of the defaults of LightGBM and XGBoost, which are always among the last candidates.
DEFAULT_ROUNDS = 100


def measure(
    data: str, method: str, inputs: int, budgets: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """Return error and cost of a method, with settings chosen on training rows."""
    split = load(data)
    if method in BOOSTERS:
        return measure_trees(split, BOOSTERS[method], inputs, budgets or {})
    return measure_ours(split, method, inputs)


def load(data: str) -> splits.Split:
    """Return a dataset in single precision, with labels from zero up."""
    split = splits.make_split(splits.RECIPES.get(data) or splits.Recipe(data))
    classes, y = np.unique(split.y, return_inverse=True)
    y_test = np.searchsorted(classes, split.y_test)
    X, X_test = (np.asarray(part, dtype=np.float32) for part in (split.X, split.X_test))
    return splits.Split(X, y, X_test, y_test)


def set_aside(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows to fit settings on, rows to compare them on, and the other four fifths.

    They are the same for every method.
    """
    rng = np.random.default_rng(0)
    aside = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        own = np.flatnonzero(y == label)
        aside[rng.permutation(own)[: len(own) // 5]] = True
    rest, held = np.flatnonzero(~aside), np.flatnonzero(aside)
    return rest[draw_rows(y[rest])], held[draw_rows(y[held], ASIDE)], rest


def measure_error(predicted: np.ndarray, y: np.ndarray) -> float:
    """Return the error in percent."""
    return 100 * float(np.mean(predicted != y))


def measure_trees(
    split: splits.Split, maker: Booster, inputs: int, budgets: Mapping[str, float]
) -> dict[str, Any]:
    """Tune, and fit a model of any size and small models on the columns with the largest gain.

    The cost of a small model on the held-out rows is within a budget.
    """
    tried, search = measure_call(lambda: try_settings(split, maker, inputs))
    order, first = measure_call(lambda: maker.order(split.X, split.y))
    columns = np.sort(order[:inputs])
    X, X_test = split.X[:, columns], np.ascontiguousarray(split.X_test[:, columns])
    own = splits.Split(X, split.y, X_test, split.y_test)
    (settings, rounds), last_search = measure_call(
        lambda: choose_last(own, maker, [(Settings({}, -1), DEFAULT_ROUNDS), *choose_best(tried)])
    )
    model, last = measure_call(lambda: maker.fit(X, split.y, settings, rounds))
    error = measure_error(maker.predict(model, X_test, rounds), split.y_test)
    return {
        "seconds": first.seconds + last.seconds,
        "search_seconds": search.seconds + last_search.seconds,
        "inputs": len(columns),
        "settings": settings,
        "final": [float(maker.costs(model, X_test)[-1]), error, rounds],
        "small": choose_small_trees(own, maker, tried, budgets),
    }


def choose_small_trees(
    split: splits.Split, maker: Booster, tried: list[Any], budgets: Mapping[str, float]
) -> dict[str, Any]:
    """Return cost, error and rounds of the best small model for each budget."""
    found = {}
    for name, budget in budgets.items():
        within = [each for each in tried if each[1] <= budget]
        if within:
            settings, rounds = choose_last(split, maker, choose_best(within))
            model = maker.fit(split.X, split.y, settings, rounds)
            costs = maker.costs(model, split.X_test)
            # More rows may give deeper trees, so rounds beyond the budget are dropped.
            rounds = max(1, int(np.count_nonzero(costs[:rounds] <= budget)))
            error = measure_error(maker.predict(model, split.X_test, rounds), split.y_test)
            found[name] = [float(costs[rounds - 1]), error, rounds]
    return found


def choose_best(tried: list[Any], count: int = 3) -> list[tuple[Any, int]]:
    """Return the settings with the smallest errors on few rows, with numbers of rounds."""
    kept: dict[int, tuple[Any, int]] = {}
    for _, _, settings, rounds in sorted(tried):
        kept.setdefault(settings.place, (settings, rounds))
    return list(kept.values())[:count]


def choose_last(
    split: splits.Split, maker: Booster, candidates: list[tuple[Any, int]]
) -> tuple[Any, int]:
    """Fit candidates on four fifths of the rows, and return the best on held-out rows.

    The first of equal ones wins, which is the library's default if that is a candidate. The best
    setting on 2,000 rows may be bad on more, because LightGBM may diverge at large learning rates.
    """
    _, held, rest = set_aside(split.y)

    def error(candidate: tuple[Any, int]) -> float:
        model = maker.fit(split.X[rest], split.y[rest], *candidate)
        return measure_error(maker.predict(model, split.X[held], candidate[1]), split.y[held])

    return min(candidates, key=error)


def try_settings(split: splits.Split, maker: Booster, inputs: int | None) -> list[Any]:
    """Return error, cost, settings and rounds of all trials on few rows."""
    fit_rows, held, _ = set_aside(split.y)
    X, y, X_held, y_held = split.X[fit_rows], split.y[fit_rows], split.X[held], split.y[held]
    if inputs is not None:
        chosen = np.sort(maker.order(X, y)[:inputs])
        X, X_held = X[:, chosen], np.ascontiguousarray(X_held[:, chosen])
    tried: list[Any] = []
    for place, settings in enumerate(maker.grid):
        model = maker.fit(X, y, settings, max(maker.rounds))
        costs = maker.costs(model, X_held)
        for rounds in maker.rounds:
            error = measure_error(maker.predict(model, X_held, rounds), y_held)
            tried.append((error, float(costs[rounds - 1]), place, rounds))
    return [(*each[:2], Settings(maker.grid[each[2]], each[2]), each[3]) for each in tried]


class Settings(dict[str, Any]):
    """Settings of a model, ordered by their index in the grid."""

    def __init__(self, values: Mapping[str, Any], place: int) -> None:
        super().__init__(values)
        self.place = place

    def __lt__(self, other: Settings) -> bool:
        return self.place < other.place


def measure_ours(split: splits.Split, method: str, inputs: int) -> dict[str, Any]:
    """Choose ridge and rounds per input on held-out rows, then fit on all training rows."""
    fit_rows, held, _ = set_aside(split.y)
    tried, search = [], 0.0
    for share in SHARES:
        for alpha in ALPHAS:
            model, cost = fit(method, split.X[fit_rows], split.y[fit_rows], inputs, alpha, share)
            search += cost
            error = measure_error(cut_path(model).predict(split.X[held]), split.y[held])
            tried.append([error, share, alpha])
    _, share, alpha = min(tried)
    # The loss is a mean over rows, so with more rows the same ridge needs a smaller alpha.
    alpha *= len(fit_rows) / len(split.y)
    model, seconds = fit(method, split.X, split.y, inputs, alpha, share)
    counted = cut_path(model)
    error = measure_error(counted.predict(split.X_test), split.y_test)
    return {
        "seconds": seconds,
        "search_seconds": search,
        "alpha": alpha,
        "share": share,
        "tried": tried,
        "inputs": len(model.selected_),
        "final": [float(counted.cost_.total), error, len(counted.path_["loss"])],
    }


def fit(
    method: str, X: np.ndarray, y: np.ndarray, inputs: int, alpha: float, share: float
) -> tuple[Any, float]:
    """Fit a model of at most ``STUMPS`` atoms, and return it with the CPU seconds."""
    from mixnorm import GreedyOptions, ShareBoostClassifier
    from mixnorm.pools import Boxes, Stumps

    pool = Boxes() if method == "boxes" else Stumps()
    model = ShareBoostClassifier(
        STUMPS,
        pool=pool,
        alpha=alpha,
        max_inputs=inputs,
        options=GreedyOptions(rounds_per_input=max(1, round(share * STUMPS / inputs))),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there may be fewer stumps than requested
        _, cost = measure_call(lambda: model.fit(X, y))
    return model, cost.seconds


def cut_path(model: Any) -> Any:
    """Return the largest model on a path with at most ``STUMPS`` comparisons."""
    counts = np.cumsum([_count_comparisons(atom) for atom in model.path_["feature"]])
    return model.truncate(int(np.searchsorted(counts, STUMPS, side="right")))


def _count_comparisons(atom: Any) -> int:
    return len(atom) if isinstance(atom[0], tuple) else 1


if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")
    if order["method"] == "predict":
        from benchmarks.trees.times import time_predictions

        result = time_predictions(order["data"])
    else:
        result = measure(**order)
    print(json.dumps(result))
