"""What the texts of options stand for; a text that fits nothing is refused."""

from __future__ import annotations

import argparse
import math
from functools import partial


def _integer(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least {least}")
    return number


count = partial(_integer, least=1)
whole = partial(_integer, least=0)
folds = partial(_integer, least=2)
enough = partial(_integer, least=20)  # rows that norms can be compared on


def alpha(text: str) -> float:
    """Return a number of at least 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of at least 0")
    return number


def penalty(text: str) -> float | str:
    """Return a number of at least 0, or ``auto``."""
    if text == "auto":
        return text
    try:
        return alpha(text)
    except argparse.ArgumentTypeError:
        message = f"{text!r} is neither 'auto' nor a finite number of at least 0"
        raise argparse.ArgumentTypeError(message) from None


def positive(text: str) -> float:
    """Return a number above 0."""
    number = alpha(text)
    if not number:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return number


def delimiter(text: str) -> str:
    """Return one character, which may be given by its name."""
    named = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "pipe": "|"}
    char = named.get(text, text)
    if len(char) != 1 or char in '"\r\n' or not char.isascii():
        raise argparse.ArgumentTypeError(
            f"{text!r} is no single character; give one, or tab, comma, semicolon, space, pipe"
        )
    return char
