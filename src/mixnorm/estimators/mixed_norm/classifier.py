"""Classification under a norm, stopped by a duality gap."""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm.data import BlockMatrix, find_table, gather_labels, gather_weights
from mixnorm.engines.proximal import SharedDesign
from mixnorm.estimators._common.classifier import ClassifierFace
from mixnorm.estimators._common.inputs import (
    apply_class_weights,
    check_dense_targets,
    check_one_kind_of_label,
    check_weights,
)
from mixnorm.estimators._common.parameters import (
    ClassWeight,
    Loss,
    Switch,
)
from mixnorm.estimators._common.validation import check_classification_targets, validate_data
from mixnorm.estimators.mixed_norm.base import (
    NormLearner,
    Penalty,
    Radius,
    check_dual_loss,
    drop_unweighted_rows,
    working_dtypes,
)
from mixnorm.estimators.mixed_norm.tables import open_table
from mixnorm.estimators.mixed_norm.training import Training
from mixnorm.losses import JOINT, as_loss
from mixnorm.models import ClassOutputs, gives_probabilities


class OneDesign(NormLearner):
    """Learners with one ``X`` for all outputs.

    A subclass gives ``_loss()``, the checked loss, and ``_prepare(X, y, sample_weight)``, which
    returns valid data as the engine takes them, with the outputs of the model.
    """

    def _validate(self, X: MatrixLike, y: ArrayLike, **options: bool) -> tuple[Any, Any]:
        """Return ``X`` and ``y`` as arrays of the dtypes to work in."""
        dtype = working_dtypes(self.tol, [self._loss()])
        found: tuple[Any, Any] = validate_data(
            self, X, y, accept_sparse=("csc", "csr"), dtype=dtype, **options
        )
        return found

    def _training_of(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> tuple[Training, Any]:
        table = find_table(X, y, sample_weight)
        if table is not None:
            matrix = open_table(self, table, working_dtypes(self.tol, [self._loss()]))
            return self._prepare_table(matrix)
        training: tuple[Training, Any] = self._prepare(*self._validate(X, y), sample_weight)
        return training

    def _prepare_table(self, matrix: BlockMatrix) -> tuple[Training, Any]:
        """Return a table of row blocks as the engine takes it, with the outputs of the model."""
        raise NotImplementedError


class NormClassifier(ClassifierFace, OneDesign):
    """The classifiers, except for their parameters."""

    def _loss(self) -> Any:
        loss = check_dual_loss(as_loss(self.loss, JOINT), JOINT)
        if not loss.is_classifier:
            raise ValueError(
                f"loss={loss!r} is not a loss on labels; choose one of {sorted(JOINT)}."
            )
        if not loss.shift_invariant:  # for two classes only a difference of scores is kept
            raise ValueError(
                f"loss={loss!r} changes where a constant is added to all scores of a sample; "
                f"choose one of {sorted(JOINT)}."
            )
        return loss

    def _validate(self, X: MatrixLike, y: ArrayLike, **options: bool) -> tuple[Any, Any]:
        check_dense_targets(y)
        check_one_kind_of_label(y)
        X, y = super()._validate(X, y, **options)
        check_classification_targets(y)
        return X, y

    def _prepare(
        self, X: Any, y: np.ndarray, sample_weight: ArrayLike | None
    ) -> tuple[Training, ClassOutputs]:
        sample_weight = apply_class_weights(self.class_weight, y, sample_weight)
        return self._prepare_labels(X, *np.unique(y, return_inverse=True), sample_weight)

    def _prepare_table(self, matrix: BlockMatrix) -> tuple[Training, ClassOutputs]:
        classes, labels = gather_labels(matrix.table)
        weight: Any = gather_weights(matrix.table)
        if self.class_weight is not None:
            weight = apply_class_weights(self.class_weight, classes[labels], weight)
        return self._prepare_labels(matrix, classes, labels, weight)

    def _prepare_labels(
        self, X: Any, classes: np.ndarray, labels: np.ndarray, sample_weight: ArrayLike | None
    ) -> tuple[Training, ClassOutputs]:
        """Return data as the engine takes them, from the places of labels in ``classes``."""
        loss = self._loss()
        weight = check_weights(sample_weight, X.shape[0], X.dtype)
        # Labels are encoded before rows of no weight are dropped, so that ``classes_`` has all
        # labels.
        weight, X, labels = drop_unweighted_rows(weight, X, labels)
        self._check_classes(classes, labels, weight)
        target = loss.encode(labels, len(classes), weight)
        if isinstance(X, BlockMatrix):
            target = target.stow(X.keep_rows)
        X, units = self._columns(X, weight)
        training = Training(SharedDesign(X, len(classes)), loss, target, weight, **units)
        known = copy.deepcopy(loss) if gives_probabilities(loss) else None
        return training, ClassOutputs(classes, known)

    def _check_classes(self, classes: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> None:
        """Raise unless two classes have weight, and a warm start has the same ones."""
        present = classes[np.bincount(labels, weight > 0.0, minlength=len(classes)) > 0]
        if len(present) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes, but y holds only one "
                f"class of positive weight: {present[0]!r}."
            )
        if not getattr(self, "warm_start", False) or not self.__sklearn_is_fitted__():
            return
        known = self.classes_
        if not np.array_equal(known, classes):
            raise ValueError(
                "warm_start=True starts from the last fit, but y has other classes: "
                f"{classes!r} instead of {known!r}. Set warm_start=False to start from zero."
            )

    def _make_coef(self, weights: np.ndarray, intercept: np.ndarray) -> tuple[Any, Any]:
        # For two classes only the difference of the two columns counts.
        if weights.shape[1] == 2:
            return (weights[:, 1] - weights[:, 0])[None, :], intercept[1:] - intercept[:1]
        # A constant in all scores changes no loss: take the intercepts that sum to zero.
        return super()._make_coef(weights, intercept - np.mean(intercept))

    def _read_weights(self) -> tuple[np.ndarray, np.ndarray]:
        weights, intercept = super()._read_weights()
        if len(intercept) > 1:
            return weights, intercept
        # A warm start needs both columns again: of all pairs with this difference, the one of the
        # least norm.
        halves = np.asarray([[-0.5, 0.5]])
        return weights * halves, (intercept * halves)[0]


@dataclass(eq=False, repr=False)
class MixedNormClassifier(NormClassifier):
    r"""Linear multi-class classifier under a matrix norm.

    Minimises, with one column of weights per class,

    .. math:: \sum_i w_i\, \ell(W^\top x_i + b, y_i) + \alpha\, \|W\|

    with sample weights :math:`w_i` that sum to one and a free intercept :math:`b`; or, where
    ``radius`` is given, the loss alone over :math:`\|W\| \le` ``radius``
    (:eq:`penalty-and-ball`). With the norm
    ``"l2,1"`` few features are in use, the same for all classes; with ``"trace"`` the weights
    have low rank.

    Parameters
    ----------
    norm : {"l1,1", "l2,1", "l2,2", "linf,1", "trace"} or norm object, default="l2,1"
        The norm, by name or as an object of :mod:`mixnorm.norms`.
    alpha : float, default=0.01
        Weight of the norm beside the weighted mean loss, for the weights of the columns as given:
        it is in units of the columns, unless ``standardize=True``. Not used where ``radius`` is
        given.
    radius : float, optional
        Largest norm. It replaces the penalty: ``alpha`` is then not used.
    loss : {"logistic", "margin", "hinge", "squared_hinge"} or loss object, default="logistic"
        The loss of all scores of a sample and its class.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply the sample weights in training; a class that is not
        in the dictionary weighs 1. ``"balanced"`` gives all classes the same total weight. Scores
        do not count them.
    fit_intercept : bool, default=True
        Fit an intercept, which the norm does not see.
    standardize : bool, default=False
        Measure columns in standard deviations, with the weights of the rows, and about their means;
        constant columns get no weight. ``alpha``, ``radius`` and ``norm_value_`` are then those of
        the weights of such columns. ``coef_`` and ``intercept_`` are for the columns as given.
        Without an intercept columns are divided by the root of their mean square, about zero.
    tol : float, default=1e-4
        Largest relative duality gap: the gap divided by the loss of the best intercept alone.
    max_iter : int, default=1000
        Most iterations.
    warm_start : bool, default=False
        Start from the weights of the previous ``fit``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Weights; for two classes those of ``classes_[1]`` less those of ``classes_[0]``.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercept; of more than two classes, intercepts that sum to zero.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    support_ : ndarray of shape (n_selected,)
        Features with a weight that is not zero.
    selected_, selected_names_ : ndarray, list of str
        The same features, and their names; ``x0, x1, ...`` where ``X`` has no names.
    feature_importances_ : ndarray of shape (n_features,)
        Norms of the weights of each column in ``coef_``, divided by their sum; zero for columns not
        chosen.
    rank_ : int
        Numerical rank of ``coef_``.
    dual_gap_ : float
        Duality gap: ``objective_`` is at most this much above its optimum.
    objective_ : float
        What was minimised: the mean loss, plus ``alpha`` times the norm.
    norm_value_ : float
        The norm of the weights (of two columns of them, for two classes); with
        ``standardize=True`` in standard units.
    n_iter_ : int
        Iterations.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where all are strings.

    See Also
    --------
    MixedNormClassifierCV : Chooses ``alpha`` by cross-validation.
    ShareBoostClassifier : Chooses a given number of features greedily.

    Notes
    -----
    The norm depends on the scale of the columns, so that ``standardize=True``, which copies ``X``,
    is mostly right. An iteration costs a product of ``X`` with the residual, and several with the
    features in use. Data in float32 are used in float32 where ``tol`` is at least 1e-5, all other
    data in float64. If ``tol`` is at least 1e-4, steps on dense data use a copy of ``X`` in
    float32; their results and gaps are still computed in float64. Sparse matrices are never made
    dense. A keyboard interrupt keeps the weights found so far, with a warning.

    References
    ----------
    S. Kakade, S. Shalev-Shwartz, A. Tewari, "Regularization techniques for learning with
    matrices", JMLR 13, 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mixnorm import MixedNormClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MixedNormClassifier("l2,1", alpha=0.05).fit(X / 16, y)
    >>> len(model.support_) < 64, bool(model.score(X / 16, y) > 0.8)
    (True, True)
    >>> MixedNormClassifier("trace", radius=20.0).fit(X / 16, y).norm_value_ <= 20.0 + 1e-9
    True
    """

    alpha: Penalty = 0.01
    _: KW_ONLY
    radius: Radius = None
    loss: Loss = "logistic"
    class_weight: ClassWeight = None
    warm_start: Switch = False
