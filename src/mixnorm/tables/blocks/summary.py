"""Summaries of columns that are made block by block, and joined."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from mixnorm.data import Block
from mixnorm.tables.blocks.arrow import apply_to_rows, as_series, find_distinct, is_text_type
from mixnorm.tables.values import SECONDS_PER_DAY, as_numbers, as_seconds, as_texts

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

# Distinct texts of a column that are counted, and how many stay when there are more.
MOST_COUNTED = 1 << 16
# Hashes from which the number of distinct texts is estimated: to about 1 %.
_HASHES = 1 << 13


@dataclass(frozen=True, eq=False)
class Tally:
    """How often each text occurs in some rows.

    Attributes
    ----------
    counts : dict of str to int
        In the order of first appearance. With more than ``MOST_COUNTED``, the rarest are dropped.
    missing, entries : int
        Rows without a text, and all rows.
    cut : bool
        Whether some were dropped.
    hashes : ndarray of uint64
        The smallest hashes of all texts.
    strange : bool
        Whether entries are neither texts nor numbers nor dates; they are not counted.
    """

    counts: dict[str, int]
    missing: int
    entries: int
    cut: bool = False
    hashes: np.ndarray = field(default_factory=partial(np.empty, 0, np.uint64))
    strange: bool = False

    @classmethod
    def of(cls, column: pa.ChunkedArray, name: str) -> Tally:
        """Return the tally of the rows of a block."""
        if not _is_plain(column.type):
            return cls({}, column.null_count, len(column), strange=column.null_count < len(column))
        values, codes = find_distinct(column, name)
        often = np.bincount(codes, minlength=len(values))
        counts: dict[str, int] = {}
        missing = 0
        for text, count in zip(as_texts(values), often.tolist(), strict=True):
            if text is None:
                missing += count
            elif count:
                counts[text] = counts.get(text, 0) + count
        return cls(counts, missing, len(column), hashes=_hash_texts(list(counts)))._limit()

    def join(self, other: Tally) -> Tally:
        """Return the tally of both."""
        counts = dict(self.counts)
        for text, count in other.counts.items():
            counts[text] = counts.get(text, 0) + count
        found = Tally(
            counts, self.missing + other.missing, self.entries + other.entries,
            self.cut or other.cut,
            np.unique(np.concatenate([self.hashes, other.hashes]))[:_HASHES],
            self.strange or other.strange,
        )  # fmt: skip
        return found._limit()

    def _limit(self) -> Tally:
        if len(self.counts) <= MOST_COUNTED:
            return self
        commonest = sorted(self.counts, key=lambda text: (-self.counts[text], text))
        stay = set(commonest[: MOST_COUNTED // 2])
        counts = {text: count for text, count in self.counts.items() if text in stay}
        return replace(self, counts=counts, cut=True)

    @property
    def n_distinct(self) -> int:
        """The number of distinct texts, estimated if some were dropped."""
        if not self.cut or len(self.hashes) < _HASHES:
            return len(self.counts)
        return round((_HASHES - 1) / (float(self.hashes[-1]) / 2.0**64))

    @property
    def texts(self) -> np.ndarray:
        """The distinct texts in the order of first appearance."""
        found = np.empty(len(self.counts), dtype=object)
        found[:] = list(self.counts)
        return found

    @property
    def series(self) -> pd.Series[Any]:
        """The distinct texts as a series."""
        import pandas as pd

        return pd.Series(self.texts, dtype=object)

    @property
    def often(self) -> np.ndarray:
        """How often each occurs."""
        return np.fromiter(self.counts.values(), dtype=np.int64, count=len(self.counts))


def _is_plain(kind: Any) -> bool:
    """Tell whether entries of a type are texts, numbers, truth values or moments."""
    import pyarrow as pa

    test = pa.types
    if is_text_type(kind) or test.is_null(kind) or test.is_boolean(kind):
        return True
    return is_number(kind) or test.is_timestamp(kind) or test.is_date(kind)


def is_number(kind: Any) -> bool:
    """Tell whether a type becomes one of numbers; times and durations do."""
    import pyarrow as pa

    test = pa.types
    plain = test.is_integer(kind) or test.is_floating(kind) or test.is_decimal(kind)
    return bool(plain or test.is_time(kind) or test.is_duration(kind))


def _hash_texts(texts: list[str]) -> np.ndarray:
    from pandas.util import hash_array

    found = np.empty(len(texts), dtype=object)
    found[:] = texts
    return np.sort(np.asarray(hash_array(found), dtype=np.uint64))[:_HASHES]


@dataclass(frozen=True, eq=False)
class NumberSummary:
    """Facts about the numbers in a column, or about its dates in seconds since 1970.

    Attributes
    ----------
    entries, lost, infinite : int
        All rows, those without a number, and those with an infinite one.
    missing : int
        Rows whose entry is missing; the other lost ones cannot be read.
    low, high : float
        The smallest and the largest finite number.
    first, last : float
        The numbers of the first and the last row.
    climbs : bool
        Whether each row has one more than the row before.
    whole_steps : bool
        Whether all finite numbers differ by whole numbers from the first of them, ``base``.
    timed : bool
        Whether some are not whole days.
    sample : ndarray
        The numbers of the sampled rows; NaN where there is none.
    examples : tuple of str
        A few entries that cannot be read.
    """

    entries: int
    lost: int
    infinite: int
    missing: int
    low: float
    high: float
    first: float
    last: float
    climbs: bool
    whole_steps: bool
    base: float
    timed: bool
    sample: np.ndarray
    examples: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, numbers: np.ndarray, sample: np.ndarray, missing: int, examples: tuple[str, ...]
    ) -> NumberSummary:
        """Return the summary of the rows of a block."""
        finite = np.isfinite(numbers)
        present = numbers if finite.all() else numbers[finite]
        lost = int(np.count_nonzero(np.isnan(numbers)))
        low = high = base = np.nan
        steps, timed = True, False
        if len(present):
            low, high, base = float(present.min()), float(present.max()), float(present[0])
            with np.errstate(over="ignore", invalid="ignore"):
                gaps = present - base
                steps = bool(np.all(gaps == np.rint(gaps)))
            timed = bool(np.any(np.mod(present, SECONDS_PER_DAY) != 0))
        with np.errstate(over="ignore", invalid="ignore"):
            climbs = bool(np.all(np.diff(numbers) == 1.0))
        ends = (float(numbers[0]), float(numbers[-1])) if len(numbers) else (np.nan, np.nan)
        infinite = len(numbers) - lost - len(present)
        return cls(
            len(numbers), lost, infinite, missing, low, high, *ends, climbs, steps, base, timed,
            numbers[sample], examples,
        )  # fmt: skip

    def join(self, other: NumberSummary) -> NumberSummary:
        """Return the summary of both, of which the other has the later rows."""
        if not self.entries or not other.entries:
            return self if self.entries else other
        step = other.base - self.base
        return NumberSummary(
            self.entries + other.entries,
            self.lost + other.lost,
            self.infinite + other.infinite,
            self.missing + other.missing,
            float(np.fmin(self.low, other.low)),
            float(np.fmax(self.high, other.high)),
            self.first,
            other.last,
            self.climbs and other.climbs and other.first == self.last + 1.0,
            self.whole_steps and other.whole_steps and (np.isnan(step) or step == np.rint(step)),
            other.base if np.isnan(self.base) else self.base,
            self.timed or other.timed,
            np.concatenate([self.sample, other.sample]),
            tuple(dict.fromkeys(self.examples + other.examples))[:3],
        )

    @property
    def finite(self) -> int:
        """The number of finite numbers."""
        return self.entries - self.lost - self.infinite

    @property
    def known(self) -> np.ndarray:
        """The finite numbers of the sample."""
        return self.sample[np.isfinite(self.sample)]


Summary = Tally | NumberSummary


@dataclass(frozen=True, eq=False)
class Summarise:
    """Summarises the columns of a block.

    Parameters
    ----------
    ways : tuple of str
        For each column ``"texts"``, ``"number"`` or ``"date"``.
    styles : tuple of str
        The style of texts that are numbers, or the format of those that are dates.
    rows : ndarray of int
        The rows of the sample, in order.
    """

    ways: tuple[str, ...]
    styles: tuple[str, ...]
    rows: np.ndarray

    def __call__(self, block: Block) -> tuple[Summary, ...]:
        """Return the summaries, one per column."""
        ends = np.searchsorted(self.rows, [block.rows.start, block.rows.stop])
        sample = self.rows[slice(*ends)] - block.rows.start
        table = block.X
        pairs = zip(table.column_names, self.ways, self.styles, strict=True)
        return tuple(
            self._one(table.column(name), name, way, style, sample) for name, way, style in pairs
        )

    def _one(self, column: Any, name: str, way: str, style: str, sample: np.ndarray) -> Summary:
        if way == "texts":
            return Tally.of(column, name)
        read = as_numbers if way == "number" else as_seconds
        numbers = apply_to_rows(column, name, lambda values: read(values, style))
        examples: tuple[str, ...] = ()
        missing = int(np.count_nonzero(np.isnan(numbers)))
        if missing and is_text_type(column.type):
            from mixnorm.tables.values import is_missing

            gone = apply_to_rows(column, name, is_missing)
            bad = np.flatnonzero(np.isnan(numbers) & ~gone)
            missing -= len(bad)
            texts = as_series(column.take(bad[:1000]), name).tolist()
            examples = tuple(dict.fromkeys(map(str, texts)))[:3]
        return NumberSummary.of(numbers, sample, missing, examples)


def join_summaries(left: tuple[Summary, ...], right: tuple[Summary, ...]) -> tuple[Summary, ...]:
    """Return the summaries of two parts of a table, of which the second has the later rows."""
    pairs: Any = zip(left, right, strict=True)
    return tuple(reduce(lambda one, other: one.join(other), pair) for pair in pairs)
