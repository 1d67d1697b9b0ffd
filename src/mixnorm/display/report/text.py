"""Numbers and names, formatted for readers."""

from __future__ import annotations

import math
import unicodedata
from typing import TypeGuard

from mixnorm.display.report.html import one_line

NONE = "–"  # a value that is not known or not finite
_SPACE = "\u00a0"
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

# Scales of charts are computed with differences and ratios, which overflow for larger numbers.
LARGEST_SHOWN = 1e150


def is_known(value: float | None) -> TypeGuard[float]:
    """Return whether a value is a number that can be written and drawn."""
    return value is not None and abs(value) < LARGEST_SHOWN


def _use_minus_signs(text: str) -> str:
    return text.replace("-", "−")


def count(value: float) -> str:
    """Return a whole number with separated thousands, or another number with three digits."""
    if not is_known(value):
        return NONE
    if float(value).is_integer():
        return _use_minus_signs(f"{int(value):,}")
    return number(value)


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with a few significant digits, and a power of ten if it is extreme."""
    if not is_known(value):
        return NONE
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if not -4 <= size < 7:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{_use_minus_signs(mantissa)}{_SPACE}×{_SPACE}{power_of_ten(int(exponent))}"
    return _use_minus_signs(f"{value:,.{max(digits - 1 - size, 0)}f}")


def power_of_ten(exponent: int) -> str:
    """Return ``10⁻⁵``."""
    return "10" + str(exponent).translate(_SUPERSCRIPT)


def format_fixed(value: float, decimals: int) -> str:
    """Return a number with fixed decimals, and without a sign if all digits are zero."""
    text = f"{value:,.{decimals}f}"
    return _use_minus_signs(text if text.strip("-0.") else text.strip("-"))


def percent(value: float | None, decimals: int | None = None) -> str:
    """Return a share as a percentage, by default with as many decimals as it needs."""
    if not is_known(value):
        return NONE
    if decimals is None:
        # A share near 0 or 1 must not be rounded to 0 or 100 %.
        if 0 < value < 5e-6:
            return f"<{_SPACE}{percent(1e-5, 3)}"
        if 0 < 1 - value < 5e-6:
            return f">{_SPACE}{percent(0.99999, 3)}"
        decimals = _choose_decimals(value)
    return f"{format_fixed(100 * value, decimals)}{_SPACE}%"


def _choose_decimals(share: float) -> int:
    if share in (0, 1):
        return 0
    near = min(abs(share), abs(1 - share))
    return 1 if near >= 0.01 else 2 if near >= 0.001 else 3


def measure(value: float | None, task: str) -> str:
    """Return an error: a percentage for classes, a plain number for regression."""
    return percent(value) if task == "classification" else number(value)


def plus_minus(value: float | None, spread: float | None, task: str) -> str:
    """Return an error, with its standard error if that is known."""
    if not is_known(value) or not is_known(spread):
        return measure(value, task)
    return f"{measure(value, task)}{_SPACE}{margin(spread, task)}"


def margin(spread: float | None, task: str) -> str:
    """Return ``± 0.6``, a standard error in the unit of its error, without the name of the unit."""
    if not is_known(spread):
        return NONE
    size = number(spread, 2)
    if task == "classification":
        size = f"{100 * spread:.{1 if spread >= 0.0005 or spread == 0 else 3}f}"
    return f"±{_SPACE}{size}"


def duration(seconds: float) -> str:
    """Return a time in seconds, minutes or hours."""
    if not is_known(seconds) or seconds < 0:
        return NONE
    if seconds < 0.01:
        return f"under{_SPACE}0.01{_SPACE}s"
    if seconds < 59.5:
        return f"{seconds:.{2 if seconds < 1 else 1 if seconds < 10 else 0}f}{_SPACE}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}{_SPACE}min{_SPACE}{rest}{_SPACE}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,}{_SPACE}h{_SPACE}{minutes}{_SPACE}min"


def byte_size(size: float | None) -> str:
    """Return the size of a file in decimal units."""
    if not is_known(size):
        return NONE
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{count(size) if unit == 'bytes' else number(size)}{_SPACE}{unit}"
        size /= 1000
    return f"{number(size)}{_SPACE}GB"


def plural(amount: int, word: str, words: str | None = None) -> str:
    """Return ``1 feature``, ``2 features``."""
    return f"{count(amount)}{_SPACE}{word if amount == 1 else words or word + 's'}"


def text_width(text: str) -> float:
    """Return an upper estimate of the width of a text, in units of the font size.

    The exact width is not known, because the reader's system chooses the font.
    """
    return sum(_estimate_glyph_width(letter) for letter in text)


def _estimate_glyph_width(letter: str) -> float:
    if unicodedata.combining(letter) or letter in "\u200b\u200c\u200d\ufe0e\ufe0f":
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.3 if ord(letter) > 0xFFFF else 1.05
    if letter in "iljtfI.,:;'|!()[] ":
        return 0.36
    if letter in "mwMW@%—…":
        return 0.98
    return 0.72 if letter.isupper() else 0.6


def shorten(name: str, width: float) -> str:
    """Return a name of at most ``width`` font sizes, cut with an ellipsis if it is wider."""
    line = one_line(name)
    if text_width(line) <= width:
        return line
    room = width - text_width("…")
    kept = ""
    for letter in line:
        room -= _estimate_glyph_width(letter)
        if room < 0:
            break
        kept += letter
    return kept.rstrip(" \u200d") + "…"
