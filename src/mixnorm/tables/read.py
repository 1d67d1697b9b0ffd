"""Tables from files: CSV, TSV, Parquet and LIBSVM, packed or not, from a path or a stream."""

from __future__ import annotations

import codecs
import io
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from mixnorm.exceptions import TableError
from mixnorm.tables import sniff
from mixnorm.tables.lines import unpack_blocks
from mixnorm.tables.marks import detect_common_mark
from mixnorm.tables.table import SparseTable, Table, convert_arrow_table, number_columns
from mixnorm.tables.words import pluralize

# Also with a space before or after, as in files whose columns are aligned.
_MISSING = [text for mark in sniff.MISSING_MARKS for text in (mark, f" {mark}", f"{mark} ")]
# Bytes that Arrow takes at a time, and how many it may if a row does not fit in.
_BLOCK = 1 << 22
_LARGEST_BLOCK = 1 << 30
# A line for Excel, which is no row.
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
        A CSV, TSV, Parquet or LIBSVM file, also packed (gzip, bzip2, xz, zstandard).
    file_format : {"csv", "tsv", "parquet", "libsvm"}, optional
        None tells it from the content.
    delimiter : str, optional
        None tells it from the first lines.
    header : bool, optional
        Whether the first row holds names. None says yes unless it holds only numbers.
    expect : collection of str
        Names that the table should have: a header of numbers that holds one of them is a header.
    zero_based : bool, optional
        Whether a LIBSVM file counts columns from 0. None tells it from the indices.
    texts : collection of str
        Columns of a CSV file to read as texts, whatever they look like.
    keep : collection of str
        Columns to keep letter by letter too, in ``Table.kept``.

    Returns
    -------
    Table or SparseTable
        The latter for LIBSVM.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cars.csv"
    >>> _ = path.write_text("class;power\nvan;90\nbus;210\n")
    >>> read_table(path).frame["power"].tolist()
    [90, 210]
    """
    _check_options(file_format, delimiter)
    content, name = _open(source)
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
        raise TableError(f"file_format={file_format!r} is none of {', '.join(sniff.FORMATS)}.")
    if delimiter is None:
        return
    if len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii():
        raise TableError(
            f"delimiter={delimiter!r} cannot divide columns; give one ASCII character, no quote "
            "and no line break."
        )


def _open(source: str | os.PathLike[str]) -> tuple[memoryview, str]:
    """Return the unpacked bytes of a file, mapped where they can be, and its name."""
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
        else:  # a pipe, say; raises what open raises for a missing file
            with open(source, "rb") as stream:
                data = pa.py_buffer(stream.read())
    packed = sniff.detect_compression(memoryview(data)[:8].tobytes()) if data.size else None
    if packed is not None:
        data = _unpack(data, packed, name)
    return memoryview(data), name


def _unpack(data: Any, packed: str, name: str) -> Any:
    import pyarrow as pa

    if packed != "zstd":
        blocks = (bytes(data[start : start + _BLOCK]) for start in range(0, data.size, _BLOCK))
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
        table.validate(full=True)  # texts that are none would fail later
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
            raise ValueError("it has entries that are infinite or no numbers")
        if based == "auto":
            based = bool(raw.nnz and raw.indices.min() == 0)
        elif not based and raw.nnz and raw.indices.min() == 0:
            raise ValueError("it has a column 0, but columns should be counted from 1")
    except (ValueError, OverflowError) as error:
        raise TableError(f"{name} cannot be read as LIBSVM ({error}).") from error
    matrix = raw if based else raw[:, 1:]
    return SparseTable(name, matrix.tocsr(), labels, bool(based))


class _Csv:
    """A text table: read with Arrow, again with more care where the first try fails."""

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
        self.block, self.threads = _BLOCK, True
        self.encoding = sniff.detect_encoding(content[: sniff.HEAD_BYTES].tobytes())
        if self.encoding == "utf-16":
            content = memoryview(_decode(content, "utf-16", name).encode())
            self.encoding = "utf-8-sig"
        told = SEPARATOR.match(content)
        if told:
            self.delimiter, content = told[1].decode(), content[told.end() :]
        self.content = content
        # Quotes may hold line breaks. Not told so, Arrow loses rows behind a quote that is never
        # closed, without a word; told so, it takes half as long again.
        self.breaks = re.search(b'"', content) is not None
        self.header = self._has_header(expect) if header is None else header

    def _has_header(self, expect: Collection[str]) -> bool:
        text = sniff.decode_head(self.content[: sniff.HEAD_BYTES].tobytes(), self.name)
        if sniff.has_header(text, self.delimiter, expect):
            return True
        self.notes.append(
            "The first row holds only numbers, so it is taken as data; columns are called "
            "column_1, column_2, ... (--header takes it as names)."
        )
        return False

    def read(self, texts: Collection[str], keep: Collection[str]) -> Table:
        """Return the table, some columns as texts, some also as they stand in the file."""
        import pyarrow as pa

        try:
            table = self._parsed(texts)
            kept = self._letter_by_letter(table, keep)
        except pa.ArrowException as error:
            raise TableError(self._explained(str(error))) from error
        self._check_quotes(table)
        if not self._is_utf8:
            self.notes.append(f"The file is not UTF-8; it was read as {self.encoding}.")
        if not self.header:
            table = table.rename_columns(number_columns(table.num_columns))
        return convert_arrow_table(table, self.name, self.notes, kept)

    def _letter_by_letter(self, table: Any, keep: Collection[str]) -> dict[str, Any]:
        """Return tables in which the columns to keep are what the file says."""
        if not keep:
            return {}
        from pyarrow import csv

        types = dict.fromkeys(table.column_names, "string")
        raw = self._arrow(csv.ConvertOptions(null_values=[], column_types=types))
        if not self.header:
            raw = raw.rename_columns(number_columns(raw.num_columns))
        return dict.fromkeys(keep, raw)

    def _check_quotes(self, table: Any) -> None:
        """Raise if a quote is never closed: the rest of the file is then one entry, the last."""
        if not self.breaks or not table.num_rows:
            return
        last = table.column(-1)[-1].as_py()
        broken = isinstance(last, str) and re.search("[\r\n]", last)
        if broken and not bytes(self.content[-8:]).rstrip().endswith(b'"'):
            raise TableError(self._unclosed(table.num_rows + self.header))

    def _unclosed(self, row: int) -> str:
        return f"{self.name} is no table: a quote in row {row} is never closed."

    def _parsed(self, texts: Collection[str]) -> Any:
        """Try the quick way, then with more care for as long as that helps."""
        import pyarrow as pa
        from pyarrow import csv

        types = {spelt: "string" for text in texts for spelt in (text, f" {text}", f"{text} ")}
        convert = csv.ConvertOptions(
            null_values=_MISSING, strings_can_be_null=True, column_types=types
        )
        while True:
            try:
                table = self._arrow(convert)
            except pa.ArrowInvalid as error:
                if not self._mended(str(error)):
                    raise
                continue
            if not _is_text(table) and self._is_utf8:
                self.encoding = sniff.detect_western_encoding(bytes(self.content))
                continue
            dotted = _dotted(table)
            if not dotted:
                return table
            convert.column_types = dict.fromkeys([*types, *dotted], "string")

    @property
    def _is_utf8(self) -> bool:
        return self.encoding in ("utf-8", "utf-8-sig")

    def _mended(self, reason: str) -> bool:
        """Change how the file is read, after a failure; False if there is nothing left to try."""
        size = len(self.content) * (1 if self._is_utf8 else 3)  # three bytes for a euro sign
        largest = min(size, _LARGEST_BLOCK)
        if re.search("straddling|Empty CSV", reason) and self.block < largest:
            self.block = largest  # a long row, or a long header
            return True
        if "Empty CSV" in reason and bytes(self.content[-1:]) not in b"\r\n":
            self.content = memoryview(bytes(self.content) + b"\n")  # a header and nothing else
            return True
        if "Expected" in reason and self.threads:  # only one thread knows the number of the row
            self.threads = False
            return True
        return False

    def _arrow(self, convert: Any) -> Any:
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

    def _explained(self, reason: str) -> str:
        """Return Arrow's complaint in the words of somebody who has a file."""
        first = reason.splitlines()[0] if reason else "no reason given"
        found = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", first)
        if found:
            row, wanted, got = found.groups()
            entries = pluralize(int(got), "entry", "entries")
            return (
                f"{self.name} is no table: row {row} has {entries} where the first has "
                f"{wanted} (delimiter {self.delimiter!r}). Mend the row, or name the delimiter "
                "with --delimiter."
            )
        if "Empty CSV" in first and self.breaks:
            return self._unclosed(1)
        if "Empty CSV" in first:
            return sniff.EMPTY_MESSAGE.format(self.name)
        return f"{self.name} cannot be read as a table ({first})."


def _is_text(table: Any) -> bool:
    """Whether all names and entries of an Arrow table are valid text."""
    import pyarrow as pa

    try:
        table.column_names  # noqa: B018
    except UnicodeDecodeError:
        return False
    return not any(pa.types.is_binary(kind) for kind in table.schema.types)


def _dotted(table: Any) -> list[str]:
    """Return columns of numbers that may have dots between thousands, as other columns have commas.

    Of 1.234 alone nobody can tell, and Arrow takes it for a number below two.
    """
    import pyarrow as pa

    kinds = table.schema.types
    numbers = [place for place, kind in enumerate(kinds) if pa.types.is_floating(kind)]
    if not numbers:
        return []
    texts = [place for place, kind in enumerate(kinds) if pa.types.is_string(kind)]
    step = max(1, -(-table.num_rows // 1000))
    some = table.take(list(range(0, table.num_rows, step)))
    if detect_common_mark([some.column(place).to_pylist() for place in texts]) != ",":
        return []
    found = []
    for place in numbers:
        values = some.column(place).drop_null().to_numpy()
        finite = np.abs(values[np.isfinite(values)])
        if np.all(finite < 1e12) and np.allclose(np.rint(1e3 * finite), 1e3 * finite, atol=1e-6):
            found.append(table.column_names[place])
    return found


def _decode(content: memoryview, encoding: str, name: str) -> str:
    try:
        return bytes(content).decode(encoding)
    except UnicodeDecodeError as error:
        raise TableError(f"{name} is damaged: not valid {encoding} text ({error}).") from error
