"""``python -m benchmarks mkl``: the options, the runs and the report."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from benchmarks.harness import terminal
from benchmarks.harness.commands import check_names, parse_names, report_bar, run_command
from benchmarks.harness.jobs import Record, Store, run_module
from benchmarks.harness.terminal import describe_failure, describe_status
from benchmarks.mkl.data import TABLE1
from benchmarks.mkl.methods import METHODS
from benchmarks.mkl.report import check_bar, make_tables

PARTS = ("stack", "large", "rows50k")
# The wall-clock limit of a method is PATIENCE * limit + ADDED seconds.
PATIENCE, ADDED = 4.0, 300.0
BY_ROWS = {"large": "letter", "rows50k": "synthetic"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``python -m benchmarks mkl``."""
    add = parser.add_argument
    add(
        "--part",
        type=parse_names,
        default=PARTS[:2],
        help="stack: stored kernels; large: 20,000 rows of letter; rows50k: 50,000 synthetic rows "
        "(default: stack,large)",
    )
    add(
        "--data",
        type=parse_names,
        default=("segment",),
        help="datasets of stack (default: segment)",
    )
    add(
        "--methods",
        type=parse_names,
        default=tuple(METHODS),
        help="methods of stack (default: all)",
    )
    add("--limit", type=float, default=300.0, help="CPU seconds for fit and predict (default: 300)")
    add("--json", type=Path, help="write results here as they come")
    add("--resume", action="store_true", help="keep the results already in --json")
    add("--no-runs", action="store_true", help="run nothing; report on what --json holds")
    add("--check", action="store_true", help="exit with 1 if a measured figure misses the bar")


def main(args: argparse.Namespace, console: Console | None = None) -> int:
    """Run all methods; returns 1 when ``--check`` found a miss, 130 when interrupted."""
    console = console or terminal.make_console()
    check_names(part=(args.part, PARTS), data=(args.data, TABLE1), method=(args.methods, METHODS))
    return run_command(args, console, run, report)


def run(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Measure the orders that are not in the store."""
    for order in list_orders(args):
        key, found = "/".join(order.values()), store.content.get("mkl", {})
        if found.get(key, {}).get("status") in ("ok", "timeout"):
            continue
        record = measure(order, args.limit)
        store.put("mkl", found | {key: record})
        console.print(f"{key:<32} {describe(record)}", highlight=False)


def list_orders(args: argparse.Namespace) -> Iterator[dict[str, str]]:
    """Yield the orders for the measuring processes."""
    if "stack" in args.part:
        for data in args.data:
            for method in args.methods:
                yield {"part": "stack", "data": data, "method": method}
    for part, data in BY_ROWS.items():
        if part in args.part:
            yield {"part": part, "data": data, "method": "lp"}


def measure(order: dict[str, str], limit: float) -> Record:
    """Carry out one order in its own process; ``status`` is "ok" if the record has figures."""
    if not METHODS[order["method"]].available():
        return order | {"status": "absent"}
    text, wall = json.dumps(order | {"limit": limit}), PATIENCE * limit + ADDED
    try:
        made: Record = run_module(["benchmarks.mkl.child", text], wall)
    except subprocess.TimeoutExpired:
        return order | {"status": "timeout", "limit": limit}
    except RuntimeError as error:
        return order | {"status": "failed", "message": str(error)}
    return order | made | {"load": os.getloadavg()[0]}


def describe(record: Record) -> str:
    """Return one line about a finished method."""
    if record["status"] == "failed":
        return describe_failure(record)
    if record["status"] != "ok":
        return describe_status(record)
    return f"{record['seconds']:.3g} s, {record['accuracy']:.2f} %"


def report(store: Store, console: Console) -> bool:
    """Print all tables and store the summary; return whether a figure misses the bar."""
    found = store.content.get("mkl", {})
    for table in make_tables(found):
        console.print(table)
    checked = list(check_bar(found))
    return report_bar(checked, store, console, found.values())
