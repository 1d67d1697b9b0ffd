"""What advice is sought for: classes, outputs of a regression, or tasks with rows of their own."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import check_consistent_length

from mixnorm._checks import check_array
from mixnorm.data import is_list_of_tables
from mixnorm.estimators import MixedNormClassifier, MixedNormRegressor, MultiTaskLearner
from mixnorm.estimators.mixed_norm import standardized

Part = tuple[Any, Any]
# Different whole numbers in floats, above which they are no labels.
_FEW = 20


@dataclass(frozen=True)
class Case:
    """Rows in standard units, targets, and how models of them are made and judged.

    Attributes
    ----------
    kind : {"classes", "outputs", "tasks"}
        What is learned.
    X : array or sparse matrix, or a list of them
        The rows that are used, with columns in standard deviations where ``standardize`` says so.
    y : array, or a list of them
        Their targets; labels from 0 up.
    n_outputs : int
        Classes, outputs or tasks.
    standardize : bool
        Whether models measure columns in standard deviations, each by its own training rows.
    """

    kind: str
    X: Any
    y: Any
    n_outputs: int
    standardize: bool

    @property
    def n(self) -> int:
        """How many rows there are; of tasks, in the smallest."""
        return min(len(part) for part in self.y) if self.kind == "tasks" else len(self.y)

    @property
    def n_used(self) -> int:
        """How many rows there are in all."""
        return sum(map(len, self.y)) if self.kind == "tasks" else len(self.y)

    @property
    def d(self) -> int:
        """How many columns there are."""
        return int((self.X[0] if self.kind == "tasks" else self.X).shape[1])

    def model(self, norm: Any, **params: Any) -> Any:
        """Return an estimator under a norm."""
        kinds = {"classes": MixedNormClassifier, "outputs": MixedNormRegressor}
        kind = kinds.get(self.kind, MultiTaskLearner)
        return kind(norm, standardize=self.standardize, **params)

    def folds(self, n_folds: int, seed: int) -> list[tuple[Part, Part]]:
        """Return training and test parts."""
        if self.kind == "tasks":
            cuts = [_cuts(KFold, n_folds, seed, X, y) for X, y in zip(self.X, self.y, strict=True)]
            return [
                (self._task_part(cuts, fold, 0), self._task_part(cuts, fold, 1))
                for fold in range(n_folds)
            ]
        kind = StratifiedKFold if self.kind == "classes" else KFold
        cuts = _cuts(kind, n_folds, seed, self.X, self.y)
        return [
            ((self.X[train], self.y[train]), (self.X[test], self.y[test])) for train, test in cuts
        ]

    def _task_part(self, cuts: list[Any], fold: int, side: int) -> Part:
        rows = [cut[fold][side] for cut in cuts]
        return (
            [X[part] for X, part in zip(self.X, rows, strict=True)],
            [y[part] for y, part in zip(self.y, rows, strict=True)],
        )

    # --- how good

    def judged(self, path: Any, train: Part, test: Part) -> tuple[np.ndarray, np.ndarray]:
        """Return held-out losses and errors of all solutions of a path."""
        if self.kind == "classes":
            return self._judged_classes(path.decision_function(test[0]), train[1], test[1])
        if self.kind == "outputs":
            left = path.decision_function(test[0]) - test[1]
            lost = (left**2).mean(axis=1)
            return lost.mean(axis=1), (lost / _spread(self.y)).mean(axis=1)
        lost = []
        for task, (X, y) in enumerate(zip(*test, strict=True)):
            given = np.stack([X @ path.coef(a)[task] for a in range(len(path))])
            left = given + path.intercepts[:, task, None] - y
            lost.append((left**2).mean(axis=1) / _spread(self.y[task]))
        mean = np.mean(lost, axis=0)
        return mean, mean

    def _judged_classes(
        self, scores: np.ndarray, known: np.ndarray, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        if scores.shape[2] == 1:
            scores = np.concatenate([-0.5 * scores, 0.5 * scores], axis=2)
        # A class that is not in the training part has no score, and is always missed.
        classes = np.unique(known)
        places = np.searchsorted(classes, y)
        there = (places < len(classes)) & (classes[np.minimum(places, len(classes) - 1)] == y)
        places = np.where(there, places, 0)
        most = scores.max(axis=2, keepdims=True)
        total = np.log(np.exp(scores - most).sum(axis=2)) + most[..., 0]
        lost = total - scores[:, np.arange(len(y)), places]
        wrong = (scores.argmax(axis=2) != places) | ~there
        return np.where(there, lost, np.log(len(classes)) + 10.0).mean(axis=1), wrong.mean(axis=1)

    def null_error(self, train: Part, test: Part) -> float:
        """Return the held-out error of the model without features."""
        if self.kind == "classes":
            labels, counts = np.unique(train[1], return_counts=True)
            return float(np.mean(test[1] != labels[np.argmax(counts)]))
        if self.kind == "outputs":
            left = ((test[1] - train[1].mean(axis=0)) ** 2).mean(axis=0)
            return float((left / _spread(self.y)).mean())
        parts = zip(train[1], test[1], self.y, strict=True)
        return float(
            np.mean([((b - a.mean()) ** 2).mean() / _spread(whole) for a, b, whole in parts])
        )


def case_of(
    X: Any, y: Any, *, max_rows: int, standardize: bool, seed: int, task: str | None = None
) -> Case:
    """Return the case that data make, on so many rows at most."""
    rng = np.random.default_rng(seed)
    if is_list_of_tables(X):
        return _tasks(X, y, max_rows, standardize, rng)
    X = check_array(X, accept_sparse="csr", dtype=np.float64)
    if y is None:
        raise ValueError("y is missing; give labels or targets, one for each row of X.")
    y = np.asarray(y)
    check_consistent_length(X, y)
    classes = _holds_classes(y, task)
    if not classes:
        y = check_array(y.reshape(len(y), -1), dtype=np.float64, input_name="y")
    rows = _some(len(y), max_rows, y if classes else None, rng)
    X, y = X[rows], y[rows]
    X = _scaled([X])[0] if standardize else X
    if classes:
        labels, codes = np.unique(y, return_inverse=True)
        if len(labels) < 2:
            raise ValueError(
                f"y holds one class, {labels.tolist()[0]!r}; advice needs two or more."
            )
        return Case("classes", X, codes, len(labels), standardize)
    return Case("outputs", X, _united(y), y.shape[1], standardize)


def _holds_classes(y: np.ndarray, task: str | None) -> bool:
    """Tell whether targets are labels; floats of many values are numbers, even if whole."""
    if task is not None:
        if task not in ("classification", "regression"):
            raise ValueError(
                f"task={task!r} is not known; choose 'classification' or 'regression'."
            )
        if task == "classification" and y.ndim != 1:
            raise ValueError(f"y has the shape {y.shape}; labels are of one dimension.")
        return task == "classification"
    if y.ndim > 2:
        raise ValueError(f"y has the shape {y.shape}; give labels, or columns of numbers.")
    if y.ndim == 2:
        return False
    if y.dtype.kind in "f":
        if not np.all(np.isfinite(y)):
            raise ValueError("y contains NaN or infinity; remove these rows.")
        return bool(len(np.unique(y)) <= _FEW and np.all(y == np.round(y)))
    if y.dtype.kind in "iu" and len(np.unique(y)) > max(_FEW, len(y) // 4):
        raise ValueError(
            f"y holds {len(np.unique(y))} different whole numbers for {len(y)} rows, which may be "
            "labels or not; set task='regression' or task='classification'."
        )
    return True


def _united(y: np.ndarray) -> np.ndarray:
    """Return targets in a unit in which their squares are numbers."""
    size = float(np.max(np.abs(y), initial=0.0))
    return y / size if size > 0.0 and not 1e-100 < size < 1e100 else y


def _tasks(
    X: Sequence[Any], y: Any, max_rows: int, standardize: bool, rng: np.random.Generator
) -> Case:
    if y is None or len(y) != len(X):
        raise ValueError(f"X has {len(X)} tasks; y must be a list of as many arrays of targets.")
    some_sparse = any(sparse.issparse(part) for part in X)
    rows: list[Any] = []
    targets: list[np.ndarray] = []
    for number, (part, target) in enumerate(zip(X, y, strict=True)):
        part = check_array(part, accept_sparse="csr", dtype=np.float64)
        part = sparse.csr_array(part) if some_sparse else part
        try:
            target = check_array(target, ensure_2d=False, dtype=np.float64, input_name="y").ravel()
        except ValueError as error:
            raise ValueError(f"The targets of task {number} are no numbers: {error}") from error
        check_consistent_length(part, target)
        chosen = _some(len(target), max_rows, None, rng)
        rows.append(part[chosen])
        targets.append(target[chosen])
    if len({part.shape[1] for part in rows}) > 1:
        raise ValueError("Tasks have different numbers of columns; all must have the same.")
    rows = _scaled(rows) if standardize else rows
    return Case("tasks", rows, targets, len(rows), standardize)


def _some(n: int, most: int, labels: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """Return rows, so many at most; of every class a part."""
    if n <= most:
        return np.arange(n)
    order = rng.permutation(n)
    if labels is None:
        return np.sort(order[:most])
    _, codes = np.unique(labels, return_inverse=True)
    # The first rows of every class in turn.
    shares = np.empty(n)
    for code in range(codes.max() + 1):
        own = order[codes[order] == code]
        shares[own] = (np.arange(len(own)) + 0.5) / len(own)
    return np.sort(np.argsort(shares, kind="stable")[:most])


def _scaled(rows: list[Any]) -> list[Any]:
    """Return rows with columns in standard deviations over all tasks; sparse ones stay sparse.

    Models scale again, by the rows that they are fitted on. These units are for the bounds, and
    for ranks of weights.
    """
    weights = [np.full(part.shape[0], 1.0 / part.shape[0]) for part in rows]
    return standardized(rows, weights, centred=True)[0]


def _spread(y: np.ndarray) -> Any:
    """Return the variance of targets, one where there is none."""
    found = np.var(y, axis=0)
    return np.where(found > 0.0, found, 1.0)


def _cuts(kind: Any, n_folds: int, seed: int, X: Any, y: Any) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of rare classes
        return list(kind(n_folds, shuffle=True, random_state=seed).split(X, y))
