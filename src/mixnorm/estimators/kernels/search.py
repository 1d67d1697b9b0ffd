"""Multiple kernel learning with parameters chosen by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass

from mixnorm.estimators._common.parameters import ClassWeight
from mixnorm.estimators.kernels.base import TailSumsMixin
from mixnorm.estimators.kernels.block_penalty import SMSDMKLClassifier, UFOMKLClassifier
from mixnorm.estimators.kernels.classifier import HingeLoss, KernelClassifier
from mixnorm.estimators.kernels.inputs import (
    BankParameters,
    Betas,
    BlockExponent,
    Exponents,
    Floor,
    LossWeights,
    Tails,
)
from mixnorm.estimators.kernels.mkl import ConvMKLClassifier, MKLClassifier
from mixnorm.estimators.kernels.regressor import KernelRegressor, MKLRegressor
from mixnorm.estimators.kernels.search_base import KernelCV


@dataclass(eq=False, repr=False, kw_only=True)
class _CostSearch(BankParameters, KernelCV):
    """A search over values of ``C``."""

    Cs: LossWeights = (0.1, 1.0, 10.0, 100.0, 1000.0)


@dataclass(eq=False, repr=False, kw_only=True)
class MKLClassifierCV(_CostSearch, KernelClassifier):
    """:class:`MKLClassifier` with ``C`` and ``p`` chosen by cross-validation.

    Kernels are computed once. Every fold takes its rows of them, and goes along the values of
    ``C``, each fit started from the one before.

    Parameters
    ----------
    bank : KernelBank, optional
        The kernels, as in :class:`MKLClassifier`.
    kernel : {"bank", "precomputed"}, default="bank"
        ``"precomputed"``: ``X`` holds kernel matrices.
    Cs : list of float, default=(0.1, 1, 10, 100, 1000)
        Values of ``C`` to try.
    ps : list of float, default=(1, 1.2, 2)
        Values of ``p`` to try.
    cv : int, splitter or iterable, default=None
        Folds, as in scikit-learn; None takes five.
    scoring : str or callable, default=None
        Score to maximise; None takes accuracy.
    one_standard_error : bool, default=False
        Choose the smallest ``C`` whose mean score is within one standard error of the best, of the
        candidates that have the other parameters of the best.
    n_jobs : int, default=None
        Fits at the same time, in processes; None means 1, -1 all processors.
    loss, class_weight, tol, max_iter
        As in :class:`MKLClassifier`; balanced weights are those of the rows of each fit, and do not
        count in scores.

    Attributes
    ----------
    best_params_ : dict
        The values chosen.
    best_score_ : float
        Their mean score.
    best_index_ : int
        Where they are in ``cv_results_``.
    cv_results_ : dict
        ``"params"``, ``"param_C"``, ...; ``"split0_test_score"``, ...,
        the scores by fold; ``"mean_test_score"``, ``"std_test_score"``, ``"standard_error"`` and
        ``"rank_test_score"``.
    n_splits_ : int
        The number of folds that the choice rests on.
    kernel_weights_, kernel_names_, bank_, classes_, support_, dual_coef_, dual_gap_, objective_, \
cost_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`MKLClassifier`, of the fit on all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixnorm import MKLClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKLClassifierCV(Cs=[1.0, 100.0], ps=[1.2], cv=3).fit(X, y)
    >>> sorted(model.best_params_)
    ['C', 'p']
    """

    _kind = MKLClassifier

    ps: Exponents = (1.0, 1.2, 2.0)
    loss: HingeLoss = "hinge"
    class_weight: ClassWeight = None


@dataclass(eq=False, repr=False, kw_only=True)
class ConvMKLClassifierCV(TailSumsMixin, MKLClassifierCV):
    """:class:`ConvMKLClassifier` with ``C``, ``p`` and the tail chosen by cross-validation.

    Tail sums are those of the training rows of each fold.

    Parameters
    ----------
    bank : KernelBank, optional
        The kernels, as in :class:`MKLClassifier`.
    kernel : {"bank", "precomputed"}, default="bank"
        ``"precomputed"``: ``X`` holds kernel matrices.
    Cs : list of float, default=(0.1, 1, 10, 100, 1000)
        Values of ``C`` to try.
    ps : list of float, default=(1.2,)
        Values of ``p`` to try.
    tails : list of int, default=(2, 8, 32)
        Values of ``tail`` to try.
    floor : float, default=0.01
        Least tail sum, in parts of the mean diagonal of a kernel.
    cv : int, splitter or iterable, default=None
        Folds, as in scikit-learn; None takes five.
    scoring : str or callable, default=None
        Score to maximise; None takes accuracy.
    one_standard_error : bool, default=False
        Choose the smallest ``C`` whose mean score is within one standard error of the best, of the
        candidates that have the other parameters of the best.
    n_jobs : int, default=None
        Fits at the same time, in processes; None means 1, -1 all processors.
    loss, class_weight, tol, max_iter
        As in :class:`ConvMKLClassifier`.

    Attributes
    ----------
    best_params_, best_score_, best_index_, cv_results_, n_splits_
        As in :class:`MKLClassifierCV`.
    kernel_weights_, kernel_names_, tail_sums_, bank_, classes_, support_, dual_coef_, dual_gap_, \
objective_, cost_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`ConvMKLClassifier`, of the fit on all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixnorm import ConvMKLClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ConvMKLClassifierCV(Cs=[10.0], tails=[2, 8], cv=3).fit(X, y)
    >>> model.best_params_["tail"] in (2, 8)
    True
    """

    _kind = ConvMKLClassifier

    ps: Exponents = (1.2,)
    tails: Tails = (2, 8, 32)
    floor: Floor = 0.01


@dataclass(eq=False, repr=False, kw_only=True)
class SMSDMKLClassifierCV(TailSumsMixin, _CostSearch, KernelClassifier):
    """:class:`SMSDMKLClassifier` with ``C``, ``beta`` and the tail chosen by cross-validation.

    Tail sums are those of the training rows of each fold.

    Parameters
    ----------
    bank : KernelBank, optional
        The kernels, as in :class:`MKLClassifier`.
    kernel : {"bank", "precomputed"}, default="bank"
        ``"precomputed"``: ``X`` holds kernel matrices.
    Cs : list of float, default=(1, 10, 100, 1000)
        Values of ``C`` to try.
    betas : list of float, default=(1e-3, 1e-2, 1e-1)
        Values of ``beta`` to try.
    tails : list of int, default=(2, 8, 32)
        Values of ``tail`` to try.
    q : float or "classes", optional
        Dual exponent on the blocks, as in :class:`SMSDMKLClassifier`.
    cv : int, splitter or iterable, default=None
        Folds, as in scikit-learn; None takes five.
    scoring : str or callable, default=None
        Score to maximise; None takes accuracy.
    one_standard_error : bool, default=False
        Choose the smallest ``C`` whose mean score is within one standard error of the best, of the
        candidates that have the other parameters of the best.
    n_jobs : int, default=None
        Fits at the same time, in processes; None means 1, -1 all processors.
    class_weight, tol, max_iter
        As in :class:`SMSDMKLClassifier`.

    Attributes
    ----------
    best_params_, best_score_, best_index_, cv_results_, n_splits_
        As in :class:`MKLClassifierCV`.
    kernel_weights_, kernel_names_, tail_sums_, bank_, classes_, support_, dual_coef_, dual_gap_, \
objective_, cost_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`SMSDMKLClassifier`, of the fit on all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixnorm import SMSDMKLClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SMSDMKLClassifierCV(Cs=[100.0], betas=[1e-3, 1e-1], tails=[8], cv=3).fit(X, y)
    >>> model.best_score_ > 0.9
    True
    """

    _kind = SMSDMKLClassifier

    Cs: LossWeights = (1.0, 10.0, 100.0, 1000.0)
    betas: Betas = (1e-3, 1e-2, 1e-1)
    tails: Tails = (2, 8, 32)
    q: BlockExponent = None
    class_weight: ClassWeight = None


@dataclass(eq=False, repr=False, kw_only=True)
class UFOMKLClassifierCV(_CostSearch, KernelClassifier):
    """:class:`UFOMKLClassifier` with ``C`` and ``beta`` chosen by cross-validation.

    Parameters
    ----------
    bank : KernelBank, optional
        The kernels, as in :class:`MKLClassifier`.
    kernel : {"bank", "precomputed"}, default="bank"
        ``"precomputed"``: ``X`` holds kernel matrices.
    Cs : list of float, default=(0.1, 1, 10, 100, 1000)
        Values of ``C`` to try.
    betas : list of float, default=(1e-4, 1e-3, 1e-2)
        Values of ``beta`` to try.
    q : float or "classes", optional
        Dual exponent on the blocks, as in :class:`UFOMKLClassifier`.
    cv : int, splitter or iterable, default=None
        Folds, as in scikit-learn; None takes five.
    scoring : str or callable, default=None
        Score to maximise; None takes accuracy.
    one_standard_error : bool, default=False
        Choose the smallest ``C`` whose mean score is within one standard error of the best, of the
        candidates that have the other parameters of the best.
    n_jobs : int, default=None
        Fits at the same time, in processes; None means 1, -1 all processors.
    class_weight, tol, max_iter
        As in :class:`UFOMKLClassifier`.

    Attributes
    ----------
    best_params_, best_score_, best_index_, cv_results_, n_splits_
        As in :class:`MKLClassifierCV`.
    kernel_weights_, kernel_names_, bank_, classes_, support_, dual_coef_, dual_gap_, objective_, \
cost_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`UFOMKLClassifier`, of the fit on all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixnorm import UFOMKLClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = UFOMKLClassifierCV(Cs=[10.0], betas=[0.0, 1e-2], cv=3).fit(X, y)
    >>> model.best_score_ > 0.9
    True
    """

    _kind = UFOMKLClassifier

    betas: Betas = (1e-4, 1e-3, 1e-2)
    q: BlockExponent = None
    class_weight: ClassWeight = None


@dataclass(eq=False, repr=False, kw_only=True)
class MKLRegressorCV(_CostSearch, KernelRegressor):
    """:class:`MKLRegressor` with ``C`` and ``p`` chosen by cross-validation.

    Parameters
    ----------
    bank : KernelBank, optional
        The kernels, as in :class:`MKLClassifier`.
    kernel : {"bank", "precomputed"}, default="bank"
        ``"precomputed"``: ``X`` holds kernel matrices.
    Cs : list of float, default=(0.1, 1, 10, 100, 1000)
        Values of ``C`` to try.
    ps : list of float, default=(1, 1.2, 2)
        Values of ``p`` to try.
    cv : int, splitter or iterable, default=None
        Folds, as in scikit-learn; None takes five.
    scoring : str or callable, default=None
        Score to maximise; None takes R².
    one_standard_error : bool, default=False
        Choose the smallest ``C`` whose mean score is within one standard error of the best, of the
        candidates that have the other parameters of the best.
    n_jobs : int, default=None
        Fits at the same time, in processes; None means 1, -1 all processors.
    tol, max_iter
        As in :class:`MKLRegressor`.

    Attributes
    ----------
    best_params_, best_score_, best_index_, cv_results_, n_splits_
        As in :class:`MKLClassifierCV`.
    kernel_weights_, kernel_names_, intercept_, bank_, support_, dual_coef_, dual_gap_, \
objective_, cost_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`MKLRegressor`, of the fit on all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm import MKLRegressorCV
    >>> x = np.linspace(-3.0, 3.0, 60)[:, None]
    >>> model = MKLRegressorCV(Cs=[1.0, 100.0], ps=[1.2], cv=3).fit(x, np.sin(2.0 * x[:, 0]))
    >>> sorted(model.best_params_)
    ['C', 'p']
    """

    _kind = MKLRegressor

    ps: Exponents = (1.0, 1.2, 2.0)
