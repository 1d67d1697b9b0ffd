"""The base class of classifiers that weigh kernels, and the encoding of labels."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from mixnorm._array import ArrayLike
from mixnorm.engines.multikernel import HingeTarget
from mixnorm.estimators._common.classifier import DecisionFace
from mixnorm.estimators._common.inputs import (
    apply_class_weights,
    check_dense_targets,
    check_one_kind_of_label,
)
from mixnorm.estimators._common.parameters import OneOf
from mixnorm.estimators._common.validation import check_classification_targets
from mixnorm.estimators.kernels.base import WeightedKernelLearner
from mixnorm.models import ClassOutputs

HingeLoss = Annotated[str, OneOf(("hinge", "squared_hinge"))]


class KernelClassifier(DecisionFace, WeightedKernelLearner):
    """Classifiers by Crammer and Singer's joint machine on a sum of kernels."""

    loss: str = "hinge"

    def _encode_targets(
        self, y: ArrayLike, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, ClassOutputs]:
        classes, labels, weight = encode_labels(self, y, weight)
        return labels, weight, ClassOutputs(classes)

    def _build_target(self, y: np.ndarray, caps: np.ndarray, outputs: ClassOutputs) -> HingeTarget:
        return HingeTarget(y, caps, len(outputs.classes), self.loss == "squared_hinge")


def encode_labels(
    estimator: Any, y: ArrayLike, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the classes, the labels as ``0 .. k-1``, and weights by class and sample.

    The estimator has a parameter ``class_weight``.
    """
    check_dense_targets(y)
    check_one_kind_of_label(y)
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    # All labels are kept, also those whose rows have no weight, so that ``classes_`` is that of
    # ``y``.
    classes, labels = np.unique(y, return_inverse=True)
    weight = apply_class_weights(estimator.class_weight, y, weight)
    present = classes[np.unique(labels[weight > 0.0])]
    if len(present) < 2:
        named = f": {present[0]!r}" if len(present) else ""
        raise ValueError(
            f"{type(estimator).__name__} needs samples of at least 2 classes, but y holds only one "
            f"class of positive weight{named}."
        )
    return classes, labels, weight
