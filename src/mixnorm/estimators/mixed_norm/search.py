"""The penalty chosen by cross-validation along a path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone, is_classifier

from mixnorm._array import is_sparse
from mixnorm.estimators._common.inputs import check_weights
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators._common.parameters import (
    Anything,
    ClassWeight,
    Count,
    Folds,
    Jobs,
    Loss,
    Norm,
    Scoring,
    Switch,
    Tolerance,
)
from mixnorm.estimators._common.progress import Progress, all_or_nothing, with_callbacks
from mixnorm.estimators._common.search import SearchedMixin, row_folds
from mixnorm.estimators.mixed_norm.base import NormLearner, check_grid
from mixnorm.estimators.mixed_norm.classifier import MixedNormClassifier, NormClassifier
from mixnorm.estimators.mixed_norm.regressor import MixedNormRegressor, NormRegressor
from mixnorm.estimators.mixed_norm.training import Training
from mixnorm.exceptions import NotConvergedWarning
from mixnorm.selection import SearchResult, choose_size, standard_error

# Evaluations of the loss for each iteration that is allowed, along the whole path of a fold.
FOLD_EFFORT = 6.0


class PenaltyByCrossValidation(SearchedMixin, NormLearner):
    """One path per fold over the same penalties, then a fit on all data with the best of them."""

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
        return float(self._reported().facts["alpha_max"])

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_grid(self.alphas, self.alpha_ratio)

    def _plain(self) -> Any:
        """Return the estimator without cross-validation, with the same parameters."""
        own = self.get_params(deep=False)
        known = self._kind().get_params(deep=False)
        return clone(self._kind(**{name: own[name] for name in known if name in own}))

    def _scorer(self) -> Callable[..., float] | None:
        from sklearn.metrics import check_scoring

        return None if self.scoring is None else check_scoring(self, scoring=self.scoring)

    def _choose(
        self,
        alphas: np.ndarray,
        jobs: list[tuple[Callable[..., Any], tuple[Any, ...]]],
        progress: Progress,
    ) -> SearchResult:
        """Run the folds, each a function and its arguments, and return scores and choice.

        A fold gives the held-out scores of all penalties, in the order of ``alphas``, and which of
        their fits took more effort than is allowed.
        """
        from sklearn.utils.parallel import Parallel, delayed

        calls = (delayed(function)(*arguments) for function, arguments in jobs)
        curves: list[list[float]] = []
        exhausted = np.zeros(len(alphas), dtype=np.intp)
        task = progress.task("fold")
        for curve, cut in Parallel(n_jobs=self.n_jobs, return_as="generator")(calls):
            curves.append(curve)
            exhausted += cut
            task.end()
            if len(curves) < len(jobs):
                task = progress.task("fold")
        scores = np.asarray(curves, dtype=np.float64)
        # Falling penalties are growing models, so that the rule prefers large penalties.
        chosen = choose_size(scores, one_standard_error=bool(self.one_standard_error), what="alpha")
        if exhausted[chosen]:
            warn_caller(
                f"At alpha={alphas[chosen]:.3g}, which was chosen, {exhausted[chosen]} fits of "
                f"folds took more effort than max_iter={self.max_iter} allows, and did not reach "
                f"tol={self.tol:g}. Raise max_iter or tol, or scale X.",
                NotConvergedWarning,
            )
        cv_results = {
            "alpha": alphas,
            "mean_test_score": scores.mean(axis=0),
            "std_test_score": scores.std(axis=0),
            "standard_error": standard_error(scores),
            **{f"split{fold}_test_score": curve for fold, curve in enumerate(scores)},
        }
        best = float(cv_results["mean_test_score"][chosen])
        return SearchResult(cv_results, {"alpha": float(alphas[chosen])}, best)

    def _refit(
        self, training: Training, outputs: Any, alpha_max: float, progress: Progress
    ) -> None:
        """Fit on all data with the penalty that was chosen."""
        task = progress.task("refit", int(self.max_iter))
        found = self._solve(
            training, alpha=self.search_.best_params["alpha"], radius=None, progress=task
        )
        self._keep(found, outputs, alpha_max=alpha_max)
        task.end(dict)


class _OneDesignCV(PenaltyByCrossValidation):
    """Cross-validation where all outputs have one ``X``, split by rows."""

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose the penalty by cross-validation, then fit on all data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels or targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, in the fits and in the scores.
        groups : array-like of shape (n_samples,), optional
            Labels for splitters that keep groups of samples together.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        with all_or_nothing(self):
            X, y = self._validated(X, y)
            if sample_weight is not None:
                sample_weight = check_weights(sample_weight, X.shape[0], np.float64)
            training, outputs = self._prepared(X, y, sample_weight)
            alpha_max, alphas = self._grid(training, self.alphas, self.alpha_ratio)
            jobs = self._folds(X, y, sample_weight, groups, alphas)
            progress = Progress.of_fit(self, X, y, sample_weight, len(jobs) + 1)
            self.search_ = self._choose(alphas, jobs, progress)
            self._refit(training, outputs, alpha_max, progress)
            progress.end(dict)
            return self

    def _folds(
        self, X: Any, y: np.ndarray, sample_weight: Any, groups: Any, alphas: np.ndarray
    ) -> list[Any]:
        splits = row_folds(
            self.cv, X, y, groups, classifier=is_classifier(self), weight=sample_weight
        )
        plain, scorer = self._plain(), self._scorer()
        rows = X.tocsr() if is_sparse(X) else X
        data = (rows, y, sample_weight, alphas, scorer)
        return [(held_out_scores, (clone(plain), *data, *split)) for split in splits]


def held_out_scores(
    model: Any,
    X: Any,
    y: np.ndarray,
    sample_weight: np.ndarray | None,
    alphas: np.ndarray,
    scorer: Callable[..., float] | None,
    train: np.ndarray,
    test: np.ndarray,
) -> tuple[list[float], list[bool]]:
    """Fit a path on the training rows and score every penalty on the others.

    Also tells which fits took more effort than is allowed.
    """
    weight = None if sample_weight is None else sample_weight[train]
    held = {} if sample_weight is None else {"sample_weight": sample_weight[test]}
    training, outputs = model._prepared(X[train], y[train], weight)
    model.n_features_in_ = X.shape[1]
    held_X, held_y = X[test], y[test]
    scores: list[float] = []
    cut: list[bool] = []
    for found in model._solutions(training, alphas, FOLD_EFFORT):
        if found.interrupted:  # one fold's path cut short would bias the choice
            raise KeyboardInterrupt
        model.model_ = model._model(found, outputs)
        cut.append(found.exhausted and not found.converged)
        if scorer is None:
            scores.append(float(model.score(held_X, held_y, **held)))
        else:
            scores.append(float(scorer(model, held_X, held_y, **held)))
    return scores, cut


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
        the rows of each fit. Balanced weights do not count in scores.
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
    coef_, intercept_, classes_, support_, rank_, dual_gap_, objective_, norm_value_, n_iter_, \
n_features_in_, feature_names_in_
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

    norm: Norm = "l2,1"
    _: KW_ONLY
    alphas: Anything = 50
    alpha_ratio: Anything = 1e-2
    loss: Loss = "logistic"
    cv: Folds = None
    scoring: Scoring = None
    one_standard_error: Switch = True
    n_jobs: Jobs = None
    class_weight: ClassWeight = None
    fit_intercept: Switch = True
    standardize: Switch = False
    tol: Tolerance = 1e-4
    max_iter: Count = 1000


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
    coef_, intercept_, support_, rank_, dual_gap_, objective_, norm_value_, n_iter_, \
n_features_in_, feature_names_in_
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

    norm: Norm = "l2,1"
    _: KW_ONLY
    alphas: Anything = 50
    alpha_ratio: Anything = 1e-2
    loss: Loss = "squared"
    cv: Folds = None
    scoring: Scoring = None
    one_standard_error: Switch = True
    n_jobs: Jobs = None
    fit_intercept: Switch = True
    standardize: Switch = False
    tol: Tolerance = 1e-4
    max_iter: Count = 1000
