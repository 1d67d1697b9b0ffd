"""Numbers and lists of things in messages."""

from __future__ import annotations

from collections.abc import Sequence


def pluralize(number: int, thing: str, things: str | None = None) -> str:
    """Return a number of things in words; ``things`` is an odd plural.

    Examples
    --------
    >>> pluralize(1, "row"), pluralize(2, "row"), pluralize(3, "entry", "entries")
    ('1 row', '2 rows', '3 entries')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {things or thing + 's'}"


def join_names(names: Sequence[str], most: int = 6) -> str:
    """Return names as a list, cut after a few."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
