"""What the entries of a column stand for: numbers, dates or texts, whatever type they came in."""

from __future__ import annotations

import re
from datetime import datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

# How a text is written as a number; of those that fit best, the first is taken.
Style = Literal["plain", "thousands", "comma"]
STYLES: tuple[Style, ...] = ("plain", "thousands", "comma")
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
_COMMA = re.compile(r"[-+]?(\d+,\d+|[1-9]\d{0,2}(\.\d{3})+(,\d+)?)([eE][-+]?\d+)?")
# What the marks of a style become as Python writes numbers.
_MARKS: dict[str, tuple[re.Pattern[str], dict[int, int | None]]] = {
    "thousands": (_THOUSANDS, {ord(","): None}),
    "comma": (_COMMA, {ord("."): None, ord(","): ord(".")}),
}
_WHOLE = re.compile(r"[-+]?\d{1,30}", re.ASCII)
_DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
#: Missing among numbers and dates, but a word like any other among texts: pain may be "none".
BLANKS = frozenset({"none", "None", "NONE", "-", "--", ".", "n.a.", "N.A."})
# What may stand around a number: 12 %, $ 3.50, 7 €.
_UNITS = re.compile(r"([-+]?)[$€£¥]?\s*(.*?)\s*[%$€£¥]?", re.DOTALL)
_TRUTHS = {"true": 1.0, "false": 0.0}
# Texts whose meaning is remembered.
MOST_TEXTS = 100_000
# Larger numbers count as infinite: so would their sums and products with small ones.
LARGEST = 1e304
# Dates as people write them, beside ISO 8601; of those that fit best, the first is taken: day
# before month with dots and hyphens, month before day with slashes.
_DAYS = ("%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%m/%d/%y", "%d/%m/%y",
         "%d-%m-%Y", "%m-%d-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y",
         "%d-%b-%y")  # fmt: skip
_HOURS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p")
DATE_FORMATS = ("ISO8601", *(day + hour for day in _DAYS for hour in _HOURS))
_DATE_LIKE = re.compile(r"(?=.*\d)[0-9A-Za-z ,./:+-]{6,40}")
# Texts that are tried as dates, and those that a format has to fit before all of these are.
_SAMPLE = 2000
_FEW = 20


def is_number_type(values: pd.Series[Any]) -> bool:
    """Whether a column is stored as numbers, truth values or durations."""
    from pandas.api import types

    if values.dtype.kind in "cm":
        return values.dtype.kind == "m"
    return bool(types.is_numeric_dtype(values) or types.is_bool_dtype(values))


def is_date_type(values: pd.Series[Any]) -> bool:
    """Whether a column is stored as dates."""
    from pandas.api import types

    return bool(types.is_datetime64_any_dtype(values))


def is_missing(values: pd.Series[Any], *, words: bool = False) -> np.ndarray:
    """Return where a column has no entry, or a blank one.

    With ``words``, for columns of texts, what only means "nothing" among numbers is an entry.
    """
    if is_number_type(values) or is_date_type(values):
        return np.asarray(values.isna().to_numpy())
    texts = as_texts(values)
    if words:
        return np.asarray(texts == None)  # noqa: E711
    return np.asarray([text is None or text in BLANKS for text in texts], dtype=bool)


def as_numbers(values: pd.Series[Any], style: str = "plain") -> np.ndarray:
    """Return a column as floats, durations in seconds; NaN where an entry is missing or no number.

    Numbers too large to compute with are infinite.
    """
    if is_number_type(values):
        numbers = _stored_numbers(values)
    else:
        texts = as_texts(values)
        numbers = _numbers(texts, style)
        for place in np.flatnonzero(np.isnan(numbers)):
            if texts[place] is not None:
                numbers[place] = _TRUTHS.get(texts[place].lower(), np.nan)
    large = np.abs(numbers) > LARGEST
    if large.any():
        numbers = np.where(large, np.copysign(np.inf, numbers), numbers)
    return numbers


def _stored_numbers(values: pd.Series[Any]) -> np.ndarray:
    if values.dtype.kind == "m":
        values = values.dt.total_seconds()
    if isinstance(values.dtype, np.dtype):
        return np.asarray(values.to_numpy(), dtype=np.float64)
    return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))


def _numbers(texts: np.ndarray, style: str) -> np.ndarray:
    """Return texts as floats; NaN where one is missing or no number."""
    import pandas as pd

    written = [_bare(text, style) for text in texts]
    found = pd.to_numeric(pd.Series(written, dtype="object"), errors="coerce")
    return np.array(found.to_numpy(dtype=np.float64, na_value=np.nan))


def _bare(text: str | None, style: str = "plain") -> str | None:
    """Return a number without what may stand around it, as Python writes it.

    None for a text that can be no number.
    """
    if text is None:
        return None
    found = _UNITS.fullmatch(text)
    text = text if found is None else found[1] + found[2]
    if style != "plain":
        pattern, marks = _MARKS[style]
        text = text.translate(marks) if pattern.fullmatch(text) else text
    return text if text.isascii() else None


def detect_number_style(texts: np.ndarray, least: float, mark: str = "") -> Style | None:
    """Return the style in which most texts are numbers, None if that is less than a share of them.

    Parameters
    ----------
    texts : ndarray of object
        Distinct texts, none missing.
    least : float
        The share that has to be a number.
    mark : {"", ".", ","}
        The decimal mark of the table, for texts that could have either: ``1,234``.
    """
    counts = {style: int(np.count_nonzero(~np.isnan(_numbers(texts, style)))) for style in STYLES}
    # Whole numbers alone are plain in any table.
    commas = mark == "," and any("," in text or "." in text for text in texts)
    best = max(("comma", *STYLES) if commas else STYLES, key=counts.__getitem__)
    return best if counts[best] >= least * len(texts) else None


def find_styles(text: str) -> list[Style]:
    """Return the styles in which a text is a number as it is written, with units or without.

    Examples
    --------
    >>> find_styles("1,5"), find_styles("1,234 €"), find_styles("1.234"), find_styles("van")
    (['comma'], ['thousands', 'comma'], ['plain', 'comma'], [])
    """
    bare = _bare(text) or ""
    patterns = (_DECIMAL, _THOUSANDS, _COMMA)
    return [
        style for style, pattern in zip(STYLES, patterns, strict=True) if pattern.fullmatch(bare)
    ]


def as_texts(values: pd.Series[Any]) -> np.ndarray:
    """Return a column as texts, the same text for 3, 3.0 and "3"; None where it is missing."""
    found = np.empty(len(values), dtype=object)
    missing = values.isna().to_numpy()
    found[~missing] = [format_value(value) for value in values[~missing].tolist()]
    found[found == ""] = None
    return found


def find_distinct_texts(texts: np.ndarray, *, words: bool = True) -> np.ndarray:
    """Return the different texts of a column, in order; without missing ones.

    Without ``words``, also without what means "nothing" among numbers and dates.
    """
    found = {text for text in texts if text is not None}
    return np.array(sorted(found if words else found - BLANKS), dtype=object)


def format_value(value: Any) -> str:
    """Return a single value as text: the same for 3, 3.0 and "3"."""
    if isinstance(value, (float, np.floating, Decimal)):
        return _number_text(float(value))
    if isinstance(value, datetime) and value.tzinfo is None and value.time() == time():
        return str(value.date())
    return str(value).strip()


def _number_text(number: float) -> str:
    whole = number.is_integer() and abs(number) < 2**63
    return str(int(number)) if whole else repr(number)


@lru_cache(maxsize=MOST_TEXTS)
def normalise_level(text: str) -> str:
    """Return what a text is compared by as a level of a category.

    A file whose entries all are numbers or truth values is read as such, another is not: "01" and
    1 have to be one level, and so have "true" and True.
    """
    if text.lower() in _TRUTHS:
        return text.capitalize()
    if _WHOLE.fullmatch(text) and abs(int(text)) < 2**63:
        return str(int(text))
    return _number_text(float(text)) if _DECIMAL.fullmatch(text) else text


def format_level(value: Any) -> str:
    """Return a single value as :func:`normalise_level` has it: "3" for 3, 3.0 and "3"."""
    return normalise_level(format_value(value))


@lru_cache(maxsize=MOST_TEXTS)
def parse_number(text: str, style: str) -> float | None:
    """Return a single text as a number, an infinite one where it is too large; None if it is none.

    Examples
    --------
    >>> (
    ...     parse_number("1,5", "comma"),
    ...     parse_number("$ 1,500", "thousands"),
    ...     parse_number("x", "plain"),
    ... )
    (1.5, 1500.0, None)
    """
    if text.lower() in _TRUTHS:
        return _TRUTHS[text.lower()]
    bare = _bare(text, style)
    if bare is None:
        return None
    if not _DECIMAL.fullmatch(bare):
        infinite = bare.lower().lstrip("+-") in ("inf", "infinity")
        return float(bare) if infinite else None
    number = float(bare)
    return number if abs(number) <= LARGEST else float("inf")


def detect_date_format(texts: np.ndarray, least: float) -> str | None:
    """Return the format in which most texts are dates, None if that is less than a share of them.

    Parameters
    ----------
    texts : ndarray of object
        Distinct texts in order, none missing.
    least : float
        The share that has to be a date.
    """
    sample = _spread(texts, _SAMPLE)
    few = _spread(sample, _FEW)
    if sum(_DATE_LIKE.fullmatch(text) is not None for text in few) <= len(few) / 2:
        return None
    marks = set("".join(few))
    best, chosen = 0.0, None
    for pattern in DATE_FORMATS:
        if pattern != "ISO8601" and not set(re.sub("%.", "", pattern)) <= marks:
            continue
        if _share_of_dates(few, pattern) <= 0.5:
            continue
        share = _share_of_dates(sample, pattern)
        if share > best:
            best, chosen = share, pattern
        if best == 1.0:
            break
    return chosen if best >= least else None


def _spread(texts: np.ndarray, most: int) -> np.ndarray:
    """Return some of the texts, from everywhere: the first ones of a sorted list are alike."""
    return texts[:: max(1, -(-len(texts) // most))]


def _share_of_dates(texts: np.ndarray, pattern: str) -> float:
    import pandas as pd

    series = pd.Series(texts, dtype="object")
    dates = pd.to_datetime(series, format=pattern, errors="coerce", utc=True)
    return float(dates.notna().mean())


def as_seconds(values: pd.Series[Any], pattern: str) -> np.ndarray:
    """Return a column as seconds since 1970; NaN where an entry is missing or no date."""
    import pandas as pd

    if is_date_type(values):
        dates = pd.to_datetime(values, utc=True)
    else:
        texts = pd.Series(as_texts(values), dtype="object")
        dates = pd.to_datetime(texts, format=pattern, errors="coerce", utc=True)
    stamps = dates.dt.tz_localize(None).to_numpy(dtype="datetime64[ms]")
    seconds = stamps.astype(np.int64) / 1e3
    return np.asarray(np.where(np.isnat(stamps), np.nan, seconds))
