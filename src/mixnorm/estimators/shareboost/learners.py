"""ShareBoost: greedy learning with few features shared by all classes or outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mixnorm._array import follow, is_foreign, is_numpy, namespace, to_numpy
from mixnorm._linear import even_ties
from mixnorm.estimators._common.arrays import check_within_reach, encoded, labels_at
from mixnorm.estimators._common.inputs import (
    check_loss,
    check_number_targets,
    check_one_kind_of_label,
    check_weights,
)
from mixnorm.estimators._common.progress import all_or_nothing, with_callbacks
from mixnorm.estimators._common.regressor import RegressorMixin
from mixnorm.estimators._common.units import check_alike, check_sizes
from mixnorm.estimators._common.validation import check_classification_targets, validate_data
from mixnorm.estimators.shareboost.base import BaseShareBoost
from mixnorm.losses import MarginSoftmax, MultinomialLogistic, Squared
from mixnorm.pools import working_dtype


class ShareBoostClassifier(ClassifierMixin, BaseShareBoost):
    r"""Multi-class classifier that uses few features, shared by all classes.

    Features are chosen one at a time, and after each choice the weights of all chosen features are
    optimised together. One fit gives the whole curve from one feature to ``n_features_to_select``.
    The model after each round minimises

    .. math:: \sum_i w_i\, \ell(W x_i + b, y_i) + \alpha\, \Omega(W)

    over the chosen columns of :math:`W`, with weights :math:`w_i` that sum to one, features in
    standard units, a penalty :math:`\Omega` (:math:`\|W\|_F^2` by default), and a free intercept
    :math:`b`. What is chosen and predicted does not depend on the units and origins of columns.

    Parameters
    ----------
    n_features_to_select : int, optional
        Number of features of the final model (of groups, if the pool has groups). None chooses 20,
        or all if there are fewer; with ``cost_budget``, as many as that allows.
    alpha : float or "auto", default="auto"
        Weight of the penalty, in the coordinates of the scaled features. ``"auto"`` finds a value
        for each size by the evidence of the weights, from the training data alone; rows count by
        their ``sample_weight`` there.
    penalty : {"ridge", "linf,1", "l1"} or penalty object, default="ridge"
        What large weights cost: ``"ridge"`` the sum of their squares; ``"linf,1"``, smoothed, the
        largest magnitude of each feature's weights, added up over features; ``"l1"`` the sum of
        magnitudes, which leaves single weights of chosen features at exactly zero. The objects are
        in :mod:`mixnorm.engines.penalties`.
    loss : {"margin", "logistic"} or loss object, optional
        ``"margin"``, also taken for None, is the paper's :class:`~mixnorm.losses.MarginSoftmax`;
        ``"logistic"`` is :class:`~mixnorm.losses.MultinomialLogistic`.
    rule : {"joint", "l1", "l2", "line", "column", "exact"}, default="joint"
        How the next feature is chosen. ``"l1"`` (the paper's) and ``"l2"``: by the norm of its
        gradient over classes. The others look closer at eight features, those whose weights alone
        would gain most: ``"line"`` minimises the loss along the gradient, ``"column"`` takes a
        Newton step in the weights of the new feature, ``"joint"`` one in the weights of all
        features, and ``"exact"`` refits all weights with each of the eight in turn.
    swaps : int, default=0
        Replacement steps after each round: the older feature that costs least to drop gives way to
        the best other one, if that lowers the objective. Models of successive sizes are then not
        nested; the path stores each round's features.
    backward : int, default=0
        Go that many features further than asked, then drop features one at a time, always the one
        that costs least, refitting the others, and keep the better model of each size. Such a path
        cannot be continued by ``warm_start``.
    tune : int, default=0
        Sweeps at the end that adjust the chosen features themselves, together with all weights,
        where these have something to adjust: the templates of :class:`~mixnorm.pools.Patches`. Only
        the model of the size asked for is tuned. It fits the training data far better, which pays
        where they are many, deformed copies included, and overfits where they are few.
    atoms_per_round : int, default=1
        Features chosen from one scan of the pool. They still come in one by one, and the path still
        has a model for every number of features; only choosing is quicker, and less careful.
    pool : pool object, optional
        Where columns come from; None takes :class:`~mixnorm.pools.Columns`. ``Columns(groups=...)``
        chooses groups of columns together.
    max_inputs : int, optional
        Most columns of ``X`` that all chosen features together may read. That differs from their
        number where the pool makes features of columns.
    rounds_per_input : int, default=1
        Features chosen before one more column of ``X`` may be read, as long as others help. A
        larger number makes the most of each column before the next is chosen: the best model that
        reads ten columns has them come in slowly, while the best small model does not.
    cost_budget : float, optional
        Most that all chosen features together may cost, by the prices of the pool
        (``Columns(costs=...)``); features are chosen by gain per price.
    fit_intercept : bool, default=True
        Fit an intercept, which is not penalised and does not count as a feature.
    scale : {"std", "max"} or bool, default="std"
        The unit of each column, for choosing and for the penalty: its standard deviation
        (``"std"``, also True; the mean does not matter, as there is an intercept), its largest
        magnitude (``"max"``, the paper's), or none (False). Stumps, boxes, pieces and patches keep
        their range. ``coef_`` is for the columns as given.
    tol : float, default=1e-4
        The last round ends when about ``tol`` times the objective is left to gain; earlier rounds
        at twenty times that.
    max_iter : int, default=500
        Most iterations of one corrective step.
    warm_start : bool, default=False
        Continue the path of the previous ``fit`` instead of starting anew.
    random_state : int, RandomState instance or None, default=None
        For pools that draw at random; choosing columns does not.

    Attributes
    ----------
    selected_ : ndarray of shape (n_selected,)
        The chosen columns, in the order in which they were chosen.
    path_ : dict of ndarray
        One row per round: ``"feature"`` (the column chosen, or its group's label), ``"loss"`` (the
        weighted mean training loss), ``"gradient"`` (the l1 norm of the chosen column's gradient
        before the round) and ``"seconds"``. ``pandas.DataFrame(model.path_)`` works. For a model
        that ``backward`` found, ``"feature"`` is the one that the next smaller model lacks (the
        last of its features, if it lacks several).
    alpha_ : ndarray of shape (n_rounds,)
        The weight of the penalty in the model of each size.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Weights, zero for columns not chosen.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercept.
    atoms_ : list
        What the model is made of, in the order of its weights, named as in ``path_``. That differs
        from the features of ``path_`` where some were replaced, dropped or tuned.
    pool_ : pool object
        The pool, with what it has learned from the data: the templates of patches, say.
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
    arrays of float32, float64 or small integers are used as they are, without a copy; files mapped
    with ``numpy.memmap`` are read in blocks; sparse matrices are never made dense, but for patches.
    From 16,384 rows on, second derivatives are estimated on 8,192 of them, so that the order of the
    rows then matters a little.
    With two classes the weights of the two are opposite, and ``coef_`` is their difference. A
    keyboard interrupt after the first round keeps the rounds done, with a warning.

    Within ``sklearn.config_context(array_api_dispatch=True)``, arrays of other libraries (tensors
    of torch, on a GPU say) are computed with where they are: arrays among the attributes and what
    the methods return are in the namespace and on the device of ``X``, except labels that are
    texts. The weights are kept on the host too: a fitted model takes new data from anywhere, and
    pickles and model files hold NumPy arrays alone. Of the pools, those with a true ``array_api``
    take such arrays, :class:`~mixnorm.pools.Columns` among them.

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

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose features and fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Class labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        self
            The fitted classifier.
        """
        self._check_parameters()
        with all_or_nothing(self):
            X, pool = self._training_table(X)
            X, y, labels = self._check_training(X, y)
            return self._fit(X, y, labels, self.classes_.shape[0], sample_weight, pool=pool)

    def _check_training(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        """Validate, and encode the labels as ``0 .. k-1``."""
        check_within_reach(y, "y")
        check_one_kind_of_label(y)
        X, y = validate_data(self, X, y, accept_sparse=("csr", "csc"), dtype="numeric")
        check_classification_targets(y)
        classes, labels = encoded(y, X)
        if classes.shape[0] < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes, but y holds only one "
                f"class: {classes[0]!r}."
            )
        known = getattr(self, "classes_", classes)
        if self._begun() is not None and not np.array_equal(to_numpy(known), to_numpy(classes)):
            raise ValueError(
                "warm_start=True continues a path, but y has other classes than the last fit: "
                f"{classes!r} instead of {known!r}. Set warm_start=False to start anew."
            )
        self.classes_ = classes
        return X, y, labels

    def _loss(self) -> Any:
        known = {"margin": MarginSoftmax, "logistic": MultinomialLogistic}
        return check_loss(self.loss or "margin", known, classifier=True)

    def _scores_out(self, weights: np.ndarray, intercept: np.ndarray) -> tuple[Any, Any]:
        if intercept.shape[0] == 2:
            return (weights[:, 1] - weights[:, 0])[None, :], intercept[1:] - intercept[:1]
        return np.ascontiguousarray(weights.T), np.asarray(intercept)

    def _predict_scores(self, scores: Any) -> Any:
        if is_numpy(scores):
            scores = even_ties(scores, np.max(np.abs(scores), axis=1))
        return labels_at(self.classes_, self._fitted_loss.predict(scores))

    def decision_function(self, X: Any) -> Any:
        """Return the scores of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            With two classes, positive means ``classes_[1]``.
        """
        return self._decisions(self._scores(X))

    def staged_decision_function(self, X: Any) -> Iterator[Any]:
        """Yield what ``decision_function`` returns with 1, 2, ... features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data.

        Yields
        ------
        ndarray
            As ``truncate(m).decision_function(X)``, for each ``m`` in turn.
        """
        for scores in self._staged_scores(X):
            yield self._decisions(scores)

    def predict_proba(self, X: Any) -> Any:
        """Return class probabilities.

        For the margin loss these are the probabilities for which the scores minimise the expected
        loss (see the maths pages); for the logistic loss, the soft-max of the scores.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to one, columns in the order of ``classes_``.
        """
        scores = self._scores(X)
        return self._fitted_loss.proba(scores)

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithm of the class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        probabilities = self.predict_proba(X)
        if not is_numpy(probabilities):
            return namespace(probabilities).log(probabilities)
        with np.errstate(divide="ignore"):
            return np.log(probabilities)

    @staticmethod
    def _decisions(scores: Any) -> Any:
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


class ShareBoostRegressor(RegressorMixin, BaseShareBoost):
    r"""Regressor for one or many outputs that uses few features, shared by all outputs.

    Simultaneous orthogonal matching pursuit: features are chosen one at a time and all weights
    refitted after each choice. The model after each round minimises

    .. math:: \tfrac12 \sum_i w_i \|W x_i + b - y_i\|_2^2 + \alpha\, \Omega(W)

    over the chosen columns of :math:`W`, with weights :math:`w_i` that sum to one, features in
    standard units, a penalty :math:`\Omega` (:math:`\|W\|_F^2` by default), and a free intercept
    :math:`b`. What is chosen and predicted does not depend on the units and origins of columns.

    Parameters
    ----------
    n_features_to_select : int, optional
        Number of features of the final model (of groups, if the pool has groups). None chooses 20,
        or all if there are fewer; with ``cost_budget``, as many as that allows.
    alpha : float or "auto", default="auto"
        Weight of the penalty, in the coordinates of the scaled features, or found for each size, as
        in :class:`ShareBoostClassifier`.
    penalty : {"ridge", "linf,1", "l1"} or penalty object, default="ridge"
        What large weights cost, as in :class:`ShareBoostClassifier`. The smoothing of ``"linf,1"``
        counts in units of the largest deviation of the targets from their mean.
    loss : {"squared"} or loss object, optional
        The loss; None takes the squared one.
    rule : {"joint", "l1", "l2", "line", "column", "exact"}, default="joint"
        How the next feature is chosen, as in :class:`ShareBoostClassifier`.
    swaps, backward, tune : int, default=0
        Replacement steps after each round, features dropped again after the last, and sweeps that
        adjust the features themselves, as in :class:`ShareBoostClassifier`.
    atoms_per_round : int, default=1
        Features chosen from one scan of the pool.
    pool : pool object, optional
        Where columns come from; None takes :class:`~mixnorm.pools.Columns`.
    max_inputs : int, optional
        Most columns of ``X`` that all chosen features together may read.
    rounds_per_input : int, default=1
        Features chosen before one more column of ``X`` may be read, as long as others help.
    cost_budget : float, optional
        Most that all chosen features together may cost, as in :class:`ShareBoostClassifier`.
    fit_intercept : bool, default=True
        Fit an intercept, which is not penalised and does not count as a feature.
    scale : {"std", "max"} or bool, default="std"
        The unit of each column, for choosing and for the penalty: its standard deviation
        (``"std"``, also True; the mean does not matter, as there is an intercept), its largest
        magnitude (``"max"``, the paper's), or none (False). Stumps, boxes, pieces and patches keep
        their range. ``coef_`` is for the columns as given.
    tol : float, default=1e-4
        The last round ends when about ``tol`` times the objective is left to gain. (With the
        squared loss one iteration solves a round, so that this hardly matters.)
    max_iter : int, default=500
        Most iterations of one corrective step.
    warm_start : bool, default=False
        Continue the path of the previous ``fit`` instead of starting anew.
    random_state : int, RandomState instance or None, default=None
        For pools that draw at random; choosing columns does not.

    Attributes
    ----------
    selected_ : ndarray of shape (n_selected,)
        The chosen columns, in the order in which they were chosen.
    path_ : dict of ndarray
        One row per round: ``"feature"``, ``"loss"``, ``"gradient"`` and ``"seconds"``, as in
        :class:`ShareBoostClassifier`.
    alpha_ : ndarray of shape (n_rounds,)
        The weight of the penalty in the model of each size.
    coef_ : ndarray of shape (n_outputs, n_features), or (n_features,) for a one-dimensional ``y``
        Weights, zero for columns not chosen.
    intercept_ : ndarray of shape (n_outputs,), or float
        Intercept.
    atoms_ : list
        What the model is made of, in the order of its weights, named as in ``path_``. That differs
        from the features of ``path_`` where some were replaced, dropped or tuned.
    pool_ : pool object
        The pool, with what it has learned from the data: the templates of patches, say.
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
    Outputs on very different scales should be scaled alike: the choice of a feature adds up over
    outputs. Arrays of other libraries are taken as by :class:`ShareBoostClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from mixnorm import ShareBoostRegressor
    >>> X, Y = make_regression(n_features=50, n_informative=5, n_targets=3, random_state=0)
    >>> model = ShareBoostRegressor(n_features_to_select=5).fit(X, Y)
    >>> bool(model.score(X, Y) > 0.99)
    True
    """

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose features and fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        self
            The fitted regressor.
        """
        self._check_parameters()
        with all_or_nothing(self):
            X, pool = self._training_table(X)
            X, y = self._check_training(X, y)
            return self._fit(X, y, *self._targets(X, y, sample_weight), sample_weight, pool=pool)

    def _targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, int]:
        """Centre the targets and divide them by one unit, which keeps float32 accurate.

        Both are undone in every attribute: with a free intercept and one unit for all outputs the
        problem is the same.
        """
        weight = check_weights(sample_weight, y.shape[0], y.dtype, like=y)
        xp, targets = namespace(y), y if y.ndim == 2 else y[:, None]
        # Rows of weight zero may hold anything, also what would overflow.
        counted = xp.where(weight[:, None] > 0, targets, xp.zeros_like(targets))
        sizes = to_numpy(xp.max(xp.abs(counted), axis=0))
        check_sizes(sizes, "float32" if "32" in str(working_dtype(X)) else "float64")
        if self._begun() is None:  # a path goes on in the units in which it began
            centre = weight @ counted
            self._centre = centre if self.fit_intercept else xp.zeros_like(centre)
        centre = self._centre = follow(self._centre, y)
        deviations = xp.where(weight[:, None] > 0, targets, centre) - centre
        spread = to_numpy(xp.max(xp.abs(deviations), axis=0))
        check_alike(spread, sizes)
        if self._begun() is None:
            self._unit = float(np.max(spread)) or 1.0
        return deviations / self._unit, targets.shape[1]

    def _check_training(self, X: Any, y: Any) -> tuple[Any, Any]:
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
        known, outputs = self._begun(), 1 if y.ndim == 1 else y.shape[1]
        if known is not None and known.null_intercept.shape[0] != outputs:
            raise ValueError(
                f"warm_start=True continues a path of {known.null_intercept.shape[0]} outputs, but "
                f"y has {outputs}. Set warm_start=False to start anew."
            )
        self._single = y.ndim == 1
        return X, y

    def _loss(self) -> Any:
        return check_loss(self.loss or "squared", {"squared": Squared}, classifier=False)

    def _scores_out(self, weights: np.ndarray, intercept: np.ndarray) -> tuple[Any, Any]:
        if self._single:
            return weights[:, 0], float(intercept[0])
        return np.ascontiguousarray(weights.T), np.asarray(intercept)

    def _predict_scores(self, scores: Any) -> Any:
        check_is_fitted(self)
        return scores[:, 0] if self._single else scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
