"""A table of row blocks as a matrix, for engines that hold scores and weights in memory.

The gradient of all columns is a sum over blocks. The columns that an engine works on are few: they
are gathered once, in memory or in a file that is mapped, and never read from the table again.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mixnorm._array import is_sparse
from mixnorm._chunks import blocks as split_rows
from mixnorm.data.base import BaseMatrix, ColumnSet, ColumnStatistics, positive_totals
from mixnorm.data.blocks.batch.survey import survey
from mixnorm.data.blocks.kept import OwnFolder
from mixnorm.data.blocks.sources import ALL_COLUMNS, ColumnChoice
from mixnorm.data.blocks.table import Block, BlockTable
from mixnorm.data.dense import DenseColumns, DenseMatrix
from mixnorm.data.sparse import SparseColumns

# Share of the table's memory for columns that are gathered.
_SHARE_GATHERED = 0.3
# Arrays by row with a larger share of it, such as scores, are in files.
_SHARE_OF_ARRAY = 1.0 / 32.0
# Bytes of the rows of a block that are converted at a time: they stay in the cache.
_BYTES_PER_CHUNK = 1 << 20
# Rounding of a gradient in standard units that may come from means, by the dtype.
_ROUNDING_OF_MEANS = {"float32": 1e-6, "float64": 1e-12}


class Units(Protocol):
    """The centres and scales of columns; a column of scale zero is zero inside."""

    @property
    def centre(self) -> np.ndarray:
        """What is subtracted from each dense column."""
        ...

    @property
    def scale(self) -> np.ndarray:
        """What each column is divided by."""
        ...

    def apply(self, X: Any) -> Any:
        """Return a copy of some rows in these units."""
        ...

    def part(self, index: np.ndarray | slice) -> Units:
        """Return the units of some of the columns."""
        ...


class BlockMatrix(BaseMatrix):
    """A table of row blocks as a matrix.

    Parameters
    ----------
    table : BlockTable
        The table.
    dtype : dtype
        The dtype of products with it.
    units : Units, optional
        The units that columns are converted to as they are read.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm.data import from_arrays
    >>> matrix = BlockMatrix(from_arrays(np.eye(4), block_rows=3), np.dtype(float))
    >>> matrix.gradient(np.ones((4, 1))).ravel().tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    def __init__(self, table: BlockTable, dtype: Any, units: Units | None = None) -> None:
        self.table, self.dtype, self.shape = table, np.dtype(dtype), table.shape
        self._units = units
        limit = int(_SHARE_GATHERED * table.memory)
        gather = _SparseStore if table.sparse else _DenseStore
        self._store: _DenseStore | _SparseStore = gather(table, self.dtype, units, limit)
        # What fits is gathered as a whole in the first pass: no later one is needed.
        n, d = self.shape
        self._fits = not table.sparse and n * d * self.dtype.itemsize <= limit

    def columns(self, index: np.ndarray) -> ColumnSet:
        """Return some columns; those that have not been gathered are read from the table."""
        return self._store.columns(np.asarray(index))

    def keep_rows(self, array: np.ndarray) -> np.ndarray:
        """Return an array by row in a file, if it is large beside the table's memory.

        The file has no name, and goes when the array does. The system keeps its pages in memory as
        long as there is room for them.
        """
        if array.nbytes <= _SHARE_OF_ARRAY * self.table.memory:
            return array
        # A folder that takes files, or the error of one that does not.
        own = OwnFolder("mixnorm-arrays-", self.table.folder)
        # Output by output in memory, as scores lie: the transposed array is written row by row.
        with tempfile.TemporaryFile(dir=own.path) as file:
            mapped = np.memmap(file, dtype=array.dtype, mode="w+", shape=array.T.shape)
        own.delete()
        mapped[...] = array.T
        return np.asarray(mapped).T

    def statistics(self, weight: np.ndarray) -> ColumnStatistics:
        """Return statistics of the columns as they are in the table, in the working dtype."""
        found = survey(self.table, self.dtype, weight=weight).statistics
        parts = found.low, found.high, found.mean, found.deviation
        return ColumnStatistics(*(np.asarray(part, dtype=self.dtype) for part in parts))

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        """Return ``Xᵀ residual``, of shape ``(n_features, n_outputs)`` (:eq:`column-gradient`).

        Columns that have been gathered are not read where that saves half of the table.
        """
        d = self.shape[1]
        known = self._store.known
        if self._fits or len(known) == d:
            return self._store.columns(np.arange(d)).gradient(residual)
        if 2 * len(known) < d:
            return self._read_gradient(residual, ALL_COLUMNS)
        total = np.empty((d, residual.shape[1]), dtype=self.dtype)
        unread = np.setdiff1d(np.arange(d), known)
        total[known] = self._store.columns(known).gradient(residual)
        total[unread] = self._read_gradient(residual, unread)
        return total

    def _read_gradient(self, residual: np.ndarray, columns: np.ndarray | slice) -> np.ndarray:
        """Return the gradient of some columns as a sum over blocks."""
        units = None if self._units is None else self._units.part(columns)
        # Where means are small their product is subtracted afterwards, so that blocks need no copy.
        later = units is not None and (self.table.sparse or self._means_are_small(units))
        function = _Gradient(self.dtype, None if later else units)
        total = self.table.sum(function, columns=columns, beside=(residual,))
        if units is None or not later:
            return np.asarray(total)
        safe = np.where(units.scale > 0.0, units.scale, 1.0)
        found = total.astype(np.float64)
        if not self.table.sparse:
            found -= units.centre[:, None] * np.sum(residual, axis=0, dtype=np.float64)
        found /= safe[:, None]
        found[units.scale == 0.0] = 0.0
        return np.asarray(found.astype(self.dtype))

    def _means_are_small(self, units: Units) -> bool:
        """Tell whether products with columns as they are keep the digits of centred ones."""
        rounding = float(np.finfo(self.dtype).eps)
        allowed = _ROUNDING_OF_MEANS[self.dtype.name] / rounding
        return bool(np.all(np.abs(units.centre) <= allowed * units.scale))

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return ``X weights``, output by output, for entries in the working dtype."""
        used = np.flatnonzero(np.any(weights != 0.0, axis=1))
        scores = np.zeros((weights.shape[1], self.shape[0]), dtype=self.dtype).T
        if len(used) == 0:
            return scores
        if self._fits or np.all(np.isin(used, self._store.known)):
            return self._store.columns(used).scores(weights[used])
        columns: ColumnChoice = used
        if 2 * len(used) > self.shape[1]:
            columns, used = ALL_COLUMNS, np.arange(self.shape[1])
        units = None if self._units is None else self._units.part(used)
        function = _Scores(self.dtype, units, np.ascontiguousarray(weights[used]))
        for rows, part in self.table.scan(function, columns=columns):
            scores[rows] = part
        return scores


@dataclass(frozen=True, eq=False)
class _Gradient:
    """Multiplies the columns of a block with the residual of its rows."""

    dtype: np.dtype[Any]
    units: Units | None

    def __call__(self, block: Block) -> np.ndarray:
        X, (residual,) = block.X, block.beside
        if is_sparse(X):
            return np.asarray(X.T.astype(self.dtype) @ np.ascontiguousarray(residual))
        if self.units is None:
            return np.asarray(DenseMatrix(X, self.dtype).gradient(residual))
        total = np.zeros((X.shape[1], residual.shape[1]), dtype=self.dtype)
        for rows in _chunks(X):
            inside = self.units.apply(X[rows].astype(self.dtype, copy=False))
            total += inside.T @ residual[rows]
        return total


@dataclass(frozen=True, eq=False)
class _Scores:
    """Multiplies the columns of a block with weights."""

    dtype: np.dtype[Any]
    units: Units | None
    weights: np.ndarray

    def __call__(self, block: Block) -> np.ndarray:
        X = block.X.astype(self.dtype, copy=False)
        return np.asarray((X if self.units is None else self.units.apply(X)) @ self.weights)


@dataclass(frozen=True, eq=False)
class _Gather:
    """Returns the columns of a block as rows, in units; sparse ones stay as they are."""

    dtype: np.dtype[Any]
    units: Units | None

    def __call__(self, block: Block) -> Any:
        X = block.X
        if is_sparse(X):
            X = X.astype(self.dtype, copy=False)
            return X if self.units is None else self.units.apply(X)
        found = np.empty((X.shape[1], X.shape[0]), dtype=self.dtype)
        for rows in _chunks(X):
            part = X[rows].astype(self.dtype, copy=False)
            found[:, rows] = (part if self.units is None else self.units.apply(part)).T
        return found


def _chunks(X: np.ndarray) -> Sequence[slice]:
    """Return slices of few enough rows of a block for copies to stay in the cache."""
    return list(split_rows(X.shape[0], max(1, _BYTES_PER_CHUNK // max(1, 8 * X.shape[1]))))


class _Store:
    """The columns of a table that have been gathered."""

    def __init__(self, table: BlockTable, dtype: np.dtype[Any], units: Units | None) -> None:
        self._table, self._dtype, self._units = table, dtype, units
        self._places: dict[int, int] = {}

    @property
    def known(self) -> np.ndarray:
        """The columns that have been gathered, rising."""
        return np.sort(np.fromiter(self._places, np.intp, len(self._places)))

    def columns(self, index: np.ndarray) -> ColumnSet:
        """Return some columns; read those that have not been gathered."""
        missing = np.asarray([j for j in index.tolist() if j not in self._places], dtype=np.intp)
        if len(missing):
            self._read(missing)
            first = len(self._places)
            self._places.update((j, first + place) for place, j in enumerate(missing.tolist()))
        return self._take(np.asarray([self._places[j] for j in index.tolist()], dtype=np.intp))

    def _scan(self, missing: np.ndarray) -> Iterator[tuple[slice, Any]]:
        """Yield columns by blocks."""
        units = None if self._units is None else self._units.part(missing)
        whole = len(missing) == self._table.shape[1]
        columns: ColumnChoice = ALL_COLUMNS if whole else missing
        return self._table.scan(_Gather(self._dtype, units), columns=columns)

    def _read(self, missing: np.ndarray) -> None:
        """Read columns to the end of those gathered."""
        raise NotImplementedError

    def _take(self, places: np.ndarray) -> ColumnSet:
        """Return the columns at some places."""
        raise NotImplementedError


class _DenseStore(_Store):
    """Columns as rows of one array, in memory up to a limit and else in a file."""

    def __init__(
        self, table: BlockTable, dtype: np.dtype[Any], units: Units | None, limit: int
    ) -> None:
        super().__init__(table, dtype, units)
        n, d = table.shape
        # Pages that nothing was written to take no memory.
        room = min(d, limit // max(1, n * dtype.itemsize))
        self._rows: np.ndarray = np.empty((room, n), dtype=dtype)
        self._folder: Path | None = None

    def _read(self, missing: np.ndarray) -> None:
        first = len(self._places)
        last = first + len(missing)
        rows = self._rows if last <= len(self._rows) and self._folder is None else self._map(last)
        for part, found in self._scan(missing):
            rows[first:last, part] = found
        if isinstance(rows, np.memmap):
            rows.flush()
            rows = np.memmap(self._path, dtype=self._dtype, mode="r", shape=rows.shape)
        self._rows = rows

    def _take(self, places: np.ndarray) -> ColumnSet:
        return _choose(self._rows[: len(self._places)], places, self._folder is not None)

    @property
    def _path(self) -> Path:
        if self._folder is None:
            raise RuntimeError("The columns are in memory, not in a file.")
        return self._folder / "columns"

    def _map(self, count: int) -> np.memmap:
        """Return a file with room for so many columns, with those gathered so far in it."""
        n, first = self._table.shape[0], self._folder is None
        if first:
            made = OwnFolder("mixnorm-columns-", self._table.folder)
            self._folder = made.path
            weakref.finalize(self, made.delete)
        old = self._rows[: len(self._places)]
        # An array that is longer than the file makes it longer.
        mode: Any = "w+" if first else "r+"
        rows = np.memmap(self._path, dtype=self._dtype, mode=mode, shape=(count, n))
        if first:
            rows[: len(old)] = old
        return rows


class _SparseStore(_Store):
    """Columns of a sparse table, which stay sparse and in memory."""

    def __init__(
        self, table: BlockTable, dtype: np.dtype[Any], units: Units | None, limit: int
    ) -> None:
        super().__init__(table, dtype, units)
        self._columns: Any = None

    def _read(self, missing: np.ndarray) -> None:
        import scipy.sparse as sp

        parts = [part for _, part in self._scan(missing)]
        found = sp.csc_array(sp.vstack(parts, format="csc"))
        found.sum_duplicates()
        if self._columns is not None:
            found = sp.csc_array(sp.hstack([self._columns, found], format="csc"))
        self._columns = found

    def _take(self, places: np.ndarray) -> ColumnSet:
        if self._columns is None:
            import scipy.sparse as sp

            return SparseColumns(sp.csc_array((self._table.shape[0], 0), dtype=self._dtype))
        return SparseColumns(self._columns[:, places])


def _choose(rows: np.ndarray, places: np.ndarray, on_disk: bool) -> ColumnSet:
    """Return some of the gathered columns."""
    # Of few columns a copy is quicker to multiply than all of them; files are not copied.
    if not on_disk and 2 * len(places) < len(rows):
        return DenseColumns(rows[places])
    return GatheredColumns(rows, places)


class GatheredColumns(ColumnSet):
    """Some of the columns that were gathered, without a copy of them.

    Parameters
    ----------
    rows : ndarray of shape (n_gathered, n_samples)
        All gathered columns as rows.
    places : ndarray of int
        The places of the columns among them.
    """

    def __init__(self, rows: np.ndarray, places: np.ndarray) -> None:
        # A mapped file as a plain array: the class of maps is slow.
        self._mapped = isinstance(rows, np.memmap)
        self._rows, self._places, self.size = rows.view(np.ndarray), places, len(places)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return columns times weights, output by output."""
        spread = np.zeros((len(self._rows), weights.shape[1]), dtype=self._rows.dtype)
        spread[self._places] = weights
        return np.asarray((spread.T @ self._rows).T)

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        """Return columnsᵀ residual."""
        return np.ascontiguousarray((self._rows @ residual)[self._places])

    def gram(self, curvature: np.ndarray, means: np.ndarray | None, stride: int = 1) -> np.ndarray:
        """Return weighted Gram matrices of the columns, summed over chunks of rows."""
        weights = curvature[::stride]
        # The weights of the rows that are read stand for those of all rows.
        if stride > 1:
            weights = weights * (positive_totals(curvature) / positive_totals(weights))
        count, factors = weights.shape
        total = np.zeros((factors, self.size, self.size), dtype=self._rows.dtype)
        step = max(1, _BYTES_PER_CHUNK // max(1, 8 * self.size))
        for part in split_rows(count, step):
            sample = slice(part.start * stride, part.stop * stride, stride)
            rows = self._rows[:, sample][self._places]
            for factor in range(factors):
                shifted = rows if means is None else rows - means[:, factor, None]
                # With the roots on both sides the product is symmetric: BLAS computes half of it.
                shifted = shifted * np.sqrt(weights[part, factor])
                total[factor] += shifted @ shifted.T
        return total

    def _subset(self, index: np.ndarray) -> ColumnSet:
        return _choose(self._rows, self._places[index], self._mapped)
