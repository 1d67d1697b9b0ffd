"""The joint multi-class machines on one kernel, and on the columns themselves."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from mixnorm._array import is_sparse, to_dense
from mixnorm._linear import linear_scores
from mixnorm.engines.multikernel import KernelPenalty, KernelSolution
from mixnorm.estimators._common.parameters import (
    Anything,
    ClassWeight,
    Count,
    Number,
    Or,
    Switch,
    Tolerance,
)
from mixnorm.estimators._common.stored import _check_floats
from mixnorm.estimators._common.validation import validate_data
from mixnorm.estimators.kernels.classifier import HingeLoss, KernelClassifier
from mixnorm.estimators.kernels.inputs import LossWeight, take_rows
from mixnorm.estimators.kernels.stored import check_facts
from mixnorm.kernels import (
    FactorGrams,
    GaussianKernel,
    KernelBank,
    KernelStack,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    as_kernel,
)

Gamma = Annotated[Any, Or(Number(above=0), ("scale", "auto"))]
Scaling = Annotated[
    float, Number(above=0, why="for a model without an intercept set fit_intercept=False")
]
_LARGEST = 1e140  # squares, summed over many columns, are still far from overflow
_MOST_NUMBERS = 2**29  # of columns or of a kernel matrix, 4 GiB in float64


@dataclass(eq=False, repr=False)
class KernelMulticlassSVC(KernelClassifier):
    r"""Joint multi-class support vector machine on one kernel, with a duality gap.

    Crammer and Singer's machine,

    .. math::

        \min_w \tfrac12 \|w\|^2
        + C \sum_i \max_y \bigl(1[y \ne y_i] - f_{y_i}(x_i) + f_y(x_i)\bigr),

    which treats all classes in one problem; that without intercept is the generalised minimal norm
    problem.

    Parameters
    ----------
    C : float, default=10.0
        What a sample's loss counts.
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
        Weights of the classes, which multiply ``C``.
    tol : float, default=1e-3
        Relative duality gap to stop at.
    max_iter : int, default=200
        Most times that the tolerance of the machine is tightened.
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

    warm_start = False

    C: LossWeight = 10.0
    _: KW_ONLY
    kernel: Anything = "rbf"
    gamma: Gamma = "scale"
    degree: Anything = 3
    coef0: Anything = 0.0
    loss: HingeLoss = "hinge"
    class_weight: ClassWeight = None
    tol: Tolerance = 1e-3
    max_iter: Count = 200
    memory: Anything = 2**31

    bank = None

    def _check_together(self) -> None:
        PolynomialKernel(degree=self.degree, coef0=self.coef0).check()
        if not self._precomputed:
            as_kernel(self.kernel)

    def _kernels_of(self, X: Any, weight: np.ndarray) -> tuple[Any, Any]:
        kept = np.flatnonzero(weight > 0.0)
        if self._precomputed:
            if KernelStack(X).n_kernels != 1:
                raise ValueError(
                    f"X holds {KernelStack(X).n_kernels} kernels, and this machine takes one; give "
                    "a matrix of shape (n_samples, n_samples), or use MKLClassifier."
                )
            return None, self._given_kernels(X, kept)
        X, weight = take_rows(X, kept), weight[kept]
        # As it is: C and gamma mean what they mean for other machines with one kernel.
        kernels = [self._one_kernel(X, weight)]
        bank = KernelBank(kernels, normalize=None, dtype="float64", memory=self.memory)
        return self._within_memory(bank, X, weight)

    def _one_kernel(self, X: Any, weight: np.ndarray) -> Any:
        named = isinstance(self.kernel, str)
        if named and self.kernel in ("rbf", "gaussian"):
            return GaussianKernel(tau=0.5 / self._gamma(X, weight))
        if named and self.kernel == "laplacian":
            return LaplacianKernel(tau=1.0 / self._gamma(X, weight))
        if named and self.kernel in ("poly", "polynomial"):
            gamma = self._gamma(X, weight)
            return PolynomialKernel(degree=self.degree, gamma=gamma, coef0=self.coef0)
        if named and self.kernel == "linear":
            return LinearKernel()
        return as_kernel(self.kernel)

    def _gamma(self, X: Any, weight: np.ndarray) -> float:
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        n_columns = X.shape[1]
        if self.gamma == "auto":
            return 1.0 / float(n_columns)
        share = weight / (n_columns * np.sum(weight))  # of every entry of a row
        with np.errstate(over="ignore", invalid="ignore"):
            if hasattr(X, "multiply"):  # sparse
                X = X.astype(np.float64)
                means = share @ X  # a product of what may be a matrix or an array of SciPy
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

    def _penalty(self, grams: Any, weight: np.ndarray) -> KernelPenalty:
        return KernelPenalty.of_weights(np.inf, np.ones(grams.n_kernels))


@dataclass(eq=False, repr=False)
class LinearMulticlassSVC(KernelClassifier):
    r"""Joint multi-class linear support vector machine, with a duality gap.

    Crammer and Singer's machine on the columns themselves,

    .. math::

        \min_W \tfrac12 \|W\|_F^2
        + C \sum_i \max_y \bigl(1[y \ne y_i] - \langle w_{y_i} - w_y, x_i \rangle\bigr),

    where the intercept, if there is one, is the weight of a column of ones.

    Parameters
    ----------
    C : float, default=1.0
        What a sample's loss counts.
    fit_intercept : bool, default=True
        Have a column of ones, whose weights count in the norm.
    intercept_scaling : float, default=1.0
        What that column holds in place of ones; the larger, the less its weights cost.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The loss above, or its square.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply ``C``.
    tol : float, default=1e-3
        Relative duality gap to stop at.
    max_iter : int, default=200
        Most times that the tolerance of the machine is tightened.

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
        What was minimised.
    n_iter_ : int
        Times the tolerance of the machine was tightened.
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

    warm_start = False
    kernel = "bank"
    bank = None

    C: LossWeight = 1.0
    _: KW_ONLY
    fit_intercept: Switch = True
    intercept_scaling: Scaling = 1.0
    loss: HingeLoss = "hinge"
    class_weight: ClassWeight = None
    tol: Tolerance = 1e-3
    max_iter: Count = 200

    def _kernels_of(self, X: Any, weight: np.ndarray) -> tuple[Any, Any]:
        X = self._rows = take_rows(X, np.flatnonzero(weight > 0.0))
        values = X.data if is_sparse(X) else X
        if float(np.max(np.abs(values), initial=0.0)) > _LARGEST:
            raise ValueError(
                f"X has values beyond {_LARGEST:g}, whose squares cannot be summed. Scale its "
                "columns, with sklearn.preprocessing.StandardScaler say."
            )
        scaling = float(self.intercept_scaling) if self.fit_intercept else 0.0
        n_samples, n_columns = X.shape
        if min(n_samples, n_columns) * n_samples > _MOST_NUMBERS:
            raise ValueError(
                f"X of {n_samples} rows and {n_columns} columns is too large for this machine, "
                "which needs them dense, or a matrix between all rows. Give fewer rows, or use "
                "MirrorDescentClassifier."
            )
        if is_sparse(X) and n_samples < n_columns:
            stack = KernelStack((X @ X.T).toarray() + scaling**2)
            stack.check()
            return None, stack
        columns = np.asarray(to_dense(X))
        if self.fit_intercept:
            ones = np.full((len(columns), 1), scaling, dtype=columns.dtype)
            columns = np.concatenate([columns, ones], axis=1)
        columns = np.ascontiguousarray(columns)
        return None, FactorGrams(columns, [columns.shape[1]])

    def _penalty(self, grams: Any, weight: np.ndarray) -> KernelPenalty:
        return KernelPenalty.of_weights(np.inf, np.ones(1))

    def _keep(
        self,
        found: KernelSolution,
        bank: Any,
        grams: Any,
        rows: np.ndarray,
        unit: float,
    ) -> None:
        X = self.__dict__.pop("_rows")
        scaling = float(self.intercept_scaling) if self.fit_intercept else 0.0
        if found.coefs is not None:
            weights = found.coefs[: X.shape[1]].T
            intercept = scaling * np.sum(found.coefs[X.shape[1] :], axis=0)
        else:
            weights = np.asarray(safe_sparse_dot(X.T, found.duals), dtype=np.float64).T
            intercept = scaling**2 * np.sum(found.duals, axis=0)
        if len(weights) == 2:
            weights, intercept = weights[1:] - weights[:1], intercept[1:] - intercept[:1]
        self.coef_, self.intercept_ = np.ascontiguousarray(weights), intercept
        self.objective_, self.dual_gap_ = float(found.objective), float(found.gap)
        self.n_iter_ = int(found.iterations)

    def _scores_and_sizes(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        scores = linear_scores(X, self.coef_.T, self.intercept_)
        sizes = abs(X) @ np.max(np.abs(self.coef_), axis=0) + np.max(np.abs(self.intercept_))
        if scores.shape[1] == 1:
            scores = np.concatenate([0.0 * scores, scores], axis=1)
        return scores, np.asarray(sizes)

    def _restore(self, state: dict[str, Any], max_bytes: int) -> None:
        self._check_parameters()
        self.__dict__.update(state)
        check_facts(self)
        n_classes = len(self.classes_)
        n_outputs = 1 if n_classes == 2 else n_classes
        _check_floats(self.coef_, (n_outputs, int(self.n_features_in_)), "coef_")
        _check_floats(self.intercept_, (n_outputs,), "intercept_")
        if not isinstance(self.classes_, np.ndarray) or self.classes_.ndim != 1:
            raise ValueError("classes_ must be an array of labels")
