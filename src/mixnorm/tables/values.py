"""Entries of a column as numbers, dates or texts, whatever type they are stored in."""

from __future__ import annotations

import re
from datetime import datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

# How texts are written as numbers. Among styles that fit equally well, the first one wins.
Style = Literal["plain", "thousands", "comma"]
STYLES: tuple[Style, ...] = ("plain", "thousands", "comma")
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
_COMMA = re.compile(r"[-+]?(\d+,\d+|[1-9]\d{0,2}(\.\d{3})+(,\d+)?)([eE][-+]?\d+)?")
# How the marks of a style are translated to Python's notation.
_MARKS: dict[str, tuple[re.Pattern[str], dict[int, int | None]]] = {
    "thousands": (_THOUSANDS, {ord(","): None}),
    "comma": (_COMMA, {ord("."): None, ord(","): ord(".")}),
}
_WHOLE = re.compile(r"[-+]?\d{1,30}", re.ASCII)
_DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
#: Missing values in columns of numbers and dates; ordinary words in text columns, where a pain may
#: be "none".
BLANKS = frozenset({"none", "None", "NONE", "-", "--", ".", "n.a.", "N.A."})
# A number with a sign of its unit before or after it: 12 %, $ 3.50, 7 €.
_NUMBER_WITH_UNIT = re.compile(r"([-+]?)[$€£¥]?\s*(.*?)\s*[%$€£¥]?", re.DOTALL)
_TRUTHS = {"true": 1.0, "false": 0.0}
# Size of the caches of parsed texts.
MOST_TEXTS = 100_000
# Larger numbers are taken as infinite, because their sums and small multiples would overflow.
LARGEST = 1e304
#: Texts are taken as numbers if this share of the distinct ones are.
MOSTLY_NUMBERS = 0.9
SECONDS_PER_DAY = 86400.0
# Date formats in use beside ISO 8601. Among formats that fit equally well, the first one wins: day
# before month with dots and hyphens, month before day with slashes.
_DAYS = ("%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%m/%d/%y", "%d/%m/%y",
         "%d-%m-%Y", "%m-%d-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y",
         "%d-%b-%y")  # fmt: skip
_HOURS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p")
DATE_FORMATS = ("ISO8601", *(day + hour for day in _DAYS for hour in _HOURS))
_DATE_LIKE = re.compile(r"(?=.*\d)[0-9A-Za-z ,./:+-]{6,40}")
# Most texts that a date format is tried on, and the few that it is tried on first.
_TEXTS_PER_DATE_FORMAT = 2000
_FIRST_TEXTS_PER_DATE_FORMAT = 20


def is_number_type(values: pd.Series[Any]) -> bool:
    """Whether a column is stored as numbers, truth values or durations."""
    from pandas.api import types

    if values.dtype.kind in "cm":
        return values.dtype.kind == "m"
    return bool(types.is_numeric_dtype(values) or types.is_bool_dtype(values))


def is_date_type(values: pd.Series[Any]) -> bool:
    """Whether a column is stored as dates."""
    return values.dtype.kind == "M"


def is_missing(values: pd.Series[Any], *, words: bool = False) -> np.ndarray:
    """Return a mask of missing or blank entries.

    With ``words``, a text such as "none" is an entry; without it, as in a column of numbers, the
    entry is missing.
    """
    if is_number_type(values) or is_date_type(values):
        return np.asarray(values.isna().to_numpy())
    texts = as_texts(values)
    if words:
        return np.asarray(texts == None)  # noqa: E711
    return np.asarray([text is None or text in BLANKS for text in texts], dtype=bool)


def as_numbers(values: pd.Series[Any], style: str = "plain") -> np.ndarray:
    """Return a column as floats, and durations in seconds.

    Entries that are missing or not a number become NaN. Numbers too large to compute with become
    infinite.
    """
    if is_number_type(values):
        numbers = _convert_numbers(values)
    else:
        texts = as_texts(values)
        numbers = _as_floats(texts, style)
        for place in np.flatnonzero(np.isnan(numbers)):
            if texts[place] is not None:
                numbers[place] = _TRUTHS.get(texts[place].lower(), np.nan)
    large = np.abs(numbers) > LARGEST
    if large.any():
        numbers = np.where(large, np.copysign(np.inf, numbers), numbers)
    return numbers


def _convert_numbers(values: pd.Series[Any]) -> np.ndarray:
    if values.dtype.kind == "m":
        values = values.dt.total_seconds()
    if isinstance(values.dtype, np.dtype):
        return np.asarray(values.to_numpy(), dtype=np.float64)
    return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))


def _as_floats(texts: np.ndarray, style: str) -> np.ndarray:
    """Return texts as floats; NaN where a text is missing or not a number."""
    import pandas as pd

    written = [_strip_units(text, style) for text in texts]
    found = pd.to_numeric(pd.Series(written, dtype="object"), errors="coerce")
    return np.array(found.to_numpy(dtype=np.float64, na_value=np.nan))


def _strip_units(text: str | None, style: str = "plain") -> str | None:
    """Return the text of a number without units, in Python's notation.

    Return None for a text that cannot be a number.
    """
    if text is None:
        return None
    found = _NUMBER_WITH_UNIT.fullmatch(text)
    text = text if found is None else found[1] + found[2]
    if style != "plain":
        pattern, marks = _MARKS[style]
        text = text.translate(marks) if pattern.fullmatch(text) else text
    return text if text.isascii() else None


def detect_number_style(texts: np.ndarray, least: float, mark: str = "") -> Style | None:
    """Return the style in which most texts are numbers; None if too few of them are.

    Parameters
    ----------
    texts : ndarray of object
        Distinct texts, none missing.
    least : float
        Smallest share of texts that must be numbers.
    mark : {"", ".", ","}
        The decimal mark of the table, for texts that could have either: ``1,234``.
    """
    counts = {style: int(np.count_nonzero(~np.isnan(_as_floats(texts, style)))) for style in STYLES}
    # Whole numbers alone are plain in any table.
    commas = mark == "," and any("," in text or "." in text for text in texts)
    best = max(("comma", *STYLES) if commas else STYLES, key=counts.__getitem__)
    return best if counts[best] >= least * len(texts) else None


def find_styles(text: str) -> list[Style]:
    """Return the styles in which a text is a number, with units or without.

    Examples
    --------
    >>> find_styles("1,5"), find_styles("1,234 €"), find_styles("1.234"), find_styles("van")
    (['comma'], ['thousands', 'comma'], ['plain', 'comma'], [])
    """
    bare = _strip_units(text) or ""
    patterns = (_DECIMAL, _THOUSANDS, _COMMA)
    return [
        style for style, pattern in zip(STYLES, patterns, strict=True) if pattern.fullmatch(bare)
    ]


def as_texts(values: pd.Series[Any]) -> np.ndarray:
    """Return a column as texts: the same text for 3, 3.0 and "3", None for a missing entry."""
    found = np.empty(len(values), dtype=object)
    missing = values.isna().to_numpy()
    found[~missing] = [format_value(value) for value in values[~missing].tolist()]
    found[found == ""] = None
    return found


def find_distinct_texts(texts: np.ndarray, *, words: bool = True) -> np.ndarray:
    """Return the distinct texts of a column in order, without missing ones.

    Without ``words``, texts such as "none" count as missing too.
    """
    found = {text for text in texts if text is not None}
    return np.array(sorted(found if words else found - BLANKS), dtype=object)


def format_value(value: Any) -> str:
    """Return a single value as text: the same for 3, 3.0 and "3"."""
    if isinstance(value, (float, np.floating, Decimal)):
        return _format_number(float(value))
    if isinstance(value, datetime) and value.tzinfo is None and value.time() == time():
        return str(value.date())
    return str(value).strip()


def _format_number(number: float) -> str:
    whole = number.is_integer() and abs(number) < 2**63
    return str(int(number)) if whole else repr(number)


@lru_cache(maxsize=MOST_TEXTS)
def normalise_level(text: str) -> str:
    """Return the form in which the levels of a category are compared.

    A column is read as numbers or truth values only if all its entries are. The same level may thus
    be "01" in one file and 1 in another, or "true" and True.
    """
    if text.lower() in _TRUTHS:
        return text.capitalize()
    if _WHOLE.fullmatch(text) and abs(int(text)) < 2**63:
        return str(int(text))
    return _format_number(float(text)) if _DECIMAL.fullmatch(text) else text


def format_level(value: Any) -> str:
    """Return a single value as :func:`normalise_level` has it: "3" for 3, 3.0 and "3"."""
    return normalise_level(format_value(value))


@lru_cache(maxsize=MOST_TEXTS)
def parse_number(text: str, style: str) -> float | None:
    """Return a text as a number, infinite if it is too large; None if it is not a number.

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
    bare = _strip_units(text, style)
    if bare is None:
        return None
    if not _DECIMAL.fullmatch(bare):
        infinite = bare.lower().lstrip("+-") in ("inf", "infinity")
        return float(bare) if infinite else None
    number = float(bare)
    return number if abs(number) <= LARGEST else float("inf")


def detect_date_format(texts: np.ndarray, least: float) -> str | None:
    """Return the format in which most texts are dates; None if too few of them are.

    Parameters
    ----------
    texts : ndarray of object
        Distinct texts in order, none missing.
    least : float
        Smallest share of texts that must be dates.
    """
    # Evenly spaced, because the first texts of a sorted list resemble one another.
    sample = texts[space_evenly(len(texts), _TEXTS_PER_DATE_FORMAT)]
    few = sample[space_evenly(len(sample), _FIRST_TEXTS_PER_DATE_FORMAT)]
    if sum(_DATE_LIKE.fullmatch(text) is not None for text in few) <= len(few) / 2:
        return None
    marks = set("".join(few))
    best, chosen = 0.0, None
    for pattern in DATE_FORMATS:
        if pattern != "ISO8601" and not set(re.sub("%.", "", pattern)) <= marks:
            continue
        if _parse_dates(few, pattern).notna().mean() <= 0.5:
            continue
        share = float(_parse_dates(sample, pattern).notna().mean())
        if share > best:
            best, chosen = share, pattern
        if best == 1.0:
            break
    return chosen if best >= least else None


def space_evenly(count: int, most: int) -> slice:
    """Return the slice of at most ``most`` evenly spaced entries out of ``count``."""
    return slice(None, None, max(1, -(-count // most)))


def _parse_dates(texts: np.ndarray, pattern: str) -> pd.Series[Any]:
    """Return texts as dates; missing where a text is not a date of this format."""
    import pandas as pd

    series = pd.Series(texts, dtype="object")
    return pd.to_datetime(series, format=pattern, errors="coerce", utc=True)


def as_seconds(values: pd.Series[Any], pattern: str) -> np.ndarray:
    """Return a column as seconds since 1970; NaN where an entry is missing or not a date."""
    import pandas as pd

    if is_date_type(values):
        dates = pd.to_datetime(values, utc=True)
    else:
        dates = _parse_dates(as_texts(values), pattern)
    stamps = dates.dt.tz_localize(None).to_numpy(dtype="datetime64[ms]")
    seconds = stamps.astype(np.int64) / 1e3
    return np.asarray(np.where(np.isnat(stamps), np.nan, seconds))
