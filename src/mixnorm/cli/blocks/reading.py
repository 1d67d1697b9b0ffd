"""Progress of reading a table of blocks."""

from __future__ import annotations

import time
from typing import Any

from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

from mixnorm._memory import format_bytes
from mixnorm.cli.progress import SECONDS_BETWEEN_LINES, TerminalProgress
from mixnorm.cli.screen import Screen
from mixnorm.data import BlockTable


class ReadingLine(TerminalProgress):
    """A line with the blocks and bytes that have been read, within a ``with`` block.

    Parameters
    ----------
    screen : Screen
        The screen to draw on.
    """

    def __init__(self, screen: Screen) -> None:
        super().__init__(
            screen,
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[reading]}"),
            TimeElapsedColumn(),
        )
        self._line = self.add_task("", total=None, reading="")
        self._what, self._last = "", time.monotonic()

    def name(self, what: str) -> None:
        """Set the words for what is being done."""
        self._what = what
        self.update(self._line, description=what)

    def follow(self, table: BlockTable) -> None:
        """Show the progress of a table."""
        table.on_progress = lambda done, all_: self.show(table, done, all_)

    def show(self, table: BlockTable, done: int, all_: int) -> None:
        """Show how far a pass over a table is."""
        words: dict[str, Any] = {"reading": describe_blocks(table, done, all_)}
        self.update(self._line, completed=done, total=all_, **words)
        if self.disable and time.monotonic() - self._last > SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            self._screen.remark(f"{self._what}: {words['reading']}")


def describe_blocks(table: BlockTable, done: int, all_: int) -> str:
    """Return how far a pass over a table is, and the bytes read so far."""
    return f"block {done}/{all_}, {format_bytes(table.bytes_read)} read"
