"""Sources of rows: what a table of blocks reads from, and arrays as a source."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from mmap import mmap
from typing import Any, NamedTuple

import numpy as np

from mixnorm._array import is_sparse
from mixnorm.exceptions import TableError

#: Which columns to read: their numbers, all, or none.
ColumnChoice = np.ndarray | slice | None
#: All columns.
ALL_COLUMNS = slice(None)


class RowBlock(NamedTuple):
    """Some consecutive rows: their columns, targets and weights, each None if not asked for."""

    X: Any
    y: np.ndarray | None
    weight: np.ndarray | None


@dataclass(frozen=True)
class Request:
    """The parts of rows to read: columns, and whether targets and weights."""

    columns: ColumnChoice = None
    target: bool = False
    weight: bool = False

    @property
    def nothing(self) -> bool:
        """Whether nothing has to be read."""
        return self.columns is None and not self.target and not self.weight


class RowsNeeded(Exception):
    """A worker has the task, but not the rows, and needs some."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.request = request


@dataclass
class Meter:
    """What a task has read from files."""

    bytes_read: int = 0


class Source:
    """Base of sources. They can be pickled, as workers of a cluster get copies."""

    n_rows: int
    n_features: int
    #: The dtype of the columns.
    dtype: np.dtype[Any]
    #: Whether columns come as CSR matrices.
    sparse: bool = False
    #: The names of the columns, where all have one.
    names: tuple[str, ...] | None = None
    has_target: bool = False
    has_weight: bool = False
    #: Whether the rows of a task travel to its worker, all at once.
    sends_rows: bool = False

    @property
    def row_bytes(self) -> int:
        """About how many bytes of memory a row takes."""
        return max(1, self.n_features) * max(4, self.dtype.itemsize)

    def scan(self, rows: Sequence[slice], request: Request, meter: Meter) -> Iterator[RowBlock]:
        """Yield consecutive blocks of rows; note in ``meter`` what is read from files."""
        raise NotImplementedError

    def ranges(self, blocks: Sequence[slice], n_workers: int = 1) -> list[range]:
        """Return ranges of blocks that are best read together; by default one block each.

        Where rows are costly to reach, there may be fewer ranges for fewer workers.
        """
        return [range(place, place + 1) for place in range(len(blocks))]

    def part(self, rows: slice) -> Source:
        """Return the source that is sent to a worker with a task on these rows.

        Rows keep their numbers. Where rows are costly to send, it holds none, and :meth:`deliver`
        sends those that the worker lacks.
        """
        return self

    def deliver(self, rows: slice, request: Request) -> tuple[Source, list[Any]]:
        """Return a source with the rows of a request, and Dask objects to compute for it.

        On the worker, :meth:`receive` takes the computed values.
        """
        return self, []

    def receive(self, values: list[Any]) -> Source:
        """Return the source with the computed values of the objects that it was delivered with."""
        return self

    def describe(self, rows: slice) -> str:
        """Return where rows come from, for messages."""
        last = rows.stop - 1
        return f"row {last}" if rows.start == last else f"rows {rows.start} to {last}"


class ArraySource(Source):
    """Rows of arrays in memory, of files mapped by NumPy, or of SciPy's sparse matrices.

    Parameters
    ----------
    X : ndarray, memory map or sparse matrix
        The columns.
    y : ndarray, optional
        Targets or labels.
    weight : ndarray, optional
        Weights of the rows.
    names : tuple of str, optional
        The names of the columns.
    """

    sends_rows = True

    @property
    def row_bytes(self) -> int:
        """About how many bytes of memory a row takes."""
        if not self.sparse:
            return super().row_bytes
        entries = -(-self._X.nnz // max(1, self._X.shape[0]))
        return max(16, int(entries) * (self.dtype.itemsize + self._X.indices.itemsize))

    def __init__(
        self,
        X: Any,
        y: np.ndarray | None = None,
        weight: np.ndarray | None = None,
        *,
        names: tuple[str, ...] | None = None,
    ) -> None:
        self.sparse = is_sparse(X)
        self._X, self._y, self._weight, self.n_rows = X, y, weight, X.shape[0]
        self.n_features, self.dtype, self.names = X.shape[1], np.dtype(X.dtype), names
        self.has_target, self.has_weight = y is not None, weight is not None

    def scan(self, rows: Sequence[slice], request: Request, meter: Meter) -> Iterator[RowBlock]:
        """Yield consecutive blocks of rows."""
        for here in rows:
            X = None if request.columns is None else _cut(self._X, here, request.columns)
            y = self._y[here] if request.target and self._y is not None else None
            weight = self._weight[here] if request.weight and self._weight is not None else None
            yield RowBlock(X, y, weight)

    def part(self, rows: slice) -> Source:
        """Return a source without rows; a worker gets those that it asks for."""
        return AbsentRows(self)

    def deliver(self, rows: slice, request: Request) -> tuple[Source, list[Any]]:
        """Return a source with what is asked for: copies, or the place of a mapped file."""
        X, columns, given = None, request.columns, request
        if columns is not None:
            X = MappedRows.of(self._X, rows) if isinstance(self._X, np.memmap) else None
            if X is None:
                columns = columns if isinstance(columns, slice) else np.unique(columns)
                X = _cut(self._X, rows, columns)
                # In the order of the original, on which the last bits of sums depend.
                X = X if self.sparse else np.array(X, order="K")
            else:
                columns = ALL_COLUMNS
            given = replace(request, columns=columns)
        y = self._y[rows] if request.target and self._y is not None else None
        weight = self._weight[rows] if request.weight and self._weight is not None else None
        return SentRows(self, rows.start, given, RowBlock(X, y, weight)), []


class AbsentRows(Source):
    """What a worker gets of a source whose rows are sent when they are needed."""

    def __init__(self, source: Source) -> None:
        self.n_rows, self.n_features = source.n_rows, source.n_features
        self.dtype, self.sparse = source.dtype, source.sparse
        self.has_target, self.has_weight = source.has_target, source.has_weight

    def scan(self, rows: Sequence[slice], request: Request, meter: Meter) -> Iterator[RowBlock]:
        """Ask for the rows."""
        raise RowsNeeded(request)


class SentRows(AbsentRows):
    """Rows that a worker has asked for.

    Parameters
    ----------
    source : Source
        Where they are from.
    first : int
        The number of the first row.
    given : Request
        What was asked for.
    found : RowBlock
        The rows.
    """

    def __init__(self, source: Source, first: int, given: Request, found: RowBlock) -> None:
        super().__init__(source)
        self._first, self._given, self._rows = first, given, found

    def scan(self, rows: Sequence[slice], request: Request, meter: Meter) -> Iterator[RowBlock]:
        """Yield consecutive blocks of rows; ask again where more is wanted than was sent."""
        columns = self._places(request)
        for each in rows:
            here = slice(each.start - self._first, each.stop - self._first)
            X, y, weight = self._rows
            X = None if columns is None else _cut(X, here, columns)
            y = y[here] if request.target and y is not None else None
            yield RowBlock(X, y, weight[here] if request.weight and weight is not None else None)

    def _places(self, request: Request) -> ColumnChoice:
        """Return where the columns of a request are among those sent."""
        given, wanted = self._given.columns, request.columns
        if self._given.target >= request.target and self._given.weight >= request.weight:
            if wanted is None or isinstance(given, slice):
                return wanted
            if isinstance(given, np.ndarray) and isinstance(wanted, np.ndarray):
                places = np.searchsorted(given, wanted)  # they were sent in order
                if len(given) and np.array_equal(given.take(places, mode="clip"), wanted):
                    return places
        raise RowsNeeded(request)


def split_by_starts(starts: np.ndarray, blocks: Sequence[slice], n_workers: int) -> list[range]:
    """Return ranges of blocks whose first rows lie in the same stretch between two starts.

    No stretch is then read by two tasks, except where a block begins in the stretch before it.
    Where there are fewer stretches than workers, several workers read each.
    """
    firsts = np.array([block.start for block in blocks], dtype=np.int64)
    groups = np.searchsorted(starts, firsts, side="right")
    edges = np.flatnonzero(np.diff(groups, prepend=-1, append=-1))
    parts = -(-n_workers // max(1, len(edges) - 1))
    found = []
    for first, stop in pairwise(edges.tolist()):
        inner = np.linspace(first, stop, min(parts, stop - first) + 1).round().astype(int)
        found += [range(*pair) for pair in pairwise(inner.tolist())]
    return found


def join_blocks(parts: Sequence[np.ndarray], dtype: np.dtype[Any]) -> np.ndarray:
    """Join dense rows into an array with contiguous columns."""
    width = parts[0].shape[1]
    joined = np.empty((width, sum(len(part) for part in parts)), dtype=dtype)
    start = 0
    for part in parts:
        joined[:, start : start + len(part)] = part.T
        start += len(part)
    return joined.T


def check_weight(weight: np.ndarray, place: str) -> None:
    """Raise unless all weights of rows are finite and at least 0."""
    bad = np.flatnonzero(~((weight >= 0) & np.isfinite(weight)))
    if len(bad):
        raise TableError(
            f"Weight {bad[0]} is {weight[bad[0]]} ({place}). Weights are finite and at least 0."
        )


def _cut(X: Any, rows: slice, columns: np.ndarray | slice) -> Any:
    """Return some rows and columns."""
    block = _view_rows(X, rows) if is_sparse(X) and X.format == "csr" else X[rows]
    if not isinstance(columns, slice):
        block = block[:, columns]
    return block if is_sparse(block) else np.asarray(block)


def _view_rows(X: Any, rows: slice) -> Any:
    """Return some rows of a CSR matrix, without a copy of their entries."""
    first, last = int(X.indptr[rows.start]), int(X.indptr[rows.stop])
    ends = (X.indptr[rows.start : rows.stop + 1] - first).astype(X.indices.dtype)
    parts = X.data[first:last], X.indices[first:last], ends
    return type(X)(parts, shape=(rows.stop - rows.start, X.shape[1]), copy=False)


class MappedRows:
    """Rows of a file mapped by NumPy, which pickle as the place of the file."""

    def __init__(self, path: str, dtype: Any, shape: tuple[int, ...], offset: int) -> None:
        self._place = path, dtype, shape, offset
        self.shape, self.dtype = shape, np.dtype(dtype)

    @classmethod
    def of(cls, X: np.memmap, rows: slice) -> MappedRows | None:
        """Return the mapped rows, or None where a worker may not find the same in the file."""
        # What was written to a map may be in this process alone (mode "c"), or on this machine.
        if X.mode != "r":
            return None
        if X.filename is None or not X.flags.c_contiguous or not isinstance(X.base, mmap):
            return None
        count = rows.stop - rows.start
        offset = X.offset + rows.start * X.strides[0]
        path = os.path.abspath(X.filename)
        return cls(path, X.dtype.str, (count, *X.shape[1:]), offset)

    def __getitem__(self, key: Any) -> Any:
        path, dtype, shape, offset = self._place
        return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape)[key]
