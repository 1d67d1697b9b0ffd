"""What a file is, from its first bytes: its packing, format, encoding and delimiter."""

from __future__ import annotations

import codecs
import re

from mixnorm.exceptions import TableError

FORMATS = ("csv", "tsv", "parquet", "libsvm")
#: Bytes that are looked at.
HEAD = 1 << 16

_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ": "xz"}
_BINARY = {
    b"PK\x03\x04": "a zip archive (an Excel workbook is one); save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV",
    b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"\x80\x04": "a pickle, which is never opened; write the table as CSV or Parquet",
    b"\x80\x05": "a pickle, which is never opened; write the table as CSV or Parquet",
    b"\x93NUMPY": "a NumPy array; write the table as CSV or Parquet",
    b"SQLite format 3": "a database; export the table as CSV",
    b"mixnorm model ": "a mixnorm model, not a table",
}
_TEXT = {"{": "JSON", "[": "JSON", "<": "HTML or XML"}
_LIBSVM = re.compile(r"\s*[-+]?[0-9.eE+-]+(\s+qid:\d+)?(\s+\d+:[-+0-9.eEnaifNAIF]+)+\s*(#.*)?")
_DELIMITERS = ",;\t|"


def packing(head: bytes) -> str | None:
    """Return how a file is compressed, None if it is not."""
    return next((kind for magic, kind in _PACKED.items() if head.startswith(magic)), None)


def file_format(head: bytes, name: str) -> str:
    """Return the format of a table from its first bytes; raise if it is none.

    Parameters
    ----------
    head : bytes
        The first bytes, unpacked.
    name : str
        What to call the file in a message.
    """
    if head.startswith(b"PAR1"):
        return "parquet"
    for magic, what in _BINARY.items():
        if head.startswith(magic):
            raise TableError(f"{name} is no table but {what}.")
    text = head_text(head, name)
    if not text.strip():
        raise TableError(f"{name} is empty; give a table with a header and rows.")
    first = text.lstrip()[0]
    if first in _TEXT and not any(mark in text.lstrip().splitlines()[0] for mark in ",;\t|"):
        raise TableError(f"{name} is no table but looks like {_TEXT[first]}; write it as CSV.")
    if first in "{<" and re.match(r"\{\s*(\"|\n|\})|<(!|\?|html)", text.lstrip(), re.I):
        raise TableError(f"{name} is no table but looks like {_TEXT[first]}; write it as CSV.")
    lines = [line for line in complete_lines(text) if line.strip() and not line.startswith("#")]
    if lines and all(_LIBSVM.fullmatch(line) for line in lines[:20]):
        return "libsvm"
    return "csv"


def head_text(head: bytes, name: str) -> str:
    """Return the first bytes as text."""
    coding = encoding(head)
    text = codecs.getincrementaldecoder(coding)(errors="replace").decode(head)
    if "\x00" in text or sum(char < " " and char not in "\t\r\n\f" for char in text[:4096]) > 8:
        raise TableError(f"{name} is no table: it holds binary data. Give CSV, TSV or Parquet.")
    return text.removeprefix("\ufeff")


def encoding(head: bytes) -> str:
    """Return the encoding: by its mark, UTF-8 where the bytes allow it, else cp1252."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return western(head)
    return "utf-8"


def western(head: bytes) -> str:
    """Return the single-byte encoding to take for bytes that are no UTF-8."""
    try:
        head.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def delimiter(text: str) -> str:
    """Return the delimiter that divides the first lines most evenly."""
    lines = [re.sub(r'"[^"]*"', "", line) for line in complete_lines(text)][:20]
    lines = [line for line in lines if line.strip()]
    best, chosen = (0, 0, 0), ","
    for candidate in _DELIMITERS:
        counts = [line.count(candidate) for line in lines]
        if not counts or not counts[0]:
            continue
        even = sum(count == counts[0] for count in counts)
        rank = (even, counts[0], -_DELIMITERS.index(candidate))
        if rank > best:
            best, chosen = rank, candidate
    return chosen


def complete_lines(text: str) -> list[str]:
    """Return the lines of the head of a file, without the last where it was cut."""
    lines = text.splitlines()
    return lines[:-1] if len(lines) > 1 and len(text) >= HEAD // 4 else lines


def header_is_data(names: list[str]) -> bool:
    """Whether a header holds nothing but numbers, so that it must be a row."""
    return bool(names) and all(_is_number(name) for name in names)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
