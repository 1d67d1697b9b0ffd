"""Rows from lines of text: CSV, TSV and JSON lines."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, NamedTuple

from mixnorm.exceptions import TableError
from mixnorm.tables import sniff
from mixnorm.tables.lines import Lines
from mixnorm.tables.marks import Mark, detect_common_mark, detect_text_mark
from mixnorm.tables.read import SEPARATOR
from mixnorm.tables.rows.columns import (
    DECIDED_AT,
    RowColumn,
    adapt_columns,
    decide_columns,
    values_by_name,
)
from mixnorm.tables.rows.encoder import RowEncoder, as_number
from mixnorm.tables.rows.records import (
    MOST_LINES,
    BadRecord,
    detect_row_format,
    parse_csv_row,
    parse_json_object,
)
from mixnorm.tables.table import (
    find_repeated_names,
    make_names_unique,
    number_columns,
)
from mixnorm.tables.target import Task, find_name
from mixnorm.tables.values import format_level, normalise_level, parse_number
from mixnorm.tables.words import pluralize

# Most names that are remembered for a message.
_MOST_NAMES = 100
# Most unreadable rows whose line and reason are remembered.
_MOST_BAD = 5


class Row(NamedTuple):
    """A row.

    Parameters
    ----------
    line : int
        The number of its last line in the source, from 1.
    label : str, float or None
        The target; None if it is missing.
    entries : list or dict
        The row as it was read: texts in the order of the columns, or a JSON object.
    """

    line: int
    label: Any
    entries: Any


class BadRow(NamedTuple):
    """A row that cannot be read: its line and the reason."""

    line: int
    reason: str


class RowReader(AbstractContextManager["RowReader"]):
    r"""A reader of rows from a file or a pipe, as they arrive.

    Parameters
    ----------
    source : path-like
        A CSV or TSV file, or JSON lines with an object in each; ``"-"`` for standard input.
    target : str, optional
        The column to predict.
    task : {"classification", "regression"}
        Whether targets are labels, which are texts, or numbers.
    file_format : {"csv", "tsv", "jsonl"}, optional
        None detects it from the name or the first lines.
    delimiter : str, optional
        None detects it from the first lines.
    header : bool, optional
        Whether the first row holds names. None means yes unless it holds only numbers.
    drop, categories, numbers : collection of str
        Columns to leave out, and columns to read as categories or numbers whatever they look like.
    known : sequence of str, optional
        The columns of an earlier source. A first row without any of their names is not a header,
        and columns to leave out may be missing.
    needs_target : bool
        Whether a table without the target is an error.
    strict : bool
        Raise on a row that cannot be read, instead of leaving it out.
    waiting : callable, optional
        Returns the context manager in which to wait for the source.

    Attributes
    ----------
    columns : tuple of str
        The names of all columns; empty for JSON lines.
    kind : {"csv", "tsv", "jsonl"}
        The format.
    n_bad, bad : int, list of BadRow
        Number of rows that cannot be read, and the first of them.
    has_target : bool
        Whether the target is in the header, or in some row of JSON lines.
    stopped : bool
        Whether an error was raised for a row that cannot be read.
    is_last : bool
        Whether the rows taken last are a single row, whose line ends the source without a line
        break. It may be half a row. (Half a JSON object cannot be read.)
    before_last : tuple of int, str
        The number of lines before that row, and their checksum.
    unfinished : BadRow or None
        The last line, if it has no line break and cannot be read. It is not taken.
    notes : list of str
        Findings and changes made on reading, one sentence each.

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

    #: Numbers of rows after which kinds are decided; the last decision is final.
    decided_at: ClassVar[tuple[int, ...]] = DECIDED_AT

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
        self._style: str | None = None  # JSON lines: texts are never numbers
        self._mark: Mark = ""
        self._place: int | None = None  # of the target among the columns
        self._repeated: tuple[str, ...] = ()
        self._over = False
        self.unfinished: BadRow | None = None
        self.is_last, self.before_last = False, (0, "")
        try:
            self.kind = detect_row_format(self.lines, file_format, str(source))
            if self.kind != "jsonl":
                self._read_header(delimiter, header, known, needs_target)
        except BaseException:
            self.close()
            raise

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.lines.close()

    def take(self, most: int) -> list[Row] | None:
        """Wait for rows and return up to ``most`` of them; None at the end of the source.

        A last line without a line break is returned alone, with ``is_last`` true.

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
                found, used = self._read_row(done)
            except BadRecord as bad:
                if self.strict and rows:
                    break
                found, used, reason = None, bad.used, str(bad)
            if used == 0:  # it continues in lines that are not yet there
                if done:
                    break
                lines.fill(len(lines.ahead) + 1)
                continue
            if lines.unfinished and done + used == len(lines.ahead):
                if done:
                    break
                self._note_last_row(first + used, found, reason)
                if found is None:
                    return None
            elif reason:
                self._note_bad(first + done + 1, reason)
            done += used
            if found is not None:
                rows.append(Row(first + done, *found))
        lines.take(done)
        return rows

    def _note_last_row(self, line: int, found: Any, reason: str) -> None:
        """Note whether the last line, which has no line break, is a row."""
        if reason and self.strict:
            self._note_bad(line, reason)
        self.before_last = (self.lines.taken, self.lines.digest)
        self._over, self.is_last = True, found is not None and self.kind != "jsonl"
        if reason:
            self.unfinished = BadRow(line, reason)

    def decide(
        self, rows: Sequence[Any], *, earlier: Iterable[RowColumn] = (), keep_keys: bool = False
    ) -> tuple[RowColumn, ...]:
        """Decide the kinds of the columns from the entries of the first rows.

        Parameters
        ----------
        rows : sequence of lists or dicts
            Entries of rows.
        earlier : iterable of RowColumn
            The decisions from fewer rows.
        keep_keys : bool
            Whether columns of names or keys are categories too.
        """
        return decide_columns(
            values_by_name(rows, self.columns, self._left_out),
            numbers=self._forced,
            categories=self._categories,
            keep_keys=keep_keys,
            earlier=earlier,
        )

    def adapt(self, columns: Iterable[RowColumn], rows: Sequence[Any]) -> tuple[RowColumn, ...]:
        """Return known columns in the number style of this source, shown by some of its rows.

        The source may have decimal commas where the earlier one had points, or the reverse.
        """
        return adapt_columns(columns, values_by_name(rows, self.columns, self._left_out))

    def first_entries(self) -> list[Any]:
        """Return the entries of the readable rows that are ahead and not taken."""
        found, place = list[Any](), 0
        while place < min(len(self.lines.ahead), MOST_LINES):
            try:
                entries, used = self._read_entries(place)
            except BadRecord as bad:
                entries, used = None, bad.used
            if used == 0:
                break
            found += [] if entries is None else [entries]
            place += used
        return found

    def encoder(self, columns: Iterable[RowColumn]) -> RowEncoder:
        """Return an encoder of rows, given the kinds of the columns."""
        return RowEncoder(
            columns,
            categories=sorted(self._categories),
            header=self.columns,
            drop=self._left_out,
            style=self._style,
            complete=bool(self.columns),
        )

    @property
    def _left_out(self) -> set[str]:
        return self._drop if self.target is None else {*self._drop, self.target}

    def entry(self, row: Row, name: str) -> str:
        """Return an entry of a row as it was read; empty if the row does not have it."""
        if self.kind != "jsonl":
            return str(row.entries[self.columns.index(name)])
        found = row.entries.get(name)
        if found is None or isinstance(found, str):
            return found or ""
        return json.dumps(found, ensure_ascii=False)

    def describe_bad_rows(self) -> list[str]:
        """Return a sentence about the rows that cannot be read, if there are any."""
        if not self.bad:
            return []
        shown = ", ".join(str(bad.line) for bad in self.bad)
        shown += ", ..." if self.n_bad > len(self.bad) else ""
        lines = f"lines {shown}; " if self.n_bad > 1 else ""
        first = f"{lines}line {self.bad[0].line}: {self.bad[0].reason}"
        return [f"Unreadable and left out: {pluralize(self.n_bad, 'row')} ({first})."]

    def check_target(self) -> None:
        """Raise if the target has not occurred in the source so far."""
        if self.target is not None and not self.has_target:
            find_name(tuple(self._names_seen), self.target, self.name)

    def _note_bad(self, line: int, reason: str) -> None:
        if self.strict:
            self.stopped = True
            raise TableError(f"{self.name}, line {line}: {reason}.")
        self.n_bad += 1
        if len(self.bad) < _MOST_BAD:
            self.bad.append(BadRow(line, reason))

    # The header.

    def _read_header(
        self,
        delimiter: str | None,
        header: bool | None,
        known: Sequence[str] | None,
        needs_target: bool,
    ) -> None:
        """Read the header, and resolve the names of columns."""
        lines = self.lines
        while lines.fill(1) and not lines.ahead[0].strip():
            lines.take(1)
        named = SEPARATOR.match(lines.ahead[0] + b"\n")
        if named:
            delimiter = named[1].decode()
            lines.take(1)
            lines.fill(2)
        text = sniff.decode_head(b"\n".join(lines.ahead)[: sniff.HEAD_BYTES], self.name)
        if delimiter is None:
            delimiter = "\t" if self.kind == "tsv" else sniff.detect_delimiter(text)
        self.delimiter = delimiter
        names, length = self._parse_first_row()
        if header is None and known:
            header = bool(set(names) & set(known))
        elif header is None:
            expect = [] if self.target is None else [self.target]
            header = sniff.has_header(text, delimiter, expect)
        if header:
            lines.take(length)
            self._repeated = find_repeated_names(names)
            names, renamed = make_names_unique(names)
            self.notes += renamed
        elif known and len(known) == len(names):
            self.notes.append("The first row holds no names, so columns keep their earlier names.")
            names = list(known)
        else:
            self.notes.append(sniff.NO_HEADER_MESSAGE)
            names = number_columns(len(names))
        self.columns = tuple(names)
        if known is not None:
            for given in (self._drop, self._categories, self._forced):
                given.intersection_update(names)
        if not needs_target and self.target not in names:
            self.target = None
        self._resolve_names()

    def _parse_first_row(self) -> tuple[list[str], int]:
        """Return the entries of the first row, and its number of lines."""
        try:
            while not (first := parse_csv_row(self.lines, 0, self.delimiter))[1]:
                self.lines.fill(len(self.lines.ahead) + 1)
        except BadRecord as bad:
            raise TableError(f"{self.name} is not a table: in line 1, {bad}.") from bad
        entries, used = first
        names = [name.strip() for name in entries or ()]
        if any("\r" in name for name in names) and not self.lines.ahead[0].count(b'"'):
            raise TableError(
                f"{self.name} has lines that end with a carriage return alone; convert them to "
                "line feeds (tr '\\r' '\\n'), or use mixnorm fit."
            )
        return names, used

    def _resolve_names(self) -> None:
        """Replace names given by the user by those of the header, and detect the number style."""

        def find(name: str) -> str:
            return find_name(self.columns, name, self.name, self._repeated)

        self._drop, self._categories, self._forced = (
            set(map(find, given)) for given in (self._drop, self._categories, self._forced)
        )
        if self.target is not None:
            self.target = find(self.target)
            self._place, self.has_target = self.columns.index(self.target), True
        texts = values_by_name(self.first_entries(), self.columns, ())
        self._mark = detect_common_mark(texts.values())
        commas = self._mark == "," or (not self._mark and self.delimiter != ",")
        self._style = "comma" if commas else "thousands"

    # Rows.

    def _read_row(self, place: int) -> tuple[tuple[Any, Any] | None, int]:
        """Return the label and entries of the row that begins at a line ahead, and its line count.

        The former are None for an empty line. The count is 0 if the row continues beyond the lines
        that are ahead.
        """
        entries, used = self._read_entries(place)
        if entries is None:
            return None, used
        if isinstance(entries, dict):
            return (self._find_label(entries), entries), used
        label = None if self._place is None else self._parse_label(entries[self._place], used)
        return (label, entries), used

    def _read_entries(self, place: int) -> tuple[list[str] | dict[str, Any] | None, int]:
        """Return the entries of the row that begins at a line ahead, and its line count."""
        if self.kind == "jsonl":
            line = self.lines.ahead[place]
            return (parse_json_object(line) if line.strip() else None), 1
        entries, used = parse_csv_row(self.lines, place, self.delimiter)
        if entries is not None and len(entries) != len(self.columns):
            count = pluralize(len(entries), "entry", "entries")
            raise BadRecord(
                f"{count}, but the header has {len(self.columns)} (delimiter {self.delimiter!r})",
                used,
            )
        return entries, used

    # Targets.

    def _parse_label(self, text: str, used: int = 1) -> str | float | None:
        """Return a target; None if it is missing."""
        bare = text.strip()
        if bare in sniff.MISSING_MARKS:
            return None
        if self.task == "regression":
            number = parse_number(bare, self._choose_style(bare))
            if number is None or not math.isfinite(number):
                raise BadRecord(f"a target that is not a number, {bare[:40]!r}", used)
            return number
        return normalise_level(bare)

    def _choose_style(self, text: str) -> str:
        """Return the style of a target that is a number."""
        if self._style is None:
            return "plain"
        self._mark = self._mark or detect_text_mark(text)
        if self._mark or self.delimiter == ",":
            return "comma" if self._mark == "," else "thousands"
        return "plain" if "." in text else "comma"  # the likelier one, until some text shows it

    def _find_label(self, entries: dict[str, Any]) -> str | float | None:
        """Return the target of a JSON object; None if it is missing."""
        if self.target is None:
            return None
        if self.target in entries:
            self.has_target = True
        elif not self.has_target and len(self._names_seen) < _MOST_NAMES:
            self._names_seen.update(dict.fromkeys(entries))
        value = entries.get(self.target)
        if value is None or value != value:
            return None
        if isinstance(value, str):
            return self._parse_label(value)
        number = as_number(value)
        bad = number is None or not math.isfinite(number)
        if isinstance(value, (dict, list)) or (bad and self.task == "regression"):
            raise BadRecord(f"a target that is not a number or text, {str(value)[:40]!r}")
        return format_level(value) if self.task == "classification" else number
