"""``python -m benchmarks mutants``: draw mutants, try each with the tests of its room."""

from __future__ import annotations

import argparse
import queue
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.harness import terminal
from benchmarks.harness.commands import check_names, parse_names
from benchmarks.harness.jobs import ROOT, Store
from benchmarks.mutants.equivalent import REASONS
from benchmarks.mutants.mutations import Mutation, draw
from benchmarks.mutants.trial import Copy

ROOMS = ("engines", "losses", "norms", "pools", "kernels", "selection", "storage")
_ASKED = 0.95  # kill rate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``python -m benchmarks mutants``."""
    add = parser.add_argument
    add("--count", type=int, default=200, help="how many mutants to draw (default: 200)")
    add("--seed", type=int, default=0, help="seed of the draw (default: 0)")
    add(
        "--rooms", type=parse_names, default=ROOMS, help="rooms, separated by commas (default: all)"
    )
    add("--processes", type=int, default=2, help="processes side by side (default: 2)")
    add("--list", action="store_true", help="print the mutants, and try none")
    add("--json", type=Path, help="write results here as they come")
    add("--resume", action="store_true", help="keep the results already in --json")
    add("--again", action="store_true", help="with --resume: try survivors again")
    add("--check", action="store_true", help="exit with 1 if too few are noticed")


def main(args: argparse.Namespace, console: Console | None = None) -> int:
    """Try the mutants and print the kill rate; returns 1 for a miss, 130 if interrupted."""
    check_names(room=(args.rooms, ROOMS))
    console = console or terminal.make_console()
    mutations = draw(ROOT / "src/mixnorm", args.rooms, args.count, args.seed)
    if args.list:
        for mutation in mutations:
            console.print(mutation.key, markup=False, highlight=False)
        return 0
    store, status = Store(args.json, resume=args.resume), 0
    records = store.content.setdefault("mutants", {})
    if args.again:
        for key in [key for key, record in records.items() if record["status"] == "survived"]:
            del records[key]
    try:
        with tempfile.TemporaryDirectory(prefix="mixnorm-mutants-") as folder:
            _try_all(mutations, Path(folder), args.processes, store, console)
    except KeyboardInterrupt:
        console.print("[yellow]Interrupted; finished trials are reported. --resume continues.[/]")
        status = 130
    share = report(mutations, store, console)
    return status or int(args.check and share < _ASKED)


def _try_all(
    mutations: list[Mutation], folder: Path, processes: int, store: Store, console: Console
) -> None:
    """Try the mutants that are not in the store; each process works room by room in a copy."""
    records = store.content["mutants"]
    rooms: dict[str, list[Mutation]] = {}
    for mutation in mutations:
        if mutation.key not in records and mutation.key not in REASONS:
            rooms.setdefault(str(Path(mutation.path).parent), []).append(mutation)
    waiting: queue.Queue[list[Mutation]] = queue.Queue()
    for room in sorted(rooms.values(), key=len, reverse=True):
        waiting.put(room)
    lock, stop, failures = threading.Lock(), threading.Event(), list[BaseException]()

    def serve(number: int) -> None:
        try:
            copy = Copy(folder / str(number))
            while not stop.is_set():
                for mutation in waiting.get_nowait():
                    if stop.is_set():
                        return
                    record = copy.try_mutation(mutation)
                    with lock:
                        store.put("mutants", records | {mutation.key: record})
                        records[mutation.key] = record
                        console.print(describe(mutation.key, record), markup=False)
        except queue.Empty:
            return
        except BaseException as error:
            failures.append(error)
            stop.set()

    threads = [threading.Thread(target=serve, args=(n,), daemon=True) for n in range(processes)]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.2)
    finally:
        stop.set()
    if failures:
        raise failures[0]


def describe(key: str, record: dict[str, object]) -> str:
    """Return the outcome of a trial on one line."""
    return f"{record['status']:<9} {record['seconds']:6.1f} s  {key}  {record['by']}"


def report(mutations: list[Mutation], store: Store, console: Console) -> float:
    """Print the kill rate by room, and the survivors; return the whole rate."""
    records = store.content["mutants"]
    counts: dict[str, Counter[str]] = {}
    for mutation in mutations:
        room = counts.setdefault(mutation.path.split("/")[0], Counter())
        if mutation.key in REASONS:
            room["equivalent"] += 1
        elif mutation.key in records:
            room[records[mutation.key]["status"]] += 1
    table = Table("room", "tried", "killed", "survived", "equivalent", "%", box=SIMPLE_HEAD)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, room in sorted(counts.items()):
        table.add_row(name, *_format_cells(room))
    whole = sum(counts.values(), Counter[str]())
    table.add_row("all", *_format_cells(whole), style="bold")
    console.print(table)
    for mutation in mutations:
        if records.get(mutation.key, {}).get("status") == "survived":
            console.print(f"survived: {mutation.key}", markup=False, highlight=False)
    return _compute_rate(whole)


def _compute_rate(room: Counter[str]) -> float:
    killed = room["killed"] + room["endless"]
    return killed / max(killed + room["survived"], 1)


def _format_cells(room: Counter[str]) -> list[str]:
    killed = room["killed"] + room["endless"]
    counts = (killed + room["survived"], killed, room["survived"], room["equivalent"])
    return [*map(str, counts), f"{100.0 * _compute_rate(room):.1f}"]
