"""The forms in which users give tasks.

With one ``X`` for all tasks the targets are the columns of a table, where NaN (or None) marks a row
without a label. With an ``X`` for each task both ``X`` and ``y`` are lists, or dictionaries by the
names of the tasks.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_consistent_length

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm.estimators._common.inputs import check_dense_targets

if TYPE_CHECKING:
    from typing_extensions import TypeIs

#: One matrix for each task.
SeparateMatrices: TypeAlias = "Sequence[MatrixLike] | Mapping[Any, MatrixLike]"
#: What users may give as ``X``, and as ``y`` or the weights of rows: for all tasks or for each.
MatricesLike: TypeAlias = "MatrixLike | SeparateMatrices"
TargetsLike: TypeAlias = "ArrayLike | list[Any] | Mapping[Any, ArrayLike] | None"


@dataclass(frozen=True)
class TaskTargets:
    """The names of the tasks, and the targets of each as they were given.

    ``form`` is their form: ``"column"``, ``"table"`` or, with names, ``"frame"`` with one ``X``;
    ``"list"`` or ``"dict"`` with several.
    """

    names: list[Any]
    columns: list[np.ndarray]
    form: str

    def __post_init__(self) -> None:
        if not self.names:
            raise ValueError("y has no columns; give at least one task.")

    @property
    def shared(self) -> bool:
        """Whether all tasks have the same ``X``."""
        return self.form in ("column", "table", "frame")


def is_separate(X: MatricesLike) -> TypeIs[SeparateMatrices]:
    """Tell whether ``X`` is several matrices, one per task, rather than one.

    A list of lists of numbers is one matrix, as everywhere in scikit-learn; a list of matrices is
    several.

    Examples
    --------
    >>> import numpy as np
    >>> is_separate([[1.0, 2.0], [3.0, 4.0]]), is_separate([np.eye(2), np.eye(2)])
    (False, True)
    """
    if isinstance(X, Mapping):
        return not sparse.issparse(X)  # one kind of sparse matrix is a dictionary
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(_has_columns(item) for item in X)


def _has_columns(item: object) -> bool:
    shape = getattr(item, "shape", None)
    if shape is not None:
        return len(shape) == 2
    if not isinstance(item, (list, tuple)):
        return False
    return len(item) > 0 and all(np.ndim(row) == 1 for row in item)


def read_matrices(
    X: SeparateMatrices, known: Sequence[Any] | None = None
) -> tuple[list[Any], list[Any], str]:
    """Return names, matrices and the form of one ``X`` per task.

    A dictionary may have some of the ``known`` tasks; a list must have all.
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


def find_task(task: Hashable, names: Sequence[Any]) -> int:
    """Return the position of a task, which is given by name or by position."""
    # Names come first: a task called 1 is not the task at position 1.
    if task in names:
        return list(names).index(task)
    named = isinstance(task, bool) or any(isinstance(name, int) for name in names)
    if isinstance(task, (int, np.integer)) and not named and 0 <= task < len(names):
        return int(task)
    shown = ", ".join(repr(name) for name in names[:10]) + (", ..." if len(names) > 10 else "")
    raise ValueError(f"There is no task {task!r}; the tasks are {shown}.")


def read_shared(Y: Any) -> TaskTargets:
    """Return the columns of targets that belong to one ``X``.

    ``Y`` is one column, a table with a column per task, a data frame whose columns are the tasks,
    or a dictionary of columns.
    """
    if isinstance(Y, Mapping):
        if not Y:
            raise ValueError("y is an empty dictionary; give at least one task.")
        return TaskTargets(list(Y), [_as_column(y, name) for name, y in Y.items()], "frame")
    names = getattr(Y, "columns", None)
    if names is not None and len(getattr(Y, "shape", ())) == 2:
        # Names become plain values, which model files can hold.
        names = [name.item() if isinstance(name, np.generic) else name for name in names]
        if len(set(names)) != len(names):
            raise ValueError(f"y has several columns of one name: {names!r}; rename them.")
        return TaskTargets(names, [_as_column(Y[name], name) for name in Y.columns], "frame")
    Y = _as_array(Y)
    if Y.ndim not in (1, 2):
        raise ValueError(
            f"y has shape {Y.shape}; give a column (n_samples,), or a table (n_samples, n_tasks) "
            "with NaN where a task has no label. With an X for each task, give lists of both."
        )
    if Y.ndim == 1:
        return TaskTargets([0], [Y], "column")
    columns = [narrow_type(Y[:, task]) for task in range(Y.shape[1])]
    return TaskTargets(list(range(Y.shape[1])), columns, "table")


def read_separate(names: list[Any], form: str, y: TargetsLike) -> TaskTargets:
    """Return the targets that belong to several ``X``, in their order."""
    if isinstance(y, Mapping) != (form == "dict") or not isinstance(y, Iterable):
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
    columns = [_as_column(part, name) for name, part in zip(names, parts, strict=True)]
    return TaskTargets(names, columns, form)


def check_rows(targets: TaskTargets, matrices: Sequence[Any]) -> None:
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


def _as_column(y: TargetsLike, name: Hashable) -> np.ndarray:
    column = _as_array(y)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise ValueError(
            f"The targets of task {name!r} have shape {column.shape}; give one target per row."
        )
    return narrow_type(column)


def _as_array(y: Any) -> np.ndarray:
    """Return an array in which numbers beside texts stay numbers."""
    check_dense_targets(y)
    array = np.asarray(y)
    # NumPy turns a list of numbers and texts into texts.
    if array.dtype.kind in "US" and not hasattr(y, "dtype"):
        array = np.asarray(y, dtype=object)
    return array


def narrow_type(column: np.ndarray) -> np.ndarray:
    """Return a column of objects as an array of one type, where there is such a type."""
    if column.dtype != object:
        return column
    kinds = {type(value) for value in column.tolist()}
    if len(kinds) > 1 and not all(issubclass(kind, (int, float, np.number)) for kind in kinds):
        return column
    found = np.asarray(column.tolist())
    return found if found.shape == column.shape else column


def stack_columns(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return a table of predictions, of objects only where it has both numbers and texts.

    Examples
    --------
    >>> import numpy as np
    >>> stack_columns([np.array([0.5]), np.array([1])]).dtype.name
    'float64'
    >>> stack_columns([np.array([0.5]), np.array(["yes"])]).dtype.name
    'object'
    """
    kinds = {column.dtype.kind for column in columns}
    if kinds <= set("biuf") or kinds == {"U"}:
        return np.column_stack(columns)
    table = np.empty((len(columns[0]), len(columns)), dtype=object)
    for task, column in enumerate(columns):
        table[:, task] = column.tolist()
    return table
