"""Tables of row blocks: data that need not fit into memory, and sums over their rows."""

from __future__ import annotations

import copy
import itertools
import os
import secrets
import weakref
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mixnorm._chunks import blocks as split_rows
from mixnorm._memory import as_bytes
from mixnorm._numbers import check_count
from mixnorm.data.blocks.executors import Executor, as_executor
from mixnorm.data.blocks.kept import (
    KeptRows,
    RowRecipe,
    TargetRecipe,
    find_kept,
    join_columns,
)
from mixnorm.data.blocks.order import PickRows, draw_rows, read_ahead
from mixnorm.data.blocks.sources import ALL_COLUMNS, ColumnChoice, Meter, Request, Source
from mixnorm.data.blocks.sums import Combine, Subtree, TreeSum, add, join_rows

# Rows of a block, and the most bytes of a dense one: tasks hold a few blocks each.
_BLOCK_ROWS, _BLOCK_BYTES = 1 << 16, 1 << 26
# Share of the memory for rows that are kept; the rest is for blocks at work, samples and results.
_SHARE_KEPT = 0.4
# Share of the memory for rows that travel to a worker with a task.
_SHARE_SENT = 0.125


@dataclass(frozen=True, eq=False)
class Block:
    """A block of rows, as the functions of a sum see it."""

    #: The number of the block, and its rows.
    number: int
    rows: slice
    #: The columns that were asked for: an array, or a CSR matrix.
    X: Any
    #: The targets, as the recipe makes them, or as they are in the source.
    y: Any
    #: The weights of the rows; None where the table has none.
    weight: np.ndarray | None
    #: The rows that the recipe makes, one per key.
    made: Any
    #: The rows of the arrays that were given beside the table.
    beside: tuple[np.ndarray, ...] = ()
    #: The codes that their recipe makes, one row per key.
    codes: Any = None

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self.rows.stop - self.rows.start)


@dataclass(frozen=True, eq=False)
class _Task:
    """A part of a sum: a function of some consecutive blocks."""

    source: Source
    function: Callable[[Block], Any]
    combine: Combine
    blocks: tuple[slice, ...]
    first: int
    columns: ColumnChoice
    target: TargetRecipe | bool
    recipe: RowRecipe | None
    token: str
    limit: int
    folder: str | None
    beside: tuple[np.ndarray, ...] = ()
    codes: RowRecipe | None = None

    @property
    def rows(self) -> slice:
        """The rows of the blocks."""
        return slice(self.blocks[0].start, self.blocks[-1].stop)

    def to_send(self) -> _Task:
        """Return the task as it travels to a worker."""
        return replace(self, source=self.source.part(self.rows))

    def with_rows(self, request: Request) -> tuple[_Task, list[Any]]:
        """Return the task with rows for a worker, and Dask objects to compute for it."""
        source, inputs = self.source.deliver(self.rows, request)
        return replace(self, source=source), inputs

    def receive(self, values: list[Any]) -> _Task:
        """Return the task with the computed values of these objects."""
        return replace(self, source=self.source.receive(values))

    def largest_request(self) -> Request:
        """Return a request for all that the task may need, whatever a worker keeps."""
        columns = self.columns
        for recipe in (self.recipe, self.codes):
            if recipe is not None and len(recipe.keys):
                made = np.asarray(recipe.columns(recipe.keys), dtype=np.intp)
                columns = join_columns(columns, made)
        return Request(columns, bool(self.target), self.source.has_weight)


@dataclass
class _Reads:
    """What has been read of a table."""

    bytes_read: int = 0
    full: int = 0


@dataclass(frozen=True, eq=False)
class _PartialSum:
    """The result of a task, and the bytes it read from files."""

    subtrees: list[Subtree]
    bytes_read: int


def run_task(task: _Task) -> _PartialSum:
    """Compute a part of a sum."""
    kept = find_kept(task.token, task.limit, task.folder)
    numbers = range(task.first, task.first + len(task.blocks))
    made, codes = (
        KeptRows(recipe, kept, kind, numbers)
        for recipe, kind in ((task.recipe, "rows"), (task.codes, "codes"))
    )
    # Targets are kept as a recipe makes them; without one they are read for each sum.
    target = None if isinstance(task.target, bool) else task.target
    name = None if target is None else ("target", target.key)
    want_target = bool(task.target)
    if name is not None and all(kept.block(each).find(name) is not None for each in numbers):
        want_target = False
    want_weight = task.source.has_weight and any(
        kept.block(each).find("weight") is None for each in numbers
    )
    columns = codes.add_columns(made.add_columns(task.columns))
    request = Request(columns, want_target, want_weight)
    meter, tree = Meter(), TreeSum(task.combine)
    found = iter(()) if request.nothing else task.source.scan(task.blocks, request, meter)
    for number, rows in zip(numbers, task.blocks, strict=True):
        here = kept.block(number)
        read = None if request.nothing else next(found)
        X, y, weight = (None, None, None) if read is None else read
        if target is not None:
            y = here.keep_named(name, partial(_make_target, target, y))
        if task.source.has_weight:
            weight = here.keep_named("weight", partial(np.asarray, weight))
        rows_made, codes_made = made.take(number, X), codes.take(number, X)
        given = _given_columns(X, task.columns)
        start = task.blocks[0].start
        beside = tuple(each[rows.start - start : rows.stop - start] for each in task.beside)
        block = Block(number, rows, given, y, weight, rows_made, beside, codes_made)
        value = task.function(block)
        tree.push(Subtree(0, number, value))
    return _PartialSum(tree.subtrees, meter.bytes_read)


@dataclass(frozen=True, eq=False)
class _AsList:
    """A function whose values are lists of one, so that a sum joins them."""

    function: Callable[[Block], Any]

    def __call__(self, block: Block) -> list[Any]:
        return [self.function(block)]


def _make_target(recipe: TargetRecipe, y: Any) -> np.ndarray:
    return recipe.make(y)


def _given_columns(X: Any, columns: ColumnChoice) -> Any:
    """Return the columns of a block that the function asked for."""
    if columns is None:
        return None
    return X if isinstance(columns, slice) or X.shape[1] == len(columns) else X[:, : len(columns)]


class BlockTable:
    """A table as an ordered sequence of row blocks.

    :func:`read_parquet` and :func:`from_arrays` make one. Estimators that work by blocks take it in
    place of ``X``, with its own targets and weights.

    Parameters
    ----------
    source : Source
        Where the rows come from.
    block_rows : int, optional
        Rows of a block; 65,536 by default, or fewer for tables with many columns. Sums depend on it
        in their last bits, but not on the executor or the memory.
    memory : int or str
        Memory for rows, such as ``"1 GiB"``; each process of a cluster may use this much.
    executor : int, dask.distributed.Client, str or None
        What computes the sums: a number of threads of this process, or a Dask cluster, given by its
        client or by the address of its scheduler. None takes the active client if there is one, and
        else a thread per processor.
    folder : path-like, optional
        Where to put files of rows that do not fit into memory; by default the system's folder for
        temporary files.
    checkpoint : path-like, optional
        A file that ShareBoost writes after each round. The same call then goes on from it. Other
        learners do not write it.
    """

    def __init__(
        self,
        source: Source,
        *,
        block_rows: int | None = None,
        memory: int | str = "2 GiB",
        executor: Any = None,
        folder: str | None = None,
        checkpoint: str | None = None,
    ) -> None:
        if block_rows is not None:
            check_count("block_rows", block_rows, other=" or None")
        for name, path in (("folder", folder), ("checkpoint", checkpoint)):
            if not (path is None or isinstance(path, str | os.PathLike)):
                raise TypeError(f"{name}={path!r} must be a path, got {type(path).__name__}.")
            if path is not None and not os.fspath(path):
                raise ValueError(f"{name}={path!r} is empty; name a path, or leave it out.")
        self.source, self.memory = source, as_bytes(memory)
        self.block_rows = _default_rows(source) if block_rows is None else int(block_rows)
        self.folder, self.checkpoint, self._executor = folder, checkpoint, executor
        self.shape = source.n_rows, source.n_features
        self.dtype, self.sparse, self.names = source.dtype, source.sparse, source.names
        self.ndim = 2
        self._blocks = list(split_rows(source.n_rows, self.block_rows))
        self._reads = _Reads()
        #: Called with the number of finished blocks and of all blocks, while a sum is under way.
        self.on_progress: Callable[[int, int], None] | None = None
        self._token = secrets.token_hex(8)
        self._finalizer: Any = None

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"BlockTable(shape={self.shape}, n_blocks={self.n_blocks})"

    def __array__(self, *args: Any, **options: Any) -> np.ndarray:
        # Without this NumPy would make an array of one object, over which others stumble later.
        raise TypeError(
            "A table of row blocks is not an array, and may be larger than memory. Learners that "
            "work on blocks take it in fit(table); for anything else draw some rows: "
            "X, y, weight = table.sample(10_000, random_state=0)."
        )

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self._blocks)

    @property
    def blocks(self) -> list[slice]:
        """The rows of each block."""
        return list(self._blocks)

    @property
    def bytes_read(self) -> int:
        """Bytes read from files, by all sums so far."""
        return self._reads.bytes_read

    @property
    def full_reads(self) -> int:
        """Number of sums so far that read all columns."""
        return self._reads.full

    def executor(self) -> Executor:
        """Return the executor that computes the sums."""
        return as_executor(self._executor)

    def sum(
        self,
        function: Callable[[Block], Any],
        *,
        columns: ColumnChoice = None,
        target: TargetRecipe | bool = False,
        recipe: RowRecipe | None = None,
        combine: Combine = add,
        beside: tuple[np.ndarray, ...] = (),
        codes: RowRecipe | None = None,
    ) -> Any:
        """Return the sum of a function over all blocks, added up in a fixed tree.

        Parameters
        ----------
        function : callable
            Takes a :class:`Block` and returns numbers, arrays, or tuples of them. It depends on
            nothing else, and can be pickled.
        columns : array of int, slice(None) or None
            The columns of the table that the function reads.
        target : TargetRecipe or bool
            Whether the function reads targets, and in what form.
        recipe : RowRecipe, optional
            Rows for ``Block.made``, which are kept for later sums.
        combine : callable
            Adds two values, of which the first comes from earlier rows.
        beside : tuple of arrays
            Arrays by row, in the memory of the caller, of which each block gets its own rows.
        codes : RowRecipe, optional
            Rows of another type for ``Block.codes``, such as bytes; they are kept too.
        """
        tree = TreeSum(combine)
        self._reads.full += isinstance(columns, slice)
        for subtrees in self._run(function, columns, target, recipe, combine, beside, codes):
            tree.extend(subtrees)
        return tree.total()

    def scan(
        self,
        function: Callable[[Block], Any],
        *,
        columns: ColumnChoice = None,
        target: TargetRecipe | bool = False,
        beside: tuple[np.ndarray, ...] = (),
    ) -> Iterator[tuple[slice, Any]]:
        """Yield the rows of each block and the value of a function there, in order.

        Parameters are those of :meth:`sum`.
        """
        values: Iterator[Any] = itertools.chain.from_iterable(
            subtree.value
            for subtrees in self._run(_AsList(function), columns, target, None, add, beside)
            for subtree in subtrees
        )
        yield from zip(self._blocks, values, strict=True)

    def _run(
        self,
        function: Callable[[Block], Any],
        columns: ColumnChoice,
        target: TargetRecipe | bool,
        recipe: RowRecipe | None,
        combine: Combine,
        beside: tuple[np.ndarray, ...],
        codes: RowRecipe | None = None,
    ) -> Iterator[list[Subtree]]:
        """Yield the subtrees of each task, in order."""
        executor = self.executor()
        tasks = self._make_tasks(
            executor, self._ranges(executor), function, columns, target, recipe, combine, beside,
            codes,
        )  # fmt: skip
        done = 0
        for task, found in zip(tasks, executor.run(run_task, tasks), strict=True):
            self._reads.bytes_read += found.bytes_read
            done += len(task.blocks)
            if self.on_progress is not None:
                self.on_progress(done, self.n_blocks)
            yield found.subtrees

    def iterate(self, columns: ColumnChoice = ALL_COLUMNS, target: bool = False) -> Iterator[Block]:
        """Yield the blocks in order, while the next one is read.

        At most a few are in memory. On a cluster its workers read them, a few ahead.

        Parameters
        ----------
        columns : array of int, slice(None) or None
            The columns to read.
        target : bool
            Whether to read targets.

        Yields
        ------
        Block
            With the weights, where the table has them.
        """
        for blocks, bytes_read in read_ahead(self._read(columns, target)):
            self._reads.bytes_read += bytes_read
            for block in blocks:
                yield block
                if self.on_progress is not None:
                    self.on_progress(block.number + 1, self.n_blocks)

    def _read(
        self, columns: ColumnChoice, target: bool
    ) -> Generator[tuple[list[Block], int], None, None]:
        """Yield a few blocks at a time, in order, and the bytes read from files for them."""
        executor = self.executor()
        if executor.remote:
            step = min(executor.n_workers, _MOST_AHEAD)
            ranges = self.source.ranges(self._blocks, step)
            tasks = self._make_tasks(executor, ranges, _AsList(_keep_block), columns, target)
            for start in range(0, len(tasks), step):
                # All at once: a run that waits for its caller would take workers for slow.
                parts = list(executor.run(run_task, tasks[start : start + step]))
                subtrees = itertools.chain.from_iterable(part.subtrees for part in parts)
                blocks = [block for subtree in subtrees for block in subtree.value]
                yield blocks, sum(part.bytes_read for part in parts)
            return
        meter, seen = Meter(), 0
        request = Request(columns, target, self.source.has_weight)
        for number, found in enumerate(self.source.scan(self._blocks, request, meter)):
            yield [Block(number, self._blocks[number], *found, None)], meter.bytes_read - seen
            seen = meter.bytes_read

    def sample(self, n: int, random_state: Any = None) -> tuple[Any, Any, Any]:
        """Return some rows in memory, drawn without replacement.

        They are the same for any executor and any size of blocks.

        Parameters
        ----------
        n : int
            Number of rows.
        random_state : int, numpy.random.Generator or None
            Decides which rows are drawn.

        Returns
        -------
        X, y, weight : arrays
            The rows, in the order of the table, with their targets and weights; None where the
            table has none.
        """
        rows = draw_rows(self.shape[0], n, random_state)
        found: tuple[Any, Any, Any] = self.sum(
            PickRows(rows), columns=ALL_COLUMNS, target=self.source.has_target, combine=join_rows
        )
        return found

    def _make_tasks(
        self,
        executor: Executor,
        ranges: list[range],
        function: Callable[[Block], Any],
        columns: ColumnChoice,
        target: TargetRecipe | bool,
        recipe: RowRecipe | None = None,
        combine: Combine = add,
        beside: tuple[np.ndarray, ...] = (),
        codes: RowRecipe | None = None,
    ) -> list[_Task]:
        """Return the tasks of a sum, one for each range of blocks."""
        limit = max(1, int(_SHARE_KEPT * self.memory))
        whole = _Task(
            self.source, function, combine, (), 0, columns, target, recipe, self._token, limit,
            self.folder, (), codes,
        )  # fmt: skip
        tasks = []
        for part in ranges:
            rows = self._blocks[part.start : part.stop]
            here = tuple(each[rows[0].start : rows[-1].stop] for each in beside)
            tasks.append(replace(whole, blocks=tuple(rows), first=part.start, beside=here))
        if self._finalizer is None:
            self._finalizer = weakref.finalize(self, executor.forget, self._token)
        return tasks

    def _ranges(self, executor: Executor) -> list[range]:
        """Return the blocks of each task: those that the source reads together, or more."""
        n_workers = executor.n_workers
        ranges = self.source.ranges(self._blocks, n_workers)
        # A few tasks per worker: with many, a cluster would spend its time on handing them out.
        most = (_TASKS_PER_REMOTE_WORKER if executor.remote else _TASKS_PER_WORKER) * n_workers
        step = max(1, -(-len(ranges) // most))
        parts = [ranges[place : place + step] for place in range(0, len(ranges), step)]
        joined = [range(part[0].start, part[-1].stop) for part in parts]
        if not (executor.remote and self.source.sends_rows):
            return joined
        # All rows of a task are in the memory of its worker at once.
        width = max(1, self.source.n_features * self.dtype.itemsize)
        most = max(1, int(_SHARE_SENT * self.memory) // (width * self.block_rows))
        return [
            range(start, min(start + most, part.stop))
            for part in joined
            for start in range(part.start, part.stop, most)
        ]

    def with_source(self, source: Source) -> BlockTable:
        """Return a table of another source with the same blocks and options."""
        return BlockTable(
            source,
            block_rows=self.block_rows,
            memory=self.memory,
            executor=self._executor,
            folder=self.folder,
            checkpoint=self.checkpoint,
        )

    def for_one_fit(self) -> BlockTable:
        """Return the same table, which keeps rows of its own for later sums.

        Fits that use one table after another, or at the same time, then leave nothing behind and do
        not disturb each other. What they read is counted in both tables.
        """
        other = copy.copy(self)
        other._token, other._finalizer = secrets.token_hex(8), None
        return other

    def forget(self) -> None:
        """Drop all rows that are kept for later sums."""
        if self._finalizer is not None:
            self._finalizer()
            self._finalizer = None
        self._token = secrets.token_hex(8)


# Tasks whose blocks a cluster reads ahead, where blocks are wanted in order.
_MOST_AHEAD = 4
# Tasks of a sum for each worker: enough that none waits long for the others at the end. Those of
# other processes cost more to hand out.
_TASKS_PER_WORKER, _TASKS_PER_REMOTE_WORKER = 4, 2


def _keep_block(block: Block) -> Block:
    return block


def _default_rows(source: Source) -> int:
    """Return how many rows a block has if the user does not say."""
    rows = _BLOCK_ROWS
    while rows > 256 and rows * source.row_bytes > _BLOCK_BYTES:
        rows //= 2
    return rows
