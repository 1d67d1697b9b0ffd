"""One record of a source of lines: the entries of a CSV row, or an object of JSON."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from typing import Any, Literal

from mixnorm.exceptions import TableError
from mixnorm.tables import sniff
from mixnorm.tables.lines import Lines, decode_line

STREAM_FORMATS = ("csv", "tsv", "jsonl")
Format = Literal["csv", "tsv", "jsonl"]
# Lines of one record of a CSV file, whose quoted entries may have line breaks.
MOST_LINES = 1000
_ENDINGS: dict[str, Format] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".tsv": "tsv", ".tab": "tsv"}


class BadRecord(Exception):
    """A row that cannot be read, and how many lines it has."""

    def __init__(self, reason: str, used: int = 1) -> None:
        super().__init__(reason)
        self.used = used


def format_of(lines: Lines, given: str | None, source: str) -> Format:
    """Return the format: given, told by the name, or by the first lines."""
    lines.fill(2)
    head = b"\n".join(lines.ahead)[: sniff.HEAD_BYTES]
    if not head.strip():
        raise TableError(sniff.EMPTY_MESSAGE.format(lines.name))
    if given in STREAM_FORMATS:
        return given  # type: ignore[return-value]
    stem = source.lower()
    for ending in (".gz", ".bz2", ".xz"):
        stem = stem.removesuffix(ending)
    told = _ENDINGS.get(os.path.splitext(stem)[1])
    if told is not None:
        return told
    if _is_object(head.lstrip().split(b"\n")[0]):
        return "jsonl"
    kind = sniff.detect_format(head, lines.name)
    if kind != "csv":
        raise TableError(
            f"{lines.name} is {kind}, which is not read line by line; give CSV, TSV or JSON "
            "lines, or use mixnorm fit."
        )
    return "csv"


def csv_entries(lines: Lines, place: int, delimiter: str) -> tuple[list[str] | None, int]:
    """Return the entries of the row that begins in a line ahead, and how many lines it has.

    None for an empty line; no lines at all if it goes on beyond those that are there.
    """
    text = decode_line(lines.ahead[place])
    if '"' in text:
        return _quoted(lines, place, delimiter)
    if not text.strip() and delimiter not in text:
        return None, 1
    return text.split(delimiter), 1


def _quoted(lines: Lines, place: int, delimiter: str) -> tuple[list[str] | None, int]:
    """Return the entries of a row with quotes, which may have several lines."""
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
            raise BadRecord(f"a quote is wrong ({error})") from error
        if used == MOST_LINES or lines.ended:
            raise BadRecord("a quote is never closed") from error
        return None, 0


def json_object(line: bytes) -> dict[str, Any]:
    """Return the object in a line."""
    try:
        found = json.loads(decode_line(line))
        if b"\\ud" in line.lower():  # half a character is no text
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise BadRecord(f"no JSON ({error})") from error
    except (ValueError, RecursionError) as error:
        raise BadRecord("no JSON that can be used") from error
    if not isinstance(found, dict):
        raise BadRecord(f"no JSON object but a {type(found).__name__}")
    return found


def _is_object(line: bytes) -> bool:
    try:
        json_object(line)
    except BadRecord:
        return False
    return True
