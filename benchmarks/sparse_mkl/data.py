"""Data for ``benchmarks.sparse_mkl``: additive designs, and Gaussian kernels on single columns.

Columns are standard normal. A target is a sum of terms, one for each relevant column, and noise.
The terms are four functions in turn. The test rows are the same for all draws of the training rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.mkl.data import Rows

WIDTHS = tuple(float(width) for width in np.logspace(-1.5, 1.5, 10))  # of the column's spread
FEW_WIDTHS = (0.1, 1.0, 10.0)
RELEVANT, NOISE = 8, 0.1
TESTED = 1_000
OUTPUTS = 3  # of the parts in which outputs share kernels
CLASSES = 5
# Means of the terms under the standard normal distribution.
MEANS = np.resize([0.0, 0.5, np.sqrt(2 / np.pi), np.exp(-0.5)], RELEVANT)
TEST_SEED = 10_000  # larger than all seeds of training rows


def draw_design(
    rows: int, features: int, seed: int, relevant: int = RELEVANT, outputs: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return columns and targets; the first columns are the relevant ones."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features))
    terms = np.stack([compute_term(X[:, place], place) for place in range(relevant)], axis=1)
    # A single target is the sum of all terms; several targets weight them differently.
    shares = np.random.default_rng(0).uniform(0.5, 1.5, size=(relevant, outputs))
    shares = np.ones((relevant, 1)) if outputs == 1 else shares
    y = terms @ shares + NOISE * rng.standard_normal((rows, outputs))
    return X, y[:, 0] if outputs == 1 else y


def compute_term(x: np.ndarray, place: int) -> np.ndarray:
    """Return the term of the column at a position."""
    found = (np.sin(2 * x), x**2 / 2, np.abs(x), np.cos(x))[place % 4]
    return np.asarray(found)


def draw_rows(rows: int, features: int, draw: int, classes: bool) -> Rows:
    """Return one draw of training rows and the test rows."""
    make = draw_labels if classes else draw_design
    return Rows(*make(rows, features, draw), *make(TESTED, features, TEST_SEED))


def draw_labels(rows: int, features: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return columns and labels; a label is the index of the largest weighted sum of terms."""
    X, _ = draw_design(rows, features, seed)
    terms = np.stack([compute_term(X[:, place], place) for place in range(RELEVANT)], axis=1)
    shares = np.random.default_rng(0).standard_normal((RELEVANT, CLASSES))
    noise = NOISE * np.random.default_rng(seed + 1).standard_normal((rows, CLASSES))
    return X, np.argmax((terms - MEANS) @ shares + noise, axis=1)


def measure_error(found: np.ndarray, y: np.ndarray, classes: bool) -> float:
    """Return the share of wrong labels, or of unexplained variance, in percent."""
    if classes:
        return 100 * float(np.mean(found != y))
    return 100 * float(np.mean((found - y) ** 2) / np.var(y))


def make_bank(widths: tuple[float, ...] = WIDTHS, **other: Any) -> Any:
    """Return the bank of all widths on every column."""
    from mixnorm.kernels import KernelBank

    # A Gaussian kernel has ones on its diagonal: normalising by the trace changes nothing.
    return KernelBank.per_feature("rbf", list(widths), **{"normalize": None} | other)


def compute_stack(X: np.ndarray, others: np.ndarray, which: Any = None) -> np.ndarray:
    """Return kernels between rows and training rows, ``(M, len(X), len(others))`` in float64.

    They have the numbers of ``make_bank``; ``which`` selects some, by default all. Consecutive
    kernels on the same column share its distances.
    """
    which = range(len(WIDTHS) * others.shape[1]) if which is None else which
    found = np.empty((len(which), len(X), len(others)))
    known, squares, spread = -1, np.empty(0), 0.0
    for place, kernel in zip(found, which, strict=True):
        column, width = divmod(int(kernel), len(WIDTHS))
        if column != known:
            known, spread = column, 2 * float(np.var(others[:, column]))
            squares = (X[:, column, None] - others[None, :, column]) ** 2
        np.multiply(squares, -0.5 / (WIDTHS[width] * spread), out=place)
        np.exp(place, out=place)
    return found


def count_stack_bytes(kernels: int, rows: int) -> int:
    """Return the bytes of all kernels of the training rows in float64."""
    return 8 * kernels * rows**2
