"""``python -m benchmarks defaults``: the options, the runs and the report."""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.defaults import other_pools, penguins
from benchmarks.defaults.child import DATA, GRID, SIZES
from benchmarks.harness import terminal
from benchmarks.harness.bar import Check
from benchmarks.harness.commands import check_names, parse_names, report_bar, run_command
from benchmarks.harness.jobs import Record, Store, run_module_safely, unpack_commit
from benchmarks.harness.terminal import describe_failure

AUTO = "auto"
QUICK = ("iris", "wine", "glass", "breast_cancer", "digits", "penguins-like")
# The bar: mean and worst regret in points, the mean on large datasets, log loss, and time.
MEAN, WORST, LARGE = 0.5, 2.5, 0.3
MANY_ROWS = 20_000
LOG_LOSS, TIMES = 0.15, 1.8
WALL = 7200.0
# Number of drawn tables, and their first seed. No setting was chosen with these seeds.
TABLES, FIRST_SEED = 20, 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``python -m benchmarks defaults``."""
    add = parser.add_argument
    add("--data", type=parse_names, help="sets, separated by commas (default: all)")
    add("--folds", type=int, default=5, help="folds of the cross-validation (default: 5)")
    add("--quick", action="store_true", help="six small sets")
    add("--beside", metavar="COMMIT", help="time default paths beside those of this commit")
    add(
        "--penguins",
        type=int,
        metavar="N",
        help=f"drawn tables for mixnorm fit (default: {TABLES}, none with --data or --quick)",
    )
    add("--pools", action="store_true", help="only stumps, boxes and pieces, on three sets")
    add("--json", type=Path, help="write results here as they come")
    add("--resume", action="store_true", help="keep the results already in --json")
    add("--no-runs", action="store_true", help="run nothing; report on what --json holds")
    add("--check", action="store_true", help="exit with 1 if a measured figure misses the bar")


def main(args: argparse.Namespace, console: Console | None = None) -> int:
    """Run all; returns 1 when ``--check`` found a miss, 130 when interrupted."""
    console = console or terminal.make_console()
    check_names(data=(args.data or (), DATA))
    return run_command(args, console, run, report)


def run(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Measure the orders that are not in the store."""
    if args.pools:
        for data, pool in itertools.product(other_pools.SETS, other_pools.list_pools()):
            order = {"job": "pools", "data": data, "pool": pool}
            _keep(store, console, f"{data}/pool-{pool}", order, {})
        return
    with tempfile.TemporaryDirectory(prefix="mixnorm-beside-") as folder:
        earlier = {} if args.beside is None else unpack_commit(args.beside, Path(folder))
        tables = 0 if args.data or args.quick else TABLES
        count = tables if args.penguins is None else args.penguins
        for seed in range(FIRST_SEED, FIRST_SEED + count):
            _keep(store, console, f"penguins/{seed}", {"job": "penguins", "seed": seed}, {})
        for data in args.data or (QUICK if args.quick else DATA):
            order = {"job": "measure", "data": data, "count": args.folds}
            _keep(store, console, f"{data}/paths", order, {})
            if earlier:
                _keep(store, console, f"{data}/now", {"job": "timed", "data": data}, {})
                _keep(store, console, f"{data}/then", {"job": "timed", "data": data}, earlier)


def _keep(
    store: Store, console: Console, key: str, order: Record, environment: Mapping[str, str]
) -> None:
    found = store.content.get("defaults", {})
    if found.get(key, {}).get("status") == "ok":
        return
    record = run_order(order, environment)
    store.put("defaults", found | {key: record})
    console.print(f"{key:<28} {describe(record)}", highlight=False)


def run_order(order: Record, environment: Mapping[str, str]) -> Record:
    """Run one order in its own process."""
    return run_module_safely(["benchmarks.defaults.child", json.dumps(order)], WALL, environment)


def describe(record: Record) -> str:
    """Return one line about a finished order."""
    if record["status"] == "failed":
        return describe_failure(record)
    if record["status"] != "ok":
        return str(record["status"])
    if "chosen" in record:
        return penguins.describe(record)
    if "errors" in record:
        return other_pools.describe(record)
    own = record.get("alphas", {}).get(AUTO, record)
    errors = ", ".join(f"{at[0]:.2f} % at {size}" for size, at in own.get("at", {}).items())
    return f"{own['seconds']:.2f} s  {errors}"


# --- report


def compute_regrets(found: Mapping[str, Record], data: str) -> dict[int, tuple[float, float]]:
    """Return the regret by size: points of error, and share of log loss above the grid's best.

    The result is empty if the dataset was not measured.
    """
    record = found.get(f"{data}/paths", {})
    if record.get("status") != "ok":
        return {}
    own, *grid = (record["alphas"][str(alpha)]["at"] for alpha in (AUTO, *GRID))
    made = {}
    for size in SIZES:
        values = [part[str(size)] for part in grid if str(size) in part]
        if str(size) in own and len(values) == len(grid):
            error, lost = np.min(values, axis=0)
            made[size] = (own[str(size)][0] - error, own[str(size)][1] / max(lost, 1e-12) - 1.0)
    return made


def compute_time_ratio(found: Mapping[str, Record], data: str) -> float | None:
    """Return the time of a default path divided by that of the earlier commit."""
    pair = [found.get(f"{data}/{when}", {}) for when in ("now", "then")]
    if any(one.get("status") != "ok" for one in pair):
        return None
    return float(pair[0]["seconds"] / pair[1]["seconds"])


def report(store: Store, console: Console) -> bool:
    """Print the table and the bar; return whether a measured figure misses it."""
    found = store.content.get("defaults", {})
    for table in (_make_table(found), other_pools.make_table(found)):
        if table is not None:
            console.print(table)
    checked = [*check_bar(found), *penguins.check_bar(found)]
    return report_bar(checked, store, console)


def _make_table(found: Mapping[str, Record]) -> Table:
    title = "Default beside the best of the grid: points of error, and share of log loss in %"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("data")
    for head in ("rows", "columns", *(f"at {size}" for size in SIZES), "seconds", "time / then"):
        table.add_column(head, justify="right", no_wrap=True)
    for data in DATA:
        record, made = found.get(f"{data}/paths", {}), compute_regrets(found, data)
        if record.get("status") != "ok":
            continue
        cells = [f"{made[s][0]:+.2f} {100 * made[s][1]:+.0f}" if s in made else "" for s in SIZES]
        shape = (str(record["rows"]), str(record["columns"]))
        times = compute_time_ratio(found, data)
        last = "" if times is None else f"{times:.2f}"
        seconds = record["alphas"][AUTO]["seconds"]
        table.add_row(data, *shape, *cells, f"{seconds:.2f}", last)
    return table


def check_bar(found: Mapping[str, Record]) -> Iterator[Check]:
    """Check the regret (mean, worst, and on large datasets), log loss, and time."""
    made = {data: compute_regrets(found, data) for data in DATA}
    for size in SIZES:
        points = [one[size][0] for one in made.values() if size in one]
        yield _check_most("regret", f"mean at {size} features", points, MEAN, np.mean)
    every = [pair for one in made.values() for pair in one.values()]
    yield _check_most("regret", "worst", [pair[0] for pair in every], WORST, np.max)
    large = [
        pair[0]
        for data, one in made.items()
        for pair in one.values()
        if found[f"{data}/paths"]["rows"] > MANY_ROWS
    ]
    yield _check_most("regret", f"mean on more than {MANY_ROWS:,} rows", large, LARGE, np.mean)
    lost = [pair[1] for pair in every]
    yield _check_most("log loss", "mean share above the grid's best", lost, LOG_LOSS, np.mean)
    times = [times for data in DATA if (times := compute_time_ratio(found, data)) is not None]
    yield _check_most("time", "worst ratio to the earlier commit", times, TIMES, np.max)


def _check_most(group: str, name: str, values: list[float], most: float, over: object) -> Check:
    asked = f"<= {most:g}"
    if not values:
        return Check(group, name, asked)
    value = float(over(values))  # type: ignore[operator]
    return Check(group, name, asked, f"{value:.2f} ({len(values)} figures)", value <= most)
