"""Parsers of option values; they refuse a text that does not fit."""

from __future__ import annotations

import argparse
import math
from functools import partial

from mixnorm._memory import as_bytes

# Less does not hold a few blocks of rows.
_LEAST_MEMORY = 1 << 24


def _parse_integer(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
    return number


parse_whole = partial(_parse_integer, least=0)
parse_count = partial(_parse_integer, least=1)
parse_folds = partial(_parse_integer, least=2)
parse_rows = partial(_parse_integer, least=20)  # norms cannot be compared on fewer rows


def _parse_float(text: str) -> float:
    """Return a finite number of at least 0, or NaN for any other text."""
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if 0 <= number < math.inf else math.nan


def parse_alpha(text: str) -> float | str:
    """Return a number of at least 0, or ``auto``."""
    if text == "auto":
        return text
    number = _parse_float(text)
    if math.isnan(number):
        message = f"{text!r} is neither 'auto' nor a finite number of at least 0"
        raise argparse.ArgumentTypeError(message)
    return number


def parse_positive(text: str) -> float:
    """Return a number above 0."""
    number = _parse_float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number above 0")
    return number


def parse_memory(text: str) -> int:
    """Return an amount of memory in bytes."""
    try:
        amount = as_bytes(text)
    except ValueError:
        message = f"{text!r} is not an amount of memory, such as 1GiB or 500MB"
        raise argparse.ArgumentTypeError(message) from None
    if amount < _LEAST_MEMORY:
        raise argparse.ArgumentTypeError(f"{text!r} is too little memory; give at least 16MiB")
    return amount


def parse_delimiter(text: str) -> str:
    """Return one character, which may be given by its name."""
    named = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "pipe": "|"}
    char = named.get(text, text)
    if len(char) != 1 or char in '"\r\n' or not char.isascii():
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a delimiter; give one ASCII character, or tab, comma, semicolon, "
            "space, pipe"
        )
    return char
