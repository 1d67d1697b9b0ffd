"""Multiple kernel learning with parameters chosen by cross-validation."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from mixnorm.estimators._common.parameters import ClassWeight, Count, Folds, Tolerance
from mixnorm.estimators._common.search import explained
from mixnorm.estimators.kernels.base import TailSumsMixin
from mixnorm.estimators.kernels.block_penalty import SMSDMKLClassifier, UFOMKLClassifier
from mixnorm.estimators.kernels.classifier import HingeLoss
from mixnorm.estimators.kernels.inputs import (
    Bank,
    Betas,
    BlockExponent,
    Exponents,
    Floor,
    GivenKernels,
    LossWeights,
    Tails,
)
from mixnorm.estimators.kernels.mkl import ConvMKLClassifier, MKLClassifier
from mixnorm.estimators.kernels.regressor import KernelRegressor, MKLRegressor
from mixnorm.estimators.kernels.search_base import KernelClassifierCV, KernelCV


@dataclass(eq=False, repr=False)
class MKLClassifierCV(KernelClassifierCV):
    """:class:`MKLClassifier` with ``C`` and ``p`` chosen by cross-validation.

    Kernels are computed once. Every fold takes its rows of them, and goes along the values of
    ``C``, each fit started from the one before.

    Parameters
    ----------
    bank : KernelBank, optional
        The kernels, as in :class:`MKLClassifier`.
    kernel : {"bank", "precomputed"}, default="bank"
        ``"precomputed"``: kernel matrices are given in place of ``X``.
    Cs : list of float, default=(0.1, 1, 10, 100, 1000)
        Values of ``C`` to try.
    ps : list of float, default=(1, 1.2, 2)
        Values of ``p`` to try.
    cv : int, splitter or iterable, default=5
        Folds, as in scikit-learn.
    loss, class_weight, tol, max_iter
        As in :class:`MKLClassifier`.

    Attributes
    ----------
    best_params_ : dict
        The values chosen.
    best_score_ : float
        Their mean accuracy.
    cv_results_ : dict
        ``params``, and for each the scores by fold, their mean and standard deviation.
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

    _learner = MKLClassifier
    _lists: ClassVar[dict[str, str]] = {"p": "ps"}

    bank: Bank = None
    _: KW_ONLY
    kernel: GivenKernels = "bank"
    Cs: LossWeights = (0.1, 1.0, 10.0, 100.0, 1000.0)
    ps: Exponents = (1.0, 1.2, 2.0)
    cv: Folds = 5
    loss: HingeLoss = "hinge"
    class_weight: ClassWeight = None
    tol: Tolerance = 1e-2
    max_iter: Count = 200


@dataclass(eq=False, repr=False)
class ConvMKLClassifierCV(TailSumsMixin, KernelClassifierCV):
    """:class:`ConvMKLClassifier` with ``C``, ``p`` and the tail chosen by cross-validation.

    Tail sums are those of the training rows of each fold.

    Parameters
    ----------
    bank : KernelBank, optional
        The kernels, as in :class:`MKLClassifier`.
    kernel : {"bank", "precomputed"}, default="bank"
        ``"precomputed"``: kernel matrices are given in place of ``X``.
    Cs : list of float, default=(0.1, 1, 10, 100, 1000)
        Values of ``C`` to try.
    ps : list of float, default=(1.2,)
        Values of ``p`` to try.
    tails : list of int, default=(2, 8, 32)
        Values of ``tail`` to try.
    floor : float, default=0.01
        Least tail sum, in parts of the mean diagonal of a kernel.
    cv : int, splitter or iterable, default=5
        Folds, as in scikit-learn.
    loss, class_weight, tol, max_iter
        As in :class:`ConvMKLClassifier`.

    Attributes
    ----------
    best_params_, best_score_, cv_results_
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

    _learner = ConvMKLClassifier
    _lists: ClassVar[dict[str, str]] = {"p": "ps", "tail": "tails"}

    bank: Bank = None
    _: KW_ONLY
    kernel: GivenKernels = "bank"
    Cs: LossWeights = (0.1, 1.0, 10.0, 100.0, 1000.0)
    ps: Exponents = (1.2,)
    tails: Tails = (2, 8, 32)
    floor: Floor = 0.01
    cv: Folds = 5
    loss: HingeLoss = "hinge"
    class_weight: ClassWeight = None
    tol: Tolerance = 1e-2
    max_iter: Count = 200


@dataclass(eq=False, repr=False)
class SMSDMKLClassifierCV(TailSumsMixin, KernelClassifierCV):
    """:class:`SMSDMKLClassifier` with ``C``, ``beta`` and the tail chosen by cross-validation.

    Tail sums are those of the training rows of each fold.

    Parameters
    ----------
    bank : KernelBank, optional
        The kernels, as in :class:`MKLClassifier`.
    kernel : {"bank", "precomputed"}, default="bank"
        ``"precomputed"``: kernel matrices are given in place of ``X``.
    Cs : list of float, default=(1, 10, 100, 1000)
        Values of ``C`` to try.
    betas : list of float, default=(1e-3, 1e-2, 1e-1)
        Values of ``beta`` to try.
    tails : list of int, default=(2, 8, 32)
        Values of ``tail`` to try.
    q : float or "classes", optional
        Dual exponent on the blocks, as in :class:`SMSDMKLClassifier`.
    cv : int, splitter or iterable, default=5
        Folds, as in scikit-learn.
    class_weight, tol, max_iter
        As in :class:`SMSDMKLClassifier`.

    Attributes
    ----------
    best_params_, best_score_, cv_results_
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

    _learner = SMSDMKLClassifier
    _lists: ClassVar[dict[str, str]] = {"beta": "betas", "tail": "tails"}

    bank: Bank = None
    _: KW_ONLY
    kernel: GivenKernels = "bank"
    Cs: LossWeights = (1.0, 10.0, 100.0, 1000.0)
    betas: Betas = (1e-3, 1e-2, 1e-1)
    tails: Tails = (2, 8, 32)
    q: BlockExponent = None
    cv: Folds = 5
    class_weight: ClassWeight = None
    tol: Tolerance = 1e-2
    max_iter: Count = 200


@dataclass(eq=False, repr=False)
class UFOMKLClassifierCV(KernelClassifierCV):
    """:class:`UFOMKLClassifier` with ``C`` and ``beta`` chosen by cross-validation.

    Parameters
    ----------
    bank : KernelBank, optional
        The kernels, as in :class:`MKLClassifier`.
    kernel : {"bank", "precomputed"}, default="bank"
        ``"precomputed"``: kernel matrices are given in place of ``X``.
    Cs : list of float, default=(0.1, 1, 10, 100, 1000)
        Values of ``C`` to try.
    betas : list of float, default=(1e-4, 1e-3, 1e-2)
        Values of ``beta`` to try.
    q : float or "classes", optional
        Dual exponent on the blocks, as in :class:`UFOMKLClassifier`.
    cv : int, splitter or iterable, default=5
        Folds, as in scikit-learn.
    class_weight, tol, max_iter
        As in :class:`UFOMKLClassifier`.

    Attributes
    ----------
    best_params_, best_score_, cv_results_
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

    _learner = UFOMKLClassifier
    _lists: ClassVar[dict[str, str]] = {"beta": "betas"}

    bank: Bank = None
    _: KW_ONLY
    kernel: GivenKernels = "bank"
    Cs: LossWeights = (0.1, 1.0, 10.0, 100.0, 1000.0)
    betas: Betas = (1e-4, 1e-3, 1e-2)
    q: BlockExponent = None
    cv: Folds = 5
    class_weight: ClassWeight = None
    tol: Tolerance = 1e-2
    max_iter: Count = 200


@dataclass(eq=False, repr=False)
class MKLRegressorCV(KernelCV, KernelRegressor):
    """:class:`MKLRegressor` with ``C`` and ``p`` chosen by cross-validation.

    Parameters
    ----------
    bank : KernelBank, optional
        The kernels, as in :class:`MKLClassifier`.
    kernel : {"bank", "precomputed"}, default="bank"
        ``"precomputed"``: kernel matrices are given in place of ``X``.
    Cs : list of float, default=(0.1, 1, 10, 100, 1000)
        Values of ``C`` to try.
    ps : list of float, default=(1, 1.2, 2)
        Values of ``p`` to try.
    cv : int, splitter or iterable, default=5
        Folds, as in scikit-learn.
    tol, max_iter
        As in :class:`MKLRegressor`.

    Attributes
    ----------
    best_params_, best_score_, cv_results_
        As in :class:`MKLClassifierCV`; scores are shares of variance explained.
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

    _learner = MKLRegressor
    _lists: ClassVar[dict[str, str]] = {"p": "ps"}

    bank: Bank = None
    _: KW_ONLY
    kernel: GivenKernels = "bank"
    Cs: LossWeights = (0.1, 1.0, 10.0, 100.0, 1000.0)
    ps: Exponents = (1.0, 1.2, 2.0)
    cv: Folds = 5
    tol: Tolerance = 1e-2
    max_iter: Count = 200

    def _shift(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return np.asarray(np.average(y, axis=0, weights=weight))

    def _score(self, y: np.ndarray, given: np.ndarray, weight: np.ndarray) -> float:
        return explained(y, given, weight)
