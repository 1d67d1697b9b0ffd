"""``python -m benchmarks mkl-table1``: the options, the runs and the report."""

from __future__ import annotations

import argparse
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.harness import terminal
from benchmarks.harness.commands import check_names, parse_names, report_bar, run_command
from benchmarks.harness.jobs import Record, Store
from benchmarks.harness.terminal import describe_failure
from benchmarks.mkl.data import TABLE1
from benchmarks.mkl_table1.methods import GRIDS, METHODS, is_available
from benchmarks.mkl_table1.processes import measure_methods
from benchmarks.mkl_table1.report import check_bar, list_differences, make_tables

SETTINGS = ("grid", "folds", "rows")  # that all records of a file must share


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``python -m benchmarks mkl-table1``."""
    add = parser.add_argument
    add(
        "--data",
        type=parse_names,
        default=TABLE1,
        help="datasets, separated by commas (default: all)",
    )
    add("--methods", type=parse_names, default=tuple(METHODS), help="methods (default: all)")
    add("--splits", type=int, default=20, help="random splits, seeds 0 and up (default: 20)")
    add("--folds", type=int, default=3, help="folds of the training rows (default: 3)")
    add("--grid", choices=tuple(GRIDS), default="short", help="parameters to try (default: short)")
    add("--rows", type=int, default=2000, help="rows of satimage; 0 for all (default: 2000)")
    add("--limit", type=float, default=600.0, help="CPU seconds for a method on a split (600)")
    add("--jobs", type=int, default=1, help="splits at a time (default: 1)")
    add("--json", type=Path, help="write results here as they come")
    add("--resume", action="store_true", help="keep the results already in --json")
    add("--no-runs", action="store_true", help="run nothing; report on what --json holds")
    add("--check", action="store_true", help="exit with 1 if a measured figure misses the bar")


def main(args: argparse.Namespace, console: Console | None = None) -> int:
    """Run all splits; returns 1 when ``--check`` found a miss, 130 when interrupted."""
    console = console or terminal.make_console()
    check_names(data=(args.data, TABLE1), method=(args.methods, METHODS))
    return run_command(args, console, run, report)


def check_settings(args: argparse.Namespace, store: Store) -> None:
    """Store the settings of a run; end with a message if the file has results of others."""
    now = {name: getattr(args, name) for name in SETTINGS}
    before = store.content.get("settings", now)
    if before != now:
        raise SystemExit(f"{args.json} has results of {before}, not of {now}. Give another --json.")
    store.put("settings", now)


def run(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Measure what is not in the store, split by split, so that all datasets progress."""
    check_settings(args, store)
    asked = [method for method in args.methods if is_available(method)]
    for method in args.methods:
        if method not in asked:
            console.print(f"{method}: not installed")
    keeper = Keeper(store, console)
    orders = [
        order
        for split in range(args.splits)
        for data in args.data
        if (order := list_work(args, data, split, asked, store))
    ]
    if args.jobs == 1:
        for order in orders:
            keeper.carry_out(order)
        return
    with ThreadPoolExecutor(args.jobs) as pool:
        try:
            list(pool.map(keeper.carry_out, orders))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def list_work(
    args: argparse.Namespace, data: str, split: int, asked: list[str], store: Store
) -> dict[str, Any] | None:
    """Return the order that is left for one split; failed methods are tried again."""
    found = store.content.get("table1", {})
    left = [
        method
        for method in asked
        if found.get(f"{data}/{split}/{method}", {}).get("status") not in ("ok", "timeout")
    ]
    order = {"data": data, "split": split, "methods": left, "limit": args.limit}
    return order | {name: getattr(args, name) for name in SETTINGS} if left else None


class Keeper:
    """Carries out orders; stores and prints every record."""

    def __init__(self, store: Store, console: Console) -> None:
        self.store, self.console, self.lock = store, console, threading.Lock()

    def carry_out(self, order: dict[str, Any]) -> None:
        """Run the methods of one split in a process."""
        for record in measure_methods(order):
            key = f"{order['data']}/{order['split']}/{record['method']}"
            with self.lock:
                found = self.store.content.get("table1", {})
                self.store.put("table1", found | {key: record})
                self.console.print(f"{key:<28} {describe(record)}", highlight=False)


def describe(record: Record) -> str:
    """Return one line about a finished method."""
    if record["status"] == "failed":
        return describe_failure(record)
    if record["status"] == "timeout":
        return f"> {record['limit']:g} s"
    facts = record["facts"]
    chosen = {
        name: facts[name] for name in ("C", "width", "beta", "tail", "lambda") if name in facts
    }
    parameters = ", ".join(f"{name} {value:g}" for name, value in chosen.items())
    return f"{record['accuracy']:6.2f} %  {record['seconds']:7.2f} s  {parameters}"


def report(store: Store, console: Console) -> bool:
    """Print all tables and store the summary; return whether a figure misses the bar."""
    found = store.content.get("table1", {})
    for table in make_tables(found):
        console.print(table)
    far = list_differences(found)
    console.print(f"{len(far)} cells differ from the paper's: {', '.join(far) or 'none'}.")
    return report_bar(list(check_bar(found)), store, console, found.values())
