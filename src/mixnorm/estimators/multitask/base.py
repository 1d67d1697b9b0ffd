"""The base of the learners of many tasks: data in, predictions and scores out."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length

from mixnorm._array import MatrixLike
from mixnorm.data import BlockTable, find_table, gather_targets, gather_weights
from mixnorm.estimators._common.blocks.parts import map_parts, score_parts
from mixnorm.estimators._common.regressor import r2
from mixnorm.estimators._common.validation import validate_data
from mixnorm.estimators.mixed_norm.base import NormLearner, working_dtypes
from mixnorm.estimators.mixed_norm.tables import (
    compress_training,
    is_compressible,
    open_table,
    survey_numbers,
)
from mixnorm.estimators.mixed_norm.training import Training
from mixnorm.estimators.multitask.problem import (
    TaskProblem,
    build_problem,
    find_missing,
    list_losses,
    read_numbers,
    read_weights,
    task_losses,
)
from mixnorm.estimators.multitask.targets import (
    MatricesLike,
    TargetsLike,
    TaskTargets,
    find_task,
    is_separate,
    read_matrices,
    read_separate,
    read_shared,
    stack_columns,
)
from mixnorm.losses import Squared
from mixnorm.models import TaskOutputs, gives_probabilities


def _find_losses(estimator: BaseMultiTask) -> list[Any]:
    """Return the losses of the tasks; before ``fit`` those given, for whichever tasks they are."""
    if estimator.__sklearn_is_fitted__():
        return list(estimator._model_outputs.losses)
    # Before a fit it is not known which tasks there are, but the losses themselves are.
    given = list_losses(estimator.losses)
    return task_losses(given, range(len(given)))


def _has_labels(estimator: BaseMultiTask) -> bool:
    """Tell whether some task has labels; where none has, ``predict`` gives the scores."""
    if not any(loss.is_binary for loss in _find_losses(estimator)):
        raise AttributeError("decision_function is for tasks with labels; predict gives scores.")
    return True


def _has_probabilities(estimator: BaseMultiTask) -> bool:
    """Tell whether the loss of some task has probabilities."""
    if not any(gives_probabilities(loss) for loss in _find_losses(estimator)):
        raise AttributeError(
            "predict_proba is for tasks whose loss has probabilities, and none has: give a task "
            "with two labels the loss 'logistic'."
        )
    return True


class BaseMultiTask(RegressorMixin, NormLearner):
    """The base of the learner with and without cross-validation: data in, predictions out."""

    losses: Any
    _output_kind: type = TaskOutputs

    @property
    def tasks_(self) -> list[Any]:
        """The names of the tasks."""
        return list(self._get_model().outputs.names)

    @property
    def classes_(self) -> list[np.ndarray | None]:
        """For each task its two labels; None for tasks with numbers."""
        return list(self._get_model().outputs.classes)

    def _problem(self, X: MatricesLike, y: TargetsLike, sample_weight: TargetsLike) -> TaskProblem:
        """Validate the data; return them as a problem of the engine."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        if is_separate(X):
            names, matrices, form = read_matrices(X)
            # Forms first, numbers later: errors about the form of the data should not wait for its
            # validation.
            targets = read_separate(names, form, y)
            matrices = self._validate_matrices(names, matrices)
        else:
            matrices = [self._matrix(X, reset=True)]
            targets = read_shared(y)
        return build_problem(
            matrices,
            targets,
            self.losses,
            sample_weight,
            fit_intercept=bool(self.fit_intercept),
            standardize=bool(self.standardize),
        )

    def _training_of(self, X: Any, y: Any, sample_weight: Any) -> tuple[Training, TaskOutputs]:
        table = find_table(X, y, sample_weight)
        if table is not None:
            return self._table_training(table)
        problem = self._problem(X, y, sample_weight)
        return problem.training, problem.outputs

    def _table_training(self, table: BlockTable) -> tuple[Training, TaskOutputs]:
        """Return a table of row blocks, whose targets are the tasks, as the engine takes it."""
        given = list_losses(self.losses)
        matrix = open_table(self, table, working_dtypes(self.tol, given))
        units = {"standardize": bool(self.standardize), "centred": bool(self.fit_intercept)}
        if all(type(loss) is Squared for loss in given) and is_compressible(table, len(given)):
            # Squared losses need the table no more once its moments are known.
            found = survey_numbers(table, matrix.dtype, allow_missing=True)
            if not found.target.missing:
                names = list(range(found.target.n_outputs))
                kinds = tuple(copy.deepcopy(task_losses(self.losses, names)))
                outputs = TaskOutputs(
                    tuple(names), (None,) * len(names), kinds, found.target.single
                )
                return compress_training(table, found, **units), outputs
        problem = build_problem(
            [matrix],
            read_shared(gather_targets(table)),
            self.losses,
            gather_weights(table),
            fit_intercept=units["centred"],
            standardize=units["standardize"],
        )
        return problem.training, problem.outputs

    def _matrix(self, X: MatrixLike, *, reset: bool) -> Any:
        dtype = working_dtypes(self.tol, list_losses(self.losses))
        return validate_data(self, X, reset=reset, accept_sparse=("csc", "csr"), dtype=dtype)

    def _validate_matrices(self, names: list[Any], matrices: list[Any]) -> list[Any]:
        """Return the matrices of all tasks, checked against the first and of one dtype."""
        found: list[Any] = []
        for name, X in zip(names, matrices, strict=True):
            try:
                found.append(self._matrix(X, reset=not found))
            except ValueError as error:
                raise ValueError(
                    f"Task {name!r}: {error} (All tasks have the same features.)"
                ) from error
        # One dtype for all tasks: the norm sees their weights as one matrix.
        common = np.result_type(*(X.dtype for X in found))
        return [X.astype(common, copy=False) for X in found]

    # --- predictions

    def _task_scores(self, X: Any, task: Hashable) -> Any:
        """Return ``(tasks, scores, form)``: one array of scores for each task of ``X``."""
        model = self._get_model()
        names = model.outputs.names
        if task is not None:
            position = find_task(task, names)
            return [position], [self._scores(X)[:, position]], "one"
        if not is_separate(X):
            return range(len(names)), list(self._scores(X).T), "table"
        given, matrices, form = read_matrices(X, names)
        places = [find_task(name, names) for name in given]
        scores = [self._scores(own)[:, place] for own, place in zip(matrices, places, strict=True)]
        return places, scores, form if form == "list" else given

    def _in_form(self, columns: list[np.ndarray], form: str | list[Any]) -> Any:
        """Return columns in the form of ``X``; a list has the names for a dictionary."""
        if form == "one" or (form == "table" and self._get_model().outputs.single):
            return columns[0]
        if form == "table":
            return stack_columns(columns)
        return columns if form == "list" else dict(zip(form, columns, strict=True))

    @map_parts
    def predict(self, X: MatricesLike, task: Hashable = None) -> Any:
        """Predict for new data: numbers, or labels for tasks that have them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list or dict of these
            New data for all tasks, or for each task its own. A dictionary may hold some of the
            tasks.
        task : name or int, optional
            Predict for this task alone.

        Returns
        -------
        ndarray of shape (n_samples, n_tasks), or list or dict of ndarray of shape (n_samples,)
            In the form of ``X``. One column, (n_samples,), for one ``task`` and where ``y`` was
            one column. A table of numbers and texts has the dtype object.
        """
        places, scores, form = self._task_scores(X, task)
        labels = self._get_model().outputs.task_labels
        found = [labels(place, own) for place, own in zip(places, scores, strict=True)]
        return self._in_form(found, form)

    @available_if(_has_labels)
    @map_parts
    def decision_function(self, X: MatricesLike, task: Hashable = None) -> Any:
        """Return the scores of the tasks; for labels, positive means the second of the two.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list or dict of these
            New data, as in ``predict``.
        task : name or int, optional
            The scores of this task alone.

        Returns
        -------
        ndarray of shape (n_samples, n_tasks), or list or dict of ndarray of shape (n_samples,)
            In the form of ``X``, as in ``predict``.
        """
        _, scores, form = self._task_scores(X, task)
        return self._in_form(scores, form)

    @available_if(_has_probabilities)
    @map_parts
    def predict_proba(self, X: MatricesLike, task: Hashable = None) -> Any:
        """Return the probabilities of the two labels of each task, for logistic losses.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list or dict of these
            New data, as in ``predict``.
        task : name or int, optional
            The probabilities of this task alone.

        Returns
        -------
        list or dict of ndarray of shape (n_samples, 2)
            For each task its own, with columns in the order of its ``classes_``: a dictionary where
            ``X`` is one, else a list, as scikit-learn has it for several outputs. One array for one
            ``task`` and where ``y`` was one column.
        """
        places, scores, form = self._task_scores(X, task)
        outputs: TaskOutputs = self._get_model().outputs
        found = [
            outputs.task_probabilities(place, own)
            for place, own in zip(places, scores, strict=True)
        ]
        return found if form == "table" and not outputs.single else self._in_form(found, form)

    @score_parts
    def score(self, X: MatricesLike, y: TargetsLike, sample_weight: TargetsLike = None) -> float:
        """Return the mean over tasks of R², or of the accuracy for tasks with labels.

        Entries without a label do not count. Nor do tasks without labels, or with a single number.

        Parameters
        ----------
        X, y
            Data in one of the forms that ``fit`` takes.
        sample_weight : array-like, list or dict, optional
            Weights, as in ``fit``.

        Returns
        -------
        float
            NaN, with a warning, if no task has enough targets.
        """
        outputs: TaskOutputs = self._get_model().outputs
        if is_separate(X):
            names, _, form = read_matrices(X, outputs.names)
            targets = read_separate(names, form, y)
        else:
            targets = read_shared(y)
            check_consistent_length(X, targets.columns[0])
            names = targets.names if targets.form == "frame" else list(outputs.names)
        if len(targets.names) != len(names):
            raise ValueError(
                f"y has {len(targets.names)} columns for {len(names)} tasks; give one for each, or "
                "a dictionary of some."
            )
        places, scores, _ = self._task_scores(X, None)
        # Targets may name the tasks in another order than the model, and fewer of them.
        at = dict(zip(places, scores, strict=True))
        wanted = [find_task(name, outputs.names) for name in names]
        found = [outputs.task_labels(place, at[place]) for place in wanted]
        labelled = [outputs.classes[place] is not None for place in wanted]
        return _mean_score(targets, found, labelled, sample_weight)

    @map_parts
    def transform(self, X: MatricesLike) -> Any:
        """Return the columns of ``X`` that a task uses.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list or dict of these
            New data.

        Returns
        -------
        {ndarray, sparse matrix} of shape (n_samples, n_selected), or list or dict of these
            In the form of ``X``.
        """
        if not is_separate(X):
            return super().transform(X)
        names, matrices, form = read_matrices(X, self.tasks_)
        found = [NormLearner.transform(self, own) for own in matrices]
        return found if form == "list" else dict(zip(names, found, strict=True))


def _mean_score(
    targets: TaskTargets,
    found: Sequence[np.ndarray],
    labels: Sequence[bool],
    sample_weight: TargetsLike,
) -> float:
    """Return the mean of R² of tasks with numbers and of the accuracy of those with labels."""
    weights = read_weights(sample_weight, targets)
    scores = []
    for task, (column, own) in enumerate(zip(targets.columns, found, strict=True)):
        given = weights[task] if isinstance(weights, list) else weights
        # Rows without a label count as rows of weight zero, which may hold anything.
        weight = np.where(find_missing(column), 0.0, 1.0 if given is None else given)
        counts = weight > 0.0
        if labels[task]:
            right = np.asarray(column[counts] == own[counts], dtype=np.float64)
            scores.append(right @ weight[counts] / weight.sum() if len(right) else np.nan)
        else:
            y = read_numbers(column, counts, targets.names[task])[counts]
            scores.append(r2(y, own[counts], weight[counts]) if len(y) > 1 else float("nan"))
    if np.all(np.isnan(scores)):
        warnings.warn(
            "No task has a label, or two numbers for R²; the score is NaN.",
            UndefinedMetricWarning,
            stacklevel=3,
        )
        return float("nan")
    return float(np.nanmean(scores))
