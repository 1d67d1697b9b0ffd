"""Decide what each column of a table is: numbers, categories, dates, or of no use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mixnorm.tables.columns import CategoryColumn, ColumnPlan, Cycle, DateColumn, NumberColumn
from mixnorm.tables.values import (
    MOSTLY_NUMBERS,
    SECONDS_PER_DAY,
    Style,
    as_numbers,
    as_seconds,
    as_texts,
    detect_date_format,
    detect_number_style,
    find_distinct_texts,
    is_date_type,
    is_number_type,
    normalise_level,
)

if TYPE_CHECKING:
    import pandas as pd

#: Levels of a category that have an indicator of their own; the rest share one.
MOST_LEVELS = 50
# Texts are taken as dates if this share of the distinct ones are.
_MOSTLY_DATES = 0.99
# A text column holds names or keys, not categories, if its share of distinct entries is larger.
_DISTINCT_SHARE_OF_KEYS = 0.5
#: Tables with so few rows cannot show that a column holds keys.
MOST_ROWS_WITHOUT_KEYS = 20
# A column is centred if its values exceed this multiple of half its range. Otherwise its product
# with another column would nearly be a multiple of that column, and digits would be lost.
_FAR_FROM_ZERO = 10.0
_KEY_NAME = re.compile(r"(?i:(^|[ _.-])(id|idx|index|key|row|no|nr|uid|number)$)|[a-z]I[dD]$")

CONSTANT = "every entry is the same"
EMPTY = "no entries"
ROW_NUMBER = "it only numbers the rows; --number {} keeps it"
NO_NUMBERS = "no entry is a finite number"
ODD_ENTRIES = "its entries are neither numbers, texts nor dates"
NEARLY_ALL_DIFFER = "nearly every text differs, {} of {}"


def plan_column(
    values: pd.Series[Any], kind: str | None = None, mark: str = ""
) -> ColumnPlan | str:
    """Return how to encode a column, or why to leave it out.

    Parameters
    ----------
    values : Series
        The training entries.
    kind : {"number", "category"}, optional
        The kind that the user names; None detects it.
    mark : {"", ".", ","}
        The decimal mark of the table, if known.
    """
    name = str(values.name)
    if kind == "category" or (kind is None and _is_category(values)):
        return _plan_category(name, as_texts(values), forced=kind == "category")
    if is_number_type(values):
        return _plan_number(values, "plain", forced=kind == "number")
    if is_date_type(values):
        return _plan_dates(name, as_seconds(values, "ISO8601"), "ISO8601")
    if not _is_text(values):
        return ODD_ENTRIES
    texts = as_texts(values)
    found = detect_text_kind(texts, kind, mark)
    if isinstance(found, str):
        return found
    what, how = found
    if what == "number":
        plan = _plan_number(values, cast(Style, how), forced=kind == "number")
        return NO_NUMBERS if plan == EMPTY else plan
    if what == "date":
        return _plan_dates(name, as_seconds(values, how), how)
    return _plan_category(name, texts, forced=False)


def detect_text_kind(
    texts: np.ndarray, kind: str | None = None, mark: str = ""
) -> tuple[str, str] | str:
    """Return the kind of a text column and its style or format, or why to leave it out.

    Parameters
    ----------
    texts : ndarray of object
        The entries; None where one is missing.
    kind : {"number"}, optional
        The kind that the user names; None detects it.
    mark : {"", ".", ","}
        The decimal mark of the table, if known.

    Returns
    -------
    tuple of str, or str
        ``"number"`` with its style, ``"date"`` with its format, or ``"category"`` with an empty
        text.
    """
    distinct = find_distinct_texts(texts, words=False)
    if not len(distinct):
        return EMPTY if not len(find_distinct_texts(texts)) else ("category", "")
    style = detect_number_style(distinct, 0.0 if kind == "number" else MOSTLY_NUMBERS, mark)
    if style is not None:
        return "number", style
    pattern = detect_date_format(distinct, _MOSTLY_DATES)
    return ("category", "") if pattern is None else ("date", pattern)


def _is_category(values: pd.Series[Any]) -> bool:
    """Whether a column is stored as categories, or as truth values of which some are missing."""
    import pandas as pd

    if isinstance(values.dtype, pd.CategoricalDtype):
        return True
    return values.dtype.kind == "b" and bool(values.isna().any())


def _is_text(values: pd.Series[Any]) -> bool:
    """Whether the first entries are texts, truth values, dates or real numbers."""
    present = values.dropna().head(100).tolist()
    return all(isinstance(value, (str, np.bool_, date, Decimal, Real)) for value in present)


@dataclass(frozen=True)
class NumberFacts:
    """What decides how a column of numbers is used.

    Parameters
    ----------
    finite, infinite, lost : int
        Numbers of entries that are finite, infinite, and missing or no numbers.
    low, high, median : float
        Of the finite ones.
    numbers_rows : bool
        Whether the column numbers the rows; see :func:`is_row_number`.
    """

    finite: int
    infinite: int = 0
    lost: int = 0
    low: float = 0.0
    high: float = 0.0
    median: float = 0.0
    numbers_rows: bool = False


def _plan_number(values: pd.Series[Any], style: Style, *, forced: bool) -> ColumnPlan | str:
    name, numbers = str(values.name), as_numbers(values, style)
    present = numbers[np.isfinite(numbers)]
    lost = int(np.count_nonzero(np.isnan(numbers)))
    infinite = len(numbers) - len(present) - lost
    if not len(present):
        return plan_number(name, NumberFacts(0, infinite, lost), style, forced=forced)
    facts = NumberFacts(
        len(present), infinite, lost, float(present.min()), float(present.max()),
        median=float(np.median(present)),
        numbers_rows=len(present) == len(numbers) and is_row_number(name, numbers),
    )  # fmt: skip
    return plan_number(name, facts, style, forced=forced)


def plan_number(name: str, facts: NumberFacts, style: Style, *, forced: bool) -> ColumnPlan | str:
    """Return how to encode a column of numbers, or why to leave it out."""
    if not facts.finite:
        return EMPTY if not facts.infinite else NO_NUMBERS
    low, high = facts.low, facts.high
    full = not facts.infinite and not facts.lost
    if low == high and full:
        return CONSTANT
    if low == high:  # gaps are filled with the median, which leaves a constant
        return "all entries are equal or missing"
    if full and not forced and facts.numbers_rows:
        return ROW_NUMBER.format(name)
    half = high / 2 - low / 2
    far = max(abs(low), abs(high)) > _FAR_FROM_ZERO * half
    median = facts.median  # new tables may have gaps where this one has none
    return NumberColumn(name, fill=median, centre=median if far else 0.0, style=style)


def is_row_number(name: str, numbers: np.ndarray) -> bool:
    """Whether a column numbers the rows, so that it knows only the order of a sorted file.

    Such a column counts 1, 2, 3, ... from any start, or its name says that it is a key and all its
    entries are different whole numbers. A few rows are not enough to tell.
    """
    if len(numbers) <= MOST_ROWS_WITHOUT_KEYS:
        return False
    if np.all(np.diff(numbers) == 1.0):
        return True
    if not is_key_name(name) or np.any(numbers != np.rint(numbers)):
        return False
    return len(np.unique(numbers)) == len(numbers)


def is_key_name(name: str) -> bool:
    """Whether the name of a column says that it is a key."""
    return _KEY_NAME.search(name) is not None


def _plan_category(name: str, texts: np.ndarray, *, forced: bool) -> ColumnPlan | str:
    counts = Counter(texts.tolist())
    missing = counts.pop(None, 0)
    return plan_levels(name, counts, missing > 0, forced=forced)


def plan_levels(
    name: str,
    counts: Mapping[str, int],
    missing: bool,
    *,
    forced: bool,
    total: tuple[int, int] | None = None,
) -> ColumnPlan | str:
    """Return how to encode a category, or why to leave it out.

    Parameters
    ----------
    name : str
        The column.
    counts : mapping of str to int
        How often each text occurs.
    missing : bool
        Whether some entries are missing.
    forced : bool
        Whether the user says that it is a category.
    total : (int, int), optional
        The number of levels, and of entries that are not missing, where ``counts`` has not all.
    """
    if not counts:
        return EMPTY
    levels = _rank_levels(counts)
    distinct, present = total or (len(levels), sum(counts.values()))
    if len(levels) == 1 and not missing:
        return CONSTANT
    if not forced and is_key(distinct, present):
        return NEARLY_ALL_DIFFER.format(distinct, present)
    return CategoryColumn(name, levels[:MOST_LEVELS], missing, other=distinct > MOST_LEVELS)


def is_key(levels: int, present: int, share: float = _DISTINCT_SHARE_OF_KEYS) -> bool:
    """Whether the number of distinct texts among the entries is that of names or keys."""
    return levels > max(MOST_ROWS_WITHOUT_KEYS, share * present)


def _rank_levels(texts: Mapping[str, int]) -> tuple[str, ...]:
    """Return the levels from most to least frequent, each in its commonest spelling."""
    spelled: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for text, count in sorted(texts.items(), key=lambda item: (-item[1], item[0])):
        counts[spelled.setdefault(normalise_level(text), text)] += count
    return tuple(sorted(counts, key=lambda level: (-counts[level], level)))


def _plan_dates(name: str, seconds: np.ndarray, pattern: str) -> ColumnPlan | str:
    present = seconds[~np.isnan(seconds)]
    if not len(present):
        return EMPTY
    low, high = float(present.min()), float(present.max())
    timed = bool(np.any(np.mod(present, SECONDS_PER_DAY) != 0))
    # The upper median is one of the dates; the mean of two might not be.
    fill = float(np.sort(present)[len(present) // 2])
    return plan_days(name, pattern, low, high, fill, timed=timed)


def plan_days(
    name: str, pattern: str, low: float, high: float, fill: float, *, timed: bool
) -> ColumnPlan | str:
    """Return how to encode dates, or why to leave them out.

    ``low``, ``high`` and ``fill`` are the first, the last and the median, in seconds since 1970.
    ``timed`` tells whether some have a time of day.
    """
    if low == high:
        return CONSTANT
    days: tuple[tuple[Cycle, int], ...] = (("year", 60), ("week", 7))
    cycles = [cycle for cycle, least in days if high - low > least * SECONDS_PER_DAY]
    if timed:
        cycles.append("day")
    return DateColumn(name, pattern, low, fill, tuple(cycles))
