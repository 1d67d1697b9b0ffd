"""Sparse multiple kernel learning: a few kernels of thousands, chosen one at a time."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm._array import ArrayLike
from mixnorm.estimators._common.classifier import ClassifierFace
from mixnorm.estimators._common.inputs import check_loss, unit_of
from mixnorm.estimators._common.parameters import ClassWeight, Loss, Switch
from mixnorm.estimators.kernels.classifier import encode_labels
from mixnorm.estimators.kernels.greedy_base import GreedyKernelLearner, GreedyKernelParameters
from mixnorm.estimators.kernels.inputs import compute_target_centre
from mixnorm.estimators.kernels.regressor import KernelRegressionFace, check_target_table
from mixnorm.losses import MarginSoftmax, MultinomialLogistic, Squared, as_loss
from mixnorm.models import ClassOutputs, NumberOutputs


class GreedyRegressor(KernelRegressionFace, GreedyKernelLearner):
    """Regression by a few kernels."""

    def _loss(self) -> Any:
        return Squared()

    def _encode_targets(
        self, y: ArrayLike, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, NumberOutputs]:
        table, single = check_target_table(y)
        previous = self._find_previous()
        if previous is None:
            # Targets in units of their own deviations: tolerances and penalties then mean the same
            # for targets of any size.
            kept = weight > 0.0
            unit = unit_of(table[kept] - compute_target_centre(table[kept], weight[kept]))
        else:  # a path keeps its unit
            unit = previous.outputs.unit
        largest = float(np.max(np.abs(table)))
        # Squares of the targets must be floats with room for a sum.
        if not largest / unit < 1e152:
            raise ValueError(
                f"y has the size {largest:.3g}, and its deviations have the unit {unit:.3g}; the "
                "square of their ratio is too large for a float. Divide y by a power of ten, or "
                "subtract its mean."
            )
        # No centre: the intercept of the path, which the engine fits, has it.
        outputs = NumberOutputs(single, unit, np.zeros(table.shape[1]), self._loss())
        return table / unit, weight, outputs

    def _targets_of(self, y: ArrayLike) -> np.ndarray:
        return check_target_table(y)[0]

    @property
    def intercept_(self) -> Any:
        """The mean of the targets."""
        found: np.ndarray = super().intercept_
        outputs: Any = self._get_model().outputs
        return float(found[0]) if outputs.single else found


class GreedyClassifier(ClassifierFace, GreedyKernelLearner):
    """Classification by a few kernels."""

    def _check_together(self) -> None:
        super()._check_together()
        self._loss()

    def _loss(self) -> Any:
        known = {"logistic": MultinomialLogistic, "margin": MarginSoftmax, "squared": Squared}
        loss = as_loss(self.loss, known)
        constant = getattr(loss, "constant_curvature", False)
        return check_loss(loss, known, classifier=loss.is_classifier or not constant)

    def _encode_targets(
        self, y: ArrayLike, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, ClassOutputs]:
        classes, labels, weight = encode_labels(self, y, weight)
        known = classes if self._find_previous() is None else self.classes_
        if not np.array_equal(known, classes):
            raise ValueError(
                "warm_start=True continues a path, but y has other classes than the last fit: "
                f"{classes!r} instead of {known!r}. Set warm_start=False to start over."
            )
        # A copy, because the model must not change with the parameter.
        loss = copy.deepcopy(self._loss())
        if loss.is_classifier:
            return labels, weight, ClassOutputs(classes, loss)
        # Squared errors of one column of zeros and ones per class.
        return np.eye(len(classes))[labels], weight, ClassOutputs(classes)

    def _targets_of(self, y: ArrayLike) -> np.ndarray:
        y = np.asarray(y)
        if not np.all(np.isin(y, self.classes_)):
            raise ValueError(f"y has labels beside those of the fit, {self.classes_!r}.")
        return np.asarray(np.eye(len(self.classes_))[np.searchsorted(self.classes_, y)])

    def _knows_probabilities(self) -> bool:
        try:
            return super()._knows_probabilities()
        except AttributeError as error:
            raise AttributeError(
                f"loss={self.loss!r} knows no probabilities; set loss='logistic' or loss='margin'."
            ) from error


@dataclass(eq=False, repr=False, kw_only=True)
class GreedyMKLRegressor(GreedyKernelParameters, GreedyRegressor):
    r"""Regressor that chooses a few kernels out of thousands, shared by all outputs.

    Kernels are chosen one at a time by the size of their part of the functional gradient
    :math:`\nabla_j = \sum_i G_i k_j(x_i, \cdot)` (:eq:`functional-gradient`), where
    :math:`G = \frac1n (f - y)`, and the model :math:`f = b + \sum_j f_j` is corrected after each
    choice. One run gives the models of all sizes.

    Parameters
    ----------
    bank : KernelBank, optional
        The kernels; Gaussian kernels of three widths on every column by default
        (:meth:`KernelBank.per_feature <mixnorm.kernels.KernelBank.per_feature>`).
    kernel : {"bank", "precomputed"}, default="bank"
        ``"precomputed"``: ``X`` holds kernel matrices.
    n_kernels : int, default=10
        Most kernels to choose.
    algorithm : {"gomp", "l1", "l2"}, default="gomp"
        ``"gomp"``: group orthogonal matching pursuit. The largest gradient in the norm of its own
        space, :math:`\|\nabla_j\|_{H_j}`, then a refit of all chosen kernels with the penalty
        :math:`\frac\alpha2 \sum_j \|f_j\|^2`. ``"l1"``: the same with :math:`\alpha \sum_j
        \|f_j\|` (Algorithm 1 of Jin, Yang and Mahdavi); it ends early at the optimum over all
        kernels, and has a duality gap. ``"l2"``: the largest gradient on the data,
        :math:`(\frac1n \sum_i \nabla_j(x_i)^2)^{1/2}`, and one step against it (Algorithm 2).
    alpha : float, default=1e-3
        Weight of the penalty. ``"l2"`` has no penalty; few steps regularise it.
    step : {"line", "unit"}, default="line"
        Steps of ``"l2"``: the best along the line, or of length one as in the paper, which needs
        kernels of at most one between a row and itself.
    n_steps : int, optional
        Steps of ``"l2"``; ``n_kernels`` by default. Once ``n_kernels`` different kernels are
        chosen, further steps are taken among these.
    scan : {"auto", "exact", "factors"}, default="auto"
        How kernels are scored. ``"factors"``: by low-rank stand-ins, and the leading ones exactly.
        ``"exact"``: all of them exactly in every round, which takes long for large banks.
        ``"auto"``: exactly if all matrices together have at most 67 million entries.
    rank : int, default=64
        Most landmarks of the stand-ins of kernels that share columns.
    tol : float, default=1e-8
        Tolerance of a refit that iterates, in parts of the loss of the mean.
    max_iter : int, default=5000
        Most iterations of a refit.
    warm_start : bool, default=False
        Continue the path of the last fit, which must have had the same rows and kernels.

    Attributes
    ----------
    selected_kernels_ : ndarray of shape (n_selected,)
        The chosen kernels, by their numbers in the bank, in the order in which they came.
    selected_names_ : list of str
        Names of these kernels.
    path_ : dict of ndarray
        One row per round: ``"kernel"``, ``"n_kernels"`` (different ones so far), ``"loss"``,
        ``"objective"``, ``"gradient"`` (its norm, before the round), ``"gap"`` (of ``"l1"``, over
        all kernels) and ``"seconds"``.
    dual_coef_ : ndarray of shape (n_selected, n_support, n_outputs)
        Predictions are ``intercept_`` and the kernels with the support times these.
    intercept_ : float or ndarray of shape (n_outputs,)
        The mean of the targets.
    kernel_names_ : list of str
        Names of all kernels of the bank.
    bank_ : FittedBank or None
        The chosen kernels, with the rows that prediction needs.
    support_ : ndarray of shape (n_support,)
        The training rows that have weight.
    null_loss_ : float
        The loss of the mean, half the variance.
    cost_ : dict
        Numbers of kernels, support vectors, stored numbers, and multiplications per row.
    n_iter_ : int
        Iterations of all refits together.
    n_features_in_ : int
        Columns of ``X``; rows of a precomputed kernel.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where ``X`` has them.

    See Also
    --------
    MKLRegressor : Weighs all kernels of a bank.
    ShareBoostRegressor : Chooses columns.

    Notes
    -----
    With stand-ins, a scan costs about one product with ``rank`` numbers per row and column that
    has kernels, however many widths there are. The refit of ``"gomp"`` solves one system of
    ``n_samples`` equations.

    References
    ----------
    R. Jin, T. Yang, M. Mahdavi, "Sparse multiple kernel learning with geometric convergence rate",
    2013.

    V. Sindhwani, A. Lozano, "Non-parametric group orthogonal matching pursuit for sparse learning
    with multiple kernels", NIPS 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm import GreedyMKLRegressor
    >>> X = np.random.default_rng(0).standard_normal((200, 20))
    >>> y = np.sin(2.0 * X[:, 4]) + np.abs(X[:, 7])
    >>> model = GreedyMKLRegressor(n_kernels=2).fit(X, y)
    >>> model.selected_names_
    ['column 4: gaussian(tau=0.1, relative)', 'column 7: gaussian(tau=0.1, relative)']
    >>> model.truncate(1).selected_kernels_
    array([12])
    """

    warm_start: Switch = False


@dataclass(eq=False, repr=False, kw_only=True)
class GreedyMKLClassifier(GreedyKernelParameters, GreedyClassifier):
    r"""Classifier that chooses a few kernels out of thousands, shared by all classes.

    Kernels are chosen one at a time by the size of their part of the functional gradient
    :math:`\nabla_j = \sum_i G_i k_j(x_i, \cdot)` (:eq:`functional-gradient`), where :math:`G` is
    the gradient of the mean loss in the scores of the training rows, and the model is corrected
    after each choice. One run gives the models of all sizes.

    Parameters
    ----------
    bank : KernelBank, optional
        The kernels; Gaussian kernels of three widths on every column by default
        (:meth:`KernelBank.per_feature <mixnorm.kernels.KernelBank.per_feature>`).
    kernel : {"bank", "precomputed"}, default="bank"
        ``"precomputed"``: ``X`` holds kernel matrices.
    n_kernels : int, default=10
        Most kernels to choose.
    algorithm : {"gomp", "l1", "l2"}, default="gomp"
        How kernels are chosen and the model is corrected, as in :class:`GreedyMKLRegressor`.
    loss : {"squared", "logistic", "margin"} or loss object, default="squared"
        ``"squared"``: squared errors of one column of zeros and ones per class, which one system of
        equations solves. ``"logistic"``: the multinomial logistic loss; ``"margin"``: that with a
        margin. These two know probabilities.
    alpha : float, default=1e-3
        Weight of the penalty.
    step : {"line", "unit"}, default="line"
        Steps of ``"l2"``.
    n_steps : int, optional
        Steps of ``"l2"``; ``n_kernels`` by default.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply the sample weights in training; a class that is not
        in the dictionary weighs 1. ``"balanced"`` gives all classes the same total weight. Scores
        do not count them.
    scan : {"auto", "exact", "factors"}, default="auto"
        How kernels are scored, as in :class:`GreedyMKLRegressor`.
    rank : int, default=64
        Most landmarks of the stand-ins of kernels that share columns.
    tol : float, default=1e-8
        Tolerance of a refit that iterates, in parts of the loss of a constant.
    max_iter : int, default=5000
        Most iterations of a refit.
    warm_start : bool, default=False
        Continue the path of the last fit, which must have had the same rows and kernels.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    selected_kernels_, selected_names_, path_, kernel_names_, bank_, support_, null_loss_
        As in :class:`GreedyMKLRegressor`.
    cost_, n_iter_
        As in :class:`GreedyMKLRegressor`.
    dual_coef_ : ndarray of shape (n_selected, n_support, n_classes)
        Scores are ``intercept_`` and the kernels with the support times these.
    intercept_ : ndarray of shape (n_classes,)
        The scores of the model without kernels; ``"gomp"`` fits them again, unless the loss is
        squared.
    n_features_in_ : int
        Columns of ``X``; rows of a precomputed kernel.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where ``X`` has them.

    See Also
    --------
    MKLClassifier : Weighs all kernels of a bank.
    ShareBoostClassifier : Chooses columns.

    References
    ----------
    R. Jin, T. Yang, M. Mahdavi, "Sparse multiple kernel learning with geometric convergence rate",
    2013.

    V. Sindhwani, A. Lozano, "Non-parametric group orthogonal matching pursuit for sparse learning
    with multiple kernels", NIPS 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mixnorm import GreedyMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = GreedyMKLClassifier(n_kernels=4).fit(X, y)
    >>> len(model.selected_kernels_), model.score(X, y) > 0.97
    (4, True)
    """

    loss: Loss = "squared"
    class_weight: ClassWeight = None
    warm_start: Switch = False
