"""``python -m benchmarks scale``: the options, the runs and the report."""

from __future__ import annotations

import argparse
import dataclasses
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks.harness import terminal
from benchmarks.harness.commands import check_names, parse_names, report_bar, run_command
from benchmarks.harness.jobs import Store
from benchmarks.scale.parts import PARTS, QUICK, QUICK_PARTS, Runner, Sizes
from benchmarks.scale.report import check_bar, make_tables


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``python -m benchmarks scale``."""
    add = parser.add_argument
    add("--part", type=parse_names, help=f"of {', '.join(PARTS)} (default: all)")
    add("--quick", action="store_true", help="small data; by default without the slow parts")
    add("--rows", type=int, help="rows of the first table (default: 10000000)")
    add("--columns", type=int, help="columns of the first table (default: 100)")
    add("--peer-rows", type=int, help="rows for the peers (default: 1000000)")
    add("--data", type=Path, help="folder of the drawn tables (default: scale in the cache)")
    add("--limit", type=float, default=300.0, help="seconds that a peer may take (default: 300)")
    add("--repeats", type=int, default=1, help="runs of each fit, the fastest counts (default: 1)")
    add("--json", type=Path, help="write results here as they come")
    add("--resume", action="store_true", help="keep the results already in --json")
    add("--no-runs", action="store_true", help="run nothing; report on what --json holds")
    add("--check", action="store_true", help="exit with 1 if a measured figure misses the bar")


def main(args: argparse.Namespace, console: Console | None = None) -> int:
    """Run the parts; returns 1 when ``--check`` found a miss, 130 when interrupted."""
    console = console or terminal.make_console()
    parts = args.part or (QUICK_PARTS if args.quick else tuple(PARTS))
    check_names(part=(parts, PARTS))
    args.part = parts
    return run_command(args, console, run, report)


def choose_sizes(args: argparse.Namespace) -> Sizes:
    """Return the sizes that the options ask for."""
    given = {"rows": args.rows, "columns": args.columns, "peer_rows": args.peer_rows}
    known = {name: size for name, size in given.items() if size is not None}
    return dataclasses.replace(QUICK if args.quick else Sizes(), **known)


def run(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Measure the parts that are not in the store."""
    sizes = choose_sizes(args)
    if store.content.get("sizes") not in (None, dataclasses.asdict(sizes)):
        raise SystemExit(
            f"{args.json} has results at other sizes. Give another --json, or leave out --resume."
        )
    store.put("sizes", dataclasses.asdict(sizes))
    make = partial(Runner, folder=args.data, limit=args.limit, repeats=args.repeats)
    runner = make(store, console, sizes)
    for part in args.part:
        PARTS[part](runner)


def report(store: Store, console: Console) -> bool:
    """Print all tables and the bar; return whether a figure misses it."""
    found, content = store.content.get("scale", {}), store.content
    for table in make_tables(found):
        console.print(table)
    if "truth" in content:
        console.print(
            "The true model errs on {best_error:.2f} % of the test rows, and on "
            "{best_error_20:.2f} % with its 20 strongest columns alone.".format(**content["truth"]),
            highlight=False,
        )
    sizes = Sizes(**content.get("sizes", {}))
    if not sizes.full:
        console.print("[yellow]The bar is for the full sizes; these are figures only.[/]")
    checked = check_bar(found, content.get("null_loss"), full=sizes.full)
    return report_bar(checked, store, console, found.values())
