"""Learners with several kernels whose parameters are chosen by cross-validation."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import is_classifier

from mixnorm.engines import multikernel
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators._common.progress import Progress, all_or_nothing, with_callbacks
from mixnorm.estimators._common.search import SearchedMixin, row_folds, values_to_try
from mixnorm.estimators.kernels.base import KernelLearner, Training
from mixnorm.estimators.kernels.classifier import KernelClassifier
from mixnorm.estimators.kernels.inputs import check_targets, row_costs
from mixnorm.exceptions import InterruptedFitWarning
from mixnorm.selection import SearchResult


class KernelCV(SearchedMixin, KernelLearner):
    """Adds the search: kernels are computed once, and every fold goes along ``Cs``.

    A subclass names the learner, and for each of its parameters the list of values to try.
    """

    _learner: ClassVar[type[KernelLearner]]
    #: From a parameter of the learner to the one that lists its values; ``C`` goes without saying.
    _lists: ClassVar[dict[str, str]]

    warm_start = False  # fits of a search start anew
    search_: SearchResult

    # --- parameters

    def _costs(self) -> list[float]:
        return sorted(values_to_try(self.Cs, "Cs"))

    def _grid(self) -> list[dict[str, Any]]:
        """Return what is tried but for ``C``."""
        lists = [values_to_try(getattr(self, name), name) for name in self._lists.values()]
        return [dict(zip(self._lists, values, strict=True)) for values in itertools.product(*lists)]

    def _one(self, params: dict[str, Any], cost: float | None = None) -> Any:
        """Return the learner with some of the parameters."""
        own = self.get_params(deep=False)
        same = {name: own[name] for name in self._learner().get_params(deep=False) if name in own}
        return self._learner(**same, **params, C=self._costs()[0] if cost is None else cost)

    # --- the search

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the parameters, and fit with the best on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Training data, or kernel matrices, as the learner takes them.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Class labels, or the targets of a regression.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, which multiply ``C`` and count in the scores.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        with all_or_nothing(self):
            X = self._validated(X)
            check_targets(self, X, y)
            given = np.asarray(y)
            encoded = self._encoded(y, row_costs(sample_weight, X.shape[0]))
            weight, nothing = encoded[1], np.zeros(len(given))
            folds = row_folds(
                self.cv, nothing, given, classifier=is_classifier(self), weight=weight
            )
            progress = Progress.of_fit(self, X, given, sample_weight, len(folds) + 1)
            training = self._training(X, *encoded)
            places = np.full(len(weight), -1)  # in the kernels, which have the rows that count
            places[training.rows] = np.arange(len(training.rows))
            parts = [[places[rows][places[rows] >= 0] for rows in fold] for fold in folds]
            self.search_ = self._search(training, parts, progress)
            task = progress.task("refit", 10**6)
            params = dict(self.search_.best_params)
            best = self._one(params, params.pop("C"))
            best._learn(replace(training, grams=_Remembering(training.grams)), task)
            self.model_, self.report_ = best.model_, best.report_
            task.end(dict)
            progress.end(dict)
            return self

    def _search(self, training: Training, folds: list[Any], progress: Progress) -> SearchResult:
        """Return what was found by cross-validation."""
        grid, costs = self._grid(), self._costs()
        scores: list[np.ndarray] = []
        try:
            for train, test in folds:
                task = progress.task("fold", len(grid) * len(costs))
                scores.append(self._fold(training, train, test, task))
                task.end()
        except KeyboardInterrupt:
            if not scores:
                raise
            warn_caller(
                f"Interrupted after {len(scores)} of {len(folds)} folds, by which the parameters "
                "are chosen.",
                InterruptedFitWarning,
            )
        table = np.stack(scores, axis=1)  # (n_candidates, n_folds)
        tried = [params | {"C": cost} for params in grid for cost in costs]
        if not np.any(np.isfinite(table)):
            raise ValueError(
                "No fold has test rows of positive weight, at least two of them for a regression; "
                "give other folds."
            )
        means = np.nanmean(table, axis=1)
        best = int(np.argmax(np.round(means, 12)))
        results = {
            "params": tried,
            "mean_test_score": means,
            "std_test_score": np.nanstd(table, axis=1),
            "split_test_scores": table,
        }
        return SearchResult(results, tried[best], float(means[best]))

    def _fold(
        self, training: Training, train: np.ndarray, test: np.ndarray, task: Progress
    ) -> np.ndarray:
        """Return the scores of all candidates on one fold, in the order of the grid and ``Cs``."""
        if len(train) == 0:
            raise ValueError("A fold has no training rows of positive weight; give other folds.")
        y, weight, outputs = training.y, training.weight, training.outputs
        part = _Remembering(training.grams.take(train))
        shift = self._shift(y[train], weight[train])
        scores = []
        for params in self._grid():
            start = None
            for cost in self._costs():
                one = self._one(params, cost)
                target = one._target(y[train] - shift, cost * weight[train], outputs)
                found = multikernel.solve(
                    part,
                    target,
                    one._penalty(part, weight[train], outputs)[0],
                    tol=float(self.tol),
                    max_iter=int(self.max_iter),
                    start=start,
                )
                if found.interrupted:
                    raise KeyboardInterrupt
                start = found.weights, found.duals
                used = np.flatnonzero(np.any(found.duals != 0.0, axis=1))
                K = training.grams.combine(found.weights, rows=test, columns=train[used])
                given = K @ found.duals[used] + shift
                scores.append(self._score(y[test], given, weight[test]))
                task.task("candidate").end()
        return np.array(scores)

    def _shift(self, y: np.ndarray, weight: np.ndarray) -> Any:
        """Return what the targets of a fold are measured from."""
        return 0

    def _score(self, y: np.ndarray, given: np.ndarray, weight: np.ndarray) -> float:
        """Return how good scores are: accuracy, or the share of variance explained."""
        raise NotImplementedError


class KernelClassifierCV(KernelCV, KernelClassifier):
    """Scores are accuracies."""

    def _score(self, y: np.ndarray, given: np.ndarray, weight: np.ndarray) -> float:
        total = float(np.sum(weight))
        right = np.argmax(given, axis=1) == y
        return float(np.sum(weight * right)) / total if total > 0.0 else math.nan


class _Remembering:
    """Grams that compute tail sums and diagonals once."""

    def __init__(self, grams: Any) -> None:
        self._grams, self._sums = grams, {}  # type: ignore[var-annotated]
        self._diagonals: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grams, name)

    def tail_sums(self, tail: int, weight: np.ndarray) -> np.ndarray:
        """Return the tail sums of the kernels; the weights are always the same."""
        if tail not in self._sums:
            self._sums[tail] = self._grams.tail_sums(tail, weight)
        found: np.ndarray = self._sums[tail]
        return found

    def diagonals(self) -> np.ndarray:
        """Return the diagonals of the kernels."""
        if self._diagonals is None:
            self._diagonals = self._grams.diagonals()
        found: np.ndarray = self._diagonals
        return found
