"""ShareBoost with the number of features, and the penalty, chosen by cross-validation."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import clone

from mixnorm._array import Array, ArrayLike, MatrixLike
from mixnorm.estimators._common.arrays import take_rows
from mixnorm.estimators._common.inputs import DEFAULT_SIZE, check_weights, weight_numbers
from mixnorm.estimators._common.parameters import ListOf, maybe, values_to_try
from mixnorm.estimators._common.progress import FitTask
from mixnorm.estimators._common.search import RowProblem, SearchedMixin
from mixnorm.estimators.shareboost.base import BaseShareBoost
from mixnorm.estimators.shareboost.learners import ShareBoostClassifier, ShareBoostRegressor
from mixnorm.estimators.shareboost.parameters import ALPHA
from mixnorm.exceptions import (
    FewerFeaturesWarning,
    InterruptedFitWarning,
    LightRowsWarning,
    NotConvergedWarning,
)
from mixnorm.selection import Candidate, SearchResult

# A candidate is not warned of: the fit on all rows is, and so is an interrupted search.
_SILENCED = (
    FewerFeaturesWarning,
    InterruptedFitWarning,
    LightRowsWarning,
    NotConvergedWarning,
)


class SizeProblem(RowProblem):
    """The rows of a search over sizes: a chain per penalty, which is one path.

    Held-out rows get weight zero instead of being cut out, so that no fold copies ``X``.

    Parameters
    ----------
    estimator, X, y, weight
        As in :class:`RowProblem`.
    alphas : list of float or "auto"
        The penalties.
    """

    def __init__(
        self,
        estimator: Any,
        X: MatrixLike,
        y: ArrayLike,
        weight: np.ndarray | None,
        alphas: list[Any],
    ) -> None:
        super().__init__(estimator, X, y, weight)
        self.alphas = alphas
        longest = estimator.n_features_to_select
        if longest is None:  # a budget sets no limit that is known before the fit
            longest = DEFAULT_SIZE if estimator.cost_budget is None else sys.maxsize
        self.chains = (int(longest),) * len(alphas)

    def fold(self, train: Any, test: Any) -> Callable[[int], Iterator[Candidate]]:
        """Return what goes along the sizes of a path, fitted on the rows ``train``."""
        weight = np.zeros(self.X.shape[0])
        weight[train] = 1.0 if self.weight is None else self.weight[train]
        return partial(self._sizes, weight, test)

    def _sizes(self, weight: np.ndarray, test: Any, chain: int) -> Iterator[Candidate]:
        alpha = self.alphas[chain]
        learner = clone(self.estimator).set_params(alpha=alpha)
        with warnings.catch_warnings():
            for category in _SILENCED:
                warnings.simplefilter("ignore", category)
            model = self.path(learner, weight, test).model_
        for size, scores in enumerate(model.staged_scores(take_rows(self.X, test)), start=1):
            params = {"n_features_to_select": size, "alpha": alpha}
            yield Candidate(params, test, scores, model.truncate(size))
        if model.path.interrupted:
            raise KeyboardInterrupt

    def path(self, learner: Any, weight: np.ndarray, test: Any) -> Any:
        """Return the learner of a fold, fitted with weights that are zero for the rows ``test``."""
        return learner.fit(self.X, self.y, sample_weight=weight)

    def make_estimator(self, candidate: Candidate) -> Any:
        """Return a smaller estimator, read off the path, for a scorer."""
        return super().make_estimator(candidate).set_params(**candidate.params)


@dataclass(eq=False, repr=False)
class _SizeByCrossValidation(SearchedMixin, BaseShareBoost):
    """One path per penalty and fold, then one path on all data to the size that did best."""

    # Not a parameter of a search: every fit starts anew.
    warm_start: ClassVar[bool] = False  # type: ignore[misc]
    #: The estimator without cross-validation.
    _kind: ClassVar[Any]
    _no_candidate = (
        "No feature lowers the loss in any fold. Check that X has columns that vary, that y "
        "depends on them, and that more than one class or value has weight."
    )

    _: KW_ONLY
    alphas: Annotated[Any, maybe(ListOf(ALPHA, texts=True))] = None

    def _search_problem(self, X: Array, y: Array, sample_weight: Array) -> SizeProblem:
        X, pool = self._training_table(X)
        X, y = self._check_training(X, y)
        weight = None
        if sample_weight is not None:  # not divided by its sum, as alpha="auto" counts rows
            check_weights(sample_weight, X.shape[0], np.float64)
            weight = np.broadcast_to(weight_numbers(sample_weight), (X.shape[0],))
        # The pool knows the shape of images, if X holds any.
        plain = self._make_learner(self._kind, pool=pool)
        plain._remember(X, y)
        one = self.alphas is None
        alphas = [self.alpha] if one else values_to_try(self.alphas, "alphas", texts=True)
        return SizeProblem(plain, X, y, weight, alphas)

    def _refit(self, problem: SizeProblem, params: dict[str, Any], progress: FitTask) -> None:
        self._fit(problem.X, problem.y, problem.weight, problem.estimator.pool, progress)

    def _more_columns(self, found: SearchResult) -> dict[str, Any]:
        columns = found.cv_results
        return {
            "n_features": columns["param_n_features_to_select"],
            "alpha": columns["param_alpha"],
        }

    @property
    def n_features_to_select_(self) -> int:
        """The number of features of the model."""
        return int(self._get_model().size)

    def _given_alpha(self) -> Any:
        return self.search_.best_params["alpha"]

    def _wanted(self, available: int) -> int:
        return min(int(self.search_.best_params["n_features_to_select"]), available)


class ShareBoostClassifierCV(_SizeByCrossValidation, ShareBoostClassifier):
    """ShareBoost classifier that chooses its number of features by cross-validation.

    One path is fitted per fold, all sizes are scored on the held-out rows, and one path on all data
    is fitted to the size that did best.

    Parameters
    ----------
    n_features_to_select : int, optional
        The largest number of features to try. None tries up to 20, or what ``cost_budget`` allows.
    alpha, loss, pool, max_inputs, cost_budget, fit_intercept, random_state, options
        As in :class:`ShareBoostClassifier`.
    alphas : list of float or "auto", optional
        Values of ``alpha`` to try, each with a path per fold; None tries ``alpha`` alone.
    cv : int, cross-validation splitter or iterable, default=None
        How to split; None takes five stratified folds.
    scoring : str or callable, default=None
        What to maximise; None takes accuracy.
    one_standard_error : bool, default=False
        Choose the smallest model, of those with the penalty of the best one, whose mean score is
        within one standard error of the best.
    n_jobs : int, default=None
        Folds fitted at the same time; None means 1, -1 all processors.

    Attributes
    ----------
    n_features_to_select_ : int
        The chosen number of features.
    best_params_ : dict
        The chosen ``"n_features_to_select"`` and ``"alpha"``.
    cv_results_ : dict of ndarray
        The keys of scikit-learn's searches, and ``"n_features"``, ``"alpha"`` and
        ``"standard_error"``, for every size of the first penalty, then of the next. A score is NaN
        in a fold where no feature lowers the loss.
    best_index_ : int
        The row of the chosen size and penalty in ``cv_results_``.
    best_score_ : float
        Mean held-out score of the chosen size and penalty.
    n_splits_ : int
        The number of folds that the choice rests on.
    alpha_, options_, selected_, path_, coef_, intercept_, null_loss_, classes_, n_iter_, \
n_features_in_, feature_names_in_
        As in :class:`ShareBoostClassifier`, for the model fitted on all data.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixnorm import ShareBoostClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ShareBoostClassifierCV(one_standard_error=True).fit(X, y)
    >>> model.n_features_to_select_ <= 4
    True
    """

    _kind = ShareBoostClassifier


class ShareBoostRegressorCV(_SizeByCrossValidation, ShareBoostRegressor):
    """ShareBoost regressor that chooses its number of features by cross-validation.

    One path is fitted per fold, all sizes are scored on the held-out rows, and one path on all data
    is fitted to the size that did best.

    Parameters
    ----------
    n_features_to_select : int, optional
        The largest number of features to try. None tries up to 20, or what ``cost_budget`` allows.
    alpha, loss, pool, max_inputs, cost_budget, fit_intercept, random_state, options
        As in :class:`ShareBoostRegressor`.
    alphas : list of float or "auto", optional
        Values of ``alpha`` to try, each with a path per fold; None tries ``alpha`` alone.
    cv : int, cross-validation splitter or iterable, default=None
        How to split; None takes five folds.
    scoring : str or callable, default=None
        What to maximise; None takes R².
    one_standard_error : bool, default=False
        Choose the smallest model, of those with the penalty of the best one, whose mean score is
        within one standard error of the best.
    n_jobs : int, default=None
        Folds fitted at the same time; None means 1, -1 all processors.

    Attributes
    ----------
    n_features_to_select_ : int
        The chosen number of features.
    best_params_ : dict
        The chosen ``"n_features_to_select"`` and ``"alpha"``.
    cv_results_ : dict of ndarray
        The keys of scikit-learn's searches, and ``"n_features"``, ``"alpha"`` and
        ``"standard_error"``, for every size of the first penalty, then of the next. A score is NaN
        in a fold where no feature lowers the loss.
    best_index_ : int
        The row of the chosen size and penalty in ``cv_results_``.
    best_score_ : float
        Mean held-out score of the chosen size and penalty.
    n_splits_ : int
        The number of folds that the choice rests on.
    alpha_, options_, selected_, path_, coef_, intercept_, null_loss_, n_iter_, n_features_in_, \
feature_names_in_
        As in :class:`ShareBoostRegressor`, for the model fitted on all data.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from mixnorm import ShareBoostRegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ShareBoostRegressorCV(one_standard_error=True).fit(X, y)
    >>> bool(model.best_score_ > 0.4)
    True
    """

    _kind = ShareBoostRegressor
