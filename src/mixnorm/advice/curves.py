"""Held-out losses and errors along the path of every norm, on the same folds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mixnorm.advice.cases import AdviceCase, Folds, Part
from mixnorm.exceptions import NotConvergedWarning
from mixnorm.selection import Candidate, search

# The smallest penalty divided by the largest, in the comparison of norms.
_RATIO_OF_COMPARED_PENALTIES = 1e-3


@dataclass(frozen=True)
class NormCurve:
    """Held-out losses and errors of one norm along its penalties.

    Attributes
    ----------
    alphas : array of shape (n_alphas,)
        The penalties, in decreasing order.
    losses, errors : array of shape (n_folds, n_alphas)
        Held-out means of the loss and of the error. The error is the share of wrong labels, or the
        squared error divided by the variance.
    norms : array of shape (n_folds, n_alphas)
        Norms of the weights.
    columns, ranks : array of shape (n_alphas,)
        The number of columns with weight and the rank of the weights, as means over folds.
    seconds : float
        The time that the fits took.
    n_cuts : int
        The number of times that the rows were cut into folds. Folds of different cuts share rows.
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
        """The index of the penalty with the smallest held-out error, then the smallest loss."""
        errors, losses = self.errors.mean(axis=0), self.losses.mean(axis=0)
        # The last key counts first: errors, and of equal errors the smaller loss.
        return int(np.lexsort((losses, np.round(errors, 12)))[0])

    @property
    def honest_errors(self) -> np.ndarray:
        """Errors by fold, each at the penalty that is best on the other folds."""
        total = self.errors.sum(axis=0)
        # The sum over all folds less the own one is the sum over the others.
        chosen = np.argmin(np.round(total - self.errors, 12), axis=1)
        return np.asarray(self.errors[np.arange(len(self.errors)), chosen])

    def standard_error(self, values: np.ndarray) -> float:
        """Return the standard error of a mean over folds.

        It is that of one cut, because further cuts of the same rows add little information.
        """
        n = len(values)
        return float(np.std(values, ddof=1) / np.sqrt(n / self.n_cuts)) if n > 1 else 0.0


class AdviceProblem:
    """A search along the penalties of one norm. All folds use the penalties of the first.

    Parameters
    ----------
    case : AdviceCase
        The data.
    model : estimator
        The estimator with the norm.
    n_alphas : int
        The number of penalties.
    """

    def __init__(self, case: AdviceCase, model: BaseEstimator, n_alphas: int) -> None:
        self.case, self.model = case, model
        self.alphas: Any = n_alphas
        self.chains: Sequence[int] = (n_alphas,)

    def fold(self, train: Part, test: Part) -> Callable[[int], Iterator[Candidate]]:
        """Return a function that yields the candidates along the penalties, fitted on ``train``."""
        return partial(self._candidates, train, test)

    def _candidates(self, train: Part, test: Part, chain: int) -> Iterator[Candidate]:
        with warnings.catch_warnings():
            # A comparison of norms needs no exact solutions.
            warnings.simplefilter("ignore", NotConvergedWarning)
            path = self.model.path(
                *train, alphas=self.alphas, alpha_ratio=_RATIO_OF_COMPARED_PENALTIES
            )
        # A norm with fewer penalties than the others would have another best one.
        if len(path) < self.chains[chain]:  # the path ends early at an interrupt
            raise KeyboardInterrupt
        # Later folds are fitted at the same penalties.
        self.alphas = path.alphas
        for place, scores in enumerate(self.case.scores(path, train, test)):
            facts = {
                "norm": float(path.norm_values[place]),
                "columns": float(len(path.supports[place])),
                "rank": _estimate_rank(path.coef(place)),
            }
            yield Candidate({"alpha": float(path.alphas[place])}, test, scores, path, facts)


def compute_curve(
    case: AdviceCase, model: BaseEstimator, folds: Folds, n_alphas: int, n_cuts: int = 1
) -> NormCurve:
    """Return the held-out losses and errors of a norm, from its path on every fold.

    Parameters
    ----------
    case : AdviceCase
        The data.
    model : estimator
        The estimator with the norm.
    folds : list of (train, test)
        Parts of the data.
    n_alphas : int
        The number of penalties.
    n_cuts : int
        The number of times that the rows were cut into folds.
    """
    start = time.perf_counter()
    scoring = {
        "loss": lambda one: -case.loss(one.scores, one.rows[1]),
        "error": lambda one: -case.error(one.scores, one.rows[1]),
    }
    found = search(AdviceProblem(case, model, n_alphas), folds, scoring=scoring)
    if found.interrupted:  # a norm is compared on all folds, or not at all
        raise KeyboardInterrupt
    return NormCurve(
        found.cv_results["param_alpha"],
        -found.scores("loss"),
        -found.scores("error"),
        found.facts["norm"],
        found.facts["columns"].mean(axis=0),
        found.facts["rank"].mean(axis=0),
        time.perf_counter() - start,
        n_cuts,
    )


def _estimate_rank(W: np.ndarray) -> float:
    """Return the number of singular values that are not negligible beside the largest."""
    values = np.linalg.svd(W, compute_uv=False)
    return float(np.sum(values > 1e-2 * values[0])) if values[0] > 0.0 else 0.0
