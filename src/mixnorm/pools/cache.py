"""Columns that were asked for lately, kept for when they are asked for again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any


class Recent:
    """The columns of the atoms that were asked for last.

    A rule that looks at several candidates a round asks for many of them again in the next.

    Parameters
    ----------
    room : int
        How many are kept; all of those asked for together are, even if they are more.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._kept: dict[Hashable, Any] = {}

    def gather(self, atoms: Sequence[Any], make: Callable[[list[Any]], Sequence[Any]]) -> list[Any]:
        """Return the columns of ``atoms``; ``make`` makes those that are not at hand, at once.

        It is not kept: a pool that is reached from itself is freed late, and a GPU soon full.
        """
        kept = self._kept
        for atom in atoms:  # those at hand go to the end, out of the way of what is dropped below
            if atom in kept:
                kept[atom] = kept.pop(atom)
        missing = [atom for atom in atoms if atom not in kept]
        if missing:
            kept.update(zip(missing, make(missing), strict=True))
        while len(kept) > max(self._room, len(atoms)):
            del kept[next(iter(kept))]
        return [kept[atom] for atom in atoms]
