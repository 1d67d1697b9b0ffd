"""Rows from lines of text: CSV, TSV and JSON lines."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from mixnorm.exceptions import TableError
from mixnorm.tables import sniff
from mixnorm.tables.lines import Lines
from mixnorm.tables.marks import Mark, detect_common_mark, detect_text_mark
from mixnorm.tables.read import SEPARATOR
from mixnorm.tables.rows.columns import RowColumn, adapt_columns, decide_columns, values_by_name
from mixnorm.tables.rows.encoder import RowEncoder, as_number
from mixnorm.tables.rows.records import MOST_LINES, BadRecord, csv_entries, format_of, json_object
from mixnorm.tables.table import (
    describe_renamed,
    find_repeated_names,
    make_names_unique,
    number_columns,
)
from mixnorm.tables.target import Task, find_name
from mixnorm.tables.values import format_level, normalise_level, parse_number
from mixnorm.tables.words import pluralize

# Names that a message may list.
_MOST_NAMES = 100
# Malformed rows whose line and reason are remembered.
_MOST_BAD = 5


class Row(NamedTuple):
    """A row.

    Parameters
    ----------
    line : int
        Its last line in the source, counted from 1.
    label : str, float or None
        The target; None where it is missing.
    entries : list or dict
        The row as it was read: texts in the order of the columns, or an object of JSON.
    """

    line: int
    label: Any
    entries: Any


class BadRow(NamedTuple):
    """A row that could not be read: its line, and why."""

    line: int
    reason: str


class RowReader:
    r"""Reads rows as they come, from a file or a pipe.

    Parameters
    ----------
    source : path-like
        A CSV or TSV file with a header, or JSON lines (an object in each); ``"-"`` for standard
        input.
    target : str, optional
        The column to predict.
    task : {"classification", "regression"}
        Whether targets are labels, which are texts, or numbers.
    file_format : {"csv", "tsv", "jsonl"}, optional
        None tells it from the name or the first lines.
    delimiter : str, optional
        None tells it from the first lines.
    header : bool, optional
        Whether the first row holds names. None says yes unless it holds only numbers.
    drop, categories, numbers : collection of str
        Columns to leave out, and columns of categories or numbers whatever they look like.
    known : sequence of str, optional
        The columns of what was read before: a first row without any of their names is no header,
        and columns to leave out may be missing.
    needs_target : bool
        Whether a table without the target is an error.
    strict : bool
        Raise on a row that cannot be read, instead of leaving it out.
    waiting : callable, optional
        Returns the context in which the source is waited for.

    Attributes
    ----------
    columns : tuple of str
        The names of all columns; empty for JSON lines.
    kind : {"csv", "tsv", "jsonl"}
        The format.
    n_bad, bad : int, list of BadRow
        How many rows could not be read, and the first of them.
    has_target : bool
        Whether there is the target, in the header or in a row of JSON lines.
    stopped : bool
        Whether a row that cannot be read was raised for.
    is_last : bool
        Whether the rows taken last are a single row, the end of the source, whose line has no end:
        it may be half a row. Half an object of JSON cannot be read.
    before_last : tuple of int, str
        How many lines there are before that row, and their fingerprint.
    unfinished : BadRow or None
        The end of the source, where its line has no end and cannot be read. It is not taken.
    notes : list of str
        What was found out or done on reading, one sentence each.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cars.csv"
    >>> _ = path.write_text("class;power;fuel\nvan;90;gas\nbus;?;oil\n")
    >>> with RowReader(path, "class") as reader:
    ...     rows, rest = reader.take(100), reader.take(100)
    >>> for row in rows:
    ...     print(row.line, row.label, row.entries)
    2 van ['van', '90', 'gas']
    3 bus ['bus', '?', 'oil']
    >>> rest is None
    True
    >>> columns = reader.decide([row.entries for row in rows])
    >>> reader.encoder(columns).encode([row.entries for row in rows])
    [{'power': 90.0, 'fuel': 'gas'}, {'power': None, 'fuel': 'oil'}]
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        target: str | None = None,
        *,
        task: Task = "classification",
        file_format: str | None = None,
        delimiter: str | None = None,
        header: bool | None = None,
        drop: Collection[str] = (),
        categories: Collection[str] = (),
        numbers: Collection[str] = (),
        known: Sequence[str] | None = None,
        needs_target: bool = True,
        strict: bool = False,
        waiting: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self.lines = Lines(source, waiting=waiting)
        self.name, self.target, self.task, self.strict = self.lines.name, target, task, strict
        self.columns: tuple[str, ...] = ()
        self.n_bad, self.bad, self.notes = 0, list[BadRow](), list[str]()
        self.stopped = False
        self._drop, self._categories, self._forced = set(drop), set(categories), set(numbers)
        self.has_target = False
        self._names_seen: dict[str, None] = {}
        self._style: str | None = None  # of JSON: texts are texts
        self._mark: Mark = ""
        self._repeated: tuple[str, ...] = ()
        self._over = False
        self.unfinished: BadRow | None = None
        self.is_last, self.before_last = False, (0, "")
        try:
            self.kind = format_of(self.lines, file_format, str(source))
            lined = self.kind == "jsonl"
            self._row_at = self._object if lined else self._record
            self._entries_at = self._object_entries if lined else self._record_entries
            if self.kind != "jsonl":
                self._begin(delimiter, header, known, needs_target)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> RowReader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.lines.close()

    def take(self, most: int) -> list[Row] | None:
        """Return rows that are there, at most so many; waits for some, None at the end.

        A last line without an end comes alone, and ``is_last`` is true then.

        Raises
        ------
        TableError
            If ``strict`` and the next row cannot be read; it is not taken.
        """
        lines = self.lines
        if self._over or not lines.fill(1):
            return None
        rows: list[Row] = []
        done, first = 0, lines.taken
        while done < len(lines.ahead) and len(rows) < most:
            reason = ""
            try:
                found, used = self._row_at(done)
            except BadRecord as bad:
                if self.strict and rows:
                    break
                found, used, reason = None, bad.used, str(bad)
            if used == 0:  # it goes on in lines that are not there
                if done:
                    break
                lines.fill(len(lines.ahead) + 1)
                continue
            if lines.unfinished and done + used == len(lines.ahead):
                if done:
                    break
                self._end(first + used, found, reason)
                if found is None:
                    return None
            elif reason:
                self._note_bad(first + done + 1, reason)
            done += used
            if found is not None:
                rows.append(Row(first + done, *found))
        lines.take(done)
        return rows

    def _end(self, line: int, found: Any, reason: str) -> None:
        """Note what the last line is, which has no end."""
        if reason and self.strict:
            self._note_bad(line, reason)
        self.before_last = (self.lines.taken, self.lines.digest)
        self._over, self.is_last = True, found is not None and self.kind != "jsonl"
        if reason:
            self.unfinished = BadRow(line, reason)

    def decide(
        self, rows: Sequence[Any], *, earlier: Iterable[RowColumn] = (), keep_keys: bool = False
    ) -> tuple[RowColumn, ...]:
        """Return what the columns are, from the entries of the first rows.

        Parameters
        ----------
        rows : sequence of lists or dicts
            Entries of rows.
        earlier : iterable of RowColumn
            What was decided from fewer rows.
        keep_keys : bool
            Whether columns of ever new texts are categories too.
        """
        return decide_columns(
            values_by_name(rows, self.columns, self._left_out),
            numbers=self._forced,
            categories=self._categories,
            keep_keys=keep_keys,
            earlier=earlier,
        )

    def adapted(self, columns: Iterable[RowColumn], rows: Sequence[Any]) -> tuple[RowColumn, ...]:
        """Return columns that are known as the source writes their numbers, from some of its rows.

        It may have decimal commas where what was read before had points, or the other way round.
        """
        return adapt_columns(columns, values_by_name(rows, self.columns, self._left_out))

    def first_entries(self) -> list[Any]:
        """Return the entries of rows that were read and not taken, those that can be read."""
        found, place = list[Any](), 0
        while place < min(len(self.lines.ahead), MOST_LINES):
            try:
                entries, used = self._entries_at(place)
            except BadRecord as bad:
                entries, used = None, bad.used
            if used == 0:
                break
            found += [] if entries is None else [entries]
            place += used
        return found

    def encoder(self, columns: Iterable[RowColumn]) -> RowEncoder:
        """Return what makes features of the entries of rows, given what the columns are."""
        known = {name: RowColumn(name, "category") for name in sorted(self._categories)}
        known.update({column.name: column for column in columns})
        return RowEncoder(
            known.values(),
            header=self.columns,
            drop=self._left_out,
            style=self._style,
            complete=bool(self.columns),
        )

    @property
    def _left_out(self) -> set[str]:
        return self._drop if self.target is None else {*self._drop, self.target}

    def entry(self, row: Row, name: str) -> str:
        """Return an entry of a row as it was read; empty where it has none."""
        if self.kind != "jsonl":
            return str(row.entries[self.columns.index(name)])
        found = row.entries.get(name)
        if found is None or isinstance(found, str):
            return found or ""
        return json.dumps(found, ensure_ascii=False)

    def check_target(self) -> None:
        """Raise if no row so far has the target, nor any other value under its name."""
        if self.target is not None and not self.has_target:
            find_name(tuple(self._names_seen), self.target, self.name)

    def _note_bad(self, line: int, reason: str) -> None:
        if self.strict:
            self.stopped = True
            raise TableError(f"{self.name}, line {line}: {reason}.")
        self.n_bad += 1
        if len(self.bad) < _MOST_BAD:
            self.bad.append(BadRow(line, reason))

    # What the source is.

    def _begin(
        self,
        delimiter: str | None,
        header: bool | None,
        known: Sequence[str] | None,
        needs_target: bool,
    ) -> None:
        """Read the header, and lay out what is done with each column."""
        lines = self.lines
        while lines.fill(1) and not lines.ahead[0].strip():
            lines.take(1)
        told = SEPARATOR.match(lines.ahead[0] + b"\n")
        if told:
            delimiter = told[1].decode()
            lines.take(1)
            lines.fill(2)
        text = sniff.decode_head(b"\n".join(lines.ahead)[: sniff.HEAD_BYTES], self.name)
        if delimiter is None:
            delimiter = "\t" if self.kind == "tsv" else sniff.detect_delimiter(text)
        self.delimiter = delimiter
        names, length = self._first_names()
        if header is None and known:
            header = bool(set(names) & set(known))
        elif header is None:
            expect = [] if self.target is None else [self.target]
            header = sniff.has_header(text, delimiter, expect)
        if header:
            lines.take(length)
            self._repeated = find_repeated_names(names)
            names, renamed = make_names_unique(names)
            self.notes += describe_renamed(renamed)
        elif known and len(known) == len(names):
            self.notes.append("The first row holds no names, so columns are those learned before.")
            names = list(known)
        else:
            self.notes.append(
                "The first row holds only numbers, so it is taken as data; columns are called "
                "column_1, column_2, ..."
            )
            names = number_columns(len(names))
        self.columns = tuple(names)
        if known is not None:
            self._drop &= set(names)
            self._categories &= set(names)
            self._forced &= set(names)
        if not needs_target and self.target not in names:
            self.target = None
        self._lay_out()

    def _first_names(self) -> tuple[list[str], int]:
        """Return the entries of the first row, and how many lines it has."""
        try:
            entries, used = csv_entries(self.lines, 0, self.delimiter)
            while not used:
                self.lines.fill(len(self.lines.ahead) + 1)
                entries, used = csv_entries(self.lines, 0, self.delimiter)
        except BadRecord as bad:
            raise TableError(f"{self.name} is no table: in line 1, {bad}.") from bad
        names = [name.strip() for name in entries or ()]
        if any("\r" in name for name in names) and not self.lines.ahead[0].count(b'"'):
            raise TableError(
                f"{self.name} has lines that end with carriage returns alone; turn them into line "
                "feeds (tr '\\r' '\\n'), or use mixnorm fit."
            )
        return names, used

    def _lay_out(self) -> None:
        """Note which columns are read, and how."""
        names = self.columns
        self._drop = set(map(self._find, self._drop))
        self._categories = set(map(self._find, self._categories))
        self._forced = set(map(self._find, self._forced))
        self._place: int | None = None
        if self.target is not None:
            self.target = self._find(self.target)
            self._place, self.has_target = names.index(self.target), True
        texts = values_by_name(self.first_entries(), names, ())
        self._mark = detect_common_mark(texts.values())
        commas = self._mark == "," or (not self._mark and self.delimiter != ",")
        self._style = "comma" if commas else "thousands"

    def _find(self, name: str) -> str:
        return find_name(self.columns, name, self.name, self._repeated)

    # CSV.

    def _record(self, place: int) -> tuple[Any, int]:
        """Return the parts of the row that begins in a line ahead, and how many lines it has.

        None for an empty line; no lines at all if it goes on beyond those that are there.
        """
        entries, used = self._record_entries(place)
        if entries is None:
            return None, used
        label = None if self._place is None else self._label(entries[self._place], used)
        return (label, entries), used

    def _record_entries(self, place: int) -> tuple[list[str] | None, int]:
        """Return the entries of a row, as many as the header has, and how many lines it has."""
        entries, used = csv_entries(self.lines, place, self.delimiter)
        if entries is not None and len(entries) != len(self.columns):
            count = pluralize(len(entries), "entry", "entries")
            raise BadRecord(
                f"{count} where the header has {len(self.columns)} (delimiter {self.delimiter!r})",
                used,
            )
        return entries, used

    def _label(self, text: str, used: int = 1) -> str | float | None:
        """Return a target; None where it is missing."""
        bare = text.strip()
        if bare in sniff.MISSING_MARKS:
            return None
        if self.task == "regression":
            number = parse_number(bare, self._style_of(bare))
            if number is None or not math.isfinite(number):
                raise BadRecord(f"the target {bare[:40]!r} is no number", used)
            return number
        return normalise_level(bare)

    def _style_of(self, text: str) -> str:
        """Return how a target is written as a number."""
        if self._style is None:
            return "plain"
        self._mark = self._mark or detect_text_mark(text)
        if self._mark or self.delimiter == ",":
            return "comma" if self._mark == "," else "thousands"
        return "plain" if "." in text else "comma"  # the likelier one, until some text proves it

    # JSON lines.

    def _object_entries(self, place: int) -> tuple[dict[str, Any] | None, int]:
        """Return the object in a line ahead; None for an empty line."""
        line = self.lines.ahead[place]
        return (json_object(line) if line.strip() else None), 1

    def _object(self, place: int) -> tuple[Any, int]:
        """Return the parts of the row in a line ahead; None for an empty line."""
        entries, _ = self._object_entries(place)
        if entries is None:
            return None, 1
        label = None
        if self.target is not None:
            label = self._stored_label(entries.get(self.target))
            if self.target in entries:
                self.has_target = True
            elif not self.has_target and len(self._names_seen) < _MOST_NAMES:
                self._names_seen.update(dict.fromkeys(entries))
        return (label, entries), 1

    def _stored_label(self, value: Any) -> str | float | None:
        """Return a target that is no text, or is one."""
        if value is None or value != value:
            return None
        if isinstance(value, str):
            return self._label(value)
        number = as_number(value)
        bad = number is None or not math.isfinite(number)
        if isinstance(value, (dict, list)) or (bad and self.task == "regression"):
            raise BadRecord(f"the target {str(value)[:40]!r} is no number or text")
        return format_level(value) if self.task == "classification" else number
