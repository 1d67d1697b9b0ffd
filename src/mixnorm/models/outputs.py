"""What the scores of a model mean: labels, or numbers in the units of the targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mixnorm._array import is_numpy
from mixnorm._linear import even_ties
from mixnorm.models.checks import check_floats, check_positive
from mixnorm.models.scores import labels_at


@dataclass(frozen=True, eq=False)
class ClassOutputs:
    """Scores that stand for classes: one column per class, or a single one for two classes.

    A single column is positive for the second class.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The labels.
    loss : Loss or None
        Gives probabilities; None where the model has them by other means, or has none.
    """

    classes: np.ndarray
    loss: Any = None
    unit: ClassVar[float] = 1.0
    centre: ClassVar[float] = 0.0

    def labels(self, scores: Any) -> Any:
        """Return the label with the largest score of each row; of equal ones the first."""
        if scores.shape[1] == 1:
            return self.classes[(scores[:, 0] > 0.0).astype(np.intp)]
        if is_numpy(scores):
            scores = even_ties(scores, np.max(np.abs(scores), axis=1))
        if self.loss is None:
            return self.classes[scores.argmax(axis=1)]
        return labels_at(self.classes, self.loss.predict(scores))

    def decisions(self, scores: Any) -> Any:
        """Return what ``decision_function`` does: one column per class, or one number a row."""
        if scores.shape[1] == 2:
            return scores[:, 1] - scores[:, 0]
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def probabilities(self, scores: Any) -> Any:
        """Return the probability of every class."""
        if self.loss is None:
            raise AttributeError("the loss of this model gives no probabilities")
        return self.loss.proba(scores)

    def outward(self, weights: np.ndarray, intercept: np.ndarray) -> tuple[Any, Any]:
        """Return weights ``(n_columns, n_scores)`` as ``coef_`` and ``intercept_``."""
        if intercept.shape[0] == 2:
            return (weights[:, 1] - weights[:, 0])[None, :], intercept[1:] - intercept[:1]
        return np.ascontiguousarray(weights.T), np.asarray(intercept)

    def check(self, n_scores: int) -> None:
        """Raise unless the labels fit the number of scores, and the loss can work with them."""
        shape = (max(2, n_scores),)
        if not isinstance(self.classes, np.ndarray) or self.classes.shape != shape:
            raise ValueError(f"classes_ must be an array of {shape[0]} labels")
        if self.loss is not None:
            if not self.loss.is_classifier:
                raise ValueError(f"{self.loss!r} is no loss of labels")
            scores = np.zeros((1, n_scores))
            self.loss.encode(np.zeros(1, dtype=np.int64), n_scores, scores)  # checks parameters
            self.loss.proba(scores)


@dataclass(frozen=True, eq=False)
class NumberOutputs:
    """Scores that are predicted numbers.

    Parameters
    ----------
    single : bool
        Targets had one dimension, and so have predictions.
    unit : float
        What targets were divided by for the fit.
    centre : ndarray of shape (n_outputs,)
        What was subtracted from them before.
    loss : Loss
        The loss of the fit.
    """

    single: bool
    unit: float
    centre: np.ndarray
    loss: Any

    def labels(self, scores: Any) -> Any:
        """Return the predictions."""
        return scores[:, 0] if self.single else scores

    def outward(self, weights: np.ndarray, intercept: np.ndarray) -> tuple[Any, Any]:
        """Return weights ``(n_columns, n_outputs)`` as ``coef_`` and ``intercept_``."""
        if self.single:
            return weights[:, 0], float(intercept[0])
        return np.ascontiguousarray(weights.T), np.asarray(intercept)

    def check(self, n_scores: int) -> None:
        """Raise unless units and centre fit the number of outputs."""
        check_floats(self.centre, (n_scores,), "the centre of the targets")
        check_positive(self.unit, "the unit of the targets")
        if self.loss.is_classifier:
            raise ValueError(f"{self.loss!r} is no loss of numbers")
        if self.single and n_scores != 1:
            raise ValueError("targets are said to be one column, but the path has several outputs")
