"""Online classifiers: perceptrons and mirror descent on class labels."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Self

import numpy as np
from sklearn.utils.validation import column_or_1d

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm.engines import mirror
from mixnorm.estimators._common.classifier import ClassifierFace
from mixnorm.estimators._common.inputs import check_dense_targets, check_one_kind_of_label
from mixnorm.estimators._common.parameters import Loss, Norm, Number, Seed, Switch
from mixnorm.estimators._common.validation import check_classification_targets
from mixnorm.estimators.online.base import OnlineEstimator, as_rows, place_labels
from mixnorm.estimators.online.descent import HashedColumns, MirrorDescent
from mixnorm.estimators.online.names import Row
from mixnorm.estimators.online.state import OnlineTargets
from mixnorm.losses import JOINT, as_loss


class OnlineClassifier(ClassifierFace, OnlineEstimator):
    """A classifier that learns from rows as they come; new classes may appear at any time."""

    _target_dtype = None

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget what was learned, and learn from the rows, once each.

        ``shuffle`` says whether they come in a random order.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or list of dicts
            The rows.
        y : array of shape (n_samples,)
            Their classes.
        sample_weight : array of shape (n_samples,), optional
            How many times each row counts.

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
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from rows in their order: each is predicted first, then learned from.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or list of dicts
            The rows. A dict has values by names, and new names become new features.
        y : array of shape (n_samples,)
            Their classes; unseen ones are added to ``classes_``.
        classes : array, optional
            All classes that are known of, in the first call.
        sample_weight : array of shape (n_samples,), optional
            How many times each row counts.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, sample_weight, classes)

    def _check_targets(self, y: ArrayLike) -> np.ndarray:
        check_dense_targets(y)
        check_one_kind_of_label(y)
        return y if type(y) is np.ndarray and y.ndim == 1 else column_or_1d(y, warn=True)

    def _encode(self, y: np.ndarray, X: mirror.Rows, role: ArrayLike | None) -> OnlineTargets:
        """Return places in ``classes_``, to which unseen labels are added."""
        state = self._resume
        if state is None:
            check_classification_targets(y)
        if state is None:
            known, places = np.unique(y if role is None else np.asarray(role)), None
        else:
            known, places = np.asarray(state.labels), state.places
            if role is not None:
                known, places = place_labels(np.asarray(role), known, places)[1], None
        places = places or {label: place for place, label in enumerate(known.tolist())}
        count = len(known)
        rows, known = place_labels(y, known, places)
        if len(known) > count:
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
        return self._state().places.get(y)

    def predict_one(self, x: Row) -> Any:
        """Return the class of one row; None before the first row was learned from."""
        state = self._resume
        if state is None or state.labels is None:
            return None
        workspace = self._workspace(x)
        if workspace is not None and not state.stored.plan.averaged:
            scores = workspace.scores()
            best = int(np.argmax(scores))
            if scores[best] == scores[best]:  # else `predict` raises the error
                return state.labels.item(best)
        return self.predict(as_rows(x)).item(0)

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Return the class with the largest score of each row; of equal ones the first."""
        best = np.argmax(self._scores(X), axis=1)
        return np.asarray(np.asarray(self._state().labels)[best])


@dataclass(eq=False, repr=False)
class GroupPerceptron(OnlineClassifier):
    r"""The multi-class perceptron whose weights are few shared features.

    It predicts the class with the largest score. After a mistake the row is added to what the right
    class has gathered, and taken off that of the wrong one; the weights are a mirror map of what
    was gathered, :math:`w_j = v_j \|v_j\|_2^{p - 2}` for the column of each feature, by which
    features that help many classes count most.

    Parameters
    ----------
    norm : {"l2,1", "l2,2", "l1,1"} or Norm, default="l2,1"
        The norm: ``"l2,1"`` for few features shared by the classes, ``"l2,2"`` for the plain
        perceptron, ``"l1,1"`` for few weights.
    fit_intercept : bool, default=False
        Have a column of ones. With ``scale=True`` there always is one.
    scale : bool, default=False
        Measure features from running means in running units, as raw tables need it. By default
        rows are taken as they are: the bound on the mistakes rests on that.
    average : bool, default=False
        Predict by the average of the weights so far. It does not change what is learned, and
        mistakes and losses are those of the weights themselves.
    shuffle : bool, default=True
        Let ``fit`` go through the rows in a random order. ``partial_fit`` keeps their order.
    random_state : int, RandomState instance or None, default=None
        Where that order comes from.
    hash_features : int, optional
        Columns into which the names of dict rows are hashed; by default every name gets its own.

    Attributes
    ----------
    coef_, intercept_ : ndarrays of shapes (n_classes, n_features) and (n_classes,)
        The weights, up to a positive factor.
    classes_ : ndarray of shape (n_classes,)
        Labels, those of the first call in order, later ones as they came.
    mistakes_, loss_, n_rounds_, n_updates_ : int, float, int, int
        Rows predicted wrong before they were learned from (for a perceptron that is its loss),
        rows seen, and rows that changed the weights.
    curve_ : dict of arrays
        ``mistakes`` and ``loss`` after so many ``rounds``.
    n_features_in_ : int
        Number of columns seen.

    See Also
    --------
    MirrorDescentClassifier : Other losses and step sizes; makes fewer mistakes.

    Notes
    -----
    A row costs its entries that are not zero, times the classes. Step sizes would not change a
    prediction, so there are none.

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

    The weights are the mirror map of minus the sum of gradients so far, times a step size. With the
    defaults every feature has a step size of its own, from the gradients that it has seen, and is
    measured from its running mean in running units: rows may be raw.

    Parameters
    ----------
    norm : {"l2,2", "l2,1", "l1,1", "trace"} or Norm, default="l2,2"
        The norm, in which weights are small: ``"l2,1"`` for few shared features, ``"l1,1"`` for few
        weights, ``"trace"`` for few directions. The strongly convex norm that stands in for it
        (``surrogate``) is used, for the shape that the weights have.
    loss : {"logistic", "margin", "hinge"} or loss, default="logistic"
        Multinomial logistic, the soft-max with a margin of one, or Crammer and Singer's hinge.
    radius : float, optional
        Largest norm of the weights.
    learning_rate : {"auto", "feature", "adaptive", "anytime", "fixed"}, default="auto"
        ``"feature"``: a step size for each feature; norm ``"l2,2"`` only. ``"adaptive"``: one for
        all, ``eta0 * sqrt(beta / sum |v|^2)`` of the gradients seen. ``"anytime"``:
        ``eta0 / sqrt(t)``. ``"fixed"``: ``eta0``. ``"auto"`` is the first where it is allowed, else
        the second.
    eta0 : float, optional
        The step size. By default 5 for ``"feature"`` (about the most that a score moves in the
        first step), ``radius`` or 10 for ``"adaptive"`` (the norm of the weights that are to be
        competed with), 1 for the others.
    fit_intercept : bool, default=True
        Have a column of ones.
    scale : bool, default=True
        Measure features in running units, and those of dense rows from running means: what is
        learned does not depend on units and origins. Sparse rows keep zero as their origin, and so
        do all rows with ``fit_intercept=False``. In rows that are dicts, the numbers of the first
        row are measured from their means, as long as half of the rows have them; not so with the
        norm ``"trace"`` or with blocks of features.
    average : bool, default=False
        Predict by the average of the weights so far. It does not change what is learned, and
        mistakes and losses are those of the weights themselves.
    conservative : float, default=0.01
        Derivatives of the loss in a score are taken as zero if they are not larger than this. For
        the logistic loss they are the probabilities that were given to wrong classes: rows that
        are predicted well are not learned from.
    shuffle : bool, default=True
        Let ``fit`` go through the rows in a random order. ``partial_fit`` keeps their order.
    random_state : int, RandomState instance or None, default=None
        Where that order comes from.
    block_size : int, default=1
        Rows that are predicted by the same weights, for norms whose weights are dear to compute:
        the trace norm, and block norms.
    hash_features : int, optional
        Columns into which the names of dict rows are hashed; by default every name gets its own.

    Attributes
    ----------
    coef_, intercept_ : ndarrays of shapes (n_classes, n_features) and (n_classes,)
        The weights, for rows as they were given.
    classes_ : ndarray of shape (n_classes,)
        Labels, those of the first call in order, later ones as they came.
    mistakes_, loss_, n_rounds_, n_updates_ : int, float, int, int
        Rows predicted wrong before they were learned from, the sum of their losses, rows seen, and
        rows that changed the weights.
    curve_ : dict of arrays
        ``mistakes`` and ``loss`` after so many ``rounds``.
    n_features_in_ : int
        Number of columns seen.

    See Also
    --------
    GroupPerceptron : No step sizes, and a bound on its mistakes.
    MixedNormClassifier : The same norms on all rows together, with a duality gap.

    Notes
    -----
    A row is predicted first, by means and units known before it. When means move, the intercept
    moves with them, so that the model stays the same function; so do weights when units grow,
    unless a value lies more than half again as far out as any before it. Steps grow to their full
    size in the first 30 rows or so, while units are not well known.

    A row of weight two is learned from twice, and one of weight 2.5 in three equal parts: as if it
    stood there so often. One of more than 64 is learned from 64 times, and counts in full for the
    means. Each is predicted once for the mistakes.

    With ``scale=False``, ``conservative=0`` and a rule other than ``"feature"``, ``regret(W)`` is
    at most ``regret_bound(W)`` on any rows, for all ``W`` in the ball. With ``scale=True`` there is
    no bound: an error says so.

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
    conservative: Annotated[float, Number(least=0, below=1)] = 0.01

    def _loss(self) -> Any:
        known = {name: kind for name, kind in JOINT.items() if kind.row_code is not None}
        loss = as_loss(self.loss, known)
        if not loss.is_classifier:
            raise ValueError(
                f"loss={loss!r} is not a loss on labels; choose one of {sorted(known)}."
            )
        return loss

    def _losses(self, targets: OnlineTargets) -> list[Any]:
        return [self._loss()] if self._resume is None else []
