"""Learners with kernels whose parameters are chosen by cross-validation: kernels computed once."""

from __future__ import annotations

import copy
import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier

from mixnorm._array import Array, ArrayLike, MatrixLike
from mixnorm.estimators._common.parameters import values_to_try
from mixnorm.estimators._common.progress import FitTask
from mixnorm.estimators._common.search import RowProblem, SearchedMixin
from mixnorm.estimators.kernels.base import KernelEstimator, KernelTraining, WeightedKernelLearner
from mixnorm.estimators.kernels.classifier import apply_class_weights
from mixnorm.estimators.kernels.inputs import check_targets, prepare_weights
from mixnorm.selection import Candidate, FixedScores


class KernelProblem(RowProblem):
    """The rows of a search among learners with kernels, which are computed once.

    A fold takes its rows of the kernels. Relative widths and normalisation are those of all rows;
    class weights, centres and tail sums are those of the training rows of the fold.

    Parameters
    ----------
    estimator, X, y, weight
        As in :class:`RowProblem`.
    training : KernelTraining
        All rows that count, with their kernels.
    """

    def __init__(
        self,
        estimator: Any,
        X: Array,
        y: Array,
        weight: np.ndarray | None,
        training: KernelTraining,
    ) -> None:
        super().__init__(estimator, X, y, weight)
        self.training = training
        # Where the rows are in the kernels; -1 for those that do not count.
        self.places = np.full(len(y), -1)
        self.places[training.rows] = np.arange(len(training.rows))

    def fold(self, train: np.ndarray, test: np.ndarray) -> Callable[[int], Iterator[Candidate]]:
        """Return what gives the candidates of a chain, fitted on the rows ``train``."""
        train, test = (rows[self.places[rows] >= 0] for rows in (train, test))
        if len(train) == 0:
            raise ValueError("A fold has no training rows of positive weight; give other folds.")
        weight = np.ones(len(train)) if self.weight is None else self.weight[train]
        if is_classifier(self.estimator):
            weight = apply_class_weights(self.estimator.class_weight, self.y[train], weight)
        part = self.training.take(self.places[train], weight)
        return partial(self._chain, self.estimator._adapt_to_fold(part), train, test)

    @abstractmethod
    def _chain(
        self, part: Any, train: np.ndarray, test: np.ndarray, number: int
    ) -> Iterator[Candidate]:
        """Yield the candidates of a chain, fitted on ``part``."""

    def learner(self, params: dict[str, Any]) -> Any:
        """Return the learner with some of the parameters."""
        return copy.copy(self.estimator).set_params(**params)

    def held_out_data(self, candidate: Candidate) -> tuple[Any, Any]:
        """Return ``X`` and ``y`` of the held-out rows, for a scorer."""
        return self.rows_of(candidate.rows), self.y[candidate.rows]

    def rows_of(self, index: np.ndarray) -> Any:
        """Return some rows of ``X``, a table or a stack of kernels."""
        return getattr(self.X, "iloc", self.X)[index]


class MachineProblem(KernelProblem):
    """A search over ``C`` and other parameters of learners that weigh kernels.

    There is a chain for each combination of the others. It goes along rising ``C``, each fit
    started from the one before.

    Parameters
    ----------
    estimator, X, y, weight, training
        As in :class:`KernelProblem`.
    grid : list of dict
        The combinations.
    costs : list of float
        The values of ``C``, rising.
    """

    def __init__(self, *given: Any, grid: list[dict[str, Any]], costs: list[float]) -> None:
        super().__init__(*given)
        self.grid, self.costs = grid, costs
        self.chains = [len(costs)] * len(grid)

    def _chain(
        self, part: KernelTraining, train: np.ndarray, test: np.ndarray, number: int
    ) -> Iterator[Candidate]:
        start, outputs = None, part.outputs
        for cost in self.costs:
            params = self.grid[number] | {"C": cost}
            found, _ = self.learner(params)._solve(part, start)
            if found.interrupted:  # a fit cut short would bias the choice
                raise KeyboardInterrupt
            start = found.weights, found.duals
            used = np.any(found.duals != 0.0, axis=1)
            rows, columns = self.places[test], self.places[train[used]]
            K = self.training.grams.combine(found.weights, rows=rows, columns=columns)
            scores = K @ found.duals[used] * outputs.unit + outputs.centre
            yield Candidate(params, test, scores, FixedScores(scores, outputs))


class KernelSearch(SearchedMixin, KernelEstimator):
    """A search among learners with kernels."""

    #: The learner without cross-validation.
    _kind: ClassVar[type[KernelEstimator]]

    warm_start = False  # fits of a search start anew

    def _problem(self, plain: Any, *given: Any) -> KernelProblem:
        """Return the problem of a learner without cross-validation, and the rest of what it needs.

        This is ``X``, ``y``, the weights and the training rows.
        """
        raise NotImplementedError

    def _search_problem(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike
    ) -> KernelProblem:
        X = self._validate(X)
        check_targets(self, X, y)
        training = self._prepare_training(X, y, sample_weight)
        weight = None
        if sample_weight is not None or len(training.rows) < X.shape[0]:
            weight = np.zeros(X.shape[0])
            weight[training.rows] = prepare_weights(sample_weight, X.shape[0])[training.rows]
        y = np.asarray(y)
        y = y.reshape(-1) if is_classifier(self) else y
        return self._problem(self._make_learner(self._kind), X, y, weight, training)

    def _refit(self, problem: KernelProblem, params: dict[str, Any], progress: FitTask) -> None:
        best = problem.learner(params)
        task = progress.task("refit", best._count_iterations())
        best._learn(problem.training, task)
        self._adopt(best)
        task.end(dict)

    def _adopt(self, best: Any) -> None:
        """Keep what the learner with the chosen parameters has found."""
        self.model_ = best.model_


class KernelCV(KernelSearch, WeightedKernelLearner):
    """A search along ``Cs`` for every combination of other parameters."""

    #: From a parameter of the learner to the one that lists its values; ``C`` goes without saying.
    _value_lists: ClassVar[dict[str, str]]

    def _problem(self, plain: Any, *given: Any) -> MachineProblem:
        lists = [values_to_try(getattr(self, name), name) for name in self._value_lists.values()]
        grid = [
            dict(zip(self._value_lists, values, strict=True))
            for values in itertools.product(*lists)
        ]
        return MachineProblem(plain, *given, grid=grid, costs=sorted(values_to_try(self.Cs, "Cs")))

    def _adopt(self, best: Any) -> None:
        super()._adopt(best)
        self.report_ = best.report_
