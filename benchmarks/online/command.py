"""``python -m benchmarks online``: the options, the runs and the report."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from pathlib import Path

from rich.console import Console

from benchmarks.harness import terminal
from benchmarks.harness.commands import check_names, parse_names, report_bar, run_command
from benchmarks.harness.jobs import Record, Store, run_module
from benchmarks.harness.terminal import describe_failure, describe_status
from benchmarks.online import bar
from benchmarks.online.data import DATA
from benchmarks.online.learners import METHODS
from benchmarks.online.parts import BASELINE, PARTS, Keeper
from benchmarks.online.raw_tables import METHODS as TABLE_METHODS
from benchmarks.online.raw_tables import TABLES
from benchmarks.online.report import check_bar, make_tables

PASSES = "passes"
EVERY_PART = (PASSES, *PARTS)
EVERY_METHOD = tuple(METHODS | TABLE_METHODS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``python -m benchmarks online``."""
    add = parser.add_argument
    add(
        "--parts",
        type=parse_names,
        default=EVERY_PART,
        help="parts, separated by commas (default: all)",
    )
    add("--data", type=parse_names, default=DATA, help="datasets of the passes (default: all)")
    add("--tables", type=parse_names, default=TABLES, help="raw tables (default: all)")
    add("--methods", type=parse_names, default=EVERY_METHOD, help="methods (default: all)")
    add("--limit", type=float, default=300.0, help="seconds allowed per pass (default: 300)")
    add(
        "--baseline",
        metavar="REV",
        default=BASELINE,
        help=f"commit beside which speed and first call are measured (default: {BASELINE})",
    )
    add("--rounds", type=int, default=3, help="turns of each of the two commits (default: 3)")
    add("--json", type=Path, help="write results here as they come")
    add("--resume", action="store_true", help="keep the results already in --json")
    add("--no-runs", action="store_true", help="run nothing; report on what --json holds")
    add("--check", action="store_true", help="exit with 1 if a measured figure misses the bar")


def main(args: argparse.Namespace, console: Console | None = None) -> int:
    """Run all methods; returns 1 when ``--check`` found a miss, 130 when interrupted."""
    console = console or terminal.make_console()
    check_names(
        part=(args.parts, EVERY_PART),
        data=(args.data, DATA),
        table=(args.tables, TABLES),
        method=(args.methods, EVERY_METHOD),
    )
    return run_command(args, console, run, report)


def run(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Measure the parts that are not in the store."""
    if PASSES in args.parts:
        run_passes(args, store, console)
    for part, carry_out in PARTS.items():
        if part in args.parts:
            carry_out(args, Keeper(store, console))


def run_passes(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Measure passes over images, letters and texts."""
    for data in args.data:
        for method in (name for name in args.methods if name in METHODS):
            learner, key = METHODS[method], f"{data}/{method}"
            found = store.content.get("online", {})
            finished = found.get(key, {}).get("status") in ("ok", "timeout")
            if finished or (learner.only and data not in learner.only):
                continue
            record = measure(data, method, args.limit)
            store.put("online", found | {key: record})
            console.print(f"{key:<32} {describe(record)}", highlight=False)


def measure(data: str, method: str, limit: float) -> Record:
    """Run one method in its own process; ``status`` is "ok" if the record has figures."""
    order = {"data": data, "method": method}
    if not METHODS[method].available():
        return order | {"status": "absent"}
    try:
        made: Record = run_module(["benchmarks.online.child", json.dumps(order)], limit)
    except subprocess.TimeoutExpired:
        return order | {"status": "timeout", "limit": limit}
    except RuntimeError as error:
        return order | {"status": "failed", "message": str(error)}
    return order | made | {"status": "ok", "load": os.getloadavg()[0]}


def describe(record: Record) -> str:
    """Return one line about a finished method."""
    if record["status"] == "failed":
        return describe_failure(record)
    if record["status"] != "ok":
        return describe_status(record)
    return f"{record['rate']:,.0f} rows / s, {record['mistakes']:,} mistakes"


def report(store: Store, console: Console) -> bool:
    """Print all tables and store the summary; return whether a figure misses the bar."""
    found = store.content.get("online", {})
    for table in (*make_tables(found), *bar.make_tables(found)):
        console.print(table)
    checked = [*check_bar(found), *bar.check_bar(found)]
    return report_bar(checked, store, console, found.values())
