"""Online regression under a norm."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm.engines import mirror
from mixnorm.estimators._common.parameters import Loss, Norm
from mixnorm.estimators._common.regressor import RegressorMixin
from mixnorm.estimators.online.descent import MirrorDescent
from mixnorm.estimators.online.names import Row, as_rows
from mixnorm.estimators.online.state import OnlineTargets
from mixnorm.losses import SCALAR, as_loss

#: Losses of one score with numbers as targets.
REGRESSION = {name: kind for name, kind in SCALAR.items() if not kind.is_binary}


@dataclass(eq=False, repr=False)
class MirrorDescentRegressor(RegressorMixin, MirrorDescent):
    r"""Online regression under a norm, by mirror descent.

    Parameters
    ----------
    norm : {"l2,2", "l2,1", "l1,1", "trace"} or Norm, default="l2,2"
        The norm in which weights are small.
    loss : {"squared", "absolute", "huber", "epsilon_insensitive"} or loss, default="squared"
        The loss of each target.
    radius : float, optional
        Largest norm that the weights may have.
    learning_rate : {"auto", "feature", "adaptive", "anytime", "fixed"}, default="auto"
        As in :class:`MirrorDescentClassifier`. With ``"feature"`` steps are also in units of the
        largest target seen. With ``scale=True`` targets are measured from their running mean, and
        the first target has no loss.
    eta0 : float, optional
        The step size. By default it is ``radius`` or 10 for ``"adaptive"``, and 1 for the other
        rules. For ``"adaptive"`` it is about the size of the weights, in units of the targets: give
        a larger one for large targets.
    fit_intercept : bool, default=True
        Whether the model has intercepts.
    scale : bool, default=True
        Whether features are measured in running units, and those of dense rows from running means.
        What is learned then does not depend on units and origins. The origin stays zero for sparse
        rows, and for all rows with ``fit_intercept=False``. If rows are dicts, the numbers of the
        first row are measured from their means as long as half of the rows have them, except with
        the norm ``"trace"`` or with blocks of features.
    average : bool, default=False
        Whether predictions use the average of the weights so far. This does not change what is
        learned, and mistakes and losses are those of the weights themselves.
    shuffle : bool, default=True
        Whether ``fit`` goes through the rows in a random order. ``partial_fit`` keeps their order.
    random_state : int, RandomState instance or None, default=None
        The source of the random order.
    block_size : int, default=1
        Number of rows predicted with the same weights, for norms whose weights are costly to
        compute.
    hash_features : int, optional
        Number of columns into which the names in dicts are hashed. By default every name has a
        column of its own.

    Attributes
    ----------
    coef_, intercept_ : ndarrays of shapes (n_targets, n_features) and (n_targets,)
        The weights, in the units of the rows. For one target, an array of shape ``(n_features,)``
        and a number.
    loss_, n_rounds_, n_updates_ : float, int, int
        The sum of the losses of all rows, each before it was learned from; the number of rows seen;
        and the number of rows that changed the weights.
    curve_ : dict of arrays
        Cumulative ``loss`` after ``rounds``.
    n_iter_ : int
        Passes over the rows: one. ``n_rounds_`` counts the rows.
    n_features_in_ : int
        Number of features seen.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where all are strings.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm import MirrorDescentRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 10))
    >>> y = 3 * X[:, 0] - 2 * X[:, 1] + 5
    >>> model = MirrorDescentRegressor().fit(X, y)
    >>> bool(model.score(X, y) > 0.99)
    True
    """

    norm: Norm = "l2,2"
    loss: Loss = "squared"
    _: KW_ONLY

    def _losses(self, targets: OnlineTargets) -> list[Any]:
        loss = as_loss(self.loss, REGRESSION)
        if loss.is_classifier or loss.is_binary:
            raise ValueError(
                f"loss={loss!r} is a loss on classes; choose one of {sorted(REGRESSION)}."
            )
        return [loss]

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
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Their targets; NaN if a target is unknown. A table of blocks has its own.
        sample_weight : array of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, None)

    def partial_fit(
        self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from rows in the given order; each is predicted first, then learned from.

        Parameters are those of :meth:`fit`.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, sample_weight, None)

    def _check_targets(self, y: ArrayLike | None) -> np.ndarray:
        found = super()._check_targets(y)
        # The first known target sets the unit and the origin of all others.
        if self._resume is None and np.all(np.isnan(found)):
            raise ValueError("Input y contains NaN only; give the targets that are known.")
        return found

    def _encode(self, y: np.ndarray, X: mirror.Rows, role: ArrayLike | None) -> OnlineTargets:
        state, values = self._resume, y.reshape(len(y), -1)
        known = values.shape[1] if state is None else state.stored.n_outputs
        if values.shape[1] != known:
            raise ValueError(
                f"y has {values.shape[1]} columns, and had {known} before; give the same targets."
            )
        # The shape of the first targets decides that of all predictions.
        single = y.ndim == 1 if state is None else state.single
        nothing = np.empty(0, dtype=np.int64)
        return OnlineTargets(nothing, np.ascontiguousarray(values), single=single)

    def learn_one(self, x: Row, y: float | np.ndarray) -> None:
        """Learn from one row, an array of shape (n_features,) or a dict, and its target."""
        self._learn_one(x, y)

    def _place_target(self, target: np.ndarray, y: Any, *task: Any) -> int | None:
        state = self._state()
        if state.single:
            plain = isinstance(y, (float, int)) and -math.inf < y < math.inf
        else:
            shape = (state.stored.n_outputs,)
            plain = isinstance(y, np.ndarray) and y.shape == shape and bool(np.all(np.isfinite(y)))
        if not plain:
            return None
        target[0] = y
        return 0

    def predict_one(self, x: Row) -> Any:
        """Return the prediction for one row; None before the first row was learned from."""
        state = self._resume
        if state is None:
            return None
        workspace = self._workspace(x)
        if workspace is not None and not state.stored.plan.averaged:
            scores = workspace.scores()
            # NaN comes from a row that the fast way did not check.
            if not math.isnan(scores[0]):  # else `predict` raises the error
                return float(scores[0]) if state.single else scores.copy()
        found = self.predict(as_rows(x))[0]
        return float(found) if state.single else found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
