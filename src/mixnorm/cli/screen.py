"""Output of commands: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mixnorm import __version__

# Width of tables if there is no terminal, enough for any of them.
_WIDTH_WITHOUT_TERMINAL = 200


class _Console(Console):
    """A console that falls silent when its reader goes away, instead of ending the program.

    Files may still have to be written.
    """

    def on_broken_pipe(self) -> None:
        """Discard all further output."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def _make_console(*, stderr: bool) -> Console:
    console = _Console(stderr=stderr, highlight=False, soft_wrap=True)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDTH_WITHOUT_TERMINAL
    return console


class Screen:
    """The printer of results, remarks and progress.

    Parameters
    ----------
    json : bool
        Print one JSON object instead of text.
    quiet : bool
        No remarks and no progress.
    """

    def __init__(self, *, json: bool = False, quiet: bool = False) -> None:
        self.json, self.quiet = json, quiet
        self.out = _make_console(stderr=False)
        self.err = _make_console(stderr=True)

    def say(self, *lines: str) -> None:
        """Print lines of the result, unless the result is JSON."""
        for line in () if self.json else lines:
            self.out.print(escape_text(line))

    def show(self, table: Table) -> None:
        """Print a table of the result, unless the result is JSON."""
        if not self.json:
            self.out.print(table)

    def remark(self, *lines: str) -> None:
        """Print lines about the work on standard error."""
        for line in () if self.quiet else lines:
            self.err.print(f"[dim]{escape_text(line)}[/dim]")

    def status(self, what: str) -> AbstractContextManager[Any]:
        """Show that work without a measure of progress goes on."""
        return nullcontext() if self.quiet else self.err.status(escape_text(what))

    def print_json(self, content: dict[str, Any]) -> None:
        """Print the result as JSON, if ``--json`` is given."""
        if self.json:
            write_output(json.dumps(convert_to_plain(content), indent=2, ensure_ascii=False) + "\n")

    def print_problem(self, text: str) -> None:
        """Print an error in one line."""
        line = " ".join(text.split())
        self.err.print(f"[red]mixnorm: {escape_text(line)}[/red]")
        with suppress(OSError):  # perhaps a full disk, which is the problem just printed
            self.print_json({"problem": line})


def describe_command(command: Sequence[str]) -> dict[str, str]:
    """Return the command, its time, and the version of this package."""
    return {
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": shlex.join(["mixnorm", *command]),
        "version": __version__,
    }


def escape_text(text: str) -> str:
    """Return a text without markup and control characters, because names in files may have them."""
    return escape("".join(char if char.isprintable() or char == "\n" else "�" for char in text))


def write_output(text: str) -> None:
    """Write to standard output in UTF-8, whatever the terminal's encoding: a program reads it."""
    sys.stdout.flush()
    raw = getattr(sys.stdout, "buffer", None)
    if raw is None:
        sys.stdout.write(text)
    else:
        raw.write(text.encode("utf-8", "backslashreplace"))
        raw.flush()


def convert_to_plain(value: Any) -> Any:
    """Return a value in the types of JSON, which has no NaN and infinities: these become None."""
    if isinstance(value, dict):
        return {str(name): convert_to_plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [convert_to_plain(part) for part in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return convert_to_plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def format_error(error: float | None, task: str) -> str:
    """Return an error for display: a percentage for labels, a number otherwise."""
    if error is None or not math.isfinite(error):
        return "-"
    return f"{100 * error:.1f} %" if task == "classification" else f"{error:.4g}"
