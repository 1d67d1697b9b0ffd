"""``python -m benchmarks matrix``: the options, the runs and the report."""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.harness import terminal
from benchmarks.harness.commands import check_names, parse_names, report_bar, run_command
from benchmarks.harness.jobs import Record, Store, run_module
from benchmarks.harness.terminal import describe_failure
from benchmarks.matrix import data, processes, real_data
from benchmarks.matrix.child import list_solvers
from benchmarks.matrix.data import Place
from benchmarks.matrix.ours import is_installed
from benchmarks.matrix.report import check_bar, make_problem_table, make_truth_table

PARTS = ("multitask", "multiclass", "trace", "truth", "real")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``python -m benchmarks matrix``."""
    add = parser.add_argument
    add("--part", type=parse_names, default=PARTS, help=f"of {', '.join(PARTS)} (default: all)")
    add("--data", type=parse_names, help="settings or datasets, separated by commas (default: all)")
    add("--methods", type=parse_names, help="methods, separated by commas (default: all)")
    add("--limit", type=float, default=300.0, help="CPU seconds allowed per call (default: 300)")
    add("--environments", action="store_true", help="make .venv-bench-NAME where it is missing")
    for name in processes.RECIPES:
        add(f"--{name}-python", type=Path, help=f"a Python that has {name}")
    add("--json", type=Path, help="write results here as they come")
    add("--resume", action="store_true", help="keep the results already in --json")
    add("--no-runs", action="store_true", help="run nothing; report on what --json holds")
    add("--check", action="store_true", help="exit with 1 if a measured figure misses the bar")


def main(args: argparse.Namespace, console: Console | None = None) -> int:
    """Run all methods; returns 1 when ``--check`` found a miss, 130 when interrupted."""
    console = console or terminal.make_console()
    check_names(part=(args.part, PARTS))
    return run_command(args, console, run, report)


def run(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Measure the orders that are not in the store."""
    given = {name: getattr(args, f"{name}_python") for name in processes.RECIPES}
    pythons = processes.find_interpreters(given, args.environments)
    chosen = [p for p in data.list_places(args.part) if not args.data or p.data in args.data]
    for place in chosen:
        # Only one dataset's arrays are stored at a time: the low-rank problem alone takes 350 MB.
        with tempfile.TemporaryDirectory(prefix="mixnorm-bench-data-") as scratch:
            _run_place(place, args, pythons, Path(scratch), store, console)
    if "truth" in args.part and not args.data:
        _run_truth(store, console)
    if "real" in args.part:
        real_data.run(args.data, store, console)


def _run_place(
    place: Place,
    args: argparse.Namespace,
    pythons: Mapping[str, str],
    scratch: Path,
    store: Store,
    console: Console,
) -> None:
    for method, solver in list_solvers(place).items():
        key = f"{place.key}/{method}"
        found = store.content.get("matrix", {})
        skipped = args.methods and method not in args.methods
        if skipped or _is_finished(found.get(key), args.limit):
            continue
        python = pythons.get(solver.environment)
        here = python and processes.is_importable(python, solver.needs)
        if not here or (solver.ours and not is_installed()):
            record: Record = {"status": "absent", **dataclasses.asdict(place), "method": method}
        else:
            data.write(place, scratch)
            record = processes.measure(place, method, solver, str(python), scratch, args.limit)
        store.put("matrix", found | {key: record})
        console.print(f"{key:<44} {describe(record)}", highlight=False)


def _is_finished(record: Record | None, limit: float) -> bool:
    """Return whether a record is complete: no failure, nothing missing, no lower limit."""
    if record is None:
        return False
    late = record["status"] == "timeout" and record["limit"] >= limit
    return late or record["status"] == "ok"


def _run_truth(store: Store, console: Console) -> None:
    if "truth" in store.content:
        return
    if not is_installed():
        console.print("truth: skipped, because this mixnorm has no MixedNormClassifier.")
        return
    store.put("truth", run_module(["benchmarks.matrix.truth"]))


def describe(record: Record) -> str:
    """Return one line about a finished method."""
    if record["status"] == "absent":
        return "not installed"
    if record["status"] == "timeout":
        return f"> {record['limit']:g} s"
    if record["status"] == "failed":
        return describe_failure(record)
    return f"{record['seconds']:.3g} s, gap {record['relative_gap']:.1e}"


def report(store: Store, console: Console) -> bool:
    """Print all tables and store the summary; return whether a figure misses the bar."""
    found: dict[str, Any] = store.content.get("matrix", {})
    for place in data.list_places(PARTS):
        records = {
            method: found[f"{place.key}/{method}"]
            for method in list_solvers(place)
            if f"{place.key}/{method}" in found
        }
        if records:
            console.print(make_problem_table(place, records))
    truth = store.content.get("truth", [])
    if truth:
        console.print(make_truth_table(truth))
    real = store.content.get("real", {})
    for table in real_data.make_tables(real):
        console.print(table)
    checked = [*check_bar(found, truth), *real_data.check_bar(real)]
    return report_bar(checked, store, console)
