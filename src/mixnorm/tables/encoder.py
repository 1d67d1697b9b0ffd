"""Tables to matrices: every column's plan, and what has to be said about the data."""

from __future__ import annotations

import zlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mixnorm.exceptions import TableError
from mixnorm.tables.columns import CategoryColumn, ColumnPlan, DateColumn, Gaps, NumberColumn
from mixnorm.tables.marks import detect_decimal_mark, restyle_columns, sample_texts
from mixnorm.tables.names import ColumnName, NumberName
from mixnorm.tables.plan import plan_column
from mixnorm.tables.words import join_names, pluralize

if TYPE_CHECKING:
    import pandas as pd

    from mixnorm.tables.table import SparseTable

# Whole numbers up to here are exact in single precision.
_EXACT = 2.0**24
# What larger numbers in a new table count as in single precision, whose end is at 3e38: products of
# two, and sums of these, have to stay below it.
_LARGEST = 1e15


@dataclass(frozen=True)
class TableEncoder:
    """How a table becomes a matrix.

    Made by :meth:`plan` from training data; :meth:`encode` then turns that table, or a new one with
    the same columns, into a matrix. One column of the table is one feature, however many columns of
    the matrix it takes (unless the estimator's pool makes features of single matrix columns).

    Parameters
    ----------
    columns : tuple of column plans
        One per column that is used, in the order of the table.
    left_out : tuple of (str, str)
        Columns that are not used, each with the reason.
    dtype : {"float32", "float64"}
        Type of the matrix: single precision where that is exact.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"power": [90.0, None, 210.0], "fuel": ["gas", "oil", "gas"]})
    >>> encoder = TableEncoder.plan(frame)
    >>> encoder.encode(frame)[0]
    array([[ 90.,   1.,   0.],
           [150.,   0.,   1.],
           [210.,   1.,   0.]], dtype=float32)
    >>> encoder.groups
    [0, 1, 1]
    """

    columns: tuple[ColumnPlan, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    dtype: Literal["float32", "float64"] = "float64"

    def _check_stored(self) -> None:
        if len(set(self.names)) != len(self.columns):
            raise ValueError("two columns of the table have one name")

    @classmethod
    def plan(
        cls,
        frame: pd.DataFrame,
        *,
        numbers: Collection[str] = (),
        categories: Collection[str] = (),
        standardise: bool = False,
    ) -> TableEncoder:
        """Find out what the columns of a training table are.

        Parameters
        ----------
        frame : DataFrame
            The table, without its target.
        numbers, categories : collection of str
            Columns whose kind the user names.
        standardise : bool
            Put columns on one scale, for pools that measure distances between rows: numbers, and
            dates as days, get standard deviation 1. Indicators stay 0 and 1.
        """
        kinds = {str(name): "number" for name in numbers}
        kinds.update({str(name): "category" for name in categories})
        frame = _with_texts(frame)
        plans: list[ColumnPlan] = []
        left_out: list[tuple[str, str]] = []
        twins = _Twins(frame)
        exact, mark = True, detect_decimal_mark(frame)
        for name in dict.fromkeys(frame.columns):
            values = _column(frame, name)
            plan = plan_column(values, kinds.get(name), mark)
            if not isinstance(plan, str):
                matrix, _ = plan.encode(values)
                twin = twins.of(plan, matrix)
                if twin is None:
                    scaled = plan.standardise(matrix) if standardise else plan
                    exact = exact and scaled == plan and _is_exact(plan, matrix)
                    plans.append(scaled)
                    continue
                plan = f"it is a copy of {twin!r}"
            left_out.append((name, plan))
        return cls(tuple(plans), tuple(left_out), "float32" if exact else "float64")

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return [plan.name for plan in self.columns]

    @property
    def kinds(self) -> list[str]:
        """What each feature is, in words."""
        return [plan.kind for plan in self.columns]

    @property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return sum(plan.width for plan in self.columns)

    @property
    def groups(self) -> list[int] | None:
        """The feature that each column of the matrix belongs to; None if that is itself."""
        if self.width == len(self.columns):
            return None
        return self.owners

    @property
    def owners(self) -> list[int]:
        """The feature that each column of the matrix belongs to."""
        return [index for index, plan in enumerate(self.columns) for _ in range(plan.width)]

    @property
    def column_names(self) -> list[ColumnName]:
        """Names of the columns of the matrix: ``age``, ``colour = red``."""
        return [name for plan in self.columns for name in plan.column_names]

    def adapt(self, frame: pd.DataFrame) -> TableEncoder:
        """Return the encoder that reads numbers as a new table writes them.

        It may have decimal commas where training had points, or the other way round.
        """
        numbers = [plan for plan in self.columns if isinstance(plan, NumberColumn)]
        texts = sample_texts(frame, {plan.name for plan in numbers})
        found = {plan.name: plan for plan in restyle_columns(numbers, texts)}
        return replace(self, columns=tuple(found.get(plan.name, plan) for plan in self.columns))

    def encode(
        self, frame: pd.DataFrame, needed: Collection[int] | None = None
    ) -> tuple[np.ndarray, dict[str, Gaps]]:
        """Return the matrix of a table, and by column what was missing or strange.

        Parameters
        ----------
        frame : DataFrame
            A table with the columns of the training table, in any order.
        needed : collection of int, optional
            Features that matter; the columns of the others are zero, and may be missing.
        """
        wanted = range(len(self.columns)) if needed is None else sorted(needed)
        frame = _with_texts(frame)
        missing = [self.columns[index].name for index in wanted]
        missing = [name for name in missing if name not in frame.columns]
        if missing:
            raise TableError(_missing_columns(missing, list(dict.fromkeys(frame.columns))))
        matrix = np.zeros((len(frame), self.width), dtype=self.dtype, order="F")
        starts = np.cumsum([0] + [plan.width for plan in self.columns])
        gaps: dict[str, Gaps] = {}
        for index in wanted:
            plan = self.columns[index]
            part, gap = plan.encode(_column(frame, plan.name))
            if self.dtype == "float32":
                part = np.clip(part, -_LARGEST, _LARGEST)
            matrix[:, starts[index] : starts[index + 1]] = part
            if gap != Gaps():
                gaps[plan.name] = gap
        return matrix, gaps


@dataclass(frozen=True, eq=False)
class SparseEncoder:
    """The columns of a LIBSVM file, which are numbers already.

    Parameters
    ----------
    columns : ndarray of int
        The columns that have entries in training, counted from 0 and in order: the numbers of a
        file may well be hashes, with few of them in use.
    zero_based : bool
        Whether the file counts them from 0.
    scales : ndarray of float, optional
        What the columns are divided by, where they are to be on one scale.
    """

    columns: np.ndarray
    zero_based: bool
    scales: np.ndarray | None = None

    def _check_stored(self) -> None:
        columns = self.columns
        good = columns.ndim == 1 and columns.dtype == np.int64 and len(columns) > 0
        if not good or columns[0] < 0 or np.any(np.diff(columns) <= 0):
            raise ValueError("the columns of a LIBSVM file must be whole numbers in order")
        scales = self.scales
        if scales is None:
            return
        good = scales.shape == columns.shape and scales.dtype == np.float64
        if not good or not np.all((scales > 0) & (scales < np.inf)):
            raise ValueError("the scales of a LIBSVM file's columns must be positive, one for each")

    @classmethod
    def plan(cls, table: SparseTable, *, standardise: bool = False) -> SparseEncoder:
        """Find out which columns of a training table have entries.

        Parameters
        ----------
        table : SparseTable
            The table.
        standardise : bool
            Divide columns by their standard deviations, for pools that measure distances.
        """
        stored = table.matrix.indices[table.matrix.data != 0]
        found = cls(np.unique(stored).astype(np.int64), table.zero_based)
        return replace(found, scales=_deviations(found.encode(table)[0])) if standardise else found

    @property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return len(self.columns)

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns: their numbers in the file."""
        first = 0 if self.zero_based else 1
        return [str(column) for column in (self.columns + first).tolist()]

    @cached_property
    def kinds(self) -> list[str]:
        """What each feature is, in words."""
        return ["number"] * self.width

    groups = None

    @property
    def owners(self) -> range:
        """The feature that each column of the matrix belongs to: itself."""
        return range(self.width)

    @cached_property
    def column_names(self) -> list[ColumnName]:
        """Names of the columns of the matrix; a number alone would not look like a name."""
        scales = np.ones(self.width) if self.scales is None else self.scales
        return [
            NumberName(f"column {name}", scale=scale)
            for name, scale in zip(self.names, scales.tolist(), strict=True)
        ]

    def encode(self, table: SparseTable) -> tuple[Any, dict[str, Gaps]]:
        """Return the matrix of a table; columns without entries in training are left out."""
        from scipy import sparse

        matrix = table.matrix.tocoo()
        place = np.minimum(np.searchsorted(self.columns, matrix.col), self.width - 1)
        known = self.columns[place] == matrix.col
        values = matrix.data[known]
        if self.scales is not None:
            values = values / self.scales[place[known]]
        entries = (values, (matrix.row[known], place[known]))
        return sparse.csr_array(entries, shape=(matrix.shape[0], self.width)), {}


def _deviations(matrix: Any) -> np.ndarray:
    """Return the standard deviations of sparse columns; 1 for constants."""
    largest = np.asarray(abs(matrix).max(axis=0).todense(), dtype=np.float64).reshape(-1)
    reduced = matrix.tocsc(copy=True)
    reduced.data = reduced.data / np.repeat(largest, np.diff(reduced.indptr))
    mean = np.asarray(reduced.mean(axis=0)).reshape(-1)
    square = np.asarray(reduced.power(2).mean(axis=0)).reshape(-1)
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    return np.where(spread > 1e-7, largest * spread, 1.0)


def _with_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose columns are named by texts; the entries are not copied."""
    frame = frame.copy(deep=False)
    frame.columns = [str(name) for name in frame.columns]
    return frame


def _column(frame: pd.DataFrame, name: str) -> pd.Series[Any]:
    values = frame[name]
    if values.ndim > 1:
        raise TableError(f"The table has more than one column {name!r}; rename or drop some.")
    return values


class _Twins:
    """Finds columns that hold the same as an earlier one, by checksum first."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame
        self._seen: dict[tuple[int, int], list[ColumnPlan]] = {}

    def of(self, plan: ColumnPlan, matrix: np.ndarray) -> str | None:
        """Return the earlier column that is the same, and remember this one if there is none."""
        key = (matrix.shape[1], zlib.crc32(np.ascontiguousarray(matrix).data))
        for earlier in self._seen.setdefault(key, []):
            if np.array_equal(matrix, earlier.encode(self._frame[earlier.name])[0]):
                return earlier.name
        self._seen[key].append(plan)
        return None


def _is_exact(plan: ColumnPlan, matrix: np.ndarray) -> bool:
    """Whether single precision holds an encoded column as it is."""
    if isinstance(plan, CategoryColumn):
        return True
    if isinstance(plan, DateColumn):
        return False
    return bool(np.max(np.abs(matrix)) < _EXACT and np.all(matrix == np.rint(matrix)))


def _missing_columns(missing: list[str], given: list[str]) -> str:
    import difflib

    hints = list(map(repr, missing))
    for place, name in enumerate(missing[:5]):
        close = difflib.get_close_matches(name, given, n=1)
        hints[place] += f" (is it {close[0]!r}?)" if close else ""
    what = "column" if len(missing) == 1 else "columns"
    return f"The table lacks the {what} {join_names(hints, 5)}, which the model needs."


def explain_unreadable(name: str, kind: str, gap: Gaps, rows: int, example: str = "") -> str:
    """Return why a column of a new table cannot be used; nothing if most of it can be read.

    Parameters
    ----------
    name, kind : str
        The column, and what it was in training.
    gap : Gaps
        What is missing or strange in the new table.
    rows : int
        Number of rows of the new table.
    example : str
        An entry that can be read.
    """
    present = rows - gap.missing
    if 2 * gap.strange <= present:
        return ""
    texts = ", ".join(map(repr, gap.examples))
    such = f", such as {example}" if example else ""
    return (
        f"{name} is unreadable in {gap.strange} of the {pluralize(present, 'row')} that have it "
        f"({texts}); it was a {kind} in training{such}. Write it so in the new table, and leave "
        "entries empty where it is missing."
    )


def describe_encoding(
    encoder: TableEncoder, gaps: dict[str, Gaps], rows: int, *, together: bool = True
) -> list[str]:
    """Return in sentences what was done to the training data.

    Parameters
    ----------
    encoder : TableEncoder
        The plans.
    gaps : dict
        What :meth:`TableEncoder.encode` found missing or strange.
    rows : int
        Number of rows.
    together : bool
        Whether the matrix columns of a category or a date are one feature.
    """
    said: list[str] = []
    grouped = [
        f"{plan.name} ({plan.width} levels)"
        for plan in encoder.columns
        if isinstance(plan, CategoryColumn)
    ]
    if grouped:
        how = "each counted as one feature" if together else "each level a column of its own"
        said.append(f"Categories, {how}: {join_names(grouped)}.")
    dates = [describe_date(plan) for plan in encoder.columns if isinstance(plan, DateColumn)]
    if dates:
        how = "each counted as one feature" if together else "as days, and by their cycles"
        said.append(f"Dates, {how}: {join_names(dates)}.")
    filled = [_filled(plan, gaps[plan.name]) for plan in encoder.columns if plan.name in gaps]
    filled = [text for text in filled if text]
    if filled:
        said.append(f"Missing values, of {pluralize(rows, 'row')}: {join_names(filled)}.")
    for name, gap in gaps.items():
        if gap.strange or gap.infinite:
            said.append(f"Taken as missing in {name}: {describe_strange(gap)}.")
    reasons: dict[str, list[str]] = {}
    for name, reason in encoder.left_out:
        reasons.setdefault(reason, []).append(name)
    said += [f"Left out: {join_names(names)} ({reason})." for reason, names in reasons.items()]
    return said


def describe_date(plan: DateColumn) -> str:
    """Return the name of a date with how it was read, where that could be mistaken."""
    order = {"%m": " (month first)", "%d": " (day first)"}
    return plan.name + order.get(plan.pattern[:2], "")


def _filled(plan: ColumnPlan, gap: Gaps) -> str:
    """Return how missing entries of a column were filled."""
    if not gap.missing:
        return ""
    if isinstance(plan, NumberColumn):
        return f"{plan.name} ({gap.missing}, filled with the median {plan.fill:g})"
    if isinstance(plan, DateColumn):
        day = np.datetime64(int(plan.fill), "s").astype("datetime64[D]")
        return f"{plan.name} ({gap.missing}, filled with the median {day})"
    return f"{plan.name} ({gap.missing}, a level of their own)"


def describe_strange(gap: Gaps) -> str:
    """Return in words how many entries could not be taken as they are."""
    parts = []
    if gap.infinite:
        parts.append(f"{gap.infinite} infinite")
    if gap.strange:
        texts = ", ".join(repr(text) for text in gap.examples)
        parts.append(f"{gap.strange} unreadable ({texts})")
    return " and ".join(parts)
