"""Tasks in the forms that users have them, and as one problem for the proximal engine.

With one ``X`` for all tasks the targets are the columns of a table, where NaN (or None) says that
a task has no label for a row. With an ``X`` for each task both ``X`` and ``y`` are lists, or
dictionaries by the names of the tasks.
"""

from __future__ import annotations

import copy
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_consistent_length

from mixnorm.engines.proximal import LossMixture, SeparateDesign, SharedDesign
from mixnorm.estimators._common.inputs import check_dense_targets, check_weights, weight_numbers
from mixnorm.estimators._common.units import target_frame
from mixnorm.estimators.mixed_norm import Training, moderate, standardized
from mixnorm.losses import SCALAR, DualLoss, as_loss
from mixnorm.models import TaskOutputs


@dataclass(frozen=True)
class Targets:
    """The names of the tasks, and the targets of each as they were given.

    ``form`` is how they came: ``"column"``, ``"table"`` or, with names, ``"frame"`` beside one
    ``X``; ``"list"`` or ``"dict"`` beside several.
    """

    names: list[Any]
    columns: list[np.ndarray]
    form: str

    @property
    def shared(self) -> bool:
        """Whether all tasks have the same ``X``."""
        return self.form in ("column", "table", "frame")


@dataclass(frozen=True)
class TaskProblem:
    """What the engine is given, and what is needed to turn its scores into predictions.

    ``outputs`` has the losses as given; ``inside`` are those of targets in the unit of
    ``training``. ``y`` holds the targets as numbers, ``(n_samples, n_tasks)``; -1 and +1 for
    labels.
    """

    targets: Targets
    outputs: TaskOutputs
    inside: list[Any]
    y: np.ndarray
    training: Training
    matrices: list[Any]


# --- what was given


def is_separate(X: Any) -> bool:
    """Tell whether ``X`` is several matrices, one per task, rather than one.

    A list of lists of numbers is one matrix, as everywhere in scikit-learn; a list of things with
    rows and columns of their own is several.

    Examples
    --------
    >>> import numpy as np
    >>> is_separate([[1.0, 2.0], [3.0, 4.0]]), is_separate([np.eye(2), np.eye(2)])
    (False, True)
    """
    if isinstance(X, Mapping):
        return not sparse.issparse(X)  # one kind of sparse matrix is a dictionary
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(_has_columns(item) for item in X)


def _has_columns(item: Any) -> bool:
    shape = getattr(item, "shape", None)
    if shape is not None:
        return len(shape) == 2
    if not isinstance(item, (list, tuple)):
        return False
    return len(item) > 0 and all(np.ndim(row) == 1 for row in item)


def read_matrices(X: Any, known: Sequence[Any] | None = None) -> tuple[list[Any], list[Any], str]:
    """Return names, matrices and the form of one ``X`` per task.

    Of ``known`` tasks a dictionary may hold some, and a list must hold all.
    """
    if isinstance(X, Mapping):
        names = list(X)
        if not names:
            raise ValueError("X is an empty dictionary; give at least one task.")
        for name in names if known is not None else ():
            find_task(name, known or ())
        return names, [X[name] for name in names], "dict"
    if known is not None and len(X) != len(known):
        raise ValueError(
            f"X is a list of {len(X)} tasks, but {len(known)} were fitted; give one matrix for "
            "each, a dictionary of some, or name one with task=."
        )
    return list(range(len(X)) if known is None else known), list(X), "list"


def find_task(task: Any, names: Sequence[Any]) -> int:
    """Return the position of a task, given by its name or else by its position."""
    if task in names:
        return list(names).index(task)
    whole = isinstance(task, (int, np.integer)) and not isinstance(task, bool)
    if whole and 0 <= task < len(names) and not any(isinstance(name, int) for name in names):
        return int(task)
    shown = ", ".join(repr(name) for name in names[:10]) + (", ..." if len(names) > 10 else "")
    raise ValueError(f"There is no task {task!r}; the tasks are {shown}.")


def read_shared(Y: Any) -> Targets:
    """Return the columns of targets that belong to one ``X``.

    ``Y`` is one column, a table with a column per task, a data frame whose columns are the tasks,
    or a dictionary of columns.
    """
    if isinstance(Y, Mapping):
        if not Y:
            raise ValueError("y is an empty dictionary; give at least one task.")
        return Targets(list(Y), [_column(y, name) for name, y in Y.items()], "frame")
    names = getattr(Y, "columns", None)
    if names is not None and len(getattr(Y, "shape", ())) == 2:
        names = [_plain(name) for name in names]
        if len(set(names)) != len(names):
            raise ValueError(f"y has several columns of one name: {names!r}; rename them.")
        _check_some(len(names))
        return Targets(names, [_column(Y[name], name) for name in Y.columns], "frame")
    Y = _as_array(Y)
    if Y.ndim not in (1, 2):
        raise ValueError(
            f"y has shape {Y.shape}; give a column (n_samples,), or a table (n_samples, n_tasks) "
            "with NaN where a task has no label. With an X for each task, give lists of both."
        )
    if Y.ndim == 1:
        return Targets([0], [Y], "column")
    _check_some(Y.shape[1])
    columns = [_narrowed(Y[:, task]) for task in range(Y.shape[1])]
    return Targets(list(range(Y.shape[1])), columns, "table")


def read_separate(names: list[Any], form: str, y: Any) -> Targets:
    """Return the targets that belong to several ``X``, in the order of these."""
    if isinstance(y, Mapping) != (form == "dict"):
        raise ValueError(
            f"X is a {form} of tasks, but y is a {type(y).__name__}; give both as lists, or "
            "both as dictionaries with the same keys."
        )
    if isinstance(y, Mapping):
        if set(y) != set(names):
            odd = sorted(map(repr, set(y) ^ set(names)))
            raise ValueError(f"X and y must have the same tasks; only one has {', '.join(odd)}.")
        parts = [y[name] for name in names]
    else:
        parts = list(y)
        if len(parts) != len(names):
            raise ValueError(
                f"X is a list of {len(names)} tasks, but y has {len(parts)}; give one array of "
                "targets for each."
            )
    columns = [_column(part, name) for name, part in zip(names, parts, strict=True)]
    return Targets(names, columns, form)


def check_rows(targets: Targets, matrices: Sequence[Any]) -> None:
    """Raise unless every task has as many targets as rows."""
    if targets.shared:
        for column in targets.columns:
            check_consistent_length(matrices[0], column)
        return
    for name, X, column in zip(targets.names, matrices, targets.columns, strict=True):
        if X.shape[0] != len(column):
            raise ValueError(
                f"Task {name!r} has {X.shape[0]} rows in X and {len(column)} in y; give one target "
                "per row."
            )


def _check_some(n_tasks: int) -> None:
    if n_tasks == 0:
        raise ValueError("y has no columns; give at least one task.")


def _column(y: Any, name: Any) -> np.ndarray:
    column = _as_array(y)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise ValueError(
            f"The targets of task {name!r} have shape {column.shape}; give one target per row."
        )
    return _narrowed(column)


def _as_array(y: Any) -> np.ndarray:
    """Return an array in which numbers beside texts stay numbers."""
    check_dense_targets(y)
    array = np.asarray(y)
    if array.dtype.kind in "US" and not hasattr(y, "dtype"):
        array = np.asarray(y, dtype=object)
    return array


def _narrowed(column: np.ndarray) -> np.ndarray:
    """Return a column of objects as the array of one type that it may be."""
    if column.dtype != object:
        return column
    kinds = {type(value) for value in column.tolist()}
    if len(kinds) > 1 and not all(issubclass(kind, (int, float, np.number)) for kind in kinds):
        return column
    found = np.asarray(column.tolist())
    return found if found.shape == column.shape else column


def _plain(name: Any) -> Any:
    return name.item() if isinstance(name, np.generic) else name


# --- losses and weights


def given_losses(losses: Any) -> list[Any]:
    """Return the losses named in ``losses``, whatever form it has and whichever tasks they are for.

    Examples
    --------
    >>> given_losses(["squared", "hinge"])
    [Squared(), Hinge()]
    """
    if isinstance(losses, Mapping):
        losses = list(losses.values())
    given = losses if isinstance(losses, (list, tuple)) else [losses]
    return [SCALAR[loss]() if isinstance(loss, str) and loss in SCALAR else loss for loss in given]


def task_losses(losses: Any, names: Sequence[Any]) -> list[Any]:
    """Return the loss of each task.

    Examples
    --------
    >>> task_losses("squared", ["a", "b"])
    [Squared(), Squared()]
    >>> task_losses({"a": "hinge", "b": "squared"}, ["a", "b"])
    [Hinge(), Squared()]
    """
    if isinstance(losses, Mapping):
        places = {find_task(task, names): loss for task, loss in losses.items()}
        left = [name for position, name in enumerate(names) if position not in places]
        if left:
            raise ValueError(f"losses has no loss for task {left[0]!r}; give one for every task.")
        losses = [places[position] for position in range(len(names))]
    elif not isinstance(losses, (list, tuple)):
        losses = [losses] * len(names)
    if len(losses) != len(names):
        raise ValueError(
            f"losses and tasks differ in number: {len(losses)} and {len(names)}; give one loss for "
            "all, or one for each."
        )
    return [_scalar_loss(loss) for loss in losses]


def _scalar_loss(given: Any) -> Any:
    loss = as_loss(given, SCALAR)
    if loss.is_classifier or not isinstance(loss, DualLoss):
        raise ValueError(
            f"loss={given!r} is no loss of one score with a conjugate, which every task has; "
            f"choose one of {sorted(SCALAR)}."
        )
    return loss


def read_weights(sample_weight: Any, targets: Targets) -> Any:
    """Return None, weights ``(n_samples,)`` for all tasks, or a list with weights of each."""
    names, sizes = targets.names, [len(column) for column in targets.columns]
    if sample_weight is None:
        return None
    if isinstance(sample_weight, str):
        return weight_numbers(sample_weight)  # which says what is wrong
    if isinstance(sample_weight, Mapping):
        places = {find_task(task, names): given for task, given in sample_weight.items()}
        parts = [places.get(position) for position in range(len(names))]
        return _each(parts, targets)
    if not targets.shared:
        if isinstance(sample_weight, numbers.Real):  # for all rows
            return _each([sample_weight] * len(names), targets)
        if not isinstance(sample_weight, (list, tuple)) or len(sample_weight) != len(names):
            raise ValueError(
                f"sample_weight must be a list of {len(names)} arrays, or a dictionary, as X and y "
                "are: one array of weights (or None) per task."
            )
        return _each(sample_weight, targets)
    weight = weight_numbers(sample_weight)
    if weight.ndim == 2 and weight.shape == (sizes[0], len(names)):
        return _each(list(weight.T), targets)
    if weight.ndim == 2:
        raise ValueError(
            f"sample_weight has shape {weight.shape}; give one weight per row, ({sizes[0]},), or "
            f"one per row and task, ({sizes[0]}, {len(names)})."
        )
    return check_weights(sample_weight, sizes[0], np.float64)


def _each(parts: Sequence[Any], targets: Targets) -> list[np.ndarray]:
    weights = []
    for name, part, column in zip(targets.names, parts, targets.columns, strict=True):
        try:
            weights.append(check_weights(part, len(column), np.float64))
        except (TypeError, ValueError) as error:
            raise type(error)(f"Task {name!r}: {error}") from None
    return weights


# --- the problem


def build_problem(
    matrices: list[Any],
    targets: Targets,
    losses: Any,
    sample_weight: Any = None,
    *,
    fit_intercept: bool = True,
    standardize: bool = False,
) -> TaskProblem:
    """Turn validated matrices (one, or one per task), targets and weights into a problem.

    One ``X`` with a label everywhere and one weight per row is the quick case: one loss, and
    weights of shape ``(n_samples,)``. Otherwise an entry without a label has weight zero.
    ``standardize`` measures columns in standard deviations, over the rows of all tasks.
    """
    check_rows(targets, matrices)
    kinds = task_losses(losses, targets.names)
    weights = read_weights(sample_weight, targets)
    rows, n_tasks = max(X.shape[0] for X in matrices), len(targets.names)
    classes, y, weight = _encoded_tasks(targets, kinds, weights, rows)
    frame = target_frame(kinds, y, weight, fit_intercept=fit_intercept, dtype=matrices[0].dtype)
    y = np.where((weight > 0.0) | [loss.is_binary for loss in kinds], y, frame.centre)
    inside = [frame.inside(loss) for loss in kinds]
    equal = len({repr(loss) for loss in inside}) == 1
    loss = inside[0] if equal else LossMixture(inside)
    alike = bool(np.all(weight == weight[:, :1]))
    if targets.shared and equal and alike:
        weight = weight[:, 0]
    weight = np.asarray(weight, dtype=matrices[0].dtype, order="F")
    design, units = task_design(
        targets, matrices, weight, fit_intercept=fit_intercept, standardize=standardize
    )
    moved = ((y - frame.centre) / frame.unit).astype(weight.dtype, copy=False)
    target = loss.encode(moved, n_tasks, weight)
    training = Training(
        design, loss, target, weight, frame.unit, frame.centre, frame.degree, **units
    )
    outputs = TaskOutputs(
        tuple(targets.names), tuple(classes), tuple(copy.deepcopy(kinds)), targets.form == "column"
    )
    return TaskProblem(targets, outputs, inside, y, training, matrices)


def task_design(
    targets: Targets,
    matrices: list[Any],
    weight: np.ndarray,
    *,
    fit_intercept: bool,
    standardize: bool,
) -> tuple[Any, dict[str, Any]]:
    """Return the design of one matrix for all tasks, or one for each, and its units.

    Weights sum to one in every task, so that in the means and deviations of columns all tasks
    count alike.
    """
    if not standardize:
        matrices, units = moderate(matrices)
    else:
        rows = weight.reshape(len(weight), -1)
        parts = [rows.sum(axis=1)] if targets.shared else list(rows.T)
        parts = [own[: X.shape[0]] for X, own in zip(matrices, parts, strict=True)]
        matrices, units = standardized(matrices, parts, centred=fit_intercept)
    if targets.shared:
        return SharedDesign(matrices[0], len(targets.names)), units
    return SeparateDesign(matrices), units


def _encoded_tasks(
    targets: Targets, losses: Sequence[Any], weights: Any, n_samples: int
) -> tuple[list[np.ndarray | None], np.ndarray, np.ndarray]:
    """Return labels of tasks, and targets and weights of shape ``(n_samples, n_tasks)``."""
    shape = (len(targets.names), n_samples)
    y, full = np.zeros(shape).T, np.zeros(shape).T
    classes: list[np.ndarray | None] = []
    for task, (column, loss) in enumerate(zip(targets.columns, losses, strict=True)):
        given = weights[task] if isinstance(weights, list) else weights
        own = np.ones(len(column)) if given is None else given
        weight = np.where(missing(column), 0.0, own)
        known, labels = _encoded(column, weight > 0.0, loss, targets.names[task])
        full[: len(column), task] = weight / weight.sum()
        y[:, task] = 1.0 if loss.is_binary else 0.0  # what has no weight must still be a target
        y[: len(column), task] = labels
        classes.append(known)
    return classes, y, full


def missing(column: np.ndarray) -> np.ndarray:
    """Return where there is no label: NaN or NaT, None, or pandas' NA."""
    if column.dtype.kind in "fcmM":
        return np.asarray(column != column)
    if column.dtype != object:
        return np.zeros(len(column), dtype=bool)
    return np.asarray([_is_missing(value) for value in column], dtype=bool)


def _is_missing(value: Any) -> bool:
    return value is None or str(value) == "<NA>" or bool(value != value)


def _encoded(
    column: np.ndarray, counts: np.ndarray, loss: Any, name: Any
) -> tuple[np.ndarray | None, np.ndarray]:
    """Return the labels of a task (None for numbers), and its targets as numbers.

    Rows that do not count may hold anything.
    """
    if not np.any(counts):
        raise ValueError(
            f"Task {name!r} has no label with a positive weight (y is NaN in all other rows); "
            "leave the task out."
        )
    if not loss.is_binary:
        return None, numbers_of(column, counts, name)
    classes, codes = _labels(column[counts], name)
    if len(classes) != 2:
        shown = ", ".join(repr(label) for label in classes[:5].tolist())
        raise ValueError(
            f"Task {name!r} has the loss {loss!r}, which needs two labels, but y holds "
            f"{len(classes)} with a positive weight: {shown}. Choose another loss for this task "
            "(squared, say), or leave it out."
        )
    target = np.ones(len(column))
    target[counts] = 2.0 * codes - 1.0
    return classes, target


def _labels(values: np.ndarray, name: Any) -> tuple[np.ndarray, np.ndarray]:
    try:
        classes, codes = np.unique(values, return_inverse=True)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in values.tolist()})
        raise TypeError(
            f"The labels of task {name!r} are of several types ({', '.join(kinds)}), which cannot "
            "be sorted; give labels of one type."
        ) from None
    return _narrowed(classes), codes


def numbers_of(column: np.ndarray, counts: np.ndarray, name: Any) -> np.ndarray:
    """Return the targets of a task as numbers."""
    if column.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: the targets of task {name!r}.")
    target = np.zeros(len(column))
    try:
        target[counts] = column[counts].astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"The targets of task {name!r} are not all numbers. Choose a loss for two labels "
            "('hinge', 'squared_hinge', 'logistic'), or give numbers."
        ) from None
    if not np.all(np.isfinite(target)):
        raise ValueError(
            f"Input y contains infinity or a value too large for float64, in task {name!r}; give "
            "finite numbers, or NaN where there is no label."
        )
    return target


# --- and back


def side_by_side(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return a table of predictions; of objects only if numbers and texts must stand together.

    Examples
    --------
    >>> import numpy as np
    >>> side_by_side([np.array([0.5]), np.array([1])]).dtype.name
    'float64'
    >>> side_by_side([np.array([0.5]), np.array(["yes"])]).dtype.name
    'object'
    """
    kinds = {column.dtype.kind for column in columns}
    if kinds <= set("biuf") or kinds == {"U"}:
        return np.column_stack(columns)
    table = np.empty((len(columns[0]), len(columns)), dtype=object)
    for task, column in enumerate(columns):
        table[:, task] = column.tolist()
    return table
