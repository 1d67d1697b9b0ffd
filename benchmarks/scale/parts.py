"""What the parts of ``benchmarks.scale`` run, and how the records are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.harness.jobs import Record, Store
from benchmarks.harness.terminal import describe_failure, describe_status
from benchmarks.harness.version import hash_source
from benchmarks.scale import peers
from benchmarks.scale.child import BY_BLOCKS, IN_MEMORY
from benchmarks.scale.data import Table, find_scale, prepare_table, read_truth
from benchmarks.scale.panel import prepare_panel
from benchmarks.scale.processes import run_child

SMALL, LARGE = "1 GiB", "4 GiB"
WORKERS = 2
FEATURES, GENES = 20, 100  # sizes of the paths
OURS = "mixnorm"
WALL = 3600.0  # limit for our own fits
SHARE_OF_ALPHA_MAX = 0.1
START = 30.0  # seconds to start a cluster, and to import a peer and warm it up
KILL_AT = 1 / 3  # of the time of the run in which no worker dies


@dataclass(frozen=True)
class Sizes:
    """The sizes of one run of the benchmark."""

    rows: int = 10_000_000
    columns: int = 100
    test_rows: int = 200_000
    peer_rows: int = 1_000_000
    cells: int = 38_000
    genes: int = 32_000
    path: int = FEATURES
    gene_path: int = GENES

    @property
    def full(self) -> bool:
        """Whether the bar counts at these sizes; the peers may have fewer rows."""
        asked = Sizes()
        names = ("rows", "columns", "test_rows", "cells", "genes", "path", "gene_path")
        return all(getattr(self, name) == getattr(asked, name) for name in names)


QUICK = Sizes(20_000, 40, 5_000, 4_000, 1_000, 2_000, 5, 5)


class Runner:
    """Runs orders that a store does not have yet, stores their records and prints them.

    Parameters
    ----------
    store, console
        Where records and lines go.
    sizes : Sizes
        Rows and columns.
    folder : Path or None
        The folder of the drawn tables; by default the cache.
    limit : float
        Seconds that a peer may take.
    repeats : int
        Runs of each order, of which the fastest counts.
    """

    def __init__(
        self,
        store: Store,
        console: Console,
        sizes: Sizes,
        folder: Path | None = None,
        limit: float = 300.0,
        repeats: int = 1,
    ) -> None:
        self.store, self.console, self.sizes = store, console, sizes
        self.folder, self.limit, self.repeats = folder, limit, repeats

    def table(self, rows: int, columns: int) -> Table:
        """Return a table, drawn if needed."""
        return prepare_table(rows, columns, self.folder, test_rows=self.sizes.test_rows)

    def run(self, key: str, order: dict[str, Any], limit: float = WALL) -> Record:
        """Return the record of an order: a stored one, or that of the fastest new run.

        Parts share runs: an order that was carried out under another key is not run again.
        """
        found = self.store.content.get("scale", {})
        marks = {"order": order, "source": hash_source()}
        for before in (found.get(key, {}), *found.values()):
            same = all(before.get(name) == mark for name, mark in marks.items())
            if same and before["status"] in ("ok", "timeout"):
                self.store.put("scale", found | {key: before})
                return before
        records = []
        for _ in range(self.repeats):
            records.append(run_child(order, limit))
            if records[-1]["status"] != "ok":
                break
        walls = [record["wall"] for record in records if record["status"] == "ok"]
        best = records[-1]
        if best["status"] == "ok":
            best = min(records, key=lambda record: record["wall"])
        record = best | marks | {"walls": walls}
        self.store.put("scale", found | {key: record})
        self.console.print(f"{key:<28} {describe(record)}", highlight=False)
        return record

    def fit(
        self,
        key: str,
        how: str,
        *,
        table: Table | None = None,
        learner: str = "greedy",
        **more: Any,
    ) -> Record:
        """Run one of our fits of a table; by default of the first one."""
        sizes = self.sizes
        table = table or self.table(sizes.rows, sizes.columns)
        order = {
            "job": "table",
            "table": describe_table(table),
            "learner": learner,
            "how": how,
            "test_rows": sizes.test_rows,
            "size": sizes.path,
        }
        return self.run(key, order | more)


def describe_table(table: Table) -> dict[str, Any]:
    """Return a table as the orders have it."""
    return {"folder": str(table.folder), "rows": table.rows, "columns": table.columns}


def describe(record: Record) -> str:
    """Return one line about a finished run."""
    if record["status"] == "failed":
        return describe_failure(record)
    if record["status"] != "ok":
        return describe_status(record)
    error = record.get("error", record.get("error_all"))
    return f"{record['wall']:8.2f} s, {error:.2f} % wrong"


def run_single(runner: Runner) -> None:
    """Fit in memory, and by blocks with little and with more memory, in one process."""
    table = runner.table(runner.sizes.rows, runner.sizes.columns)
    runner.store.put("truth", read_truth(table))
    runner.fit("single/memory", IN_MEMORY)
    for memory in (SMALL, LARGE):
        runner.fit(f"single/{memory}", BY_BLOCKS, memory=memory)


def run_cluster(runner: Runner) -> None:
    """Fit with one worker process, and with two."""
    for workers in (1, WORKERS):
        runner.fit(f"cluster/{workers}", BY_BLOCKS, memory=LARGE, workers=workers)


def run_kill(runner: Runner) -> None:
    """Fit with two workers, one of which is killed at a third of the way."""
    whole = runner.fit(f"cluster/{WORKERS}", BY_BLOCKS, memory=LARGE, workers=WORKERS)
    if whole["status"] == "ok":
        runner.fit(
            f"kill/{WORKERS}",
            BY_BLOCKS,
            memory=LARGE,
            workers=WORKERS,
            kill_after=round(KILL_AT * whole["wall"], 2),
        )


def run_peers(runner: Runner) -> None:
    """Fit the peers, and our path, on a cluster of two workers."""
    sizes = runner.sizes
    table = runner.table(sizes.peer_rows, sizes.columns)
    shared = {"workers": WORKERS, "size": sizes.path}
    runner.fit(f"peers/{OURS}", BY_BLOCKS, table=table, memory=LARGE, **shared)
    for peer in peers.FITS:
        if not peers.is_installed(peer):
            found = runner.store.content.get("scale", {})
            runner.store.put("scale", found | {f"peers/{peer}": {"status": "absent"}})
            runner.console.print(f"{f'peers/{peer}':<28} not installed", highlight=False)
            continue
        order = {"job": "peer", "peer": peer, "table": describe_table(table)}
        more = {"test_rows": sizes.test_rows, "limit": runner.limit}
        # The limit is for reading and fitting; starting the cluster and the warm-up come before.
        runner.run(f"peers/{peer}", order | shared | more, runner.limit + START)


def run_expression(runner: Runner) -> None:
    """Fit a path of genes to the sparse panel, by blocks and as one matrix."""
    sizes = runner.sizes
    panel = prepare_panel(sizes.cells, sizes.genes, runner.folder)
    place = {"folder": str(panel.folder), "cells": panel.cells, "genes": panel.genes}
    for how in (BY_BLOCKS, IN_MEMORY):
        order = {"job": "panel", "panel": place, "how": how, "size": sizes.gene_path}
        runner.run(f"expression/{how}", order)


def run_norm(runner: Runner) -> None:
    """Fit l2,1 at a tenth of ``alpha_max``, in memory and by blocks."""
    table = runner.table(runner.sizes.rows, runner.sizes.columns)
    scale = find_scale(table)
    runner.store.put("null_loss", scale["null_loss"])
    alpha = SHARE_OF_ALPHA_MAX * scale["alpha_max"]
    runner.fit("norm/memory", IN_MEMORY, learner="norm", alpha=alpha)
    runner.fit(f"norm/{LARGE}", BY_BLOCKS, learner="norm", alpha=alpha, memory=LARGE)


def run_growth(runner: Runner) -> None:
    """Fit by blocks with growing numbers of rows, and of columns."""
    sizes = runner.sizes
    few = sizes.rows // 10
    for rows in (few, 3 * few, sizes.rows):
        table = runner.table(rows, sizes.columns)
        runner.fit(f"growth/rows/{rows}", BY_BLOCKS, table=table, memory=LARGE)
    for columns in (sizes.columns, 3 * sizes.columns, 10 * sizes.columns):
        table = runner.table(few, columns)
        runner.fit(f"growth/columns/{columns}", BY_BLOCKS, table=table, memory=LARGE)


PARTS: dict[str, Callable[[Runner], None]] = {
    "single": run_single,
    "cluster": run_cluster,
    "kill": run_kill,
    "peers": run_peers,
    "expression": run_expression,
    "norm": run_norm,
    "growth": run_growth,
}
QUICK_PARTS = ("single", "cluster", "norm")
