"""What classifiers with several kernels share."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import column_or_1d

from mixnorm._linear import even_ties
from mixnorm.engines.multikernel import HingeTarget
from mixnorm.estimators._common.inputs import (
    check_dense_targets,
    check_one_kind_of_label,
    class_factors,
)
from mixnorm.estimators._common.parameters import OneOf
from mixnorm.estimators._common.validation import check_classification_targets
from mixnorm.estimators.kernels.base import KernelLearner

HingeLoss = Annotated[str, OneOf(("hinge", "squared_hinge"))]


class KernelClassifier(ClassifierMixin, KernelLearner):
    """Labels in, labels out: Crammer and Singer's joint machine on a sum of kernels."""

    loss: str = "hinge"
    classes_: np.ndarray

    def _encoded(self, y: Any, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.classes_, labels, weight = encoded_labels(self, y, weight)
        return labels, weight

    def _target(self, y: np.ndarray, caps: np.ndarray) -> HingeTarget:
        return HingeTarget(y, caps, len(self.classes_), self.loss == "squared_hinge")

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            New data; with ``kernel="precomputed"`` their kernels with the training rows, of shape
            ``(n_kernels, n_samples, n_training)``.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            With two classes, positive means ``classes_[1]``.
        """
        scores = even_ties(*self._scores_and_sizes(X))
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            New data, as in :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = even_ties(*self._scores_and_sizes(X))
        labels: np.ndarray = self.classes_[scores.argmax(axis=1)]
        return labels

    def _restore(self, state: dict[str, Any], max_bytes: int) -> None:
        super()._restore(state, max_bytes)
        classes = self.classes_
        if not isinstance(classes, np.ndarray) or classes.shape != (self.dual_coef_.shape[1],):
            raise ValueError(f"classes_ must be an array of {self.dual_coef_.shape[1]} labels")


def encoded_labels(
    estimator: Any, y: Any, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the classes, the labels as ``0 .. k-1``, and weights by class and sample.

    The estimator has a parameter ``class_weight``.
    """
    check_dense_targets(y)
    check_one_kind_of_label(y)
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    classes, labels = np.unique(y, return_inverse=True)
    if estimator.class_weight is not None:
        kept = weight > 0.0
        factors = np.zeros(len(weight))
        factors[kept] = class_factors(estimator.class_weight, y[kept], weight[kept])
        weight = weight * factors
    present = classes[np.unique(labels[weight > 0.0])]
    if len(present) < 2:
        named = f": {present[0]!r}" if len(present) else ""
        raise ValueError(
            f"{type(estimator).__name__} needs samples of at least 2 classes, but y holds only one "
            f"class of positive weight{named}."
        )
    return classes, labels, weight
