"""Held-out losses and errors along the path of every norm, on the same folds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mixnorm.advice.cases import Case
from mixnorm.exceptions import NotConvergedWarning
from mixnorm.selection import Candidate, search

# The smallest penalty divided by the largest.
_RATIO = 1e-3


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


class NormProblem:
    """A search along the penalties of one norm; those of the first fold serve all.

    Parameters
    ----------
    case : Case
        The data.
    model : estimator
        The estimator under the norm.
    n_alphas : int
        How many penalties there are.
    """

    def __init__(self, case: Case, model: Any, n_alphas: int) -> None:
        self.case, self.model = case, model
        self.alphas: Any = n_alphas
        self.chains: Sequence[int] = (n_alphas,)

    def fold(self, train: Any, test: Any) -> Callable[[int], Iterator[Candidate]]:
        """Return what goes along the penalties, fitted on the part ``train``."""
        return partial(self._candidates, train, test)

    def _candidates(self, train: Any, test: Any, chain: int) -> Iterator[Candidate]:
        with warnings.catch_warnings():
            # A comparison needs no more than it has after so many iterations.
            warnings.simplefilter("ignore", NotConvergedWarning)
            path = self.model.path(*train, alphas=self.alphas, alpha_ratio=_RATIO)
        if len(path) < self.chains[chain]:
            raise KeyboardInterrupt
        self.alphas = path.alphas
        for place, scores in enumerate(self.case.scores(path, train, test)):
            facts = {
                "norm": float(path.norm_values[place]),
                "columns": float(len(path.supports[place])),
                "rank": _rank(path.coef(place)),
            }
            yield Candidate({"alpha": float(path.alphas[place])}, test, scores, path, facts)


def curve_of(
    case: Case, model: Any, folds: list[tuple[Any, Any]], n_alphas: int, n_cuts: int = 1
) -> Curve:
    """Go along the path of a norm on every fold.

    Parameters
    ----------
    case : Case
        The data.
    model : estimator
        The estimator under the norm.
    folds : list of (train, test)
        Parts of the data.
    n_alphas : int
        Penalties.
    n_cuts : int
        How often the rows were cut into folds.
    """
    start = time.perf_counter()
    scoring = {
        "loss": lambda one: -case.loss(one.scores, one.rows[1]),
        "error": lambda one: -case.error(one.scores, one.rows[1]),
    }
    found = search(NormProblem(case, model, n_alphas), folds, scoring=scoring)
    if found.interrupted:  # a norm is compared on all folds, or not at all
        raise KeyboardInterrupt
    return Curve(
        found.cv_results["param_alpha"],
        -found.scores("loss"),
        -found.scores("error"),
        found.facts["norm"],
        found.facts["columns"].mean(axis=0),
        found.facts["rank"].mean(axis=0),
        time.perf_counter() - start,
        n_cuts,
    )


def _rank(W: np.ndarray) -> float:
    """Return how many directions weights have, but for what is negligible."""
    values = np.linalg.svd(W, compute_uv=False)
    return float(np.sum(values > 1e-2 * values[0])) if values[0] > 0.0 else 0.0
