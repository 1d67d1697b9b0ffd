"""``python -m benchmarks mnist``: the options, the runs and the report."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.harness import terminal
from benchmarks.harness.commands import check_names, parse_names, report_bar, run_command
from benchmarks.harness.jobs import ONE_THREAD, ROOT, Record, Store, make_child_environment
from benchmarks.harness.terminal import describe_failure, describe_status
from benchmarks.mnist.methods import PEERS
from benchmarks.mnist.report import check_bar, make_tables
from benchmarks.mnist.variants import VARIANTS, choose_settings

THREADS = 2  # at most, on the CPU
A_DAY = 86400.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``python -m benchmarks mnist``."""
    add = parser.add_argument
    add("--variants", type=parse_names, default=tuple(VARIANTS), help="variants (default: all)")
    add("--device", choices=("cpu", "cuda"), default="cpu", help="where ours runs (default: cpu)")
    add(
        "--peers",
        type=parse_names,
        default=tuple(PEERS),
        help="peers to run (default: all; '': none)",
    )
    add(
        "--peers-on",
        type=parse_names,
        default=("original",),
        help="their variants (default: original)",
    )
    add("--holdout", action="store_true", help="evaluate on held-out training images")
    add("--quick", action="store_true", help="6,000 images, 50 features, 200 templates")
    add("--limit", type=float, default=1800.0, help="seconds allowed per peer (default: 1800)")
    add("--json", type=Path, help="write results here as they come")
    add("--resume", action="store_true", help="keep the results already in --json")
    add("--no-runs", action="store_true", help="run nothing; report on what --json holds")
    add("--check", action="store_true", help="exit with 1 if a measured figure misses the bar")


def main(args: argparse.Namespace, console: Console | None = None) -> int:
    """Run all methods; returns 1 when ``--check`` found a miss, 130 when interrupted."""
    console = console or terminal.make_console()
    check_names(variant=((*args.variants, *args.peers_on), VARIANTS), peer=(args.peers, PEERS))
    return run_command(args, console, run, report)


def run(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Measure the orders that are not in the store."""
    for order in list_orders(args):
        key, found = make_key(order), store.content.get("mnist", {})
        if key in found and is_finished(found[key], order):
            continue
        record = measure(order, args.limit)
        store.put("mnist", found | {key: record})
        console.print(f"{key:<32} {describe(record)}", highlight=False)


def is_finished(record: Record, order: dict[str, Any]) -> bool:
    """Return whether a record belongs to an order with the current settings."""
    today = choose_settings(order["variant"], quick=order["quick"], device=order["device"])
    current = json.loads(json.dumps(dataclasses.asdict(today)))  # as stored: lists for tuples
    same = record["order"] == order and record.get("settings", current) == current
    return same and record["status"] in ("ok", "timeout")


def list_orders(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the requested orders: ours on all variants, then the other libraries."""
    given = {"holdout": args.holdout, "quick": args.quick}
    ours = [
        {"method": "mixnorm", "variant": variant, "device": args.device, **given}
        for variant in args.variants
    ]
    others = [
        {"method": peer, "variant": variant, "device": "cpu", **given}
        for variant in args.variants
        if variant in args.peers_on
        for peer in args.peers
    ]
    return ours + others


def make_key(order: dict[str, Any]) -> str:
    """Return the key of a record: evaluation images, variant, method, and our device."""
    judged = "holdout" if order["holdout"] else "test"
    method = order["method"] + (f"-{order['device']}" if order["method"] == "mixnorm" else "")
    return "/".join([judged + ("-quick" if order["quick"] else ""), order["variant"], method])


def measure(order: dict[str, Any], limit: float) -> Record:
    """Run one method in its own process; ``status`` is "ok" if the record has figures."""
    method, cores = order["method"], os.cpu_count() or 1
    if method in PEERS and not PEERS[method].available():
        return {"order": order, "status": "absent"}
    threads = cores if order["device"] != "cpu" else min(THREADS, cores)
    command = [sys.executable, "-m", "benchmarks.mnist.child"]
    done: subprocess.CompletedProcess[str]
    try:
        done = subprocess.run(
            [*command, json.dumps(order | {"threads": threads})],
            cwd=ROOT,
            env=make_environment(threads),
            capture_output=True,
            text=True,
            timeout=limit if method in PEERS else A_DAY,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"order": order, "status": "timeout", "limit": limit}
    if done.returncode:
        message = done.stderr[-2000:] or f"exit code {done.returncode}"
        return {"order": order, "status": "failed", "message": message}
    made: Record = json.loads(done.stdout.splitlines()[-1])
    return {"order": order, "status": "ok", **made, "load": os.getloadavg()[0]}


def make_environment(threads: int) -> dict[str, str]:
    """Return the environment of a measuring process with a number of threads."""
    numbers = {name: str(threads) for name in ONE_THREAD if name.endswith("_THREADS")}
    return make_child_environment() | numbers | {"SCIPY_ARRAY_API": "1"}


def describe(record: Record) -> str:
    """Return one line about a finished method."""
    if record["status"] == "failed":
        return describe_failure(record)
    if record["status"] != "ok":
        return describe_status(record)
    last = record["points"][-1] if "points" in record else record
    shown = f"{last['error']:.2f} %, {record['fit_seconds']:.3g} s, {last['rate']:,.0f} images / s"
    return f"{shown}, {record['threads']} threads"


def report(store: Store, console: Console) -> bool:
    """Print all tables and store the summary; return whether a figure misses the bar."""
    found = store.content.get("mnist", {})
    for table in make_tables(found):
        console.print(table)
    return report_bar(list(check_bar(found)), store, console, found.values())
