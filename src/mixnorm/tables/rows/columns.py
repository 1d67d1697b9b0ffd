"""What the columns of a stream are, decided from its first rows by the rules of a whole table."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, cast

import numpy as np

from mixnorm.tables import sniff
from mixnorm.tables.columns import DateColumn
from mixnorm.tables.marks import detect_common_mark, restyle_columns
from mixnorm.tables.plan import ROW_NUMBER, detect_text_kind, is_key, is_row_number
from mixnorm.tables.values import (
    DATE_FORMATS,
    STYLES,
    Style,
    as_seconds,
    format_value,
    normalise_level,
)

#: Numbers of rows after which kinds are decided, from all rows so far; the last time they stay.
DECIDED_AT = (1, 2, 4, 8, 16, 32, 64, 128, 256)
# Share of different texts above which they are names or keys. It is larger than for a whole table:
# of many levels, most differ in a few rows.
_KEYLIKE = 0.9
MISSING = frozenset(sniff.MISSING_MARKS)
Kind = Literal["number", "category", "date", "left out"]


@dataclass(frozen=True)
class RowColumn:
    """How the entries of a column of a stream are read.

    Parameters
    ----------
    name : str
        The column's name.
    kind : {"number", "category", "date", "left out"}
        What its entries are.
    style : {"plain", "thousands", "comma"}
        How texts are written as numbers: ``1234.5``, ``1,234.5`` or ``1.234,5``.
    pattern : str
        The format of dates.
    origin : float
        The date from which days are counted, in seconds since 1970.
    timed : bool
        Whether dates have a time of day.
    reason : str
        Why it is left out.

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
            raise ValueError(f"the format of the date {self.name!r} is not known")
        if not math.isfinite(self.origin) or self.style not in STYLES:
            raise ValueError(f"the column {self.name!r} cannot be read as it says")

    @property
    def date(self) -> DateColumn:
        """How a date becomes numbers.

        The rows to come are not known, hence the cycles of year and week are always there.
        """
        cycles = ("year", "week", "day") if self.timed else ("year", "week")
        return DateColumn(
            self.name, self.pattern, self.origin, self.origin, cast(tuple[Any, ...], cycles)
        )


def is_gap(value: Any) -> bool:
    """Whether a value of any type says that there is none."""
    if value is None:
        return True
    if isinstance(value, str):
        return value.strip() in MISSING
    if isinstance(value, Real):
        return bool(value != value)
    return type(value).__name__ in ("NAType", "NaTType")


def leaves(entries: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield names and values, those within a mapping as ``outer.inner``.

    Examples
    --------
    >>> list(leaves({"age": 3, "at": {"x": 0.5, "y": None}}))
    [('age', 3), ('at.x', 0.5), ('at.y', None)]
    """
    for name, value in entries.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{name}.")
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
    """Return what columns are; those without any entry are not among them.

    Parameters
    ----------
    values : mapping of str to sequence
        The entries of the first rows by column: texts, numbers, None.
    numbers, categories : collection of str
        Columns whose kind the user names.
    keep_keys : bool
        Whether columns of ever new texts are categories too.
    earlier : iterable of RowColumn
        What was decided from fewer rows: days are counted from the same date.

    Examples
    --------
    >>> for column in decide_columns({"age": ["3", "?", "5"], "fuel": ["gas", "oil", "7"]}):
    ...     print(column.name, column.kind)
    age number
    fuel category
    """
    before = {column.name: column for column in earlier}
    mark = detect_common_mark([_texts(entries) for entries in values.values()])
    found = []
    for name, entries in values.items():
        forced = None
        if name in numbers or name in categories:
            forced = "number" if name in numbers else "category"
        column = _decided(name, entries, forced, keep_keys, before.get(name), mark)
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
        Of mappings, which may have ever new names, those that most rows have and those with texts.
        Lists are not among them: their entries are features of their own.
    """
    found: dict[str, list[Any]] = {}
    if header:
        for place, name in enumerate(header):
            if name not in drop:
                found[name] = [row[place] for row in rows]
        return found
    for row in rows:
        for name, value in leaves({name: row[name] for name in row if name not in drop}):
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
    """Return columns as rows that need not be like the earlier ones write their numbers.

    Parameters
    ----------
    columns : iterable of RowColumn
        What the columns are.
    values : mapping of str to sequence
        Entries of the rows by column.
    """
    known = list(columns)
    numbers = [column for column in known if column.kind == "number"]
    texts = {
        name: [text for text in entries if isinstance(text, str)]
        for name, entries in values.items()
    }
    found = {column.name: column for column in restyle_columns(numbers, texts)}
    return tuple(found.get(column.name, column) for column in known)


def _texts(entries: Sequence[Any]) -> list[str | None]:
    return [None if is_gap(entry) else format_value(entry) for entry in entries]


def _decided(
    name: str,
    entries: Sequence[Any],
    forced: str | None,
    keys: bool,
    before: RowColumn | None,
    mark: str,
) -> RowColumn | None:
    texts = _texts(entries)
    present = [text for text in texts if text is not None]
    if forced == "category":
        return RowColumn(name, "category")
    if not present:
        return None
    what, how = _kind(present, len(present) == len(texts), forced, mark)
    if what == "number":
        return _number(name, texts, cast(Style, how), forced is not None)
    if what == "date":
        return _date(name, present, how, before)
    levels = len({normalise_level(text) for text in present})
    if not keys and is_key(levels, len(present), _KEYLIKE):
        reason = (
            f"nearly every text differs ({levels} of {len(present)}); --category {name} takes it "
            "all the same"
        )
        return RowColumn(name, "left out", reason=reason)
    return RowColumn(name, "category")


def _kind(present: list[str], full: bool, forced: str | None, mark: str) -> tuple[str, str]:
    """Return what entries are, and how they are written."""
    if _are_plain_numbers(present) and not (mark == "," and any("." in text for text in present)):
        return "number", "plain"
    if forced is None and all(text.lower() in ("true", "false") for text in present):
        return ("number", "plain") if full else ("category", "")
    found = detect_text_kind(np.array([*present, None], dtype=object)[:-1], forced, mark)
    return ("category", "") if isinstance(found, str) else found


def _are_plain_numbers(texts: list[str]) -> bool:
    """Whether Python reads all texts as numbers, and others would too."""
    try:
        list(map(float, texts))
    except ValueError:
        return False
    joined = "".join(texts)
    return joined.isascii() and "_" not in joined


def _number(name: str, texts: list[str | None], style: Style, forced: bool) -> RowColumn:
    numbers = None if forced else _all_numbers(texts)
    if numbers is not None and is_row_number(name, np.array(numbers)):
        return RowColumn(name, "left out", reason=ROW_NUMBER.format(name))
    return RowColumn(name, "number", style)


def _all_numbers(texts: list[str | None]) -> list[float] | None:
    """Return entries as finite numbers; None if there is anything else among them."""
    try:
        numbers = [float(text) for text in texts if text is not None]
    except ValueError:  # also those with signs around them, which number no rows
        return None
    complete = len(numbers) == len(texts) and all(map(math.isfinite, numbers))
    return numbers if complete else None


def _date(name: str, present: list[str], pattern: str, before: RowColumn | None) -> RowColumn:
    import pandas as pd

    seconds = as_seconds(pd.Series(present, dtype="object"), pattern)
    seconds = seconds[~np.isnan(seconds)]
    same = before is not None and before.pattern == pattern
    origin = before.origin if before is not None and same else float(seconds.min())
    timed = bool(np.any(np.mod(seconds, 86400.0) != 0))
    return RowColumn(name, "date", pattern=pattern, origin=origin, timed=timed)
