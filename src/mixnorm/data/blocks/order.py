"""Rows of a table in order, block after block, and some rows drawn at random."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from mixnorm._array import check_seed
from mixnorm._numbers import check_count

_Item = TypeVar("_Item")


def read_ahead(items: Generator[_Item, None, None]) -> Iterator[_Item]:
    """Yield items while another thread makes the next one.

    An error comes where its item would. The thread ends with the iteration, also if the caller
    leaves it early.

    Examples
    --------
    >>> list(read_ahead(letter for letter in "abc"))
    ['a', 'b', 'c']
    """
    end = object()
    # Closed last, when the thread has ended.
    with closing(items), ThreadPoolExecutor(1, thread_name_prefix="mixnorm-ahead") as pool:
        waiting = pool.submit(next, items, end)
        try:
            while (found := waiting.result()) is not end:
                waiting = pool.submit(next, items, end)
                yield found  # type: ignore[misc]
        finally:
            waiting.cancel()


@dataclass(frozen=True, eq=False)
class PickRows:
    """A function of blocks that returns some rows: columns, targets and weights.

    Parameters
    ----------
    rows : ndarray of int
        The numbers of the rows in the table, rising.
    """

    rows: np.ndarray

    def __call__(self, block: Any) -> Any:
        """Return the rows that lie in a block; None if there are none."""
        ends = np.searchsorted(self.rows, [block.rows.start, block.rows.stop])
        own = self.rows[slice(*ends)] - block.rows.start
        if not len(own):
            return None
        return tuple(
            None if each is None else each[own] for each in (block.X, block.y, block.weight)
        )


def draw_rows(n_rows: int, n: int, random_state: Any) -> np.ndarray:
    """Return the numbers of ``n`` different rows, rising.

    Examples
    --------
    >>> draw_rows(4, 4, 0).tolist()
    [0, 1, 2, 3]
    """
    check_count("n", n)
    if n > n_rows:
        raise ValueError(f"n={n} rows are to be drawn from {n_rows}; give at most {n_rows}.")
    check_seed(random_state, np.random.Generator)
    # Without a shuffle the numbers of few rows are drawn without a list of all.
    found = np.random.default_rng(random_state).choice(n_rows, n, replace=False, shuffle=False)
    return np.sort(found)
