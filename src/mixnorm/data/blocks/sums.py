"""Sums over the row blocks of a table, added up in a fixed tree.

The blocks are the leaves of a binary tree that depends on their number alone. Whoever computes a
part of the sum returns the sums of whole subtrees, and these are combined in the order of the tree.
The result is therefore the same to the last bit, whatever the number of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

Combine = Callable[[Any, Any], Any]


class Subtree(NamedTuple):
    """The sum of ``2**level`` blocks from number ``place * 2**level`` on."""

    level: int
    place: int
    value: Any


def add(left: Any, right: Any) -> Any:
    """Add numbers, arrays, or tuples of them; None adds nothing.

    Examples
    --------
    >>> add((1.0, None), (2.0, 5.0))
    (3.0, 5.0)
    """
    if left is None or right is None:
        return right if left is None else left
    if isinstance(left, tuple):
        return tuple(add(one, other) for one, other in zip(left, right, strict=True))
    return left + right


class TreeSum:
    """Collects the values of blocks or subtrees, which must come in rising order.

    Examples
    --------
    >>> tree = TreeSum(lambda left, right: f"({left}{right})")
    >>> for place, value in enumerate("abcde"):
    ...     tree.push(Subtree(0, place, value))
    >>> tree.total()
    '(((ab)(cd))e)'
    """

    def __init__(self, combine: Combine = add) -> None:
        self._combine = combine
        #: Sums of subtrees, each as large as it can be.
        self.subtrees: list[Subtree] = []

    def push(self, subtree: Subtree) -> None:
        """Add the next subtree; full pairs of subtrees become one."""
        found = self.subtrees
        found.append(subtree)
        while len(found) > 1:
            left, right = found[-2:]
            # A left half has an even place among the subtrees of its level.
            if left.level != right.level or left.place % 2 or right.place != left.place + 1:
                return
            value = self._combine(left.value, right.value)
            found[-2:] = [Subtree(left.level + 1, left.place // 2, value)]

    def extend(self, subtrees: Iterable[Subtree]) -> None:
        """Add subtrees in turn."""
        for subtree in subtrees:
            self.push(subtree)

    def total(self) -> Any:
        """Return the sum of all: what is left over is added from the smallest subtree up."""
        values = [subtree.value for subtree in self.subtrees]
        if not values:
            return None
        total = values.pop()
        while values:
            total = self._combine(values.pop(), total)
        return total


def join_rows(left: Any, right: Any) -> Any:
    """Join arrays or sparse matrices by rows, also inside tuples; None has no rows."""
    if left is None or right is None:
        return right if left is None else left
    if isinstance(left, tuple):
        return tuple(join_rows(one, other) for one, other in zip(left, right, strict=True))
    if isinstance(left, np.ndarray):
        return np.concatenate([left, right])
    import scipy.sparse as sp

    return sp.vstack([left, right], format="csr")
