"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.harness.bar import Check
from benchmarks.harness.jobs import Record
from benchmarks.harness.methods import Method

WIDTH = 140  # columns of text, if the output is a file


def make_console() -> Console:
    """Return a console that is as wide as the tables need."""
    found = Console()
    return found if found.is_terminal else Console(width=WIDTH)


def make_bar_table(found: Iterable[Check]) -> Table:
    """Return a table of the bar: required value, measured value and verdict of each figure."""
    table = Table(title="The bar", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("", "", "figure", "asked", "found"):
        table.add_column(column, no_wrap=True)
    words = {True: "[green]pass[/]", False: "[bold red]FAIL[/]", None: "[dim]-[/]"}
    group = None
    for check in found:
        if group not in (None, check.group):
            table.add_section()
        name = "" if check.group == group else check.group
        group = check.group
        table.add_row(words[check.passed], name, check.name, check.asked, check.found)
    return table


def make_table(title: str, *columns: str, first: str = "method") -> Table:
    """Return an empty table with text in the first column and figures in the others."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(first, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def describe_status(record: Record) -> str:
    """Return in a few words why a record has no figures."""
    if record["status"] == "timeout":
        return f"> {record['limit']:g} s"
    return "not installed" if record["status"] == "absent" else "failed"


def describe_failure(record: Record) -> str:
    """Return the last line of a failed method's message."""
    return "[red]failed[/]: " + escape(record["message"].strip().splitlines()[-1][:200])


def describe(record: Record) -> str:
    """Return one line about a finished job."""
    if record["status"] == "timeout":
        return f"> {record['limit']:g} s"
    if record["status"] == "failed":
        return describe_failure(record)
    last = record["points"][-1]
    return f"{record['seconds']:.3g} s, {last['error']:.1f} % at {last['size']}"


def print_choices(console: Console, datasets: Iterable[str], methods: Mapping[str, Method]) -> None:
    """Print the names of datasets and methods."""
    console.print("datasets: " + ", ".join(datasets))
    for name, method in methods.items():
        state = "" if method.available() else f"  [red]needs {method.needs}, not installed[/]"
        summary = (method.__doc__ or "").splitlines()[0]
        console.print(f"  {name:<22}{escape(summary)}{state}", highlight=False)
