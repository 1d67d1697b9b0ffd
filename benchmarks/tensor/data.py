"""Data for ``benchmarks.tensor``: splits of wpbc, and a synthetic design.

A split is a random order of the 194 rows: 60 for training, 60 for the choice of parameters, and 74
for the test. Columns are standardised by the first 60.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.harness.splits import load_stored
from benchmarks.sparse_mkl.data import draw_design

LEARNED, CHOSEN_BY = 60, 60
# Like wpbc: 33 columns with the constant, and 58,905 monomials of degree 4.
COLUMNS = 32
DATA = ("wpbc", "synthetic")


@dataclass(frozen=True)
class Part:
    """Rows and their targets."""

    X: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Split:
    """The rows for training, for the choice of parameters, and for the test."""

    train: Part
    valid: Part
    test: Part


def load_rows(data: str) -> Part:
    """Return all rows of a dataset, in double precision."""
    if data == "synthetic":
        return draw_synthetic(194)
    X, y, _, _ = load_stored(data)
    return Part(np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64))


def make_split(data: str, seed: int) -> Split:
    """Return one random split."""
    given = load_rows(data)
    order = np.random.default_rng(seed).permutation(len(given.y))
    places = np.split(order, [LEARNED, LEARNED + CHOSEN_BY])
    middle, size = given.X[places[0]].mean(axis=0), given.X[places[0]].std(axis=0)
    return Split(*(Part((given.X[rows] - middle) / size, given.y[rows]) for rows in places))


def draw_synthetic(rows: int) -> Part:
    """Return standard normal columns, and a target that depends on eight of them."""
    return Part(*draw_design(rows, COLUMNS, seed=0))


def centre(y: np.ndarray) -> np.ndarray:
    """Return targets shifted and scaled to mean zero and mean square one."""
    middle = y - y.mean()
    return np.asarray(middle / np.sqrt(np.mean(middle**2)))
