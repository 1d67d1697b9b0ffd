"""Predictions without checks, for single rows and hot loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixnorm._array import is_foreign, namespace
from mixnorm.models.outputs import ClassOutputs, NumberOutputs
from mixnorm.models.path import PathModel


class Predictor:
    """A fitted model as a function of arrays, which it does not check.

    Made by ``predictor()`` of a fitted ShareBoost estimator.

    Parameters
    ----------
    model : PathModel
        The model that predicts.

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

    def __init__(self, model: PathModel) -> None:
        outputs = model.outputs
        self.n_features_in_ = model.inputs.n_features
        self._classes = outputs.classes if isinstance(outputs, ClassOutputs) else None
        self._single = isinstance(outputs, NumberOutputs) and outputs.single
        self._model = model
        self._scores = model.pool.scorer(model.support, model.weights, model.intercept)

    def __call__(self, X: Any) -> Any:
        """Predict for one row, or for several.

        Parameters
        ----------
        X : array of shape (n_features,) or (n_samples, n_features)
            Finite numbers, which is not checked. Predictions follow the namespace of ``X``.

        Returns
        -------
        label or number, or ndarray of shape (n_samples,) or (n_samples, n_outputs)
            As ``predict``.
        """
        # The exact type first: it is the usual case, and the question costs nothing.
        if type(X) is not np.ndarray and is_foreign(X):
            return self._predict_foreign(X)
        if X.ndim == 1:
            scores = self._scores.row(X)
            if self._classes is not None:
                return self._classes[scores.argmax()]
            return scores[0] if self._single else scores
        scores = self._scores(X if X.ndim == 2 else X.reshape(len(X), -1))  # images
        if self._classes is not None:
            return self._classes[scores.argmax(axis=1)]
        return scores[:, 0] if self._single else scores

    def _predict_foreign(self, X: Any) -> Any:
        """Predict for an array of another library."""
        shape = (1 if X.ndim == 1 else X.shape[0], self.n_features_in_)
        found = self._model.outputs.labels(self._model.scores(namespace(X).reshape(X, shape)))
        if X.ndim > 1:
            return found
        return found[0] if found.ndim == 1 else found[0, :]
