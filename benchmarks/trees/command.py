"""``python -m benchmarks trees``: the options, the runs and the report."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.harness import terminal
from benchmarks.harness.bar import Check
from benchmarks.harness.commands import parse_names, report_bar, run_command
from benchmarks.harness.jobs import Store, run_module
from benchmarks.trees import child
from benchmarks.trees.boosters import BOOSTERS

DATA = ("digits", "segment", "pendigits", "satimage", "letter")
INPUTS = (10, 20)
WITHIN = 0.5  # points of test error above the better of the two
ONE_ROW = 20e-6
SMALL = 40  # stumps of the model whose predictions are timed
METHODS = (*child.POOLS, *BOOSTERS)  # ours first, because they set the budgets
TIMES = (
    ("one", "one row, lean us", 1e6),
    ("one_predict", "one row, predict us", 1e6),
    ("many", "a million, lean s", 1.0),
    ("many_predict", "a million, predict s", 1.0),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``python -m benchmarks trees``."""
    add = parser.add_argument
    add(
        "--data",
        type=parse_names,
        default=DATA,
        help="datasets, separated by commas (default: all)",
    )
    add("--inputs", type=_parse_counts, default=INPUTS, help="numbers of inputs (default: 10,20)")
    add("--no-predict", action="store_true", help="time no predictions")
    add("--json", type=Path, help="write results here as they come")
    add("--resume", action="store_true", help="keep the results already in --json")
    add("--no-runs", action="store_true", help="run nothing; report on what --json holds")
    add("--check", action="store_true", help="exit with 1 if a measured figure misses the bar")


def main(args: argparse.Namespace, console: Console | None = None) -> int:
    """Run all methods; returns 1 when ``--check`` found a miss, 130 when interrupted."""
    console = console or terminal.make_console()
    return run_command(args, console, run, report)


def report(store: Store, console: Console) -> bool:
    """Print all tables and store the summary; return whether a figure misses the bar."""
    found = store.content.get("trees", {})
    for table in make_tables(found):
        console.print(table)
    return report_bar(list(check_bar(found)), store, console)


def run(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Measure the orders that are not in the store."""
    orders = [
        {"data": data, "inputs": inputs, "method": method}
        for data in args.data
        for inputs in args.inputs
        for method in METHODS
    ]
    if not args.no_predict:
        orders.append({"data": "pendigits", "inputs": 0, "method": "predict"})
    for order in orders:
        found, key = store.content.get("trees", {}), "{data}/{inputs}/{method}".format(**order)
        if key in found:
            continue
        if order["method"] in BOOSTERS:
            order = order | {"budgets": find_budgets(found, key.rsplit("/", 1)[0])}
        made = run_module(["benchmarks.trees.child", json.dumps(order)])
        store.put("trees", found | {key: made})
        console.print(f"{key:<32} {_describe(made)}", highlight=False)


def _describe(made: Mapping[str, Any]) -> str:
    if "final" not in made:
        return ""
    cost, error, _ = made["final"]
    return f"{error:5.2f} %  {cost:7.0f} operations  {made['seconds']:.3g} s"


def find_budgets(found: Mapping[str, Any], place: str) -> dict[str, float]:
    """Return the operations of our models, the budgets of small trees."""
    return {
        name: found[f"{place}/{name}"]["final"][0]
        for name in child.POOLS
        if f"{place}/{name}" in found
    }


def find_best_peer(
    found: Mapping[str, Any], place: str, pool: str | None = None
) -> tuple[float, str] | None:
    """Return the lower error of the two libraries, and its name.

    With ``pool``, compare small trees that cost no more than our model with this pool.
    """
    errors = []
    for name in BOOSTERS:
        record = found.get(f"{place}/{name}", {})
        figures = record.get("final") if pool is None else record.get("small", {}).get(pool)
        if figures:
            errors.append((figures[1], name))
    return min(errors, default=None)


def make_tables(found: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the errors of all methods, and the times of predictions."""
    places = list(dict.fromkeys(key.rsplit("/", 1)[0] for key in found))
    table = _make_table("Errors", "data", "inputs", "method", "stumps, rounds", "test error %")
    for column in ("operations", "small trees %", "fit s", "search s", "fit ratio"):
        table.add_column(column, justify="right", no_wrap=True)
    for place in (place for place in places if not place.endswith("/0")):
        for method in (method for method in METHODS if f"{place}/{method}" in found):
            cells = _format_cells(found, place, method)
            table.add_row(*place.split("/"), method, *cells, end_section=method == METHODS[-1])
    yield table
    for key, record in found.items():
        if key.endswith("/predict"):
            yield _make_times_table(key.split("/")[0], record)


def _format_cells(found: Mapping[str, Any], place: str, method: str) -> tuple[str, ...]:
    record = found[f"{place}/{method}"]
    cost, error, size = record["final"]
    small, ratios = "", list[str]()
    if method in child.POOLS:
        peer = find_best_peer(found, place, method)
        small = "none" if peer is None else f"{peer[0]:.2f} {peer[1]}"
        peers = (found[f"{place}/{name}"] for name in BOOSTERS if f"{place}/{name}" in found)
        ratios = [f"{record['seconds'] / peer['seconds']:.2g}" for peer in peers]
    return (
        str(size),
        f"{error:.2f}",
        f"{cost:.0f}",
        small,
        f"{record['seconds']:.3g}",
        f"{record['search_seconds']:.3g}",
        ", ".join(ratios),
    )


def _make_times_table(data: str, record: Mapping[str, Any]) -> Table:
    title = f"Predictions on {data}: {SMALL} stumps, and tuned trees as good on rows held out"
    columns = [part for _, label, _ in TIMES for part in (label, "x")]
    table = _make_table(title, "method", "test error %", *columns)
    ours = record["mixnorm"]
    for name in (name for name in record if name != "memory"):
        each, cells = record[name], []
        for key, _, unit in TIMES:
            cells += [f"{unit * each[key]:.3g}", f"{each[key] / ours[key]:.2g}"]
        table.add_row(name, f"{each['error']:.2f}", *cells)
    return table


def check_bar(found: Mapping[str, Any]) -> Iterator[Check]:
    """Check errors at equal inputs and at equal cost, and the time of one prediction."""
    for place in dict.fromkeys(key.rsplit("/", 1)[0] for key in found):
        ours = {
            name: found[f"{place}/{name}"]["final"]
            for name in child.POOLS
            if f"{place}/{name}" in found
        }
        peer = find_best_peer(found, place)
        if ours and peer is not None:
            name, (_, error, _) = min(ours.items(), key=lambda pair: pair[1][1])
            most, text = peer[0] + WITHIN, f"{error:.2f} % ({name})"
            yield Check(place, "error of 300 stumps", f"<= {most:.2f} %", text, error <= most)
        for name, (cost, error, count) in ours.items():
            theirs = find_best_peer(found, place, name)
            asked = "none so cheap" if theirs is None else f"< {theirs[0]:.2f} % ({theirs[1]})"
            passed = theirs is None or error < theirs[0]
            label = f"{count} {name}, {cost:.0f} operations"
            yield Check(place, label, asked, f"{error:.2f} %", passed)
    for key, record in found.items():
        if key.endswith("/predict"):
            one = record["mixnorm"]["one"]
            text = f"{1e6 * one:.1f} us"
            yield Check(key, f"one row, {SMALL} stumps", "< 20 us", text, one < ONE_ROW)


def _make_table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        words = column in ("data", "method")
        table.add_column(column, justify="left" if words else "right", no_wrap=True)
    return table


def _parse_counts(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))
