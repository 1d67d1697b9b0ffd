"""``python -m benchmarks fuzz``: hand out inputs to processes, and count the results."""

from __future__ import annotations

import argparse
import json
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.harness import terminal
from benchmarks.harness.commands import check_names, parse_names
from benchmarks.harness.jobs import ROOT, Record, Store, make_child_environment

_CHUNK = 250  # inputs per process; a leak or a broken state ends with the process


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``python -m benchmarks fuzz``."""
    add = parser.add_argument
    add("--inputs", type=int, default=2000, help="how many inputs to draw (default: 2000)")
    add("--first", type=int, default=0, help="number of the first input (default: 0)")
    add("--seed", type=int, default=0, help="seed of all inputs (default: 0)")
    add("--only", type=int, nargs="+", help="try only these input numbers, such as a failed one")
    add(
        "--kinds",
        type=parse_names,
        default=(),
        help="estimators or parts, separated by commas (default: all)",
    )
    add("--processes", type=int, default=2, help="processes side by side (default: 2)")
    add("--seconds", type=float, default=float("inf"), help="start no input after these seconds")
    add("--json", type=Path, help="write results here as they come")
    add("--resume", action="store_true", help="continue where --json ends")


def main(args: argparse.Namespace, console: Console | None = None) -> int:
    """Try the inputs and print the counts; returns 1 if there is a failure, 130 if interrupted."""
    from benchmarks.fuzz.cases import KINDS

    check_names(kind=(args.kinds, KINDS))
    console = console or terminal.make_console()
    store, status = Store(args.json, resume=args.resume), 0
    try:
        _try_all(args, store, console)
    except KeyboardInterrupt:
        console.print("[yellow]Interrupted; finished inputs are reported. --resume continues.[/]")
        status = 130
    failures = report(store, console)
    return status or int(bool(failures))


def make_chunks(args: argparse.Namespace) -> Iterator[tuple[str, list[int]]]:
    """Yield the key and the input numbers of each process."""
    numbers = args.only or list(range(args.first, args.first + args.inputs))
    for start in range(0, len(numbers), _CHUNK):
        part = numbers[start : start + _CHUNK]
        yield f"{args.seed}/{','.join(args.kinds) or 'all'}/{part[0]}-{part[-1]}", part


def _try_all(args: argparse.Namespace, store: Store, console: Console) -> None:
    """Run the chunks that are not in the store, as many at a time as there are processes."""
    done = store.content.setdefault("chunks", {})
    waiting: queue.Queue[tuple[str, list[int]]] = queue.Queue()
    for name, part in make_chunks(args):
        if name not in done:
            waiting.put((name, part))
    until, lock, stop = time.time() + args.seconds, threading.Lock(), threading.Event()

    def serve() -> None:
        while not stop.is_set() and time.time() < until:
            try:
                name, part = waiting.get_nowait()
            except queue.Empty:
                return
            records = list(try_inputs(args.seed, part, args.kinds, until, stop))
            if stop.is_set():
                return
            with lock:
                store.put("chunks", done | {name: summarise(records)})
                done[name] = store.content["chunks"][name]
                for record in done[name]["failures"]:
                    console.print(describe(record), markup=False, highlight=False)

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(args.processes)]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.2)
    finally:
        stop.set()


def try_inputs(
    seed: int,
    numbers: list[int],
    kinds: Iterable[str],
    until: float = float("inf"),
    stop: threading.Event | None = None,
) -> Iterator[Record]:
    """Yield a record of each input, even if the process that tries it dies."""
    left = list(numbers)
    while left and time.time() < until:
        started = None
        for record, ended in _run_process(seed, list(left), kinds, until, stop):
            # The worker prints a record before and after each input. If it dies, the last input
            # that has only the first record is the one that killed it; a new process tries the
            # others.
            if "seconds" in record:
                started = None
                left.remove(record["number"])
                yield record
            elif ended is None:
                started = record["number"]
            elif started is not None:
                left.remove(started)
                yield record_crash(started, ended, record["errors"])
        if started is None:  # the process finished, or its time was up
            return


def record_crash(number: int, code: int, errors: str) -> Record:
    # SIGPROF comes from the timer of the worker, which limits the CPU time of an input.
    reason = "never returned" if code == -signal.SIGPROF else f"the process ended with {code}"
    message = f"{reason} {errors.strip()[-400:]}"
    return {"number": number, "subject": "?", "kind": "failed", "message": message, "seconds": 0.0}


def _run_process(
    seed: int, numbers: list[int], kinds: Iterable[str], until: float, stop: Any
) -> Iterator[tuple[Record, int | None]]:
    """Yield the lines that one process prints, and finally its exit code."""
    limit = until if until < float("inf") else 1e18  # JSON has no infinity
    plan = {"seed": seed, "numbers": numbers, "kinds": list(kinds), "until": limit}
    command = [sys.executable, "-m", "benchmarks.fuzz.worker", json.dumps(plan)]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, cwd=ROOT, env=make_child_environment(), text=True,
            stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            for line in process.stdout:
                yield json.loads(line), None
                if stop is not None and stop.is_set():
                    return
            code = process.wait()
            errors.seek(0)
            yield {"errors": errors.read()}, code
        finally:
            process.kill()
            process.communicate()  # also closes the pipe


def summarise(records: list[Record]) -> Record:
    """Return counts by subject, and complete records of the failures."""
    subjects: dict[str, dict[str, float]] = {}
    for record in records:
        row = subjects.setdefault(
            record["subject"],
            {"right": 0, "refused": 0, "failed": 0, "seconds": 0.0, "longest": 0.0},
        )
        row[record["kind"]] += 1
        row["seconds"] += record["seconds"]
        row["longest"] = max(row["longest"], record["seconds"])
    return {"subjects": subjects, "failures": [r for r in records if r["kind"] == "failed"]}


def describe(record: Record) -> str:
    """Return a failure in words."""
    notes = ", ".join(record.get("notes", []))
    return f"{record['number']} {record['subject']}: {record['message']} [{notes}]"


def report(store: Store, console: Console) -> list[Record]:
    """Print the counts of results by subject, and return the failures."""
    subjects: dict[str, dict[str, float]] = {}
    failures: list[Record] = []
    for chunk in store.content.get("chunks", {}).values():
        failures += chunk["failures"]
        for subject, row in chunk["subjects"].items():
            total = subjects.setdefault(subject, dict.fromkeys(row, 0))
            for name, value in row.items():
                total[name] = max(total[name], value) if name == "longest" else total[name] + value
    table = Table(
        "subject", "inputs", "right", "refused", "failed", "CPU s", "longest", box=SIMPLE_HEAD
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for subject in sorted(subjects):
        table.add_row(subject, *_format_cells(subjects[subject]))
    sums = {
        name: sum(row[name] for row in subjects.values())
        for name in ("right", "refused", "failed", "seconds")
    }
    sums["longest"] = max((row["longest"] for row in subjects.values()), default=0)
    table.add_row("all", *_format_cells(sums), style="bold")
    console.print(table)
    if failures:
        some = " ".join(str(record["number"]) for record in failures[:10])
        console.print(f"Try failures again: python -m benchmarks fuzz --only {some}")
    return failures


def _format_cells(row: dict[str, float]) -> list[str]:
    counts = [int(row[name]) for name in ("right", "refused", "failed")]
    return [str(sum(counts)), *map(str, counts), f"{row['seconds']:.0f}", f"{row['longest']:.1f}"]
