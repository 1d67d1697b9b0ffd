"""``python -m benchmarks memory``: the options, the runs and the report."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.harness import terminal
from benchmarks.harness.commands import check_names, parse_names
from benchmarks.harness.jobs import Record, Store, run_module
from benchmarks.memory.child import CLASSES, DENSITY, ESTIMATORS

# Estimator -> kinds of array.
CASES = {
    "ShareBoostClassifier": ("float32", "float64", "uint8", "read-only map", "CSR", "CSC"),
    "MixedNormClassifier": ("float32", "float64", "CSR"),
    "MirrorDescentClassifier": (
        "float32",
        "float32, Fortran",
        "read-only map",
        "uint8",
        "int32",
        "CSR",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``python -m benchmarks memory``."""
    add = parser.add_argument
    add(
        "--estimators",
        type=parse_names,
        default=tuple(CASES),
        help="separated by commas (default: all)",
    )
    add("--rows", type=int, default=60_000, help="rows to learn from (default: 60000)")
    add("--columns", type=int, default=784, help="columns (default: 784)")
    add("--json", type=Path, help="write results here as they come")
    add("--resume", action="store_true", help="keep the results already in --json")


def main(args: argparse.Namespace, console: Console | None = None) -> int:
    """Measure every case and print the table; returns 1 if a case failed."""
    console = console or terminal.make_console()
    check_names(estimator=(args.estimators, ESTIMATORS))
    store = Store(args.json, resume=args.resume)
    for estimator in args.estimators:
        for kind in CASES[estimator]:
            key = f"{estimator}/{kind}/{args.rows}x{args.columns}"
            found = store.content.get("memory", {})
            if found.get(key, {}).get("status") != "ok":
                record = measure(estimator, kind, args.rows, args.columns)
                store.put("memory", found | {key: record})
                console.print(f"{key:<56} {describe(record)}", highlight=False)
    records = store.content.get("memory", {})
    console.print(make_table(records))
    return int(any(record["status"] != "ok" for record in records.values()))


def measure(estimator: str, kind: str, rows: int, columns: int, call: str = "fit") -> Record:
    """Run one case in its own process; ``status`` is "ok" if the record has figures."""
    order = {"estimator": estimator, "kind": kind, "rows": rows, "columns": columns, "call": call}
    try:
        made: Record = run_module(["benchmarks.memory.child", json.dumps(order)])
    except RuntimeError as error:
        return order | {"status": "failed", "message": str(error)}
    return order | made | {"status": "ok"}


def describe(record: Record) -> str:
    """Return a short description of a finished case."""
    if record["status"] != "ok":
        return "failed: " + record["message"].strip().splitlines()[-1]
    return f"{record['peak_bytes'] / record['x_bytes']:.2f} beside X"


def make_table(records: Mapping[str, Record]) -> Table:
    """Return the growth of every case, in MiB and as a multiple of ``X``."""
    made = Table(title="Memory of a fit beside X", title_justify="left", box=SIMPLE_HEAD)
    for column in ("estimator", "X", "rows x columns"):
        made.add_column(column, no_wrap=True)
    for column in ("X MiB", "growth MiB", "growth / X", "CPU s"):
        made.add_column(column, justify="right", no_wrap=True)
    before = ""
    for record in records.values():
        shape = f"{record['rows']} x {record['columns']}"
        name = "" if record["estimator"] == before else record["estimator"]
        before = record["estimator"]
        if record["status"] != "ok":
            made.add_row(name, record["kind"], shape, "failed")
            continue
        size, growth = record["x_bytes"], record["peak_bytes"]
        figures = (f"{size / 2**20:.0f}", f"{growth / 2**20:.0f}", f"{growth / size:.2f}")
        made.add_row(name, record["kind"], shape, *figures, f"{record['seconds']:.2f}")
    made.caption = f"{CLASSES} classes, {DENSITY:.0%} of the entries are not zero."
    made.caption_justify = "left"
    return made
