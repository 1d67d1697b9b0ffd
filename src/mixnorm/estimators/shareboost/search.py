"""ShareBoost with the number of features, and the penalty, chosen by cross-validation."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm.data import BlockTable
from mixnorm.estimators._common.arrays import take_rows
from mixnorm.estimators._common.blocks.tables import require_target, require_y, validate_table
from mixnorm.estimators._common.inputs import DEFAULT_SIZE, check_weights, weight_numbers
from mixnorm.estimators._common.parameters import ListOf, maybe, values_to_try
from mixnorm.estimators._common.progress import FitTask
from mixnorm.estimators._common.search import RowProblem, SearchedMixin
from mixnorm.estimators.shareboost.base import BaseShareBoost
from mixnorm.estimators.shareboost.learners import ShareBoostClassifier, ShareBoostRegressor
from mixnorm.estimators.shareboost.parameters import ALPHA
from mixnorm.estimators.shareboost.table_search import TableProblem, check_table_search
from mixnorm.exceptions import MixnormWarning
from mixnorm.selection import Candidate, SearchResult, search


@dataclass(eq=False)
class SizeProblem(RowProblem):
    """The rows of a search over sizes: each penalty has a chain, the sizes of one path.

    Held-out rows get weight zero, so that no fold copies ``X``.

    Parameters
    ----------
    estimator, X, y, weight
        As in :class:`RowProblem`.
    alphas : list of float or "auto"
        The penalties.
    """

    alphas: list[Any]

    def __post_init__(self) -> None:
        longest = self.estimator.n_features_to_select
        if longest is None:  # under a budget, the number of features is not known before the fit
            # The number only bounds a chain, which may be shorter.
            longest = DEFAULT_SIZE if self.estimator.cost_budget is None else sys.maxsize
        self.chains = (int(longest),) * len(self.alphas)

    def fold(self, train: np.ndarray, test: np.ndarray) -> Callable[[int], Iterator[Candidate]]:
        """Return a function of the chain that yields its sizes, fitted on the rows ``train``."""
        # Held-out rows of weight zero change nothing in a fit, and no fold copies ``X``.
        weight = np.zeros(self.X.shape[0])
        weight[train] = 1.0 if self.weight is None else self.weight[train]
        return partial(self._sizes, weight, test)

    def _sizes(self, weight: np.ndarray, test: np.ndarray, chain: int) -> Iterator[Candidate]:
        """Yield the sizes of the path of one penalty."""
        alpha = self.alphas[chain]
        learner = clone(self.estimator).set_params(alpha=alpha)
        with warnings.catch_warnings():  # of candidates; the fit on all rows has its own warnings
            warnings.simplefilter("ignore", MixnormWarning)
            model = self.path(learner, weight, test).model_
        for size, scores in enumerate(model.staged_scores(take_rows(self.X, test)), start=1):
            params = {"n_features_to_select": size, "alpha": alpha}
            yield Candidate(params, test, scores, model.truncate(size))
        # What is done has been yielded; an unfinished path must not be compared with whole ones.
        if model.path.interrupted:
            raise KeyboardInterrupt

    def path(self, learner: BaseShareBoost, weight: np.ndarray, test: np.ndarray) -> Any:
        """Return the learner of a fold, fitted with weights that are zero for the rows ``test``."""
        return learner.fit(self.X, self.y, sample_weight=weight)

    def make_estimator(self, candidate: Candidate) -> Any:
        """Return the estimator of a candidate's size, for a scorer."""
        return super().make_estimator(candidate).set_params(**candidate.params)


@dataclass(eq=False, repr=False)
class _SizeByCrossValidation(SearchedMixin, BaseShareBoost):
    """Fits one path per penalty and fold, then one path on all data up to the best size."""

    # Not a parameter of a search, as every fit starts from an empty model.
    warm_start: ClassVar[bool] = False  # type: ignore[misc]
    #: The class without cross-validation.
    _kind: ClassVar[Any]
    _no_candidate = (
        "No feature lowers the loss in any fold. Check that X has columns that vary, that y "
        "depends on them, and that more than one class or value has weight."
    )

    _: KW_ONLY
    alphas: Annotated[Any, maybe(ListOf(ALPHA, texts=True))] = None

    def _search_problem(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> SizeProblem:
        X, pool = self._training_table(X)
        X, y = self._check_training(X, require_y(self, y))
        weight = None
        if sample_weight is not None:  # not divided by their sum, as alpha="auto" counts rows
            check_weights(sample_weight, X.shape[0], np.float64)
            weight = np.broadcast_to(weight_numbers(sample_weight), (X.shape[0],))
        # The pool knows the shape of images, if X has any.
        plain = self._make_learner(self._kind, pool=pool)
        plain._remember(X, y)
        given = self.alpha if self.alphas is None else self.alphas
        return SizeProblem(plain, X, y, weight, values_to_try(given, "alphas", texts=True))

    def _fit_table(self, table: BlockTable, progress: FitTask | None = None) -> Self:
        """Search over the sizes of paths of a table, then fit one of the best size on all rows."""
        if progress is not None:  # the search has made its choice
            return BaseShareBoost._fit_table(self, table, progress)
        validate_table(self, table)
        require_target(self, table)
        check_table_search(self)
        plain = self._make_learner(self._kind)
        given = self.alpha if self.alphas is None else self.alphas
        problem = TableProblem(plain, table, values_to_try(given, "alphas", texts=True))
        folds = problem.folds(self.cv)
        whole = FitTask.of_fit(self, table, None, None, len(folds) + 1)
        found = search(problem, folds, scoring={"score": problem.score}, progress=whole)
        self._keep_search(found, len(folds))
        self._fit_table(table, whole)
        whole.end(dict)
        return self

    def _refit(self, problem: SizeProblem, params: dict[str, Any], progress: FitTask) -> None:
        self._fit(problem.X, problem.y, problem.weight, problem.estimator.pool, progress)

    def _more_columns(self, found: SearchResult) -> dict[str, Any]:
        names = {"n_features": "param_n_features_to_select", "alpha": "param_alpha"}
        return {short: found.cv_results[name] for short, name in names.items()}

    @property
    def n_features_to_select_(self) -> int:
        """The number of features of the model."""
        return int(self._get_model().size)

    def _get_alpha(self) -> Any:
        return self.search_.best_params["alpha"]

    def _count_features(self, available: int) -> int:
        return min(int(self.search_.best_params["n_features_to_select"]), available)


@dataclass(eq=False, repr=False)
class ShareBoostClassifierCV(_SizeByCrossValidation, ShareBoostClassifier):
    """ShareBoost classifier that chooses its number of features by cross-validation.

    The search fits one path per fold and scores all its sizes on the held-out rows. Then one path
    is fitted on all data, up to the size with the best mean score.

    Parameters
    ----------
    n_features_to_select : int, optional
        The largest number of features to try. None tries up to 20, or what ``cost_budget`` allows.
    alpha, loss, pool, max_inputs, cost_budget, fit_intercept, random_state, options, \
class_weight
        As in :class:`ShareBoostClassifier`.
    alphas : list of float or "auto", optional
        Values of ``alpha`` to try, each with a path per fold; None tries only ``alpha``.
    cv : int, cross-validation splitter or iterable, default=None
        How to split the rows; None takes five stratified folds.
    scoring : str or callable, default=None
        The score to maximise; None takes accuracy.
    one_standard_error : bool, default=False
        Among the models with the penalty of the best one, choose the smallest whose mean score is
        within one standard error of the best.
    n_jobs : int, default=None
        Number of folds fitted at the same time; None means 1, -1 all processors.

    Attributes
    ----------
    n_features_to_select_ : int
        The chosen number of features.
    best_params_ : dict
        The chosen ``"n_features_to_select"`` and ``"alpha"``.
    cv_results_ : dict of ndarray
        The keys of scikit-learn's searches, and ``"n_features"``, ``"alpha"`` and
        ``"standard_error"``. There is one row for every size of the first penalty, then of the
        next, and so on. A score is NaN in a fold where no feature lowers the loss.
    best_index_ : int
        The row of the chosen size and penalty in ``cv_results_``.
    best_score_ : float
        Mean held-out score of the chosen size and penalty.
    n_splits_ : int
        The number of folds that were scored.
    alpha_, options_, selected_, support_, selected_names_, feature_importances_, path_, coef_, \
intercept_, cost_, null_loss_, classes_, n_iter_, n_features_in_, feature_names_in_
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

    The search fits one path per fold and scores all its sizes on the held-out rows. Then one path
    is fitted on all data, up to the size with the best mean score.

    Parameters
    ----------
    n_features_to_select : int, optional
        The largest number of features to try. None tries up to 20, or what ``cost_budget`` allows.
    alpha, loss, pool, max_inputs, cost_budget, fit_intercept, random_state, options
        As in :class:`ShareBoostRegressor`.
    alphas : list of float or "auto", optional
        Values of ``alpha`` to try, each with a path per fold; None tries only ``alpha``.
    cv : int, cross-validation splitter or iterable, default=None
        How to split the rows; None takes five folds.
    scoring : str or callable, default=None
        The score to maximise; None takes R².
    one_standard_error : bool, default=False
        Among the models with the penalty of the best one, choose the smallest whose mean score is
        within one standard error of the best.
    n_jobs : int, default=None
        Number of folds fitted at the same time; None means 1, -1 all processors.

    Attributes
    ----------
    n_features_to_select_ : int
        The chosen number of features.
    best_params_ : dict
        The chosen ``"n_features_to_select"`` and ``"alpha"``.
    cv_results_ : dict of ndarray
        The keys of scikit-learn's searches, and ``"n_features"``, ``"alpha"`` and
        ``"standard_error"``. There is one row for every size of the first penalty, then of the
        next, and so on. A score is NaN in a fold where no feature lowers the loss.
    best_index_ : int
        The row of the chosen size and penalty in ``cv_results_``.
    best_score_ : float
        Mean held-out score of the chosen size and penalty.
    n_splits_ : int
        The number of folds that were scored.
    alpha_, options_, selected_, support_, selected_names_, feature_importances_, path_, coef_, \
intercept_, cost_, null_loss_, n_iter_, n_features_in_, feature_names_in_
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
