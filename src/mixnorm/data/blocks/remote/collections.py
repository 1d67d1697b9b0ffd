"""Dask arrays and data frames as a source of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixnorm._array import is_sparse
from mixnorm.data.blocks.remote.cluster import active_client
from mixnorm.data.blocks.sources import (
    AbsentRows,
    Meter,
    Request,
    RowBlock,
    SentRows,
    Source,
    check_weight,
    join_blocks,
    split_by_starts,
)
from mixnorm.exceptions import TableError


def is_collection(found: object) -> bool:
    """Tell whether an object is an array, a data frame or a series of Dask."""
    # Dask need not be imported for this.
    package = type(found).__module__.split(".")[0]
    return package in ("dask", "dask_expr") and hasattr(found, "__dask_graph__")


@dataclass(frozen=True, eq=False)
class _Rows:
    """A Dask collection, or an array in memory, by its partitions of rows."""

    data: Any
    #: The first row of each partition, and behind the last one.
    starts: np.ndarray
    name: str

    @classmethod
    def of(cls, data: Any, name: str) -> _Rows:
        """Return the rows; lengths of partitions that are not known are computed, once."""
        if not is_collection(data):
            return cls(data, np.array([0, len(data)]), name)
        if _is_frame(data):
            narrow = data[list(data.columns[:1])] if data.ndim == 2 else data
            counts = narrow.map_partitions(len).compute()
        else:
            if np.isnan(data.chunks[0]).any():
                # Of a copy, as the array that it is called on is changed.
                data = data.copy().compute_chunk_sizes()
            counts = data.chunks[0]
        starts = np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))])
        return cls(data, starts.astype(np.int64), name)

    @property
    def lazy(self) -> bool:
        """Whether the rows have to be computed."""
        return is_collection(self.data)

    def find(self, rows: slice) -> list[int]:
        """Return the partitions, none of them empty, that hold some of these rows."""
        first = int(np.searchsorted(self.starts, rows.start, side="right")) - 1
        last = int(np.searchsorted(self.starts, rows.stop, side="left"))
        return [each for each in range(first, last) if self.starts[each + 1] > self.starts[each]]

    def partition(self, number: int, columns: Any = None) -> Any:
        """Return a partition with some columns, as a Dask collection."""
        if _is_frame(self.data):
            data = self.data
            if columns is not None and not isinstance(columns, slice):
                data = data[[data.columns[place] for place in columns]]
            return data.partitions[number]
        part = self.data.blocks[number]
        return part if columns is None or isinstance(columns, slice) else part[:, columns]

    def check(self, number: int, value: Any) -> Any:
        """Return a computed partition; raise if it does not have as many rows as it had."""
        count = int(self.starts[number + 1] - self.starts[number])
        if len(value) != count:
            raise TableError(
                f"Partition {number} of {self.name} has {len(value)} rows, and had {count} before: "
                "it is not the same each time that Dask computes it. Store it, for example with "
                "to_parquet, or keep it with persist()."
            )
        return value


def _is_frame(data: Any) -> bool:
    return hasattr(data, "map_partitions") and hasattr(data, "to_dask_array")


class DaskSource(Source):
    """Rows of Dask arrays or data frames; blocks need not be those of Dask.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        The columns.
    y, weight : Dask array or series, or ndarray, optional
        Targets or labels, and weights of the rows.
    """

    sends_rows = True

    def __init__(self, X: Any, y: Any = None, weight: Any = None) -> None:
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions; give a table with rows and columns.")
        self._X = _Rows.of(X, "X")
        self._y = None if y is None else _Rows.of(y, "y")
        self._weight = None if weight is None else _Rows.of(weight, "sample_weight")
        self.n_rows, self.n_features = (
            int(self._X.starts[-1]),
            len(X.columns) if _is_frame(X) else X.shape[1],
        )
        if not self.n_rows:
            raise TableError("X has no rows; a table needs at least one.")
        for each in (self._y, self._weight):
            if each is not None and each.starts[-1] != self.n_rows:
                raise ValueError(
                    f"{each.name} has {each.starts[-1]} rows, but X has {self.n_rows}; give one "
                    "value per row."
                )
        self.dtype = frame_dtype(X) if _is_frame(X) else np.dtype(X.dtype)
        if self.dtype.kind not in "biuf":
            raise TypeError(
                f"X is of dtype {self.dtype}, but a table of row blocks takes real numbers; give "
                "X.astype(float)."
            )
        if not _is_frame(X) and is_sparse(X._meta):
            raise TypeError(
                "X is a Dask array of sparse matrices, and a table takes dense ones; write rows "
                "to files, or give a SciPy matrix to mixnorm.data.from_arrays."
            )
        if weight is not None and weight.ndim != 1:
            raise ValueError(
                f"sample_weight has {weight.ndim} dimensions; give one weight for each row."
            )
        if _is_frame(X) and all(isinstance(name, str) for name in X.columns):
            self.names = tuple(X.columns)
        self.has_target, self.has_weight = y is not None, weight is not None

    def scan(self, rows: Sequence[slice], request: Request, meter: Meter) -> Iterator[RowBlock]:
        """Yield consecutive blocks of rows; at most one partition of each collection is held."""
        X = None if request.columns is None else _Reader(self._X, request.columns)
        y = _Reader(self._y) if request.target and self._y is not None else None
        weight = _Reader(self._weight) if request.weight and self._weight is not None else None
        for each in rows:
            yield RowBlock(
                None if X is None else self._join_columns(X.read(each)),
                None if y is None else _as_targets(y.read(each), self.describe(each)),
                None if weight is None else _as_weights(weight.read(each), self.describe(each)),
            )

    def _join_columns(self, parts: list[Any]) -> np.ndarray:
        return join_blocks([_as_numbers(part, self.dtype) for part in parts], self.dtype)

    def ranges(self, blocks: Sequence[slice], n_workers: int = 1) -> list[range]:
        """Return ranges of blocks whose first rows lie in the same partition of ``X``."""
        return split_by_starts(self._X.starts, blocks, n_workers)

    def describe(self, rows: slice) -> str:
        """Return the partition of ``X`` in which the rows begin."""
        found = self._X.find(slice(rows.start, rows.start + 1))
        return (
            f"partition {found[0]}, {super().describe(rows)}" if found else super().describe(rows)
        )

    def part(self, rows: slice) -> Source:
        """Return a source without rows; a worker gets those that it asks for."""
        return AbsentRows(self)

    def deliver(self, rows: slice, request: Request) -> tuple[Source, list[Any]]:
        """Return a source that takes the partitions of these rows, and the partitions."""
        columns = request.columns
        if isinstance(columns, np.ndarray):
            columns = np.unique(columns)
        wanted = [
            ("X", self._X if columns is not None else None, columns),
            ("y", self._y if request.target else None, None),
            ("weight", self._weight if request.weight else None, None),
        ]
        inputs: list[Any] = []
        layout: dict[str, Any] = {}
        for name, found, chosen in wanted:
            if found is None:
                continue
            if not found.lazy:
                layout[name] = found.data[rows]
                continue
            numbers = found.find(rows)
            inputs += [found.partition(number, chosen) for number in numbers]
            counts = [int(found.starts[each + 1] - found.starts[each]) for each in numbers]
            layout[name] = _Layout(numbers, counts, rows.start - int(found.starts[numbers[0]]))
        given = replace(request, columns=columns)
        return _Arriving(self, rows, given, layout, self.describe(rows)), inputs


@dataclass(frozen=True)
class _Layout:
    """Partitions that arrive at a worker: their numbers and rows, and the first row needed."""

    numbers: list[int]
    counts: list[int]
    first: int


class _Arriving(AbsentRows):
    """A source whose rows arrive at a worker as computed partitions."""

    def __init__(
        self, source: Source, rows: slice, given: Request, layout: dict[str, Any], place: str
    ) -> None:
        super().__init__(source)
        self._span, self._given, self._layout, self._place = rows, given, layout, place

    def receive(self, values: list[Any]) -> Source:
        """Return a source with the rows of these partitions."""
        rest, found = list(values), {}
        for name, layout in self._layout.items():
            if not isinstance(layout, _Layout):
                found[name] = [layout]
                continue
            parts, rest = rest[: len(layout.numbers)], rest[len(layout.numbers) :]
            starts = np.concatenate([[0], np.cumsum(layout.counts)]) - layout.first
            n = self._span.stop - self._span.start
            here = []
            for part, number, start, count in zip(
                parts, layout.numbers, starts.tolist(), layout.counts, strict=False
            ):
                kept = _Rows(part, np.array([0, count]), f"{name} (number {number})").check(0, part)
                here.append(_take_rows(kept, slice(max(0, -start), min(count, n - start))))
            found[name] = here
        X = found.get("X")
        y, weight = found.get("y"), found.get("weight")
        block = RowBlock(
            None
            if X is None
            else join_blocks([_as_numbers(each, self.dtype) for each in X], self.dtype),
            None if y is None else _as_targets(y, self._place),
            None if weight is None else _as_weights(weight, self._place),
        )
        return SentRows(self, self._span.start, self._given, block)


class _Reader:
    """The rows of a collection, read forward; it holds one computed partition."""

    def __init__(self, rows: _Rows, columns: Any = None) -> None:
        self._rows, self._columns = rows, columns
        self._number, self._value = -1, None

    def read(self, rows: slice) -> list[Any]:
        """Return the parts of partitions that make up some rows."""
        if not self._rows.lazy:
            return [self._rows.data[rows]]
        parts = []
        for number in self._rows.find(rows):
            if number != self._number:
                self._value = None  # before the next one takes memory
                value = _compute(self._rows.partition(number, self._columns))
                self._number, self._value = number, self._rows.check(number, value)
            start = int(self._rows.starts[number])
            stop = int(self._rows.starts[number + 1])
            here = slice(max(rows.start, start) - start, min(rows.stop, stop) - start)
            parts.append(_take_rows(self._value, here))
        return parts


def _compute(collection: Any) -> Any:
    """Compute a partition, in this thread where no cluster is active."""
    if active_client() is not None:
        return collection.compute()
    return collection.compute(scheduler="synchronous")


def _take_rows(part: Any, rows: slice) -> Any:
    return part.iloc[rows] if hasattr(part, "iloc") else part[rows]


def frame_dtype(X: Any) -> np.dtype[Any]:
    """Return the dtype for the columns of a data frame; raise if some are not numbers."""
    import pandas as pd

    narrow = True
    for name, kind in X.dtypes.items():
        if not (pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind)):
            raise TableError(
                f"Column {name!r} of X is of type {kind}, but a table of blocks takes numbers and "
                "bools. Leave it out, or encode it, for example with dask_ml or get_dummies."
            )
        plain = np.dtype(getattr(kind, "numpy_dtype", kind))
        narrow &= plain.itemsize <= (4 if plain.kind == "f" else 2)
    return np.dtype(np.float32 if narrow else np.float64)


def _as_numbers(part: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Return columns as an array; missing values become NaN, which engines reject."""
    if hasattr(part, "iloc"):
        return part.to_numpy(dtype=dtype, na_value=np.nan)
    return np.asarray(part)


def _as_targets(parts: list[Any], place: str) -> np.ndarray:
    """Return targets; texts become arrays of texts."""
    found = []
    for part in parts:
        if not hasattr(part, "iloc"):
            found.append(np.asarray(part))
            continue
        if np.any(part.isna()):
            raise TableError(f"y has a missing value ({place}). Leave such rows out.")
        values = part.to_numpy()
        # Texts and categories come as objects, and so do numbers of pandas' own types.
        found.append(np.asarray(values.tolist()) if values.dtype == object else values)
    return np.concatenate(found) if len(found) != 1 else found[0]


def _as_weights(parts: list[Any], place: str) -> np.ndarray:
    arrays = [
        part.to_numpy(dtype=np.float64, na_value=np.nan) if hasattr(part, "iloc") else part
        for part in parts
    ]
    found = np.concatenate([np.asarray(each, dtype=np.float64) for each in arrays])
    check_weight(found, place)
    return found
