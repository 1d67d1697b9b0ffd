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
from benchmarks.harness.commands import check_names, names, run_command, verdict
from benchmarks.harness.jobs import Record, Store, run_module
from benchmarks.harness.terminal import failure
from benchmarks.matrix import data, processes, real_data
from benchmarks.matrix.child import solvers
from benchmarks.matrix.data import Place
from benchmarks.matrix.ours import is_installed
from benchmarks.matrix.report import checks, problem_table, truth_table

PARTS = ("multitask", "multiclass", "trace", "truth", "real")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``python -m benchmarks matrix``."""
    add = parser.add_argument
    add("--part", type=names, default=PARTS, help=f"of {', '.join(PARTS)} (default: all)")
    add("--data", type=names, help="settings or datasets, separated by commas (default: all)")
    add("--methods", type=names, help="methods, separated by commas (default: all)")
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
    console = console or terminal.console()
    check_names(part=(args.part, PARTS))
    return run_command(args, console, run, report)


def run(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Measure what is not in the store."""
    given = {name: getattr(args, f"{name}_python") for name in processes.RECIPES}
    pythons = processes.interpreters(given, args.environments)
    chosen = [p for p in data.places(args.part) if not args.data or p.data in args.data]
    for place in chosen:
        # One dataset's arrays at a time: those of the low-rank problem alone take 350 MB.
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
    for method, solver in solvers(place).items():
        key = f"{place.key}/{method}"
        found = store.content.get("matrix", {})
        skipped = args.methods and method not in args.methods
        if skipped or _is_finished(found.get(key), args.limit):
            continue
        python = pythons.get(solver.environment)
        here = python and processes.importable(python, solver.needs)
        if not here or (solver.ours and not is_installed()):
            record: Record = {"status": "absent", **dataclasses.asdict(place), "method": method}
        else:
            data.write(place, scratch)
            record = processes.measure(place, method, solver, str(python), scratch, args.limit)
        store.put("matrix", found | {key: record})
        console.print(f"{key:<44} {describe(record)}", highlight=False)


def _is_finished(record: Record | None, limit: float) -> bool:
    """Tell whether a record is complete: no failure, nothing missing, no lower limit than this."""
    if record is None:
        return False
    late = record["status"] == "timeout" and record["limit"] >= limit
    return late or record["status"] == "ok"


def _run_truth(store: Store, console: Console) -> None:
    if "truth" in store.content:
        return
    if not is_installed():
        console.print("truth: this mixnorm has no MixedNormClassifier; left out.")
        return
    store.put("truth", run_module(["benchmarks.matrix.truth"]))


def describe(record: Record) -> str:
    """One line about a finished method."""
    if record["status"] == "absent":
        return "not installed"
    if record["status"] == "timeout":
        return f"> {record['limit']:g} s"
    if record["status"] == "failed":
        return failure(record)
    return f"{record['seconds']:.3g} s, gap {record['relative_gap']:.1e}"


def report(store: Store, console: Console) -> bool:
    """Print all tables, keep the summary; whether a measured figure misses the bar."""
    found: dict[str, Any] = store.content.get("matrix", {})
    for place in data.places(PARTS):
        records = {
            method: found[f"{place.key}/{method}"]
            for method in solvers(place)
            if f"{place.key}/{method}" in found
        }
        if records:
            console.print(problem_table(place, records))
    truth = store.content.get("truth", [])
    if truth:
        console.print(truth_table(truth))
    real = store.content.get("real", {})
    for table in real_data.tables(real):
        console.print(table)
    checked = [*checks(found, truth), *real_data.checks(real)]
    return verdict(checked, store, console)
