"""Sources of rows: what a table of blocks reads from, and arrays as a source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mixnorm._array import is_sparse

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

    def scan(self, rows: Sequence[slice], request: Request, meter: Meter) -> Iterator[RowBlock]:
        """Yield consecutive blocks of rows; note in ``meter`` what is read from files."""
        raise NotImplementedError

    def ranges(self, blocks: Sequence[slice], n_workers: int = 1) -> list[range]:
        """Return ranges of blocks that are best read together; by default one block each.

        Where rows are costly to reach, there may be fewer ranges for fewer workers.
        """
        return [range(place, place + 1) for place in range(len(blocks))]

    def part(self, rows: slice) -> Source:
        """Return a source with the same numbers of rows that holds at least these rows.

        It is what travels to a worker.
        """
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
    first : int
        The number of the first row.
    n_rows : int, optional
        The rows of the whole table, of which ``X`` may be a part.
    names : tuple of str, optional
        The names of the columns.
    """

    def __init__(
        self,
        X: Any,
        y: np.ndarray | None = None,
        weight: np.ndarray | None = None,
        *,
        first: int = 0,
        n_rows: int | None = None,
        names: tuple[str, ...] | None = None,
    ) -> None:
        self.sparse = is_sparse(X)
        self._X, self._y, self._weight, self._first = X, y, weight, first
        self.n_rows = X.shape[0] if n_rows is None else n_rows
        self.n_features, self.dtype, self.names = X.shape[1], np.dtype(X.dtype), names
        self.has_target, self.has_weight = y is not None, weight is not None

    def scan(self, rows: Sequence[slice], request: Request, meter: Meter) -> Iterator[RowBlock]:
        """Yield consecutive blocks of rows."""
        for each in rows:
            here = slice(each.start - self._first, each.stop - self._first)
            X = None if request.columns is None else self._columns(here, request.columns)
            y = self._y[here] if request.target and self._y is not None else None
            weight = self._weight[here] if request.weight and self._weight is not None else None
            yield RowBlock(X, y, weight)

    def _columns(self, rows: slice, columns: np.ndarray | slice) -> Any:
        if self.sparse:
            block = self._X[rows]
            return block if isinstance(columns, slice) else block[:, columns]
        block = self._X[rows]
        return np.asarray(block) if isinstance(columns, slice) else np.asarray(block[:, columns])

    def part(self, rows: slice) -> Source:
        """Return a source with these rows alone; of a mapped file, with its place."""
        here = slice(rows.start - self._first, rows.stop - self._first)
        y, weight = (None if each is None else each[here] for each in (self._y, self._weight))
        if isinstance(self._X, np.memmap) and self._X.filename is not None:
            X: Any = MappedRows.of(self._X, here)
        else:
            X = self._X[here]
        names = self.names
        return ArraySource(X, y, weight, first=rows.start, n_rows=self.n_rows, names=names)


class MappedRows:
    """Rows of a file mapped by NumPy, which pickle as the place of the file."""

    def __init__(self, path: str, dtype: Any, shape: tuple[int, ...], offset: int) -> None:
        self._place = path, dtype, shape, offset
        self.shape, self.dtype = shape, np.dtype(dtype)

    @classmethod
    def of(cls, X: np.memmap, rows: slice) -> Any:
        """Return the mapped rows, or a copy where they do not lie together in the file."""
        if not X.flags.c_contiguous or X.base is None or isinstance(X.base, np.memmap):
            return np.asarray(X[rows])
        count = rows.stop - rows.start
        offset = X.offset + rows.start * X.strides[0]
        return cls(str(X.filename), X.dtype.str, (count, *X.shape[1:]), offset)

    def __getitem__(self, key: Any) -> Any:
        path, dtype, shape, offset = self._place
        return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape)[key]
