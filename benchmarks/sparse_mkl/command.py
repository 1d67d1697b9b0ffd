"""``python -m benchmarks sparse-mkl``: the options, the runs and the report."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.harness import terminal
from benchmarks.harness.commands import check_names, parse_names, report_bar, run_command
from benchmarks.harness.jobs import Record, Store, run_module
from benchmarks.harness.terminal import describe_failure
from benchmarks.sparse_mkl.data import count_stack_bytes
from benchmarks.sparse_mkl.methods import METHODS, count_features
from benchmarks.sparse_mkl.report import RULES, check_bar, describe_status, make_tables

PARTS = ("scan", "agree", "fit", "table", "additive")
# The wall-clock limit of a method is PATIENCE * limit + ADDED seconds.
PATIENCE, ADDED = 4.0, 300.0
A_DAY = 86_400.0  # for the slow twin, which has no limit

Size = tuple[int, int]  # kernels and rows


@dataclass(frozen=True)
class Plan:
    """Sizes of all parts."""

    full: Size
    agree: Size
    rounds: int
    scans: int
    sizes: tuple[Size, ...]
    draws: int
    seeds: int
    additive: Size


WHOLE = Plan(
    full=(5000, 2000),
    agree=(1000, 500),
    rounds=100,
    scans=12,
    sizes=((500, 500), (500, 1000)),
    draws=3,
    seeds=20,
    additive=(360, 800),
)
QUICK = Plan(
    full=(500, 300),
    agree=(100, 200),
    rounds=20,
    scans=6,
    sizes=((300, 200),),
    draws=1,
    seeds=1,
    additive=(360, 400),
)


def parse_size(text: str) -> Size:
    """Return the numbers of kernels and rows in a text such as ``500x1000``."""
    try:
        kernels, rows = (int(part) for part in text.split("x"))
        count_features(kernels)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not KERNELSxROWS, with ten kernels for each column ({error})"
        ) from None
    return kernels, rows


def parse_sizes(text: str) -> tuple[Size, ...]:
    """Return the sizes in a text, which commas separate."""
    return tuple(parse_size(part) for part in parse_names(text))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``python -m benchmarks sparse-mkl``."""
    add = parser.add_argument
    add(
        "--part",
        type=parse_names,
        default=PARTS,
        help="scan: seconds a round; agree: the same by a slow twin; fit: 12 kernels of 5000; "
        "table: beside others; additive: relevant columns (default: all)",
    )
    add(
        "--sizes",
        type=parse_sizes,
        help="of table: KERNELSxROWS, with commas (default: 500x500,500x1000)",
    )
    add("--methods", type=parse_names, default=tuple(METHODS), help="of table (default: all)")
    add("--repeats", type=int, help="draws of the training rows in table (default: 3)")
    add("--agree", type=parse_size, help="of agree; 5000x2000 takes hours (default: 1000x500)")
    add("--rounds", type=int, help="of agree (default: 100)")
    add("--seeds", type=int, help="of additive (default: 20)")
    add("--quick", action="store_true", help="small sizes, which do not count for the bar")
    add("--stack", type=float, default=4.0, help="most GiB of stored kernels (default: 4)")
    add(
        "--limit",
        type=float,
        default=300.0,
        help="CPU seconds for a search, or a fit (default: 300)",
    )
    add("--json", type=Path, help="write results here as they come")
    add("--resume", action="store_true", help="keep the results already in --json")
    add("--no-runs", action="store_true", help="run nothing; report on what --json holds")
    add("--check", action="store_true", help="exit with 1 if a measured figure misses the bar")


def main(args: argparse.Namespace, console: Console | None = None) -> int:
    """Run all methods; returns 1 when ``--check`` found a miss, 130 when interrupted."""
    console = console or terminal.make_console()
    check_names(part=(args.part, PARTS), method=(args.methods, METHODS))
    return run_command(args, console, run, report)


def run(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Measure the orders that are not in the store."""
    for order in list_orders(args):
        key = "/".join(str(value) for value in order.values())
        found = store.content.get("sparse-mkl", {})
        if found.get(key, {}).get("status") in ("ok", "timeout", "large"):
            continue
        record = measure(order, args.limit, args.stack * 2**30)
        store.put("sparse-mkl", found | {key: record})
        console.print(f"{key:<40} {describe(record)}", highlight=False)


def list_orders(args: argparse.Namespace) -> Iterator[Record]:
    """Yield the orders for the measuring processes."""
    plan = QUICK if args.quick else WHOLE
    if "scan" in args.part:
        for rule in RULES:
            yield _make_order("scan", plan.full, rule, rounds=plan.scans)
    if "agree" in args.part:
        for rule in RULES:
            rounds = args.rounds or plan.rounds
            yield _make_order("agree", args.agree or plan.agree, rule, rounds=rounds)
    if "fit" in args.part:
        yield _make_order("fit", plan.full, "gomp")
    if "table" in args.part:
        for each in args.sizes or plan.sizes:
            for method in args.methods:
                for draw in range(args.repeats or plan.draws):
                    yield _make_order("table", each, method, draw=draw)
    if "additive" in args.part:
        for seed in range(args.seeds or plan.seeds):
            yield _make_order("additive", plan.additive, "gomp", draw=seed)


def _make_order(part: str, each: Size, method: str, **more: Any) -> Record:
    return {"part": part, "kernels": each[0], "rows": each[1], "method": method} | more


def measure(order: Record, limit: float, room: float) -> Record:
    """Carry out one order in its own process; ``status`` is "ok" if the record has figures."""
    if order["part"] == "table":
        method = METHODS[order["method"]]
        if not method.available():
            return order | {"status": "absent"}
        taken = count_stack_bytes(order["kernels"], order["rows"])
        if method.stored and taken > room:
            return order | {"status": "large", "stack_bytes": taken}
    text = json.dumps(order | {"limit": limit})
    wall = A_DAY if order["part"] == "agree" else PATIENCE * limit + ADDED
    try:
        made: Record = run_module(["benchmarks.sparse_mkl.child", text], wall)
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
    text = f"{record['seconds']:.3g} s"
    if "search_seconds" in record:
        text = f"search {record['search_seconds']:.3g} s, fit {text}"
    if "error" in record:
        text += f", error {record['error']:.2f} %"
    return text + (f", {record['different']} different" if "different" in record else "")


def report(store: Store, console: Console) -> bool:
    """Print all tables and store the summary; return whether a figure misses the bar."""
    found = store.content.get("sparse-mkl", {})
    for table in make_tables(found):
        console.print(table)
    return report_bar(list(check_bar(found)), store, console, found.values())
