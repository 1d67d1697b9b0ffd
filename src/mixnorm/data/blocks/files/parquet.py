"""Parquet files as a source of rows: of few columns at a time, and with little memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple, NoReturn

import numpy as np

from mixnorm.data.blocks.files.footers import (
    RowGroups,
    TableColumns,
    damage_message,
    find_columns,
    find_files,
    import_parquet,
    is_text,
    read_footer,
)
from mixnorm.data.blocks.sources import Meter, Request, RowBlock, Source, split_by_starts
from mixnorm.data.blocks.table import BlockTable
from mixnorm.exceptions import TableError

# Rows, and numbers, that are decoded at a time. More are not faster.
_BATCH_ROWS, _BATCH_NUMBERS = 1 << 14, 1 << 22
# Bytes of a column that are read at a time.
_BUFFER = 1 << 16


def read_parquet(
    path: Any,
    target: Any = None,
    weight: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    **options: Any,
) -> BlockTable:
    """Return Parquet files as a table of row blocks.

    Only footers are read at once. Each sum over the table later reads the columns that it needs.

    Parameters
    ----------
    path : path-like or list
        A file, a folder with files that end in ``.parquet``, ``.pq`` or ``.parq`` (also in folders
        below it), a pattern such as ``"data/*.parquet"``, or a list of these. Files in folders are
        taken in the order of their names, with ``part.2`` before ``part.10``. On a cluster every
        worker must find them under the same path.
    target : str or list of str, optional
        The column with targets: numbers, bools, or texts as labels. A list gives several outputs.
    weight : str, optional
        The column with weights of rows.
    columns : list of str, optional
        The features, all of them numbers (integers, floats, decimals or bools); by default all
        columns but target, weight and the index of data frames. ``mixnorm fit`` on the command line
        also takes texts, dates and missing values.
    **options
        The options of :class:`BlockTable`: ``block_rows``, ``memory``, ``executor``, ``folder`` and
        ``checkpoint``.

    Returns
    -------
    BlockTable
        Its numbers are float32 if that holds those of all columns, which is so for floats of up to
        four bytes, integers of up to two, and bools. Otherwise they are float64.

    Raises
    ------
    TableError
        A file is damaged, or lacks columns, or has columns of other types. Missing values and bad
        weights raise it when they are read.

    Examples
    --------
    >>> read_parquet("sales.parquet", target="label")  # doctest: +SKIP
    """
    if isinstance(columns, str):
        raise TypeError(f"columns={columns!r} must be a list of names.")
    files, known = find_columns(find_files(path), target, weight, columns)
    return BlockTable(ParquetSource(files, known, single=isinstance(target, str)), **options)


class _Piece(NamedTuple):
    """Decoded rows: their first number, and their columns by name."""

    first: int
    size: int
    columns: dict[str, np.ndarray]


class ParquetSource(Source):
    """Rows of Parquet files: a value that can be pickled, and holds no open files.

    Parameters
    ----------
    files : sequence of RowGroups
        The files, and the rows of their row groups.
    columns : TableColumns
        The columns of the table.
    single : bool
        Whether targets are a vector.
    first : int
        The number of the first row.
    n_rows : int, optional
        The rows of the whole table, of which the files may hold a part.
    """

    def __init__(
        self,
        files: Sequence[RowGroups],
        columns: TableColumns,
        *,
        single: bool = True,
        first: int = 0,
        n_rows: int | None = None,
    ) -> None:
        self._files, self._known, self._single = tuple(files), columns, single
        counts = [count for file in files for count in file.rows]
        #: The first row of each row group, and behind the last one.
        self._starts = first + np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        #: The file of each row group, and its number there.
        self._places = [
            (place, group) for place, file in enumerate(files) for group in range(len(file.rows))
        ]
        self.n_rows = int(self._starts[-1]) if n_rows is None else n_rows
        self.names, self.dtype = columns.names, columns.dtype
        self.n_features = len(columns.names)
        self.has_target, self.has_weight = bool(columns.targets), columns.weight is not None

    def scan(self, rows: Sequence[slice], request: Request, meter: Meter) -> Iterator[RowBlock]:
        """Yield consecutive blocks of rows; only the columns that are asked for are read."""
        if not rows:
            return
        features = None if request.columns is None else self._feature_names(request.columns)
        others = list(self._known.targets) if request.target else []
        if request.weight and self._known.weight is not None:
            others.append(self._known.weight)
        names = [*dict.fromkeys(features or []), *others]
        pieces = self._pieces(names, slice(rows[0].start, rows[-1].stop), meter)
        piece = _Piece(rows[0].start, 0, {})
        for each in rows:
            n = each.stop - each.start
            columns = np.empty((len(features or []), n), dtype=self.dtype)
            found: dict[str, list[np.ndarray]] = {name: [] for name in others}
            at = each.start
            while names and at < each.stop:
                if at >= piece.first + piece.size:
                    piece = next(pieces)
                stop = min(each.stop, piece.first + piece.size)
                here = slice(at - piece.first, stop - piece.first)
                for row, name in zip(columns, features or [], strict=True):
                    row[at - each.start : stop - each.start] = piece.columns[name][here]
                for name in others:
                    found[name].append(piece.columns[name][here])
                at = stop
            yield RowBlock(
                None if features is None else columns.T,
                self._join_targets(found) if request.target else None,
                self._join_weights(found) if request.weight else None,
            )

    def _feature_names(self, columns: Any) -> list[str]:
        known = self._known.names
        if isinstance(columns, slice):
            return list(known[columns])
        return [known[place] for place in np.asarray(columns, dtype=np.intp)]

    def _join_targets(self, found: dict[str, list[np.ndarray]]) -> np.ndarray | None:
        """Return the targets of a block."""
        if not self.has_target:
            return None
        empty = [np.empty(0, dtype=self._known.target_dtype or np.dtype(str))]
        parts = [np.concatenate(found[name] or empty) for name in self._known.targets]
        if self._known.target_dtype is not None:
            parts = [np.asarray(part, dtype=self._known.target_dtype) for part in parts]
        return parts[0] if self._single else np.column_stack(parts)

    def _join_weights(self, found: dict[str, list[np.ndarray]]) -> np.ndarray | None:
        name = self._known.weight
        if name is None:
            return None
        return np.concatenate([*found[name], np.empty(0)]).astype(np.float64, copy=False)

    def _pieces(self, names: list[str], rows: slice, meter: Meter) -> Iterator[_Piece]:
        """Yield the decoded rows of all row groups that hold some of these."""
        groups = self._groups(rows)
        for place, here in groupby(groups, key=lambda group: self._places[group][0]):
            file = _OpenFile(self._files[place], self._known, names)
            inside = list(here)
            for group in inside:
                start, stop = int(self._starts[group]), int(self._starts[group + 1])
                # Decoding starts at the first row of a row group, wanted or not.
                share = (min(stop, rows.stop) - start) / (stop - start)
                meter.bytes_read += round(share * file.bytes_of(self._places[group][1]))
            first = int(self._starts[inside[0]])
            yield from file.pieces([self._places[group][1] for group in inside], first, rows)

    def _groups(self, rows: slice) -> list[int]:
        """Return the row groups, none of them empty, that hold some of these rows."""
        first = int(np.searchsorted(self._starts, rows.start, side="right")) - 1
        last = int(np.searchsorted(self._starts, rows.stop, side="left"))
        counts = np.diff(self._starts)
        return [group for group in range(first, last) if counts[group]]

    def ranges(self, blocks: Sequence[slice], n_workers: int = 1) -> list[range]:
        """Return ranges of blocks whose first rows lie in the same row group."""
        return split_by_starts(self._starts, blocks, n_workers)

    def part(self, rows: slice) -> Source:
        """Return a source with the files that hold these rows."""
        groups = self._groups(rows)
        if not groups:
            return self
        first, last = self._places[groups[0]][0], self._places[groups[-1]][0]
        start = int(self._starts[self._places.index((first, 0))])
        return ParquetSource(
            self._files[first : last + 1],
            self._known,
            single=self._single,
            first=start,
            n_rows=self.n_rows,
        )

    def describe(self, rows: slice) -> str:
        """Return the file and the row group of the first of these rows."""
        groups = self._groups(slice(rows.start, rows.start + 1))
        if not groups:
            return super().describe(rows)
        place, group = self._places[groups[0]]
        inside = rows.start - int(self._starts[groups[0]])
        return f"{self._files[place].path}, row group {group}, from its row {inside} on"


class _OpenFile:
    """A file of which some columns are read."""

    def __init__(self, file: RowGroups, known: TableColumns, names: list[str]) -> None:
        self._path, self._known, self._names = file.path, known, names
        self._footer = read_footer(file.path)
        if self._footer.rows != file.rows or any(one not in self._footer.types for one in names):
            raise TableError(
                f"{file.path} has changed since the table was made; call read_parquet again."
            )

    def bytes_of(self, group: int) -> int:
        """Return the bytes of the columns in a row group, as they are in the file."""
        found, places = self._footer.metadata.row_group(group), self._footer.places
        return sum(found.column(places[name]).total_compressed_size for name in self._names)

    def pieces(self, groups: list[int], first: int, rows: slice) -> Iterator[_Piece]:
        """Yield rows of some row groups, of which the first has number ``first``."""
        import pyarrow as pa

        pq = import_parquet()
        texts = [name for name in self._names if is_text(self._footer.types[name])]
        size = max(1 << 8, min(_BATCH_ROWS, _BATCH_NUMBERS // len(self._names)))
        at = first
        try:
            # A plain file, not a mapped one, since a mapped file that another program makes shorter
            # ends the process.
            with pq.ParquetFile(
                self._path,
                metadata=self._footer.metadata,
                read_dictionary=texts,
                buffer_size=_BUFFER,
                pre_buffer=False,
                page_checksum_verification=True,
            ) as file:
                for batch in file.iter_batches(
                    size, row_groups=groups, columns=self._names, use_threads=False
                ):
                    stop = at + len(batch)
                    if stop > rows.start:
                        columns = {name: batch.column(name) for name in self._names}
                        yield _Piece(at, len(batch), self._convert(columns, groups, at - first))
                    if stop >= rows.stop:
                        return
                    at = stop
        except MemoryError:
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise TableError(
                damage_message(self._path, error, self._find_damage(groups))
            ) from error

    def _convert(
        self, columns: dict[str, Any], groups: list[int], passed: int
    ) -> dict[str, np.ndarray]:
        """Return columns as arrays; raise where values are missing, and for bad weights."""
        import pyarrow as pa

        found = {}
        for name, column in columns.items():
            if pa.types.is_dictionary(column.type) and column.dictionary.null_count:
                column = column.dictionary_decode()
            if column.null_count:
                row = int(np.flatnonzero(column.is_null().to_numpy(False))[0])
                what, advice = (
                    "column",
                    (
                        "Fill it in or leave the row out; mixnorm fit on the command line takes "
                        "missing values of features."
                    ),
                )
                if name in self._known.targets or name == self._known.weight:
                    what = "weight" if name == self._known.weight else "target"
                    advice = "Fill it in or leave the row out."
                self._fail(groups, passed + row, f"{what} {name!r} has a missing value", advice)
            found[name] = _as_array(column)
        weight = found.get(self._known.weight or "")
        if weight is not None:
            bad = np.flatnonzero(~((weight >= 0) & np.isfinite(weight)))
            if len(bad):
                self._fail(
                    groups, passed + int(bad[0]),
                    f"weight {self._known.weight!r} is {weight[bad[0]]}",
                    "Weights are finite and at least 0.",
                )  # fmt: skip
        return found

    def _fail(self, groups: list[int], row: int, what: str, advice: str) -> NoReturn:
        """Raise an error for a row, which is counted from the first of these row groups on."""
        for group in groups:
            if row < self._footer.rows[group]:
                break
            row -= self._footer.rows[group]
        raise TableError(
            f"{self._path}, row group {group}: {what} (row {row} of the row group). {advice}"
        )

    def _find_damage(self, groups: list[int]) -> str:
        """Return the row group and the column that cannot be read, for messages."""
        import pyarrow as pa

        pq = import_parquet()
        for group in groups:
            for name in self._names:
                try:
                    with pq.ParquetFile(self._path, metadata=self._footer.metadata) as file:
                        file.read_row_group(group, columns=[name], use_threads=False)
                except (pa.ArrowException, OSError):
                    return f", row group {group}, column {name!r},"
        return ""


def _as_array(column: Any) -> np.ndarray:
    """Return a column of Arrow without nulls as an array: texts as such, decimals as floats."""
    import pyarrow as pa

    if is_text(column.type):
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        words = np.asarray(coded.dictionary.to_pylist(), dtype=str)
        return words[coded.indices.to_numpy()]
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    return column.to_numpy(zero_copy_only=False)
