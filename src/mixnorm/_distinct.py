"""Distinct rows of tables, and random draws that do not depend on the order of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from mixnorm._array import is_sparse

# Entries of a table that are hashed at a time.
_ENTRIES_HASHED = 2**20


def find_distinct_rows(tables: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the position of one copy of each distinct row, and the distinct row of every row.

    Two rows are equal if they are equal in all tables. Distinct rows are sorted by value, column by
    column. Draws from them are therefore the same for sparse and dense tables, for other units of
    measurement, and for sorted or repeated rows.

    Examples
    --------
    >>> find_distinct_rows([np.array([[2.0], [1.0], [2.0]])])
    (array([1, 0]), array([1, 0, 1]))
    """
    tables = [table.tocsr() if is_sparse(table) else table for table in tables]
    keys = np.zeros(tables[0].shape[0], dtype=np.uint64)
    for number, table in enumerate(tables):
        # Sums of 64-bit hashes wrap around, as they should.
        keys += _hash_rows(table, number)
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    rank = np.zeros(len(first), dtype=np.intp)
    # Rows are ranked by their values, not by their hashes, so that the order does not depend on
    # units: a factor changes every hash and no order.
    for column in _columns([table[first] for table in tables]):
        if column.min() == column.max():
            continue
        order = np.lexsort((column, rank))
        ranks, values = rank[order], column[order]
        steps = (ranks[1:] != ranks[:-1]) | (values[1:] != values[:-1])
        rank[order[1:]], rank[order[0]] = np.cumsum(steps), 0
        if rank[order[-1]] == len(rank) - 1:  # no ties are left for the other columns to break
            break
    order = np.argsort(rank, kind="stable")
    return first[order], np.argsort(order)[which]


def draw_rows(weight: np.ndarray, size: int, generator: np.random.Generator) -> np.ndarray:
    """Draw rows without replacement, heavier ones more likely; return their sorted positions.

    By the exponential clocks of Efraimidis and Spirakis: the first ``size`` clocks to ring win.

    Examples
    --------
    >>> draw_rows(np.array([1e-9, 1.0, 1.0]), 2, np.random.default_rng(0))
    array([1, 2])
    """
    # The first clock to ring is that of row i with probability w_i / sum(w); logarithms keep the
    # order.
    rings = np.log(generator.exponential(size=len(weight))) - np.log(weight)
    return np.sort(np.argsort(rings, kind="stable")[:size])


def _columns(tables: Sequence[Any]) -> Iterator[np.ndarray]:
    """Yield the columns of tables; a table of objects counts as one column, its rows' texts."""
    for table in tables:
        if is_sparse(table):
            by_column = table.tocsc()
            yield from (by_column[:, [j]].toarray()[:, 0] for j in range(table.shape[1]))
        elif table.dtype.kind in "fiub":
            yield from table.T
        else:
            yield np.unique([repr(row) for row in table.tolist()], return_inverse=True)[1]


def _hash_rows(table: Any, seed: int) -> np.ndarray:
    """Return a hash of each row: equal rows have equal hashes, others almost surely not."""
    # An odd factor for each column is invertible modulo 2^64, so that no bit is lost.
    odd = 1 + 2 * np.random.default_rng(seed).integers(2**63, size=table.shape[1], dtype=np.uint64)
    if is_sparse(table):
        # Differences of a running sum are the sums of rows. It wraps around, and so does the
        # difference.
        ends = np.zeros(len(table.data) + 1, dtype=np.uint64)
        np.cumsum(_mix_bits(table.data) * odd[table.indices], out=ends[1:])
        return np.asarray(ends[table.indptr[1:]] - ends[table.indptr[:-1]])
    if table.dtype.kind not in "fiub":
        texts = (repr(row).encode() for row in table.tolist())
        keys = [int.from_bytes(blake2b(text, digest_size=8).digest(), "little") for text in texts]
        return np.asarray(keys, dtype=np.uint64)
    step = max(1, _ENTRIES_HASHED // table.shape[1])
    blocks = [table[start : start + step] for start in range(0, len(table), step)]
    return np.concatenate([np.sum(_mix_bits(block) * odd, axis=1) for block in blocks])


def _mix_bits(values: np.ndarray) -> np.ndarray:
    """Return the bits of numbers, mixed by Vigna's splitmix64; zero stays zero."""
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)  # -0 is 0
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return bits ^ (bits >> np.uint64(31))
