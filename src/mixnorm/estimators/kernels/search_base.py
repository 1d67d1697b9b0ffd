"""Cross-validated searches among learners with kernels, which compute kernels once."""

from __future__ import annotations

import copy
import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm.estimators._common.parameters import values_to_try
from mixnorm.estimators._common.progress import FitTask
from mixnorm.estimators._common.search import RowProblem, SearchedMixin
from mixnorm.estimators.kernels.base import KernelEstimator, KernelTraining, WeightedKernelLearner
from mixnorm.estimators.kernels.inputs import check_targets, prepare_weights
from mixnorm.selection import Candidate, FixedScores

#: The parameter of a search that lists values, by the parameter of the learner.
_VALUE_LISTS = {"p": "ps", "beta": "betas", "tail": "tails"}


@dataclass(eq=False, kw_only=True)
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

    training: KernelTraining

    def __post_init__(self) -> None:
        # Positions of the rows in the kernels; -1 for rows that do not count.
        # Folds name rows by their place in ``X``, kernels by their place among the rows that count.
        self.places = np.full(len(self.y), -1)
        self.places[self.training.rows] = np.arange(len(self.training.rows))

    def fold(self, train: np.ndarray, test: np.ndarray) -> Callable[[int], Iterator[Candidate]]:
        """Return a function from a chain to its candidates, fitted on the rows ``train``."""
        train, test = (rows[self.places[rows] >= 0] for rows in (train, test))
        if len(train) == 0:
            raise ValueError("A fold has no training rows of positive weight; give other folds.")
        # Rows of the kernels are taken, and no kernel is computed again.
        part = self.training.take(self.places[train], self.training_weights(train))
        return partial(self._chain, self.estimator._adapt_to_fold(part), train, test)

    @abstractmethod
    def _chain(
        self, part: Any, train: np.ndarray, test: np.ndarray, number: int
    ) -> Iterator[Candidate]:
        """Yield the candidates of a chain, fitted on ``part``."""

    def learner(self, params: dict[str, Any]) -> Any:
        """Return the learner with some of the parameters."""
        # A shallow copy: ``clone`` would copy a bank of kernels for every candidate.
        return copy.copy(self.estimator).set_params(**params)

    def held_out_data(self, candidate: Candidate) -> tuple[Any, Any]:
        """Return ``X`` and ``y`` of the held-out rows, for a scorer."""
        return self.rows_of(candidate.rows), self.y[candidate.rows]

    def rows_of(self, index: np.ndarray) -> Any:
        """Return some rows of ``X``, a table or a stack of kernels."""
        return getattr(self.X, "iloc", self.X)[index]


@dataclass(eq=False, kw_only=True)
class MachineProblem(KernelProblem):
    """A search over ``C`` and other parameters of learners that weigh kernels.

    There is one chain for each combination of the other parameters. ``C`` rises along the chain,
    and each fit starts from the one before.

    Parameters
    ----------
    estimator, X, y, weight, training
        As in :class:`KernelProblem`.
    grid : list of dict
        The combinations.
    costs : list of float
        The values of ``C``, rising.
    """

    grid: list[dict[str, Any]]
    costs: list[float]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.chains = [len(self.costs)] * len(self.grid)

    def _chain(
        self, part: KernelTraining, train: np.ndarray, test: np.ndarray, number: int
    ) -> Iterator[Candidate]:
        start, outputs = None, part.outputs
        for cost in self.costs:
            params = self.grid[number] | {"C": cost}
            found, _ = self.learner(params)._solve(part, start)
            if found.interrupted:  # an unfinished fit would bias the choice
                raise KeyboardInterrupt
            # C rises along a chain, and dual variables of a smaller C are feasible for a larger one
            # (:eq:`feasible-rows`).
            start = found.weights, found.duals
            used = np.any(found.duals != 0.0, axis=1)
            rows, columns = self.places[test], self.places[train[used]]
            # Only kernels with weight, and only rows that the model uses, are read.
            K = self.training.grams.combine(found.weights, rows=rows, columns=columns)
            scores = K @ found.duals[used] * outputs.unit + outputs.centre
            yield Candidate(params, test, scores, FixedScores(scores, outputs))


class KernelSearch(SearchedMixin, KernelEstimator):
    """A search among learners with kernels."""

    #: The learner without cross-validation.
    _kind: ClassVar[type[KernelEstimator]]

    warm_start = False  # fits of a search start from zero

    def _build_problem(self, *rows: Any, training: KernelTraining) -> KernelProblem:
        """Return the problem of a learner without cross-validation, ``X``, ``y`` and weights."""
        raise NotImplementedError

    def _search_problem(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> KernelProblem:
        rows = self._validate(X)
        check_targets(self, rows, y)
        training = self._prepare_training(rows, y, sample_weight)
        weight = None
        if sample_weight is not None or len(training.rows) < rows.shape[0]:
            weight = np.zeros(rows.shape[0])
            # Weights as the user gave them: scores must not count the weights of classes.
            weight[training.rows] = prepare_weights(sample_weight, len(weight))[training.rows]
        targets = np.asarray(y)
        targets = targets.reshape(-1) if is_classifier(self) else targets
        # The search fits learners without cross-validation, which take the same rows.
        plain = self._make_learner(self._kind)
        return self._build_problem(plain, rows, targets, weight, training=training)

    def _refit(self, problem: KernelProblem, params: dict[str, Any], progress: FitTask) -> None:
        best = problem.learner(params)
        task = progress.task("refit", best._count_iterations())
        best._learn(problem.training, task)
        self.model_ = best.model_
        if isinstance(best, WeightedKernelLearner):
            self.report_ = best.report_
        task.end(dict)


class KernelCV(KernelSearch, WeightedKernelLearner):
    """A search over ``Cs`` for every combination of other parameters."""

    def _build_problem(self, *rows: Any, training: KernelTraining) -> MachineProblem:
        own = self.get_params(deep=False)
        names = [name for name, values in _VALUE_LISTS.items() if values in own]
        lists = [values_to_try(own[_VALUE_LISTS[name]], _VALUE_LISTS[name]) for name in names]
        grid = [dict(zip(names, values, strict=True)) for values in itertools.product(*lists)]
        # From simple to complex, which the one-standard-error rule and warm starts rely on.
        costs = sorted(values_to_try(self.Cs, "Cs"))
        return MachineProblem(*rows, training=training, grid=grid, costs=costs)
