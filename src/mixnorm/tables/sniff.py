"""Detect from the first bytes of a file its compression, format, encoding and delimiter."""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
from collections.abc import Collection, Sequence
from typing import BinaryIO

from mixnorm.exceptions import TableError

FORMATS = ("csv", "tsv", "parquet", "libsvm")
EMPTY_MESSAGE = "{} is empty; give a table with a header and rows."
NO_HEADER_MESSAGE = (
    "The first row holds only numbers, so it is read as data, and columns are named column_1, "
    "column_2, ..."
)
#: Bytes that are examined.
HEAD_BYTES = 1 << 16
#: Entries that mean a missing value.
MISSING_MARKS = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "-NaN", "NULL", "null",
           "<NA>")  # fmt: skip

_COMPRESSIONS = {
    rb"\x1f\x8b": "gzip",
    rb"BZh[1-9](1AY&|\x17rE8)": "bz2",
    rb"\x28\xb5\x2f\xfd": "zstd",
    rb"\xfd7zXZ": "xz",
}
# Parquet continues in binary, unlike a text table with a column PAR1.
_PARQUET = re.compile(rb"PAR1[\s\S]{0,8}[\x00-\x08\x0b\x0c\x0e-\x1f]")
_FOREIGN_FORMATS = {
    rb"PK\x03\x04": "a zip archive (an Excel workbook is one); save the sheet as CSV",
    rb"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV",
    b"%PDF": "a PDF",
    rb"\x89PNG|\xff\xd8\xff": "a picture",
    rb"\x80[\x02-\x05]": "a pickle, which is never opened; write the table as CSV or Parquet",
    rb"\x93NUMPY": "a NumPy array; write the table as CSV or Parquet",
    b"SQLite format 3": "a database; export the table as CSV",
    b"mixnorm model ": "a mixnorm model",
}
_FOREIGN_TEXTS = {"{": "JSON", "[": "JSON", "<": "HTML or XML"}
_JSON = re.compile(r"\{\s*[\"}]|\[\s*[\[{\"\]]|\[[^\]]*\]\s*$")
_MARKUP = re.compile(r"<(!|\?|html|[a-z][\w:.-]*(\s[^<>]*=|>\s*<))", re.IGNORECASE)
_LIBSVM = re.compile(r"\s*[-+]?[0-9.eE+-]+(\s+qid:\d+)?(\s+\d+:[-+0-9.eEnaifNAIF]+)*\s*(#.*)?")
_DELIMITERS = ",;\t|"


def open_standard_input() -> BinaryIO:
    """Return standard input as a stream of bytes; raise if it is closed."""
    if sys.stdin is None:
        raise TableError("Standard input is closed; name a file, or send a table through a pipe.")
    return sys.stdin.buffer


def detect_compression(head: bytes) -> str | None:
    """Return how a file is compressed; None if it is not."""
    return next((kind for magic, kind in _COMPRESSIONS.items() if re.match(magic, head)), None)


def detect_format(head: bytes, name: str) -> str:
    """Return the format of a table from its first bytes; raise if it is not a table.

    Parameters
    ----------
    head : bytes
        The first bytes, uncompressed.
    name : str
        The name of the file in messages.
    """
    # Binary formats come first, because their bytes could also be decoded as some text.
    if _PARQUET.match(head):
        return "parquet"
    for magic, what in _FOREIGN_FORMATS.items():
        if re.match(magic, head):
            raise TableError(f"{name} is not a table but {what}.")
    text = decode_head(head, name)
    if not text.strip():
        raise TableError(EMPTY_MESSAGE.format(name))
    _check_is_table(text.lstrip(), name)
    return "libsvm" if _is_libsvm(text) else "csv"


def _check_is_table(text: str, name: str) -> None:
    """Raise if a text is JSON, HTML or XML."""
    first = text[0]
    if first not in _FOREIGN_TEXTS:
        return
    # A table may start with "[" or "<" too, as in a column "<18". So a first line with a delimiter
    # must also match the pattern of JSON or markup.
    delimited = any(mark in text.splitlines()[0] for mark in _DELIMITERS)
    if not delimited or (_MARKUP if first == "<" else _JSON).match(text):
        kind = _FOREIGN_TEXTS[first]
        raise TableError(f"{name} is not a table but looks like {kind}; write it as CSV.")


def _is_libsvm(text: str) -> bool:
    """Whether the first lines are labels with numbered entries; some rows may have none."""
    lines = [line for line in complete_lines(text) if line.strip() and not line.startswith("#")]
    if len(lines) == 1 and is_cut(text):  # the cut may be within the last entry
        lines = lines[0].rsplit(None, 1)[:1]
    lines = lines[:20]
    # At least one line needs a numbered entry: a column of numbers alone is a CSV file.
    return any(":" in line for line in lines) and all(map(_LIBSVM.fullmatch, lines))


def decode_head(head: bytes, name: str) -> str:
    """Return the first bytes as text."""
    coding = detect_encoding(head)
    # The incremental decoder accepts a character that the end of the head cuts in two.
    text = codecs.getincrementaldecoder(coding)(errors="replace").decode(head)
    if "\x00" in text or sum(char < " " and char not in "\t\r\n\f" for char in text[:4096]) > 8:
        raise TableError(f"{name} is not a table: it holds binary data. Give CSV, TSV or Parquet.")
    return text.removeprefix("\ufeff")


def detect_encoding(head: bytes) -> str:
    """Return the encoding: from its byte order mark, else UTF-8 if the bytes are valid."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return detect_western_encoding(head)
    return "utf-8"


def detect_western_encoding(head: bytes) -> str:
    """Return the single-byte encoding for bytes that are not valid UTF-8."""
    # cp1252 leaves five bytes undefined; latin-1 decodes any byte.
    try:
        head.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def detect_delimiter(text: str) -> str:
    """Return the delimiter that divides the first lines most evenly.

    A comma loses a tie, because numbers may contain it.
    """
    # Delimiters within quotes do not divide entries.
    lines = [re.sub(r'"[^"]*"', "", line) for line in complete_lines(text)][:20]
    lines = [line for line in lines if line.strip()]
    best, chosen = (0, False, 0), ","
    for candidate in _DELIMITERS:
        counts = [line.count(candidate) for line in lines]
        if not counts or not counts[0]:  # the first line, mostly the header, shows the delimiter
            continue
        even = sum(count == counts[0] for count in counts)
        rank = (even, candidate != ",", counts[0])
        if rank > best:
            best, chosen = rank, candidate
    return chosen


def is_cut(text: str) -> bool:
    """Whether a text may be the beginning of a longer one.

    ``HEAD_BYTES`` bytes are at least a quarter as many characters, because a character has at most
    four bytes.
    """
    return len(text) >= HEAD_BYTES // 4


def complete_lines(text: str) -> list[str]:
    """Return the lines at the head of a file, without a last line that may be cut."""
    lines = text.splitlines()
    return lines[:-1] if len(lines) > 1 and is_cut(text) else lines


def has_header(text: str, delimiter: str, expect: Collection[str] = ()) -> bool:
    """Whether the first row holds names: one of those expected, or anything but numbers.

    Parameters
    ----------
    text : str
        The head of the file.
    delimiter : str
        The delimiter of the entries.
    expect : collection of str
        Names that make the row a header even if they are numbers.
    """
    rows = csv.reader(io.StringIO(text.lstrip("\r\n"), newline=None), delimiter=delimiter)
    names = [name.strip() for name in next(rows, [])]
    if len(names) > 1 and is_cut(text) and next(rows, None) is None:
        names.pop()  # it may be half a number
    if set(names) & set(expect):
        return True
    # A row of data may have gaps. A header may start with an empty name, that of row numbers.
    rest = [name for name in names if name not in MISSING_MARKS]
    pointed = [name.replace(",", ".", 1) for name in rest]
    return not rest or not names[0] or not are_plain_numbers(pointed)


def are_plain_numbers(texts: Sequence[str]) -> bool:
    """Whether all texts are numbers in Python's notation."""
    try:
        list(map(float, texts))
    except ValueError:
        return False
    return is_plain("".join(texts))


def is_plain(text: str) -> bool:
    """Whether a text that Python reads as a number is a number for other programs too."""
    return text.isascii() and "_" not in text
