"""Held-out rows: paths fitted without them, and errors of predictions for them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mixnorm.cli.data import TrainingTable
from mixnorm.cli.progress import SearchBar
from mixnorm.estimators.shareboost import SizeProblem
from mixnorm.selection import Candidate, SearchResult, search

Split = tuple[np.ndarray, np.ndarray]


@dataclass
class FoldPath:
    """A path, its training and test rows, and its predictions and errors on the test rows."""

    model: Any
    train: np.ndarray
    test: np.ndarray
    predictions: list[np.ndarray]
    errors: list[float]


class TablePathProblem(SizeProblem):
    """A search over sizes on a table that shows the progress of its paths, and keeps them."""

    def __init__(
        self, data: TrainingTable, learner: BaseEstimator, bar: SearchBar, names: list[str]
    ) -> None:
        super().__init__(learner, data.X, data.y, data.weight, [learner.alpha])
        self.data, self.bar, self.names = data, bar, iter(names)
        self.kept: list[Any] = []

    def path(self, learner: BaseEstimator, weight: np.ndarray, test: np.ndarray) -> Any:
        """Return a fitted path."""
        rows = self.X[test]
        callback = self.bar.stage(
            next(self.names),
            learner.n_features_to_select,
            lambda model: measure_error(self.data, test, model.predict(rows)),
        )
        path = super().path(learner.set_callbacks(callback), weight, test).set_callbacks()
        self.kept.append(path)
        return path

    def score(self, candidate: Candidate) -> float:
        """Return the negative error."""
        found = candidate.model.outputs.labels(candidate.scores)
        return -measure_error(self.data, candidate.rows, found)

    def score_sizes(self, splits: list[Split]) -> tuple[SearchResult, list[FoldPath]]:
        """Return the scores of all sizes, and the folds in which a feature lowers the loss.

        The predictions of a path that ends early are repeated for the sizes of longer paths.
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
    """Return folds of rows, stratified by class if there are enough rows."""
    from sklearn.model_selection import KFold, StratifiedKFold

    count = min(count, len(y))
    kind: Any = KFold
    if task == "classification":
        often = np.unique(y, return_counts=True)[1].max()
        kind = StratifiedKFold if often >= count else KFold
    splitter = kind(count, shuffle=True, random_state=seed)
    with warnings.catch_warnings():  # about classes with fewer rows than folds, which are allowed
        warnings.simplefilter("ignore", UserWarning)
        return list(splitter.split(np.zeros(len(y)), y))


def select_weights(data: TrainingTable, rows: np.ndarray) -> np.ndarray | None:
    """Return the weights of some rows; None if they count equally, as rows without weight do."""
    weight = None if data.weight is None else data.weight[rows]
    return weight if weight is not None and weight.any() else None


def measure_error(data: TrainingTable, rows: np.ndarray, found: np.ndarray) -> float:
    """Return the error of predictions for some rows of a table."""
    return compute_error(data.y[rows], found, select_weights(data, rows), data.task)


def compute_null_error(data: TrainingTable, train: np.ndarray, test: np.ndarray) -> float:
    """Return the error of the best constant: the commonest class or the mean."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    guess: Any = DummyClassifier() if data.task == "classification" else DummyRegressor()
    guess.fit(train, data.y[train], sample_weight=select_weights(data, train))
    return measure_error(data, test, guess.predict(test))


def estimate_standard_error(
    truth: np.ndarray, found: np.ndarray, weight: np.ndarray | None, task: str
) -> float:
    """Return the standard error of an error that is measured on one set of rows."""
    each, unit = _scale_squares(truth, found, task)
    share = np.ones(len(each)) if weight is None else weight
    share = share / share.sum()
    mean = float(share @ each)
    spread = float(np.sqrt(share**2 @ (each - mean) ** 2))
    if task == "classification":
        return spread
    root = float(np.sqrt(mean))
    return unit * (spread / (2 * root)) if root > 0 else 0.0


def compute_error(
    truth: np.ndarray, found: np.ndarray, weight: np.ndarray | None, task: str
) -> float:
    """Return the error rate, or the root of the mean squared error."""
    each, unit = _scale_squares(truth, found, task)
    mean = np.average(each, weights=weight)
    return float(mean if task == "classification" else unit * np.sqrt(mean))


def _scale_squares(truth: np.ndarray, found: np.ndarray, task: str) -> tuple[np.ndarray, float]:
    """Return squared deviations in a unit that keeps them finite, and that unit."""
    if task == "classification":
        return (truth != found).astype(float), 1.0
    miss = truth - found
    unit = float(np.max(np.abs(miss), initial=0.0)) or 1.0
    return (miss / unit) ** 2, unit
