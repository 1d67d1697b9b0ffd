"""Partitions of a matrix into blocks, each laid out as a row.

``to_rows`` turns a matrix into a few matrices whose rows are the blocks, and ``from_rows`` turns
them back, so that everything else is written for rows alone. Blocks of similar size share a matrix.
Zeros, which no norm notices, fill up its rows. There are thus at most as many matrices as the size
of the largest block has binary digits, and together they have less than twice as many entries as
the blocks.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from mixnorm._array import Array, device_of, float_limits, is_numpy, namespace, to_numpy
from mixnorm.norms.vectors import concatenate, max_magnitude, power_of_two_below, row_norms

#: The groups of a norm: labels of rows or of entries, the name of a partition, or None for rows.
Groups: TypeAlias = "Array | Sequence[int] | Sequence[Sequence[int]] | str | None"


class Blocks:
    """A partition of matrices of one shape."""

    n_blocks: int

    def to_rows(self, W: Array) -> list[Any]:
        """Return matrices whose rows are the blocks."""
        raise NotImplementedError

    def from_rows(self, parts: Sequence[Array]) -> Any:
        """Return the matrix whose blocks are the rows of the parts."""
        raise NotImplementedError

    def broadcast(self, values: Array) -> Any:
        """Return one value per block as an array that broadcasts against the matrix.

        Values are in the order of the blocks in ``to_rows``. The array has one column where blocks
        are whole rows.
        """
        raise NotImplementedError

    def norms(self, W: Array, p: float) -> Any:
        """Return the ``p``-norms of the blocks, with ``p`` 1, 2 or infinity; they may overflow."""
        return concatenate([row_norms(part, p) for part in self.to_rows(W)])


class RowBlocks(Blocks):
    """Every row of the matrix is a block."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.n_blocks = shape[0]

    def to_rows(self, W: Array) -> list[Any]:
        """Return the matrix itself."""
        return [W]

    def from_rows(self, parts: Sequence[Array]) -> Any:
        """Return the one part."""
        return parts[0]

    def broadcast(self, values: Array) -> Any:
        """Return the values as a column."""
        return values[:, None]


class OutputBlocks(Blocks):
    """Every column of the matrix is a block."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.n_blocks = shape[1]

    def to_rows(self, W: Array) -> list[Any]:
        """Return the transposed matrix."""
        return [W.T]

    def from_rows(self, parts: Sequence[Array]) -> Any:
        """Return the one part, transposed."""
        return parts[0].T

    def broadcast(self, values: Array) -> Any:
        """Return the values as a row."""
        return values[None, :]


class EntryBlocks(Blocks):
    """Every entry is a block: those of a norm with equal exponents, whatever its groups."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self.n_blocks = math.prod(shape)

    def to_rows(self, W: Array) -> list[Any]:
        """Return the entries as one column."""
        return [namespace(W).reshape(W, (-1, 1))]

    def from_rows(self, parts: Sequence[Array]) -> Any:
        """Return the column as a matrix."""
        return self.broadcast(parts[0])

    def broadcast(self, values: Array) -> Any:
        """Return the values as a matrix."""
        return namespace(values).reshape(values, self._shape)


_PLAIN_BLOCKS = {None: RowBlocks, "outputs": OutputBlocks}


class LabelledBlocks(Blocks):
    """Blocks given by labels, of the rows or of all entries."""

    def __init__(self, labels: np.ndarray, shape: tuple[int, ...], like: Array) -> None:
        self._shape, self._by_rows = shape, labels.ndim == 1
        # Labels may be any whole numbers; from here on blocks are numbered from zero.
        _, block, sizes = np.unique(labels.ravel(), return_inverse=True, return_counts=True)
        self.n_blocks = len(sizes)
        # The parts hold the blocks by size class, then by label.
        # Blocks whose sizes have the same number of binary digits share a matrix: its rows are at
        # most twice as long as the shortest block.
        bits = np.ceil(np.log2(sizes)).astype(np.int64)
        order = np.argsort(bits, kind="stable")
        rank = np.empty(len(sizes), np.int64)
        rank[order] = np.arange(len(sizes))
        block, sizes, bits = rank[block], sizes[order], bits[order]
        # The entries by block; the stable sort keeps those of a block in the order of the matrix.
        members = np.argsort(block, kind="stable")
        within = np.arange(len(members)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        xp, device = namespace(like), device_of(like)
        self._takes, self._counts = [], []
        place = np.empty(len(members), np.int64)
        first = offset = 0
        for count in np.unique_counts(bits).counts:
            width = int(sizes[first : first + count].max())
            index = np.full((count, width), len(members))  # beyond the last: a zero
            mine = (block[members] >= first) & (block[members] < first + count)
            inside = (block[members][mine] - first, within[mine])
            index[inside] = members[mine]
            place[members[mine]] = offset + inside[0] * width + inside[1]
            self._takes.append(xp.asarray(index.ravel(), device=device))
            self._counts.append(int(count))
            first, offset = first + int(count), offset + int(count) * width
        self._place = xp.asarray(place, device=device)
        self._block = xp.asarray(block, device=device)

    def to_rows(self, W: Array) -> list[Any]:
        """Gather the blocks; a zero, or a row of zeros, fills them up."""
        xp = namespace(W)
        flat = W if self._by_rows else xp.reshape(W, (-1, 1))
        zero = xp.zeros((1, flat.shape[1]), dtype=flat.dtype, device=device_of(flat))
        flat = xp.concat([flat, zero], axis=0)
        return [
            xp.reshape(xp.take(flat, take, axis=0), (count, -1))
            for take, count in zip(self._takes, self._counts, strict=True)
        ]

    def from_rows(self, parts: Sequence[Array]) -> Any:
        """Put the entries back where they came from."""
        xp = namespace(parts[0])
        width = self._shape[1] if self._by_rows else 1
        flat = xp.concat([xp.reshape(part, (-1, width)) for part in parts], axis=0)
        return xp.reshape(xp.take(flat, self._place, axis=0), self._shape)

    def norms(self, W: Array, p: float) -> Any:
        """Return the norms of the blocks; for blocks of whole rows, the norms of row norms."""
        return super().norms(row_norms(W, p)[:, None] if self._by_rows else W, p)

    def broadcast(self, values: Array) -> Any:
        """Return the values at the blocks of the rows, or of the entries."""
        found = namespace(values).take(values, self._block)
        return found[:, None] if self._by_rows else namespace(values).reshape(found, self._shape)


def block_norms(blocks: Blocks, W: Array, p: float) -> tuple[Any, float]:
    """Return the ``p``-norms of the blocks of ``W / unit``, and the power of two ``unit``.

    The unit is one unless squares or sums might overflow or vanish.
    """
    xp = namespace(W)
    if math.prod(W.shape) == 0:
        zeros = xp.zeros((blocks.n_blocks,), dtype=W.dtype, device=device_of(W))
        return zeros, 1.0
    with np.errstate(over="ignore", under="ignore"):
        norms = blocks.norms(W, p)
    # Between these bounds the squares of the largest norm keep all their digits.
    limits = float_limits(W)
    least = math.sqrt(limits.smallest_normal) / limits.eps
    largest = math.sqrt(limits.max) * limits.eps
    if least < float(norms.max() if is_numpy(norms) else xp.max(norms)) < largest:
        return norms, 1.0
    size = max_magnitude(W)
    if not 0.0 < size < math.inf:
        return norms, 1.0
    unit = power_of_two_below(size)
    return blocks.norms(W / unit, p), unit


class BlockCache:
    """The blocks that a norm has found, by groups and shape of the array."""

    def __init__(self) -> None:
        self._groups: Any = None
        self._copy: Any = None
        self._known: dict[Any, Blocks] = {}

    def find(self, groups: Groups, W: Array) -> Blocks:
        """Return the blocks of ``groups`` for arrays like ``W``."""
        shape = tuple(W.shape)
        if groups is None or isinstance(groups, str):
            return build_plain_blocks(groups, shape)
        if self._groups is not groups or not groups_are_equal(self._copy, groups):
            # The copy shows whether the user has changed the labels in place since they were read.
            self._groups, self._copy, self._known = groups, copy.deepcopy(groups), {}
        # Index arrays live in the namespace and on the device of the data.
        key = (shape, namespace(W), device_of(W))
        if key not in self._known:
            self._known[key] = LabelledBlocks(check_labels(groups, shape), shape, W)
        return self._known[key]


def build_plain_blocks(groups: str | None, shape: tuple[int, ...]) -> Blocks:
    """Return the blocks that are rows or columns."""
    if groups not in _PLAIN_BLOCKS:
        raise ValueError(f"groups={groups!r} is not known; use 'outputs', labels or None.")
    return _PLAIN_BLOCKS[groups](shape)


def check_labels(groups: Groups, shape: tuple[int, ...]) -> np.ndarray:
    """Return labels as integers of shape ``(n_features,)`` or ``(n_features, n_outputs)``."""
    try:
        labels = to_numpy(groups)
    except (TypeError, ValueError):
        labels = np.empty(0, object)
    if labels.size and labels.dtype.kind not in "iu":
        raise TypeError(f"groups must be whole numbers, got {labels.dtype}. Number the groups.")
    if labels.shape not in (shape[:1], shape):
        raise ValueError(
            f"groups has shape {labels.shape}, but the array has shape {shape}; give one label per "
            f"row {shape[:1]} or one per entry {shape}."
        )
    return labels


def count_blocks(groups: Groups, shape: tuple[int, ...]) -> int:
    """Return the number of blocks of arrays of a shape."""
    if groups is None or isinstance(groups, str):
        return build_plain_blocks(groups, shape).n_blocks
    return len(np.unique(check_labels(groups, tuple(shape))))


def has_row_blocks(groups: Groups) -> bool:
    """Tell whether blocks are whole rows: no groups, or one label per row."""
    if groups is None or isinstance(groups, str):
        return groups is None
    n_axes = getattr(groups, "ndim", None)
    return n_axes == 1 if n_axes is not None else np.ndim(groups[:1]) == 1


def groups_are_equal(first: Groups, second: Groups) -> bool:
    """Tell whether two groups are the same, compared as arrays where one is an array."""
    if first is second:
        return True
    if any(getattr(groups, "shape", None) is not None for groups in (first, second)):
        if any(groups is None or isinstance(groups, str) for groups in (first, second)):
            return False
        return np.array_equal(to_numpy(first), to_numpy(second))
    return bool(first == second)
