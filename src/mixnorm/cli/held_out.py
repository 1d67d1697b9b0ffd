"""Rows held out: paths that are fitted without them, and the errors of predictions for them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm.cli.data import TrainingData
from mixnorm.cli.progress import SearchBar
from mixnorm.estimators.shareboost import SizeProblem
from mixnorm.selection import Candidate, SearchResult, search

Split = tuple[np.ndarray, np.ndarray]


@dataclass
class FoldPath:
    """One path, the rows it did not see, and what it says about them."""

    model: Any
    train: np.ndarray
    test: np.ndarray
    predictions: list[np.ndarray]
    errors: list[float]


class PathProblem(SizeProblem):
    """The table, with a search that shows every round of its paths, and keeps them."""

    def __init__(self, data: TrainingData, learner: Any, bar: SearchBar, names: list[str]) -> None:
        super().__init__(learner, data.X, data.y, data.weight, [learner.alpha])
        self.data, self.bar, self.names = data, bar, iter(names)
        self.kept: list[Any] = []

    def path(self, learner: Any, weight: np.ndarray, test: np.ndarray) -> Any:
        """Return a fitted path."""
        rows = self.X[test]

        def error(model: Any) -> float:
            return error_on(self.data, test, model.predict(rows))

        callback = self.bar.stage(next(self.names), learner.n_features_to_select, error)
        path = super().path(learner.set_callbacks(callback), weight, test).set_callbacks()
        self.kept.append(path)
        return path

    def score(self, candidate: Candidate) -> float:
        """Return the error with a minus."""
        found = candidate.model.outputs.labels(candidate.scores)
        return -error_on(self.data, candidate.rows, found)

    def score_sizes(self, splits: list[Split]) -> tuple[SearchResult, list[FoldPath]]:
        """Return the scores of all sizes, and the folds where some feature lowers the loss.

        A path that ends early has predictions up to the longest, which are its last.
        """
        found = search(self, splits, scoring={"error": self.score}, keep_predictions=True)
        folds = []
        for place in range(found.n_splits):
            path, (train, test) = self.kept[place], splits[place]
            if path.model_.size:
                predictions = [size[place] for size in found.predictions]
                errors = np.abs(found.scores("error")[place, : path.model_.size]).tolist()
                folds.append(FoldPath(path, train, test, predictions, errors))
        return found, folds


def split_rows(y: np.ndarray, task: str, count: int, seed: int) -> list[Split]:
    """Return folds of rows, with the classes spread over them where there are enough rows."""
    from sklearn.model_selection import KFold, StratifiedKFold

    count = min(count, len(y))
    kind: Any = KFold
    if task == "classification":
        often = np.unique(y, return_counts=True)[1].max()
        kind = StratifiedKFold if often >= count else KFold
    splitter = kind(count, shuffle=True, random_state=seed)
    with warnings.catch_warnings():  # of classes with fewer rows than folds, which is fine
        warnings.simplefilter("ignore", UserWarning)
        return list(splitter.split(np.zeros(len(y)), y))


def weight_of(data: TrainingData, rows: np.ndarray) -> np.ndarray | None:
    """Return the weights of some rows; None if all count alike."""
    weight = None if data.weight is None else data.weight[rows]
    return weight if weight is not None and weight.any() else None


def error_on(data: TrainingData, rows: np.ndarray, found: np.ndarray) -> float:
    """Return the error of predictions for some rows of a table."""
    return mean_error(data.y[rows], found, weight_of(data, rows), data.task)


def compute_null_error(data: TrainingData, train: np.ndarray, test: np.ndarray) -> float:
    """Return the error of the best constant: the commonest class, or the mean."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    guess: Any = DummyClassifier() if data.task == "classification" else DummyRegressor()
    guess.fit(train, data.y[train], sample_weight=weight_of(data, train))
    return error_on(data, test, guess.predict(test))


def error_spread(
    truth: np.ndarray, found: np.ndarray, weight: np.ndarray | None, task: str
) -> float:
    """Return the standard error of an error measured on one set of rows."""
    each, unit = _squares(truth, found, task)
    share = np.ones(len(each)) if weight is None else weight
    share = share / share.sum()
    mean = float(share @ each)
    spread = float(np.sqrt(share**2 @ (each - mean) ** 2))
    if task == "classification":
        return spread
    root = float(np.sqrt(mean))
    return unit * (spread / (2 * root)) if root > 0 else 0.0


def mean_error(truth: np.ndarray, found: np.ndarray, weight: np.ndarray | None, task: str) -> float:
    """Return the error rate, or the root of the mean squared error."""
    each, unit = _squares(truth, found, task)
    mean = np.average(each, weights=weight)
    return float(mean if task == "classification" else unit * np.sqrt(mean))


def _squares(truth: np.ndarray, found: np.ndarray, task: str) -> tuple[np.ndarray, float]:
    """Return the squares of deviations, which are finite, and the unit of the deviations."""
    if task == "classification":
        return (truth != found).astype(float), 1.0
    miss = truth - found
    unit = float(np.max(np.abs(miss), initial=0.0)) or 1.0
    return (miss / unit) ** 2, unit
