"""Online classifiers: perceptrons and mirror descent on class labels."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Self

import numpy as np
from sklearn.utils.validation import column_or_1d

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm.engines import mirror
from mixnorm.estimators._common.blocks.parts import map_parts
from mixnorm.estimators._common.blocks.tables import require_y
from mixnorm.estimators._common.classifier import ClassifierFace
from mixnorm.estimators._common.inputs import check_dense_targets, check_one_kind_of_label
from mixnorm.estimators._common.parameters import ClassWeight, Loss, Norm, Number, Seed, Switch
from mixnorm.estimators._common.validation import check_classification_targets
from mixnorm.estimators.online.base import OnlineEstimator
from mixnorm.estimators.online.descent import HashedColumns, MirrorDescent
from mixnorm.estimators.online.names import Row, as_rows
from mixnorm.estimators.online.state import OnlineTargets, place_labels
from mixnorm.losses import JOINT, as_loss


class OnlineClassifier(ClassifierFace, OnlineEstimator):
    """A classifier that learns from rows as they come; new classes may appear at any time."""

    _target_dtype = None

    def fit(
        self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Forget what was learned, and learn once from each row.

        The rows come in a random order if ``shuffle`` is set.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), list of dicts, or table
            The rows. A table of row blocks (:func:`mixnorm.data.from_arrays`) or a Dask collection
            need not fit into memory. It is read in order, so set ``shuffle=False``. The weights
            are those of the same rows in memory, to the last bit.
        y : array of shape (n_samples,)
            Their classes; a table of blocks has its own.
        sample_weight : array of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight, None)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes, but y holds only one "
                f"class: {self.classes_[0]!r}. In a stream, use partial_fit."
            )
        return self

    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from rows in the given order; each is predicted first, then learned from.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), list of dicts, or table
            The rows. A dict maps names to values; new names become new features. A table of row
            blocks or a Dask collection is read in order. Its classes are known from its first row
            on, as those of an array are.
        y : array of shape (n_samples,)
            Their classes; new ones are added to ``classes_``. A table of blocks has its own.
        classes : array, optional
            All classes known in advance.
        sample_weight : array of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, sample_weight, classes)

    def _check_targets(self, y: ArrayLike | None) -> np.ndarray:
        y = require_y(self, y)
        check_dense_targets(y)
        check_one_kind_of_label(y)
        return y if type(y) is np.ndarray and y.ndim == 1 else column_or_1d(y, warn=True)

    def _encode(self, y: np.ndarray, X: mirror.Rows, role: ArrayLike | None) -> OnlineTargets:
        """Return places in ``classes_``, to which unseen labels are added."""
        state = self._resume
        if state is None:
            check_classification_targets(y)
        if state is None:
            # With ``classes`` all labels are known, and sorted, before the first row of some comes.
            known, places = np.unique(y if role is None else np.asarray(role)), None
        else:
            known, places = np.asarray(state.labels), state.places
            if role is not None:
                known, places = place_labels(np.asarray(role), known, places)[1], None
        places = places or {label: place for place, label in enumerate(known.tolist())}
        count = len(known)
        rows, known = place_labels(y, known, places)
        if len(known) > count:
            # NaN is not equal to itself, so that every NaN would be a class of its own.
            if np.any(known != known):
                raise ValueError("Input y contains NaN; drop rows whose class is not known.")
            check_classification_targets(y)
        return OnlineTargets(rows, np.empty((len(y), 0)), known)

    def learn_one(self, x: Row, y: Any) -> None:
        """Learn from one row.

        Parameters
        ----------
        x : array of shape (n_features,), or dict
            The row. It is checked in the first call; later arrays of the same length are not.
        y : label
            Its class.
        """
        self._learn_one(x, y)

    def _place_target(self, target: np.ndarray, y: Any, *task: Any) -> int | None:
        # A workspace takes no weight.
        return self._state().places.get(y) if self.class_weight is None else None

    def predict_one(self, x: Row) -> Any:
        """Return the class of one row; None before the first row was learned from."""
        state = self._resume
        if state is None or state.labels is None:
            return None
        workspace = self._workspace(x)
        if workspace is not None and not state.stored.plan.averaged:
            scores = workspace.scores()
            # A score that is NaN is not equal to itself; ``argmax`` finds it first.
            best = int(np.argmax(scores))
            if scores[best] == scores[best]:  # else `predict` raises the error
                return state.labels.item(best)
        return self.predict(as_rows(x)).item(0)

    @map_parts
    def predict(self, X: MatrixLike) -> np.ndarray:
        """Return the class with the largest score of each row; of equal ones the first."""
        best = np.argmax(self._scores(X), axis=1)
        return np.asarray(np.asarray(self._state().labels)[best])


@dataclass(eq=False, repr=False)
class GroupPerceptron(OnlineClassifier):
    r"""The multi-class perceptron whose weights are few shared features.

    It predicts the class with the largest score. After a mistake it adds the row to the sum of the
    right class, and subtracts it from the sum of the predicted class. The weights are a mirror map
    of these sums, :math:`w_j = v_j \|v_j\|_2^{p - 2}` for the column of each feature
    (:eq:`mirror-columns`), so that features that help many classes count most.

    Parameters
    ----------
    norm : {"l2,1", "l2,2", "l1,1"} or Norm, default="l2,1"
        The norm: ``"l2,1"`` for few features shared by the classes, ``"l2,2"`` for the plain
        perceptron, ``"l1,1"`` for few weights.
    fit_intercept : bool, default=False
        Whether the model has intercepts. With ``scale=True`` it always has.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply the sample weights in training; a class that is not
        in the dictionary weighs 1. ``"balanced"`` gives all classes the same total weight. Scores
        do not count them; ``partial_fit`` takes a dictionary alone.
    scale : bool, default=False
        Whether features are measured from running means in running units, which raw tables need. By
        default rows are used as they are, which the bound on the mistakes assumes.
    average : bool, default=False
        Whether predictions use the average of the weights so far. This does not change what is
        learned, and mistakes and losses are those of the weights themselves.
    shuffle : bool, default=True
        Whether ``fit`` goes through the rows in a random order. ``partial_fit`` keeps their order.
    random_state : int, RandomState instance or None, default=None
        The source of the random order.
    hash_features : int, optional
        Number of columns into which the names in dicts are hashed. By default every name has a
        column of its own.

    Attributes
    ----------
    coef_, intercept_ : ndarrays of shapes (n_classes, n_features) and (n_classes,)
        The weights, up to a positive factor.
    classes_ : ndarray of shape (n_classes,)
        The labels: those of the first call, sorted, then later ones in order of arrival.
    mistakes_, loss_, n_rounds_, n_updates_ : int, float, int, int
        Rows predicted wrongly before they were learned from (for a perceptron this is also the
        loss), rows seen, and rows that changed the weights.
    curve_ : dict of arrays
        Cumulative ``mistakes`` and ``loss`` after ``rounds``.
    n_iter_ : int
        Passes over the rows: one. ``n_rounds_`` counts the rows.
    n_features_in_ : int
        Number of features seen.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where all are strings.

    See Also
    --------
    MirrorDescentClassifier : Other losses and step sizes; makes fewer mistakes.

    Notes
    -----
    A row takes time proportional to its entries that are not zero, times the number of classes.
    There are no step sizes, because they would not change a prediction.

    References
    ----------
    S. Kakade, S. Shalev-Shwartz, A. Tewari, "Regularization techniques for learning with
    matrices", JMLR 13, 2012, algorithm 3 and corollary 24.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm import GroupPerceptron
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1.0, 1.0], size=(2000, 200))
    >>> y = (X[:, 0] > 0) + 2 * (X[:, 1] > 0)  # four classes from two of 200 features
    >>> group, plain = GroupPerceptron().fit(X, y), GroupPerceptron("l2,2").fit(X, y)
    >>> group.mistakes_ < plain.mistakes_ / 3
    True
    >>> W = np.zeros((4, 200))
    >>> W[:, :2] = [[-1, -1], [1, -1], [-1, 1], [1, 1]]
    >>> group.mistakes_ <= group.mistake_bound(W)
    True
    """

    norm: Norm = "l2,1"
    _: KW_ONLY
    fit_intercept: Switch = False
    class_weight: ClassWeight = None
    scale: Switch = False
    average: Switch = False
    shuffle: Switch = True
    random_state: Seed = None
    hash_features: HashedColumns = None

    def _has_intercept(self) -> bool:
        return bool(self.fit_intercept or self.scale)

    def _losses(self, targets: OnlineTargets) -> list[Any]:
        return [mirror.PERCEPTRON]

    def mistake_bound(self, W: ArrayLike) -> float:
        r"""Return an upper bound on the mistakes made on the rows seen, given other weights.

        With :math:`a = \|W\| \max \|X\| \sqrt{p - 1}` it is :math:`L + a \sqrt{L} + a^2`, where
        :math:`L` is the loss of ``W`` on the rows predicted wrongly, at most its hinge loss on all
        rows (:eq:`mistakes`).

        Parameters
        ----------
        W : array of the shape of ``coef_``
            Any weights.

        Returns
        -------
        float
            ``mistakes_`` is never larger. With ``scale=True`` there is no bound, and the call
            raises TypeError.
        """
        return self._learner.mistake_bound(self._check_comparator(W))


@dataclass(eq=False, repr=False)
class MirrorDescentClassifier(OnlineClassifier, MirrorDescent):
    r"""Online classification under a norm, by mirror descent.

    The weights are the mirror map of minus the sum of gradients so far, times a step size
    (:eq:`mirror-play`). By default every feature has a step size of its own, which depends on its
    past gradients, and is measured from its running mean in running units, so that raw rows will
    do.

    Parameters
    ----------
    norm : {"l2,2", "l2,1", "l1,1", "trace"} or Norm, default="l2,2"
        The norm in which weights are small: ``"l2,1"`` for few shared features, ``"l1,1"`` for few
        weights, ``"trace"`` for few directions. The learner uses the strongly convex surrogate of
        the norm (its ``surrogate``) for the shape of the weights.
    loss : {"logistic", "margin", "hinge"} or loss, default="logistic"
        Multinomial logistic, the soft-max with a margin of one, or Crammer and Singer's hinge.
    radius : float, optional
        Largest norm that the weights may have.
    learning_rate : {"auto", "feature", "adaptive", "anytime", "fixed"}, default="auto"
        ``"feature"``: a step size for each feature; norm ``"l2,2"`` only. ``"adaptive"``: one for
        all, ``eta0 * sqrt(beta / sum |v|^2)`` of the gradients seen. ``"anytime"``:
        ``eta0 / sqrt(t)``. ``"fixed"``: ``eta0``. ``"auto"`` is ``"feature"`` where it is allowed,
        else ``"adaptive"``.
    eta0 : float, optional
        The step size. By default it is 5 for ``"feature"`` (about the largest change of a score in
        the first step), ``radius`` or 10 for ``"adaptive"`` (the norm of the weights to compete
        with), and 1 for the other rules.
    fit_intercept : bool, default=True
        Whether the model has intercepts.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply the sample weights in training; a class that is not
        in the dictionary weighs 1. ``"balanced"`` gives all classes the same total weight. Scores
        do not count them; ``partial_fit`` takes a dictionary alone.
    scale : bool, default=True
        Whether features are measured in running units, and those of dense rows from running means.
        What is learned then does not depend on units and origins. The origin stays zero for sparse
        rows, and for all rows with ``fit_intercept=False``. If rows are dicts, the numbers of the
        first row are measured from their means as long as half of the rows have them, except with
        the norm ``"trace"`` or with blocks of features.
    average : bool, default=False
        Whether predictions use the average of the weights so far. This does not change what is
        learned, and mistakes and losses are those of the weights themselves.
    conservative : float, default=0.01
        Derivatives of the loss in a score count as zero if they are not larger than this. For the
        logistic loss they are the probabilities of wrong classes: the learner skips rows that it
        predicts well.
    shuffle : bool, default=True
        Whether ``fit`` goes through the rows in a random order. ``partial_fit`` keeps their order.
    random_state : int, RandomState instance or None, default=None
        The source of the random order.
    block_size : int, default=1
        Number of rows predicted with the same weights, for norms whose weights are costly to
        compute: the trace norm and block norms.
    hash_features : int, optional
        Number of columns into which the names in dicts are hashed. By default every name has a
        column of its own.

    Attributes
    ----------
    coef_, intercept_ : ndarrays of shapes (n_classes, n_features) and (n_classes,)
        The weights, in the units of the rows.
    classes_ : ndarray of shape (n_classes,)
        The labels: those of the first call, sorted, then later ones in order of arrival.
    mistakes_, loss_, n_rounds_, n_updates_ : int, float, int, int
        Rows predicted wrongly before they were learned from, the sum of all losses, the number of
        rows seen, and the number of rows that changed the weights.
    curve_ : dict of arrays
        Cumulative ``mistakes`` and ``loss`` after ``rounds``.
    n_iter_ : int
        Passes over the rows: one. ``n_rounds_`` counts the rows.
    n_features_in_ : int
        Number of features seen.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where all are strings.

    See Also
    --------
    GroupPerceptron : No step sizes, and a bound on its mistakes.
    MixedNormClassifier : The same norms on all rows together, with a duality gap.

    Notes
    -----
    Each row is predicted first, with the means and units known before it. When means move, the
    intercept moves with them, so that the model stays the same function. Weights follow growing
    units in the same way, unless a value is more than 1.5 times as far out as all before it. Steps
    grow to their full size in about the first 30 rows, while units are not well known.

    The learner learns twice from a row of weight two, and in three equal parts from a row of weight
    2.5, as if the row were repeated. It learns at most 64 times from one row, whose full weight
    counts for the means. Each row is predicted once for the mistakes.

    With ``scale=False``, ``conservative=0`` and a rule other than ``"feature"``, ``regret(W)`` is
    at most ``regret_bound(W)`` on any rows, for all ``W`` in the ball. With ``scale=True`` there is
    no bound, and both methods raise TypeError.

    References
    ----------
    S. Kakade, S. Shalev-Shwartz, A. Tewari, "Regularization techniques for learning with
    matrices", JMLR 13, 2012, algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mixnorm import MirrorDescentClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MirrorDescentClassifier()
    >>> for start in range(0, len(y), 100):
    ...     _ = model.partial_fit(X[start : start + 100], y[start : start + 100], classes=range(10))
    >>> model.mistakes_ < 0.15 * model.n_rounds_
    True
    """

    _first_rate = 5.0

    norm: Norm = "l2,2"
    loss: Loss = "logistic"
    _: KW_ONLY
    class_weight: ClassWeight = None
    conservative: Annotated[float, Number(least=0, below=1)] = 0.01

    def _loss(self) -> Any:
        # Only losses that the compiled loop knows are named; other loss objects are called row by
        # row.
        known = {name: kind for name, kind in JOINT.items() if kind.row_code is not None}
        loss = as_loss(self.loss, known)
        if not loss.is_classifier:
            raise ValueError(
                f"loss={loss!r} is not a loss on labels; choose one of {sorted(known)}."
            )
        return loss

    def _losses(self, targets: OnlineTargets) -> list[Any]:
        return [self._loss()] if self._resume is None else []
