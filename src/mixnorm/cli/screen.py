"""What the user sees: results on standard output, all else on standard error."""

from __future__ import annotations

import json
import math
import os
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape

# Tables are as wide as they need to be where no terminal says how wide it is.
_WIDE = 200


class _Console(Console):
    """A console that falls silent when its reader goes away, instead of ending the program.

    The work may be far from done: files are still to be written.
    """

    def on_broken_pipe(self) -> None:
        """Say no more."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def _console(*, stderr: bool) -> Console:
    console = _Console(stderr=stderr, highlight=False, soft_wrap=True)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDE
    return console


class Screen:
    """Where results, remarks and progress go.

    Parameters
    ----------
    json : bool
        Print one JSON object instead of text.
    quiet : bool
        No remarks and no progress.
    """

    def __init__(self, *, json: bool = False, quiet: bool = False) -> None:
        self.json, self.quiet = json, quiet
        self.out = _console(stderr=False)
        self.err = _console(stderr=True)

    def say(self, text: str = "") -> None:
        """Print a line of the result, unless the result is JSON."""
        if not self.json:
            self.out.print(safe(text))

    def show(self, table: Any) -> None:
        """Print a table of the result, unless the result is JSON."""
        if not self.json:
            self.out.print(table)

    def remark(self, text: str) -> None:
        """Print a line about the work, beside the result."""
        if not self.quiet:
            self.err.print(f"[dim]{safe(text)}[/dim]")

    def status(self, what: str) -> AbstractContextManager[Any]:
        """Show that something goes on that has no measure of progress."""
        return nullcontext() if self.quiet else self.err.status(safe(what))

    def print_json(self, content: dict[str, Any]) -> None:
        """Print the result as JSON, if that was asked for."""
        if self.json:
            write_output(json.dumps(plain(content), indent=2, ensure_ascii=False) + "\n")

    def print_problem(self, text: str) -> None:
        """Print why it cannot be done, in one line."""
        line = " ".join(text.split())
        self.err.print(f"[red]mixnorm: {safe(line)}[/red]")
        with suppress(OSError):  # a full disk, perhaps, which is what has been told
            self.print_json({"problem": line})


def safe(text: str) -> str:
    """Return a text for the terminal: no markup, and no character that steers it.

    Names come from files, and these from anywhere.
    """
    return escape("".join(char if char.isprintable() or char == "\n" else "�" for char in text))


def write_output(text: str) -> None:
    """Write to standard output in UTF-8, whatever the terminal's encoding: others will read it."""
    sys.stdout.flush()
    raw = getattr(sys.stdout, "buffer", None)
    if raw is None:
        sys.stdout.write(text)
    else:
        raw.write(text.encode("utf-8", "backslashreplace"))
        raw.flush()


def plain(value: Any) -> Any:
    """Return a value as JSON knows it; NaN and infinities, which it does not know, as null."""
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def format_percent(fraction: float) -> str:
    """Return a fraction as people read it."""
    return f"{100 * fraction:.1f} %"


def format_error(error: float | None, task: str) -> str:
    """Return an error as people read it: per cent for labels, a plain number otherwise."""
    if error is None or not math.isfinite(error):
        return "-"
    return format_percent(error) if task == "classification" else f"{error:.4g}"
