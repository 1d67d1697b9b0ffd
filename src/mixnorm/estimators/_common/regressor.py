"""The score of regressors, also for huge and tiny targets."""

from __future__ import annotations

import math

import numpy as np
from sklearn import base

from mixnorm._array import ArrayLike, MatrixLike, is_foreign
from mixnorm.estimators._common.blocks.parts import score_parts
from mixnorm.models import NumberOutputs

# Predictions that exceed all targets by more than this factor are cut, so that squares stay finite.
_LARGEST_PREDICTION = 1e50


class RegressorMixin(base.RegressorMixin):
    """scikit-learn's mixin, whose score does not overflow."""

    _output_kind: type = NumberOutputs

    @score_parts
    def score(
        self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return R², the mean over outputs, also if squares of targets overflow.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Test data. It may also be a Dask collection, or a table of row blocks with targets.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            True values; None for a table, which has its own.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        float
        """
        if is_foreign(X):
            return float(super().score(X, y, sample_weight))
        return r2(y, self.predict(X), sample_weight)


def r2(y: ArrayLike | None, found: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Return R², the mean over outputs, computed in units in which no square overflows.

    Examples
    --------
    >>> import numpy as np
    >>> r2(np.array([1e200, 2e200, 3e200]), np.array([1e200, 2e200, 4e200]))
    0.5
    """
    true, found = np.asarray(y, dtype=np.float64), np.asarray(found, np.float64)
    n_rows = true.shape[0] if true.ndim else 0
    weight = np.ones(n_rows) if sample_weight is None else np.asarray(sample_weight, np.float64)
    value = math.nan
    if true.shape == found.shape and n_rows > 1 and weight.shape == (n_rows,) and np.any(weight):
        sizes = np.max(np.abs(true), axis=0)
        # Powers of two, so that the division changes no digit.
        units = np.where(sizes > 0.0, np.ldexp(1.0, np.clip(np.frexp(sizes)[1], -1021, 1023)), 1.0)
        weight = weight / np.max(weight)  # only their shares matter
        with np.errstate(over="ignore"):  # cut in the next line
            found = np.clip(found / units, -_LARGEST_PREDICTION, _LARGEST_PREDICTION)
        true = true / units
        left = weight @ (true - found) ** 2
        whole = weight @ (true - np.average(true, axis=0, weights=weight)) ** 2
        varies = (np.ptp(true, axis=0) > 0.0) & (whole > 0.0)
        # An output that does not vary has the score 1 if it is predicted exactly and 0 otherwise,
        # as in scikit-learn.
        explained = 1.0 - left / np.where(varies, whole, 1.0)
        value = float(np.mean(np.where(varies, explained, left == 0.0)))
    if math.isfinite(value):
        return value
    from sklearn.metrics import r2_score

    return float(r2_score(true, found, sample_weight=sample_weight))  # or its error
