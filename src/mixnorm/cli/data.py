"""The training table of a command: read, checked, and encoded as a matrix with targets."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixnorm.cli.arguments.parser import UsageError
from mixnorm.cli.pools import FEATURE_WORDS, check_size
from mixnorm.exceptions import TableError
from mixnorm.tables import (
    SparseEncoder,
    SparseTable,
    Table,
    TableEncoder,
    Target,
    Task,
    as_target_numbers,
    describe_encoding,
    detect_decimal_mark,
    find_column,
    join_names,
    pluralize,
    read_table,
    read_target,
)

if TYPE_CHECKING:
    import pandas as pd

_LEAST_ROWS_TO_LEARN = 4


@dataclass
class TrainingTable:
    """A table to learn from.

    Parameters
    ----------
    name : str
        The name of the table in messages.
    target, task : str
        The column to predict, and the task.
    X, y : array
        The matrix and the targets of the rows that have one.
    weight : ndarray or None
        Sample weights.
    encoder : TableEncoder or SparseEncoder
        The encoder that made the matrix.
    notes : list of str
        Findings and changes, one sentence each.
    pool : str
        The value of ``--pool``.
    """

    name: str
    target: str
    task: Task
    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    encoder: TableEncoder | SparseEncoder
    notes: list[str]
    pool: str = "columns"

    @property
    def n_rows(self) -> int:
        """Number of rows of the table."""
        return len(self.y)

    @property
    def word(self) -> str:
        """The word for a feature."""
        return FEATURE_WORDS[self.pool]


def load_training_data(options: argparse.Namespace) -> TrainingTable:
    """Read and encode the table that the options name."""
    expect = [name for name in (options.target, options.weight) if name]
    table = read_table(
        options.file,
        file_format=options.format,
        delimiter=options.delimiter,
        header=options.header,
        expect=expect,
    )
    if isinstance(table, SparseTable):
        data = _encode_sparse(table, options)
    else:
        data = _encode_frame(table, options)
    if options.pool == "pieces":
        data.notes.append("Numbers are divided by their standard deviations.")
    return data


def _encode_frame(table: Table, options: argparse.Namespace) -> TrainingTable:
    frame = table.frame
    if options.target is None:
        names = ", ".join(str(name) for name in frame.columns[:12])
        raise UsageError(f"--target is missing; {table.name} has the columns {names}")
    if not len(frame):
        raise TableError(f"{table.name} has a header but no rows.")
    mark = detect_decimal_mark(frame)
    target = read_target(frame[_find_column(table, options.target)], options.task, mark)
    _check_targets(target, table.name)
    weights = [] if options.weight is None else [_find_column(table, options.weight)]
    weight = _read_weights(frame, weights[0], mark) if weights else None
    dropped = [_find_column(table, name) for name in options.drop]
    if target.name in dropped:
        raise UsageError(f"--drop names the target {target.name!r}")
    rest = frame.drop(columns=list({target.name, *dropped, *weights}))
    if len(target.rows) < len(frame):
        rest = rest.iloc[target.rows]
        weight = None if weight is None else weight[target.rows]
    encoder = TableEncoder.plan(
        rest,
        numbers=[_find_column(table, name) for name in options.number],
        categories=[_find_column(table, name) for name in options.category],
        standardise=options.pool == "pieces",
    )
    if not encoder.columns:
        raise TableError(explain_no_columns(table.name, target.name, encoder))
    check_size(options.pool, len(rest), encoder.width)
    matrix, gaps = encoder.encode(rest)
    notes = describe_encoding(encoder, gaps, len(rest), together=options.pool == "columns")
    found = (table.name, target.name, target.task, matrix, target.values, weight, encoder)
    return TrainingTable(*found, [*table.notes, *target.notes, *notes], options.pool)


def _find_column(table: Table, name: str) -> str:
    return find_column(table.frame, name, table.name, table.repeated)


def _check_targets(target: Target, name: str) -> None:
    """Raise unless there are enough rows and two different targets."""
    check_row_count(len(target.values), name)
    check_values_differ(np.unique(target.values).tolist(), target.name, target.task)


def check_row_count(count: int, name: str) -> None:
    """Raise unless there are enough rows with a target."""
    if count < _LEAST_ROWS_TO_LEARN:
        rows = pluralize(count, "row")
        raise TableError(
            f"{name} has {rows} with a target; learning needs at least {_LEAST_ROWS_TO_LEARN}, and "
            "works well with a few dozen or more."
        )


def check_values_differ(values: Collection[Any], target: str, task: Task) -> None:
    """Raise unless the target has two different values."""
    if len(values) < 2:
        kind = "class" if task == "classification" else "value"
        raise TableError(
            f"The target {target!r} has only one {kind}, {next(iter(values))}; learning needs two."
        )


def _read_weights(frame: pd.DataFrame, column: str, mark: str) -> np.ndarray:
    weight = as_target_numbers(frame[column], mark)
    valid = np.isfinite(weight) & (weight >= 0)
    if not valid.all():
        raise TableError(
            f"The weights {column!r} must be numbers of at least 0 in every row; the weight in row "
            f"{int(np.argmin(valid)) + 1} is not."
        )
    if not weight.any():
        raise TableError(f"The weights {column!r} are zero in every row.")
    return weight


def explain_no_columns(table: str, target: str, encoder: TableEncoder) -> str:
    """Return the error for a table without a column to learn from."""
    if not encoder.left_out:
        return (
            f"{table} has no column except {target!r}. If this is wrong, name the delimiter with "
            "--delimiter."
        )
    reasons = join_names([f"{name}: {reason}" for name, reason in encoder.left_out], 4)
    return f"{table} has no column to learn from ({reasons})."


def _encode_sparse(table: SparseTable, options: argparse.Namespace) -> TrainingTable:
    import pandas as pd

    unused = ("target", "weight", "drop", "category", "number")
    given = [name for name in unused if getattr(options, name)]
    if given:
        raise UsageError(f"--{given[0]} needs column names, which a LIBSVM file does not have")
    if not table.matrix.shape[0]:
        raise TableError(f"{table.name} has no rows.")
    target = read_target(pd.Series(table.labels, name="label"), options.task)
    _check_targets(target, table.name)
    if not table.matrix.count_nonzero():
        raise TableError(f"{table.name} has no entry other than zero to learn from.")
    encoder = SparseEncoder.plan(table, standardise=options.pool == "pieces")
    check_size(options.pool, table.matrix.shape[0], encoder.width)
    matrix, _ = encoder.encode(table)
    found = (table.name, target.name, target.task, matrix, target.values, None, encoder)
    return TrainingTable(*found, [*table.notes, *target.notes], options.pool)
