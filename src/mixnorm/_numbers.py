"""Checks of single numbers that users give."""

from __future__ import annotations

import numbers

import numpy as np


def check_count(
    name: str, value: object, least: int = 1, most: int | None = None, *, other: str = ""
) -> int:
    """Return ``value`` as an int; raise unless it is a whole number from ``least`` to ``most``.

    ``other`` ends the message: another value that is allowed, such as " or None".

    Examples
    --------
    >>> check_count("n_copies", 3)
    3
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name}={value!r} must be a whole number{other}.")
    number = int(value)
    if number < least or (most is not None and number > most):
        allowed = f"at least {least}" if most is None else f"between {least} and {most}"
        raise ValueError(f"{name}={value} must be {allowed}{other}.")
    return number


def check_number(name: str, value: object) -> None:
    """Raise unless a value is a real number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}={value!r} must be a number, got {type(value).__name__}.")
