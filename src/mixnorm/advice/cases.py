"""What advice is sought for: classes, outputs of a regression, or tasks with rows of their own."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.special import log_softmax
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import check_consistent_length

from mixnorm._array import Array, ArrayLike
from mixnorm._checks import check_array
from mixnorm.data import is_list_of_tables
from mixnorm.estimators import MixedNormClassifier, MixedNormRegressor, MultiTaskLearner
from mixnorm.estimators.mixed_norm import standardized
from mixnorm.models import MixedNormPath

Part = tuple[Any, Any]
# Different whole numbers in floats, above which they are no labels.
_FEW = 20


@dataclass(frozen=True)
class Case(ABC):
    """Rows in standard units, targets, and how models of them are made and scored.

    Attributes
    ----------
    X : array or sparse matrix, or a list of them
        The rows that are used, with columns in standard deviations where ``standardize`` says so.
    y : array, or a list of them
        Their targets; labels from 0 up.
    n_outputs : int
        Classes, outputs or tasks.
    standardize : bool
        Whether models measure columns in standard deviations, each by its own training rows.
    """

    X: Any
    y: Any
    n_outputs: int
    standardize: bool

    #: What is learned: classes, outputs or tasks.
    kind: ClassVar[str]
    #: What errors are.
    what: ClassVar[str] = "squared errors, in parts of the variance"
    #: The estimator, and how rows are split.
    learner: ClassVar[Any]
    splitter: ClassVar[Any] = KFold

    @property
    def tables(self) -> list[Any]:
        """The rows of each task; all rows where there are no tasks."""
        return [self.X]

    @property
    def n(self) -> int:
        """How many rows there are; of tasks, in the smallest."""
        return int(min(part.shape[0] for part in self.tables))

    @property
    def n_used(self) -> int:
        """How many rows there are in all."""
        return sum(part.shape[0] for part in self.tables)

    @property
    def d(self) -> int:
        """How many columns there are."""
        return int(self.tables[0].shape[1])

    def model(self, norm: Any, **params: Any) -> Any:
        """Return an estimator under a norm."""
        return self.learner(norm, standardize=self.standardize, **params)

    def folds(self, n_folds: int, seed: int) -> list[tuple[Part, Part]]:
        """Return training and test parts."""
        return _folds(self.splitter, n_folds, seed, self.X, self.y)

    @abstractmethod
    def scores(self, path: MixedNormPath, train: Part, test: Part) -> Iterable[Any]:
        """Return the scores of the test part by each solution of a path."""

    @abstractmethod
    def loss(self, scores: Array, y: ArrayLike) -> float:
        """Return the mean loss of scores."""

    @abstractmethod
    def error(self, scores: Array, y: ArrayLike) -> float:
        """Return what counts: the share of wrong labels, or the part of the variance left."""

    @abstractmethod
    def null_scores(self, y: ArrayLike) -> Any:
        """Return the scores of the model without features, fitted on targets."""

    def null_error(self, train: Part, test: Part) -> float:
        """Return the held-out error of the model without features."""
        return self.error(self.null_scores(train[1]), test[1])


class ClassCase(Case):
    """One label for each row."""

    kind = "classes"
    what = "wrong labels"
    learner = MixedNormClassifier
    splitter = StratifiedKFold

    def scores(self, path: MixedNormPath, train: Part, test: Part) -> Iterable[Any]:
        """Return a score for each class; minus infinity for one without training rows."""
        found = path.decision_function(test[0])
        if found.shape[2] == 1:
            found = np.concatenate([-0.5 * found, 0.5 * found], axis=2)
        scores = np.full((*found.shape[:2], self.n_outputs), -np.inf)
        scores[:, :, np.unique(train[1])] = found
        return scores

    def loss(self, scores: np.ndarray, y: np.ndarray) -> float:
        """Return the mean logistic loss."""
        lost = -log_softmax(scores, axis=1)[np.arange(len(y)), y]
        n_known = np.count_nonzero(np.isfinite(scores[0]))
        return float(np.where(np.isfinite(lost), lost, np.log(n_known) + 10.0).mean())

    def error(self, scores: np.ndarray, y: np.ndarray) -> float:
        """Return the share of wrong labels."""
        return float(np.mean(scores.argmax(axis=1) != y))

    def null_scores(self, y: np.ndarray) -> np.ndarray:
        """Return how frequent the classes are."""
        return np.bincount(y)[None, :]


class OutputCase(Case):
    """Columns of numbers."""

    kind = "outputs"
    learner = MixedNormRegressor

    def scores(self, path: MixedNormPath, train: Part, test: Part) -> Iterable[Any]:
        """Return the predictions of all outputs."""
        return path.decision_function(test[0])

    def loss(self, scores: np.ndarray, y: np.ndarray) -> float:
        """Return the mean squared error."""
        return float(((scores - y) ** 2).mean())

    def error(self, scores: np.ndarray, y: np.ndarray) -> float:
        """Return the mean squared error, in parts of the variance of each output."""
        return float((((scores - y) ** 2).mean(axis=0) / _spread(self.y)).mean())

    def null_scores(self, y: np.ndarray) -> np.ndarray:
        """Return the mean of each output."""
        return np.asarray(y.mean(axis=0))


class TaskCase(Case):
    """Numbers of several tasks, each with rows of its own."""

    kind = "tasks"
    learner = MultiTaskLearner

    @property
    def tables(self) -> list[Any]:
        """The rows of each task."""
        return list(self.X)

    def folds(self, n_folds: int, seed: int) -> list[tuple[Part, Part]]:
        """Return training and test parts, in which each task has its share."""
        tasks = [_folds(KFold, n_folds, seed, X, y) for X, y in zip(self.X, self.y, strict=True)]
        return [
            (_gathered(train for train, _ in parts), _gathered(test for _, test in parts))
            for parts in zip(*tasks, strict=True)
        ]

    def scores(self, path: MixedNormPath, train: Part, test: Part) -> Iterable[Any]:
        """Return the predictions of each task."""
        for place, intercept in enumerate(path.intercepts):
            parts = zip(test[0], path.coef(place), intercept, strict=True)
            yield [X @ weights + constant for X, weights, constant in parts]

    def loss(self, scores: Array, y: Array) -> float:
        """Return the error: tasks may have units of their own."""
        return self.error(scores, y)

    def error(self, scores: Array, y: Array) -> float:
        """Return the mean squared error, in parts of the variance of each task."""
        parts = zip(scores, y, self.y, strict=True)
        left = [((given - known) ** 2).mean() / _spread(whole) for given, known, whole in parts]
        return float(np.mean(left))

    def null_scores(self, y: Array) -> Any:
        """Return the mean of each task."""
        return [part.mean() for part in y]


def case_of(
    X: Array,
    y: Array,
    *,
    max_rows: int,
    standardize: bool,
    seed: int,
    task: str | None = None,
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
        return ClassCase(X, codes, len(labels), standardize)
    return OutputCase(X, _united(y), y.shape[1], standardize)


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
    X: Sequence[Any], y: Array, max_rows: int, standardize: bool, rng: np.random.Generator
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
    return TaskCase(rows, targets, len(rows), standardize)


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


def _folds(kind: Any, n_folds: int, seed: int, X: Array, y: Array) -> list[tuple[Part, Part]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of rare classes
        cuts = list(kind(n_folds, shuffle=True, random_state=seed).split(X, y))
    return [((X[train], y[train]), (X[test], y[test])) for train, test in cuts]


def _gathered(parts: Iterable[Part]) -> Part:
    """Return the rows of all tasks as one list, and their targets as another."""
    rows, targets = zip(*parts, strict=True)
    return list(rows), list(targets)
