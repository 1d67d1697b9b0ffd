"""From the options of a command to a matrix and its targets."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

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
    pluralize,
    read_table,
    read_target,
)

_LEAST_ROWS = 4


@dataclass
class TrainingData:
    """What a search learns from.

    Parameters
    ----------
    name : str
        What to call the table.
    target, task : str
        The column to predict, and whether it holds labels or numbers.
    X, y : array
        The matrix and the targets of the rows that have one.
    weight : ndarray or None
        Sample weights.
    encoder : TableEncoder or SparseEncoder
        What made the matrix.
    notes : list of str
        What was found out and done, one sentence each.
    pool : str
        What features are made of the columns.
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
    def word(self) -> str:
        """What a feature is called."""
        return FEATURE_WORDS[self.pool]


def load_training_data(options: argparse.Namespace) -> TrainingData:
    """Read the table that the options name, and turn it into numbers."""
    expect = [name for name in (options.target, options.weight) if name]
    table = read_table(
        options.file,
        file_format=options.format,
        delimiter=options.delimiter,
        header=options.header,
        expect=expect,
    )
    if isinstance(table, SparseTable):
        return _sparse_data(table, options)
    return _frame_data(table, options)


def _frame_data(table: Table, options: argparse.Namespace) -> TrainingData:
    frame = table.frame
    if options.target is None:
        names = ", ".join(str(name) for name in frame.columns[:12])
        raise UsageError(f"--target is needed; {table.name} has the columns {names}")
    if not len(frame):
        raise TableError(f"{table.name} has a header but no rows.")
    mark = detect_decimal_mark(frame)
    target = _target(table, mark, options)
    weights = [] if options.weight is None else [_find(table, options.weight)]
    weight = _weights(frame, weights[0], mark) if weights else None
    dropped = [_find(table, name) for name in options.drop]
    if target.name in dropped:
        raise UsageError(f"--drop names the target {target.name!r}")
    named = {
        option: [_find(table, name) for name in getattr(options, option)]
        for option in ("number", "category")
    }
    rest = frame.drop(columns=list({target.name, *dropped, *weights}))
    if len(target.rows) < len(frame):
        rest = rest.iloc[target.rows]
        weight = None if weight is None else weight[target.rows]
    encoder = TableEncoder.plan(
        rest,
        numbers=named["number"],
        categories=named["category"],
        standardise=options.pool == "pieces",
    )
    if not encoder.columns:
        raise TableError(_nothing_to_learn_from(table.name, target.name, encoder))
    check_size(options.pool, len(rest), encoder.width)
    matrix, gaps = encoder.encode(rest)
    together = options.pool == "columns"
    notes = [
        *table.notes,
        *target.notes,
        *describe_encoding(encoder, gaps, len(rest), together=together),
    ]
    found = (target.name, target.task, matrix, target.values, weight, encoder)
    return TrainingData(table.name, *found, [*notes, *_scaled(options.pool)], options.pool)


def _find(table: Table, name: str) -> str:
    return find_column(table.frame, name, table.name, table.repeated)


def _target(table: Table, mark: str, options: argparse.Namespace) -> Target:
    target = read_target(table.frame[_find(table, options.target)], options.task, mark)
    _check_targets(target, table.name)
    return target


def _check_targets(target: Target, name: str) -> None:
    """Raise unless there is something to learn."""
    if len(target.values) < _LEAST_ROWS:
        rows = pluralize(len(target.values), "row")
        raise TableError(
            f"{name} has {rows} with a target; learning needs at least {_LEAST_ROWS}, and is "
            "worth it from a few dozen."
        )
    values = np.unique(target.values)
    if len(values) < 2:
        kind = "class" if target.task == "classification" else "value"
        raise TableError(
            f"The target {target.name!r} has only one {kind}, {values[0]}: there is nothing to "
            "tell apart."
        )


def _weights(frame: Any, column: str, mark: str) -> np.ndarray:
    weight = as_target_numbers(frame[column], mark)
    if not np.all(np.isfinite(weight) & (weight >= 0)):
        raise TableError(
            f"The weights {column!r} must be numbers of at least 0 in every row; "
            f"row {int(np.argmin(np.isfinite(weight) & (weight >= 0))) + 1} is not."
        )
    if not weight.any():
        raise TableError(f"The weights {column!r} are zero in every row.")
    return weight


def _nothing_to_learn_from(table: str, target: str, encoder: TableEncoder) -> str:
    if not encoder.left_out:
        return (
            f"{table} has no column beside {target!r} to learn from. If it should have, name the "
            "delimiter with --delimiter."
        )
    reasons = "; ".join(f"{name}: {reason}" for name, reason in encoder.left_out[:4])
    more = f"; and {len(encoder.left_out) - 4} more" if len(encoder.left_out) > 4 else ""
    return f"{table} has no column to learn from ({reasons}{more})."


def _sparse_data(table: SparseTable, options: argparse.Namespace) -> TrainingData:
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
    notes = [*table.notes, *target.notes, *_scaled(options.pool)]
    found = (target.name, target.task, matrix, target.values, None, encoder)
    return TrainingData(table.name, *found, notes, options.pool)


def _scaled(pool: str) -> list[str]:
    """Say what was done to the columns for a pool that measures distances."""
    if pool != "pieces":
        return []
    return ["Numbers are divided by their standard deviations, to measure distances between rows."]
