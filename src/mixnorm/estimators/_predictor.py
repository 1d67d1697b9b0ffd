"""Predictions without ceremony, for single rows and hot loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixnorm.pools._scorers import ColumnScorer, PoolScorer


class Predictor:
    """A fitted model as a function of arrays: what is checked, is checked when it is made.

    Made by ``predictor()`` of a fitted ShareBoost estimator.

    Parameters
    ----------
    model : estimator
        The fitted model; later changes of it do not matter.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixnorm import ShareBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> predict = ShareBoostClassifier(2).fit(X, y).predictor()
    >>> int(predict(X[0]))
    0
    >>> predict(X[:3]).tolist()
    [0, 0, 0]
    """

    def __init__(self, model: Any) -> None:
        path, pool = model._path, model._fitted_pool
        step = path.rounds[-1] if path.rounds else None
        weights, intercept = model._outputs(step, path)
        support = step.support if step is not None else ()
        self.n_features_in_ = int(model.n_features_in_)
        self._classes = getattr(model, "classes_", None)
        self._single = bool(getattr(model, "_single", False))
        self._scores = _scorer(pool, support, weights, intercept, self.n_features_in_)

    def __call__(self, X: np.ndarray) -> Any:
        """Predict for one row, or for several.

        Parameters
        ----------
        X : ndarray of shape (n_features,) or (n_samples, n_features)
            Finite numbers; this is not checked.

        Returns
        -------
        label or number, or ndarray of shape (n_samples,) or (n_samples, n_outputs)
            As ``predict``.
        """
        if X.ndim == 1:
            scores = self._scores.row(X)
            if self._classes is not None:
                return self._classes[scores.argmax()]
            return scores[0] if self._single else scores
        scores = self._scores(X)
        if self._classes is not None:
            return self._classes[scores.argmax(axis=1)]
        return scores[:, 0] if self._single else scores


def _scorer(
    pool: Any, support: Any, weights: np.ndarray, intercept: np.ndarray, n_features: int
) -> Any:
    """Return the quickest way to the scores that the pool has."""
    if hasattr(pool, "scorer"):
        return pool.scorer(support, weights, intercept)
    if getattr(pool, "plain", False):
        index = np.asarray(pool.feature_indices(support, n_features), dtype=np.intp)
        return ColumnScorer(index, weights, intercept)
    return PoolScorer(pool, support, weights, intercept)
