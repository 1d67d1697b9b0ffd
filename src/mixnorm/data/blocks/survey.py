"""One pass over a table that finds what learners need before they begin.

The statistics of its columns, facts about its targets, and samples of its rows. All numbers are
checked on the way: an error names the file or the row, and the column.
"""

from __future__ import annotations

from collections.abc import Callable
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


@dataclass(frozen=True, eq=False)
class Survey:
    """What one pass over a table has found.

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
        :func:`label_facts`. It can be pickled. What it raises with :class:`RowError` is told with
        the place in the table.
    join_targets : callable, optional
        Joins the facts of two parts of the table, of which the first has the earlier rows.
    samples : tuple of arrays of int
        Numbers of rows, each array sorted and without duplicates, to gather on the way.

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
    visit = _Visit(np.dtype(dtype), target, rows, table.names)
    join = _Join(join_targets)
    wanted = target is not None or (len(samples) > 0 and table.source.has_target)
    try:
        found: _Facts = table.sum(visit, columns=ALL_COLUMNS, target=wanted, combine=join)
    except RowError as error:
        raise error.name_place(table) from None
    if found.columns is None:
        raise ValueError(
            "sample_weight is zero for every row; give some row a positive weight."
            if table.source.has_weight
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
    what = "NaN" if np.isnan(value) else f"{value}, infinity or too large for {np.dtype(dtype)}"
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


# --- labels


@dataclass(frozen=True, eq=False)
class LabelFacts:
    """The labels of some rows.

    Attributes
    ----------
    classes : ndarray
        The labels, sorted.
    counts, weights : ndarray of shape (n_classes,)
        The rows of each, and the sum of their weights.
    """

    classes: np.ndarray
    counts: np.ndarray
    weights: np.ndarray


def label_facts(y: np.ndarray, weight: np.ndarray | None) -> LabelFacts:
    """Return the labels of some rows, with their rows and weights.

    Examples
    --------
    >>> import numpy as np
    >>> first = label_facts(np.array(["b", "a", "b"]), None)
    >>> both = join_labels(first, label_facts(np.array(["cc"]), np.array([0.5])))
    >>> both.classes.tolist(), both.counts.tolist(), both.weights.tolist()
    (['a', 'b', 'cc'], [1, 2, 1], [1.0, 2.0, 0.5])
    """
    y = check_labels(y)
    classes, codes = np.unique(y, return_inverse=True)
    counts = np.bincount(codes, minlength=len(classes))
    weights = counts.astype(np.float64)
    if weight is not None:
        weights = np.bincount(codes, np.asarray(weight, np.float64), minlength=len(classes))
    return LabelFacts(classes, counts, weights)


def join_labels(left: LabelFacts, right: LabelFacts) -> LabelFacts:
    """Return the labels of two parts of a table."""
    if len(left.classes) == 0 or len(right.classes) == 0:
        return left if len(right.classes) == 0 else right
    if _kind(left.classes[0]) != _kind(right.classes[0]):
        kinds = sorted({type(each.classes.tolist()[0]).__name__ for each in (left, right)})
        raise TypeError(_MIXED.format(", ".join(kinds)))
    classes, codes = np.unique(np.concatenate([left.classes, right.classes]), return_inverse=True)
    counts = np.zeros(len(classes), dtype=left.counts.dtype)
    weights, middle = np.zeros(len(classes)), len(left.classes)
    for part, places in ((left, codes[:middle]), (right, codes[middle:])):
        counts[places] += part.counts
        weights[places] += part.weights
    return LabelFacts(classes, counts, weights)


_MIXED = (
    "The labels of the table are of several types ({}), which cannot be sorted. Give labels of one "
    "type, for example str(label) for each."
)


def check_labels(y: np.ndarray) -> np.ndarray:
    """Return the labels of a block as one column; raise for what cannot be a label."""
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(
            f"The table has {y.shape[1]} target columns, and labels are one column; name one of "
            "them as the target."
        )
    if y.dtype.kind == "f":
        odd = ~np.isfinite(y) | (y != np.floor(y))
        if np.any(odd):
            row = int(np.flatnonzero(odd)[0])
            raise RowError(
                f"The target is {y[row]} in {{place}}, which is not a label: classes are whole "
                "numbers, texts or booleans. Leave out rows without a label; for numbers use a "
                "regressor.",
                row,
                row,
            )
    if y.dtype.kind == "O":
        values = y.tolist()
        for row, value in enumerate(values):
            if value is None or value != value:
                raise RowError(
                    f"The target is {value} in {{place}}, which is not a label; leave such rows "
                    "out.",
                    row,
                    row,
                )
        if len({_kind(value) for value in values}) > 1:
            kinds = sorted({type(value).__name__ for value in values})
            raise TypeError(_MIXED.format(", ".join(kinds)))
    return y


def _kind(value: object) -> Any:
    """Return a kind within which labels can be sorted: text, number, or their type."""
    for kind in (str, (int, float, np.number, np.bool_)):
        if isinstance(value, kind):
            return kind
    return type(value)


# --- the pass


@dataclass(frozen=True, eq=False)
class _Columns:
    """Statistics of columns over rows with a total weight."""

    weight: float
    low: np.ndarray
    high: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    def join(self, other: _Columns) -> _Columns:
        """Return the statistics of both (Chan, Golub and LeVeque)."""
        whole = self.weight + other.weight
        if not np.isfinite(whole):  # told when all is joined
            return replace(self, weight=whole)
        mine, its = self.weight / whole, other.weight / whole
        # The root first: the difference of two means may overflow, half of it does not.
        between = np.sqrt(mine * its)
        apart = between * other.mean - between * self.mean
        within = np.hypot(np.sqrt(mine) * self.deviation, np.sqrt(its) * other.deviation)
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        mean = np.where(low == high, low, mine * self.mean + its * other.mean)
        deviation = np.where(low == high, 0.0, np.hypot(within, apart))
        return _Columns(whole, low, high, mean, deviation)


@dataclass(frozen=True, eq=False)
class _Facts:
    """What a part of the table has."""

    columns: _Columns | None
    n_used: int
    target: Any
    samples: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, eq=False)
class _Join:
    """Joins the facts of two parts."""

    targets: JoinFacts | None

    def __call__(self, left: _Facts, right: _Facts) -> _Facts:
        columns = left.columns or right.columns
        if left.columns is not None and right.columns is not None:
            columns = left.columns.join(right.columns)
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

    def __call__(self, block: Block) -> _Facts:
        try:
            check_finite(block.X, self.dtype, self.names)
            weight = check_row_weights(block.weight, block.size)
            target = None if self.target is None else self.target(block.y, block.weight)
        except RowError as error:
            raise error.shift(block.rows.start) from None
        samples = tuple(_take(block, rows) for rows in self.samples)
        n_used = int(np.count_nonzero(weight > 0.0))
        return _Facts(self._columns(block.X, weight), n_used, target, samples)

    def _columns(self, X: Any, weight: np.ndarray) -> _Columns | None:
        largest = float(np.max(weight, initial=0.0))
        if not largest > 0.0:
            return None
        # In units of the largest, no weight overflows in single precision.
        inside = (weight / largest).astype(self.dtype)
        found = as_matrix(X, self.dtype).statistics(inside)
        low, high, mean, deviation = (
            np.asarray(each, dtype=np.float64)
            for each in (found.low, found.high, found.mean, found.deviation)
        )
        with np.errstate(over="ignore"):  # checked for the whole table
            total = float(np.sum(weight))
        # A constant column varies by the rounding of its mean, which is not its own.
        mean, deviation = np.where(low == high, low, mean), np.where(low == high, 0.0, deviation)
        return _Columns(total, low, high, mean, deviation)


def _take(block: Block, rows: np.ndarray) -> tuple[Any, ...]:
    """Return the rows of a sample that are in a block."""
    first, last = np.searchsorted(rows, (block.rows.start, block.rows.stop))
    here = rows[first:last] - block.rows.start
    parts = block.X, block.y, block.weight
    return tuple(None if part is None else part[here] for part in parts)
