"""UFO-MKL and SMSD-MKL: kernels penalised by the sizes of their blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm.estimators._common.parameters import ClassWeight, Count, Seed
from mixnorm.estimators.kernels.base import KernelTraining, TailSumsMixin
from mixnorm.estimators.kernels.inputs import (
    Beta,
    BlockExponent,
    LossWeight,
    MachineParameters,
    Tail,
)
from mixnorm.estimators.kernels.stream import BlockPenaltyClassifier, Solver


@dataclass(eq=False, repr=False, kw_only=True)
class BlockParameters(MachineParameters):
    """Parameters of both learners that penalise blocks."""

    q: BlockExponent = None
    class_weight: ClassWeight = None
    solver: Solver = "exact"
    epochs: Count = 10
    random_state: Seed = None


@dataclass(eq=False, repr=False, kw_only=True)
class UFOMKLClassifier(BlockParameters, BlockPenaltyClassifier):
    r"""UFO-MKL: multi-class multiple kernel learning with a group penalty on kernels.

    Minimises

    .. math::

        \tfrac{\lambda}{2} \|w\|_{2,p}^2 + \beta \sum_m \|w_m\|
        + \tfrac1n \sum_i \max_y \bigl(1[y \ne y_i] - f_{y_i}(x_i) + f_y(x_i)\bigr)

    where a block :math:`w_m` holds the weights of one kernel for all classes,
    :math:`\lambda = 1 / (n C)` and :math:`1/p + 1/q = 1` (:eq:`blocks-problem`).

    Parameters
    ----------
    bank : KernelBank, optional
        The kernels. By default Gaussian kernels of eleven widths, in units of the mean squared
        distance of the training rows.
    kernel : {"bank", "precomputed"}, default="bank"
        ``"precomputed"``: ``X`` holds kernel matrices.
    C : float, default=10.0
        Weight of each sample's loss.
    beta : float, default=1e-3
        Cost of the size of a block; the larger, the fewer kernels are left.
    q : float or "classes", optional
        Dual exponent on the blocks, at least 2; ``max(2, 2 log n_kernels)`` by default, and
        ``max(2, 2 log n_classes)`` for ``"classes"``.
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
    solver : {"exact", "mirror"}, default="exact"
        ``"exact"``: alternate between weights and machine, until the gap is small. ``"mirror"``:
        mirror descent over single samples, which :meth:`partial_fit` always uses.
    epochs : int, default=10
        Most passes over the samples by ``"mirror"``; ``dual_gap_`` shows how far they got.
    random_state : int, RandomState instance or None, default=None
        Shuffles the samples for ``"mirror"``.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        The weights, none negative.
    kernel_names_, bank_, classes_, support_, dual_coef_, dual_gap_, objective_, cost_, n_iter_
        As in :class:`MKLClassifier`.
    n_features_in_ : int
        Columns of ``X``; rows of a precomputed kernel.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where ``X`` has them.

    References
    ----------
    F. Orabona, L. Jie, "Ultra-fast optimization algorithm for sparse multi kernel learning", ICML
    2011.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixnorm import UFOMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> dense = UFOMKLClassifier(beta=0.0).fit(X, y)
    >>> sparse = UFOMKLClassifier(beta=0.05).fit(X, y)
    >>> dense.cost_["kernels"] > sparse.cost_["kernels"]
    True
    """

    beta: Beta = 1e-3

    def _compute_block_costs(self, training: KernelTraining) -> tuple[np.ndarray, dict[str, Any]]:
        # b_m of :eq:`blocks-problem`, the same for all kernels.
        return float(self.beta) * np.ones(training.n_kernels), {}


@dataclass(eq=False, repr=False, kw_only=True)
class SMSDMKLClassifier(TailSumsMixin, BlockParameters, BlockPenaltyClassifier):
    r"""SMSD-MKL: multi-class multiple kernel learning that penalises kernels by their tail sums.

    Minimises

    .. math::

        \tfrac{\lambda}{2} \|w\|_{2,p}^2 + \beta \sum_m r_m \|w_m\|
        + \tfrac1n \sum_i \max_y \bigl(1[y \ne y_i] - f_{y_i}(x_i) + f_y(x_i)\bigr)

    where a block :math:`w_m` holds the weights of one kernel for all classes,
    :math:`r_m = \frac1n \sum_{j > \zeta} \lambda_j(K_m)` is its tail sum of eigenvalues
    (:eq:`tail-sum`), :math:`\lambda = 1 / (n C)` and :math:`1/p + 1/q = 1`
    (:eq:`blocks-problem`).

    Parameters
    ----------
    bank : KernelBank, optional
        The kernels. By default Gaussian kernels of eleven widths, in units of the mean squared
        distance of the training rows.
    kernel : {"bank", "precomputed"}, default="bank"
        ``"precomputed"``: ``X`` holds kernel matrices.
    C : float, default=100.0
        Weight of each sample's loss.
    beta : float, default=1e-2
        Cost of the size of a block, times its tail sum.
    tail : int, default=8
        Number of largest eigenvalues that a tail sum leaves out.
    q : float or "classes", optional
        Dual exponent on the blocks, at least 2; ``max(2, 2 log n_kernels)`` by default, and
        ``max(2, 2 log n_classes)`` for ``"classes"``.
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
    solver : {"exact", "mirror"}, default="exact"
        ``"exact"``: alternate between weights and machine, until the gap is small. ``"mirror"``:
        mirror descent over single samples, which :meth:`partial_fit` always uses.
    epochs : int, default=10
        Most passes over the samples by ``"mirror"``; ``dual_gap_`` shows how far they got.
    random_state : int, RandomState instance or None, default=None
        Shuffles the samples for ``"mirror"``.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        The weights, none negative.
    tail_sums_ : ndarray of shape (n_kernels,)
        The tail sums.
    kernel_names_, bank_, classes_, support_, dual_coef_, dual_gap_, objective_, cost_, n_iter_
        As in :class:`MKLClassifier`.
    n_features_in_ : int
        Columns of ``X``; rows of a precomputed kernel.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where ``X`` has them.

    Notes
    -----
    Narrow kernels, which can fit anything, have large tail sums and are penalised most. This
    matters on few data sets and hardly on most; see the user guide.

    References
    ----------
    J. Li, Y. Liu, R. Yin, H. Zhang, L. Ding, W. Wang, "Multi-class learning: from theory to
    algorithm", NeurIPS 2018, Algorithm 2; its formulas are corrected here, as the user guide says.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixnorm import SMSDMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SMSDMKLClassifier().fit(X, y)
    >>> bool((model.kernel_weights_ >= 0.0).all())
    True
    """

    C: LossWeight = 100.0
    beta: Beta = 1e-2
    tail: Tail = 8

    def _compute_block_costs(self, training: KernelTraining) -> tuple[np.ndarray, dict[str, Any]]:
        # b_m = beta r_m (:eq:`tail-sum`): a kernel that tells all rows apart costs most.
        sums = np.asarray(training.tail_sums(int(self.tail)), dtype=np.float64)
        return float(self.beta) * sums, {"tail_sums": sums}
