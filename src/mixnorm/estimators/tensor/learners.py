"""Learning with lp norms in the feature space of a tensor kernel."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm._checks import check_array
from mixnorm.estimators._common.classifier import ClassifierFace
from mixnorm.estimators._common.inputs import check_number_targets, unit_of
from mixnorm.estimators._common.parameters import ClassWeight, Loss, Switch
from mixnorm.estimators.kernels.classifier import encode_labels
from mixnorm.estimators.kernels.inputs import LossWeight
from mixnorm.estimators.tensor.base import TensorKernelLearner
from mixnorm.losses import SCALAR
from mixnorm.models import BinaryOutputs, NumberOutputs


@dataclass(eq=False, repr=False)
class TensorRegressor(MultiOutputMixin, RegressorMixin, TensorKernelLearner):
    """Numbers in, numbers out: all but the parameters of the regressors."""

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
            # What a few targets far off do not move.
            middle = np.quantile(y, 0.5, axis=0, weights=weight, method="inverted_cdf")
        elif self.fit_intercept:
            middle = np.average(y, axis=0, weights=weight)
        unit_of(y - middle)  # checks their size
        return np.asarray(middle)

    @property
    def intercept_(self) -> Any:
        """The mean of the targets, their median, or zero."""
        outputs = self._get_model().outputs
        return float(outputs.centre[0]) if outputs.single else outputs.centre

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Predict targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        found: np.ndarray = self._get_model().outputs.labels(self._scores(X))
        return found


@dataclass(eq=False, repr=False)
class TensorClassifier(ClassifierFace, TensorKernelLearner):
    """Labels in, labels out: all but the parameters of the classifiers."""

    _output_kind = BinaryOutputs
    _losses: ClassVar = {name: kind for name, kind in SCALAR.items() if kind().is_binary}
    _loss = TensorKernelLearner._loss  # the mixin before it knows none

    _: KW_ONLY
    loss: Loss = "logistic"
    class_weight: ClassWeight = None

    def _encode_targets(
        self, y: ArrayLike, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, BinaryOutputs]:
        classes, labels, weight = encode_labels(self, y, weight)
        outputs = BinaryOutputs(classes, self._loss())
        return encode_signs(labels, len(classes)), weight, outputs


def encode_signs(labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Return one column of -1 and 1 for two classes, or one for each of more."""
    if n_classes == 2:
        return np.where(labels == 1, 1.0, -1.0)[:, None]
    return np.where(labels[:, None] == np.arange(n_classes), 1.0, -1.0)


@dataclass(eq=False, repr=False)
class TensorKernelRegressor(TensorRegressor):
    r"""Regression with an lp norm of the weights of all features of a tensor kernel.

    Minimises, for :math:`p = q / (q - 1)`,

    .. math:: \min_w \gamma \sum_i L(y_i, \langle w, \Phi(x_i) \rangle) + \tfrac1p \|w\|_p^p

    to a duality gap. Few features have most of the weight, and none has to be computed: for
    ``q = 4``, :math:`p = 4/3`, the kernel of four rows says all that is asked of them.

    Parameters
    ----------
    kernel : TensorKernel, optional
        The kernel, of :mod:`mixnorm.kernels`; all monomials up to degree 2 by default.
    q : float, default=4
        The dual exponent: an even number, or with features any above 2. The larger, the fewer
        features have weight.
    gamma : float, default=10.0
        What losses count, in units in which 1 is between nothing and a perfect fit for any kernel
        and any data; between 0.01 and 10000 mostly. ``gamma_raw_`` is that of the formula.
    loss : str or loss object, default="squared"
        ``"squared"``, ``"huber"``, ``"epsilon_insensitive"``, ``"absolute"``, or an object of
        :mod:`mixnorm.losses`, whose parameters are in units of the targets.
    fit_intercept : bool, default=True
        Subtract the mean of the targets first (a median, with losses that outliers do not rule).
        Else the kernel's constant, which is penalised, is all there is.
    standardize : bool, default=True
        Subtract means of the columns, and divide by their standard deviations.
    representation : {"auto", "features", "tensor", "sampled", "low-rank"}, default="auto"
        How the kernel is stored. ``"features"``: all features. ``"tensor"``: the kernel of all
        pairs of pairs of rows. ``"sampled"``: monomials that hold most of the kernel, drawn.
        ``"low-rank"``: a factor of the kernel of pairs. ``"auto"`` takes what is quickest.
    n_components : int, optional
        Most monomials to draw (2000 by default), or columns of a factor (300).
    solver : {"newton", "gradient", "forward-backward"}, default="newton"
        The last two are the methods of the paper, and slow.
    tol : float, default=1e-8
        Relative duality gap to stop at.
    max_iter : int, default=200
        Most evaluations of the dual; as many again where the solution is sought along smaller
        values of ``gamma``.
    random_state : int, RandomState or None, default=None
        Where monomials are drawn from.

    Attributes
    ----------
    representation_ : str
        The representation that was used.
    kernel_ : TensorKernel
        The kernel, its parameters settled.
    kernel_error_ : float
        What any entry of the kernel of training rows is off by at most, beside the largest: zero
        but for ``"sampled"`` and ``"low-rank"``.
    kernel_mass_ : float
        The part of the kernel of a row with itself that is kept, on average.
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        The dual variables :math:`\alpha` of the formula below.
    intercept_ : float or ndarray of shape (n_outputs,)
        The mean of the targets, their median, or zero.
    gamma_raw_ : float or ndarray of shape (n_outputs,)
        What losses count in the formula above, with targets and the kernel as they are.
    objective_ : float
        What was minimised, added up over outputs.
    dual_gap_ : float
        It is at most this much above the optimum.
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
    \alpha_{i_{q-1}}`, on standardised rows; it is computed by weights of features, where those are
    fewer than pairs of rows times columns. An evaluation of the dual takes :math:`n^2 D` products
    with :math:`D` features, or reads :math:`n^4 / 8` numbers of the tensor. The duality gap is the
    stopping rule; with ``"low-rank"`` it is one of the problem with the factor.

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

    to a duality gap. More classes are told apart one against the rest, on one tensor.

    Parameters
    ----------
    gamma : float, default=100.0
        What losses count, in the units of :class:`TensorKernelRegressor`.
    kernel, q, standardize, representation, n_components, solver, tol, max_iter, random_state
        As in :class:`TensorKernelRegressor`.
    loss : {"logistic", "hinge", "squared_hinge"} or loss object, default="logistic"
        The loss; the logistic one has probabilities.
    class_weight : dict or "balanced", optional
        What rows of each class count.

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
        What losses count in the formula above, with the kernel as it is.

    See Also
    --------
    TensorKernelClassifierCV : Chooses ``gamma`` by cross-validation.

    Notes
    -----
    There is no free intercept: the constant among the features takes its part. For costs and
    prediction see :class:`TensorKernelRegressor`.

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
