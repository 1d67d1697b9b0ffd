"""ShareBoost: greedy learning with few features shared by all classes or outputs."""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from mixnorm._array import Array, ArrayLike, MatrixLike, follow, is_foreign, namespace, to_numpy
from mixnorm.data import BlockTable
from mixnorm.estimators._common.arrays import check_within_reach, encode_labels
from mixnorm.estimators._common.inputs import check_loss, check_number_targets, check_weights
from mixnorm.estimators._common.parameters import ClassWeight
from mixnorm.estimators._common.regressor import RegressorMixin
from mixnorm.estimators._common.staged import StagedClassifierMixin
from mixnorm.estimators._common.units import check_alike, check_sizes
from mixnorm.estimators._common.validation import validate_data
from mixnorm.estimators.shareboost.base import BaseShareBoost, refuse_to_continue
from mixnorm.estimators.shareboost.blocks import (
    BlockTraining,
    number_outputs,
    survey_labels,
    survey_numbers,
    train_on_labels,
    train_on_numbers,
)
from mixnorm.losses import MarginSoftmax, MultinomialLogistic, Squared
from mixnorm.models import ClassOutputs, NumberOutputs
from mixnorm.pools import working_dtype


@dataclass(eq=False, repr=False)
class ShareBoostClassifier(StagedClassifierMixin, BaseShareBoost):
    r"""Multi-class classifier that uses few features, shared by all classes.

    Features are chosen one at a time, and after each choice the weights of all chosen features are
    fitted together. One fit gives models of all sizes from one feature to ``n_features_to_select``.
    The model after each round minimises

    .. math:: \sum_i w_i\, \ell(W x_i + b, y_i) + \alpha\, \Omega(W)

    over the chosen columns of :math:`W`, with weights :math:`w_i` that sum to one, features in
    standard units, a penalty :math:`\Omega` (:math:`\|W\|_F^2` by default), and a free intercept
    :math:`b` (:eq:`shareboost-objective`). The chosen features and the predictions do not depend on
    the units and origins of columns.

    Parameters
    ----------
    n_features_to_select : int, optional
        Number of features of the final model (of groups, if the pool has groups). None chooses 20,
        or all if there are fewer; with ``cost_budget``, as many as it allows.
    alpha : float or "auto", default="auto"
        Weight of the penalty, in the coordinates of the scaled features. ``"auto"`` finds a value
        for each size by the evidence of the weights, from the training data alone, where rows count
        by their ``sample_weight``.
    loss : {"margin", "logistic"} or loss object, optional
        ``"margin"``, also taken for None, is the paper's :class:`~mixnorm.losses.MarginSoftmax`;
        ``"logistic"`` is :class:`~mixnorm.losses.MultinomialLogistic`.
    pool : pool object, optional
        Where columns come from; None takes :class:`~mixnorm.pools.Columns`. ``Columns(groups=...)``
        chooses groups of columns together.
    max_inputs : int, optional
        Largest number of columns of ``X`` that all chosen features together may read. It differs
        from the number of features where the pool makes features of columns.
    cost_budget : float, optional
        Largest total price of the chosen features, by the prices of the pool
        (``Columns(costs=...)``). Features are chosen by gain per price.
    fit_intercept : bool, default=True
        Fit an intercept, which is not penalised and does not count as a feature.
    warm_start : bool, default=False
        Continue the path of the previous ``fit`` instead of starting over.
    random_state : int, RandomState instance or None, default=None
        For pools that draw at random; :class:`~mixnorm.pools.Columns` does not.
    options : GreedyOptions, optional
        Options for experts: the penalty, the rule of choice, swaps, units of columns, tolerances.
        None takes the defaults of :class:`~mixnorm.GreedyOptions`.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply the sample weights in training; a class that is not
        in the dictionary weighs 1. ``"balanced"`` gives all classes the same total weight. Scores
        do not count them.

    Attributes
    ----------
    selected_ : ndarray of shape (n_selected,)
        The chosen columns, in the order in which they were chosen.
    support_ : ndarray of shape (n_selected,)
        The same columns, rising.
    selected_names_ : list of str
        Their names in the order of ``selected_``; ``x0, x1, ...`` where ``X`` has no names.
    feature_importances_ : ndarray of shape (n_features,)
        Norms of the weights of each column in ``coef_``, divided by their sum; zero for columns not
        chosen. Atoms that are not columns share theirs equally among the columns that they read.
    path_ : dict of ndarray
        One row per round: ``"feature"`` (the column chosen, or its group's label), ``"loss"`` (the
        weighted mean training loss), ``"gradient"`` (the l1 norm of the chosen column's gradient
        before the round) and ``"seconds"``. ``pandas.DataFrame(model.path_)`` works. For a model
        that ``backward`` found, ``"feature"`` is the one that the next smaller model lacks (the
        last of its features, if it lacks several).
    alpha_ : ndarray of shape (n_rounds,)
        The weight of the penalty in the model of each size.
    options_ : GreedyOptions
        The options in use: those given, or the defaults.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Weights, zero for columns not chosen.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercept.
    atoms_ : list
        The features of the model, in the order of its weights, named as in ``path_``. They differ
        from the features of ``path_`` where some were replaced, dropped or tuned.
    pool_ : pool object
        The pool, with what it has learned from the data, such as the templates of patches.
    cost_ : Cost
        Operations per row: those of the features, and of their weights.
    null_loss_ : float
        Training loss with no features.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_iter_ : int
        Iterations of all corrective steps together.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where all are strings.

    See Also
    --------
    ShareBoostClassifierCV : Chooses the number of features by cross-validation.

    Notes
    -----
    A round costs one product of ``X`` with the residual, and a few with the chosen columns. Dense
    arrays of float32, float64 or small integers are used without a copy. Files mapped with
    ``numpy.memmap`` are read in blocks. Sparse matrices are never made dense, except for patches.
    From 16,384 rows on, second derivatives are estimated on 8,192 of them, so that the order of the
    rows matters a little.
    With two classes the weights of the two are opposite, and ``coef_`` is their difference. A
    keyboard interrupt after the first round keeps the rounds so far, with a warning.

    Within ``sklearn.config_context(array_api_dispatch=True)``, the fit computes with arrays of
    other libraries (such as torch tensors on a GPU) on their device. Attributes and results of
    methods are then in the namespace and on the device of ``X``, except labels that are texts. The
    weights are also kept on the host: a fitted model takes new data from any library and device,
    and pickles and model files hold NumPy arrays only. Such arrays need a pool with a true
    ``array_api``, such as :class:`~mixnorm.pools.Columns`.

    References
    ----------
    S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: efficient multiclass learning with
    feature sharing", NeurIPS 2011, Algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mixnorm import ShareBoostClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = ShareBoostClassifier(n_features_to_select=20).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> model.truncate(8).selected_.shape
    (8,)
    >>> model.transform(X).shape
    (1797, 20)
    """

    _: KW_ONLY
    class_weight: ClassWeight = None

    def _check_training(self, X: MatrixLike, y: ArrayLike) -> tuple[Any, Any]:
        return self._check_labels(X, y)

    def _encode_targets(
        self, X: Array, y: Array, sample_weight: ArrayLike | None
    ) -> tuple[Any, int, ClassOutputs]:
        """Return the labels as ``0 .. k-1``, their number, and what scores mean."""
        classes, labels = encode_labels(y, X)
        known = classes if self._find_previous() is None else self._model_outputs.classes
        if not np.array_equal(to_numpy(known), to_numpy(classes)):
            refuse_to_continue(
                "continues a path, but y has other classes than the last fit: "
                f"{classes!r} instead of {known!r}"
            )
        # The model keeps a loss of its own, which does not change with the parameter.
        loss = copy.deepcopy(self._loss())
        return labels, classes.shape[0], ClassOutputs(to_numpy(classes), loss)

    def _survey_table(
        self, table: BlockTable, dtype: Any
    ) -> tuple[BlockTraining, ClassOutputs, int]:
        name = type(self).__name__
        found, factors = survey_labels(table, self.class_weight, dtype, name)
        classes, previous = found.target.classes, self._find_previous()
        if previous is not None and not np.array_equal(self._model_outputs.classes, classes):
            refuse_to_continue("continues a path, but the table has other classes than before")
        outputs = ClassOutputs(classes, copy.deepcopy(self._loss()))
        training = train_on_labels(table, found, factors, outputs, dtype)
        return training, outputs, len(classes)

    def _loss(self) -> Any:
        known = {"margin": MarginSoftmax, "logistic": MultinomialLogistic}
        return check_loss(self.loss or "margin", known, classifier=True)


class ShareBoostRegressor(RegressorMixin, BaseShareBoost):
    r"""Regressor for one or many outputs that uses few features, shared by all outputs.

    Simultaneous orthogonal matching pursuit: features are chosen one at a time, and all weights are
    fitted again after each choice. The model after each round minimises

    .. math:: \tfrac12 \sum_i w_i \|W x_i + b - y_i\|_2^2 + \alpha\, \Omega(W)

    over the chosen columns of :math:`W`, with weights :math:`w_i` that sum to one, features in
    standard units, a penalty :math:`\Omega` (:math:`\|W\|_F^2` by default), and a free intercept
    :math:`b` (:eq:`shareboost-objective`). The chosen features and the predictions do not depend on
    the units and origins of columns.

    Parameters
    ----------
    n_features_to_select : int, optional
        Number of features of the final model (of groups, if the pool has groups). None chooses 20,
        or all if there are fewer; with ``cost_budget``, as many as it allows.
    alpha : float or "auto", default="auto"
        Weight of the penalty, in the coordinates of the scaled features, or found for each size, as
        in :class:`ShareBoostClassifier`.
    loss : {"squared"} or loss object, optional
        The loss; None takes the squared one.
    pool : pool object, optional
        Where columns come from; None takes :class:`~mixnorm.pools.Columns`.
    max_inputs : int, optional
        Largest number of columns of ``X`` that all chosen features together may read.
    cost_budget : float, optional
        Largest total price of the chosen features, as in :class:`ShareBoostClassifier`.
    fit_intercept : bool, default=True
        Fit an intercept, which is not penalised and does not count as a feature.
    warm_start : bool, default=False
        Continue the path of the previous ``fit`` instead of starting over.
    random_state : int, RandomState instance or None, default=None
        For pools that draw at random; :class:`~mixnorm.pools.Columns` does not.
    options : GreedyOptions, optional
        Options for experts: the penalty, the rule of choice, swaps, units of columns, tolerances.
        None takes the defaults of :class:`~mixnorm.GreedyOptions`.

    Attributes
    ----------
    selected_ : ndarray of shape (n_selected,)
        The chosen columns, in the order in which they were chosen.
    support_ : ndarray of shape (n_selected,)
        The same columns, rising.
    selected_names_ : list of str
        Their names in the order of ``selected_``; ``x0, x1, ...`` where ``X`` has no names.
    feature_importances_ : ndarray of shape (n_features,)
        Norms of the weights of each column in ``coef_``, divided by their sum; zero for columns not
        chosen. Atoms that are not columns share theirs equally among the columns that they read.
    path_ : dict of ndarray
        One row per round: ``"feature"``, ``"loss"``, ``"gradient"`` and ``"seconds"``, as in
        :class:`ShareBoostClassifier`.
    alpha_ : ndarray of shape (n_rounds,)
        The weight of the penalty in the model of each size.
    options_ : GreedyOptions
        The options in use: those given, or the defaults.
    coef_ : ndarray of shape (n_outputs, n_features), or (n_features,) for a one-dimensional ``y``
        Weights, zero for columns not chosen.
    intercept_ : ndarray of shape (n_outputs,), or float
        Intercept.
    atoms_ : list
        The features of the model, in the order of its weights, named as in ``path_``. They differ
        from the features of ``path_`` where some were replaced, dropped or tuned.
    pool_ : pool object
        The pool, with what it has learned from the data, such as the templates of patches.
    cost_ : Cost
        Operations per row: those of the features, and of their weights.
    null_loss_ : float
        Training loss with no features.
    n_iter_ : int
        Iterations of all corrective steps together.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where all are strings.

    See Also
    --------
    ShareBoostRegressorCV : Chooses the number of features by cross-validation.

    Notes
    -----
    Scale outputs of very different sizes first, since the gains of a feature are added up over
    outputs. Arrays of other libraries are treated as in :class:`ShareBoostClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from mixnorm import ShareBoostRegressor
    >>> X, Y = make_regression(n_features=50, n_informative=5, n_targets=3, random_state=0)
    >>> model = ShareBoostRegressor(n_features_to_select=5).fit(X, Y)
    >>> bool(model.score(X, Y) > 0.99)
    True
    """

    def _encode_targets(
        self, X: Array, y: Array, sample_weight: ArrayLike | None
    ) -> tuple[Any, int, NumberOutputs]:
        """Centre the targets and divide them by a unit, which keeps float32 accurate.

        With a free intercept and one unit for all outputs the problem is the same. All attributes
        are in the units of ``y``.
        """
        weight = check_weights(sample_weight, y.shape[0], y.dtype, like=y)
        xp, targets = namespace(y), y if y.ndim == 2 else y[:, None]
        # Rows of weight zero may hold anything, even numbers that would overflow.
        counted = xp.where(weight[:, None] > 0, targets, xp.zeros_like(targets))
        sizes = to_numpy(xp.max(xp.abs(counted), axis=0))
        check_sizes(sizes, "float32" if "32" in str(working_dtype(X)) else "float64")
        previous = self._find_previous()
        if previous is not None:  # a path is continued in its own units
            centre = follow(previous.outputs.centre, y)
        else:
            # The mean of the targets: with a free intercept, subtracting it changes no weight.
            centre = weight @ counted
            centre = centre if self.fit_intercept else xp.zeros_like(centre)
        # Rows of weight zero get the centre as their target, a deviation of zero.
        deviations = xp.where(weight[:, None] > 0, targets, centre) - centre
        spread = to_numpy(xp.max(xp.abs(deviations), axis=0))
        check_alike(spread, sizes)
        # One unit for all outputs: a unit for each would change their proportion in the loss.
        unit = (float(np.max(spread)) or 1.0) if previous is None else previous.outputs.unit
        loss = copy.deepcopy(self._loss())
        outputs = NumberOutputs(y.ndim == 1, unit, to_numpy(centre), loss)
        return deviations / unit, targets.shape[1], outputs

    def _check_training(self, X: MatrixLike, y: ArrayLike) -> tuple[Any, Any]:
        check_within_reach(y, "y")
        check_number_targets(y)
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=("csr", "csc"),
            dtype="numeric",
            multi_output=True,
            y_numeric=True,
        )
        y = follow(y, X, namespace(X).float64 if is_foreign(X) else np.float64)
        previous, outputs = self._find_previous(), 1 if y.ndim == 1 else y.shape[1]
        known = outputs if previous is None else len(previous.path.null_intercept)
        if known != outputs:
            refuse_to_continue(f"continues a path of {known} outputs, but y has {outputs}")
        return X, y

    def _survey_table(
        self, table: BlockTable, dtype: Any
    ) -> tuple[BlockTraining, NumberOutputs, int]:
        found, previous = survey_numbers(table, dtype), self._find_previous()
        loss = copy.deepcopy(self._loss())
        outputs = number_outputs(found, bool(self.fit_intercept), dtype, loss)
        count = len(np.atleast_1d(outputs.centre))
        if previous is not None:  # a path is continued in its own units
            known, width = previous.outputs, len(previous.path.null_intercept)
            if width != count:
                refuse_to_continue(
                    f"continues a path of {width} outputs, but the table has {count}"
                )
            centre = np.atleast_1d(known.centre)
            outputs = NumberOutputs(outputs.single, known.unit, centre, loss)
        return train_on_numbers(table, found, outputs, dtype), outputs, count

    def _loss(self) -> Any:
        return check_loss(self.loss or "squared", {"squared": Squared}, classifier=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
