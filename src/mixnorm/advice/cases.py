"""The kinds of data that advice is for: classes, outputs of a regression, and tasks."""

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

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm._checks import check_array
from mixnorm.data import is_list_of_tables
from mixnorm.estimators import MixedNormClassifier, MixedNormRegressor, MultiTaskLearner
from mixnorm.estimators.mixed_norm import standardize_columns
from mixnorm.models import MixedNormPath
from mixnorm.norms import Norm

#: Rows and their targets.
Part = tuple[Any, Any]
#: Training parts and test parts.
Folds = list[tuple[Part, Part]]
# Floats with more different values than this are numbers, even if all are whole.
_MOST_LABELS_IN_FLOATS = 20


@dataclass(frozen=True)
class AdviceCase(ABC):
    """Rows and targets to compare norms on, and how models of them are made and scored.

    Attributes
    ----------
    X : array or sparse matrix, or a list of them
        The rows that are used. If ``standardize`` is true, columns are divided by their standard
        deviations.
    y : array, or a list of them
        Their targets; labels are integers from 0 up.
    n_outputs : int
        The number of classes, outputs or tasks.
    standardize : bool
        Whether each model divides columns by their standard deviations on its training rows.
    """

    X: Any
    y: Any
    n_outputs: int
    standardize: bool

    #: The kind of targets: "classes", "outputs" or "tasks".
    kind: ClassVar[str]
    #: The kind of error, in words.
    what: ClassVar[str] = "squared errors, in parts of the variance"
    #: The estimator, and the class that splits rows into folds.
    learner: ClassVar[Any]
    splitter: ClassVar[Any] = KFold

    @property
    def tables(self) -> list[Any]:
        """The rows of each task; all rows where there are no tasks."""
        return [self.X]

    @property
    def n(self) -> int:
        """The number of rows, of the smallest task if there are tasks."""
        return int(min(part.shape[0] for part in self.tables))

    @property
    def n_used(self) -> int:
        """The number of rows of all tasks together."""
        return sum(part.shape[0] for part in self.tables)

    @property
    def d(self) -> int:
        """The number of columns."""
        return int(self.tables[0].shape[1])

    def make_model(self, norm: str | Norm, **params: Any) -> Any:
        """Return an estimator with a norm."""
        return self.learner(norm, standardize=self.standardize, **params)

    def folds(self, n_folds: int, seed: int) -> Folds:
        """Return training and test parts."""
        return _split(self.splitter, n_folds, seed, self.X, self.y)

    @abstractmethod
    def scores(self, path: MixedNormPath, train: Part, test: Part) -> Iterable[Any]:
        """Return the scores of the test part by each solution of a path."""

    @abstractmethod
    def loss(self, scores: Any, y: Any) -> float:
        """Return the mean loss of scores."""

    @abstractmethod
    def error(self, scores: Any, y: Any) -> float:
        """Return the share of wrong labels, or the squared error divided by the variance."""

    @abstractmethod
    def null_scores(self, y: Any) -> Any:
        """Return the scores of the model without features, fitted on targets."""

    def null_error(self, train: Part, test: Part) -> float:
        """Return the held-out error of the model without features."""
        return self.error(self.null_scores(train[1]), test[1])


class ClassCase(AdviceCase):
    """Data with one label for each row."""

    kind = "classes"
    what = "wrong labels"
    learner = MixedNormClassifier
    splitter = StratifiedKFold

    def scores(self, path: MixedNormPath, train: Part, test: Part) -> Iterable[Any]:
        """Return a score for each class; minus infinity for one without training rows."""
        found = path.decision_function(test[0])
        if found.shape[2] == 1:
            # One score for two classes is the difference of two.
            found = np.concatenate([-0.5 * found, 0.5 * found], axis=2)
        scores = np.full((*found.shape[:2], self.n_outputs), -np.inf)
        scores[:, :, np.unique(train[1])] = found
        return scores

    def loss(self, scores: np.ndarray, y: np.ndarray) -> float:
        """Return the mean logistic loss."""
        lost = -log_softmax(scores, axis=1)[np.arange(len(y)), y]
        # A class without training rows has the probability zero, and an infinite loss would hide
        # all others. It costs ten more than chance instead.
        n_known = np.count_nonzero(np.isfinite(scores[0]))
        return float(np.where(np.isfinite(lost), lost, np.log(n_known) + 10.0).mean())

    def error(self, scores: np.ndarray, y: np.ndarray) -> float:
        """Return the share of wrong labels."""
        return float(np.mean(scores.argmax(axis=1) != y))

    def null_scores(self, y: np.ndarray) -> np.ndarray:
        """Return the counts of the classes."""
        return np.bincount(y)[None, :]


class OutputCase(AdviceCase):
    """Data with one or more numbers for each row."""

    kind = "outputs"
    learner = MixedNormRegressor

    def scores(self, path: MixedNormPath, train: Part, test: Part) -> Iterable[Any]:
        """Return the predictions of all outputs."""
        return path.decision_function(test[0])

    def loss(self, scores: np.ndarray, y: np.ndarray) -> float:
        """Return the mean squared error."""
        return float(((scores - y) ** 2).mean())

    def error(self, scores: np.ndarray, y: np.ndarray) -> float:
        """Return the mean over outputs of the mean squared error divided by the variance."""
        return float((((scores - y) ** 2).mean(axis=0) / _compute_variances(self.y)).mean())

    def null_scores(self, y: np.ndarray) -> np.ndarray:
        """Return the mean of each output."""
        return np.asarray(y.mean(axis=0))


class TaskCase(AdviceCase):
    """Data of several regression tasks, each with rows of its own."""

    kind = "tasks"
    learner = MultiTaskLearner

    @property
    def tables(self) -> list[Any]:
        """The rows of each task."""
        return list(self.X)

    def folds(self, n_folds: int, seed: int) -> Folds:
        """Return training and test parts with the same share of each task."""
        # Every task is split by itself, so that each fold has rows of all tasks.
        tasks = [_split(KFold, n_folds, seed, X, y) for X, y in zip(self.X, self.y, strict=True)]
        return [
            (_gather_tasks(train for train, _ in parts), _gather_tasks(test for _, test in parts))
            for parts in zip(*tasks, strict=True)
        ]

    def scores(self, path: MixedNormPath, train: Part, test: Part) -> Iterable[Any]:
        """Return the predictions of each task."""
        for place, intercept in enumerate(path.intercepts):
            parts = zip(test[0], path.coef(place), intercept, strict=True)
            yield [X @ weights + constant for X, weights, constant in parts]

    def loss(self, scores: list[np.ndarray], y: list[np.ndarray]) -> float:
        """Return the error, because tasks may have different units."""
        return self.error(scores, y)

    def error(self, scores: list[np.ndarray], y: list[np.ndarray]) -> float:
        """Return the mean over tasks of the mean squared error divided by the variance."""
        parts = zip(scores, y, self.y, strict=True)
        left = [((s - part) ** 2).mean() / _compute_variances(whole) for s, part, whole in parts]
        return float(np.mean(left))

    def null_scores(self, y: list[np.ndarray]) -> list[np.ndarray]:
        """Return the mean of each task."""
        return [part.mean() for part in y]


def make_case(
    X: MatrixLike,
    y: ArrayLike | None,
    *,
    max_rows: int,
    standardize: bool,
    seed: int,
    task: str | None = None,
) -> AdviceCase:
    """Return the case for given data, with at most ``max_rows`` rows of each task."""
    rng = np.random.default_rng(seed)
    if isinstance(X, (list, tuple)) and is_list_of_tables(X):
        targets: Any = y
        return _make_task_case(X, targets, max_rows, standardize, rng)
    X = check_array(X, accept_sparse="csr", dtype=np.float64)
    if y is None:
        raise ValueError("y is missing; give labels or targets, one for each row of X.")
    y = np.asarray(y)
    check_consistent_length(X, y)
    classes = _holds_classes(y, task)
    if not classes:
        y = check_array(y.reshape(len(y), -1), dtype=np.float64, input_name="y")
    rows = _draw_rows(len(y), max_rows, y if classes else None, rng)
    X, y = X[rows], y[rows]
    X = _standardize([X])[0] if standardize else X
    if classes:
        labels, codes = np.unique(y, return_inverse=True)
        if len(labels) < 2:
            raise ValueError(
                f"y has only one class, {labels.tolist()[0]!r}; give at least two classes."
            )
        return ClassCase(X, codes, len(labels), standardize)
    return OutputCase(X, _rescale_targets(y), y.shape[1], standardize)


def _holds_classes(y: np.ndarray, task: str | None) -> bool:
    """Tell whether targets are labels. Floats of many values are numbers, even if whole."""
    if task is not None:
        if task not in ("classification", "regression"):
            raise ValueError(
                f"task={task!r} is not known; choose 'classification' or 'regression'."
            )
        if task == "classification" and y.ndim != 1:
            raise ValueError(f"y has the shape {y.shape}; give one label for each row.")
        return task == "classification"
    if y.ndim > 2:
        raise ValueError(f"y has the shape {y.shape}; give labels, or columns of numbers.")
    if y.ndim == 2:
        return False
    if y.dtype.kind in "f":
        if not np.all(np.isfinite(y)):
            raise ValueError("y contains NaN or infinity; remove these rows.")
        # Labels are often stored as floats, and counts as whole numbers.
        few = len(np.unique(y)) <= _MOST_LABELS_IN_FLOATS
        return bool(few and np.all(y == np.round(y)))
    if y.dtype.kind in "iu" and len(np.unique(y)) > max(_MOST_LABELS_IN_FLOATS, len(y) // 4):
        raise ValueError(
            f"y has {len(np.unique(y))} different whole numbers for {len(y)} rows, which may be "
            "labels or numbers; set task='regression' or task='classification'."
        )
    return True


def _rescale_targets(y: np.ndarray) -> np.ndarray:
    """Return targets in a unit in which their squares neither overflow nor vanish."""
    size = float(np.max(np.abs(y), initial=0.0))
    return y / size if size > 0.0 and not 1e-100 < size < 1e100 else y


def _make_task_case(
    X: Sequence[Any],
    y: Sequence[Any] | None,
    max_rows: int,
    standardize: bool,
    rng: np.random.Generator,
) -> TaskCase:
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
            raise ValueError(f"The targets of task {number} are not numbers: {error}") from error
        check_consistent_length(part, target)
        chosen = _draw_rows(len(target), max_rows, None, rng)
        rows.append(part[chosen])
        targets.append(target[chosen])
    if len({part.shape[1] for part in rows}) > 1:
        raise ValueError("The tasks of X have different numbers of columns; give them the same.")
    rows = _standardize(rows) if standardize else rows
    return TaskCase(rows, targets, len(rows), standardize)


def _draw_rows(
    n: int, most: int, labels: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    """Return at most ``most`` random rows, with the same share of every class."""
    if n <= most:
        return np.arange(n)
    order = rng.permutation(n)
    if labels is None:
        return np.sort(order[:most])
    _, codes = np.unique(labels, return_inverse=True)
    # Rows are numbered within their class and ordered by this number over the size of the class.
    shares = np.empty(n)
    for code in range(codes.max() + 1):
        own = order[codes[order] == code]
        shares[own] = (np.arange(len(own)) + 0.5) / len(own)
    return np.sort(np.argsort(shares, kind="stable")[:most])


def _standardize(rows: list[Any]) -> list[Any]:
    """Return rows with columns divided by their standard deviations over all tasks.

    Sparse rows stay sparse. Models scale again, by the rows that they are fitted on; these units
    are for the bounds and for the ranks of weights.
    """
    weights = [np.full(part.shape[0], 1.0 / part.shape[0]) for part in rows]
    return standardize_columns(rows, weights, centred=True)[0]


def _compute_variances(y: np.ndarray) -> np.ndarray:
    """Return the variances of targets, with one in place of zero."""
    found = np.var(y, axis=0)
    return np.where(found > 0.0, found, 1.0)


def _split(splitter: type[KFold], n_folds: int, seed: int, X: Any, y: np.ndarray) -> Folds:
    """Return training and test parts; classes with fewer rows than folds are allowed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about rare classes
        cuts = list(splitter(n_folds, shuffle=True, random_state=seed).split(X, y))
    return [((X[train], y[train]), (X[test], y[test])) for train, test in cuts]


def _gather_tasks(parts: Iterable[Part]) -> Part:
    """Return the rows of all tasks as one list, and their targets as another."""
    rows, targets = zip(*parts, strict=True)
    return list(rows), list(targets)
