"""What the user sees: results on standard output, all else on standard error."""

from __future__ import annotations

import json
import math
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rich.console import Console
from rich.markup import escape


class _Console(Console):
    """A console that leaves it to the command what to do when its reader goes away."""

    def on_broken_pipe(self) -> None:
        """Pass the error on, instead of ending the program."""
        raise BrokenPipeError


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
        self.out = _Console(highlight=False, soft_wrap=True)
        self.err = _Console(stderr=True, highlight=False, soft_wrap=True)

    def say(self, text: str = "") -> None:
        """Print a line of the result, unless the result is JSON."""
        if not self.json:
            self.out.print(escape(text))

    def show(self, table: Any) -> None:
        """Print a table of the result, unless the result is JSON."""
        if not self.json:
            self.out.print(table)

    def remark(self, text: str) -> None:
        """Print a line about the work, beside the result."""
        if not self.quiet:
            self.err.print(f"[dim]{escape(text)}[/dim]")

    def working(self, what: str) -> AbstractContextManager[Any]:
        """Show that something goes on that has no measure of progress."""
        return nullcontext() if self.quiet else self.err.status(escape(what))

    def document(self, content: dict[str, Any]) -> None:
        """Print the result as JSON, if that was asked for."""
        if self.json:
            sys.stdout.write(json.dumps(plain(content), indent=2, ensure_ascii=False) + "\n")

    def problem(self, text: str) -> None:
        """Print why it cannot be done, in one line."""
        line = " ".join(text.split())
        self.err.print(f"[red]mixnorm: {escape(line)}[/red]")
        self.document({"error": line})


def plain(value: Any) -> Any:
    """Return a value as JSON knows it; NaN and infinities, which it does not know, as null."""
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def percent(fraction: float) -> str:
    """Return a fraction as people read it."""
    return f"{100 * fraction:.1f} %"


def error_text(error: float | None, task: str) -> str:
    """Return an error as people read it: per cent for labels, a plain number otherwise."""
    if error is None or not math.isfinite(error):
        return "-"
    return percent(error) if task == "classification" else f"{error:.4g}"
