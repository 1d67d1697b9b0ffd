"""Stumps and boxes beside LightGBM and XGBoost on equally many inputs, and at equal cost.

The trees are fitted with their defaults on all columns, and again on the columns that they found
most important. Ours may read as many columns and has at most 300 stumps; a box has one or two.
Ridge and pace are chosen on a fifth of the training rows. Costs are operations per row: for the
trees a comparison for each node passed and an addition for each tree.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks import _report, _trees
from benchmarks._bar import Check
from benchmarks._command import carried_out, names, verdict
from benchmarks._harness import Store, run_module

DATA = ("digits", "segment", "pendigits", "satimage", "letter")
INPUTS = (10, 20)
WITHIN = 0.5  # points of test error above the better of the two
ONE_ROW = 20e-6
METHODS = (*_trees.TREES, *_trees.POOLS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``python -m benchmarks trees``."""
    add = parser.add_argument
    add("--data", type=names, default=DATA, help="datasets, separated by commas (default: all)")
    add("--inputs", type=_counts, default=INPUTS, help="numbers of inputs (default: 10,20)")
    add("--no-predict", action="store_true", help="time no predictions")
    add("--json", type=Path, help="write results here as they come")
    add("--resume", action="store_true", help="keep the results already in --json")
    add("--no-runs", action="store_true", help="run nothing; report on what --json holds")
    add("--check", action="store_true", help="exit with 1 if a measured figure misses the bar")


def main(args: argparse.Namespace, console: Console | None = None) -> int:
    """Run all methods; returns 1 when ``--check`` found a miss, 130 when interrupted."""
    console = console or _report.console()
    return carried_out(args, console, run, report)


def report(store: Store, console: Console) -> bool:
    """Print all tables, keep the summary; whether a measured figure misses the bar."""
    found = store.content.get("trees", {})
    for table in tables(found):
        console.print(table)
    return verdict(list(checks(found)), store, console)


def run(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Measure what is not in the store."""
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
        made = run_module(["benchmarks._trees", json.dumps(order)])
        store.put("trees", found | {key: made})
        console.print(f"{key:<32} {_words(made)}", highlight=False)


def _words(made: Mapping[str, Any]) -> str:
    if "curve" not in made:
        return ""
    cost, error, _ = made["curve"][made.get("within", 0) - 1]
    return f"{error:5.2f} %  {cost:7.0f} operations  {made['seconds']:.3g} s"


def final(record: Mapping[str, Any]) -> tuple[float, float, int]:
    """Return cost, error and size of the model that counts: all trees, or at most 300 stumps."""
    cost, error, size = record["curve"][record.get("within", 0) - 1]
    return cost, error, size


def at_cost(record: Mapping[str, Any], cost: float) -> float | None:
    """Return the error of the largest model that costs no more; None where there is none."""
    errors = [error for spent, error, _ in record["curve"] if spent <= cost]
    return errors[-1] if errors else None


def best_peer(found: Mapping[str, Any], place: str, cost: float | None = None) -> float | None:
    """Return the lower error of the two, of all trees or of those that a cost allows."""
    records = [found[f"{place}/{name}"] for name in _trees.TREES if f"{place}/{name}" in found]
    if cost is None:
        errors: Sequence[float | None] = [final(record)[1] for record in records]
    else:
        errors = [at_cost(record, cost) for record in records]
    return min((error for error in errors if error is not None), default=None)


def tables(found: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the errors of all methods, and the times of predictions."""
    places = list(dict.fromkeys(key.rsplit("/", 1)[0] for key in found))
    table = _table("Errors", "data", "inputs", "method", "stumps, trees", "test error %")
    for column in ("operations", "trees at that cost %", "fit s", "ratio"):
        table.add_column(column, justify="right", no_wrap=True)
    for place in (place for place in places if not place.endswith("/0")):
        data, inputs = place.split("/")
        slowest = max(
            (found[f"{place}/{n}"]["seconds"] for n in _trees.TREES if f"{place}/{n}" in found),
            default=None,
        )
        for method in (method for method in METHODS if f"{place}/{method}" in found):
            record = found[f"{place}/{method}"]
            cost, error, size = final(record)
            ours = method in _trees.POOLS
            peer = best_peer(found, place, cost) if ours else None
            ratio = f"{slowest / record['seconds']:.2g}" if ours and slowest else ""
            table.add_row(
                data,
                inputs,
                method,
                str(size),
                f"{error:.2f}",
                f"{cost:.0f}",
                "" if not ours else "none" if peer is None else f"{peer:.2f}",
                f"{record['seconds']:.3g}",
                ratio,
                end_section=method == METHODS[-1],
            )
    yield table
    timed = {key: value for key, value in found.items() if key.endswith("/predict")}
    for key, record in timed.items():
        title = f"Predictions on {key.split('/')[0]}, {_trees.SMALL} stumps beside trees as good"
        table = _table(title, "method", "test error %", "one row us", "a million rows s", "ratio")
        ours = record["mixnorm"]
        for name, each in record.items():
            if name != "memory":
                table.add_row(
                    name,
                    f"{each['error']:.2f}",
                    f"{1e6 * each['one']:.1f}",
                    f"{each['many']:.2f}",
                    f"{each['one'] / ours['one']:.0f}, {each['many'] / ours['many']:.1f}",
                )
        table.add_row("largest of each row", "", "", f"{record['memory']['many']:.2f}", "")
        yield table


def checks(found: Mapping[str, Any]) -> Iterator[Check]:
    """Check errors at equal inputs and at equal cost, and the time of one prediction."""
    for place in dict.fromkeys(key.rsplit("/", 1)[0] for key in found):
        ours = {
            name: found[f"{place}/{name}"] for name in _trees.POOLS if f"{place}/{name}" in found
        }
        peer = best_peer(found, place)
        if ours and peer is not None:
            name, record = min(ours.items(), key=lambda pair: final(pair[1])[1])
            error, most = final(record)[1], peer + WITHIN
            text = f"{error:.2f} % ({name})"
            yield Check(place, "error of 300 stumps", f"<= {most:.2f} %", text, error <= most)
        for name, record in ours.items():
            cost, error, count = final(record)
            theirs = best_peer(found, place, cost)
            asked = "none so cheap" if theirs is None else f"< {theirs:.2f} %"
            passed = theirs is None or error < theirs
            label = f"{count} {name}, {cost:.0f} operations"
            yield Check(place, label, asked, f"{error:.2f} %", passed)
    for key, record in found.items():
        if key.endswith("/predict"):
            one = record["mixnorm"]["one"]
            text = f"{1e6 * one:.1f} us"
            yield Check(key, f"one row, {_trees.SMALL} stumps", "< 20 us", text, one < ONE_ROW)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        words = column in ("data", "method")
        table.add_column(column, justify="left" if words else "right", no_wrap=True)
    return table


def _counts(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))
