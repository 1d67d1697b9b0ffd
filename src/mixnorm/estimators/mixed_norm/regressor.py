"""Regression under a norm, stopped by a duality gap."""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm.data import BlockMatrix, OutputFacts, gather_numbers, gather_weights
from mixnorm.engines.proximal import SharedDesign, Solution
from mixnorm.estimators._common.inputs import check_number_targets, check_weights
from mixnorm.estimators._common.parameters import Loss, Switch
from mixnorm.estimators._common.regressor import RegressorMixin
from mixnorm.estimators._common.units import target_frame
from mixnorm.estimators.mixed_norm.base import (
    Penalty,
    Radius,
    check_dual_loss,
    drop_unweighted_rows,
)
from mixnorm.estimators.mixed_norm.classifier import OneDesign
from mixnorm.estimators.mixed_norm.tables import (
    compress_training,
    is_compressible,
    survey_numbers,
)
from mixnorm.estimators.mixed_norm.training import Training
from mixnorm.losses import SCALAR, Squared, as_loss
from mixnorm.models import LinearModel, NumberOutputs

_REGRESSION = {name: SCALAR[name] for name in SCALAR if not SCALAR[name]().is_binary}


class NormRegressor(RegressorMixin, OneDesign):
    """The regressors, except for their parameters."""

    def _loss(self) -> Any:
        loss = check_dual_loss(as_loss(self.loss, _REGRESSION), _REGRESSION)
        if loss.is_classifier or loss.is_binary:
            raise ValueError(
                f"loss={loss!r} is not a regression loss; choose one of {sorted(_REGRESSION)}."
            )
        return loss

    def _validate(self, X: MatrixLike, y: ArrayLike, **options: bool) -> tuple[Any, Any]:
        check_number_targets(y)
        X, y = super()._validate(X, y, multi_output=True, y_numeric=True, **options)
        return X, np.asarray(y, dtype=np.float64)

    def _prepare(
        self, X: Any, y: np.ndarray, sample_weight: ArrayLike | None
    ) -> tuple[Training, NumberOutputs]:
        loss = self._loss()
        weight = check_weights(sample_weight, X.shape[0], np.float64)
        single = y.ndim == 1
        weight, X, y = drop_unweighted_rows(weight, X, y.reshape(X.shape[0], -1))
        n_outputs, intercept = y.shape[1], bool(self.fit_intercept)
        # Targets are centred and divided by their spread, which the solution allows for in the end.
        frame = target_frame([loss] * n_outputs, y, weight, fit_intercept=intercept, dtype=X.dtype)
        # Rows without weight, which tables of blocks keep, may hold anything.
        y = np.where((weight > 0.0)[:, None], y, frame.centre)
        # The model is in the units of the targets.
        outputs = NumberOutputs(single, 1.0, np.zeros(n_outputs), copy.deepcopy(loss))
        loss = frame.scale_loss(loss)
        X, units = self._columns(X, weight)
        weight = weight.astype(X.dtype, copy=False)
        target = loss.encode((y - frame.centre) / frame.unit, n_outputs, weight)
        training = Training(SharedDesign(X, n_outputs), loss, target, weight, frame, **units)
        return training, outputs

    def _prepare_table(self, matrix: BlockMatrix) -> tuple[Training, NumberOutputs]:
        table, loss = matrix.table, self._loss()
        if type(loss) is not Squared or not is_compressible(table):
            return self._prepare(matrix, gather_numbers(table), gather_weights(table))
        # The squared loss needs the table no more once its moments are known.
        found = survey_numbers(table, matrix.dtype)
        facts: OutputFacts = found.target
        n_outputs = facts.n_outputs
        training = compress_training(
            table, found, standardize=bool(self.standardize), centred=bool(self.fit_intercept)
        )
        kept = copy.deepcopy(loss)
        return training, NumberOutputs(facts.single, 1.0, np.zeros(n_outputs), kept)

    def _model(self, found: Solution, outputs: Any) -> LinearModel:
        model = super()._model(found, outputs)
        if not outputs.single:
            return model
        # A single intercept has double precision, and so have the predictions.
        return replace(model, intercept=model.intercept.astype(np.float64))


@dataclass(eq=False, repr=False)
class MixedNormRegressor(NormRegressor):
    r"""Linear regressor for one or many outputs under a matrix norm.

    Minimises, with one column of weights per output,

    .. math:: \sum_i w_i \sum_r \ell(\langle W_r, x_i\rangle + b_r, y_{ir}) + \alpha\, \|W\|

    with sample weights :math:`w_i` that sum to one and a free intercept :math:`b`; or, where
    ``radius`` is given, the loss alone over :math:`\|W\| \le` ``radius``
    (:eq:`penalty-and-ball`). With the squared loss
    and the norm ``"l2,1"`` this is scikit-learn's ``MultiTaskLasso`` with the same ``alpha``.

    Parameters
    ----------
    norm : {"l1,1", "l2,1", "l2,2", "linf,1", "trace"} or norm object, default="l2,1"
        The norm, by name or as an object of :mod:`mixnorm.norms`.
    alpha : float, default=1.0
        Weight of the norm beside the weighted mean loss, for the weights of the columns as given:
        it is in units of the columns, unless ``standardize=True``. Not used where ``radius`` is
        given.
    radius : float, optional
        Largest norm. It replaces the penalty: ``alpha`` is then not used.
    loss : str or loss object, default="squared"
        The loss of one score and its target: ``"squared"``, ``"absolute"``, ``"huber"``,
        ``"epsilon_insensitive"``, or an object of :mod:`mixnorm.losses`. The squared one is half
        the squared difference.
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
    coef_ : ndarray of shape (n_outputs, n_features), or (n_features,) for a one-dimensional ``y``
        Weights.
    intercept_ : ndarray of shape (n_outputs,), or float
        Intercept.
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
        The norm of the weights; with ``standardize=True`` in standard units.
    n_iter_ : int
        Iterations.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where all are strings.

    See Also
    --------
    MixedNormRegressorCV : Chooses ``alpha`` by cross-validation.
    ShareBoostRegressor : Chooses a given number of features greedily.

    Notes
    -----
    The cost, the dtypes and the scale of the columns are as in :class:`MixedNormClassifier`.
    Outputs add up, so that outputs on very different scales should be scaled alike. Huge and tiny
    targets are fitted like others; ``objective_`` and ``dual_gap_`` are then infinite, or zero,
    where squares are beyond the numbers.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from mixnorm import MixedNormRegressor
    >>> X, Y = make_regression(n_features=50, n_informative=5, n_targets=3, random_state=0)
    >>> model = MixedNormRegressor("l2,1", alpha=10.0).fit(X, Y)
    >>> len(model.support_), bool(model.score(X, Y) > 0.9)
    (5, True)
    """

    alpha: Penalty = 1.0
    _: KW_ONLY
    radius: Radius = None
    loss: Loss = "squared"
    warm_start: Switch = False
