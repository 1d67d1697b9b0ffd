"""Folds of the rows of a table: rows get weight zero, and no row is moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm.data.blocks.sources import Meter, Request, RowBlock, Source
from mixnorm.data.blocks.table import BlockTable


@dataclass(frozen=True)
class Fold:
    """One of several parts of the rows of a table.

    A row belongs to a fold by a hash of its number, whatever the order of the rows.

    Parameters
    ----------
    place, n_folds : int
        The number of the fold, and of all folds.
    inside : bool
        Whether the rows of the fold count, or all others.
    """

    place: int
    n_folds: int
    inside: bool = True

    def others(self) -> Fold:
        """Return the rows of all other folds."""
        return Fold(self.place, self.n_folds, not self.inside)

    def mask(self, rows: slice) -> np.ndarray:
        """Tell which of some rows count."""
        found = _hash_numbers(rows.start, rows.stop) % np.uint64(self.n_folds)
        return np.asarray((found == self.place) == self.inside)


def _hash_numbers(start: int, stop: int) -> np.ndarray:
    """Return the numbers of rows, mixed well (the finaliser of splitmix64)."""
    mixed = np.arange(start, stop, dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed += np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


class FoldSource(Source):
    """A source whose rows outside a fold have weight zero."""

    def __init__(self, source: Source, fold: Fold) -> None:
        self._source, self._fold = source, fold
        self.n_rows, self.n_features = source.n_rows, source.n_features
        self.dtype, self.sparse, self.names = source.dtype, source.sparse, source.names
        self.has_target, self.has_weight = source.has_target, True
        self.sends_rows = source.sends_rows

    @property
    def row_bytes(self) -> int:
        """About how many bytes of memory a row takes."""
        return self._source.row_bytes

    def scan(self, rows: Sequence[slice], request: Request, meter: Meter) -> Iterator[RowBlock]:
        """Yield consecutive blocks of rows."""
        weighted = request.weight and self._source.has_weight
        inner = Request(request.columns, request.target, weighted)
        # Weights alone take no read if the source has none.
        if inner.nothing:
            found: Iterator[RowBlock] = iter([RowBlock(None, None, None)] * len(rows))
        else:
            found = self._source.scan(rows, inner, meter)
        for here, block in zip(rows, found, strict=True):
            weight = None
            if request.weight:
                given = 1.0 if block.weight is None else np.asarray(block.weight, np.float64)
                weight = np.where(self._fold.mask(here), given, 0.0)
            yield RowBlock(block.X, block.y, weight)

    def ranges(self, blocks: Sequence[slice], n_workers: int = 1) -> list[range]:
        """Return ranges of blocks that are best read together."""
        return self._source.ranges(blocks, n_workers)

    def part(self, rows: slice) -> Source:
        """Return what travels to a worker."""
        return FoldSource(self._source.part(rows), self._fold)

    def describe(self, rows: slice) -> str:
        """Return where rows come from, for messages."""
        return self._source.describe(rows)

    def deliver(self, rows: slice, request: Request) -> tuple[Source, list[Any]]:
        """Return what travels to a worker, and what it waits for."""
        source, inputs = self._source.deliver(rows, request)
        return FoldSource(source, self._fold), inputs

    def receive(self, values: list[Any]) -> Source:
        """Return the source with what the worker has waited for."""
        return FoldSource(self._source.receive(values), self._fold)


def take_fold(table: BlockTable, fold: Fold) -> BlockTable:
    """Return a table in which the rows outside a fold have weight zero."""
    return table.with_source(FoldSource(table.source, fold))
