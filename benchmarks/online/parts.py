"""The parts of ``benchmarks.online`` except ``passes``, and how each is run.

Speed and first call are compared with an earlier commit. Both packages are copied into a temporary
folder, each with its own compiler cache, and they run in turns.
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

from benchmarks.harness.jobs import ROOT, Record, Store, run_module_safely, unpack_commit
from benchmarks.harness.terminal import describe_failure
from benchmarks.memory import command as memory
from benchmarks.online import raw_tables

#: The last commit whose online learners measure features from zero.
BASELINE = "7a1c17e2"
NOW, THEN = "now", "then"
SPEED_DATA, SPEED_METHODS = ("mnist", "isolet", "reuters_r52"), ("mirror", "group")
MAP = "float64, read-only map"
MEMORY_CALLS = {"partial_fit": ("float64", "float64, Fortran", MAP), "fit": (MAP,)}
MEMORY_MODEL, MEMORY_SHAPE = "MirrorDescentClassifier", (60_000, 784)
WALL = 3600.0  # long, because river is slow

Environment = Mapping[str, str]


class Keeper:
    """Runs measurements that a store does not have, stores them and prints them."""

    def __init__(self, store: Store, console: Console) -> None:
        self.store, self.console = store, console

    def __call__(self, key: str, run: Callable[[], Record], **marks: str) -> None:
        """Store what ``run`` returns under a key, with marks such as the earlier commit.

        A measurement that failed or that has other marks is run again.
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
        return describe_failure(record)
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


def run_child(order: Record, environment: Environment | None = None) -> Record:
    """Carry out one order in its own process."""
    made = run_module_safely(["benchmarks.online.child", json.dumps(order)], WALL, environment)
    return {"status": "ok"} | made


def run_tables(args: argparse.Namespace, keep: Keeper) -> None:
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
            keep(key, partial(run_child, order))


def run_affine(args: argparse.Namespace, keep: Keeper) -> None:
    """Count mistakes after changes of the units and origins of columns."""
    for table in args.tables:
        keep(f"affine/{table}", partial(run_child, {"job": "affine", "table": table}))


def run_speed(args: argparse.Namespace, keep: Keeper) -> None:
    """Time passes over images and texts with this and the earlier commit, in turns."""
    with copy_sides(args.baseline) as packages:
        for data in SPEED_DATA:
            for method in SPEED_METHODS:
                order = {"job": "speed", "data": data, "method": method}
                for turn in range(args.rounds):
                    for side, (environment, cache) in packages.items():
                        more = {**environment, "NUMBA_CACHE_DIR": str(cache / "speed")}
                        key = f"speed/{data}/{method}/{side}/{turn}"
                        run = partial(run_side, order, more)
                        keep(key, run, baseline=args.baseline)


def run_first(args: argparse.Namespace, keep: Keeper) -> None:
    """Time first calls with this and the earlier commit, each with an empty compiler cache."""
    with copy_sides(args.baseline) as packages:
        for turn in range(args.rounds):
            for side, (environment, cache) in packages.items():
                more = {**environment, "NUMBA_CACHE_DIR": str(cache / f"first-{turn}")}
                run = partial(run_side, {"job": "first"}, more)
                keep(f"first/{side}/{turn}", run, baseline=args.baseline)


def run_memory(args: argparse.Namespace, keep: Keeper) -> None:
    """Measure the growth of the resident size in ``partial_fit`` and ``fit``."""
    for call, kinds in MEMORY_CALLS.items():
        for kind in kinds:
            run = partial(memory.measure, MEMORY_MODEL, kind, *MEMORY_SHAPE, call=call)
            keep(f"memory/{call}/{kind}", run)


PARTS: dict[str, Callable[[argparse.Namespace, Keeper], None]] = {
    "tables": run_tables,
    "affine": run_affine,
    "speed": run_speed,
    "memory": run_memory,
    "first": run_first,
}


@contextmanager
def copy_sides(commit: str) -> Iterator[dict[str, tuple[Environment, Path]]]:
    """Copy the package of a commit and of now; yield environments and cache folders.

    The package of now is copied too. Python then has to compile the modules of both, and editing a
    file during the run changes nothing.
    """
    with tempfile.TemporaryDirectory(prefix="mixnorm-beside-") as name:
        folder, made = Path(name), {}
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src", folder / NOW / "src", ignore=leave)
        earlier = unpack_commit(commit, folder / THEN)
        for side, environment in (
            (THEN, earlier),
            (NOW, {"PYTHONPATH": f"{folder / NOW / 'src'}"}),
        ):
            made[side] = (environment, folder / f"cache-{side}")
        yield made


def run_side(order: Record, environment: Environment) -> Record:
    """Carry out one order with the package of an environment, and check that it was used."""
    record = run_child(order, environment)
    package = record.pop("package", environment["PYTHONPATH"])
    if not package.startswith(environment["PYTHONPATH"]):
        message = f"mixnorm came from {package}, not from {environment['PYTHONPATH']}."
        return {"status": "failed", "message": message}
    return record
