"""Tasks as one problem of the proximal engine: their losses, weights, labels and design."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from mixnorm.data import BlockMatrix
from mixnorm.engines.proximal import LossMixture, SeparateDesign, SharedDesign
from mixnorm.estimators._common.inputs import check_weights, weight_numbers
from mixnorm.estimators._common.units import target_frame
from mixnorm.estimators.mixed_norm import (
    Training,
    convert_blocks,
    moderate,
    standardize_columns,
)
from mixnorm.estimators.multitask.targets import (
    TargetsLike,
    TaskTargets,
    check_rows,
    find_task,
    narrow_type,
)
from mixnorm.losses import SCALAR, DualLoss, Loss, as_loss
from mixnorm.models import TaskOutputs

#: What users may give as the losses of tasks: one for all, or one for each.
TaskLosses: TypeAlias = "str | Loss | list[Any] | tuple[Any, ...] | Mapping[Any, str | Loss]"
#: The weights of rows, once read: None, one column for all tasks, or one for each.
TaskWeights: TypeAlias = np.ndarray | list[np.ndarray] | None


@dataclass(frozen=True)
class TaskProblem:
    """The tasks as the engine takes them, and the outputs of their model.

    ``outputs`` has the losses as given, ``inside`` those of targets in the units of ``training``.
    ``y`` has the targets as numbers, ``(n_samples, n_tasks)``; labels are -1 and +1.
    """

    targets: TaskTargets
    outputs: TaskOutputs
    inside: list[Any]
    y: np.ndarray
    training: Training
    matrices: list[Any]


# --- losses and weights


def list_losses(losses: TaskLosses) -> list[Any]:
    """Return the losses in ``losses``, of any form, for whichever tasks they are.

    Examples
    --------
    >>> list_losses(["squared", "hinge"])
    [Squared(), Hinge()]
    """
    if isinstance(losses, Mapping):
        losses = list(losses.values())
    given = losses if isinstance(losses, (list, tuple)) else [losses]
    return [SCALAR[loss]() if isinstance(loss, str) and loss in SCALAR else loss for loss in given]


def task_losses(losses: TaskLosses, names: Sequence[Any]) -> list[Any]:
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
    return [_read_loss(loss) for loss in losses]


def _read_loss(given: str | Loss) -> Any:
    loss = as_loss(given, SCALAR)
    if loss.is_classifier or not isinstance(loss, DualLoss):
        raise ValueError(
            f"loss={given!r} is not a loss of one score with a conjugate, which every task needs; "
            f"choose one of {sorted(SCALAR)}."
        )
    return loss


def read_weights(sample_weight: TargetsLike, targets: TaskTargets) -> TaskWeights:
    """Return None, weights ``(n_samples,)`` for all tasks, or a list of the weights of each."""
    names, sizes = targets.names, [len(column) for column in targets.columns]
    if sample_weight is None:
        return None
    if isinstance(sample_weight, str):
        return weight_numbers(sample_weight)  # which says what is wrong
    if isinstance(sample_weight, Mapping):
        places = {find_task(task, names): given for task, given in sample_weight.items()}
        parts = [places.get(position) for position in range(len(names))]
        return _check_each(parts, targets)
    if not targets.shared:
        if isinstance(sample_weight, numbers.Real):  # for all rows
            return _check_each([sample_weight] * len(names), targets)
        if not isinstance(sample_weight, (list, tuple)) or len(sample_weight) != len(names):
            raise ValueError(
                f"sample_weight must be a list of {len(names)} arrays, or a dictionary, as X and y "
                "are: one array of weights (or None) per task."
            )
        return _check_each(sample_weight, targets)
    weight = weight_numbers(sample_weight)
    if weight.ndim == 2 and weight.shape == (sizes[0], len(names)):
        return _check_each(list(weight.T), targets)
    if weight.ndim == 2:
        raise ValueError(
            f"sample_weight has shape {weight.shape}; give one weight per row, ({sizes[0]},), or "
            f"one per row and task, ({sizes[0]}, {len(names)})."
        )
    return check_weights(sample_weight, sizes[0], np.float64)


def _check_each(parts: Sequence[Any], targets: TaskTargets) -> list[np.ndarray]:
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
    targets: TaskTargets,
    losses: TaskLosses,
    sample_weight: TargetsLike = None,
    *,
    fit_intercept: bool = True,
    standardize: bool = False,
) -> TaskProblem:
    """Return the problem of validated matrices (one, or one per task), targets and weights.

    One ``X`` with a label everywhere and one weight per row is the quick case: one loss, and
    weights of shape ``(n_samples,)``. Otherwise an entry without a label has weight zero.
    ``standardize`` measures columns in standard deviations, over the rows of all tasks.
    """
    check_rows(targets, matrices)
    kinds = task_losses(losses, targets.names)
    weights = read_weights(sample_weight, targets)
    rows, n_tasks = max(X.shape[0] for X in matrices), len(targets.names)
    classes, y, weight = _encode_tasks(targets, kinds, weights, rows)
    frame = target_frame(kinds, y, weight, fit_intercept=fit_intercept, dtype=matrices[0].dtype)
    # Rows without weight get the centre as their target: after centring it is zero, which no loss
    # magnifies.
    y = np.where((weight > 0.0) | [loss.is_binary for loss in kinds], y, frame.centre)
    inside = [frame.scale_loss(loss) for loss in kinds]
    # Losses are compared by their parameters: two Huber losses of different widths are different.
    equal = len({repr(loss) for loss in inside}) == 1
    loss = inside[0] if equal else LossMixture(inside)
    alike = bool(np.all(weight == weight[:, :1]))
    # The quick case: one loss object and one weight per row, for which products are those of a
    # table.
    if targets.shared and equal and alike:
        weight = weight[:, 0]
    # Output by output, like scores and residuals.
    weight = np.asarray(weight, dtype=matrices[0].dtype, order="F")
    design, units = task_design(
        targets, matrices, weight, fit_intercept=fit_intercept, standardize=standardize
    )
    # Labels of -1 and 1 have the centre zero and the unit one.
    moved = ((y - frame.centre) / frame.unit).astype(weight.dtype, copy=False)
    target = loss.encode(moved, n_tasks, weight)
    training = Training(design, loss, target, weight, frame, **units)
    outputs = TaskOutputs(
        tuple(targets.names), tuple(classes), tuple(copy.deepcopy(kinds)), targets.form == "column"
    )
    return TaskProblem(targets, outputs, inside, y, training, matrices)


def task_design(
    targets: TaskTargets,
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
    rows = weight.reshape(len(weight), -1)
    if isinstance(matrices[0], BlockMatrix):
        matrix, units = convert_blocks(
            matrices[0], rows.sum(axis=1), standardize=standardize, centred=fit_intercept
        )
        return SharedDesign(matrix, len(targets.names)), units
    if not standardize:
        matrices, units = moderate(matrices)
    else:
        # The weights of a row over all tasks add up: the row counts once for each task that has its
        # label.
        parts = [rows.sum(axis=1)] if targets.shared else list(rows.T)
        parts = [own[: X.shape[0]] for X, own in zip(matrices, parts, strict=True)]
        matrices, units = standardize_columns(matrices, parts, centred=fit_intercept)
    if targets.shared:
        return SharedDesign(matrices[0], len(targets.names)), units
    return SeparateDesign(matrices), units


def _encode_tasks(
    targets: TaskTargets, losses: Sequence[Any], weights: TaskWeights, n_samples: int
) -> tuple[list[np.ndarray | None], np.ndarray, np.ndarray]:
    """Return labels of tasks, and targets and weights of shape ``(n_samples, n_tasks)``."""
    shape = (len(targets.names), n_samples)
    y, full = np.zeros(shape).T, np.zeros(shape).T
    classes: list[np.ndarray | None] = []
    for task, (column, loss) in enumerate(zip(targets.columns, losses, strict=True)):
        given = weights[task] if isinstance(weights, list) else weights
        own = np.ones(len(column)) if given is None else given
        weight = np.where(find_missing(column), 0.0, own)
        known, labels = _encode_task(column, weight > 0.0, loss, targets.names[task])
        # Every task's weights sum to one, whatever its number of rows (:eq:`mean-loss`).
        full[: len(column), task] = weight / weight.sum()
        y[:, task] = 1.0 if loss.is_binary else 0.0  # rows without weight need a valid target too
        y[: len(column), task] = labels
        classes.append(known)
    return classes, y, full


def find_missing(column: np.ndarray) -> np.ndarray:
    """Return a mask of the rows without a label: NaN, NaT, None, or pandas' NA."""
    if column.dtype.kind in "fcmM":
        # NaN and NaT are not equal to themselves.
        return np.asarray(column != column)
    if column.dtype != object:
        return np.zeros(len(column), dtype=bool)
    marks = (value is None or str(value) == "<NA>" or bool(value != value) for value in column)
    return np.fromiter(marks, bool, len(column))


def _encode_task(
    column: np.ndarray, counts: np.ndarray, loss: Loss, name: Hashable
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
        return None, read_numbers(column, counts, name)
    classes, codes = _encode_labels(column[counts], name)
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


def _encode_labels(values: np.ndarray, name: Hashable) -> tuple[np.ndarray, np.ndarray]:
    try:
        classes, codes = np.unique(values, return_inverse=True)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in values.tolist()})
        raise TypeError(
            f"The labels of task {name!r} are of several types ({', '.join(kinds)}), which cannot "
            "be sorted; give labels of one type."
        ) from None
    return narrow_type(classes), codes


def read_numbers(column: np.ndarray, counts: np.ndarray, name: Hashable) -> np.ndarray:
    """Return the targets of a task as numbers, zero for rows that do not count."""
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
