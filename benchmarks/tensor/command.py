"""``python -m benchmarks tensor``: the options, the runs and the report."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.harness import terminal
from benchmarks.harness.commands import check_names, parse_names, report_bar, run_command
from benchmarks.harness.jobs import Record, Store, run_module
from benchmarks.harness.terminal import describe_failure, describe_status
from benchmarks.mkl_table1.processes import ADDED, PATIENCE
from benchmarks.tensor.data import DATA
from benchmarks.tensor.methods import GAPS, METHODS, TOL
from benchmarks.tensor.models import DEGREES, MODELS
from benchmarks.tensor.report import LOSSES, check_bar, make_tables

PARTS = ("path", "losses", "scaling", "tables")
SLOW = ("gradient",)  # takes minutes at every degree, so it runs only on request
PATHS = tuple(name for name in METHODS if name not in (*SLOW, "newton-sampled"))

Point = tuple[int | str, int, int, str]  # kernel, rows, values of gamma and method


@dataclass(frozen=True)
class Plan:
    """Sizes of all parts."""

    gammas: int
    degrees: tuple[int, ...]
    lasso: int  # the largest degree of the Lasso
    splits: int
    scaling: tuple[Point, ...]


WHOLE = Plan(
    gammas=100,
    degrees=(1, 2, 3, 4),
    lasso=3,
    splits=10,
    scaling=(
        (4, 60, 100, "newton"),
        (4, 120, 100, "newton"),
        (4, 200, 100, "newton"),
        (4, 800, 10, "newton-features"),
        ("exponential", 800, 20, "newton-sampled"),
    ),
)
QUICK = Plan(
    gammas=20,
    degrees=(1, 2),
    lasso=2,
    splits=2,
    scaling=(
        (4, 60, 20, "newton"),
        (3, 200, 5, "newton-features"),
        ("exponential", 100, 5, "newton-sampled"),
    ),
)


def parse_degrees(text: str) -> tuple[int, ...]:
    """Return the degrees in a text, which commas separate."""
    if not all(part in ("1", "2", "3", "4") for part in parse_names(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of degrees from 1 to 4")
    return tuple(int(part) for part in parse_names(text))


def parse_gaps(text: str) -> tuple[float, ...]:
    """Return the relative gaps in a text, which commas separate."""
    found = tuple(float(part) for part in parse_names(text))
    if not all(0.0 < gap < 1.0 for gap in found):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of gaps between 0 and 1")
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``python -m benchmarks tensor``."""
    add = parser.add_argument
    add(
        "--part",
        type=parse_names,
        default=PARTS,
        help="path: seconds beside other solvers; losses: others than squares; scaling: more rows; "
        "tables: test errors over splits (default: all)",
    )
    add("--methods", type=parse_names, help=f"of path (default: all but {', '.join(SLOW)})")
    add("--degrees", type=parse_degrees, help="of path, with commas (default: 1,2,3,4)")
    add("--gaps", type=parse_gaps, default=GAPS, help="relative, of path (default: 1e-8,1e-3)")
    add("--splits", type=int, help="of tables, seeds 0 and up (default: 10)")
    add("--models", type=parse_names, default=tuple(MODELS), help="of tables (default: all)")
    add("--data", choices=DATA, default="wpbc", help="synthetic is not in the bar (default: wpbc)")
    add("--all", action="store_true", help="also gradient steps, and the Lasso at degree 4")
    add("--quick", action="store_true", help="small sizes, which do not count for the bar")
    add("--limit", type=float, default=300.0, help="CPU seconds for a path (default: 300)")
    add("--json", type=Path, help="write results here as they come")
    add("--resume", action="store_true", help="keep the results already in --json")
    add("--no-runs", action="store_true", help="run nothing; report on what --json holds")
    add("--check", action="store_true", help="exit with 1 if a measured figure misses the bar")


def main(args: argparse.Namespace, console: Console | None = None) -> int:
    """Run all parts; returns 1 when ``--check`` found a miss, 130 when interrupted."""
    check_names(
        part=(args.part, PARTS),
        method=(args.methods or (), METHODS),
        model=(args.models, MODELS),
    )
    return run_command(args, console or terminal.make_console(), run, report)


def run(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Measure the orders that are not in the store; failed ones are tried again."""
    for order in list_orders(args):
        found = store.content.get("tensor", {})
        key = "/".join(str(value) for value in order.values())
        if found.get(key, {}).get("status") not in ("ok", "timeout"):
            record = measure(order, args.limit)
            store.put("tensor", found | {key: record})
            console.print(f"{key:<46} {describe(record)}", highlight=False)


def list_orders(args: argparse.Namespace) -> Iterator[Record]:
    """Yield the orders for the measuring processes."""
    plan = QUICK if args.quick else WHOLE
    plan = replace(plan, lasso=4) if args.all else plan
    if "path" in args.part:
        yield from _list_paths(args, plan)
    if "losses" in args.part:
        for loss in LOSSES:
            yield _make_path(args, plan, 2, "newton", TOL) | {"part": "losses", "loss": loss}
    if "scaling" in args.part:
        for kernel, rows, number, method in plan.scaling:
            size = {"kernel": kernel, "rows": rows, "gammas": number}
            yield {"part": "scaling"} | size | {"method": method}
    if "tables" in args.part:
        yield from _list_tables(args, plan)


def _list_paths(args: argparse.Namespace, plan: Plan) -> Iterator[Record]:
    """Yield every method with every gap, and methods with their own tolerance once."""
    methods = args.methods or (*PATHS, *(SLOW if args.all else ()))
    for degree in args.degrees or plan.degrees:
        for tol in args.gaps:
            for method in methods:
                if METHODS[method].gapped:
                    yield _make_path(args, plan, degree, method, tol)
        for method in methods:
            if not METHODS[method].gapped and (method != "lasso" or degree <= plan.lasso):
                yield _make_path(args, plan, degree, method, None)


def _list_tables(args: argparse.Namespace, plan: Plan) -> Iterator[Record]:
    for seed in range(args.splits or plan.splits):
        for model in args.models:
            for degree in DEGREES.get(model, (0,)):
                if model != "lasso" or degree <= plan.lasso:
                    where = {"part": "tables", "data": args.data, "seed": seed}
                    yield where | {"model": model, "degree": degree}


def _make_path(
    args: argparse.Namespace, plan: Plan, degree: int, method: str, tol: float | None
) -> dict[str, Any]:
    size = {"kernel": degree, "gammas": plan.gammas, "tol": tol}
    return {"part": "path", "data": args.data} | size | {"method": method}


def measure(order: Record, limit: float) -> Record:
    """Carry out one order in its own process; ``status`` is "ok" if the record has figures."""
    text = json.dumps(order | {"limit": limit})
    made: Record
    try:
        made = run_module(["benchmarks.tensor.child", text], PATIENCE * limit + ADDED)
    except subprocess.TimeoutExpired:
        made = {"status": "timeout", "limit": limit, "done": 0}
    except RuntimeError as error:
        made = {"status": "failed", "message": str(error)}
    return order | made | {"load": os.getloadavg()[0]}


def describe(record: Record) -> str:
    """Return one line about a finished order."""
    if record["status"] == "failed":
        return describe_failure(record)
    if record["status"] != "ok":
        return describe_status(record) + (f", {record['done']} solved" if "done" in record else "")
    if "raw" in record:
        return ", ".join(f"{target} {record[target]['mse']:.0f}" for target in ("raw", "centred"))
    gap = f", gap {record['gap']:.1e}" if "gap" in record else ""
    return f"{record['seconds']:.3g} s{gap}"


def report(store: Store, console: Console) -> bool:
    """Print all tables and store the summary; return whether a figure misses the bar."""
    found = store.content.get("tensor", {})
    for table in make_tables(found):
        console.print(table)
    return report_bar(list(check_bar(found)), store, console, found.values())
