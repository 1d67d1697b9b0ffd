"""A training table in Parquet files, which is read block by block, and a sample of its rows."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from mixnorm._memory import format_bytes
from mixnorm.cli.arguments.parser import UsageError
from mixnorm.cli.blocks.files import name_table
from mixnorm.cli.blocks.reading import ReadingLine
from mixnorm.cli.data import TrainingTable, check_row_count, check_values_differ, explain_no_columns
from mixnorm.cli.pools import check_size
from mixnorm.cli.screen import Screen
from mixnorm.data import BlockTable, Source
from mixnorm.exceptions import TableError
from mixnorm.tables import (
    EncodedRows,
    FileRows,
    describe_encoding,
    find_name,
    join_names,
    plan_blocks,
    plan_target,
)

_DEFAULT_MEMORY = "2 GiB"
# The share of the memory for the sample of rows, of which folds take copies, and its most rows.
_SHARE_OF_SAMPLE, _MOST_ROWS_SAMPLED = 1 / 16, 200_000
_LEAST_ROWS_SAMPLED = 2_000
_POOLS = ("columns", "stumps", "products")


@dataclass
class LargeTable(TrainingTable):
    """A table of blocks, with a sample of its rows as ``X``, ``y`` and ``weight``.

    Parameters
    ----------
    table : BlockTable
        All rows.
    """

    table: Any = None

    @property
    def n_rows(self) -> int:
        """Number of rows of the whole table."""
        return int(self.table.shape[0])


def load_large_table(
    options: argparse.Namespace, paths: Sequence[str], screen: Screen
) -> LargeTable:
    """Plan the columns of a table in files, and draw a sample of its rows."""
    _check_options(options)
    name = name_table(options.files)
    files = FileRows.open(paths, drop=options.drop)
    if options.target is None:
        shown = ", ".join(files.names[:12])
        raise UsageError(f"--target is missing; {name} has the columns {shown}")

    def find(column: str) -> str:
        return find_name(files.names, column, name)

    if not files.n_rows:
        raise TableError(f"{name} has no rows.")
    wanted, weight = find(options.target), options.weight and find(options.weight)
    numbers, categories = map(find, options.number), map(find, options.category)
    with ReadingLine(screen) as line:
        make = _make_tables(options, line)
        line.name("reading the target")
        target = plan_target(files, make, wanted, options.task, weight)
        check_row_count(target.rows.n_rows, name)
        check_values_differ(target.values, wanted, target.task)
        line.name("looking at the columns")
        others = [column for column in files.names if column not in (wanted, weight)]
        plan = plan_blocks(
            target.rows.select(others), make,
            numbers=list(numbers), categories=list(categories),
        )  # fmt: skip
        encoder = plan.encoder
        if not encoder.columns:
            raise TableError(explain_no_columns(name, wanted, encoder))
        if options.pool == "products":
            check_size(options.pool, target.rows.n_rows, encoder.width)
        table = make(EncodedRows(target.rows, encoder, target.reader, target.weight))
        table.checkpoint = options.checkpoint
        line.name("drawing a sample of rows")
        X, y, given = table.sample(_count_rows(table), random_state=0)
    notes = describe_encoding(
        encoder, plan.gaps, table.shape[0], together=options.pool == "columns"
    )
    notes = [*target.notes, *notes, *plan.notes, *_describe_sample(table, len(y))]
    return LargeTable(
        name, wanted, target.task, np.asfortranarray(X), y, given, encoder, notes, options.pool,
        table,
    )  # fmt: skip


def _check_options(options: argparse.Namespace) -> None:
    """Raise for options that do not work with blocks, and for a cluster that does not answer."""
    if options.pool not in _POOLS:
        raise UsageError(
            f"--pool {options.pool} needs the table in memory; give one file without --memory, "
            f"--cluster and --checkpoint, or choose from {join_names(_POOLS)}"
        )
    if options.cluster is None:
        return
    if "://" not in options.cluster:
        raise UsageError(
            f"--cluster {options.cluster} is not the address of a Dask scheduler, such as "
            "tcp://127.0.0.1:8786"
        )
    if find_spec("distributed") is None:
        raise TableError(
            '--cluster needs Dask, which is not installed: pip install "mixnorm[dask]"'
        )


def _make_tables(options: argparse.Namespace, line: ReadingLine) -> Callable[[Source], BlockTable]:
    """Return a function that makes tables of blocks whose progress is shown."""

    def make(source: Source) -> BlockTable:
        memory = options.memory or _DEFAULT_MEMORY
        table = BlockTable(source, memory=memory, executor=options.cluster)
        line.follow(table)
        return table

    if options.cluster is not None:
        make(FileRows([], {}, {})).executor()  # connects, or says why not
    return make


def _count_rows(table: BlockTable) -> int:
    """Return the number of rows of the sample."""
    each = max(1, table.shape[1]) * table.dtype.itemsize
    most = int(_SHARE_OF_SAMPLE * table.memory) // each
    return min(table.shape[0], _MOST_ROWS_SAMPLED, max(_LEAST_ROWS_SAMPLED, most))


def _describe_sample(table: BlockTable, rows: int) -> list[str]:
    """Return a sentence about what is measured on a sample, unless it has all rows."""
    if rows == table.shape[0]:
        return []
    note = (
        f"Held-out errors, effects and comparisons are those of {rows:,} of {table.shape[0]:,} "
        "rows, drawn at random; features, weights and training losses are those of all rows."
    )
    return [note]


def describe_reading(data: LargeTable) -> str:
    """Return a sentence about what a fit has read."""
    blocks = data.table.n_blocks
    return (
        f"{data.n_rows:,} rows in {blocks:,} {'block' if blocks == 1 else 'blocks'}; "
        f"{format_bytes(data.table.bytes_read)} read from files during the fit."
    )
