"""Deciding what the columns of a table are: numbers, categories, dates, or of no use."""

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
# Texts are taken as numbers or dates if this share of the distinct ones are.
_MOSTLY_NUMBERS = 0.9
_MOSTLY_DATES = 0.99
# A column of texts is a name or a key, not a category, above this share of distinct entries.
_KEYLIKE = 0.5
_FEW = 20
# Beyond this multiple of half its range, a column is centred: a product with it would be nearly the
# other column, and digits would be lost.
_FAR = 10.0
_DAY = 86400.0
_KEY_NAME = re.compile(r"(?i:(^|[ _.-])(id|idx|index|key|row|no|nr|uid|number)$)|[a-z]I[dD]$")

CONSTANT = "every entry is the same"
EMPTY = "no entries"
ROW_NUMBER = "it only numbers the rows; --number {} takes it all the same"
NO_NUMBERS = "no entry is a number that can be computed with"


def plan_column(
    values: pd.Series[Any], kind: str | None = None, mark: str = ""
) -> ColumnPlan | str:
    """Return how to encode a column, or why to leave it out.

    Parameters
    ----------
    values : Series
        The training entries.
    kind : {"number", "category"}, optional
        What the user says it is; None finds out.
    mark : {"", ".", ","}
        The decimal mark of the table, where it is known.
    """
    name = str(values.name)
    if kind == "category" or (kind is None and _is_category(values)):
        return _category(name, as_texts(values), forced=kind == "category")
    if is_number_type(values):
        return _number(name, as_numbers(values), "plain", forced=kind == "number")
    if is_date_type(values):
        return _date(name, as_seconds(values, "ISO8601"), "ISO8601")
    if not _is_text(values):
        return "its entries are neither numbers, texts nor dates"
    texts = as_texts(values)
    found = detect_text_kind(texts, kind, mark)
    if isinstance(found, str):
        return found
    what, how = found
    if what == "number":
        plan = _number(name, as_numbers(values, how), cast(Style, how), forced=kind == "number")
        return NO_NUMBERS if plan == EMPTY else plan
    if what == "date":
        return _date(name, as_seconds(values, how), how)
    return _category(name, texts, forced=False)


def detect_text_kind(
    texts: np.ndarray, kind: str | None = None, mark: str = ""
) -> tuple[str, str] | str:
    """Return what a column of texts is, and how it is written; or why to leave it out.

    Parameters
    ----------
    texts : ndarray of object
        The entries; None where one is missing.
    kind : {"number"}, optional
        What the user says it is; None finds out.
    mark : {"", ".", ","}
        The decimal mark of the table, where it is known.

    Returns
    -------
    tuple of str, or str
        ``"number"`` with its style, ``"date"`` with its format, or ``"category"`` with an empty
        text.
    """
    distinct = find_distinct_texts(texts, words=False)
    if not len(distinct):
        return EMPTY if not len(find_distinct_texts(texts)) else ("category", "")
    style = detect_number_style(distinct, 0.0 if kind == "number" else _MOSTLY_NUMBERS, mark)
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


def _number(name: str, numbers: np.ndarray, style: Style, *, forced: bool) -> ColumnPlan | str:
    present = numbers[np.isfinite(numbers)]
    if not len(present):
        return EMPTY if np.isnan(numbers).all() else NO_NUMBERS
    low, high = float(present.min()), float(present.max())
    full = len(present) == len(numbers)
    if low == high and full:
        return CONSTANT
    if low == high:  # filled with the median, nothing would be left of it
        return "every entry that is not missing is the same"
    if full and not forced and is_row_number(name, numbers):
        return ROW_NUMBER.format(name)
    half = high / 2 - low / 2
    far = max(abs(low), abs(high)) > _FAR * half
    median = float(np.median(present))  # new tables may have gaps where this one has none
    return NumberColumn(name, fill=median, centre=median if far else 0.0, style=style)


def is_row_number(name: str, numbers: np.ndarray) -> bool:
    """Whether a column is a row number, which tells of nothing but the order of a sorted file.

    It counts 1, 2, 3, ... from any start; or is called a key, and has another whole number in
    every row. A few rows do not show that.
    """
    if len(numbers) <= _FEW:
        return False
    if np.all(np.diff(numbers) == 1.0):
        return True
    if not _KEY_NAME.search(name) or np.any(numbers != np.rint(numbers)):
        return False
    return len(np.unique(numbers)) == len(numbers)


def _category(name: str, texts: np.ndarray, *, forced: bool) -> ColumnPlan | str:
    present = [text for text in texts if text is not None]
    if not present:
        return EMPTY
    levels = _levels(present)
    missing = len(present) < len(texts)
    if len(levels) == 1 and not missing:
        return CONSTANT
    if not forced and is_key(len(levels), len(present)):
        return f"nearly every text differs ({len(levels)} of {len(present)})"
    return CategoryColumn(name, levels[:MOST_LEVELS], missing, other=len(levels) > MOST_LEVELS)


def is_key(levels: int, present: int, share: float = _KEYLIKE) -> bool:
    """Whether so many different texts in so many entries are names or keys, not categories."""
    return levels > max(_FEW, share * present)


def _levels(texts: list[str]) -> tuple[str, ...]:
    """Return the levels, the most frequent first, each as it is written most often."""
    spelled: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for text, count in sorted(Counter(texts).items(), key=lambda item: (-item[1], item[0])):
        counts[spelled.setdefault(normalise_level(text), text)] += count
    return tuple(sorted(counts, key=lambda level: (-counts[level], level)))


def _date(name: str, seconds: np.ndarray, pattern: str) -> ColumnPlan | str:
    present = seconds[~np.isnan(seconds)]
    if not len(present):
        return EMPTY
    low, high = float(present.min()), float(present.max())
    if low == high:
        return CONSTANT
    cycles: list[Cycle] = []
    if high - low > 60 * _DAY:
        cycles.append("year")
    if high - low > 7 * _DAY:
        cycles.append("week")
    if np.any(np.mod(present, _DAY) != 0):
        cycles.append("day")
    # A date in the middle, not the mean of two.
    fill = float(np.sort(present)[len(present) // 2])
    return DateColumn(name, pattern, low, fill, tuple(cycles))
