"""Tables as they were read, and how they come from Arrow."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mixnorm.tables.words import join_names

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Table:
    """A table as it was read.

    Parameters
    ----------
    name : str
        What to call it in messages.
    frame : DataFrame
        Its columns, with unique names.
    notes : list of str
        What was found out or done on reading, one sentence each.
    kept : dict of str to list of str
        Columns letter by letter, if any were asked for.
    repeated : tuple of str
        Names that more than one column has in the file; all but the first have others here.
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
        What to call it in messages.
    matrix : csr_array of shape (n_rows, n_columns)
        The rows.
    labels : ndarray of shape (n_rows,)
        The first entry of each line.
    zero_based : bool
        Whether the file counts columns from 0.
    notes : list of str
        What was found out or done on reading, one sentence each.
    """

    name: str
    matrix: Any
    labels: Any
    zero_based: bool
    notes: list[str] = field(default_factory=list)


def convert_arrow_table(table: Any, name: str, notes: list[str], kept: dict[str, Any]) -> Table:
    """Turn an Arrow table into a DataFrame with plain types and unique names.

    ``kept`` holds, by the final name of a column, a table in which it is as it shall be copied.
    """
    import pyarrow as pa

    columns = [_plain(column) for column in table.columns]
    given = [text.strip() for text in table.column_names]
    names, renamed = make_names_unique(given)
    notes += describe_renamed(renamed)
    letters = {
        text: _letters(raw.column(names.index(text))) for text, raw in kept.items() if text in names
    }
    arrow = pa.table(columns, names=names)
    del table, columns
    # The buffers of a column are freed as soon as it is converted.
    frame = arrow.to_pandas(split_blocks=True, self_destruct=True, date_as_object=False)
    return Table(name, frame, notes, letters, find_repeated_names(given))


def _letters(column: Any) -> list[str]:
    """Return the entries of an Arrow column as texts, missing ones as empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        found = pc.cast(column, pa.string()).to_pylist()
    except pa.ArrowException:  # a list, say
        found = [None if entry is None else str(entry) for entry in column.to_pylist()]
    return ["" if entry is None else entry for entry in found]


def _plain(column: Any) -> Any:
    """Return a column in a type that pandas knows well: times in hours, decimals as floats."""
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
    """Return the names that occur more than once, empty ones aside."""
    return tuple(name for name, count in Counter(names).items() if name and count > 1)


def make_names_unique(names: list[str]) -> tuple[list[str], list[str]]:
    """Return names that differ, and those that had to be changed."""
    seen: set[str] = set()
    unique, changed = [], []
    taken = set(names)
    for place, name in enumerate(names, start=1):
        fresh = name or f"column_{place}"
        count = 1
        while fresh in seen or (fresh != name and fresh in taken):
            count += 1
            fresh = f"{name or f'column_{place}'}.{count}"
        seen.add(fresh)
        unique.append(fresh)
        if fresh != name:
            changed.append(fresh)
    return unique, changed


def describe_renamed(names: list[str]) -> list[str]:
    """Return a sentence on the columns that got other names, if there are any."""
    shown = join_names(list(map(repr, names)), 5)
    return [f"Names that occur more than once, or are empty, became {shown}."] if names else []


def number_columns(count: int) -> list[str]:
    """Return the names of columns in a table without a header."""
    return [f"column_{place}" for place in range(1, count + 1)]
