"""Inner folds, by which every tuned method chooses its settings from training rows alone.

At most ``ROWS`` training rows are drawn, the same for every method, and cut into ``FOLDS`` folds.
A ridge ``r`` means the objective *sum* of losses + ``r / 2`` times the squared weights. On this
scale a value keeps its meaning when the number of rows changes. Each method converts it to its own
parameter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.harness.splits import Matrix, is_sparse

GRID = (0.01, 0.1, 1.0, 10.0)
FOLDS, ROWS = 3, 2000
SIZES = (5, 10, 20, 40)

Chosen = list[list[Any]]  # pairs of a size and its setting; JSON keeps them


def draw_rows(y: np.ndarray, most: int = ROWS) -> np.ndarray:
    """Return all rows, or a stratified sample of about ``most`` rows in their order."""
    if len(y) <= most:
        return np.arange(len(y))
    rng = np.random.default_rng(0)
    kept = []
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        count = min(len(members), max(FOLDS, round(most * len(members) / len(y))))
        kept.append(rng.choice(members, size=count, replace=False))
    return np.sort(np.concatenate(kept))


def make_folds(X: Matrix, y: np.ndarray) -> Iterator[tuple[Matrix, np.ndarray, Matrix, np.ndarray]]:
    """Yield the training and held-out parts of each fold, without constant training columns."""
    from sklearn.model_selection import StratifiedKFold

    rows = draw_rows(y)
    X, y = X[rows], y[rows]
    for inner, outer in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(y, y):
        X_in, X_out = X[inner], X[outer]
        if not is_sparse(X):
            varies = X_in.min(axis=0) < X_in.max(axis=0)
            X_in, X_out = X_in[:, varies], X_out[:, varies]
        yield X_in, y[inner], X_out, y[outer]


def list_sizes(size: int) -> list[int]:
    """Return the common sizes up to ``size``, and ``size`` itself."""
    return sorted({size, *(each for each in SIZES if each < size)})


def choose_best(
    wrong: Counter[tuple[int, int]], sizes: Iterable[int], grid: Sequence[Any]
) -> Chosen:
    """Return the setting with the fewest errors for each size; of equal ones, the last.

    ``wrong`` counts held-out errors by size and index in ``grid``.
    """
    places = range(len(grid))
    return [
        [size, grid[min(places, key=lambda place: (wrong[size, place], -place))]] for size in sizes
    ]
