"""Features of single rows: entries of a stream in, numbers by name out."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from operator import itemgetter
from typing import Any

import numpy as np

from mixnorm.exceptions import TableError
from mixnorm.tables.columns import MISSING_LEVEL, DateColumn, Gaps
from mixnorm.tables.encoder import describe_date, describe_strange, explain_unreadable
from mixnorm.tables.rows.columns import MISSING, RowColumn, is_gap
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

# Values by name: numbers, texts of categories, None where a number is missing.
Features = dict[str, float | str | None]
_STRANGE = "strange"  # what a text that is no number is remembered as


class RowEncoder:
    """Turns rows into features by name, each row on its own.

    A number stands under the column's name, with None where it is missing. A category is a text
    under that name, which is ``(missing)`` where it is missing; online estimators make a feature
    ``column=text`` of it. A date is several numbers, as in :class:`~mixnorm.tables.DateColumn`;
    where it is missing, only its days are there, as None.
    Entries of columns whose kind is not known are numbers, or categories; where they are missing
    there is nothing.

    Parameters
    ----------
    columns : iterable of RowColumn
        What the columns are.
    header : sequence of str
        The names of the entries, for rows that are lists of texts.
    drop : collection of str
        Columns to leave out.
    style : {"thousands", "comma"}, optional
        How numbers may be written in a column whose kind is not known; None takes texts there as
        categories.
    complete : bool
        Whether a column that a row does not have is missing in it. Otherwise it just is not there,
        as words that are not in a text.

    Attributes
    ----------
    columns : dict of str to RowColumn
        What the columns are, by name.

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
        header: Sequence[str] = (),
        drop: Collection[str] = (),
        style: str | None = None,
        complete: bool = False,
    ) -> None:
        self.columns = {column.name: column for column in columns}
        self._drop, self._style, self._complete = set(drop), style, complete
        self._counts: dict[str, Gaps] = {}
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
        """Note which entries of a list are plain numbers, and which are not."""
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
        self._pick = _picker(plain)
        self._absent = [column for name, column in self.columns.items() if name not in self._header]

    def encode(self, rows: Sequence[Any]) -> list[Features]:
        """Return the features of rows.

        Parameters
        ----------
        rows : sequence of lists or mappings
            Texts in the order of the header; or values by name: numbers, truth values, texts,
            dates, lists and mappings of them, None where one is missing. What is in a mapping is
            called ``outer.inner``; the texts of a list are the categories ``name=text``, its other
            entries are called ``name.0``, ``name.1``, ...
        """
        for name, dates in self._dates.items():
            dates.learn(self._entries(rows, name))
        return [
            self._of_texts(row) if isinstance(row, list) else self._of_values(row) for row in rows
        ]

    def _entries(self, rows: Sequence[Any], name: str) -> list[Any]:
        """Return the entries of a column, those that can be found without much ado."""
        if self._header:
            place = self._header.index(name) if name in self._header else None
            return [] if place is None else [row[place] for row in rows]
        return [_leaf(row, name) for row in rows]

    # Rows of texts.

    def _of_texts(self, texts: list[str]) -> Features:
        picked = self._pick(texts)
        found: Features
        try:
            numbers = list(map(float, picked))
            # Finite sums are of finite numbers; "1_000" is one for Python alone.
            if not abs(sum(numbers)) <= LARGEST or not _is_plain("".join(picked)):
                raise ValueError
            found = dict(zip(self._plain, numbers, strict=True))
        except ValueError:
            found = {}
            for name, text in zip(self._plain, picked, strict=True):
                self._add_number(found, self.columns[name], text)
        for place, name, column in self._others:
            if column is None:
                self._add_unknown_text(found, name, texts[place])
            else:
                self._add[column.kind](found, column, texts[place])
        if self._complete:
            for column in self._absent:
                self._add[column.kind](found, column, None)
        return found

    def _add_unknown_text(self, found: Features, name: str, text: str) -> None:
        """Add an entry that may be anything, by itself."""
        bare = text.strip()
        if bare in MISSING:
            return
        number = None if self._style is None else self._number(bare, self._style)
        if isinstance(number, float):
            if math.isfinite(number):
                found[name] = number
        else:
            found[name] = normalise_level(bare)

    # Rows of values.

    def _of_values(self, row: Mapping[str, Any]) -> Features:
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
        """Add what a value of any kind stands for."""
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
        elif isinstance(value, str) and self._style is not None:
            self._add_unknown_text(found, name, value)
        else:
            _add_unknown(found, name, value)

    # Entries of each kind.

    def _add_number(self, found: Features, column: RowColumn, value: Any) -> None:
        number: float | str | None
        if isinstance(value, str):
            number = self._number(value, column.style)
        else:
            number = None if is_gap(value) else as_number(value)
            if number is None and not is_gap(value):
                number = _STRANGE
        if isinstance(number, float) and math.isfinite(number):
            found[column.name] = number
            return
        found[column.name] = None
        count = self._count(column.name)
        if number is None:
            count.missing += 1
        elif number == _STRANGE:
            count.note_strange(value)
        else:
            count.infinite += 1

    def _number(self, text: str, style: str) -> float | str | None:
        """Return what a text stands for among numbers; None where it is missing."""
        bare = text.strip()
        if bare in MISSING or bare in BLANKS:
            return None
        number = parse_number(bare, style)
        return _STRANGE if number is None else number

    def _add_category(self, found: Features, column: RowColumn, value: Any) -> None:
        if is_gap(value):
            self._count(column.name).missing += 1
            found[column.name] = MISSING_LEVEL
        else:
            found[column.name] = format_level(value)

    def _add_date(self, found: Features, column: RowColumn, value: Any) -> None:
        dates = self._dates[column.name]
        parts = dates.parts(value)
        if parts is not None:
            found.update(zip(dates.names, parts, strict=True))
        else:
            found[dates.names[0]] = None  # cycles are zero, their mean
            count = self._count(column.name)
            if is_gap(value) or (isinstance(value, str) and value.strip() in BLANKS):
                count.missing += 1
            else:
                count.note_strange(value)

    def _count(self, name: str) -> Gaps:
        return self._counts.setdefault(name, Gaps())

    def first(self, features: Features) -> Features:
        """Return features as an online estimator is to have them of its first row.

        It measures the numbers of that row from their running means, and takes them at these where
        a later row lacks them; other numbers from zero. The former are those of columns of numbers
        and the days of dates. The cycles of a date lie around zero by themselves, and may hardly
        change at first.
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

    # What to tell.

    def remarks(self) -> list[str]:
        """Return in sentences what was done to the rows so far."""
        said: list[str] = []
        dates = [describe_date(dates.plan) for dates in self._dates.values()]
        if dates:
            said.append(f"Dates: {join_names(dates)}.")
        filled = [
            f"{name} ({count.missing}, {self._filled(name)})"
            for name, count in self._counts.items()
            if count.missing
        ]
        if filled:
            said.append(f"Missing values: {join_names(filled)}.")
        for name, count in self._counts.items():
            if count.strange or count.infinite:
                said.append(f"Taken as missing in {name}: {describe_strange(count)}.")
        return said + self.left_out()

    def check_readable(self, rows: int) -> None:
        """Raise if most entries of a column, of so many rows, cannot be read."""
        for name, count in self._counts.items():
            why = explain_unreadable(name, self.columns[name].kind, count, rows)
            if why:
                raise TableError(why)

    def left_out(self) -> list[str]:
        """Return in sentences which columns are left out."""
        return [
            f"Left out: {column.name} ({column.reason})."
            for column in self.columns.values()
            if column.kind == "left out"
        ]

    def _filled(self, name: str) -> str:
        kind = self.columns[name].kind
        return "a level of their own" if kind == "category" else "taken at the mean"


class _Dates:
    """Numbers of the dates of a column, which are read many at once.

    Cycles are turned so that sine and cosine are alike at the first date. In a stream that goes on
    in small steps, one of them would else be near zero for long, and its unit would grow with every
    row.
    """

    def __init__(self, column: RowColumn) -> None:
        self.plan: DateColumn = column.date
        self.names = [str(name) for name in self.plan.column_names]
        self._first = self.plan.encode_seconds(np.array([column.origin]))[0]
        self._known: dict[str, tuple[float, ...] | None] = {}

    def learn(self, entries: Iterable[Any]) -> None:
        """Read dates that are not known."""
        import pandas as pd

        texts = [text for text in dict.fromkeys(map(_date_text, entries)) if text is not None]
        fresh = [text for text in texts if text not in self._known]
        if not fresh:
            return
        if len(self._known) + len(fresh) > MOST_TEXTS:
            self._known.clear()
            fresh = texts
        seconds = as_seconds(pd.Series(fresh, dtype="object"), self.plan.pattern)
        for text, parts in zip(fresh, self._measured(seconds), strict=True):
            self._known[text] = parts

    def _measured(self, seconds: np.ndarray) -> list[tuple[float, ...] | None]:
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
        """Return the numbers of a date; None where it is missing."""
        text = _date_text(value)
        if text is None:
            return None
        if text not in self._known:
            self._stored(value) if not isinstance(value, str) else self.learn([text])
        return self._known[text]

    def _stored(self, value: Any) -> None:
        """Read a date that is no text."""
        import pandas as pd

        stamp = pd.to_datetime(pd.Series([value], dtype="object"), errors="coerce", utc=True)
        if len(self._known) >= MOST_TEXTS:
            self._known.clear()
        [parts] = self._measured(as_seconds(stamp, self.plan.pattern))
        self._known[_date_text(value) or ""] = parts


def _date_text(value: Any) -> str | None:
    """Return what a date is remembered by; None where it is missing."""
    if is_gap(value):
        return None
    return value.strip() if isinstance(value, str) else f"{type(value).__name__} {value}"


def _add_unknown(found: Features, name: str, value: Any) -> None:
    """Add a value that may be anything, by itself."""
    if is_gap(value):
        return
    if isinstance(value, str):
        found[name] = normalise_level(value.strip())
        return
    number = as_number(value)
    if number is not None and math.isfinite(number):
        found[name] = number


def feature_names(features: Features) -> Iterator[str]:
    """Yield the names that an online estimator gives to features."""
    for name, value in features.items():
        yield f"{name}={value}" if isinstance(value, str) else name


def as_number(value: Any) -> float | None:
    """Return a value as a number, an infinite one where it is too large; None if it is none."""
    if not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return math.inf
    return number if abs(number) <= LARGEST else math.inf


def _leaf(row: Mapping[str, Any], name: str) -> Any:
    """Return the value under a name; None where there is no text."""
    found: Any = row.get(name)
    if found is None and "." in name:
        found = row
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else None


def _is_plain(text: str) -> bool:
    return text.isascii() and "_" not in text


def _picker(places: list[int]) -> Callable[[Sequence[str]], Sequence[str]]:
    """Return what picks the entries at some places."""
    if not places:
        return lambda entries: ()
    if len(places) == 1:
        return lambda entries: (entries[places[0]],)
    return itemgetter(*places)
