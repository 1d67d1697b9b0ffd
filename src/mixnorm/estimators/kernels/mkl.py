"""Multi-class multiple kernel learning with an lp-norm of the weights of kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm.engines.multikernel import KernelPenalty
from mixnorm.estimators._common.parameters import ClassWeight
from mixnorm.estimators.kernels.base import KernelTraining, TailSumsMixin
from mixnorm.estimators.kernels.classifier import HingeLoss, KernelClassifier
from mixnorm.estimators.kernels.inputs import Exponent, Floor, MachineParameters, Tail


@dataclass(eq=False, repr=False, kw_only=True)
class MKLClassifier(MachineParameters, KernelClassifier):
    r"""Multi-class kernel machine that learns the weights of its kernels, with a duality gap.

    Minimises, with one weight :math:`\mu_m` for each kernel that all classes share,

    .. math::

        \min_{w,\ \mu \ge 0,\ \|\mu\|_p \le 1} \tfrac12 \sum_m \frac{\|w_m\|^2}{\mu_m}
        + C \sum_i \max_y \bigl(1[y \ne y_i] - f_{y_i}(x_i) + f_y(x_i)\bigr)

    where :math:`f = \sum_m \langle w_m, \phi_m \rangle` (:eq:`weights-problem`).

    Parameters
    ----------
    bank : KernelBank, optional
        The kernels. By default Gaussian kernels of eleven widths, in units of the mean squared
        distance of the training rows.
    kernel : {"bank", "precomputed"}, default="bank"
        ``"precomputed"``: ``X`` holds kernel matrices.
    p : float, default=1.2
        Exponent on the weights: 1 for few kernels, 2 for many, ``numpy.inf`` for the average.
    C : float, default=10.0
        Weight of each sample's loss.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The loss above, or its square.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply the sample weights in training; a class that is not
        in the dictionary weighs 1. ``"balanced"`` gives all classes the same total weight. Scores
        do not count them.
    tol : float, default=1e-2
        Relative duality gap to stop at: the objective is at most that part above the optimum.
    max_iter : int, default=200
        Most iterations, each with new weights of the kernels.
    warm_start : bool, default=False
        Start from the last fit, which must have had the same rows and kernels.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        The weights, none negative; their p-norm is one.
    kernel_names_ : list of str
        Names of the kernels.
    bank_ : FittedBank or None
        The kernels, with the rows that prediction needs.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    support_ : ndarray of shape (n_support,)
        Training rows with dual variables.
    dual_coef_ : ndarray of shape (n_support, n_classes)
        Scores are the weighted sum of kernels with the support, times these.
    dual_gap_ : float
        The objective is at most this much above the optimum.
    objective_ : float
        The minimised objective.
    cost_ : dict
        Numbers of kernels, support vectors, stored numbers, and multiplications per row.
    n_iter_ : int
        Machines solved on all rows.
    n_features_in_ : int
        Columns of ``X``; rows of a precomputed kernel.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where ``X`` has them.

    See Also
    --------
    ConvMKLClassifier : Divides kernels by their tail sums first.
    SMSDMKLClassifier : Penalises kernels by their tail sums.
    MKLRegressor : The same with squared losses.

    Notes
    -----
    Weights are learned on a third of the rows first, and so on for that third. Then each iteration
    combines the kernels, improves the machine on the sum by coordinate ascent over samples (with
    Newton steps where that is slow), and computes new weights from the blocks
    :math:`w_m = \mu_m \theta_m`. That reads half of every kernel matrix twice. The fit stops when
    the gap between the objective and the best dual value is small.

    References
    ----------
    J. Li, Y. Liu, R. Yin, H. Zhang, L. Ding, W. Wang, "Multi-class learning: from theory to
    algorithm", NeurIPS 2018.

    M. Kloft, U. Brefeld, S. Sonnenburg, A. Zien, "lp-norm multiple kernel learning", JMLR 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mixnorm import MKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKLClassifier().fit(StandardScaler().fit_transform(X), y)
    >>> model.score(StandardScaler().fit_transform(X), y) > 0.95
    True
    >>> model.dual_gap_ <= 0.01 * model.objective_
    True
    """

    p: Exponent = 1.2
    loss: HingeLoss = "hinge"
    class_weight: ClassWeight = None


@dataclass(eq=False, repr=False, kw_only=True)
class ConvMKLClassifier(TailSumsMixin, MKLClassifier):
    r"""Conv-MKL: multi-class multiple kernel learning on kernels divided by their tail sums.

    The tail sum :math:`r_m = \frac1n \sum_{j > \zeta} \lambda_j(K_m)` of eigenvalues bounds the
    local Rademacher complexity of a kernel's ball. The problem is that of
    :class:`MKLClassifier` with the constraint :math:`\|(r_m \mu_m)_m\|_p \le 1`, which is the same
    as dividing every kernel by its tail sum.

    Parameters
    ----------
    bank : KernelBank, optional
        The kernels. By default Gaussian kernels of eleven widths, in units of the mean squared
        distance of the training rows.
    kernel : {"bank", "precomputed"}, default="bank"
        ``"precomputed"``: ``X`` holds kernel matrices.
    p : float, default=1.2
        Exponent on the weights, from 1 to infinity.
    tail : int, default=8
        Number of largest eigenvalues that a tail sum leaves out.
    floor : float, default=0.01
        Least tail sum, in parts of the mean diagonal of a kernel. Without it the kernels with
        almost no tail take all weight, so the choice matters.
    C : float, default=10.0
        Weight of each sample's loss. Tail sums are divided by their geometric mean, so that ``C``
        means the same as without them.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The multi-class hinge loss, or its square.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply the sample weights in training; a class that is not
        in the dictionary weighs 1. ``"balanced"`` gives all classes the same total weight. Scores
        do not count them.
    tol : float, default=1e-2
        Relative duality gap to stop at.
    max_iter : int, default=200
        Most iterations, each with new weights of the kernels.
    warm_start : bool, default=False
        Start from the last fit, which must have had the same rows and kernels.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        The weights of the kernels as they are in the bank, none negative.
    tail_sums_ : ndarray of shape (n_kernels,)
        The tail sums, after the floor.
    kernel_names_, bank_, classes_, support_, dual_coef_, dual_gap_, objective_, cost_, n_iter_
        As in :class:`MKLClassifier`.
    n_features_in_ : int
        Columns of ``X``; rows of a precomputed kernel.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where ``X`` has them.

    Notes
    -----
    Tail sums come from a partial eigen-decomposition, of cost :math:`O(n^2 \zeta)` for a kernel.
    They are those of the training rows, also within cross-validation.

    References
    ----------
    J. Li, Y. Liu, R. Yin, H. Zhang, L. Ding, W. Wang, "Multi-class learning: from theory to
    algorithm", NeurIPS 2018, Algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixnorm import ConvMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ConvMKLClassifier(p=1.2, tail=4).fit(X, y)
    >>> model.tail_sums_.shape == model.kernel_weights_.shape
    True
    """

    tail: Tail = 8
    floor: Floor = 0.01

    def _build_penalty(self, training: KernelTraining) -> tuple[KernelPenalty, dict[str, Any]]:
        # The mean diagonal under the weights, as the tail sums count rows.
        traces = np.average(training.diagonals, axis=1, weights=training.weight)
        # Below the floor a tail is mostly rounding, and dividing by it would give the kernel all
        # weight.
        sums = np.maximum(training.tail_sums(int(self.tail)), float(self.floor) * traces)
        if not np.all(sums > 0.0):
            nothing = int(np.argmin(sums))
            raise ValueError(
                f"Kernel {nothing} of bank (or of X, if that holds kernels) is zero between all "
                "rows and themselves, and cannot be divided by its tail sum; leave it out."
            )
        # Divided by their geometric mean, so that dividing kernels by them does not change the size
        # of a sum of kernels, and C keeps its meaning.
        units = sums / math.exp(np.mean(np.log(sums)))
        return KernelPenalty.of_weights(float(self.p), units), {"tail_sums": sums}
