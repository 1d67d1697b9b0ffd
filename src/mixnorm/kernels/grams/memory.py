"""Amounts of memory, as numbers or in words."""

from __future__ import annotations

import math
import numbers
import re
from typing import Any

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)


def as_bytes(memory: Any) -> int:
    """Return an amount of memory in bytes.

    Examples
    --------
    >>> as_bytes("4 GiB") == 4 * 2**30, as_bytes("500 MB"), as_bytes(1024)
    (True, 500000000, 1024)
    """
    if isinstance(memory, str):
        match = _AMOUNT.fullmatch(memory)
        if match is None or (match[3] and not match[2]):
            raise ValueError(
                f"memory={memory!r} is no amount of memory; write a number of bytes, or a text "
                "such as '4 GiB' or '500 MB'."
            )
        units = _BINARY if match[3] else _UNITS
        amount = float(match[1]) * units[match[2].lower()]
    elif isinstance(memory, numbers.Real) and not isinstance(memory, bool):
        amount = float(memory)
    else:
        raise TypeError(
            f"memory={memory!r} must be a number of bytes or a text such as '4 GiB', got "
            f"{type(memory).__name__}."
        )
    if not 1.0 <= amount < math.inf:
        raise ValueError(f"memory={memory!r} must be at least one byte, and finite.")
    return int(amount)


def in_words(amount: float) -> str:
    """Return an amount of memory as people write it.

    Examples
    --------
    >>> in_words(2**31), in_words(1500), in_words(10)
    ('2 GiB', '1.46 KiB', '10 bytes')
    """
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        size = _BINARY[unit[0].lower()]
        if amount >= size:
            return f"{amount / size:.3g} {unit}"
    return f"{amount:.0f} bytes"
