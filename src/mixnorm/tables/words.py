"""Counts and lists in messages."""

from __future__ import annotations

from collections.abc import Sequence


def pluralize(number: int, thing: str, things: str | None = None) -> str:
    """Return a count with its noun; ``things`` is the plural if it does not end in *s*.

    Examples
    --------
    >>> pluralize(1, "row"), pluralize(2, "row"), pluralize(3, "entry", "entries")
    ('1 row', '2 rows', '3 entries')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {things or thing + 's'}"


def join_names(names: Sequence[str], most: int = 6) -> str:
    """Return the first few names as a list, with the number of those left off."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
