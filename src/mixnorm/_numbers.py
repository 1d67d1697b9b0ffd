"""Checks of single numbers that users give."""

from __future__ import annotations

import numbers

import numpy as np


def check_count(name: str, value: object, least: int = 1) -> int:
    """Return ``value`` as an int; raise unless it is a whole number of at least ``least``.

    Examples
    --------
    >>> check_count("n_copies", 3)
    3
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name}={value!r} must be a whole number.")
    if value < least:
        raise ValueError(f"{name}={value} must be at least {least}.")
    return int(value)


def check_number(name: str, value: object) -> None:
    """Raise unless a value is a real number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}={value!r} must be a number, got {type(value).__name__}.")
