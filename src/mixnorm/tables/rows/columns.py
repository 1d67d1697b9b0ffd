"""The kinds of a stream's columns, decided from its first rows by the rules of a whole table."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, cast

import numpy as np

from mixnorm.tables import sniff
from mixnorm.tables.columns import Cycle, DateColumn
from mixnorm.tables.marks import detect_common_mark, restyle_columns
from mixnorm.tables.plan import (
    NEARLY_ALL_DIFFER,
    ROW_NUMBER,
    detect_text_kind,
    is_key,
    is_row_number,
)
from mixnorm.tables.values import (
    DATE_FORMATS,
    SECONDS_PER_DAY,
    STYLES,
    Style,
    as_seconds,
    format_value,
    normalise_level,
)

#: Numbers of rows after which kinds are decided from all rows so far; the last decision is final.
DECIDED_AT = (1, 2, 4, 8, 16, 32, 64, 128, 256)
# A text column holds names or keys if its share of distinct entries is larger. The share is larger
# than for a whole table, because few rows repeat few levels.
_DISTINCT_SHARE_OF_STREAM_KEYS = 0.9
MISSING = frozenset(sniff.MISSING_MARKS)
Kind = Literal["number", "category", "date", "left out"]


@dataclass(frozen=True)
class RowColumn:
    """The kind of a column of a stream, and how to read its entries.

    Parameters
    ----------
    name : str
        The column's name.
    kind : {"number", "category", "date", "left out"}
        The kind of its entries.
    style : {"plain", "thousands", "comma"}
        How texts are written as numbers: ``1234.5``, ``1,234.5`` or ``1.234,5``.
    pattern : str
        The format of dates.
    origin : float
        The date from which days are counted, in seconds since 1970.
    timed : bool
        Whether dates have a time of day.
    reason : str
        Why the column is left out.

    Examples
    --------
    >>> RowColumn("seen", "date", pattern="ISO8601").date.column_names[0]
    'seen (days since 1970-01-01)'
    """

    name: str
    kind: Kind
    style: Style = "plain"
    pattern: str = ""
    origin: float = 0.0
    timed: bool = False
    reason: str = ""

    def _check_stored(self) -> None:
        if self.kind == "date" and self.pattern not in DATE_FORMATS:
            raise ValueError(f"the date {self.name!r} has an unknown format")
        if not math.isfinite(self.origin) or self.style not in STYLES:
            raise ValueError(f"the column {self.name!r} has an unknown style or origin")

    @property
    def date(self) -> DateColumn:
        """The encoding of a column of dates.

        It always has the cycles of year and week, because the rows to come are not known.
        """
        cycles: tuple[Cycle, ...] = ("year", "week", "day") if self.timed else ("year", "week")
        return DateColumn(self.name, self.pattern, self.origin, self.origin, cycles)


def is_gap(value: Any) -> bool:
    """Whether a value of any type means a missing entry."""
    if value is None:
        return True
    if isinstance(value, str):
        return value.strip() in MISSING
    if isinstance(value, Real):
        return bool(value != value)
    return type(value).__name__ in ("NAType", "NaTType")


def iterate_leaves(entries: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield names and values; a value within a mapping has the name ``outer.inner``.

    Examples
    --------
    >>> list(iterate_leaves({"age": 3, "at": {"x": 0.5, "y": None}}))
    [('age', 3), ('at.x', 0.5), ('at.y', None)]
    """
    for name, value in entries.items():
        if isinstance(value, Mapping):
            yield from iterate_leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def decide_columns(
    values: Mapping[str, Sequence[Any]],
    *,
    numbers: Collection[str] = (),
    categories: Collection[str] = (),
    keep_keys: bool = False,
    earlier: Iterable[RowColumn] = (),
) -> tuple[RowColumn, ...]:
    """Decide the kinds of columns; skip columns without any entry.

    Parameters
    ----------
    values : mapping of str to sequence
        The entries of the first rows by column: texts, numbers, None.
    numbers, categories : collection of str
        Columns whose kind the user names.
    keep_keys : bool
        Whether columns of names or keys are categories too.
    earlier : iterable of RowColumn
        The decisions from fewer rows, which set the first date.

    Examples
    --------
    >>> for column in decide_columns({"age": ["3", "?", "5"], "fuel": ["gas", "oil", "7"]}):
    ...     print(column.name, column.kind)
    age number
    fuel category
    """
    before = {column.name: column for column in earlier}
    mark = detect_common_mark([_as_texts(entries) for entries in values.values()])
    found = []
    for name, entries in values.items():
        forced = None
        if name in numbers or name in categories:
            forced = "number" if name in numbers else "category"
        column = _decide_column(name, entries, forced, keep_keys, before.get(name), mark)
        if column is not None:
            found.append(column)
    return tuple(found)


def values_by_name(
    rows: Sequence[Any], header: Sequence[str], drop: Collection[str]
) -> dict[str, list[Any]]:
    """Return the entries of rows by column.

    Parameters
    ----------
    rows : sequence of lists or mappings
        Entries in the order of the header, or by name.
    header : sequence of str
        The names of all columns; empty for mappings.
    drop : collection of str
        Names to leave out.

    Returns
    -------
    dict of str to list
        The entries by column. Rows that are mappings may have ever new names; of these, the dict
        has those that most rows have and those with texts. It skips lists, whose entries are
        features themselves.
    """
    found: dict[str, list[Any]] = {}
    if header:
        for place, name in enumerate(header):
            if name not in drop:
                found[name] = [row[place] for row in rows]
        return found
    for row in rows:
        for name, value in iterate_leaves({name: row[name] for name in row if name not in drop}):
            if not isinstance(value, (list, tuple)):
                found.setdefault(name, []).append(value)
    return {
        name: values
        for name, values in found.items()
        if 2 * len(values) >= len(rows) or any(isinstance(value, str) for value in values)
    }


def adapt_columns(
    columns: Iterable[RowColumn], values: Mapping[str, Sequence[Any]]
) -> tuple[RowColumn, ...]:
    """Return columns in the number style of new rows, which may differ from that of earlier rows.

    Parameters
    ----------
    columns : iterable of RowColumn
        The kinds of the columns.
    values : mapping of str to sequence
        Entries of the new rows by column.
    """
    known = list(columns)
    numbers = [column for column in known if column.kind == "number"]
    texts = {
        name: [text for text in entries if isinstance(text, str)]
        for name, entries in values.items()
    }
    found = {column.name: column for column in restyle_columns(numbers, texts)}
    return tuple(found.get(column.name, column) for column in known)


def _as_texts(entries: Sequence[Any]) -> list[str | None]:
    return [None if is_gap(entry) else format_value(entry) for entry in entries]


def _decide_column(
    name: str,
    entries: Sequence[Any],
    forced: str | None,
    keys: bool,
    before: RowColumn | None,
    mark: str,
) -> RowColumn | None:
    texts = _as_texts(entries)
    present = [text for text in texts if text is not None]
    if forced == "category":
        return RowColumn(name, "category")
    if not present:
        return None
    what, how = _detect_kind(present, len(present) == len(texts), forced, mark)
    if what == "number":
        return _decide_number(name, texts, cast(Style, how), forced is not None)
    if what == "date":
        return _decide_date(name, present, how, before)
    levels = len({normalise_level(text) for text in present})
    if not keys and is_key(levels, len(present), _DISTINCT_SHARE_OF_STREAM_KEYS):
        reason = NEARLY_ALL_DIFFER.format(levels, len(present))
        return RowColumn(name, "left out", reason=f"{reason}; --category {name} keeps it")
    return RowColumn(name, "category")


def _detect_kind(present: list[str], full: bool, forced: str | None, mark: str) -> tuple[str, str]:
    """Return the kind of entries, and their style or format."""
    grouped = mark == "," and any("." in text for text in present)
    if not grouped and sniff.are_plain_numbers(present):
        return "number", "plain"
    if forced is None and all(text.lower() in ("true", "false") for text in present):
        return ("number", "plain") if full else ("category", "")
    found = detect_text_kind(np.array([*present, None], dtype=object)[:-1], forced, mark)
    return ("category", "") if isinstance(found, str) else found


def _decide_number(name: str, texts: list[str | None], style: Style, forced: bool) -> RowColumn:
    try:
        numbers = np.array([math.nan if text is None else float(text) for text in texts])
    except ValueError:  # numbers with units or separators do not number rows
        numbers = np.array([math.nan])
    if not forced and np.all(np.isfinite(numbers)) and is_row_number(name, numbers):
        return RowColumn(name, "left out", reason=ROW_NUMBER.format(name))
    return RowColumn(name, "number", style)


def _decide_date(
    name: str, present: list[str], pattern: str, before: RowColumn | None
) -> RowColumn:
    import pandas as pd

    seconds = as_seconds(pd.Series(present, dtype="object"), pattern)
    seconds = seconds[~np.isnan(seconds)]
    same = before is not None and before.pattern == pattern
    origin = before.origin if before is not None and same else float(seconds.min())
    timed = bool(np.any(np.mod(seconds, SECONDS_PER_DAY) != 0))
    return RowColumn(name, "date", pattern=pattern, origin=origin, timed=timed)
