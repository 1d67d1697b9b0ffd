"""ShareBoost with the number of features, and the penalty, chosen by cross-validation."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone, is_classifier

from mixnorm._array import to_numpy
from mixnorm.estimators._common.arrays import take_rows
from mixnorm.estimators._common.inputs import (
    check_weights,
    weight_numbers,
)
from mixnorm.estimators._common.parameters import Anything, Folds, Jobs, Scoring, Switch
from mixnorm.estimators._common.progress import Progress, all_or_nothing, with_callbacks
from mixnorm.estimators._common.regressor import r2
from mixnorm.estimators._common.search import SearchedMixin, row_folds
from mixnorm.estimators.shareboost.base import BaseShareBoost
from mixnorm.estimators.shareboost.learners import ShareBoostClassifier, ShareBoostRegressor
from mixnorm.estimators.shareboost.parameters import ALPHA
from mixnorm.exceptions import (
    FewerFeaturesWarning,
    InterruptedFitWarning,
    LightRowsWarning,
    NotConvergedWarning,
)
from mixnorm.selection import SearchResult, choose_size, standard_error


@dataclass(eq=False, repr=False)
class _SizeByCrossValidation(SearchedMixin, BaseShareBoost):
    """One path per penalty and fold, then one path on all data to the size that did best."""

    # Not a parameter of a search: every fit starts anew.
    warm_start: ClassVar[bool] = False  # type: ignore[misc]
    _: KW_ONLY
    alphas: Anything = None
    cv: Folds = None
    scoring: Scoring = None
    one_standard_error: Switch = False
    n_jobs: Jobs = None

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose the number of features by cross-validation, then fit on all data.

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
        alphas = self._alphas()
        with all_or_nothing(self):
            X, pool = self._training_table(X)
            X, y = self._check_training(X, y)
            if sample_weight is not None:
                check_weights(sample_weight, X.shape[0], np.float64)
                sample_weight = np.broadcast_to(weight_numbers(sample_weight), (X.shape[0],))
            labels = to_numpy(y)
            splits = row_folds(
                self.cv,
                X,
                labels,
                groups,
                classifier=is_classifier(self),
                weight=sample_weight,
            )
            if sample_weight is not None and not all(
                np.any(sample_weight[train] > 0) for train, _ in splits
            ):
                raise ValueError(
                    "In a fold of cv, sample_weight is zero for all rows to learn from. Shuffle "
                    "the rows, give fewer folds, or leave rows of weight zero out."
                )
            progress = Progress.of_fit(self, X, y, sample_weight, len(splits) * len(alphas) + 1)
            scores = self._scored(X, y, sample_weight, splits, alphas, progress, pool)
            self.search_ = self._choose(scores, alphas)
            self._fit(X, y, sample_weight, pool, progress)
            progress.end(dict)
            return self

    def _alphas(self) -> list[Any]:
        """Return the penalties to try."""
        if self.alphas is None:
            return [self.alpha]
        given = [self.alphas] if isinstance(self.alphas, (str, numbers.Real)) else self.alphas
        if not isinstance(given, Iterable):
            raise TypeError(f"alphas={self.alphas!r} must be a list of numbers or 'auto', or None.")
        alphas = [each.item() if isinstance(each, np.generic) else each for each in given]
        if not alphas:
            raise ValueError("alphas is empty; give at least one number or 'auto', or None.")
        for alpha in alphas:
            ALPHA.check("an entry of alphas", alpha)
        return alphas

    def _scored(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        splits: list[Any],
        alphas: list[Any],
        progress: Progress,
        pool: Any,
    ) -> np.ndarray:
        """Return the scores of held-out folds: ``(n_alphas, n_splits, n_sizes)``."""
        from sklearn.utils.parallel import Parallel, delayed

        plain, scorer = self._plain(), self._scorer()
        plain.pool = pool  # which knows the shape of images, if X holds any
        chains = [(alpha, train, test) for alpha in alphas for train, test in splits]
        jobs = (
            delayed(_held_out_scores)(
                clone(plain).set_params(alpha=alpha), X, y, sample_weight, train, test, scorer
            )
            for alpha, train, test in chains
        )
        curves: list[list[float]] = []
        task = progress.task("fold")
        for curve in Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs):
            curves.append(curve)
            task.end()
            if len(curves) < len(chains):
                task = progress.task("fold")
        longest = max(len(curve) for curve in curves)
        if longest == 0:
            raise ValueError(
                "No feature lowers the loss in any fold. Check that X has columns that vary, that "
                "y depends on them, and that more than one class or value has weight."
            )
        # A path that ran out of features keeps its last model; one without any has no score.
        padded = [[*curve, *(curve[-1:] or [np.nan]) * (longest - len(curve))] for curve in curves]
        scores = np.asarray(padded).reshape(len(alphas), len(splits), longest)
        kept = ~np.all(np.isnan(scores), axis=(0, 2))
        return scores[:, kept, :]

    def _choose(self, scores: np.ndarray, alphas: list[Any]) -> SearchResult:
        """Choose penalty and size."""
        n_alphas, n_splits, n_sizes = scores.shape
        # One table with all penalties of a size together, small sizes first.
        table = scores.transpose(1, 2, 0).reshape(n_splits, n_sizes * n_alphas)
        chosen = choose_size(table, one_standard_error=self.one_standard_error)
        if self.one_standard_error:  # of the penalties of that size, the best
            first = chosen - chosen % n_alphas
            chosen = first + int(np.nanargmax(table.mean(axis=0)[first : first + n_alphas]))
        best = {
            "n_features_to_select": 1 + chosen // n_alphas,
            "alpha": alphas[chosen % n_alphas],
        }
        results = {
            "n_features": np.repeat(np.arange(1, n_sizes + 1), n_alphas),
            "alpha": np.asarray(_values(alphas) * n_sizes),
            "mean_test_score": table.mean(axis=0),
            "std_test_score": table.std(axis=0),
            "standard_error": standard_error(table),
            **{f"split{fold}_test_score": curve for fold, curve in enumerate(table)},
        }
        return SearchResult(results, best, float(table.mean(axis=0)[chosen]))

    @property
    def n_features_to_select_(self) -> int:
        """The number of features of the model."""
        return int(self._fitted().size)

    def _given_alpha(self) -> Any:
        return self.search_.best_params["alpha"]

    def _plain(self) -> Any:
        """Return the estimator without cross-validation, with the same parameters."""
        kind = ShareBoostClassifier if is_classifier(self) else ShareBoostRegressor
        own = self.get_params(deep=False)
        return kind(**{name: own[name] for name in kind().get_params(deep=False) if name in own})

    def _scorer(self) -> Callable[..., float] | None:
        from sklearn.metrics import check_scoring

        return None if self.scoring is None else check_scoring(self, scoring=self.scoring)

    def _wanted(self, available: int) -> int:
        return min(int(self.search_.best_params["n_features_to_select"]), available)


def _values(alphas: list[Any]) -> list[Any]:
    """Return penalties as numbers; as texts, where one of them is."""
    if any(isinstance(alpha, str) for alpha in alphas):
        return [alpha if isinstance(alpha, str) else f"{alpha:g}" for alpha in alphas]
    return [float(alpha) for alpha in alphas]


def _held_out_scores(
    model: Any, X: Any, y: Any, sample_weight: Any, train: Any, test: Any, scorer: Any
) -> list[float]:
    """Fit a path on the training rows and score every size on the others.

    The other rows get weight zero instead of being cut out, so that no fold copies ``X``.
    """
    given = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    weight = np.zeros(X.shape[0])
    weight[train] = given[train]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewerFeaturesWarning)
        warnings.simplefilter("ignore", LightRowsWarning)  # told once, of all rows
        warnings.simplefilter("ignore", NotConvergedWarning)
        warnings.simplefilter("error", InterruptedFitWarning)
        try:
            model.fit(X, y, sample_weight=weight)
        except InterruptedFitWarning:  # one fold's path cut short would bias the choice
            raise KeyboardInterrupt from None
    held = {} if sample_weight is None else {"sample_weight": given[test]}
    if scorer is not None:
        sizes = range(1, len(model.path_["loss"]) + 1)
        found, true = take_rows(X, test), take_rows(y, test)
        return [float(scorer(model.truncate(m), found, true, **held)) for m in sizes]
    from sklearn.metrics import accuracy_score

    score, true = accuracy_score if is_classifier(model) else r2, to_numpy(y)[test]
    found = map(to_numpy, model.staged_predict(take_rows(X, test)))
    return [float(score(true, values, **held)) for values in found]


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
        Choose the smallest model whose mean score is within one standard error of the best.
    n_jobs : int, default=None
        Folds fitted at the same time; None means 1, -1 all processors.

    Attributes
    ----------
    n_features_to_select_ : int
        The chosen number of features.
    best_params_ : dict
        The chosen ``"n_features_to_select"`` and ``"alpha"``.
    cv_results_ : dict of ndarray
        ``"n_features"``, ``"alpha"``, ``"mean_test_score"``, ``"std_test_score"``,
        ``"standard_error"`` and ``"split0_test_score"``, ... for every size and penalty.
    best_score_ : float
        Mean held-out score of the chosen size and penalty.
    alpha_, selected_, path_, coef_, intercept_, null_loss_, classes_, n_iter_, n_features_in_, \
feature_names_in_
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
        Choose the smallest model whose mean score is within one standard error of the best.
    n_jobs : int, default=None
        Folds fitted at the same time; None means 1, -1 all processors.

    Attributes
    ----------
    n_features_to_select_ : int
        The chosen number of features.
    best_params_ : dict
        The chosen ``"n_features_to_select"`` and ``"alpha"``.
    cv_results_ : dict of ndarray
        ``"n_features"``, ``"alpha"``, ``"mean_test_score"``, ``"std_test_score"``,
        ``"standard_error"`` and ``"split0_test_score"``, ... for every size and penalty.
    best_score_ : float
        Mean held-out score of the chosen size and penalty.
    alpha_, selected_, path_, coef_, intercept_, null_loss_, n_iter_, n_features_in_, \
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
