"""Many tasks under one norm, the penalty chosen by cross-validation."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Hashable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator

from mixnorm._array import Array, is_sparse
from mixnorm.estimators._common.folds import fold_splitter, row_folds, warn_of_sorted_rows
from mixnorm.estimators._common.parameters import Folds, Loss
from mixnorm.estimators.mixed_norm import Training
from mixnorm.estimators.mixed_norm.search import PenaltyByCrossValidation, PenaltyProblem, Rows
from mixnorm.estimators.mixed_norm.tables import refuse_table
from mixnorm.estimators.multitask.base import BaseMultiTask
from mixnorm.estimators.multitask.learner import MultiTaskLearner
from mixnorm.estimators.multitask.problem import TaskProblem, task_design
from mixnorm.estimators.multitask.targets import (
    MatricesLike,
    TargetsLike,
    read_separate,
    stack_columns,
)
from mixnorm.selection import Candidate

# The rows of a fold to train on, and those to score.
Fold = tuple[Rows, Rows]


@dataclass(eq=False, repr=False)
class MultiTaskLearnerCV(PenaltyByCrossValidation, BaseMultiTask):
    """Linear models for many tasks under one norm, the penalty chosen by cross-validation.

    One path over the same penalties is fitted per fold, every penalty is scored on what was held
    out, and the chosen one is fitted on all data.

    Parameters
    ----------
    norm : {"l1,1", "l2,1", "l2,2", "linf,1", "trace"} or norm object, default="l2,1"
        The norm, by name or as an object of :mod:`mixnorm.norms`.
    losses : str, loss object, or list or dict of these, default="squared"
        The loss of all tasks, or one for each, as in :class:`MultiTaskLearner`.
    alphas : int or sequence of float, default=50
        Falling penalties to try, or how many to take, evenly spaced in logarithms, from the
        smallest penalty that leaves no weights. A penalty is the weight of the norm beside the sum
        of the tasks' weighted mean losses, for the weights of the columns as given: it is in units
        of the columns, unless ``standardize=True``.
    alpha_ratio : float, default=1e-2
        The last of these divided by the first; not used where penalties are given.
    cv : int, cross-validation splitter or iterable, default=None
        How to split; None takes five folds. One ``X`` is split by rows. With an ``X`` for each
        task every task is split by itself, into the same number of folds; ``cv`` is then a number
        or a splitter.
    scoring : str or callable, default=None
        What to maximise. None takes the mean over tasks of one minus the held-out loss divided by
        that of the best intercept on all data; ``"score"`` the mean of R² and accuracies that
        ``score`` gives; others are called as ``scoring(model, X, y)``, with dictionaries by task
        where each has its own ``X``.
    one_standard_error : bool, default=True
        Choose the largest penalty whose mean score is within one standard error of the best,
        instead of the best.
    n_jobs : int, default=None
        Folds fitted at the same time; None means 1, -1 all processors.
    fit_intercept, standardize, tol, max_iter
        As in :class:`MultiTaskLearner`; standard deviations are those of the rows of each fit.

    Attributes
    ----------
    alpha_ : float
        The chosen penalty.
    alphas_ : ndarray of shape (n_alphas,)
        The penalties tried, falling.
    alpha_max_ : float
        The smallest penalty known to leave all weights at zero.
    cv_results_ : dict of ndarray
        ``"alpha"``, ``"mean_test_score"``, ``"std_test_score"``, ``"standard_error"`` and
        ``"split0_test_score"``, ... for every penalty.
    best_params_ : dict
        The chosen ``"alpha"``.
    best_score_ : float
        Mean held-out score of the chosen penalty.
    best_index_, n_splits_ : int
        The row of the chosen penalty in ``cv_results_``, and the number of folds with scores.
    coef_, intercept_, tasks_, classes_, support_, selected_, selected_names_, \
feature_importances_, rank_, dual_gap_, objective_, norm_value_, n_iter_, n_features_in_, \
feature_names_in_
        As in :class:`MultiTaskLearner`, for the model fitted on all data.

    Notes
    -----
    The held-out loss is what is minimised, exists for every task, and is divided by a number that
    is the same in all folds. R² is not defined where a fold holds one label of a task, and far
    from zero where it holds few; for the squared loss and large folds the default is nearly R².

    Where a fold would leave a task nothing to learn from (no label, or one of its two labels), the
    task is trained on whole and not scored in that fold. A task with fewer rows than folds has one
    row held out in each of as many folds as it has rows. Folds in which nothing is scored, and
    tasks whose targets do not vary, do not count. Sample weights count in fits and scores. Rows
    held out get weight zero, so that no fold copies ``X``, except with ``standardize=True``.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm import MultiTaskLearnerCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 20))
    >>> Y = X[:, :2] @ rng.normal(size=(2, 5)) + 0.5 * rng.normal(size=(100, 5))
    >>> model = MultiTaskLearnerCV("l2,1", alphas=20).fit(X, Y)
    >>> model.support_.tolist(), bool(model.best_score_ > 0.5)
    ([0, 1], True)
    """

    _kind = MultiTaskLearner

    losses: Loss = "squared"
    _: KW_ONLY

    def _search_problem(
        self, X: MatricesLike, y: TargetsLike, sample_weight: TargetsLike
    ) -> _TaskSearch:
        refuse_table(self, X)
        problem = self._problem(X, y, sample_weight)
        penalties = problem.training, problem.outputs, self.alphas, self.alpha_ratio
        own = problem, sample_weight is not None
        return _TaskSearch(self._make_learner(MultiTaskLearner), None, None, None, *penalties, *own)

    def _scorer(self) -> Callable[..., float] | None:
        return MultiTaskLearner.score if self.scoring == "score" else super()._scorer()


# --- folds


def split_tasks(cv: Folds, problem: TaskProblem, groups: Any = None) -> list[Fold]:
    """Return the folds: of the rows of one ``X``, or of those of every task."""
    targets = problem.targets
    if targets.shared:
        y = targets.columns[0] if len(targets.columns) == 1 else problem.y
        # A row counts if some task has a label for it.
        weight = np.max(problem.training.weight.reshape(len(y), -1), axis=1)
        X = problem.matrices[0]
        return [*row_folds(cv, X, y, groups, classifier=False, weight=weight)]
    splitter = fold_splitter(cv)
    if cv is not None and not isinstance(cv, numbers.Integral) and not hasattr(cv, "split"):
        raise ValueError(
            f"cv={cv!r} does not say how to split each task by itself; give a number of folds or a "
            "splitter."
        )
    names = targets.names
    parts: list[Any] = [None] * len(names)
    if groups is not None:
        parts = read_separate(names, targets.form, groups).columns
    # Tasks have rows of their own, so that a row number means another row in each.
    splits = [
        _split_task(splitter, names[task], X, y, parts[task], task)
        for task, (X, y) in enumerate(zip(problem.matrices, targets.columns, strict=True))
    ]
    sizes = {len(own) for own in splits}
    if len(sizes) != 1:
        raise ValueError(
            f"cv={cv!r} splits tasks into different numbers of folds, {sorted(sizes)}; give a "
            "splitter with a fixed number."
        )
    for y, own in zip(targets.columns, splits, strict=True):
        warn_of_sorted_rows(y, [test for _, test in own])
    return [
        ([own[fold][0] for own in splits], [own[fold][1] for own in splits])
        for fold in range(sizes.pop())
    ]


def _split_task(
    splitter: BaseCrossValidator,
    name: Hashable,
    X: Array,
    y: np.ndarray,
    groups: np.ndarray | None,
    task: int,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the folds of one task; of one with fewer rows than folds, one row in each."""
    rows = np.arange(X.shape[0])
    n_folds = splitter.get_n_splits(X, y, groups)
    if len(rows) >= n_folds:
        try:
            return list(splitter.split(X, y, groups))
        except ValueError as error:
            raise ValueError(f"Task {name!r}: {error}") from error
    # Small tasks begin at different folds, so that each fold has its share of them.
    held = [rows[(rows + task) % n_folds == fold] for fold in range(n_folds)]
    return [(np.setdiff1d(rows, own), own) for own in held]


def fold_weights(problem: TaskProblem, fold: Fold) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights to train with in a fold, and those to score with, ``(n, n_tasks)``.

    Both sum to one for every task; the latter are zero for a task that is not scored.
    """
    y, weight = problem.y, problem.training.weight
    full = np.broadcast_to(weight.reshape(len(y), -1), y.shape)
    train, test = (_count_rows(rows, y.shape) for rows in fold)
    fitted, held = full * train, full * test
    binary = np.asarray([loss.is_binary for loss in problem.outputs.losses])
    some = np.any(fitted > 0.0, axis=0)
    # A task of two labels needs both of them to learn from.
    both = np.any((fitted > 0.0) & (y > 0.0), axis=0) & np.any((fitted > 0.0) & (y < 0.0), axis=0)
    whole = ~np.where(binary, both, some)
    held[:, whole] = 0.0
    totals = held.sum(axis=0)
    # Held-out weights of every task that is scored sum to one, so that tasks count alike.
    held /= np.where(totals > 0.0, totals, 1.0)
    if weight.ndim == 1 and not np.any(whole):
        # Of weights that all tasks share, one column is enough.
        fitted = fitted[:, 0]  # which keeps the quick case
    else:
        fitted[:, whole] = full[:, whole]
    fitted /= fitted.sum(axis=0)
    return np.asfortranarray(fitted, dtype=weight.dtype), held.astype(weight.dtype, copy=False)


def _count_rows(rows: Rows, shape: tuple[int, ...]) -> np.ndarray:
    """Return how often each row is in a fold: one column for all tasks, or one for each."""
    if not isinstance(rows, list):
        return np.bincount(rows, minlength=shape[0])[:, None]
    return np.stack([np.bincount(own, minlength=shape[0]) for own in rows], axis=1)


@dataclass(eq=False)
class _TaskSearch(PenaltyProblem):
    """The search over penalties with the rows of all tasks; rows held out get weight zero."""

    problem: TaskProblem
    weighted: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        self.null_losses = self._find_null_losses()

    def splits(self, cv: Folds, groups: Any) -> list[Fold]:
        """Return the folds in which some task is scored."""
        folds = [
            fold
            for fold in split_tasks(cv, self.problem, groups)
            if np.any(fold_weights(self.problem, fold)[1][:, self.null_losses > 0.0])
        ]
        if not folds:
            raise ValueError(
                f"cv={cv!r} holds out no label of a task that keeps others to learn from. Give "
                "more data, or leave out tasks with few labels or targets that do not vary."
            )
        return folds

    def _path(self, train: Rows, test: Rows, chain: int) -> Iterator[Candidate]:
        problem = self.problem
        fitted, held = fold_weights(problem, (train, test))
        training = _replace_weights(self.estimator, problem, fitted)
        rows = _Held(test, held, self.null_losses)
        for found in self._solutions(training):
            # Scores of all rows at once, in the units of the engine: held-out rows are among them.
            weights, intercept = training.inward(found.weights, found.intercept)
            scores = training.design.scores(weights) + intercept
            yield self._candidate(found, rows, scores, self.estimator._model(found, self.outputs))

    def score(self, candidate: Candidate) -> float:
        """Return the mean over tasks of one minus the loss beside that of the best intercept."""
        training, weight = self.training, candidate.rows.shares()
        value, _ = training.loss.value_and_residual(candidate.scores, training.target, weight)
        return 1.0 - float(value)

    def held_out_data(self, candidate: Candidate) -> tuple[Any, Any]:
        """Return ``X`` and ``y`` of the held-out rows of the tasks that are scored."""
        problem, held = self.problem, candidate.rows
        targets, tasks, own = problem.targets, np.flatnonzero(held.scored), held.rows_of_tasks
        y = {targets.names[task]: targets.columns[task][own[task]] for task in tasks}
        if not targets.shared:
            X = {targets.names[task]: _take(problem.matrices[task], own[task]) for task in tasks}
            return X, y
        X = _take(problem.matrices[0], own[0])
        if len(tasks) < len(targets.names):
            return X, y
        columns = list(y.values())
        return X, columns[0] if targets.form == "column" else stack_columns(columns)

    def metadata(self, candidate: Candidate, given: dict[str, Any]) -> dict[str, Any]:
        """Return the weights of the held-out rows, one each or one for each scored task."""
        if not self.weighted:
            return {}
        weight, held = self.training.weight, candidate.rows
        if weight.ndim == 1:
            return {"sample_weight": weight[held.rows_of_tasks[0]]}
        names, own = self.problem.targets.names, held.rows_of_tasks
        tasks = np.flatnonzero(held.scored)
        return {"sample_weight": {names[task]: weight[own[task], task] for task in tasks}}

    def _find_null_losses(self) -> np.ndarray:
        """Return the loss of each task's best intercept; zero where its targets do not vary."""
        training, problem = self.training, self.problem
        # At a penalty above the largest the solution is the best intercept of each task, exact for
        # any loss.
        above = np.asarray([2.0 * self.alpha_max or 1.0])
        null = next(iter(self.estimator._solutions(training, above)))
        intercept = training.inward(null.weights, null.intercept)[1]
        frame = training.frame
        y = ((problem.y - frame.centre) / frame.unit).astype(training.weight.dtype)
        weight = np.broadcast_to(training.weight.reshape(len(y), -1), y.shape)
        losses = np.zeros(y.shape[1])
        for task, loss in enumerate(problem.inside):
            own, used = weight[:, task], y[weight[:, task] > 0.0, task]
            if np.ptp(used) > 0.0:
                target = loss.encode(y[:, task], 1, own)
                scores = np.full((len(y), 1), intercept[task])
                losses[task] = loss.value_and_residual(scores, target, own)[0]
        return losses


@dataclass(frozen=True, eq=False)
class _Held:
    """The held-out part of a fold: its rows, their weights, and the losses to compare with."""

    rows: Rows
    weight: np.ndarray
    null_losses: np.ndarray

    @property
    def rows_of_tasks(self) -> list[np.ndarray]:
        """The held-out rows of every task."""
        return self.rows if isinstance(self.rows, list) else [self.rows] * len(self.null_losses)

    @property
    def scored(self) -> np.ndarray:
        """The tasks that are scored, as a mask."""
        some = np.any(self.weight > 0.0, axis=0)
        return np.asarray(some & (self.null_losses > 0.0))

    def shares(self) -> np.ndarray:
        """Return weights that make the sum of losses the mean of relative losses."""
        scored = self.scored
        share = np.zeros(len(scored))
        # The sum of losses with these weights is the mean over tasks of loss over loss of the best
        # intercept.
        share[scored] = 1.0 / (self.null_losses[scored] * scored.sum())
        return np.asfortranarray(self.weight * share.astype(self.weight.dtype))


def _replace_weights(model: MultiTaskLearner, problem: TaskProblem, fitted: np.ndarray) -> Training:
    """Return the training data with the weights of a fold, and columns in the units of its rows."""
    if not model.standardize:
        return replace(problem.training, weight=fitted)
    design, units = task_design(
        problem.targets,
        problem.matrices,
        fitted,
        fit_intercept=bool(model.fit_intercept),
        standardize=True,
    )
    return replace(problem.training, weight=fitted, design=design, **units)


def _take(X: Any, rows: np.ndarray) -> Any:
    return (X.tocsr() if is_sparse(X) else X)[rows]
