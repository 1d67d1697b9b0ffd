"""Tables from files: CSV, TSV, Parquet and LIBSVM, compressed or not, from a path or a stream."""

from __future__ import annotations

import codecs
import io
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixnorm.exceptions import TableError
from mixnorm.tables import sniff
from mixnorm.tables.lines import as_utf8, unpack_blocks
from mixnorm.tables.marks import detect_common_mark
from mixnorm.tables.table import SparseTable, Table, convert_arrow_table, number_columns
from mixnorm.tables.values import space_evenly
from mixnorm.tables.words import pluralize

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import csv

# With a space before or after them too, as in files with aligned columns.
_MISSING = [text for mark in sniff.MISSING_MARKS for text in (mark, f" {mark}", f"{mark} ")]
# Bytes that Arrow reads at a time, and the limit if a row is longer than that.
_BYTES_PER_BLOCK = 1 << 22
_MOST_BYTES_PER_BLOCK = 1 << 30
# A line that tells Excel the delimiter and is not a row.
SEPARATOR = re.compile(rb'(?:\xef\xbb\xbf)?"?sep=([\t -!#-~])"?\r?\n')
_INSTALL = 'Reading tables needs pandas and pyarrow: pip install "mixnorm[cli]"'


def read_table(
    source: str | os.PathLike[str],
    *,
    file_format: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    expect: Collection[str] = (),
    zero_based: bool | None = None,
    texts: Collection[str] = (),
    keep: Collection[str] = (),
) -> Table | SparseTable:
    r"""Read a table from a file, or from standard input if ``source`` is ``"-"``.

    Parameters
    ----------
    source : path-like
        A CSV, TSV, Parquet or LIBSVM file, which may be compressed (gzip, bzip2, xz, zstandard).
    file_format : {"csv", "tsv", "parquet", "libsvm"}, optional
        None detects it from the content.
    delimiter : str, optional
        None detects it from the first lines.
    header : bool, optional
        Whether the first row holds names. None means yes unless it holds only numbers.
    expect : collection of str
        Names that the table should have. A row of numbers that holds one of them is a header.
    zero_based : bool, optional
        Whether a LIBSVM file counts columns from 0. None detects it from the indices.
    texts : collection of str
        Columns of a CSV file to read as texts, whatever they look like.
    keep : collection of str
        Columns to copy exactly as they are written to ``Table.kept``.

    Returns
    -------
    Table or SparseTable
        A SparseTable for LIBSVM.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cars.csv"
    >>> _ = path.write_text("class;power\nvan;90\nbus;210\n")
    >>> read_table(path).frame["power"].tolist()
    [90, 210]
    """
    _check_options(file_format, delimiter)
    content, name = _load_bytes(source)
    head = content[: sniff.HEAD_BYTES].tobytes()
    kind = file_format or sniff.detect_format(head, name)
    if kind == "parquet":
        return _read_parquet(content, name, keep)
    if kind == "libsvm":
        return _read_libsvm(content, name, zero_based)
    text = sniff.decode_head(head, name)
    if not text.strip():
        raise TableError(sniff.EMPTY_MESSAGE.format(name))
    if file_format is None and str(source).lower().endswith((".tsv", ".tab")):
        kind = "tsv"
    if delimiter is None:
        delimiter = "\t" if kind == "tsv" else sniff.detect_delimiter(text)
    return _Csv(content, name, delimiter, header, expect).read(texts, keep)


def _check_options(file_format: str | None, delimiter: str | None) -> None:
    if file_format is not None and file_format not in sniff.FORMATS:
        raise TableError(f"file_format={file_format!r} is not one of {', '.join(sniff.FORMATS)}.")
    if delimiter is None:
        return
    if len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii():
        raise TableError(
            f"delimiter={delimiter!r} cannot divide columns; give one ASCII character that is not "
            "a quote or a line break."
        )


def _load_bytes(source: str | os.PathLike[str]) -> tuple[memoryview, str]:
    """Return the uncompressed bytes of a file, memory-mapped if possible, and its name."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise TableError(_INSTALL) from error
    if str(source) == "-":
        name, data = "standard input", pa.py_buffer(sniff.open_standard_input().read())
    else:
        name = Path(source).name
        if Path(source).is_dir():
            raise TableError(f"{source} is a folder; name a file in it.")
        if Path(source).is_file():
            with pa.memory_map(os.fspath(source)) as file:
                data = file.read_buffer()
        else:  # a pipe, or a missing file, for which open raises the usual error
            with open(source, "rb") as stream:
                data = pa.py_buffer(stream.read())
    packed = sniff.detect_compression(memoryview(data)[:8].tobytes()) if data.size else None
    if packed is not None:
        data = _unpack(data, packed, name)
    return memoryview(data), name


def _unpack(data: pa.Buffer, packed: str, name: str) -> pa.Buffer:
    import pyarrow as pa

    if packed != "zstd":
        starts = range(0, data.size, _BYTES_PER_BLOCK)
        blocks = (bytes(data[start : start + _BYTES_PER_BLOCK]) for start in starts)
        return pa.py_buffer(b"".join(unpack_blocks(blocks, packed, name)))
    try:
        return pa.CompressedInputStream(pa.BufferReader(data), "zstd").read_buffer()
    except (OSError, pa.ArrowInvalid) as error:
        raise TableError(f"{name} is a damaged {packed} file ({error}).") from error


def _read_parquet(content: memoryview, name: str, keep: Collection[str]) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(pa.BufferReader(pa.py_buffer(content))).read()
        table.validate(full=True)  # invalid texts would fail later
        return convert_arrow_table(table, name, [], dict.fromkeys(keep, table))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise TableError(f"{name} cannot be read as Parquet ({reason}).") from error


def _read_libsvm(content: memoryview, name: str, zero_based: bool | None) -> SparseTable:
    from sklearn.datasets import load_svmlight_file

    based: Any = "auto" if zero_based is None else zero_based
    text = bytes(content).removeprefix(codecs.BOM_UTF8)
    try:
        raw, labels = load_svmlight_file(io.BytesIO(text), zero_based=True)
        if not np.all(np.isfinite(raw.data)):
            raise ValueError("it has entries that are infinite or not numbers")
        if based == "auto":
            based = bool(raw.nnz and raw.indices.min() == 0)
        elif not based and raw.nnz and raw.indices.min() == 0:
            raise ValueError("it has a column 0, but columns should be counted from 1")
    except (ValueError, OverflowError) as error:
        raise TableError(f"{name} cannot be read as LIBSVM ({error}).") from error
    matrix = raw if based else raw[:, 1:]
    return SparseTable(name, matrix.tocsr(), labels, bool(based))


class _Csv:
    """A text table, read with Arrow; if the first attempt fails, again with other settings."""

    def __init__(
        self,
        content: memoryview,
        name: str,
        delimiter: str,
        header: bool | None,
        expect: Collection[str],
    ) -> None:
        self.name, self.delimiter = name, delimiter
        self.notes: list[str] = []
        self.block, self.threads = _BYTES_PER_BLOCK, True
        self.encoding = sniff.detect_encoding(content[: sniff.HEAD_BYTES].tobytes())
        if self.encoding == "utf-16":
            content = memoryview(b"".join(as_utf8(iter([bytes(content)]), name)))
            self.encoding = "utf-8-sig"
        named = SEPARATOR.match(content)
        if named:
            self.delimiter, content = named[1].decode(), content[named.end() :]
        self.content = content
        # Quoted entries may hold line breaks. If Arrow does not expect them, it silently loses the
        # rows after a quote that is never closed. If it does, it takes 1.5 times as long.
        self.breaks = re.search(b'"', content) is not None
        self.header = self._has_header(expect) if header is None else header

    def _has_header(self, expect: Collection[str]) -> bool:
        text = sniff.decode_head(self.content[: sniff.HEAD_BYTES].tobytes(), self.name)
        if sniff.has_header(text, self.delimiter, expect):
            return True
        self.notes.append(f"{sniff.NO_HEADER_MESSAGE} (--header reads it as names).")
        return False

    def read(self, texts: Collection[str], keep: Collection[str]) -> Table:
        """Return the table with some columns as texts, and copies of those to keep."""
        import pyarrow as pa

        try:
            table = self._parse(texts)
            kept = self._read_originals(table, keep)
        except pa.ArrowException as error:
            raise TableError(self._explain(str(error))) from error
        self._check_quotes(table)
        if not self._is_utf8:
            self.notes.append(f"The file is not UTF-8; it was read as {self.encoding}.")
        if not self.header:
            table = table.rename_columns(number_columns(table.num_columns))
        return convert_arrow_table(table, self.name, self.notes, kept)

    def _read_originals(self, table: pa.Table, keep: Collection[str]) -> dict[str, pa.Table]:
        """Return for each column to keep a table with its texts as they are in the file."""
        if not keep:
            return {}
        from pyarrow import csv

        types = dict.fromkeys(table.column_names, "string")
        raw = self._read_arrow(csv.ConvertOptions(null_values=[], column_types=types))
        if not self.header:
            raw = raw.rename_columns(number_columns(raw.num_columns))
        return dict.fromkeys(keep, raw)

    def _check_quotes(self, table: pa.Table) -> None:
        """Raise if a quote is never closed, which makes the rest of the file the last entry."""
        if not self.breaks or not table.num_rows:
            return
        last = table.column(-1)[-1].as_py()
        broken = isinstance(last, str) and re.search("[\r\n]", last)
        if broken and not bytes(self.content[-8:]).rstrip().endswith(b'"'):
            raise TableError(self._explain_open_quote(table.num_rows + self.header))

    def _explain_open_quote(self, row: int) -> str:
        return f"{self.name} is not a table: a quote in row {row} is never closed."

    def _parse(self, texts: Collection[str]) -> pa.Table:
        """Read with the quickest settings first, then with others as long as failures suggest."""
        import pyarrow as pa
        from pyarrow import csv

        types = {spelt: "string" for text in texts for spelt in (text, f" {text}", f"{text} ")}
        convert = csv.ConvertOptions(
            null_values=_MISSING, strings_can_be_null=True, column_types=types
        )
        while True:
            try:
                table = self._read_arrow(convert)
            except pa.ArrowInvalid as error:
                if not self._prepare_retry(str(error)):
                    raise
                continue
            if not _is_text(table) and self._is_utf8:
                self.encoding = sniff.detect_western_encoding(bytes(self.content))
                continue
            dotted = _find_dotted_columns(table)
            if not dotted:
                return table
            convert.column_types = dict.fromkeys([*types, *dotted], "string")

    @property
    def _is_utf8(self) -> bool:
        return self.encoding in ("utf-8", "utf-8-sig")

    def _prepare_retry(self, reason: str) -> bool:
        """Change the settings after a failure; return False if there is nothing left to try."""
        size = len(self.content) * (1 if self._is_utf8 else 3)  # three bytes for a euro sign
        largest = min(size, _MOST_BYTES_PER_BLOCK)
        if re.search("straddling|Empty CSV", reason) and self.block < largest:
            self.block = largest  # a row or the header is long
            return True
        if "Empty CSV" in reason and bytes(self.content[-1:]) not in b"\r\n":
            self.content = memoryview(bytes(self.content) + b"\n")  # there is only a header
            return True
        if "Expected" in reason and self.threads:  # only a single thread knows the row's number
            self.threads = False
            return True
        return False

    def _read_arrow(self, convert: csv.ConvertOptions) -> pa.Table:
        """Read the table with Arrow."""
        import pyarrow as pa
        from pyarrow import csv

        read = csv.ReadOptions(
            block_size=self.block,
            use_threads=self.threads,
            autogenerate_column_names=not self.header,
            encoding="utf8" if self._is_utf8 else self.encoding,
        )
        parse = csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=self.breaks)
        return csv.read_csv(pa.BufferReader(pa.py_buffer(self.content)), read, parse, convert)

    def _explain(self, reason: str) -> str:
        """Return an error message of Arrow in terms of the file."""
        first = reason.splitlines()[0] if reason else "no reason given"
        found = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", first)
        if found:
            row, wanted, got = found.groups()
            entries = pluralize(int(got), "entry", "entries")
            return (
                f"{self.name} is not a table: row {row} has {entries}, but the first row has "
                f"{wanted} (delimiter {self.delimiter!r}). Correct the row, or name the delimiter "
                "with --delimiter."
            )
        if "Empty CSV" in first and self.breaks:
            return self._explain_open_quote(1)
        if "Empty CSV" in first:
            return sniff.EMPTY_MESSAGE.format(self.name)
        return f"{self.name} cannot be read as a table ({first})."


def _is_text(table: pa.Table) -> bool:
    """Whether all names and entries of an Arrow table are valid text."""
    import pyarrow as pa

    try:
        table.column_names  # noqa: B018
    except UnicodeDecodeError:
        return False
    return not any(pa.types.is_binary(kind) for kind in table.schema.types)


def _find_dotted_columns(table: pa.Table) -> list[str]:
    """Return columns of numbers whose dots may separate thousands.

    They are possible if other columns have decimal commas. Arrow reads 1.234 as a number below two.
    """
    import pyarrow as pa

    kinds = table.schema.types
    numbers = [place for place, kind in enumerate(kinds) if pa.types.is_floating(kind)]
    if not numbers:
        return []
    texts = [place for place, kind in enumerate(kinds) if pa.types.is_string(kind)]
    some = table.take(list(range(table.num_rows)[space_evenly(table.num_rows, 1000)]))
    if detect_common_mark([some.column(place).to_pylist() for place in texts]) != ",":
        return []
    found = []
    for place in numbers:
        values = some.column(place).drop_null().to_numpy()
        finite = np.abs(values[np.isfinite(values)])
        if np.all(finite < 1e12) and np.allclose(np.rint(1e3 * finite), 1e3 * finite, atol=1e-6):
            found.append(table.column_names[place])
    return found
