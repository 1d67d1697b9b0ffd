"""The penalty chosen by cross-validation along a path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from mixnorm._array import ArrayLike, MatrixLike, is_sparse
from mixnorm.engines.proximal import Solution
from mixnorm.estimators._common.inputs import check_weights
from mixnorm.estimators._common.parameters import Anything, ClassWeight, Loss, Switch
from mixnorm.estimators._common.progress import FitTask
from mixnorm.estimators._common.search import (
    UNFINISHED,
    RowProblem,
    SearchedMixin,
    SearchParameters,
)
from mixnorm.estimators.mixed_norm.base import NormLearner, NormParameters
from mixnorm.estimators.mixed_norm.classifier import MixedNormClassifier, NormClassifier
from mixnorm.estimators.mixed_norm.grid import check_grid
from mixnorm.estimators.mixed_norm.regressor import MixedNormRegressor, NormRegressor
from mixnorm.estimators.mixed_norm.tables import refuse_table
from mixnorm.estimators.mixed_norm.training import Training
from mixnorm.models import ClassOutputs, LinearModel, NumberOutputs, TaskOutputs
from mixnorm.selection import Candidate, SearchResult

# Evaluations of the loss allowed for each allowed iteration, along the whole path of a fold.
FOLD_EFFORT = 6.0
#: The rows of a fold: of the one ``X``, or of every task.
Rows: TypeAlias = np.ndarray | list[np.ndarray]


@dataclass(eq=False)
class PenaltyProblem(RowProblem):
    """The rows of a search over penalties: one chain, from the largest penalty to the smallest.

    Parameters
    ----------
    estimator, X, y, weight
        As in :class:`RowProblem`.
    training : Training
        All rows, as the engine takes them.
    outputs : ClassOutputs, NumberOutputs or TaskOutputs
        What the scores of the model mean.
    alphas : int or sequence of float
        The penalties, or their number. As an attribute, the penalties.
    alpha_ratio : float
        The last penalty divided by the first.
    """

    training: Training
    outputs: ClassOutputs | NumberOutputs | TaskOutputs
    alphas: Any
    alpha_ratio: float
    alpha_max: float = field(init=False)

    def __post_init__(self) -> None:
        # One grid from all rows: scores of folds are compared at the same penalties.
        grid = self.estimator._grid(self.training, self.alphas, self.alpha_ratio)
        self.alpha_max, self.alphas = grid
        self.chains = (len(self.alphas),)

    def fold(self, train: Rows, test: Rows) -> Callable[[int], Iterator[Candidate]]:
        """Return the function that gives the candidates of a chain, fitted on ``train``."""
        return partial(self._path, train, test)

    def _path(self, train: Rows, test: Rows, chain: int) -> Iterator[Candidate]:
        weight = None if self.weight is None else self.weight[train]
        # Units, classes and standard deviations are those of the training rows of the fold.
        training, outputs = self.estimator._prepare(self.X[train], self.y[train], weight)
        held_out = self.X[test]
        for found in self._solutions(training):
            model = self.estimator._model(found, outputs)
            yield self._candidate(found, test, model.scores(held_out), model)

    def _solutions(self, training: Training) -> Iterator[Solution]:
        for found in self.estimator._solutions(training, self.alphas, FOLD_EFFORT):
            if found.interrupted:  # one fold's path cut short would bias the choice
                raise KeyboardInterrupt
            yield found

    def _candidate(
        self, found: Solution, rows: object, scores: np.ndarray, model: LinearModel
    ) -> Candidate:
        # Whether the fits of the chosen penalty ended early is reported once, after the search.
        facts = {UNFINISHED: float(found.exhausted and not found.converged)}
        return Candidate({"alpha": found.alpha}, rows, scores, model, facts)


@dataclass(eq=False, repr=False)
class PenaltyParameters(NormParameters, SearchParameters):
    """The parameters of a search over penalties."""

    _: KW_ONLY
    alphas: Anything = 50
    alpha_ratio: Anything = 1e-2
    one_standard_error: Switch = True


class PenaltyByCrossValidation(PenaltyParameters, SearchedMixin, NormLearner):
    """One path per fold over the same penalties, then a fit with the best of them on all rows."""

    #: The estimator without cross-validation.
    _kind: Any

    @property
    def alpha_(self) -> float:
        """The chosen penalty."""
        return float(self.best_params_["alpha"])

    @property
    def alphas_(self) -> np.ndarray:
        """The penalties tried, falling."""
        return np.asarray(self.cv_results_["alpha"])

    @property
    def alpha_max_(self) -> float:
        """The smallest penalty known to leave all weights at zero."""
        return float(self._get_report().facts["alpha_max"])

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_grid(self.alphas, self.alpha_ratio)

    def _more_columns(self, found: SearchResult) -> dict[str, Any]:
        return {"alpha": found.cv_results["param_alpha"]}

    def _refit(self, problem: PenaltyProblem, params: dict[str, Any], progress: FitTask) -> None:
        task = progress.task("refit", int(self.max_iter))
        found = self._solve(problem.training, radius=None, progress=task, **params)
        self._keep(found, problem.outputs, alpha_max=problem.alpha_max)
        task.end(dict)


class _OneDesignCV(PenaltyByCrossValidation):
    """Cross-validation where all outputs have one ``X``, split by rows."""

    def _search_problem(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> PenaltyProblem:
        refuse_table(self, X)
        table, y = self._validate(X, y)
        weight = None
        if sample_weight is not None:
            weight = check_weights(sample_weight, table.shape[0], np.float64)
        training, outputs = self._prepare(table, y, sample_weight)
        # Folds take rows, the fit takes columns.
        rows = table.tocsr() if is_sparse(table) else table
        plain = self._make_learner(self._kind)
        return PenaltyProblem(
            plain, rows, y, weight, training, outputs, self.alphas, self.alpha_ratio
        )


@dataclass(eq=False, repr=False)
class MixedNormClassifierCV(_OneDesignCV, NormClassifier):
    """Linear multi-class classifier under a matrix norm, its penalty chosen by cross-validation.

    One path over the same penalties is fitted per fold, every penalty is scored on the held-out
    rows, and the chosen one is fitted on all data.

    Parameters
    ----------
    norm : {"l1,1", "l2,1", "l2,2", "linf,1", "trace"} or norm object, default="l2,1"
        The norm, by name or as an object of :mod:`mixnorm.norms`.
    alphas : int or sequence of float, default=50
        Falling penalties to try, or how many to take, evenly spaced in logarithms, from the
        smallest penalty that leaves no weights. A penalty is the weight of the norm beside the
        weighted mean loss, for the weights of the columns as given: it is in units of the columns,
        unless ``standardize=True``.
    alpha_ratio : float, default=1e-2
        The last of these divided by the first; not used where penalties are given.
    loss, class_weight, fit_intercept, standardize, tol, max_iter
        As in :class:`MixedNormClassifier`; balanced weights, and standard deviations, are those of
        the rows of each fit. Scores do not use balanced weights.
    cv : int, cross-validation splitter or iterable, default=None
        How to split; None takes five stratified folds.
    scoring : str or callable, default=None
        What to maximise; None takes accuracy.
    one_standard_error : bool, default=True
        Choose the largest penalty whose mean score is within one standard error of the best,
        instead of the best.
    n_jobs : int, default=None
        Folds fitted at the same time; None means 1, -1 all processors.

    Attributes
    ----------
    alpha_ : float
        The chosen penalty.
    alphas_ : ndarray of shape (n_alphas,)
        The penalties tried, falling.
    alpha_max_ : float
        The smallest penalty known to leave all weights at zero.
    cv_results_ : dict of ndarray
        ``"alpha"``, ``"mean_test_score"``, ``"std_test_score"``, ``"standard_error"`` and
        ``"split0_test_score"``, ... for every penalty.
    best_params_ : dict
        The chosen ``"alpha"``.
    best_score_ : float
        Mean held-out score of the chosen penalty.
    best_index_, n_splits_ : int
        The row of the chosen penalty in ``cv_results_``, and the number of folds with scores.
    coef_, intercept_, classes_, support_, selected_, selected_names_, feature_importances_, \
rank_, dual_gap_, objective_, norm_value_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`MixedNormClassifier`, for the model fitted on all data.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixnorm import MixedNormClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MixedNormClassifierCV("l2,1", alphas=20).fit(X, y)
    >>> len(model.support_) <= 3, bool(model.best_score_ > 0.9)
    (True, True)
    """

    _kind = MixedNormClassifier

    _: KW_ONLY
    loss: Loss = "logistic"
    class_weight: ClassWeight = None


@dataclass(eq=False, repr=False)
class MixedNormRegressorCV(_OneDesignCV, NormRegressor):
    """Linear regressor under a matrix norm, its penalty chosen by cross-validation.

    One path over the same penalties is fitted per fold, every penalty is scored on the held-out
    rows, and the chosen one is fitted on all data.

    Parameters
    ----------
    norm : {"l1,1", "l2,1", "l2,2", "linf,1", "trace"} or norm object, default="l2,1"
        The norm, by name or as an object of :mod:`mixnorm.norms`.
    alphas : int or sequence of float, default=50
        Falling penalties to try, or how many to take, evenly spaced in logarithms, from the
        smallest penalty that leaves no weights. A penalty is the weight of the norm beside the
        weighted mean loss, for the weights of the columns as given: it is in units of the columns,
        unless ``standardize=True``.
    alpha_ratio : float, default=1e-2
        The last of these divided by the first; not used where penalties are given.
    loss, fit_intercept, standardize, tol, max_iter
        As in :class:`MixedNormRegressor`; standard deviations are those of the rows of each fit.
    cv : int, cross-validation splitter or iterable, default=None
        How to split; None takes five folds.
    scoring : str or callable, default=None
        What to maximise; None takes R².
    one_standard_error : bool, default=True
        Choose the largest penalty whose mean score is within one standard error of the best,
        instead of the best.
    n_jobs : int, default=None
        Folds fitted at the same time; None means 1, -1 all processors.

    Attributes
    ----------
    alpha_ : float
        The chosen penalty.
    alphas_ : ndarray of shape (n_alphas,)
        The penalties tried, falling.
    alpha_max_ : float
        The smallest penalty known to leave all weights at zero.
    cv_results_ : dict of ndarray
        ``"alpha"``, ``"mean_test_score"``, ``"std_test_score"``, ``"standard_error"`` and
        ``"split0_test_score"``, ... for every penalty.
    best_params_ : dict
        The chosen ``"alpha"``.
    best_score_ : float
        Mean held-out score of the chosen penalty.
    best_index_, n_splits_ : int
        The row of the chosen penalty in ``cv_results_``, and the number of folds with scores.
    coef_, intercept_, support_, selected_, selected_names_, feature_importances_, rank_, \
dual_gap_, objective_, norm_value_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`MixedNormRegressor`, for the model fitted on all data.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from mixnorm import MixedNormRegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = MixedNormRegressorCV("l2,1", alphas=20).fit(X, y)
    >>> len(model.support_) < 10, bool(model.best_score_ > 0.4)
    (True, True)
    """

    _kind = MixedNormRegressor

    _: KW_ONLY
    loss: Loss = "squared"
