"""Held-out losses and errors along the path of every norm, on the same folds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Curve:
    """What a norm does on held-out rows, along its penalties.

    Attributes
    ----------
    alphas : array of shape (n_alphas,)
        The penalties, falling.
    losses, errors : array of shape (n_folds, n_alphas)
        Held-out means of the loss, and of what counts: wrong labels, or squared errors in parts of
        the variance.
    norms : array of shape (n_folds, n_alphas)
        Norms of the weights.
    columns, ranks : array of shape (n_alphas,)
        Columns with weight, and the rank of the weights, on average over folds.
    seconds : float
        What it took.
    n_cuts : int
        How often the rows were cut into folds: folds of different cuts share rows.
    """

    alphas: np.ndarray
    losses: np.ndarray
    errors: np.ndarray
    norms: np.ndarray
    columns: np.ndarray
    ranks: np.ndarray
    seconds: float
    n_cuts: int = 1

    @property
    def best(self) -> int:
        """The penalty with the smallest held-out error; of equal ones, that with the least loss."""
        errors, losses = self.errors.mean(axis=0), self.losses.mean(axis=0)
        return int(np.lexsort((losses, np.round(errors, 12)))[0])

    @property
    def error(self) -> float:
        """The held-out error at the best penalty."""
        return float(self.errors[:, self.best].mean())

    @property
    def honest(self) -> np.ndarray:
        """Errors by fold, each at the penalty that is best on the other folds."""
        total = self.errors.sum(axis=0)
        chosen = np.argmin(np.round(total - self.errors, 12), axis=1)
        return np.asarray(self.errors[np.arange(len(self.errors)), chosen])

    def error_of(self, values: np.ndarray) -> float:
        """Return the standard error of a mean over folds, as of one cut: the others add little."""
        n = len(values)
        return float(np.std(values, ddof=1) / np.sqrt(n / self.n_cuts)) if n > 1 else 0.0


def curve_of(
    path_of: Callable[[Any, np.ndarray | None], Any],
    judge: Callable[[Any, Any, Any], tuple[np.ndarray, np.ndarray]],
    folds: list[tuple[Any, Any]],
    n_alphas: int,
    n_cuts: int = 1,
) -> Curve:
    """Go along the path of a norm on every fold.

    Parameters
    ----------
    path_of : callable
        Takes a training part and penalties (None for its own), and returns a path.
    judge : callable
        Takes a path, its training part and a test part, and returns losses and errors by penalty.
    folds : list of (train, test)
        Parts of the data.
    n_alphas : int
        Penalties.
    n_cuts : int
        How often the rows were cut into folds.
    """
    start = time.perf_counter()
    alphas: np.ndarray | None = None
    losses, errors, norms, columns, ranks = [], [], [], [], []
    for train, test in folds:
        path = path_of(train, alphas)
        alphas = path.alphas if alphas is None else alphas
        lost, wrong = judge(path, train, test)
        losses.append(lost)
        errors.append(wrong)
        norms.append(path.norm_values)
        columns.append(path.n_features)
        ranks.append([_rank(path.coef(place)) for place in range(n_alphas)])
    if alphas is None:
        raise ValueError("There are no folds.")
    return Curve(
        alphas,
        np.array(losses),
        np.array(errors),
        np.array(norms),
        np.mean(columns, axis=0),
        np.mean(ranks, axis=0),
        time.perf_counter() - start,
        n_cuts,
    )


def _rank(W: np.ndarray) -> float:
    """Return how many directions weights have, but for what is negligible."""
    values = np.linalg.svd(W, compute_uv=False)
    return float(np.sum(values > 1e-2 * values[0])) if values[0] > 0.0 else 0.0
