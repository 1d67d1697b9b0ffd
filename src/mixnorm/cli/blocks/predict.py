"""``mixnorm predict`` for Parquet files, block by block and in the order of their rows."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mixnorm.cli.arguments.parser import UsageError
from mixnorm.cli.blocks.files import is_parquet_name, name_table
from mixnorm.cli.blocks.output import Writer, open_writer
from mixnorm.cli.blocks.reading import ReadingLine
from mixnorm.cli.screen import Screen
from mixnorm.cli.stream.show import PredictedTable
from mixnorm.data import BlockTable
from mixnorm.exceptions import TableError
from mixnorm.tables import (
    FileRows,
    TableEncoder,
    TableModel,
    as_frame,
    as_target_numbers,
    compare_labels,
    copy_texts,
    describe_gaps,
    find_name,
    join_names,
    refuse_missing_columns,
)

if TYPE_CHECKING:
    import pyarrow as pa

# Rows that are predicted at a time.
_ROWS_AT_ONCE = 1 << 15


@dataclass
class _Errors:
    """The errors of the predictions so far, for a table that has its targets."""

    rows: int = 0
    total: float = 0.0
    unknown: set[str] = field(default_factory=set)


def predict_files(
    model: TableModel, options: argparse.Namespace, paths: Sequence[str], screen: Screen
) -> tuple[PredictedTable, int]:
    """Predict for the rows of Parquet files, and write the predictions.

    Returns
    -------
    PredictedTable, int
        Notes and the error, without the columns, and the number of rows.
    """
    if options.json and options.output is None:
        raise UsageError(
            "--json without --output would hold all predictions in memory; add --output"
        )
    if not isinstance(model.encoder, TableEncoder):
        raise TableError("The model was fitted on a LIBSVM file; give it a LIBSVM file.")
    if options.output is not None and any(_same_place(options.output, path) for path in paths):
        raise UsageError(f"--output {options.output} would replace a file of the table")
    run = _Prediction(model, options, paths)
    with ReadingLine(screen) as line:
        line.name("predicting")
        line.follow(run.table)
        with open_writer(options.output) as writer:
            run.write(writer)
    return run.describe(), run.rows


def _same_place(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


class _Prediction:
    """A pass over the files."""

    def __init__(
        self,
        model: TableModel,
        options: argparse.Namespace,
        paths: Sequence[str],
    ) -> None:
        self.model, self.options = model, options
        everything = FileRows.list_names(paths)
        name = name_table(options.files)
        self.keep = [find_name(everything, each, name) for each in options.keep]
        missing = [each for each in model.needed if each not in everything]
        if missing:
            refuse_missing_columns(missing, everything)
        self.target = model.target if model.target in everything else None
        wanted = [*model.needed, *self.keep, *([self.target] if self.target else [])]
        wanted = list(dict.fromkeys(wanted)) or everything[:1]
        self.files = FileRows.open(paths, only=wanted)
        self.table = BlockTable(self.files, block_rows=_ROWS_AT_ONCE, executor=1)
        self.notes = model.describe_unknown(everything)
        self.errors, self.rows = _Errors(), 0
        self.gaps: dict[str, Any] = {}

    def write(self, writer: Writer) -> None:
        """Write the predictions of all rows."""
        model = self.model
        for block in self.table.iterate():
            frame = as_frame(block.X)
            if not self.rows:  # whether numbers in texts have decimal commas
                model = model.adapt(frame)
            self._write_block(writer, model, block.X, frame)
        if not self.rows:
            empty = as_frame(self.files.empty())
            self._write_block(writer, model, self.files.empty(), empty)
        self.model.check_readable(self.gaps, self.rows)

    def _write_block(self, writer: Writer, model: TableModel, arrow: pa.Table, frame: Any) -> None:
        values, chances, gaps = model.apply_to_part(frame)
        for name, gap in gaps.items():
            self.gaps[name] = self.gaps[name] + gap if name in self.gaps else gap
        self.rows += len(values)
        columns: dict[str, Any] = {name: self._copy(arrow.column(name)) for name in self.keep}
        found = PredictedTable({"prediction": values}, [])
        if self.options.probabilities and model.classes is not None and chances is not None:
            found.add_probabilities(model.classes, chances)
        writer.write({**columns, **found.columns})
        if self.target is not None and len(values):
            self._measure(frame[self.target], values)

    def _copy(self, column: Any) -> Any:
        """Return a column as it is written: as it is in Parquet, as texts in CSV."""
        return column if is_parquet_name(self.options.output) else copy_texts(column)

    def _measure(self, values: Any, guess: np.ndarray) -> None:
        """Add the errors of some rows."""
        errors = self.errors
        if self.model.classes is not None:
            rows, wrong, unknown = compare_labels(values, guess, self.model.classes)
            errors.total += float(np.count_nonzero(wrong))
            errors.unknown.update(unknown)
        else:
            truth = as_target_numbers(values)
            rows = np.flatnonzero(np.isfinite(truth))
            errors.total += float(np.sum((truth[rows] - guess[rows]) ** 2))
        errors.rows += len(rows)

    def describe(self) -> PredictedTable:
        """Return notes and the error."""
        found = PredictedTable({}, [*self.notes, *describe_gaps(self.gaps, self.rows)])
        errors = self.errors
        if errors.rows:
            mean = errors.total / errors.rows
            labels = self.model.task == "classification"
            found.set_error(mean if labels else mean**0.5, self.model.task, errors.rows)
            if errors.unknown:
                names = join_names(sorted(errors.unknown), 5)
                found.text += f" Labels that training did not have: {names}."
        return found
