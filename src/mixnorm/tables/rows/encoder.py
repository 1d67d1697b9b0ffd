"""Features of single rows: numbers by name from the entries of a stream."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from operator import itemgetter
from typing import Any

import numpy as np

from mixnorm.tables.columns import MISSING_LEVEL, DateColumn, Gaps
from mixnorm.tables.encoder import check_readable, describe_date, describe_unreadable
from mixnorm.tables.rows.columns import MISSING, RowColumn, is_gap
from mixnorm.tables.sniff import is_plain
from mixnorm.tables.values import (
    BLANKS,
    LARGEST,
    MOST_TEXTS,
    as_seconds,
    format_level,
    normalise_level,
    parse_number,
)
from mixnorm.tables.words import join_names

# Values by name: numbers, texts of categories, None for a missing number.
Features = dict[str, float | str | None]
_STRANGE = "strange"  # marks an entry that is not a number


class RowEncoder:
    """An encoder of single rows as features by name.

    A number has the name of its column, and is None if it is missing. A category is a text with the
    name of its column, ``(missing)`` if it is missing; online estimators make it a feature
    ``column=text``. A date gives several numbers, as in :class:`~mixnorm.tables.DateColumn`; a
    missing date gives only its days, as None. An entry of a column of unknown kind is a number or a
    category; a missing one gives nothing.

    Parameters
    ----------
    columns : iterable of RowColumn
        The kinds of the columns.
    categories : iterable of str
        Names of further columns, which are categories.
    header : sequence of str
        The names of the entries, for rows that are lists of texts.
    drop : collection of str
        Columns to leave out.
    style : {"thousands", "comma"}, optional
        Style of numbers in columns of unknown kind; None reads their texts as categories.
    complete : bool
        Whether a column that is absent from a row is missing in it. Otherwise it gives nothing,
        like a word that does not occur in a text.

    Attributes
    ----------
    columns : dict of str to RowColumn
        The kinds of the columns, by name.

    Examples
    --------
    >>> encoder = RowEncoder([RowColumn("age", "number"), RowColumn("fuel", "category")])
    >>> encoder.encode([{"age": 3, "fuel": "gas"}, {"age": None, "tags": ["a", "b"]}])
    [{'age': 3.0, 'fuel': 'gas'}, {'age': None, 'tags=a': 1.0, 'tags=b': 1.0}]
    >>> RowEncoder(header=["age", "fuel"], style="comma").encode([["1,5", "gas"]])
    [{'age': 1.5, 'fuel': 'gas'}]
    """

    def __init__(
        self,
        columns: Iterable[RowColumn] = (),
        *,
        categories: Iterable[str] = (),
        header: Sequence[str] = (),
        drop: Collection[str] = (),
        style: str | None = None,
        complete: bool = False,
    ) -> None:
        self.columns = {name: RowColumn(name, "category") for name in categories}
        self.columns |= {column.name: column for column in columns}
        self._drop, self._style, self._complete = set(drop), style, complete
        self._counts: defaultdict[str, Gaps] = defaultdict(Gaps)
        self._dates = {
            name: _Dates(column) for name, column in self.columns.items() if column.kind == "date"
        }
        self._add: dict[str, Callable[[Features, RowColumn, Any], None]] = {
            "number": self._add_number,
            "category": self._add_category,
            "date": self._add_date,
            "left out": lambda found, column, value: None,
        }
        self._header = tuple(header)
        self._lay_out()

    def _lay_out(self) -> None:
        """Separate the positions of plain numbers in a list of texts from the others."""
        plain, self._others = [], list[tuple[int, str, RowColumn | None]]()
        for place, name in enumerate(self._header):
            column = self.columns.get(name)
            if name in self._drop or (column is not None and column.kind == "left out"):
                continue
            if column is not None and column.kind == "number" and column.style != "comma":
                plain.append(place)
            else:
                self._others.append((place, name, column))
        self._plain = tuple(self._header[place] for place in plain)
        self._pick = _make_picker(plain)
        self._absent = [column for name, column in self.columns.items() if name not in self._header]

    def encode(self, rows: Sequence[Any]) -> list[Features]:
        """Return the features of rows.

        Parameters
        ----------
        rows : sequence of lists or mappings
            Texts in the order of the header; or values by name: numbers, truth values, texts,
            dates, lists and mappings of these, and None for a missing value. A value in a mapping
            has the name ``outer.inner``. The texts of a list are the categories ``name=text``; its
            other entries have the names ``name.0``, ``name.1``, ...
        """
        for name, dates in self._dates.items():
            dates.learn(self._entries(rows, name))
        return [
            self._encode_texts(row) if isinstance(row, list) else self._encode_values(row)
            for row in rows
        ]

    def _entries(self, rows: Sequence[Any], name: str) -> list[Any]:
        """Return the entries of a column in these rows; of mappings, only the texts."""
        if self._header:
            place = self._header.index(name) if name in self._header else None
            return [] if place is None else [row[place] for row in rows]
        return [_get_text(row, name) for row in rows]

    # Rows of texts.

    def _encode_texts(self, texts: list[str]) -> Features:
        picked = self._pick(texts)
        found: Features
        try:
            numbers = list(map(float, picked))
            # A finite sum has only finite terms. Python alone reads "1_000" as a number.
            if not abs(sum(numbers)) <= LARGEST or not is_plain("".join(picked)):
                raise ValueError
            found = dict(zip(self._plain, numbers, strict=True))
        except ValueError:
            found = {}
            for name, text in zip(self._plain, picked, strict=True):
                self._add_number(found, self.columns[name], text)
        for place, name, column in self._others:
            if column is None:
                self._add_unknown(found, name, texts[place])
            else:
                self._add[column.kind](found, column, texts[place])
        if self._complete:
            for column in self._absent:
                self._add[column.kind](found, column, None)
        return found

    def _add_unknown(self, found: Features, name: str, value: Any) -> None:
        """Add an entry of a column of unknown kind: a number or a category."""
        if is_gap(value):
            return
        number: float | str | None
        if isinstance(value, str):
            bare = value.strip()
            number = None if self._style is None else self._parse_number(bare, self._style)
            if not isinstance(number, float):
                found[name] = normalise_level(bare)
        else:
            number = as_number(value)
        if isinstance(number, float) and math.isfinite(number):
            found[name] = number

    # Rows of values.

    def _encode_values(self, row: Mapping[str, Any]) -> Features:
        found: Features = {}
        there: set[str] = set()
        for name, value in row.items():
            if name not in self._drop:
                self._add_value(found, str(name), value, there)
        if self._complete:
            for name, column in self.columns.items():
                if name not in there and name not in self._drop:
                    self._add[column.kind](found, column, None)
        return found

    def _add_value(self, found: Features, name: str, value: Any, there: set[str]) -> None:
        """Add the features of a value of any type."""
        if isinstance(value, Mapping):
            for inner, part in value.items():
                self._add_value(found, f"{name}.{inner}", part, there)
        elif isinstance(value, (list, tuple)):
            for place, part in enumerate(value):
                if isinstance(part, str):
                    if not is_gap(part):
                        found[f"{name}={normalise_level(part.strip())}"] = 1.0
                else:
                    self._add_value(found, f"{name}.{place}", part, there)
        elif name in self.columns:
            there.add(name)
            column = self.columns[name]
            self._add[column.kind](found, column, value)
        else:
            self._add_unknown(found, name, value)

    # Entries of each kind.

    def _add_number(self, found: Features, column: RowColumn, value: Any) -> None:
        number: float | str | None
        if isinstance(value, str):
            number = self._parse_number(value, column.style)
        elif is_gap(value):
            number = None
        else:
            number = as_number(value)
            number = _STRANGE if number is None else number
        if isinstance(number, float) and math.isfinite(number):
            found[column.name] = number
            return
        found[column.name] = None
        count = self._counts[column.name]
        if number is None:
            count.missing += 1
        elif number == _STRANGE:
            count.note_strange(value)
        else:
            count.infinite += 1

    def _parse_number(self, text: str, style: str) -> float | str | None:
        """Return a text as a number; None if it is missing, ``_STRANGE`` if it is not a number."""
        bare = text.strip()
        if bare in MISSING or bare in BLANKS:
            return None
        number = parse_number(bare, style)
        return _STRANGE if number is None else number

    def _add_category(self, found: Features, column: RowColumn, value: Any) -> None:
        if is_gap(value):
            self._counts[column.name].missing += 1
            found[column.name] = MISSING_LEVEL
        else:
            found[column.name] = format_level(value)

    def _add_date(self, found: Features, column: RowColumn, value: Any) -> None:
        dates = self._dates[column.name]
        parts = dates.parts(value)
        if parts is not None:
            found.update(zip(dates.names, parts, strict=True))
        else:
            found[dates.names[0]] = None  # absent cycles count as zero, their mean
            count = self._counts[column.name]
            if is_gap(value) or (isinstance(value, str) and value.strip() in BLANKS):
                count.missing += 1
            else:
                count.note_strange(value)

    def first(self, features: Features) -> Features:
        """Return the features of the first row of an online estimator.

        The estimator centres the numbers of its first row at their running means, and uses the mean
        if a later row lacks them. It measures other numbers from zero. Number columns and the days
        of dates are to be centred. Cycles of dates have a mean near zero, and may hardly change in
        the first rows.
        """
        found: Features = {}
        cycles: set[str] = set()
        for name, column in self.columns.items():
            if column.kind == "number":
                found[name] = None
            elif column.kind == "date":
                days, *waves = self._dates[name].names
                found[days] = None
                cycles.update(waves)
        found.update({name: value for name, value in features.items() if name not in cycles})
        return found

    # Remarks.

    def remarks(self) -> list[str]:
        """Return sentences about what was done to the rows so far."""
        notes: list[str] = []
        dates = [describe_date(dates.plan) for dates in self._dates.values()]
        if dates:
            notes.append(f"Dates: {join_names(dates)}.")
        fills = {"category": "a level of their own"}
        filled = [
            f"{name} ({count.missing}, {fills.get(self.columns[name].kind, 'taken at the mean')})"
            for name, count in self._counts.items()
            if count.missing
        ]
        if filled:
            notes.append(f"Missing values: {join_names(filled)}.")
        left_out = [
            f"Left out: {column.name} ({column.reason})."
            for column in self.columns.values()
            if column.kind == "left out"
        ]
        return [*notes, *describe_unreadable(self._counts), *left_out]

    def check_readable(self, rows: int) -> None:
        """Raise if most entries of a column in ``rows`` rows cannot be read."""
        for name, count in self._counts.items():
            check_readable(name, self.columns[name].kind, count, rows)


class _Dates:
    """The numbers of the dates of a column, parsed many at a time.

    The phase of a cycle is shifted so that sine and cosine are equal at the first date. Otherwise,
    in a stream that advances in small steps, one of them would stay near zero for long, and its
    unit would grow with every row.
    """

    def __init__(self, column: RowColumn) -> None:
        self.plan: DateColumn = column.date
        self.names = [str(name) for name in self.plan.column_names]
        self._first = self.plan.encode_seconds(np.array([column.origin]))[0]
        self._known: dict[str, tuple[float, ...] | None] = {}

    def learn(self, entries: Iterable[Any]) -> None:
        """Parse and remember dates that are new."""
        import pandas as pd

        texts = [text for text in dict.fromkeys(map(_make_date_key, entries)) if text is not None]
        fresh = [text for text in texts if text not in self._known]
        if not fresh:
            return
        if len(self._known) + len(fresh) > MOST_TEXTS:
            self._known.clear()
            fresh = texts
        seconds = as_seconds(pd.Series(fresh, dtype="object"), self.plan.pattern)
        self._known.update(zip(fresh, self._encode_seconds(seconds), strict=True))

    def _encode_seconds(self, seconds: np.ndarray) -> list[tuple[float, ...] | None]:
        """Return the numbers of dates in seconds since 1970."""
        lost = np.isnan(seconds)
        matrix = self.plan.encode_seconds(np.where(lost, 0.0, seconds))
        for place in range(1, matrix.shape[1], 2):
            (sine, cosine), (own_sine, own_cosine) = (
                (part[..., place], part[..., place + 1]) for part in (matrix, self._first)
            )
            along = math.sqrt(0.5) * (cosine * own_cosine + sine * own_sine)
            ahead = math.sqrt(0.5) * (sine * own_cosine - cosine * own_sine)
            matrix[:, place], matrix[:, place + 1] = along + ahead, along - ahead
        return [
            None if gone else tuple(row) for row, gone in zip(matrix.tolist(), lost, strict=True)
        ]

    def parts(self, value: Any) -> tuple[float, ...] | None:
        """Return the numbers of a date; None if it is missing."""
        text = _make_date_key(value)
        if text is None:
            return None
        if text not in self._known:
            self._learn_value(value) if not isinstance(value, str) else self.learn([text])
        return self._known[text]

    def _learn_value(self, value: Any) -> None:
        """Convert and remember a date that is not a text."""
        import pandas as pd

        stamp = pd.to_datetime(pd.Series([value], dtype="object"), errors="coerce", utc=True)
        if len(self._known) >= MOST_TEXTS:
            self._known.clear()
        [parts] = self._encode_seconds(as_seconds(stamp, self.plan.pattern))
        self._known[_make_date_key(value) or ""] = parts


def _make_date_key(value: Any) -> str | None:
    """Return the key under which a date is remembered; None if it is missing."""
    if is_gap(value):
        return None
    return value.strip() if isinstance(value, str) else f"{type(value).__name__} {value}"


def feature_names(features: Features) -> Iterator[str]:
    """Yield the names that an online estimator gives to features."""
    for name, value in features.items():
        yield f"{name}={value}" if isinstance(value, str) else name


def as_number(value: Any) -> float | None:
    """Return a value as a number, infinite if it is too large; None if it is not a number."""
    if not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return math.inf
    return number if abs(number) <= LARGEST else math.inf


def _get_text(row: Mapping[str, Any], name: str) -> Any:
    """Return the text under a name, perhaps that of a nested mapping; None for anything else."""
    found: Any = row.get(name)
    if found is None and "." in name:
        found = row
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else None


def _make_picker(places: list[int]) -> Callable[[Sequence[str]], Sequence[str]]:
    """Return a function that picks the entries at some places."""
    if not places:
        return lambda entries: ()
    if len(places) == 1:
        return lambda entries: (entries[places[0]],)
    return itemgetter(*places)
