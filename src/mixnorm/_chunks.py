"""Work in chunks, so that compiled loops return to Python, and to an interrupt, often enough."""

from __future__ import annotations

from collections.abc import Iterator

# Operations of one thread in one call: some tenths of a second, and far more than a call costs.
_OPERATIONS = 1 << 26


def chunk_size(n_items: int, operations: int, *, parallel: bool = False) -> int:
    """Return how many of the items a compiled loop takes at once, in less than a second.

    Parameters
    ----------
    n_items : int
        Number of items.
    operations : int
        What one item takes, such as additions of numbers that are read from memory.
    parallel : bool, default=False
        Whether the loop shares its items among the threads that numba may use now.

    Examples
    --------
    >>> chunk_size(1000, 10), chunk_size(1000, 10**6)
    (1000, 67)
    """
    threads = 1
    if parallel:
        from numba import get_num_threads

        threads = get_num_threads()
    return min(n_items, threads * max(1, _OPERATIONS // max(1, operations)))


def chunks(n_items: int, operations: int, *, parallel: bool = False) -> Iterator[slice]:
    """Yield slices of so many items as :func:`chunk_size` says, which cover all of them.

    Examples
    --------
    >>> list(chunks(100, 10**6))
    [slice(0, 67, None), slice(67, 100, None)]
    """
    step = chunk_size(n_items, operations, parallel=parallel)
    for start in range(0, n_items, max(1, step)):
        yield slice(start, min(start + step, n_items))
