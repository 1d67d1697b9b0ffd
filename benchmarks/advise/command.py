"""``python -m benchmarks advise``: the options, the runs and the report."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.advise.data import DESIGNS, REAL, VERDICTS
from benchmarks.harness import terminal
from benchmarks.harness.bar import Check
from benchmarks.harness.commands import check_names, parse_names, report_bar, run_command
from benchmarks.harness.jobs import Record, Store, run_module_safely
from benchmarks.harness.terminal import describe_failure

PARTS = ("designs", "real", "isolet")
RIGHT = {"designs": (9, 10), "real": (7, 9)}
ISOLET_SECONDS = 120.0
WALL = 1800.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``python -m benchmarks advise``."""
    add = parser.add_argument
    add("--part", type=parse_names, default=PARTS, help="designs, real, isolet (default: all)")
    add("--data", type=parse_names, help="designs and sets (default: all)")
    add("--seeds", type=int, default=3, help="draws of each (default: 3)")
    add("--first", type=int, default=0, help="the first seed (default: 0)")
    add("--json", type=Path, help="write results here as they come")
    add("--resume", action="store_true", help="keep the results already in --json")
    add("--no-runs", action="store_true", help="run nothing; report on what --json holds")
    add("--check", action="store_true", help="exit with 1 if a measured figure misses the bar")


def main(args: argparse.Namespace, console: Console | None = None) -> int:
    """Run all; returns 1 when ``--check`` found a miss, 130 when interrupted."""
    console = console or terminal.make_console()
    check_names(part=(args.part, PARTS), data=(args.data or (), (*DESIGNS, *REAL)))
    return run_command(args, console, run, report)


def list_orders(args: argparse.Namespace) -> Iterator[Record]:
    """Yield the orders for the measuring processes."""
    for part, known in (("designs", DESIGNS), ("real", REAL)):
        for name in known if part in args.part else ():
            if args.data is None or name in args.data:
                for seed in range(args.first, args.first + args.seeds):
                    yield {"part": part, "data": name, "seed": seed}
    if "isolet" in args.part:
        yield {"part": "isolet", "data": "isolet", "seed": 0}


def run(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Measure the orders that are not in the store."""
    for order in list_orders(args):
        key = "/".join(str(value) for value in order.values())
        found = store.content.get("advise", {})
        if found.get(key, {}).get("status") == "ok":
            continue
        record = order | run_order(order)
        store.put("advise", found | {key: record})
        console.print(f"{key:<32} {describe(record)}", highlight=False)


def run_order(order: Record) -> Record:
    """Run one order in its own process."""
    return run_module_safely(["benchmarks.advise.child", json.dumps(order)], WALL)


def describe(record: Record) -> str:
    """Return one line about a finished order."""
    if record["status"] == "failed":
        return describe_failure(record)
    if record["status"] != "ok":
        return str(record["status"])
    summary = f"{record['chosen']:<7} ({record['verdict']}), {record['seconds']:.1f} s"
    if "errors" not in record:
        return summary
    errors = ", ".join(f"{name} {error:.3f}" for name, error in record["errors"].items())
    return f"{'right' if is_right(record) else 'WRONG'}: {summary}; test errors {errors}"


def is_right(record: Record) -> bool:
    """Return whether advice was right, both in its norm and in its verdict."""
    errors = record["errors"]
    near = errors[record["chosen"]] <= min(errors.values()) + record["slack"]
    wanted = VERDICTS.get(record["data"]) if record["part"] == "designs" else None
    return bool(near) and (wanted is None or record["verdict"] in wanted)


# --- report


def report(store: Store, console: Console) -> bool:
    """Print the tables and the bar; return whether a measured figure misses it."""
    found = store.content.get("advise", {})
    for part in ("designs", "real"):
        some = [one for one in found.values() if one["part"] == part and one["status"] == "ok"]
        if some:
            console.print(_make_table(part, some))
    return report_bar(list(check_bar(found)), store, console, found.values())


def _make_table(part: str, records: list[Record]) -> Table:
    norms = list(dict.fromkeys(name for one in records for name in one["errors"]))
    table = Table(title=f"Advice on {part}: test errors by norm", title_justify="left", box=None)
    for head in ("data", "seed", "chosen", "says", "", *norms, "s"):
        table.add_column(head, justify="left" if head in ("data", "chosen", "says") else "right")
    for one in records:
        cells = [f"{one['errors'][name]:.3f}" if name in one["errors"] else "" for name in norms]
        mark = "right" if is_right(one) else "wrong"
        first_cells = (one["data"], str(one["seed"]), one["chosen"], one["verdict"], mark)
        table.add_row(*first_cells, *cells, f"{one['seconds']:.1f}")
    return table


def check_bar(found: dict[str, Record]) -> Iterator[Check]:
    """Check how often advice is right in each draw of all datasets, and how long it takes."""
    for part, (least, whole) in RIGHT.items():
        records = [one for one in found.values() if one["part"] == part and one["status"] == "ok"]
        asked = f">= {least} of {whole}"
        seeds = sorted({one["seed"] for one in records})
        if not seeds:
            yield Check(part, "advice is right", asked)
        for seed in seeds:
            some = [one for one in records if one["seed"] == seed]
            number = sum(map(is_right, some))
            measured = f"{number} of {len(some)}"
            enough = number >= least if len(some) == whole else None
            yield Check(part, f"advice is right, draw {seed}", asked, measured, enough)
    one = found.get("isolet/isolet/0", {})
    name, asked = "isolet: seconds", f"< {ISOLET_SECONDS:g} on 2 cores"
    if one.get("status") != "ok":
        yield Check("time", name, asked)
        return
    measured = f"{one['wall_seconds']:.1f}, one thread"
    yield Check("time", name, asked, measured, one["wall_seconds"] < ISOLET_SECONDS)
