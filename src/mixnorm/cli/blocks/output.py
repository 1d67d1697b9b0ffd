"""Predictions as they are written: to a Parquet or CSV file, or to standard output."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mixnorm._files import write_atomically
from mixnorm.cli.blocks.files import is_parquet_name
from mixnorm.cli.screen import write_output

if TYPE_CHECKING:
    import pyarrow as pa

Columns = Mapping[str, Any]


class Writer(Protocol):
    """Writes rows after rows."""

    def write(self, columns: Columns) -> None:
        """Write some rows, given by their columns: arrays, lists or columns of Arrow."""


@contextmanager
def open_writer(place: str | None) -> Iterator[Writer]:
    """Open a writer to a file, which appears when all is written, or to standard output."""
    if place is None:
        yield _CsvWriter(write_output)
        return
    with write_atomically(place) as file:
        if not is_parquet_name(place):
            yield _CsvWriter(lambda text: file.write(text.encode()))
            return
        with ExitStack() as stack:
            yield _ParquetWriter(file, stack)


def format_csv(columns: Columns, *, header: bool = True) -> str:
    """Return columns as the text of a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header:
        writer.writerow(columns)
    parts = [part.tolist() if isinstance(part, np.ndarray) else part for part in columns.values()]
    writer.writerows(zip(*parts, strict=True))
    return text.getvalue()


class _CsvWriter:
    """Writes CSV, with a header first."""

    def __init__(self, put: Any) -> None:
        self._put, self._has_header = put, False

    def write(self, columns: Columns) -> None:
        """Write some rows."""
        self._put(format_csv(columns, header=not self._has_header))
        self._has_header = True


class _ParquetWriter:
    """Writes Parquet, a row group at a time; the first rows decide the types."""

    def __init__(self, file: Any, stack: ExitStack) -> None:
        self._file, self._stack = file, stack
        self._writer: Any = None

    def write(self, columns: Columns) -> None:
        """Write some rows."""
        import pyarrow.parquet as pq

        table = _as_arrow(columns)
        if self._writer is None:
            # Closed before the file is renamed, also after an error.
            self._writer = self._stack.enter_context(pq.ParquetWriter(self._file, table.schema))
        self._writer.write_table(table.cast(self._writer.schema))


def _as_arrow(columns: Columns) -> pa.Table:
    """Return columns as an Arrow table."""
    import pyarrow as pa

    parts = [
        pa.array(part.tolist() if part.dtype.kind in "OU" else part)
        if isinstance(part, np.ndarray)
        else pa.chunked_array([pa.array(part, pa.string())])
        if isinstance(part, list)
        else part
        for part in columns.values()
    ]
    return pa.table(parts, names=list(columns))
