"""Multisets of rows, and the number of orders of each."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import numpy as np


def multisets(n: int, size: int) -> np.ndarray:
    """Return all multisets of ``size`` out of ``n``, each in ascending order: ``(size, n_sets)``.

    Examples
    --------
    >>> multisets(2, 2)
    array([[0, 0, 1],
           [0, 1, 1]])
    """
    if size == 2:
        return np.stack(np.triu_indices(n))
    # One flat stream of numbers, so that no list of tuples is ever in memory.
    flat = np.fromiter(
        (place for chosen in combinations_with_replacement(range(n), size) for place in chosen),
        dtype=np.int64,
        count=size * math.comb(n + size - 1, size),
    )
    return np.ascontiguousarray(flat.reshape(-1, size).T)


def multiplicities(sets: np.ndarray) -> np.ndarray:
    """Return the number of orders of each multiset, which multiply it in :eq:`tensor-pairs`.

    Examples
    --------
    >>> multiplicities(multisets(2, 3))
    array([1., 3., 3., 1.])
    """
    size, count = sets.shape
    found, run = np.full(count, float(math.factorial(size))), np.ones(count)
    for place in range(1, size):
        # The number of orders is size! divided by the factorial of each run of equal rows. A run of
        # length r is divided by 1, 2, ..., r while it is passed.
        run = np.where(sets[place] == sets[place - 1], run + 1.0, 1.0)
        found /= run
    return found
