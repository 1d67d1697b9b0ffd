"""Single records from lines of text: the entries of a CSV row, or a JSON object."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from mixnorm.exceptions import TableError
from mixnorm.tables import sniff
from mixnorm.tables.lines import Lines, decode_line

STREAM_FORMATS = ("csv", "tsv", "jsonl")
# Most lines of one CSV record, whose quoted entries may have line breaks.
MOST_LINES = 1000
_FORMATS_BY_ENDING = {".jsonl": "jsonl", ".ndjson": "jsonl", ".tsv": "tsv", ".tab": "tsv"}


class BadRecord(Exception):
    """A row that cannot be read, with its number of lines."""

    def __init__(self, reason: str, used: int = 1) -> None:
        super().__init__(reason)
        self.used = used


def detect_row_format(lines: Lines, given: str | None, source: str) -> str:
    """Return the format: the one given, else from the file's name or its first lines."""
    lines.fill(2)
    head = b"\n".join(lines.ahead)[: sniff.HEAD_BYTES]
    if not head.strip():
        raise TableError(sniff.EMPTY_MESSAGE.format(lines.name))
    if given is not None and given in STREAM_FORMATS:
        return given
    stem = source.lower()
    for ending in (".gz", ".bz2", ".xz"):
        stem = stem.removesuffix(ending)
    named = _FORMATS_BY_ENDING.get(os.path.splitext(stem)[1])
    if named is not None:
        return named
    with suppress(BadRecord):
        parse_json_object(head.lstrip().split(b"\n")[0])
        return "jsonl"
    kind = sniff.detect_format(head, lines.name)
    if kind != "csv":
        raise TableError(
            f"{lines.name} is {kind}, which cannot be read line by line; give CSV, TSV or JSON "
            "lines, or use mixnorm fit."
        )
    return "csv"


def parse_csv_row(lines: Lines, place: int, delimiter: str) -> tuple[list[str] | None, int]:
    """Return the entries of the row that begins at ``lines.ahead[place]``, and its line count.

    The entries are None for an empty line. The count is 0 if the row continues beyond ``ahead``.
    """
    text = decode_line(lines.ahead[place])
    if '"' in text:
        return _parse_quoted(lines, place, delimiter)
    if not text.strip() and delimiter not in text:
        return None, 1
    return text.split(delimiter), 1


def _parse_quoted(lines: Lines, place: int, delimiter: str) -> tuple[list[str] | None, int]:
    """Return the entries of a row with quotes, which may span several lines."""
    used = 0

    def ahead() -> Iterator[str]:
        nonlocal used
        for line in lines.ahead[place : place + MOST_LINES]:
            used += 1
            yield decode_line(line) + "\n"

    try:
        return next(csv.reader(ahead(), delimiter=delimiter, strict=True)), used
    except csv.Error as error:
        if "unexpected end" not in str(error):
            raise BadRecord(f"a quote is misplaced ({error})") from error
        if used == MOST_LINES or lines.ended:
            raise BadRecord("a quote is never closed") from error
        return None, 0


def parse_json_object(line: bytes) -> dict[str, Any]:
    """Return the JSON object in a line."""
    try:
        found = json.loads(decode_line(line))
        if b"\\ud" in line.lower():  # half of a surrogate pair is not valid text
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise BadRecord(f"invalid JSON ({error})") from error
    except (ValueError, RecursionError) as error:
        raise BadRecord("JSON that cannot be used") from error
    if not isinstance(found, dict):
        raise BadRecord(f"a JSON {type(found).__name__} instead of an object")
    return found
