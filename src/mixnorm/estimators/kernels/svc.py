"""Joint multi-class machines: on one kernel, and on the columns of the data."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot

from mixnorm._array import Array, MatrixLike, is_sparse, to_dense
from mixnorm._linear import even_ties
from mixnorm.engines.multikernel import KernelSolution
from mixnorm.estimators._common.classifier import ClassifierFace
from mixnorm.estimators._common.linear import LinearMixin
from mixnorm.estimators._common.parameters import (
    Anything,
    ClassWeight,
    Count,
    Number,
    Or,
    Switch,
    Tolerance,
)
from mixnorm.estimators._common.progress import FitTask
from mixnorm.estimators.kernels.base import KernelTraining
from mixnorm.estimators.kernels.classifier import HingeLoss, KernelClassifier
from mixnorm.estimators.kernels.inputs import LossWeight, take_rows
from mixnorm.kernels import (
    FactorGrams,
    GaussianKernel,
    Grams,
    Kernel,
    KernelBank,
    KernelStack,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    as_kernel,
)
from mixnorm.models import FitReport, LinearModel

Gamma = Annotated[Any, Or(Number(above=0), ("scale", "auto"))]
Scaling = Annotated[
    float, Number(above=0, why="for a model without an intercept set fit_intercept=False")
]
_MOST_NUMBERS = 2**29  # of columns or of a kernel matrix, 4 GiB in float64


@dataclass(eq=False, repr=False, kw_only=True)
class SingleMachineParameters:
    """Parameters of machines on one kernel; its weight is fixed, and every fit starts from zero."""

    loss: HingeLoss = "hinge"
    class_weight: ClassWeight = None
    tol: Tolerance = 1e-3
    max_iter: Count = 200

    warm_start = False
    p = np.inf
    bank = None


@dataclass(eq=False, repr=False)
class KernelMulticlassSVC(SingleMachineParameters, KernelClassifier):
    r"""Joint multi-class support vector machine on one kernel, with a duality gap.

    Crammer and Singer's machine,

    .. math::

        \min_w \tfrac12 \|w\|^2
        + C \sum_i \max_y \bigl(1[y \ne y_i] - f_{y_i}(x_i) + f_y(x_i)\bigr),

    which treats all classes in one problem (:eq:`joint-hinge`). Without an intercept it is the
    generalised minimal norm problem.

    Parameters
    ----------
    C : float, default=10.0
        Weight of each sample's loss.
    kernel : str, Kernel or callable, default="rbf"
        ``"rbf"``, ``"laplacian"``, ``"poly"``, ``"linear"``, ``"precomputed"`` (a matrix in place
        of ``X``), a kernel of :mod:`mixnorm.kernels`, or a function of two tables.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of ``"rbf"``, ``"laplacian"`` and ``"poly"``: as in scikit-learn's ``SVC``,
        ``"scale"`` is one over the number of columns times the variance of ``X``.
    degree : int, default=3
        Degree of ``"poly"``.
    coef0 : float, default=0.0
        Constant of ``"poly"``.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The loss above, or its square.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply the sample weights in training; a class that is not
        in the dictionary weighs 1. ``"balanced"`` gives all classes the same total weight. Scores
        do not count them.
    tol : float, default=1e-3
        Relative duality gap to stop at.
    max_iter : int, default=200
        Most iterations; each tightens the tolerance of the machine.
    memory : int or str, default=2**31
        Bytes for the kernel matrix.

    Attributes
    ----------
    classes_, support_, dual_coef_, dual_gap_, objective_, cost_, n_iter_, bank_
        As in :class:`MKLClassifier`.
    n_features_in_ : int
        Columns of ``X``; rows of a precomputed kernel.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where ``X`` has them.

    See Also
    --------
    MKLClassifier : The same with several kernels.
    sklearn.svm.SVC : Decides between pairs of classes.

    References
    ----------
    K. Crammer, Y. Singer, "On the algorithmic implementation of multiclass kernel-based vector
    machines", JMLR 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixnorm import KernelMulticlassSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelMulticlassSVC().fit(X, y).score(X, y) > 0.95
    True
    """

    C: LossWeight = 10.0
    _: KW_ONLY
    kernel: Anything = "rbf"
    gamma: Gamma = "scale"
    degree: Anything = 3
    coef0: Anything = 0.0
    memory: Anything = 2**31

    def _check_together(self) -> None:
        PolynomialKernel(degree=self.degree, coef0=self.coef0).check()
        if not self._precomputed:
            as_kernel(self.kernel)

    def _compute_kernels(self, X: Array, weight: np.ndarray) -> tuple[Any, Any]:
        kept = np.flatnonzero(weight > 0.0)
        if self._precomputed:
            stack = KernelStack(X)
            if stack.n_kernels != 1:
                raise ValueError(
                    f"X holds {stack.n_kernels} kernels, and this machine takes one; give a matrix "
                    "of shape (n_samples, n_samples), or use MKLClassifier."
                )
            return None, self._check_given_kernels(stack, kept)
        rows, weight = take_rows(X, kept), weight[kept]
        # Without normalisation, so that C and gamma mean the same as in other machines.
        # tau of our kernels in terms of gamma: exp(-gamma d^2) has tau = 1 / (2 gamma).
        kernels = [self._build_kernel(rows, weight)]
        bank = KernelBank(kernels, normalize=None, dtype="float64", memory=self.memory)
        return self._fit_bank(bank, rows, weight)

    def _build_kernel(self, X: Any, weight: np.ndarray) -> Kernel:
        kernel = as_kernel(self.kernel)
        if not isinstance(self.kernel, str):
            return kernel
        if isinstance(kernel, GaussianKernel):
            return GaussianKernel(tau=0.5 / self._compute_gamma(X, weight))
        if isinstance(kernel, LaplacianKernel):
            return LaplacianKernel(tau=1.0 / self._compute_gamma(X, weight))
        if isinstance(kernel, PolynomialKernel):
            gamma = self._compute_gamma(X, weight)
            return PolynomialKernel(degree=self.degree, gamma=gamma, coef0=self.coef0)
        return kernel

    def _compute_gamma(self, X: Any, weight: np.ndarray) -> float:
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        n_columns = X.shape[1]
        if self.gamma == "auto":
            return 1.0 / float(n_columns)
        share = weight / (n_columns * np.sum(weight))  # of every entry of a row
        with np.errstate(over="ignore", invalid="ignore"):
            if is_sparse(X):
                X = X.astype(np.float64)
                # The mean square less the square of the mean: centring would fill a sparse table.
                means = share @ X  # this works for matrices and arrays of SciPy
                variance = float(np.sum(share @ X.multiply(X).tocsr()) - np.sum(means) ** 2)
            else:
                mean = share @ np.sum(X, axis=1, dtype=np.float64)
                variance = float(share @ np.sum((X - mean) ** 2, axis=1))
        if not math.isfinite(variance):
            raise ValueError(
                "X is so large that its variance overflows; scale its columns, or give gamma as a "
                "number."
            )
        return 1.0 / float(n_columns * variance) if variance > 0.0 else 1.0


@dataclass(eq=False, repr=False)
class LinearMulticlassSVC(  # type: ignore[misc]
    SingleMachineParameters, LinearMixin, ClassifierFace, KernelClassifier
):
    r"""Joint multi-class linear support vector machine, with a duality gap.

    Crammer and Singer's machine on the columns themselves,

    .. math::

        \min_W \tfrac12 \|W\|_F^2
        + C \sum_i \max_y \bigl(1[y \ne y_i] - \langle w_{y_i} - w_y, x_i \rangle\bigr),

    where the intercept, if there is one, is the weight of a column of ones.

    Parameters
    ----------
    C : float, default=1.0
        Weight of each sample's loss.
    fit_intercept : bool, default=True
        Whether to add a column of ones, whose weights are part of the norm.
    intercept_scaling : float, default=1.0
        The constant in that column in place of one; the larger, the less its weights cost.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The loss above, or its square.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply the sample weights in training; a class that is not
        in the dictionary weighs 1. ``"balanced"`` gives all classes the same total weight. Scores
        do not count them.
    tol : float, default=1e-3
        Relative duality gap to stop at.
    max_iter : int, default=200
        Most iterations; each tightens the tolerance of the machine.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        The weights.
    intercept_ : ndarray of shape (n_classes,), or (1,) for two classes
        The intercepts.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    dual_gap_ : float
        The objective is at most this much above the optimum.
    objective_ : float
        The minimised objective.
    n_iter_ : int
        Iterations; each tightened the tolerance of the machine.
    cost_ : Cost
        Operations per row: a multiplication for each weight.
    n_features_in_ : int
        Columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where ``X`` has them.

    See Also
    --------
    sklearn.svm.LinearSVC : Has the same problem as ``multi_class="crammer_singer"``, without a gap.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixnorm import LinearMulticlassSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> LinearMulticlassSVC().fit(X, y).coef_.shape
    (3, 4)
    """

    kernel = "bank"

    C: LossWeight = 1.0
    _: KW_ONLY
    fit_intercept: Switch = True
    intercept_scaling: Scaling = 1.0

    def _compute_kernels(self, X: Array, weight: np.ndarray) -> tuple[Any, Any]:
        """Return the rows of positive weight, in place of a bank, and their linear kernel."""
        rows = take_rows(X, np.flatnonzero(weight > 0.0))
        return rows, self._build_linear_kernel(rows)

    def _learn(self, training: KernelTraining, progress: FitTask) -> None:
        found, _ = self._solve(training, None, progress)
        self._report(found, training.grams.dtype)
        coef, intercept = training.outputs.to_coef(*self._compute_weights(training.bank, found))
        self.model_ = LinearModel.of(coef, intercept, training.inputs, training.outputs)
        self.report_ = FitReport.of(found)

    @property
    def cost_(self) -> Any:
        """The cost of a prediction: a multiplication for each weight."""
        return self._get_model().cost()

    @property
    def _column_of_ones(self) -> float:
        """The constant in the column for the intercept; zero without an intercept."""
        return float(self.intercept_scaling) if self.fit_intercept else 0.0

    def _build_linear_kernel(self, X: Any) -> Grams:
        """Return the linear kernel of the rows: as columns, or as a matrix between them."""
        LinearKernel().diagonal(X)  # raises for entries whose squares cannot be summed
        n_samples, n_columns = X.shape
        if min(n_samples, n_columns) * n_samples > _MOST_NUMBERS:
            raise ValueError(
                f"X of {n_samples} rows and {n_columns} columns is too large for this machine, "
                "which needs dense columns, or a matrix between all rows. Give fewer rows, or use "
                "MirrorDescentClassifier."
            )
        # The matrix between few rows is smaller than their dense columns.
        if is_sparse(X) and n_samples < n_columns:
            # The constant column adds its square to every entry.
            stack = KernelStack((X @ X.T).toarray() + self._column_of_ones**2)
            stack.check()
            return stack
        columns = np.asarray(to_dense(X))
        if self.fit_intercept:
            ones = np.full((len(columns), 1), self._column_of_ones, dtype=columns.dtype)
            columns = np.concatenate([columns, ones], axis=1)
        # The engine reads the columns of one row at a time.
        columns = np.ascontiguousarray(columns)
        return FactorGrams(columns, [columns.shape[1]])

    def _compute_weights(self, X: Any, found: KernelSolution) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights ``(n_features, n_classes)`` and the intercept."""
        scaling, n_columns = self._column_of_ones, X.shape[1]
        # A solver on columns returns their weights; a solver on the matrix returns dual variables,
        # from which the weights are X' A (:eq:`kernel-scores`).
        if found.coefs is not None:
            # The score has the constant times the weight of its column.
            intercept = scaling * np.sum(found.coefs[n_columns:], axis=0)
            return found.coefs[:n_columns], intercept
        weights = np.asarray(safe_sparse_dot(X.T, found.duals), dtype=np.float64)
        return weights, scaling**2 * np.sum(found.duals, axis=0)

    def _scores(self, X: MatrixLike) -> np.ndarray:
        """Return the scores of new data; those that differ by rounding alone are equal."""
        model, X = self._get_model(), self._check_new(X)
        scores = model.scores(X)
        # The rounding of a score grows with the sum of the magnitudes of its terms.
        sizes = abs(X) @ np.max(np.abs(model.coef), axis=0) + np.max(np.abs(model.intercept))
        if scores.shape[1] > 1:
            return even_ties(scores, sizes)
        # One score for two classes is compared with a second one of zero.
        pairs = even_ties(np.concatenate([0.0 * scores, scores], axis=1), sizes)
        return np.asarray(pairs[:, 1:] - pairs[:, :1])
