"""Work in parts: short calls of compiled loops, so that an interrupt gets through, and blocks."""

from __future__ import annotations

from collections.abc import Iterator

# Operations per thread and call: some tenths of a second, far longer than a call itself takes.
_OPERATIONS_PER_CALL = 1 << 26


def chunk_size(n_items: int, operations: int, *, parallel: bool = False) -> int:
    """Return how many items a compiled loop can process at once in less than a second.

    Parameters
    ----------
    n_items : int
        Number of items.
    operations : int
        Operations per item, such as additions of numbers read from memory.
    parallel : bool, default=False
        Whether the loop shares its items among the threads that numba may currently use.

    Examples
    --------
    >>> chunk_size(1000, 10), chunk_size(1000, 10**6)
    (1000, 67)
    """
    threads = 1
    if parallel:
        from numba import get_num_threads

        threads = get_num_threads()
    return min(n_items, threads * max(1, _OPERATIONS_PER_CALL // max(1, operations)))


def chunks(n_items: int, operations: int, *, parallel: bool = False) -> Iterator[slice]:
    """Return slices that cover all items, each as long as :func:`chunk_size` allows.

    Examples
    --------
    >>> list(chunks(100, 10**6))
    [slice(0, 67, None), slice(67, 100, None)]
    """
    return blocks(n_items, max(1, chunk_size(n_items, operations, parallel=parallel)))


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
