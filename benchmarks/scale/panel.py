"""A sparse panel of counts that resembles single-cell expression: cells, genes and cell types."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.scale.data import find_cache

TYPES = 30
FILLED = 0.07  # share of the entries that are not zero
MARKERS = 40  # genes that a type expresses more
CELLS_AT_ONCE = 1000
TEST_CELLS = 4000
_GENES, _CELLS = 5, 6  # after the seed; the tables use smaller numbers
_PARTS = ("data", "indices", "indptr", "y")


@dataclass(frozen=True)
class Panel:
    """A stored panel: ``folder`` has the arrays of its training and test part."""

    folder: Path
    cells: int
    genes: int

    def read(self, part: str = "train") -> tuple[sparse.csr_array, np.ndarray]:
        """Return counts as a CSR array of float32, and the types."""
        data, indices, indptr, y = (np.load(self.folder / part / f"{n}.npy") for n in _PARTS)
        return sparse.csr_array((data, indices, indptr), shape=(len(y), self.genes)), y


def draw_rates(genes: int, seed: int = 0) -> np.ndarray:
    """Draw the mean counts of genes in an average cell of each type, ``(TYPES, genes)``.

    Means are log-normal. Each type has its own marker genes, which it expresses up to eight times
    as much. The level is such that ``FILLED`` of the entries are not zero.
    """
    rng = np.random.default_rng([seed, _GENES, genes])
    rates = np.tile(rng.lognormal(0.0, 2.0, genes), (TYPES, 1))
    for each in rates:
        chosen = rng.choice(genes, min(MARKERS, genes), replace=False)
        each[chosen] *= np.exp(rng.uniform(0.0, np.log(8.0), len(chosen)))
    depths = np.exp(0.3 * rng.standard_normal(16))
    low, high = 1e-9, 1e3
    for _ in range(60):
        level = np.sqrt(low * high)
        share = np.mean([np.mean(-np.expm1(-level * depth * rates)) for depth in depths])
        low, high = (level, high) if share < FILLED else (low, level)
    return level * rates


def draw_cells(
    rates: np.ndarray, cells: int, seed: int = 0, first: int = 0
) -> Iterator[tuple[sparse.csr_array, np.ndarray]]:
    """Yield blocks of cells; ``first`` is the number of the first block."""
    for number, start in enumerate(range(0, cells, CELLS_AT_ONCE), first):
        rng = np.random.default_rng([seed, _CELLS, rates.shape[1], number])
        y = rng.integers(TYPES, size=min(CELLS_AT_ONCE, cells - start))
        depths = np.exp(0.3 * rng.standard_normal(len(y)))
        means = (rates[y] * depths[:, None]).astype(np.float32)
        # Which entries are not zero takes one number each; only those take a Poisson draw, which is
        # one count and those beyond it.
        there = rng.random(means.shape, dtype=np.float32) > np.exp(-means)
        X = sparse.csr_array(there, dtype=np.float32)
        X.data = (1 + rng.poisson(0.5 * means[there])).astype(np.float32)
        yield X, y


def prepare_panel(cells: int, genes: int, folder: Path | None = None, seed: int = 0) -> Panel:
    """Return a panel, drawn if the folder of all tables (by default the cache) does not have it."""
    name = f"panel-{cells}-genes-{genes}-seed-{seed}"
    place = (folder or find_cache()) / name
    if place.exists():
        return Panel(place, cells, genes)
    partial = place.with_name(f"{name}.{os.getpid()}.partial")
    rates = draw_rates(genes, seed)
    test = min(TEST_CELLS, cells)
    try:
        for part, size, first in (("train", cells, 0), ("test", test, 1_000_000)):
            blocks = list(draw_cells(rates, size, seed, first))
            X = sparse.csr_array(sparse.vstack([block for block, _ in blocks], format="csr"))
            y = np.concatenate([each for _, each in blocks])
            (partial / part).mkdir(parents=True)
            for n, values in zip(_PARTS, (X.data, X.indices, X.indptr, y), strict=True):
                np.save(partial / part / f"{n}.npy", values)
        partial.replace(place)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Panel(place, cells, genes)
