"""Work in parts: blocks of rows, and compiled loops, whose parts several threads share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Event

# Operations per call: some tenths of a second, so that an interrupt gets through.
_OPERATIONS_PER_CALL = 1 << 26
# Fewer operations take no longer than it takes to wake another thread.
_OPERATIONS_FOR_THREADS = 1 << 20
# Parts are of unequal length; with more of them than threads, no thread waits long for the last.
_PARTS_PER_THREAD = 4


def run_loop(loop: Callable[..., object], *arguments: object, items: int, operations: int) -> None:
    """Run a compiled loop over all items, in parts that threads share.

    Parameters
    ----------
    loop : callable
        Called as ``loop(*arguments, begin, stop)`` for items ``begin`` to ``stop``. What it does
        for one item must not depend on others. It must release Python's global lock (``nogil``).
    *arguments : object
        The first arguments of each call.
    items : int
        Number of items.
    operations : int
        Operations per item, such as additions of numbers read from memory.
    """
    size = chunk_size(items, operations)
    threads = _n_threads() if items * operations >= _OPERATIONS_FOR_THREADS else 1
    if threads > 1:
        # Rounded up, so that there are at most so many parts.
        size = min(size, -(-items // (threads * _PARTS_PER_THREAD)))
    if size == items:
        loop(*arguments, 0, items)
        return
    parts = list(blocks(items, size))
    # One iterator for all threads: each takes the next part when it is done with its last. ``next``
    # of a list iterator is one step for Python, so that no lock is needed.
    waiting, stopped = iter(parts), Event()

    def work() -> None:
        try:
            for part in waiting:
                if stopped.is_set():
                    return
                loop(*arguments, part.start, part.stop)
        except BaseException:
            stopped.set()  # the other threads end with the part that they are at
            raise

    helpers = [_executor().submit(work) for _ in range(min(threads, len(parts)) - 1)]
    try:
        # The calling thread works too: it gets the interrupt.
        work()
    finally:
        for helper in helpers:
            if not helper.cancel():
                helper.result()


def _n_threads() -> int:
    from numba import config

    return int(config.NUMBA_NUM_THREADS)


@cache
def _executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_n_threads(), thread_name_prefix="mixnorm")


# A forked process has none of the threads of its parent.
if os.name == "posix":
    os.register_at_fork(after_in_child=_executor.cache_clear)


def chunk_size(n_items: int, operations: int) -> int:
    """Return how many items a compiled loop can process at once in less than a second.

    Parameters
    ----------
    n_items : int
        Number of items.
    operations : int
        Operations per item, such as additions of numbers read from memory.

    Examples
    --------
    >>> chunk_size(1000, 10), chunk_size(1000, 10**6)
    (1000, 67)
    """
    return min(n_items, max(1, _OPERATIONS_PER_CALL // max(1, operations)))


def chunks(n_items: int, operations: int) -> Iterator[slice]:
    """Return slices that cover all items, each as long as :func:`chunk_size` allows.

    Examples
    --------
    >>> list(chunks(100, 10**6))
    [slice(0, 67, None), slice(67, 100, None)]
    """
    return blocks(n_items, max(1, chunk_size(n_items, operations)))


def blocks(n_items: int, step: int) -> Iterator[slice]:
    """Yield slices of ``step`` items that cover all items; the last one may be shorter."""
    for start in range(0, n_items, step):
        yield slice(start, min(start + step, n_items))


def row_blocks(n_rows: int, entries: int, width: int) -> Iterator[slice]:
    """Yield slices that cover all rows; each block has at most ``entries``, but at least one row.

    Examples
    --------
    >>> list(row_blocks(5, 100, 40))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return blocks(n_rows, max(1, entries // max(1, width)))
