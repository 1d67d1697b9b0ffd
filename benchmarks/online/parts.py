"""Parts of ``benchmarks.online`` that are not passes over images and texts: what each runs.

Speed and first call are measured beside an earlier commit. Both packages are copied into a
temporary folder, each with a compiler cache of its own, and the two sides take turns.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks.harness.jobs import ROOT, Record, Store, carry_out, unpacked
from benchmarks.harness.terminal import failure
from benchmarks.memory import command as memory
from benchmarks.online import raw_tables

#: The last commit whose online learners measure features from zero.
BASELINE = "7a1c17e2"
NOW, THEN = "now", "then"
SPEED_DATA, SPEED_METHODS = ("mnist", "isolet", "reuters_r52"), ("mirror", "group")
MAP = "float64, read-only map"
MEMORY_CALLS = {"partial_fit": ("float64", "float64, Fortran", MAP), "fit": (MAP,)}
MEMORY_MODEL, MEMORY_SHAPE = "MirrorDescentClassifier", (60_000, 784)
WALL = 3600.0  # river is slow

Environment = Mapping[str, str]


class Keeper:
    """Runs what a store does not hold, and tells of it."""

    def __init__(self, store: Store, console: Console) -> None:
        self.store, self.console = store, console

    def __call__(self, key: str, run: Callable[[], Record], **marks: str) -> None:
        """Keep what ``run`` returns under a key, with marks such as the commit it is beside.

        What failed before, or has other marks, is run again.
        """
        found = self.store.content.get("online", {})
        before = found.get(key, {})
        same = all(before.get(name) == mark for name, mark in marks.items())
        if same and before.get("status") in ("ok", "timeout"):
            return
        record = run() | marks
        self.store.put("online", found | {key: record})
        self.console.print(f"{key:<40} {describe(record)}", highlight=False)


def describe(record: Record) -> str:
    """Return a short description of a finished measurement."""
    if record["status"] == "failed":
        return failure(record)
    if record["status"] != "ok":
        return str(record["status"])
    if "peak_bytes" in record:
        return memory.describe(record)
    if "single" in record:
        changes = (100 * record[kind]["change"] for kind in ("single", "together"))
        return "{:.1f} % by one column, {:.1f} % by all".format(*changes)
    if "rate" in record:
        return f"{record['rate']:,.0f} rows / s"
    if "counts" in record:
        return f"{record['mistakes']:,.1f} mistakes"
    return f"{record['seconds']:.1f} s"


def child(order: Record, environment: Environment | None = None) -> Record:
    """Carry out one order in a process of its own."""
    made = carry_out(["benchmarks.online.child", json.dumps(order)], WALL, environment)
    return {"status": "ok"} | made


def tables(args: argparse.Namespace, keep: Keeper) -> None:
    """Count the mistakes of all methods on raw tables."""
    for table in args.tables:
        for method, learner in raw_tables.METHODS.items():
            if method not in args.methods:
                continue
            key = f"tables/{table}/{method}"
            if not learner.available():
                keep(key, lambda: {"status": "absent"})
                continue
            order = {"job": "tables", "table": table, "method": method}
            keep(key, partial(child, order))


def affine(args: argparse.Namespace, keep: Keeper) -> None:
    """Count mistakes after changes of the units and origins of columns."""
    for table in args.tables:
        keep(f"affine/{table}", partial(child, {"job": "affine", "table": table}))


def speed(args: argparse.Namespace, keep: Keeper) -> None:
    """Time passes over images and texts beside the earlier commit, by turns."""
    with sides(args.baseline) as packages:
        for data in SPEED_DATA:
            for method in SPEED_METHODS:
                order = {"job": "speed", "data": data, "method": method}
                for turn in range(args.rounds):
                    for side, (environment, cache) in packages.items():
                        more = {**environment, "NUMBA_CACHE_DIR": str(cache / "speed")}
                        key = f"speed/{data}/{method}/{side}/{turn}"
                        run = partial(beside, order, more)
                        keep(key, run, baseline=args.baseline)


def first(args: argparse.Namespace, keep: Keeper) -> None:
    """Time first calls beside the earlier commit, each with an empty compiler cache."""
    with sides(args.baseline) as packages:
        for turn in range(args.rounds):
            for side, (environment, cache) in packages.items():
                more = {**environment, "NUMBA_CACHE_DIR": str(cache / f"first-{turn}")}
                run = partial(beside, {"job": "first"}, more)
                keep(f"first/{side}/{turn}", run, baseline=args.baseline)


def memory_of_rows(args: argparse.Namespace, keep: Keeper) -> None:
    """Measure the growth of the resident size in ``partial_fit`` and ``fit``."""
    for call, kinds in MEMORY_CALLS.items():
        for kind in kinds:
            run = partial(memory.measure, MEMORY_MODEL, kind, *MEMORY_SHAPE, call=call)
            keep(f"memory/{call}/{kind}", run)


PARTS: dict[str, Callable[[argparse.Namespace, Keeper], None]] = {
    "tables": tables,
    "affine": affine,
    "speed": speed,
    "memory": memory_of_rows,
    "first": first,
}


@contextmanager
def sides(commit: str) -> Iterator[dict[str, tuple[Environment, Path]]]:
    """Copy the package as it was in a commit and as it is; yield environments and cache folders.

    The package as it is is copied too: Python has to compile the modules of both, and a file that
    is changed during the run changes nothing.
    """
    with tempfile.TemporaryDirectory(prefix="mixnorm-beside-") as name:
        folder, made = Path(name), {}
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src", folder / NOW / "src", ignore=leave)
        earlier = unpacked(commit, folder / THEN)
        for side, environment in (
            (THEN, earlier),
            (NOW, {"PYTHONPATH": f"{folder / NOW / 'src'}"}),
        ):
            made[side] = (environment, folder / f"cache-{side}")
        yield made


def beside(order: Record, environment: Environment) -> Record:
    """Carry out one order with the package of an environment, and see that it was this one."""
    record = child(order, environment)
    package = record.pop("package", environment["PYTHONPATH"])
    if not package.startswith(environment["PYTHONPATH"]):
        message = f"mixnorm came from {package}, not from {environment['PYTHONPATH']}."
        return {"status": "failed", "message": message}
    return record
