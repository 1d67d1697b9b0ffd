"""Learning with tensor kernels, with ``gamma`` chosen by cross-validation along the path."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import takewhile
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm.engines import dual
from mixnorm.estimators._common.parameters import values_to_try
from mixnorm.estimators._common.progress import FitTask
from mixnorm.estimators._common.search import UNFINISHED, RowProblem, SearchedMixin
from mixnorm.estimators.kernels.inputs import LossWeights, prepare_weights
from mixnorm.estimators.tensor.base import TensorKernelLearner
from mixnorm.estimators.tensor.learners import (
    TensorClassifier,
    TensorKernelClassifier,
    TensorKernelRegressor,
    TensorRegressor,
)
from mixnorm.selection import Candidate, FixedScores, SearchResult

# The range of values of gamma, where their number is given.
_SMALLEST_GAMMA, _LARGEST_GAMMA = 1e-2, 1e4


class GammaProblem(RowProblem):
    """The rows of a search over ``gamma``: one chain, from the smallest value to the largest.

    Parameters
    ----------
    learner : TensorKernelCV
        The estimator that searches.
    X : ndarray of shape (n_samples, n_features)
        All rows, checked.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Their targets.
    sample_weight : array-like of shape (n_samples,) or None
        Their weights.
    """

    def __init__(
        self, learner: TensorKernelCV, X: np.ndarray, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> None:
        self.data = data = learner._prepare_training(X, y, sample_weight)
        self.made = learner._represent(data.rows)
        self.gammas = learner._list_gammas()
        weight, self._places = np.zeros(len(X)), np.full(len(X), -1)
        weight[data.kept] = prepare_weights(sample_weight, len(X))[data.kept]
        self._places[data.kept] = np.arange(len(data.kept))
        targets = np.asarray(y).reshape(-1) if is_classifier(learner) else np.asarray(y)
        super().__init__(learner._make_learner(learner._kind), X, targets, weight)
        self.chains = (len(self.gammas),)

    def fold(self, train: np.ndarray, test: np.ndarray) -> Callable[[int], Iterator[Candidate]]:
        """Return a function that yields candidates along ``gammas``, fitted on ``train``."""
        return partial(self._path, train, test)

    def _path(self, train: np.ndarray, test: np.ndarray, chain: int) -> Iterator[Candidate]:
        # The kernel leaves out rows of weight zero.
        train, test = (rows[self._places[rows] >= 0] for rows in (train, test))
        learned, held_out = self._places[train], self._places[test]
        y, weight = self.data.y[learned], self.training_weights(train) / self.data.unit
        part = self.made.contraction.take(learned)
        middle = self.estimator._find_middle(y, weight)
        outputs = self.estimator._build_outputs(part, y - middle, weight)
        paths = [
            dual.path(
                dual.ScaledContraction(part, 1.0 / output.scale),
                output.loss,
                output.target,
                self.gammas.tolist(),
                weight=weight,
                **self.estimator._solver_options(),
            )
            for output in outputs
        ]
        points = list(takewhile(_is_complete, zip(*paths, strict=True)))
        scores = np.empty((len(points), len(test), len(outputs)))
        for place, output in enumerate(outputs):
            alphas = np.zeros((self.made.contraction.n, len(points)))
            for number, point in enumerate(points):
                # A row may be in a training fold several times.
                np.add.at(alphas[:, number], learned, point[place].alpha)
            # Held-out rows have zero dual variables, so their scores are predictions.
            found = self.made.contraction.scores(alphas)[held_out] / output.scale
            scores[:, :, place] = found.T * output.unit + middle[place]
        for point, own in zip(points, scores, strict=True):
            facts = {UNFINISHED: float(not all(one.converged for one in point))}
            model = FixedScores(own, self.data.outputs)
            yield Candidate({"gamma": point[0].gamma}, test, own, model, facts)
        if len(points) < len(self.gammas):
            raise KeyboardInterrupt


def _is_complete(point: Sequence[dual.DualSolution]) -> bool:
    """Tell whether the solutions of all outputs are complete."""
    return not any(one.interrupted for one in point)


@dataclass(eq=False, repr=False)
class TensorKernelCV(SearchedMixin, TensorKernelLearner):
    """Base of the searches: the kernel is computed once, and every fold follows ``gammas``."""

    #: The estimator without cross-validation.
    _kind: ClassVar[Any]

    _: KW_ONLY
    gammas: LossWeights = 100

    @property
    def gamma_(self) -> float:
        """The value chosen."""
        return float(self.best_params_["gamma"])

    @property
    def gammas_(self) -> np.ndarray:
        """The values tried, in ascending order."""
        return np.asarray(self.cv_results_["gamma"])

    def _list_gammas(self) -> np.ndarray:
        """Return the values to try, in ascending order."""
        if isinstance(self.gammas, numbers.Integral):
            return np.geomspace(_SMALLEST_GAMMA, _LARGEST_GAMMA, int(self.gammas))
        return np.sort(np.array(values_to_try(self.gammas, "gammas"), dtype=np.float64))

    def _more_columns(self, found: SearchResult) -> dict[str, Any]:
        return {"gamma": found.cv_results["param_gamma"]}

    def _search_problem(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> GammaProblem:
        return GammaProblem(self, self._validate(X, y), y, sample_weight)

    def _refit(self, problem: GammaProblem, params: dict[str, Any], progress: FitTask) -> None:
        task = progress.task("refit", problem.data.y.shape[1])
        self._learn(problem.made, problem.data, params["gamma"], task)
        task.end(dict)


@dataclass(eq=False, repr=False)
class TensorKernelRegressorCV(TensorRegressor, TensorKernelCV):
    """:class:`TensorKernelRegressor` with ``gamma`` chosen by cross-validation.

    The kernel and the units of the columns are computed once, for all rows; neither depends on the
    targets. Every fold takes its rows of the kernel, and follows the path of ``gammas``.

    Parameters
    ----------
    kernel, q, loss, fit_intercept, standardize, representation, n_components, solver, tol, \
max_iter, random_state
        As in :class:`TensorKernelRegressor`.
    gammas : int or list of float, default=100
        Values of ``gamma`` to try, or their number between 0.01 and 10000.
    cv : int, splitter or iterable, default=None
        Folds, as in scikit-learn; None takes five.
    scoring : str or callable, default=None
        The score to maximise; None takes the share of variance explained.
    one_standard_error : bool, default=False
        Choose the smallest value whose mean score is within one standard error of the best, instead
        of the best.
    n_jobs : int, default=None
        Folds fitted at the same time; None means 1, -1 all processors.

    Attributes
    ----------
    gamma_ : float
        The value chosen.
    best_score_ : float
        Its mean held-out score.
    gammas_ : ndarray of shape (n_gammas,)
        The values tried, in ascending order.
    cv_results_ : dict
        For each value of ``gamma`` the scores by fold, their mean, standard deviation and rank,
        under scikit-learn's names; and ``gamma`` and ``standard_error``.
    best_params_ : dict
        The chosen ``gamma``.
    best_index_ : int
        Its row in ``cv_results_``.
    n_splits_ : int
        The number of folds behind the choice.
    representation_, kernel_, kernel_error_, kernel_mass_, dual_coef_, intercept_, gamma_raw_, \
objective_, dual_gap_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`TensorKernelRegressor`, of the fit on all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm import TensorKernelRegressorCV
    >>> X = np.random.default_rng(0).standard_normal((60, 5))
    >>> y = X[:, 0] * X[:, 1] + X[:, 2]
    >>> model = TensorKernelRegressorCV(gammas=20, cv=3).fit(X, y)
    >>> model.best_score_ > 0.9
    True
    """

    _kind = TensorKernelRegressor


@dataclass(eq=False, repr=False)
class TensorKernelClassifierCV(TensorClassifier, TensorKernelCV):
    """:class:`TensorKernelClassifier` with ``gamma`` chosen by cross-validation.

    Parameters
    ----------
    kernel, q, loss, class_weight, standardize, representation, n_components, solver, tol, \
max_iter, random_state
        As in :class:`TensorKernelClassifier`.
    gammas : int or list of float, default=30
        Values of ``gamma`` to try, or their number between 0.01 and 10000.
    cv : int, splitter or iterable, default=None
        Folds, as in scikit-learn; None takes five.
    scoring : str or callable, default=None
        The score to maximise; None takes accuracy.
    one_standard_error : bool, default=False
        Choose the smallest value whose mean score is within one standard error of the best, instead
        of the best.
    n_jobs : int, default=None
        Folds fitted at the same time; None means 1, -1 all processors.

    Attributes
    ----------
    gamma_, gammas_, best_score_, cv_results_, best_params_, best_index_, n_splits_
        As in :class:`TensorKernelRegressorCV`.
    classes_, representation_, kernel_, kernel_error_, kernel_mass_, dual_coef_, gamma_raw_, \
objective_, dual_gap_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`TensorKernelClassifier`, of the fit on all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixnorm import TensorKernelClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TensorKernelClassifierCV(gammas=[1.0, 10.0, 100.0], cv=3).fit(X, y)
    >>> model.best_score_ > 0.9
    True
    """

    _kind = TensorKernelClassifier

    _: KW_ONLY
    gammas: LossWeights = 30
