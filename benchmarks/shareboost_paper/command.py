"""``python -m benchmarks shareboost-paper``: the options, the runs and the report."""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.harness import splits, terminal
from benchmarks.harness.bar import Check
from benchmarks.harness.commands import check_names, parse_names
from benchmarks.harness.jobs import Job, Store, run_jobs, run_module
from benchmarks.shareboost_paper import bits, classes, norms, pieces, products

PARTS = ("classes", "products", "norms", "bits", "pieces")
CLASSES_DATA = tuple(dict.fromkeys(data for data, _ in classes.ROUNDS))
# Sizes with --quick.
QUICK_CLASSES = {"sizes": [2, 8, 26], "orders": 2, "rounds": 40}
QUICK_BITS = {"classes": [16], "copies": [2, 8]}
QUICK_PIECES = {"anchors": 10, "centres": 50, "rows": 3000}
QUICK_ROUNDS = 20
# Left out by --quick.
SLOW_CLASSES = (("isolet", "stumps"), ("chars74k", "patches"))
A_DAY = 86400.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``python -m benchmarks shareboost-paper``."""
    add = parser.add_argument
    add("--part", choices=PARTS, action="append", help="may be repeated (default: all)")
    add(
        "--quick",
        action="store_true",
        help="a few minutes, without isolet's products",
    )
    add("--data", type=parse_names, default=CLASSES_DATA, help="classes: datasets (default: all)")
    add("--orders", type=int, default=5, help="classes: random orders of the classes (default: 5)")
    add("--rounds", type=int, default=products.ROUNDS, help="products: rounds (default: 60)")
    add("--limit", type=float, default=300.0, help="products, norms: CPU seconds a fit (300)")
    add("--anchors", type=int, help=f"pieces: anchors (default: {pieces.ANCHORS})")
    add("--centres", type=int, help=f"pieces: candidates (default: {pieces.CENTRES})")
    add("--radii", type=int, help=f"pieces: radii of each (default: {pieces.RADII})")
    add("--rows", type=int, help="pieces: training rows (default: all)")
    add("--alpha", type=float, help=f"pieces: ridge (default: {pieces.ALPHA:g})")
    add("--json", type=Path, help="write results here as they come")
    add("--resume", action="store_true", help="keep the results already in --json")
    add("--no-runs", action="store_true", help="run nothing; report on what --json holds")
    add("--check", action="store_true", help="exit with 1 if a measured figure misses the bar")


def main(args: argparse.Namespace, console: Console | None = None) -> int:
    """Run the parts; returns 1 when ``--check`` found a miss, 130 when interrupted."""
    console = console or terminal.make_console()
    check_names(data=(args.data, CLASSES_DATA))
    store = Store(args.json, resume=args.resume or args.no_runs)
    steps = {
        "classes": run_classes,
        "products": run_products,
        "norms": run_norms,
        "bits": run_bits,
        "pieces": run_pieces,
    }
    status = 0
    try:
        for part in args.part or PARTS:
            if not args.no_runs:
                steps[part](args, store, console)
    except KeyboardInterrupt:
        console.print("[yellow]Interrupted; finished runs are reported.[/]")
        status = 130
    missed = report(store, console)
    return status or int(args.check and missed)


def run_classes(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Measure every method on every dataset and pool that is not in the store."""
    options: dict[str, Any] = QUICK_CLASSES if args.quick else {"orders": args.orders}
    for data, pool in classes.ROUNDS:
        if data not in args.data or (args.quick and (data, pool) in SLOW_CLASSES):
            continue
        for method in classes.METHODS:
            order = {"data": data, "pool": pool, "method": method, **options}
            _run_once("classes", f"{data}/{pool}/{method}", order, store, console)


def run_products(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Run every method on every dataset, and count the pool's atoms."""
    datasets = products.FEW if args.quick else tuple(products.ATOMS)
    for data in datasets:
        counted = store.content.get("atoms", {})
        atoms = products.count_atoms(products.load(data).X)
        store.put("atoms", counted | {data: atoms})
    jobs = products.plan(datasets, QUICK_ROUNDS if args.quick else args.rounds)
    _run_jobs(jobs, args, store, console)


def run_norms(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Run every norm on every dataset."""
    datasets = products.FEW if args.quick else tuple(products.ATOMS)
    _run_jobs(norms.plan(datasets), args, store, console)


def _run_jobs(
    jobs: Sequence[Job], args: argparse.Namespace, store: Store, console: Console
) -> None:
    """Run jobs on their datasets; each dataset is written once."""
    with tempfile.TemporaryDirectory(prefix="mixnorm-bench-data-") as scratch:
        for data in dict.fromkeys(job.data for job in jobs):
            folder = Path(scratch) / data
            splits.save(products.load(data), folder)
            mine = [job for job in jobs if job.data == data]
            for job, record, fresh in run_jobs(mine, {data: folder}, store, args.limit):
                if fresh:
                    console.print(f"{job.key:<44} {terminal.describe(record)}", highlight=False)


def run_bits(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Count the features in use if there are copies of all features."""
    _run_once("bits", "all", QUICK_BITS if args.quick else {}, store, console)


def run_pieces(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Measure the pieces and the SVM."""
    given = {name: getattr(args, name) for name in ("anchors", "centres", "radii", "rows", "alpha")}
    options = {name: value for name, value in given.items() if value is not None}
    options = (QUICK_PIECES if args.quick else {}) | options
    for method in pieces.METHODS:
        _run_once("pieces", method, {"method": method, **options}, store, console)


def _run_once(part: str, name: str, order: dict[str, Any], store: Store, console: Console) -> None:
    """Run a part's module in its own process, unless the store has the result of the order."""
    found = store.content.get(part, {})
    if name in found and found[name]["order"] == order:
        return
    made = run_module([f"benchmarks.shareboost_paper.{part}", json.dumps(order)], wall=A_DAY)
    store.put(part, found | {name: {"order": order, **made}})
    console.print(f"{part}: {name:<40} {made['seconds']:.3g} s", highlight=False)


def make_tables(store: Store) -> Iterator[Any]:
    """Yield the tables of all parts in the store."""
    yield from classes.make_tables(store.content.get("classes", {}))
    yield from products.make_tables(store.runs)
    yield from norms.make_tables(store.runs)
    yield from bits.make_tables(store.content.get("bits", {}))
    yield from pieces.make_tables(store.content.get("pieces", {}))


def check_bar(store: Store) -> list[Check]:
    """Check every figure in the store."""
    return [
        *classes.check_bar(store.content.get("classes", {})),
        *products.check_bar(store.runs, store.content.get("atoms", {})),
        *norms.check_bar(store.runs),
        *bits.check_bar(store.content.get("bits", {})),
        *pieces.check_bar(store.content.get("pieces", {})),
    ]


def report(store: Store, console: Console) -> bool:
    """Print all tables and store the summary; return whether a figure misses the bar."""
    for table in make_tables(store):
        console.print(table)
    found = check_bar(store)
    store.put("summary", [dataclasses.asdict(check) for check in found])
    if found:
        console.print(terminal.make_bar_table(found))
    passed = [check.passed for check in found]
    console.print(f"{passed.count(True)} passed, {passed.count(False)} missed.")
    return False in passed
