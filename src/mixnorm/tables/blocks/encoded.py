"""A table of files as a source of numbers: each block is encoded when it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixnorm.data import Meter, Request, RowBlock, Source
from mixnorm.tables.blocks.arrow import apply_to_rows, find_distinct
from mixnorm.tables.blocks.files import FileRows
from mixnorm.tables.columns import CategoryColumn, ColumnPlan
from mixnorm.tables.encoder import TableEncoder, clip_numbers
from mixnorm.tables.target import Task
from mixnorm.tables.values import as_numbers, as_texts

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True)
class TargetReader:
    """Reads targets or weights.

    Parameters
    ----------
    name : str
        The column.
    task : {"classification", "regression"}
        Whether they are labels or numbers.
    whole : bool
        Whether labels are whole numbers.
    style : str
        How texts are written as numbers.
    """

    name: str
    task: Task = "regression"
    whole: bool = False
    style: str = "plain"

    def read(self, column: pa.ChunkedArray) -> np.ndarray:
        """Return the targets of some rows, all of which have one."""
        return apply_to_rows(column, self.name, self._convert)

    def _convert(self, values: pd.Series[Any]) -> np.ndarray:
        if self.task == "regression":
            return as_numbers(values, self.style)
        if self.whole:
            numbers = as_numbers(values)
            return np.where(np.isfinite(numbers), numbers, 0.0).astype(np.int64)
        texts = as_texts(values)
        texts[texts == None] = ""  # noqa: E711  (only behind the distinct ones)
        return texts.astype(str)


class EncodedRows(Source):
    """The rows of Parquet files as the matrix that an encoder makes of them.

    Parameters
    ----------
    rows : FileRows
        The rows, all of which have a target.
    encoder : TableEncoder
        The plans of the columns.
    target : TargetReader
        How to read targets.
    weight : TargetReader, optional
        How to read weights.
    """

    has_target = True

    def __init__(
        self,
        rows: FileRows,
        encoder: TableEncoder,
        target: TargetReader,
        weight: TargetReader | None = None,
    ) -> None:
        self._rows, self._encoder, self._target, self._weight = rows, encoder, target, weight
        self.n_rows, self.n_features = rows.n_rows, encoder.width
        self.dtype, self.has_weight = np.dtype(encoder.dtype), weight is not None
        self._owners = np.asarray(encoder.owners, dtype=np.intp)
        self._starts = np.searchsorted(self._owners, np.arange(len(encoder.columns)))

    def scan(self, rows: Sequence[slice], request: Request, meter: Meter) -> Iterator[RowBlock]:
        """Yield consecutive blocks of rows; only the columns that are asked for are read."""
        if not rows:
            return
        places = None
        if request.columns is not None:
            places = np.arange(self.n_features)[request.columns]
        target = self._target if request.target else None
        weight = self._weight if request.weight else None
        plans = [] if places is None else np.unique(self._owners[places]).tolist()
        names = [self._encoder.columns[plan].name for plan in plans]
        names += [each.name for each in (target, weight) if each is not None]
        names = list(dict.fromkeys(names))
        parts = self._rows.read(names, rows, meter) if names else iter(())
        for each in rows:
            size = each.stop - each.start
            columns = np.empty((0 if places is None else len(places), size), dtype=self.dtype)
            y: list[np.ndarray] = []
            w: list[np.ndarray] = []
            at = 0
            while names and at < size:
                _, table = next(parts)
                stop = at + len(table)
                if places is not None:
                    self._encode(table, plans, places, columns[:, at:stop])
                for reader, found in ((target, y), (weight, w)):
                    if reader is not None:
                        found.append(reader.read(table.column(reader.name)))
                at = stop
            yield RowBlock(
                None if places is None else columns.T,
                np.concatenate(y) if y else None,
                np.concatenate(w) if w else None,
            )

    def _encode(
        self, table: pa.Table, plans: Sequence[int], places: np.ndarray, out: np.ndarray
    ) -> None:
        """Write the asked columns of some rows, each into a row of ``out``."""
        for index in plans:
            plan = self._encoder.columns[index]
            part = encode_column(plan, table.column(plan.name))
            rows = np.flatnonzero(self._owners[places] == index)
            out[rows] = clip_numbers(part, self.dtype).T[places[rows] - self._starts[index]]

    def ranges(self, blocks: Sequence[slice], n_workers: int = 1) -> list[range]:
        """Return ranges of blocks whose first rows lie in the same row group."""
        return self._rows.ranges(blocks, n_workers)

    def part(self, rows: slice) -> EncodedRows:
        """Return a source with the files that hold these rows."""
        return EncodedRows(self._rows.part(rows), self._encoder, self._target, self._weight)

    def describe(self, rows: slice) -> str:
        """Return the file and the row group of the first of these rows."""
        return self._rows.describe(rows)


def encode_column(plan: ColumnPlan, column: pa.ChunkedArray) -> np.ndarray:
    """Return the matrix columns of a column of an Arrow table."""

    def encode(values: pd.Series[Any]) -> np.ndarray:
        found: np.ndarray = plan.encode(values)[0]
        return found

    if isinstance(plan, CategoryColumn):
        values, codes = find_distinct(column, plan.name)
        return encode(values)[codes]
    return apply_to_rows(column, plan.name, encode)
