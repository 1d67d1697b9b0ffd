"""Tables of the benchmark ``shareboost``: datasets, whole paths, and the best other method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks.harness.methods import Method
from benchmarks.shareboost.results import OURS, OURS_TUNED, Results, Row

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
ONE = 20  # the size whose single fit is shown beside the fits of all sizes


def make_results_table(
    results: Results, data: str, methods: Mapping[str, Method], sizes: Sequence[int]
) -> Table:
    """Return a table of one dataset: every method at every size."""
    table = Table(title=data, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("method", no_wrap=True)
    for column in COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    for name, method in methods.items():
        rows = [row for size in sizes if (row := results.row(data, name, size))]
        for row in rows:
            label = name if row is rows[0] else ""
            table.add_row(label, *_format_cells(results, row, method), end_section=row is rows[-1])
    return table


def _format_cells(results: Results, row: Row, method: Method) -> tuple[str, ...]:
    sign = "> " if row.stopped else ""
    ratio = results.size_ratio(row)
    equal = None if method.ours else results.equal_error(row)
    return (
        str(row.size),
        _format_error(row),
        _format_number(row.features, ".3g"),
        f"{sign}{row.seconds:.3g}" if row.seconds is not None else "",
        _format_number(row.extra, ".2f"),
        _format_number(row.search, ".1f"),
        _format_number(row.peak_bytes and row.peak_bytes / 2**20, ".0f"),
        _format_number(row.peak_share, ".2f"),
        f"{sign}{ratio:.1f}" if ratio else "",
        f"{equal[1]:.1f} at {equal[0]}" if equal else "",
    )


def make_paths_table(
    results: Results, data: str, methods: Mapping[str, Method], sizes: Sequence[int]
) -> Table:
    """Return a table of one dataset: errors by size, and the time of all sizes together."""
    title = f"{data}: all sizes"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("method", no_wrap=True)
    late = ("R", "fits s", "search s", "x ours", f"{ONE} only s", "x ours", "not converged")
    for column in (*(f"error % at {size}" for size in sizes), *late):
        table.add_column(column, justify="right")
    for name in methods:
        whole = results.whole(data, name)
        if whole is None:
            continue
        rows = [results.row(data, name, size) for size in sizes]
        one, sign = results.row(data, name, ONE), "> " if whole.stopped else ""
        table.add_row(
            name,
            *(_format_error(row) for row in rows),
            str(max((row.resamplings for row in rows if row), default=0)),
            f"{sign}{whole.seconds:.3g}",
            _format_number(whole.search or None, ".3g"),
            _format_times(sign, results.whole_ratio(data, name)),
            _format_number(one.seconds if one else None, ".3g"),
            _format_times(
                ">" if one and one.stopped else "", results.size_ratio(one) if one else None
            ),
            _format_number(whole.unconverged or None, "d"),
        )
    return table


def make_summary_table(results: Results, datasets: Sequence[str], sizes: Sequence[int]) -> Table:
    """Return a table of all datasets: ours, ours tuned, and the best of the others by name."""
    title = "Ours beside the best of the others (all sizes: their seconds over ours)"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("data", "size", OURS, OURS_TUNED, "best of the others", "x ours"):
        table.add_column(column, justify="right" if column in ("size", "x ours") else "left")
    for data in datasets:
        for size in sizes:
            other, ours = results.best_other(data, size), results.row(data, OURS, size)
            if other is None or ours is None:
                continue
            tuned, ratio = results.row(data, OURS_TUNED, size), results.whole_ratio(data, other[1])
            cells = (
                _format_error(ours),
                _format_error(tuned),
                f"{other[0]:.1f} {other[1]}",
                _format_times("", ratio),
            )
            table.add_row(data, str(size), *cells, end_section=size == max(sizes))
    return table


def make_growth_table(growth: Mapping[str, Any]) -> Table:
    """Return a table of our seconds by rows, columns and classes, with fitted exponents."""
    title = "Growth of our time (path to 20 features)"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for column in ("in", "exponent", "seconds"):
        table.add_column(column)
    for name, found in growth.items():
        points = ", ".join(f"{size}: {seconds:.3g}" for size, seconds in found["seconds"].items())
        table.add_row(name, f"{found['exponent']:.2f}", points)
    return table


def _format_error(row: Row | None) -> str:
    if row is None or row.error is None:
        return ""
    return f"{row.error:.1f}" + (f" ± {row.deviation:.1f}" if row.deviation is not None else "")


def _format_times(sign: str, ratio: float | None) -> str:
    return "" if ratio is None else sign + format(ratio, ".0f" if ratio >= 10 else ".2g")


def _format_number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
