"""Learning with lp norms in the feature space of a tensor kernel."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import MultiOutputMixin

from mixnorm._array import ArrayLike
from mixnorm._checks import check_array
from mixnorm.estimators._common.classifier import ClassifierFace
from mixnorm.estimators._common.inputs import check_number_targets, unit_of
from mixnorm.estimators._common.parameters import ClassWeight, Loss, Switch
from mixnorm.estimators._common.regressor import RegressorMixin
from mixnorm.estimators.kernels.classifier import encode_labels
from mixnorm.estimators.kernels.inputs import LossWeight
from mixnorm.estimators.tensor.base import TensorKernelLearner
from mixnorm.losses import SCALAR
from mixnorm.models import BinaryOutputs, NumberOutputs


@dataclass(eq=False, repr=False)
class TensorRegressor(MultiOutputMixin, RegressorMixin, TensorKernelLearner):
    """Base of the regressors: the targets are numbers."""

    _output_kind = NumberOutputs
    _losses: ClassVar = {name: kind for name, kind in SCALAR.items() if not kind().is_binary}

    _: KW_ONLY
    fit_intercept: Switch = True

    def _encode_targets(
        self, y: ArrayLike, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, NumberOutputs]:
        check_number_targets(y)
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        table, kept = y.reshape(len(y), -1), weight > 0.0
        count = weight[kept]
        centre = self._find_middle(table[kept], count / float(np.mean(count)))
        return table, weight, NumberOutputs(y.ndim == 1, 1.0, centre, self._loss())

    def _find_middle(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        middle = np.zeros(y.shape[1])
        if self.fit_intercept and self._loss().lipschitz < math.inf:
            # The median, which a few outliers do not move.
            # For losses that grow linearly the best constant is a median.
            middle = np.quantile(y, 0.5, axis=0, weights=weight, method="inverted_cdf")
        elif self.fit_intercept:
            middle = np.average(y, axis=0, weights=weight)
        unit_of(y - middle)  # raises for targets that are too large
        return np.asarray(middle)

    @property
    def intercept_(self) -> Any:
        """The mean of the targets, their median, or zero."""
        outputs = self._get_model().outputs
        return float(outputs.centre[0]) if outputs.single else outputs.centre


@dataclass(eq=False, repr=False)
class TensorClassifier(ClassifierFace, TensorKernelLearner):
    """Base of the classifiers: the targets are labels."""

    _output_kind = BinaryOutputs
    _losses: ClassVar = {name: kind for name, kind in SCALAR.items() if kind().is_binary}
    _loss = TensorKernelLearner._loss  # the mixin, which comes first, has another one

    _: KW_ONLY
    loss: Loss = "logistic"
    class_weight: ClassWeight = None

    def _encode_targets(
        self, y: ArrayLike, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, BinaryOutputs]:
        classes, labels, weight = encode_labels(self, y, weight)
        # One column for two classes, or one for each of more.
        positive = [1] if len(classes) == 2 else np.arange(len(classes))
        signs = np.where(labels[:, None] == positive, 1.0, -1.0)
        return signs, weight, BinaryOutputs(classes, self._loss())


@dataclass(eq=False, repr=False)
class TensorKernelRegressor(TensorRegressor):
    r"""Regression with an lp norm of the weights of all features of a tensor kernel.

    Minimises, for :math:`p = q / (q - 1)`,

    .. math:: \min_w \gamma \sum_i L(y_i, \langle w, \Phi(x_i) \rangle) + \tfrac1p \|w\|_p^p

    until the duality gap is small (:eq:`tensor-primal`). Few features have most of the weight, and
    none has to be computed: for ``q = 4``, :math:`p = 4/3`, the kernel of four rows replaces them.

    Parameters
    ----------
    kernel : TensorKernel, optional
        The kernel, of :mod:`mixnorm.kernels`; all monomials up to degree 2 by default.
    q : float, default=4
        The dual exponent: an even number, or with features any number above 2. With a larger
        exponent, fewer features have most of the weight.
    gamma : float, default=10.0
        The weight of the losses, in units in which 1 is about half-way between zero and a perfect
        fit for any kernel and any data; mostly between 0.01 and 10000. ``gamma_raw_`` is that of
        the formula.
    loss : str or loss object, default="squared"
        ``"squared"``, ``"huber"``, ``"epsilon_insensitive"``, ``"absolute"``, or an object of
        :mod:`mixnorm.losses`, whose parameters are in units of the targets.
    fit_intercept : bool, default=True
        Subtract the mean of the targets first, or their median with losses that are robust to
        outliers. Otherwise the only constant is that of the kernel, which is penalised.
    standardize : bool, default=True
        Subtract the means of the columns, and divide by their standard deviations.
    representation : {"auto", "features", "tensor", "sampled", "low-rank"}, default="auto"
        How the kernel is stored. ``"features"``: all features. ``"tensor"``: the kernel of all
        pairs of pairs of rows. ``"sampled"``: drawn monomials that hold most of the kernel.
        ``"low-rank"``: a factor of the kernel of pairs. ``"auto"`` takes the fastest.
    n_components : int, optional
        Most monomials to draw (2000 by default), or columns of a factor (300).
    solver : {"newton", "gradient", "forward-backward"}, default="newton"
        The last two are the methods of the paper, which are slower.
    tol : float, default=1e-8
        Relative duality gap to stop at.
    max_iter : int, default=200
        Most evaluations of the dual, and as many again if the solver has to follow smaller values
        of ``gamma``.
    random_state : int, RandomState or None, default=None
        The seed for drawing monomials.

    Attributes
    ----------
    representation_ : str
        The representation that was used.
    kernel_ : TensorKernel
        The kernel, with all parameters set.
    kernel_error_ : float
        The largest error of an entry of the kernel of training rows, relative to the largest entry;
        zero except for ``"sampled"`` and ``"low-rank"``.
    kernel_mass_ : float
        The mean share of the kernel of a row with itself that is kept.
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        The dual variables :math:`\alpha` of the formula below.
    intercept_ : float or ndarray of shape (n_outputs,)
        The mean of the targets, their median, or zero.
    gamma_raw_ : float or ndarray of shape (n_outputs,)
        The weight of the losses in the formula above, for unscaled targets and kernel.
    objective_ : float
        The value of the objective, summed over outputs.
    dual_gap_ : float
        An upper bound on its distance from the optimum.
    n_iter_ : int
        Evaluations of the dual.
    n_features_in_ : int
        Columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where ``X`` has them.

    See Also
    --------
    TensorKernelRegressorCV : Chooses ``gamma`` by cross-validation.
    GreedyMKLRegressor : Chooses a few kernels out of many.

    Notes
    -----
    A prediction is :math:`b + \sum K(x_{i_1}, \dots, x_{i_{q-1}}, x) \alpha_{i_1} \cdots
    \alpha_{i_{q-1}}`, on standardised rows; it is computed from weights of features if these are
    fewer than pairs of rows times columns. An evaluation of the dual takes :math:`n^2 D` products
    with :math:`D` features, or reads :math:`n^4 / 8` numbers of the tensor. The solver stops on the
    duality gap; with ``"low-rank"`` it is the gap of the problem with the factor.

    References
    ----------
    S. Salzo, J. Suykens, L. Rosasco. Solving lp-norm regularization with tensor kernels. AISTATS
    2018.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm import TensorKernelRegressor
    >>> from mixnorm.kernels import PolynomialTensorKernel
    >>> X = np.random.default_rng(0).standard_normal((50, 8))
    >>> y = X[:, 0] * X[:, 1] + X[:, 2] ** 3
    >>> model = TensorKernelRegressor(PolynomialTensorKernel(degree=3), gamma=100.0).fit(X, y)
    >>> sorted(feature.name for feature in model.features(top=2))
    ['x0 x1', 'x2^3']
    """

    _: KW_ONLY
    gamma: LossWeight = 10.0


@dataclass(eq=False, repr=False)
class TensorKernelClassifier(TensorClassifier):
    r"""Classification with an lp norm of the weights of all features of a tensor kernel.

    With two classes it minimises, for :math:`p = q / (q - 1)`,

    .. math:: \min_w \gamma \sum_i L(y_i, \langle w, \Phi(x_i) \rangle) + \tfrac1p \|w\|_p^p

    to a duality gap. With more classes there is a problem for each one against the rest, all with
    the same tensor.

    Parameters
    ----------
    gamma : float, default=100.0
        The weight of the losses, in the units of :class:`TensorKernelRegressor`.
    kernel, q, standardize, representation, n_components, solver, tol, max_iter, random_state
        As in :class:`TensorKernelRegressor`.
    loss : {"logistic", "hinge", "squared_hinge"} or loss object, default="logistic"
        The loss; only the logistic one gives probabilities.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply the sample weights in training; a class that is not
        in the dictionary weighs 1. ``"balanced"`` gives all classes the same total weight. Scores
        do not count them.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    representation_, kernel_, kernel_error_, kernel_mass_, objective_, dual_gap_, n_iter_
        As in :class:`TensorKernelRegressor`.
    n_features_in_, feature_names_in_
        As in :class:`TensorKernelRegressor`.
    dual_coef_ : ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
        The dual variables.
    gamma_raw_ : float for two classes, else ndarray of shape (n_classes,)
        The weight of the losses in the formula above, for the unscaled kernel.

    See Also
    --------
    TensorKernelClassifierCV : Chooses ``gamma`` by cross-validation.

    Notes
    -----
    There is no free intercept: the constant feature replaces it. For costs and prediction see
    :class:`TensorKernelRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixnorm import TensorKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TensorKernelClassifier().fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    _: KW_ONLY
    gamma: LossWeight = 100.0
