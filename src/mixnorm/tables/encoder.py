"""Tables to matrices: the plans of all columns, and sentences about what was done to them."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from mixnorm.exceptions import TableError
from mixnorm.tables.columns import CategoryColumn, ColumnPlan, DateColumn, Gaps, NumberColumn
from mixnorm.tables.marks import detect_decimal_mark, restyle_columns, sample_texts
from mixnorm.tables.names import ColumnName, NumberName, format_date
from mixnorm.tables.plan import plan_column
from mixnorm.tables.words import join_names, pluralize

if TYPE_CHECKING:
    import pandas as pd

    from mixnorm.tables.table import SparseTable

#: Whole numbers below this are exact in single precision.
EXACT_IN_FLOAT32 = 2.0**24
# Numbers of a new table are clipped to this in single precision, so that sums of products of two
# stay below its limit of 3e38.
_LARGEST_IN_FLOAT32 = 1e15


@dataclass(frozen=True)
class TableEncoder:
    """An encoder of tables as matrices.

    :meth:`plan` makes it from training data. :meth:`encode` then converts that table, or a new one
    with the same columns, to a matrix. Each column of the table is one feature, even if it takes
    several columns of the matrix (unless the estimator's pool makes features of single columns).

    Parameters
    ----------
    columns : tuple of column plans
        One per column that is used, in the order of the table.
    left_out : tuple of (str, str)
        Columns that are not used, each with the reason.
    dtype : {"float32", "float64"}
        Type of the matrix: single precision if the entries are exact in it, or are stored in it.

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
            raise ValueError("two columns of the table have the same name")

    @classmethod
    def plan(
        cls,
        frame: pd.DataFrame,
        *,
        numbers: Collection[str] = (),
        categories: Collection[str] = (),
        standardise: bool = False,
    ) -> TableEncoder:
        """Decide from a training table how to encode its columns.

        Parameters
        ----------
        frame : DataFrame
            The table, without its target.
        numbers, categories : collection of str
            Columns whose kind the user names.
        standardise : bool
            Put columns on one scale for pools that measure distances between rows: numbers and
            days get standard deviation 1. Indicators stay 0 and 1.
        """
        kinds = {str(name): "number" for name in numbers}
        kinds.update({str(name): "category" for name in categories})
        frame = _name_columns_by_texts(frame)
        plans: list[ColumnPlan] = []
        left_out: list[tuple[str, str]] = []
        seen: dict[tuple[int, int], list[ColumnPlan]] = {}
        exact, mark = True, detect_decimal_mark(frame)
        for name in dict.fromkeys(frame.columns):
            values = _select_column(frame, name)
            plan = plan_column(values, kinds.get(name), mark)
            if not isinstance(plan, str):
                matrix, _ = plan.encode(values)
                twin = _find_twin(plan, matrix, frame, seen)
                if twin is None:
                    scaled = plan.standardise(matrix) if standardise else plan
                    exact = exact and scaled == plan and _is_exact(plan, matrix, values)
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
        """The kind of each feature in words."""
        return [plan.kind for plan in self.columns]

    @property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return sum(plan.width for plan in self.columns)

    @property
    def groups(self) -> list[int] | None:
        """The feature of each column of the matrix; None if each column is a feature."""
        return None if self.width == len(self.columns) else self.owners

    @property
    def owners(self) -> list[int]:
        """The feature of each column of the matrix."""
        return [index for index, plan in enumerate(self.columns) for _ in range(plan.width)]

    @property
    def column_names(self) -> list[ColumnName]:
        """Names of the columns of the matrix: ``age``, ``colour = red``."""
        return [name for plan in self.columns for name in plan.column_names]

    def adapt(self, frame: pd.DataFrame) -> TableEncoder:
        """Return an encoder that reads numbers in the style of a new table.

        The new table may have decimal commas where training had points, or the other way round.
        """
        numbers = [plan for plan in self.columns if isinstance(plan, NumberColumn)]
        texts = sample_texts(frame, {plan.name for plan in numbers})
        found = {plan.name: plan for plan in restyle_columns(numbers, texts)}
        return replace(self, columns=tuple(found.get(plan.name, plan) for plan in self.columns))

    def encode(
        self, frame: pd.DataFrame, needed: Collection[int] | None = None
    ) -> tuple[np.ndarray, dict[str, Gaps]]:
        """Return the matrix of a table, and counts of missing and unreadable entries by column.

        Parameters
        ----------
        frame : DataFrame
            A table with the columns of the training table, in any order.
        needed : collection of int, optional
            Features to encode; the columns of the others are zero, and may be missing.
        """
        wanted = range(len(self.columns)) if needed is None else sorted(needed)
        frame = _name_columns_by_texts(frame)
        names = [self.columns[index].name for index in wanted]
        missing = [name for name in names if name not in frame.columns]
        if missing:
            refuse_missing_columns(missing, list(dict.fromkeys(frame.columns)))
        matrix = np.zeros((len(frame), self.width), dtype=self.dtype, order="F")
        starts = np.cumsum([0] + [plan.width for plan in self.columns])
        gaps: dict[str, Gaps] = {}
        for index in wanted:
            plan = self.columns[index]
            part, gap = plan.encode(_select_column(frame, plan.name))
            matrix[:, starts[index] : starts[index + 1]] = clip_numbers(part, self.dtype)
            if gap != Gaps():
                gaps[plan.name] = gap
        return matrix, gaps


def clip_numbers(part: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the columns of a matrix without numbers that are too large for its dtype."""
    if np.dtype(dtype) != np.float32:
        return part
    return np.clip(part, -_LARGEST_IN_FLOAT32, _LARGEST_IN_FLOAT32)


@dataclass(frozen=True, eq=False)
class SparseEncoder:
    """An encoder of LIBSVM files, whose columns are numbers already.

    Parameters
    ----------
    columns : ndarray of int
        The columns that have entries in training, counted from 0 and in order. Column numbers may
        be hashes, of which few are in use.
    zero_based : bool
        Whether the file counts columns from 0.
    scales : ndarray of float, optional
        Divisors that put the columns on one scale.
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
        """Find the columns of a training table that have entries.

        Parameters
        ----------
        table : SparseTable
            The table.
        standardise : bool
            Divide columns by their standard deviations, for pools that measure distances.
        """
        stored = table.matrix.indices[table.matrix.data != 0]
        found = cls(np.unique(stored).astype(np.int64), table.zero_based)
        return (
            replace(found, scales=_compute_deviations(found.encode(table)[0]))
            if standardise
            else found
        )

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
        """The kind of each feature in words."""
        return ["number"] * self.width

    groups = None

    @property
    def owners(self) -> range:
        """The feature of each column of the matrix: the column itself."""
        return range(self.width)

    @cached_property
    def column_names(self) -> list[ColumnName]:
        """Names of the columns of the matrix: "column 7" instead of a bare number."""
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


def _compute_deviations(matrix: Any) -> np.ndarray:
    """Return the standard deviations of sparse columns; 1 for constants."""
    largest = np.asarray(abs(matrix).max(axis=0).todense(), dtype=np.float64).reshape(-1)
    reduced = matrix.tocsc(copy=True)
    reduced.data = reduced.data / np.repeat(largest, np.diff(reduced.indptr))
    mean = np.asarray(reduced.mean(axis=0)).reshape(-1)
    square = np.asarray(reduced.power(2).mean(axis=0)).reshape(-1)
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    return np.where(spread > 1e-7, largest * spread, 1.0)


def _name_columns_by_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose columns are named by texts; the entries are not copied."""
    frame = frame.copy(deep=False)
    frame.columns = [str(name) for name in frame.columns]
    return frame


def _select_column(frame: pd.DataFrame, name: str) -> pd.Series[Any]:
    values = frame[name]
    if values.ndim > 1:
        raise TableError(f"The table has more than one column {name!r}; rename or drop some.")
    return values


def _find_twin(
    plan: ColumnPlan,
    matrix: np.ndarray,
    frame: pd.DataFrame,
    seen: dict[tuple[int, int], list[ColumnPlan]],
) -> str | None:
    """Return the earlier column with the same matrix; if there is none, add this one to ``seen``.

    ``seen`` groups plans by the width and checksum of their matrices, so that few are compared.
    """
    key = (matrix.shape[1], zlib.crc32(np.ascontiguousarray(matrix).data))
    for earlier in seen.setdefault(key, []):
        if np.array_equal(matrix, earlier.encode(frame[earlier.name])[0]):
            return earlier.name
    seen[key].append(plan)
    return None


def _is_exact(plan: ColumnPlan, matrix: np.ndarray, values: pd.Series[Any]) -> bool:
    """Whether single precision represents an encoded column as exactly as it is known."""
    if isinstance(plan, CategoryColumn):
        return True
    if isinstance(plan, DateColumn):
        return False
    if values.dtype == np.float32 and fits_float32(matrix):
        return True
    return bool(np.max(np.abs(matrix)) < EXACT_IN_FLOAT32 and np.all(matrix == np.rint(matrix)))


def fits_float32(matrix: np.ndarray) -> bool:
    """Whether squares of numbers of this size neither overflow nor vanish in single precision."""
    return bool(1.0 / _LARGEST_IN_FLOAT32 < np.max(np.abs(matrix)) < _LARGEST_IN_FLOAT32)


def refuse_missing_columns(missing: list[str], given: list[str]) -> NoReturn:
    """Raise the error of a table that lacks columns of a model, with similar names."""
    import difflib

    hints = list(map(repr, missing))
    for place, name in enumerate(missing[:5]):
        close = difflib.get_close_matches(name, given, n=1)
        hints[place] += f" (is it {close[0]!r}?)" if close else ""
    what = "column" if len(missing) == 1 else "columns"
    raise TableError(f"The table lacks the {what} {join_names(hints, 5)}, which the model needs.")


def check_readable(name: str, kind: str, gap: Gaps, rows: int, example: str = "") -> None:
    """Raise if most entries of a column of a new table cannot be read.

    Parameters
    ----------
    name, kind : str
        The column, and its kind in training.
    gap : Gaps
        Counts of missing and unreadable entries in the new table.
    rows : int
        Number of rows of the new table.
    example : str
        An entry that can be read.
    """
    present = rows - gap.missing
    if 2 * gap.strange <= present:
        return
    texts = ", ".join(map(repr, gap.examples))
    such = f", such as {example}" if example else ""
    raise TableError(
        f"{name} is unreadable in {gap.strange} of the {pluralize(present, 'row')} that have it "
        f"({texts}); it was a {kind} in training{such}. Write it the same way in the new table, "
        "and leave missing entries empty."
    )


def describe_encoding(
    encoder: TableEncoder, gaps: dict[str, Gaps], rows: int, *, together: bool = True
) -> list[str]:
    """Return sentences that describe the treatment of the training data.

    Parameters
    ----------
    encoder : TableEncoder
        The plans.
    gaps : dict
        Counts of missing and unreadable entries from :meth:`TableEncoder.encode`.
    rows : int
        Number of rows.
    together : bool
        Whether the matrix columns of a category or a date are one feature.
    """
    notes: list[str] = []
    grouped = [
        f"{plan.name} ({plan.width} levels)"
        for plan in encoder.columns
        if isinstance(plan, CategoryColumn)
    ]
    dates = [describe_date(plan) for plan in encoder.columns if isinstance(plan, DateColumn)]
    apart = ("Categories", grouped, "each level one column"), ("Dates", dates, "as days and cycles")
    for what, names, how in apart:
        if names:
            how = "each counted as one feature" if together else how
            notes.append(f"{what}, {how}: {join_names(names)}.")
    filled = [
        f"{plan.name} ({gaps[plan.name].missing}, {_describe_fill(plan)})"
        for plan in encoder.columns
        if plan.name in gaps and gaps[plan.name].missing
    ]
    if filled:
        notes.append(f"Missing values among {pluralize(rows, 'row')}: {join_names(filled)}.")
    notes += describe_unreadable(gaps)
    reasons: dict[str, list[str]] = {}
    for name, reason in encoder.left_out:
        reasons.setdefault(reason, []).append(name)
    return notes + [f"Left out: {join_names(names)} ({why})." for why, names in reasons.items()]


def describe_date(plan: DateColumn) -> str:
    """Return the name of a date column, with the order of day and month if it is ambiguous."""
    order = {"%m": " (month first)", "%d": " (day first)"}
    return plan.name + order.get(plan.pattern[:2], "")


def _describe_fill(plan: ColumnPlan) -> str:
    """Return how missing entries of a column are filled."""
    if isinstance(plan, NumberColumn):
        return f"filled with the median {plan.fill:g}"
    if isinstance(plan, DateColumn):
        return f"filled with the median {format_date(plan.fill, timed=False)}"
    return "a level of their own"


def describe_unreadable(gaps: Mapping[str, Gaps]) -> list[str]:
    """Return a sentence for each column with unreadable or infinite entries."""
    notes = []
    for name, gap in gaps.items():
        parts = [f"{gap.infinite} infinite"] if gap.infinite else []
        if gap.strange:
            parts.append(f"{gap.strange} unreadable ({', '.join(map(repr, gap.examples))})")
        if parts:
            notes.append(f"Taken as missing in {name}: {' and '.join(parts)}.")
    return notes
