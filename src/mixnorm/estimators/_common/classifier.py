"""Base classes of classifiers: labels, decisions and probabilities of a model."""

from __future__ import annotations

from operator import methodcaller
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from mixnorm._array import ArrayLike, MatrixLike, follow, namespace
from mixnorm.estimators._common.arrays import check_within_reach, encode_labels
from mixnorm.estimators._common.blocks.parts import map_parts, score_parts
from mixnorm.estimators._common.fitted import FittedMixin
from mixnorm.estimators._common.inputs import check_one_kind_of_label
from mixnorm.estimators._common.validation import check_classification_targets, validate_data
from mixnorm.models import ClassOutputs, gives_probabilities

needs_probabilities = available_if(methodcaller("_knows_probabilities"))


class DecisionFace(ClassifierMixin, FittedMixin):
    """Labels and decisions: what the scores of ``model_`` mean according to its ``outputs``."""

    _output_kind: type = ClassOutputs

    def _loss(self) -> Any:
        """Return the loss that the parameters name, or None if it has no probabilities."""
        return None

    def _knows_probabilities(self) -> bool:
        """Return True if the loss has probabilities, or raise an AttributeError.

        Before a fit this is the loss of the parameters, later that of the model.
        """
        # Parameters may have been changed since the fit; the model keeps the loss that it was
        # fitted with.
        loss = self._model_outputs.loss if self.__sklearn_is_fitted__() else self._loss()
        if not gives_probabilities(loss):
            raise AttributeError("The loss has no probabilities of classes.")
        return True

    @property
    def classes_(self) -> Any:
        """Class labels."""
        return follow(self._model_outputs.classes, self._libraries.y)

    @score_parts
    def score(
        self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the accuracy, the share of rows whose label is predicted.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Test data. It may also be a Dask collection, or a table of row blocks with targets.
        y : array-like of shape (n_samples,)
            True labels; None for a table, which has its own.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        float
        """
        return float(super().score(X, y, sample_weight))

    @map_parts
    def decision_function(self, X: MatrixLike) -> Any:
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
        return self._model_outputs.decisions(self._scores(X))


class ClassifierFace(DecisionFace):
    """Labels, decisions and probabilities of classes."""

    @needs_probabilities
    @map_parts
    def predict_proba(self, X: MatrixLike) -> Any:
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
        return self._model_outputs.probabilities(self._scores(X))

    @needs_probabilities
    @map_parts
    def predict_log_proba(self, X: MatrixLike) -> Any:
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
        with np.errstate(divide="ignore"):
            return namespace(probabilities).log(probabilities)

    def _check_labels(self, X: MatrixLike, y: ArrayLike) -> tuple[Any, Any]:
        """Return the checked training data; raise unless ``y`` has at least two classes."""
        check_within_reach(y, "y")
        check_one_kind_of_label(y)
        X, y = validate_data(self, X, y, accept_sparse=("csr", "csc"), dtype="numeric")
        check_classification_targets(y)
        classes, _ = encode_labels(y, X)
        if classes.shape[0] < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes, but y holds only one "
                f"class: {classes[0]!r}."
            )
        return X, y
