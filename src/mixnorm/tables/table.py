"""Tables that were read from files, and their conversion from Arrow."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mixnorm.tables.words import join_names

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa


@dataclass
class Table:
    """A table as it was read.

    Parameters
    ----------
    name : str
        The name of the table in messages.
    frame : DataFrame
        The columns, with unique names.
    notes : list of str
        Findings and changes made on reading, one sentence each.
    kept : dict of str to list of str
        The requested columns exactly as they are written in the file.
    repeated : tuple of str
        Names that several columns of the file share; here all but the first are renamed.
    """

    name: str
    frame: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    kept: dict[str, list[str]] = field(default_factory=dict)
    repeated: tuple[str, ...] = ()


@dataclass
class SparseTable:
    """A LIBSVM file as it was read: a sparse matrix with the label of each row.

    Parameters
    ----------
    name : str
        The name of the table in messages.
    matrix : csr_array of shape (n_rows, n_columns)
        The rows.
    labels : ndarray of shape (n_rows,)
        The first entry of each line.
    zero_based : bool
        Whether the file counts columns from 0.
    notes : list of str
        Findings and changes made on reading, one sentence each.
    """

    name: str
    matrix: Any
    labels: np.ndarray
    zero_based: bool
    notes: list[str] = field(default_factory=list)


def convert_arrow_table(
    table: pa.Table, name: str, notes: list[str], kept: dict[str, pa.Table]
) -> Table:
    """Convert an Arrow table to a DataFrame with plain types and unique names.

    ``kept`` maps the final name of each column to keep to a table that holds its original texts.
    """
    import pyarrow as pa

    columns = [_convert_column(column) for column in table.columns]
    given = [text.strip() for text in table.column_names]
    names, renamed = make_names_unique(given)
    letters = {
        text: copy_texts(raw.column(names.index(text)))
        for text, raw in kept.items()
        if text in names
    }
    arrow = pa.table(columns, names=names)
    del table, columns
    # The buffers of a column are freed as soon as it is converted.
    frame = arrow.to_pandas(split_blocks=True, self_destruct=True, date_as_object=False)
    return Table(name, frame, [*notes, *renamed], letters, find_repeated_names(given))


def copy_texts(column: pa.ChunkedArray) -> list[str]:
    """Return the entries of an Arrow column as texts, missing ones as empty texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        found = pc.cast(column, pa.string()).to_pylist()
    except pa.ArrowException:  # for example a list
        found = [None if entry is None else str(entry) for entry in column.to_pylist()]
    return ["" if entry is None else entry for entry in found]


def _convert_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in a type that pandas supports: times in hours, decimals as floats."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column.type, pa.BaseExtensionType):
        column = pc.cast(column, column.type.storage_type)
    kind = column.type
    if pa.types.is_time(kind):
        nanoseconds = pc.cast(pc.cast(column, pa.time64("ns")), pa.int64())
        return pc.divide(pc.cast(nanoseconds, pa.float64(), safe=False), 3.6e12)
    if pa.types.is_decimal(kind) or pa.types.is_float16(kind):
        return pc.cast(column, pa.float64())
    if pa.types.is_duration(kind):
        seconds = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
        return pc.divide(pc.cast(pc.cast(column, pa.int64()), pa.float64()), seconds)
    if pa.types.is_date(kind):
        return pc.cast(column, pa.timestamp("s"))
    if pa.types.is_timestamp(kind) and kind.tz is not None:  # pandas may not know the zone
        return pc.cast(column, pa.timestamp(kind.unit, "UTC"))
    return column


def find_repeated_names(names: list[str]) -> tuple[str, ...]:
    """Return the names that occur more than once, except empty ones."""
    return tuple(name for name, count in Counter(names).items() if name and count > 1)


def make_names_unique(names: list[str]) -> tuple[list[str], list[str]]:
    """Return distinct names, and a sentence about the names that changed, if any."""
    seen, taken = set[str](), set(names)
    unique, changed = [], []
    for place, name in enumerate(names, start=1):
        base = fresh = name or f"column_{place}"
        count = 1
        while fresh in seen or (fresh != name and fresh in taken):
            count += 1
            fresh = f"{base}.{count}"
        seen.add(fresh)
        unique.append(fresh)
        if fresh != name:
            changed.append(repr(fresh))
    shown = join_names(changed, 5)
    return unique, [f"Repeated or empty column names became {shown}."] if changed else []


def number_columns(count: int) -> list[str]:
    """Return the names of columns in a table without a header."""
    return [f"column_{place}" for place in range(1, count + 1)]
