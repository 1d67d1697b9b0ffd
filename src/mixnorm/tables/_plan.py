"""Deciding what the columns of a table are: numbers, categories, dates, or of no use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mixnorm.tables._columns import CategoryColumn, ColumnPlan, DateColumn, NumberColumn
from mixnorm.tables._values import (
    as_numbers,
    as_seconds,
    as_texts,
    date_format,
    is_date_type,
    is_number_type,
    number_style,
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
# Beyond this multiple of half its range, a column is centred: scaled by its size it would
# hardly vary.
_FAR = 10.0
_DAY = 86400.0

CONSTANT = "every entry is the same"
EMPTY = "no entries"


def plan_column(values: pd.Series[Any], kind: str | None = None) -> ColumnPlan | str:
    """Return how to encode a column, or why to leave it out.

    Parameters
    ----------
    values : Series
        The training entries.
    kind : {"number", "category"}, optional
        What the user says it is; None finds out.
    """
    name = str(values.name)
    if kind == "category":
        return _category(name, as_texts(values), forced=True)
    if is_number_type(values):
        return _number(name, as_numbers(values), "plain", forced=kind == "number")
    if is_date_type(values):
        return _date(name, as_seconds(values, "ISO8601"), "ISO8601")
    if not _is_text(values):
        return "its entries are neither numbers, texts nor dates"
    texts = as_texts(values)
    distinct = np.unique(texts[texts != None].astype(str)).astype(object)  # noqa: E711
    if not len(distinct):
        return EMPTY
    style = number_style(distinct, 0.0 if kind == "number" else _MOSTLY_NUMBERS)
    if style is not None:
        return _number(name, as_numbers(values, style), style, forced=kind == "number")
    pattern = date_format(distinct, _MOSTLY_DATES)
    if pattern is not None:
        return _date(name, as_seconds(values, pattern), pattern)
    return _category(name, texts, forced=False)


def _is_text(values: pd.Series[Any]) -> bool:
    """Whether the first entries are texts, truth values or plain numbers."""
    present = values.dropna().head(100).tolist()
    return all(isinstance(value, (str, bool, int, float)) for value in present)


def _number(name: str, numbers: np.ndarray, style: str, *, forced: bool) -> ColumnPlan | str:
    present = numbers[np.isfinite(numbers)]
    if not len(present):
        return EMPTY
    low, high = float(present.min()), float(present.max())
    if low == high and len(present) == len(numbers):
        return CONSTANT
    if low == high:  # filled with the median, nothing would be left of it
        return "every entry that is not missing is the same"
    if not forced and len(numbers) > _FEW and _counts_rows(numbers):
        return "it only numbers the rows"
    half = high / 2 - low / 2
    far = max(abs(low), abs(high)) > _FAR * half
    full = len(present) == len(numbers) and not far
    median = 0.0 if full else float(np.median(present))
    return NumberColumn(name, fill=median, centre=median if far else 0.0, style=style)


def _counts_rows(numbers: np.ndarray) -> bool:
    """Whether a column is 1, 2, 3, ... from any start: a row number, which tells of nothing."""
    return bool(np.all(np.diff(numbers) == 1.0))


def _category(name: str, texts: np.ndarray, *, forced: bool) -> ColumnPlan | str:
    missing = texts == None  # noqa: E711
    levels, counts = np.unique(texts[~missing].astype(str), return_counts=True)
    if not len(levels):
        return EMPTY
    if len(levels) == 1 and not missing.any():
        return CONSTANT
    if not forced and len(levels) > max(_FEW, _KEYLIKE * np.count_nonzero(~missing)):
        return f"nearly every text differs ({len(levels)} of {np.count_nonzero(~missing)})"
    order = np.lexsort((levels, -counts))
    kept = tuple(str(level) for level in levels[order][:MOST_LEVELS])
    return CategoryColumn(name, kept, bool(missing.any()), other=len(levels) > MOST_LEVELS)


def _date(name: str, seconds: np.ndarray, pattern: str) -> ColumnPlan | str:
    present = seconds[~np.isnan(seconds)]
    if not len(present):
        return EMPTY
    low, high = float(present.min()), float(present.max())
    if low == high:
        return CONSTANT
    cycles = []
    if high - low > 60 * _DAY:
        cycles.append("year")
    if high - low > 7 * _DAY:
        cycles.append("week")
    if np.any(np.mod(present, _DAY) != 0):
        cycles.append("day")
    # A date in the middle, not the mean of two.
    fill = float(np.sort(present)[len(present) // 2])
    return DateColumn(name, pattern, low, fill, tuple(cycles))
