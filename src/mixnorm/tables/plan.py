"""Decide what each column of a table is: numbers, categories, dates, or of no use."""

from __future__ import annotations

import re
from collections import Counter
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
# Tables with so few rows cannot show that a column holds keys.
_MOST_ROWS_WITHOUT_KEYS = 20
# A column is centred if its values exceed this multiple of half its range. Otherwise its product
# with another column would nearly be a multiple of that column, and digits would be lost.
_FAR_FROM_ZERO = 10.0
_KEY_NAME = re.compile(r"(?i:(^|[ _.-])(id|idx|index|key|row|no|nr|uid|number)$)|[a-z]I[dD]$")

CONSTANT = "every entry is the same"
EMPTY = "no entries"
ROW_NUMBER = "it only numbers the rows; --number {} keeps it"
NO_NUMBERS = "no entry is a finite number"
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
        return "its entries are neither numbers, texts nor dates"
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


def _plan_number(values: pd.Series[Any], style: Style, *, forced: bool) -> ColumnPlan | str:
    name, numbers = str(values.name), as_numbers(values, style)
    present = numbers[np.isfinite(numbers)]
    if not len(present):
        return EMPTY if np.isnan(numbers).all() else NO_NUMBERS
    low, high = float(present.min()), float(present.max())
    full = len(present) == len(numbers)
    if low == high and full:
        return CONSTANT
    if low == high:  # gaps are filled with the median, which leaves a constant
        return "all entries are equal or missing"
    if full and not forced and is_row_number(name, numbers):
        return ROW_NUMBER.format(name)
    half = high / 2 - low / 2
    far = max(abs(low), abs(high)) > _FAR_FROM_ZERO * half
    median = float(np.median(present))  # new tables may have gaps where this one has none
    return NumberColumn(name, fill=median, centre=median if far else 0.0, style=style)


def is_row_number(name: str, numbers: np.ndarray) -> bool:
    """Whether a column numbers the rows, so that it knows only the order of a sorted file.

    Such a column counts 1, 2, 3, ... from any start, or its name says that it is a key and all its
    entries are different whole numbers. A few rows are not enough to tell.
    """
    if len(numbers) <= _MOST_ROWS_WITHOUT_KEYS:
        return False
    if np.all(np.diff(numbers) == 1.0):
        return True
    if not _KEY_NAME.search(name) or np.any(numbers != np.rint(numbers)):
        return False
    return len(np.unique(numbers)) == len(numbers)


def _plan_category(name: str, texts: np.ndarray, *, forced: bool) -> ColumnPlan | str:
    present = [text for text in texts if text is not None]
    if not present:
        return EMPTY
    levels = _rank_levels(present)
    missing = len(present) < len(texts)
    if len(levels) == 1 and not missing:
        return CONSTANT
    if not forced and is_key(len(levels), len(present)):
        return NEARLY_ALL_DIFFER.format(len(levels), len(present))
    return CategoryColumn(name, levels[:MOST_LEVELS], missing, other=len(levels) > MOST_LEVELS)


def is_key(levels: int, present: int, share: float = _DISTINCT_SHARE_OF_KEYS) -> bool:
    """Whether the number of distinct texts among the entries is that of names or keys."""
    return levels > max(_MOST_ROWS_WITHOUT_KEYS, share * present)


def _rank_levels(texts: list[str]) -> tuple[str, ...]:
    """Return the levels from most to least frequent, each in its commonest spelling."""
    spelled: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for text, count in sorted(Counter(texts).items(), key=lambda item: (-item[1], item[0])):
        counts[spelled.setdefault(normalise_level(text), text)] += count
    return tuple(sorted(counts, key=lambda level: (-counts[level], level)))


def _plan_dates(name: str, seconds: np.ndarray, pattern: str) -> ColumnPlan | str:
    present = seconds[~np.isnan(seconds)]
    if not len(present):
        return EMPTY
    low, high = float(present.min()), float(present.max())
    if low == high:
        return CONSTANT
    days: tuple[tuple[Cycle, int], ...] = (("year", 60), ("week", 7))
    cycles = [cycle for cycle, least in days if high - low > least * SECONDS_PER_DAY]
    if np.any(np.mod(present, SECONDS_PER_DAY) != 0):
        cycles.append("day")
    # The upper median is one of the dates; the mean of two might not be.
    fill = float(np.sort(present)[len(present) // 2])
    return DateColumn(name, pattern, low, fill, tuple(cycles))
