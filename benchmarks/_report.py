"""Tables on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks._bar import Check
from benchmarks._harness import Record
from benchmarks._methods import Method
from benchmarks._results import Results, Row

COLUMNS = (
    "size",
    "error %",
    "used",
    "seconds",
    "first +",
    "search",
    "peak MiB",
    "/ X",
    "ratio",
    "at error",
)
WIDTH = 124  # of the tables, where the output is a file


def console() -> Console:
    """Return a console that is as wide as the tables need."""
    found = Console()
    return found if found.is_terminal else Console(width=WIDTH)


def results_table(
    results: Results, data: str, methods: Mapping[str, Method], sizes: Sequence[int]
) -> Table:
    """One dataset: every method at every size."""
    table = Table(title=data, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("method", no_wrap=True)
    for column in COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    for name, method in methods.items():
        rows = [row for size in sizes if (row := results.row(data, name, size))]
        for row in rows:
            label = name if row is rows[0] else ""
            table.add_row(label, *_cells(results, row, method), end_section=row is rows[-1])
    return table


def _cells(results: Results, row: Row, method: Method) -> tuple[str, ...]:
    sign = "> " if row.stopped else ""
    ratio = results.path_ratio(row)
    equal = None if method.ours else results.equal_error(row)
    error = "" if row.error is None else f"{row.error:.1f}"
    if row.deviation is not None:
        error += f" ± {row.deviation:.1f}"
    return (
        str(row.size),
        error,
        _number(row.features, ".3g"),
        f"{sign}{row.seconds:.3g}" if row.seconds is not None else "",
        _number(row.extra, ".2f"),
        _number(row.search, ".1f"),
        _number(row.peak_bytes and row.peak_bytes / 2**20, ".0f"),
        _number(row.peak_share, ".2f"),
        f"{sign}{ratio:.1f}" if ratio else "",
        f"{equal[1]:.1f} at {equal[0]}" if equal else "",
    )


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def bar_table(found: Iterable[Check]) -> Table:
    """Every figure of the bar, what was found, and whether it is enough."""
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


def growth_table(growth: Mapping[str, Any]) -> Table:
    """Our seconds along rows, columns and classes, with the fitted exponents."""
    title = "Growth of our time (path to 20 features)"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for column in ("in", "exponent", "seconds"):
        table.add_column(column)
    for name, found in growth.items():
        points = ", ".join(f"{size}: {seconds:.3g}" for size, seconds in found["seconds"].items())
        table.add_row(name, f"{found['exponent']:.2f}", points)
    return table


def describe(record: Record) -> str:
    """One line about a finished job."""
    if record["status"] == "timeout":
        return f"> {record['limit']:g} s"
    if record["status"] == "failed":
        return "[red]failed[/]: " + escape(record["message"].strip().splitlines()[-1][:200])
    last = record["points"][-1]
    return f"{record['seconds']:.3g} s, {last['error']:.1f} % at {last['size']}"


def listing(console: Console, datasets: Iterable[str], methods: Mapping[str, Method]) -> None:
    """Print what can be asked for."""
    console.print("datasets: " + ", ".join(datasets))
    for name, method in methods.items():
        state = "" if method.available() else f"  [red]needs {method.needs}, not installed[/]"
        summary = (method.__doc__ or "").splitlines()[0]
        console.print(f"  {name:<22}{escape(summary)}{state}", highlight=False)
