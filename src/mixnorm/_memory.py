"""Amounts of memory: from texts to bytes, and back."""

from __future__ import annotations

import math
import numbers
import re

# Powers of 1000, or of 1024 for units such as GiB.
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
# Options of glibc's mallopt: the smallest array that the system is asked for by itself (32 MB, the
# largest value that counts), and the free memory at the end of the heap that is given back.
_KEPT_BY_GLIBC = {-3: 1 << 25, -1: 1 << 28}
_AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)


def as_bytes(memory: object) -> int:
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
                f"memory={memory!r} is not an amount of memory; write a number of bytes, or a text "
                "such as '4 GiB' or '500 MB'."
            )
        amount = float(match[1]) * (1024 if match[3] else 1000) ** _POWERS[match[2].lower()]
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


def keep_freed_memory() -> None:
    """Let the C library of this process keep memory that is freed, for the next array.

    The nanny of a Dask worker tells it to give all memory back at once. Tasks that make and free
    arrays of some MB a thousand times then take three times as long: the system clears each page
    again. Where the library has no such option, nothing happens.
    """
    import ctypes

    try:
        tell = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc
        return
    for option, amount in _KEPT_BY_GLIBC.items():
        tell(option, amount)


def format_bytes(amount: float) -> str:
    """Return an amount of memory with a readable unit.

    Examples
    --------
    >>> format_bytes(2**31), format_bytes(1500), format_bytes(10)
    ('2 GiB', '1.46 KiB', '10 bytes')
    """
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if amount >= 1024**power:
            return f"{amount / 1024**power:.3g} {unit}"
    return f"{amount:.0f} bytes"
