"""Parquet files as one table of rows with columns of any type."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mixnorm.data import (
    Meter,
    Request,
    RowBlock,
    RowGroups,
    Source,
    damage_message,
    find_files,
    read_footer,
    split_by_starts,
)
from mixnorm.exceptions import TableError
from mixnorm.tables.table import make_names_unique
from mixnorm.tables.target import find_name

if TYPE_CHECKING:
    import pyarrow as pa

# Rows, and entries, that are decoded at a time.
_DECODED_ROWS, _DECODED_ENTRIES = 1 << 14, 1 << 21
# Bytes of a column that are read at a time.
_BYTES_BUFFERED = 1 << 16


class FileRows(Source):
    """Rows of Parquet files as Arrow tables, perhaps without some of them.

    It can be pickled, and holds no open files.

    Parameters
    ----------
    files : sequence of RowGroups
        The files, and the rows of their row groups.
    types : mapping of str to pyarrow.DataType
        The columns by the names that the table gives them.
    spelling : mapping of str to str
        The names in the files.
    kept : ndarray of bool, optional
        Which rows of the files belong to the table; by default all.
    first : int
        The number of the first row.
    n_rows : int, optional
        The rows of the whole table, of which the files may hold a part.
    """

    dtype = np.dtype(object)
    names: tuple[str, ...]

    def __init__(
        self,
        files: Sequence[RowGroups],
        types: Mapping[str, Any],
        spelling: Mapping[str, str],
        *,
        kept: np.ndarray | None = None,
        first: int = 0,
        n_rows: int | None = None,
    ) -> None:
        self._files, self.types, self._spelling = tuple(files), dict(types), dict(spelling)
        counts = np.array([count for file in files for count in file.rows], dtype=np.int64)
        #: The first row of each row group in the files.
        self._edges = np.concatenate([[0], np.cumsum(counts)])
        self._bits = None if kept is None else np.packbits(kept)
        if kept is not None:
            sums = np.concatenate([[0], np.cumsum(kept, dtype=np.int64)])
            counts = np.diff(sums[self._edges])
        #: The first row of each row group in the table, and behind the last one.
        self._starts = first + np.concatenate([[0], np.cumsum(counts)])
        #: The file of each row group, and its number there.
        self._places = [
            (place, group) for place, file in enumerate(files) for group in range(len(file.rows))
        ]
        self.n_rows = int(self._starts[-1]) if n_rows is None else n_rows
        self.names = tuple(types)
        self.n_features = len(self.names)

    @property
    def paths(self) -> list[str]:
        """The files that have rows."""
        return [file.path for file in self._files]

    def leave_out(self, rows: np.ndarray) -> FileRows:
        """Return the table without some rows, which a mask names."""
        return FileRows(self._files, self.types, self._spelling, kept=~rows)

    def select(self, names: Sequence[str]) -> FileRows:
        """Return the table with some of its columns."""
        types = {name: self.types[name] for name in names}
        return FileRows(self._files, types, self._spelling, kept=self._mask(0, None))

    def scan(self, rows: Sequence[slice], request: Request, meter: Meter) -> Iterator[RowBlock]:
        """Yield consecutive blocks of rows, whose columns are those of an Arrow table."""
        import pyarrow as pa

        if request.columns is None:
            yield from (RowBlock(None, None, None) for _ in rows)
            return
        places = np.arange(self.n_features)[request.columns]
        names = [self.names[place] for place in places]
        parts: list[Any] = []
        pieces = self.read(names, rows, meter)
        for each in rows:
            parts, missing = [], each.stop - each.start
            while missing:
                _, part = next(pieces)
                parts.append(part)
                missing -= len(part)
            if not parts:
                parts = [self.select(names).empty()]
            yield RowBlock(pa.concat_tables(parts), None, None)

    def read(
        self, names: Sequence[str], rows: Sequence[slice], meter: Meter
    ) -> Iterator[tuple[int, pa.Table]]:
        """Yield parts of consecutive blocks, each with the number of its block, in order."""
        place = 0
        for first, table in self._decode(names, slice(rows[0].start, rows[-1].stop), meter):
            at, stop = max(first, rows[0].start), min(first + len(table), rows[-1].stop)
            while at < stop:
                while rows[place].stop <= at:
                    place += 1
                end = min(stop, rows[place].stop)
                yield place, table.slice(at - first, end - at)
                at = end

    def _decode(
        self, names: Sequence[str], rows: slice, meter: Meter
    ) -> Iterator[tuple[int, pa.Table]]:
        """Yield the decoded rows of all row groups that hold some of these."""
        for group in self._groups(rows):
            place, number = self._places[group]
            at = int(self._starts[group])
            raw = int(self._edges[group])
            for table in self._open(place, number, names, meter):
                here = self._mask(raw, raw + len(table))
                raw += len(table)
                table = table if here is None or here.all() else table.filter(here)
                if at + len(table) > rows.start:
                    yield at, table
                at += len(table)
                if at >= rows.stop:
                    return

    def _open(
        self, place: int, group: int, names: Sequence[str], meter: Meter
    ) -> Iterator[pa.Table]:
        """Yield the rows of a row group in parts."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        file = self._files[place]
        footer = read_footer(file.path)
        spelt = [self._spelling[name] for name in names]
        if footer.rows != file.rows or any(one not in footer.types for one in spelt):
            raise TableError(
                f"{file.path} has changed since the command began; run the command again."
            )
        found = footer.metadata.row_group(group)
        inside = {footer.places[name] for name in spelt if name in footer.places}
        size_in_file = sum(found.column(one).total_compressed_size for one in inside)
        size = max(256, min(_DECODED_ROWS, _DECODED_ENTRIES // max(1, len(names))))
        try:
            with pq.ParquetFile(
                file.path,
                buffer_size=_BYTES_BUFFERED,
                pre_buffer=False,
                page_checksum_verification=True,
            ) as opened:
                for batch in opened.iter_batches(
                    size, row_groups=[group], columns=spelt, use_threads=False
                ):
                    columns = [
                        self._cast(batch.column(batch.schema.get_field_index(one)), name)
                        for one, name in zip(spelt, names, strict=True)
                    ]
                    table = pa.table(columns, names=list(names))
                    # Decoding ends where no more rows are wanted.
                    meter.bytes_read += round(size_in_file * len(table) / found.num_rows)
                    table.validate(full=True)  # texts that are not UTF-8 would fail later
                    yield table
        except MemoryError:
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            where = f", row group {group},"
            raise TableError(damage_message(file.path, error, where)) from error

    def _cast(self, column: Any, name: str) -> Any:
        """Return a column in the type that it has in the table; codes of texts as texts."""
        import pyarrow as pa

        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = self.types[name]
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return column if column.type == kind else column.cast(kind, safe=False)

    def _mask(self, start: int, stop: int | None) -> np.ndarray | None:
        """Return the mask of some rows of the files, None if all belong to the table."""
        if self._bits is None:
            return None
        stop = int(self._edges[-1]) if stop is None else stop
        first = start // 8
        bits = np.unpackbits(self._bits[first : -(-stop // 8)])
        return bits[start - 8 * first : stop - 8 * first].astype(bool)

    def _groups(self, rows: slice) -> list[int]:
        """Return the row groups, none of them empty, that hold some of these rows."""
        first = int(np.searchsorted(self._starts, rows.start, side="right")) - 1
        last = int(np.searchsorted(self._starts, rows.stop, side="left"))
        counts = np.diff(self._starts)
        return [group for group in range(first, last) if counts[group]]

    def ranges(self, blocks: Sequence[slice], n_workers: int = 1) -> list[range]:
        """Return ranges of blocks whose first rows lie in the same row group."""
        return split_by_starts(self._starts, blocks, n_workers)

    def part(self, rows: slice) -> FileRows:
        """Return a source with the files that hold these rows."""
        groups = self._groups(rows)
        if not groups:
            return self
        first, last = self._places[groups[0]][0], self._places[groups[-1]][0]
        start = self._places.index((first, 0))
        stop = start + sum(len(file.rows) for file in self._files[first : last + 1])
        return FileRows(
            self._files[first : last + 1],
            self.types,
            self._spelling,
            kept=self._mask(int(self._edges[start]), int(self._edges[stop])),
            first=int(self._starts[start]),
            n_rows=self.n_rows,
        )

    def empty(self) -> pa.Table:
        """Return a table with the columns, and no rows."""
        import pyarrow as pa

        kinds = [getattr(kind, "value_type", kind) if pa.types.is_dictionary(kind) else kind
                 for kind in self.types.values()]  # fmt: skip
        return pa.table([pa.array([], kind) for kind in kinds], names=list(self.names))

    @staticmethod
    def list_names(path: Any) -> list[str]:
        """Return the names of the columns of the first file that has rows."""
        found = find_files(path)
        first = next((one for one in found if sum(read_footer(one).rows)), found[0])
        return make_names_unique([name.strip() for name in _read_types(first)])[0]

    def describe(self, rows: slice) -> str:
        """Return the file and the row group of the first of these rows."""
        groups = self._groups(slice(rows.start, rows.start + 1))
        if not groups:
            return super().describe(rows)
        place, group = self._places[groups[0]]
        return f"{self._files[place].path}, row group {group}"

    @classmethod
    def open(cls, path: Any, *, drop: Sequence[str] = (), only: Sequence[str] = ()) -> Self:
        """Return the table of the Parquet files that a path, a pattern or a list stands for.

        Only footers are read. Columns have one type in all files: whole numbers and floats become
        floats, for example.

        Parameters
        ----------
        path : path-like or list
            Files, folders and patterns.
        drop : sequence of str
            Columns that are not used, and may differ between files.
        only : sequence of str
            Columns to read; by default all. Those that no file has are left out.
        """
        full = [(one, read_footer(one).rows) for one in find_files(path)]
        used = [RowGroups(one, rows) for one, rows in full if sum(rows)] or [RowGroups(*full[0])]
        schemas = [_read_types(file.path) for file in used]
        given = list(schemas[0])
        unique, _ = make_names_unique([name.strip() for name in given])
        advice = "or the column with --drop" if not only else "or add the column"
        table = os.path.basename(used[0].path)
        skipped = {find_name(unique, name, table) for name in drop}
        pairs = [pair for pair in zip(unique, given, strict=True) if pair[0] not in skipped]
        if only:
            pairs = [pair for pair in pairs if pair[0] in only]
        else:
            known = {*given}
            for file, types in zip(used, schemas, strict=True):
                extra = [one for one in types if one not in known]
                if extra:
                    raise TableError(
                        f"{file.path} has a column {extra[0]!r}, which {used[0].path} lacks. Leave "
                        "the file out, or the column with --drop."
                    )
        found = {
            name: _join_types(spelt, [file.path for file in used], schemas, advice)
            for name, spelt in pairs
        }
        return cls(used, found, dict(pairs))


def _read_types(path: str) -> dict[str, Any]:
    """Return the type of each column of a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise TableError(damage_message(path, error)) from error
    return dict(zip(schema.names, schema.types, strict=True))


def _join_types(
    name: str, paths: Sequence[str], schemas: Sequence[Mapping[str, Any]], advice: str
) -> Any:
    """Return a type for the column of all files."""
    import pyarrow as pa

    for path, types in zip(paths, schemas, strict=True):
        if name not in types:
            raise TableError(
                f"{path} has no column {name!r}, which {paths[0]} has. Leave the file out, "
                f"{advice}."
            )
    kinds = [types[name] for types in schemas]
    categories = all(pa.types.is_dictionary(kind) for kind in kinds)
    plain = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds]
    joined = plain[0]
    for path, kind in zip(paths, plain, strict=True):
        try:
            both = [pa.schema([(name, one)]) for one in (joined, kind)]
            joined = pa.unify_schemas(both, promote_options="permissive").field(0).type
        except pa.ArrowException:
            raise TableError(
                f"{path}: column {name!r} is of type {kind}, but of type {joined} in {paths[0]}. "
                f"Write it in one type, or leave the file out, {advice}."
            ) from None
    return pa.dictionary(pa.int32(), joined) if categories else joined
