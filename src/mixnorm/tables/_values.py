"""What the entries of a column stand for: numbers, dates or texts, whatever type they came in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

# How a text is written as a number; the first style that fits wins.
STYLES = ("plain", "thousands", "comma")
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
_COMMA = re.compile(r"[-+]?(\d+|\d{1,3}(\.\d{3})+),\d+([eE][-+]?\d+)?")
# Dates as people write them, beside ISO 8601; day first unless that does not fit.
_DAYS = ("%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%m/%d/%y", "%d/%m/%y",
         "%d-%m-%Y", "%m-%d-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y",
         "%d-%b-%y")  # fmt: skip
_HOURS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p")
DATE_FORMATS = ("ISO8601", *(day + hour for day in _DAYS for hour in _HOURS))
_DATE_LIKE = re.compile(r"(?=.*\d)[0-9A-Za-z ,./:+-]{6,40}")


def is_number_type(values: pd.Series[Any]) -> bool:
    """Whether a column is stored as numbers or truth values."""
    from pandas.api import types

    return bool(types.is_numeric_dtype(values) or types.is_bool_dtype(values))


def is_date_type(values: pd.Series[Any]) -> bool:
    """Whether a column is stored as dates."""
    from pandas.api import types

    return bool(types.is_datetime64_any_dtype(values))


def as_numbers(values: pd.Series[Any], style: str = "plain") -> np.ndarray:
    """Return a column as floats; NaN where an entry is missing or no number."""
    import pandas as pd

    if is_number_type(values):
        if values.dtype.kind in "iufb":
            return np.asarray(values.to_numpy(), dtype=np.float64)
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    texts = pd.Series(as_texts(values), dtype="object")
    if style == "thousands":
        texts = texts.map(lambda text: _plain(text, _THOUSANDS, ",", ""), na_action="ignore")
    elif style == "comma":
        texts = texts.map(_from_comma, na_action="ignore")
    found = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(found)


def _plain(text: str, pattern: re.Pattern[str], old: str, new: str) -> str:
    return text.replace(old, new) if pattern.fullmatch(text) else text


def _from_comma(text: str) -> str:
    return text.replace(".", "").replace(",", ".") if _COMMA.fullmatch(text) else text


def number_style(texts: np.ndarray, least: float) -> str | None:
    """Return the style in which at least this share of texts are numbers, None if there is none.

    Parameters
    ----------
    texts : ndarray of object
        Distinct texts, none missing.
    least : float
        The share that has to be a number.
    """
    import pandas as pd

    for style in STYLES:
        numbers = as_numbers(pd.Series(texts, dtype="object"), style)
        if np.count_nonzero(~np.isnan(numbers)) >= least * len(texts):
            return style
    return None


def as_texts(values: pd.Series[Any]) -> np.ndarray:
    """Return a column as texts, the same text for 3, 3.0 and "3"; None where it is missing."""
    found = np.empty(len(values), dtype=object)
    missing = values.isna().to_numpy()
    if is_number_type(values) and values.dtype.kind not in "b":
        numbers = as_numbers(values)
        found[~missing] = [_number_text(number) for number in numbers[~missing]]
    else:
        present = values[~missing]
        found[~missing] = [_text(value) for value in present.tolist()]
        found[found == ""] = None
    return found


def _text(value: Any) -> str:
    if isinstance(value, float) and not isinstance(value, bool):
        return _number_text(value)
    return str(value).strip()


def _number_text(number: float) -> str:
    whole = float(number).is_integer() and abs(number) < 2**63
    return str(int(number)) if whole else repr(float(number))


def date_format(texts: np.ndarray, least: float) -> str | None:
    """Return the format in which at least this share of texts are dates, None if there is none."""
    import pandas as pd

    if not len(texts) or not all(_DATE_LIKE.fullmatch(text) for text in texts[:20]):
        return None
    distinct = pd.Series(texts[:2000], dtype="object")
    for pattern in DATE_FORMATS:
        dates = pd.to_datetime(distinct, format=pattern, errors="coerce", utc=True)
        if dates.notna().mean() >= least:
            return pattern
    return None


def as_seconds(values: pd.Series[Any], pattern: str) -> np.ndarray:
    """Return a column as seconds since 1970; NaN where an entry is missing or no date."""
    import pandas as pd

    if is_date_type(values):
        dates = values
    else:
        texts = pd.Series(as_texts(values), dtype="object")
        dates = pd.to_datetime(texts, format=pattern, errors="coerce", utc=True)
    if getattr(dates.dtype, "tz", None) is not None:
        dates = dates.dt.tz_convert("UTC").dt.tz_localize(None)
    stamps = dates.to_numpy(dtype="datetime64[ms]")
    seconds = stamps.astype(np.int64) / 1e3
    return np.asarray(np.where(np.isnat(stamps), np.nan, seconds))
