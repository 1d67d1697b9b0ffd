"""What classifiers that go round by round share: labels in, scores after every round out."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mixnorm._linear import even_ties
from mixnorm.estimators._common.inputs import check_one_kind_of_label
from mixnorm.estimators._common.progress import CallbackSupportMixin
from mixnorm.estimators._common.selector import ColumnSelectorMixin
from mixnorm.estimators._common.validation import check_classification_targets, validate_data


class StagedClassifier(ClassifierMixin, ColumnSelectorMixin, CallbackSupportMixin, BaseEstimator):
    """Base of the classifiers that are no ShareBoost: labels in, scores after every round out.

    They give ``_scores`` and ``_staged_scores``, one column per class, or one for two classes.
    """

    classes_: np.ndarray

    def _scores(self, X: Any) -> np.ndarray:
        """Return the scores of new data."""
        raise NotImplementedError

    def _staged_scores(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the scores of new data after 1, 2, ... rounds."""
        raise NotImplementedError

    def _check_training(self, X: Any, y: Any) -> tuple[Any, Any, np.ndarray]:
        """Validate, and encode the labels as ``0 .. k-1``."""
        check_one_kind_of_label(y)
        X, y = validate_data(self, X, y, accept_sparse=("csr", "csc"), dtype="numeric")
        check_classification_targets(y)
        classes, labels = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes, but y holds only one "
                f"class: {classes[0]!r}."
            )
        self.classes_ = classes
        return X, y, labels

    def _check_new(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, accept_sparse=("csr", "csc"), dtype="numeric")

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class with the largest score.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        return self._predict_scores(self._scores(X))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Predict after 1, 2, ... rounds.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data.

        Yields
        ------
        ndarray of shape (n_samples,)
            What ``truncate(m).predict(X)`` returns, for each ``m`` in turn.
        """
        for scores in self._staged_scores(X):
            yield self._predict_scores(scores)

    def decision_function(self, X: Any) -> np.ndarray:
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
        return _decisions(self._scores(X))

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield what ``decision_function`` returns after 1, 2, ... rounds.

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
            yield _decisions(scores)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities; the classifiers say how."""
        raise NotImplementedError

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of the class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def _predict_scores(self, scores: np.ndarray) -> np.ndarray:
        single = scores.shape[1] == 1
        sizes = np.max(np.abs(scores), axis=1)
        index = (
            (scores[:, 0] > 0.0).astype(np.intp)
            if single
            else even_ties(scores, sizes).argmax(axis=1)
        )
        chosen: np.ndarray = self.classes_[index]
        return chosen

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def check_size(size: Any, longest: int, what: str, parameter: str) -> int:
    """Return the number of rounds to truncate a path of ``longest`` to, or raise."""
    if not isinstance(size, numbers.Integral) or isinstance(size, bool):
        raise TypeError(f"truncate({size!r}): give a whole number of {what}.")
    if not 1 <= int(size) <= longest:
        has = f"models of 1 to {longest} {what}" if longest else f"no model with {what}"
        raise ValueError(
            f"truncate({size!r}): there are {has}; fit with a larger {parameter} for more."
        )
    return int(size)


def check_classes(classes: Any) -> None:
    """Raise unless ``classes_`` of a model file can be labels."""
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
        raise ValueError("classes_ must be an array of at least 2 labels")


def _decisions(scores: np.ndarray) -> np.ndarray:
    return scores[:, 0] if scores.shape[1] == 1 else scores
