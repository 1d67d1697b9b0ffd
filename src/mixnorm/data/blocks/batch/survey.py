"""One pass over a table that finds what learners need before they begin.

The statistics of its columns, facts about its targets, and samples of its rows. All numbers are
checked on the way: an error names the file or the row, and the column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixnorm._array import is_sparse
from mixnorm.data.base import ColumnStatistics
from mixnorm.data.blocks.sources import ALL_COLUMNS, RowBlock
from mixnorm.data.blocks.sums import join_rows
from mixnorm.data.blocks.table import Block, BlockTable
from mixnorm.data.matrix import as_matrix

#: Makes facts of the targets and weights of some rows, and joins those of two parts of a table.
FindFacts = Callable[[np.ndarray, np.ndarray | None], Any]
JoinFacts = Callable[[Any, Any], Any]
#: Takes targets and weights of some rows, and returns the weights that count.
WeighRows = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Survey:
    """The results of one pass over a table.

    Attributes
    ----------
    statistics : ColumnStatistics
        Statistics of the columns over rows of positive weight, in float64.
    total_weight : float
        The sum of the weights; the number of rows where there are none.
    n_used : int
        Number of rows of positive weight.
    target : object
        The joined facts of the targets.
    samples : tuple of RowBlock
        The rows of each sample, in the order of their numbers.
    """

    statistics: ColumnStatistics
    total_weight: float
    n_used: int
    target: Any
    samples: tuple[RowBlock, ...]


def survey(
    table: BlockTable,
    dtype: Any,
    *,
    target: FindFacts | None = None,
    join_targets: JoinFacts | None = None,
    samples: tuple[np.ndarray, ...] = (),
    weight: np.ndarray | None = None,
    weigh: WeighRows | None = None,
) -> Survey:
    """Return the statistics of a table, facts of its targets, and samples of its rows.

    Parameters
    ----------
    table : BlockTable
        The table. It is read once.
    dtype : dtype
        The dtype to work in: numbers that are not finite in it are an error.
    target : callable, optional
        Makes facts of the targets of a block and of its weights (or None), such as
        :func:`label_facts`. It can be pickled. A :class:`RowError` that it raises becomes an
        error that names the place in the table.
    join_targets : callable, optional
        Joins the facts of two parts of the table, of which the first has the earlier rows.
    samples : tuple of arrays of int
        Numbers of rows, each array sorted and without duplicates, to gather on the way.
    weight : array of shape (n_rows,), optional
        Weights in place of those of the table.
    weigh : callable, optional
        Takes the targets and the weights of the rows of a block, and returns the weights that count
        for the statistics of the columns.

    Returns
    -------
    Survey

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm.data import from_arrays
    >>> table = from_arrays(np.array([[1.0], [2.0], [6.0]]), block_rows=2)
    >>> found = survey(table, np.dtype(float), samples=(np.array([0, 2]),))
    >>> found.statistics.mean.tolist(), found.n_used, found.samples[0].X.ravel().tolist()
    ([3.0], 3, [1.0, 6.0])
    """
    rows = tuple(np.asarray(each) for each in samples)
    visit = _Visit(np.dtype(dtype), target, rows, table.names, weigh)
    join = _Join(join_targets)
    wanted = target is not None or (len(samples) > 0 and table.source.has_target)
    with placed_errors(table):
        found: _Facts = table.sum(
            visit,
            columns=ALL_COLUMNS,
            target=wanted,
            combine=join,
            beside=() if weight is None else (weight,),
        )
    if found.columns is None:
        raise ValueError(
            "sample_weight is zero for every row; give some row a positive weight."
            if table.source.has_weight or weight is not None
            else "The table has no rows; give at least one."
        )
    if not np.isfinite(found.columns.weight):
        raise ValueError("The sum of sample_weight overflows; divide the weights by the largest.")
    columns = found.columns
    statistics = ColumnStatistics(columns.low, columns.high, columns.mean, columns.deviation)
    gathered = tuple(RowBlock(*sample) for sample in found.samples)
    return Survey(statistics, columns.weight, found.n_used, found.target, gathered)


class RowError(ValueError):
    """An error in some rows of a block, which the table then says the place of.

    Parameters
    ----------
    message : str
        What is wrong, and what to do, with ``{place}`` where the place belongs.
    first, last : int
        The first and last row; of the block, until ``shift`` makes them those of the table.
    """

    def __init__(self, message: str, first: int, last: int) -> None:
        super().__init__(message, first, last)
        self.message, self.first, self.last = message, first, last

    def shift(self, start: int) -> RowError:
        """Return the error with rows of the table, for a block that begins at ``start``."""
        return RowError(self.message, self.first + start, self.last + start)

    def name_place(self, table: BlockTable) -> ValueError:
        """Return the error that names the place in the table."""
        place = table.source.describe(slice(self.first, self.last + 1))
        return ValueError(self.message.replace("{place}", place))


@contextmanager
def placed_errors(table: BlockTable) -> Iterator[None]:
    """Name the place in the table in errors of rows."""
    try:
        yield
    except RowError as error:
        raise error.name_place(table) from None


@contextmanager
def shifted_errors(block: Block) -> Iterator[None]:
    """Count the rows of errors from the first row of the table, not of the block."""
    try:
        yield
    except RowError as error:
        raise error.shift(block.rows.start) from None


def check_finite(X: Any, dtype: Any, names: tuple[str, ...] | None = None) -> None:
    """Raise a :class:`RowError` unless all numbers of a block are finite in a dtype."""
    entries = X.data if is_sparse(X) else X
    if entries.dtype.kind not in "fc" or entries.size == 0:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        # A sum shows most blocks to be finite without a mask of their size.
        narrow = np.finfo(dtype).max < np.finfo(entries.dtype).max
        if not narrow and np.isfinite(np.sum(entries)):
            return
        bad = ~np.isfinite(entries.astype(dtype, copy=False))
    if not np.any(bad):
        return
    if is_sparse(X):
        entry = int(np.flatnonzero(bad)[0])
        row = int(np.searchsorted(X.indptr, entry, side="right")) - 1
        column, value = int(X.indices[entry]), X.data[entry]
    else:
        row = int(np.flatnonzero(np.any(bad, axis=1))[0])
        column = int(np.flatnonzero(bad[row])[0])
        value = X[row, column]
    what = "NaN" if np.isnan(value) else "infinity"
    if np.isfinite(value):
        what = f"{value}, which is too large for {np.dtype(dtype)},"
    raise RowError(
        f"The table contains {what} in column {column if names is None else repr(names[column])}, "
        "{place}. Numbers must be finite: fill in or leave out such rows.",
        row,
        row,
    )


def check_row_weights(weight: np.ndarray | None, count: int) -> np.ndarray:
    """Return the weights of the rows of a block in float64, ones where there are none."""
    if weight is None:
        return np.ones(count)
    try:
        found = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"The weights of the table, of dtype {np.asarray(weight).dtype}, are not numbers; give "
            "one number per row."
        ) from None
    bad = ~(np.isfinite(found) & (found >= 0.0))
    if np.any(bad):
        row = int(np.flatnonzero(bad)[0])
        raise RowError(
            f"sample_weight is {found[row]} in {{place}}; weights must be finite, and zero or "
            "more.",
            row,
            row,
        )
    return found


# --- the pass


@dataclass(frozen=True, eq=False)
class Moments:
    """Statistics of columns over rows with a total weight, in float64."""

    weight: float
    low: np.ndarray
    high: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(cls, X: Any, weight: np.ndarray, dtype: np.dtype[Any]) -> Moments | None:
        """Return the statistics of some rows; None if no row has a positive weight."""
        largest = float(np.max(weight, initial=0.0))
        if not largest > 0.0:
            return None
        # In units of the largest, no weight overflows in single precision.
        inside = (weight / largest).astype(dtype)
        found = as_matrix(X, dtype).statistics(inside)
        low, high, mean, deviation = (
            np.asarray(each, dtype=np.float64)
            for each in (found.low, found.high, found.mean, found.deviation)
        )
        with np.errstate(over="ignore"):  # checked for the whole table
            total = float(np.sum(weight))
        # A constant column varies by the rounding of its mean, which is not its own.
        mean, deviation = np.where(low == high, low, mean), np.where(low == high, 0.0, deviation)
        return cls(total, low, high, mean, deviation)

    def join(self, other: Moments) -> Moments:
        """Return the statistics of both (Chan, Golub and LeVeque)."""
        whole = self.weight + other.weight
        if not np.isfinite(whole):  # reported when all is joined
            return replace(self, weight=whole)
        mine, its = self.weight / whole, other.weight / whole
        # The root first: the difference of two means may overflow, half of it does not.
        between = np.sqrt(mine * its)
        apart = between * other.mean - between * self.mean
        within = np.hypot(np.sqrt(mine) * self.deviation, np.sqrt(its) * other.deviation)
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        mean = np.where(low == high, low, mine * self.mean + its * other.mean)
        deviation = np.where(low == high, 0.0, np.hypot(within, apart))
        return Moments(whole, low, high, mean, deviation)


def join_moments(left: Moments | None, right: Moments | None) -> Moments | None:
    """Return the statistics of two parts of a table, None where no row counts."""
    return left.join(right) if left is not None and right is not None else left or right


@dataclass(frozen=True, eq=False)
class _Facts:
    """What a part of the table has."""

    columns: Moments | None
    n_used: int
    target: Any
    samples: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, eq=False)
class _Join:
    """Joins the facts of two parts."""

    targets: JoinFacts | None

    def __call__(self, left: _Facts, right: _Facts) -> _Facts:
        columns = join_moments(left.columns, right.columns)
        target = None if self.targets is None else self.targets(left.target, right.target)
        pairs = zip(left.samples, right.samples, strict=True)
        samples = tuple(join_rows(tuple(one), tuple(other)) for one, other in pairs)
        return _Facts(columns, left.n_used + right.n_used, target, samples)


@dataclass(frozen=True, eq=False)
class _Visit:
    """Finds the facts of a block."""

    dtype: np.dtype[Any]
    target: FindFacts | None
    samples: tuple[np.ndarray, ...]
    names: tuple[str, ...] | None = None
    weigh: WeighRows | None = None

    def __call__(self, block: Block) -> _Facts:
        with shifted_errors(block):
            check_finite(block.X, self.dtype, self.names)
            given = block.beside[0] if block.beside else block.weight
            weight = check_row_weights(given, block.size)
            target = None if self.target is None else self.target(block.y, given)
            weight = weight if self.weigh is None else self.weigh(block.y, weight)
        samples = tuple(_take(block, rows) for rows in self.samples)
        n_used = int(np.count_nonzero(weight > 0.0))
        return _Facts(Moments.of(block.X, weight, self.dtype), n_used, target, samples)


def _take(block: Block, rows: np.ndarray) -> tuple[Any, ...]:
    """Return the rows of a sample that are in a block."""
    first, last = np.searchsorted(rows, (block.rows.start, block.rows.stop))
    here = rows[first:last] - block.rows.start
    parts = block.X, block.y, block.weight
    return tuple(None if part is None else part[here] for part in parts)
