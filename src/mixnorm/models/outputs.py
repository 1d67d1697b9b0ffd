"""The meaning of a model's scores: labels, or numbers in the units of the targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mixnorm._array import Array, is_numpy, to_numpy
from mixnorm._linear import even_ties
from mixnorm.losses import DualLoss
from mixnorm.models.checks import check_floats, check_positive
from mixnorm.models.scores import labels_at


class _Outputs:
    """What outputs share."""

    def to_coef(self, weights: np.ndarray, intercept: np.ndarray) -> tuple[Any, Any]:
        """Return ``coef_`` and ``intercept_`` for weights of shape ``(n_columns, n_scores)``."""
        return np.ascontiguousarray(weights.T), np.asarray(intercept)


@dataclass(frozen=True, eq=False)
class ClassOutputs(_Outputs):
    """Scores of classes: one column per class, or a single column for two classes.

    A single column is positive for the second class.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The labels.
    loss : Loss or None
        Gives probabilities; None if the model computes them itself or has none.
    """

    classes: np.ndarray
    loss: Any = None
    unit: ClassVar[float] = 1.0
    centre: ClassVar[float] = 0.0

    @property
    def n_outputs(self) -> int:
        """Number of classes."""
        return len(self.classes)

    def labels(self, scores: Array) -> Any:
        """Return the label with the largest score of each row, the first of equal ones."""
        if scores.shape[1] < len(self.classes):
            return self.classes[(scores[:, 0] > 0.0).astype(np.intp)]
        if is_numpy(scores):
            # Scores that differ by rounding alone are ties, which go to the first label on every
            # machine.
            scores = even_ties(scores, np.max(np.abs(scores), axis=1))
        if self.loss is None:
            return self.classes[to_numpy(scores).argmax(axis=1)]
        return labels_at(self.classes, self.loss.predict(scores))

    def decisions(self, scores: Array) -> Any:
        """Return the result of ``decision_function``: a column per class, or one number per row."""
        if scores.shape[1] == 2:
            # scikit-learn's decision function of two classes is one number, positive for the
            # second.
            return scores[:, 1] - scores[:, 0]
        return scores[:, 0] if scores.shape[1] < len(self.classes) else scores

    def probabilities(self, scores: Array) -> Any:
        """Return the probability of every class (:eq:`margin-probabilities`)."""
        if self.loss is None:
            raise AttributeError("the loss of this model gives no probabilities")
        if scores.shape[1] < len(self.classes):  # by how much the second class leads
            # A soft-max of -s/2 and s/2 is the logistic function of s.
            scores = scores * np.asarray([-0.5, 0.5], scores.dtype)
        return self.loss.proba(scores)

    def to_coef(self, weights: np.ndarray, intercept: np.ndarray) -> tuple[Any, Any]:
        """Return ``coef_`` and ``intercept_``; of two classes the differences."""
        if intercept.shape[0] == 2:
            return (weights[:, 1] - weights[:, 0])[None, :], intercept[1:] - intercept[:1]
        return super().to_coef(weights, intercept)

    def check(self, n_scores: int) -> None:
        """Raise unless the labels fit the number of scores, and the loss can work with them."""
        n_classes = max(2, n_scores)
        if not isinstance(self.classes, np.ndarray) or self.classes.shape != (n_classes,):
            raise ValueError(f"classes_ must be an array of {n_classes} labels")
        if self.loss is not None:
            if not self.loss.is_classifier:
                raise ValueError(f"{self.loss!r} is not a loss for labels")
            scores = np.zeros((1, n_classes))
            # Encoding checks the parameters of the loss, which may come from a file.
            self.loss.encode(np.zeros(1, dtype=np.int64), n_classes, scores)  # checks parameters
            self.loss.proba(scores)


@dataclass(frozen=True, eq=False)
class BinaryOutputs(ClassOutputs):
    """Scores of classes, each against the rest, under a binary ``loss``."""

    @property
    def single(self) -> bool:
        """Whether one score tells two classes apart."""
        return len(self.classes) == 2

    def labels(self, scores: Array) -> Any:
        """Return the label with the largest score of each row, the first of equal ones."""
        return ClassOutputs(self.classes).labels(scores)

    def probabilities(self, scores: Array) -> np.ndarray:
        """Return the probability of every class; those of more than two are normalised."""
        found = np.asarray(self.loss.proba(scores))
        if self.single:
            return np.concatenate([1.0 - found, found], axis=1)
        total = found.sum(axis=1, keepdims=True)
        # If no class has a probability above zero, all are equally likely.
        even = np.full_like(found, 1.0 / found.shape[1])
        return np.asarray(np.divide(found, total, out=even, where=total > 0.0))

    def check(self, n_scores: int) -> None:
        """Raise unless each class has a score, or two classes have one, and the loss is binary."""
        ClassOutputs(self.classes).check(n_scores)
        if n_scores == 2:
            raise ValueError("two classes must have one score")
        if not getattr(self.loss, "is_binary", False):
            raise ValueError(f"{self.loss!r} is not a loss for two labels")
        sample = np.ones((1, 1))
        self.loss.encode(sample, 1, sample)  # checks parameters


@dataclass(frozen=True, eq=False)
class NumberOutputs(_Outputs):
    """Scores of predicted numbers.

    Parameters
    ----------
    single : bool
        Whether targets had one dimension; predictions have the same.
    unit : float
        The divisor of the targets in the fit.
    centre : ndarray of shape (n_outputs,)
        What was subtracted from the targets before.
    loss : Loss
        The loss of the fit.
    """

    single: bool
    unit: float
    centre: np.ndarray
    loss: Any

    @property
    def n_outputs(self) -> int:
        """Number of numbers."""
        return len(self.centre)

    def labels(self, scores: Array) -> Any:
        """Return the predictions."""
        return scores[:, 0] if self.single else scores

    def to_coef(self, weights: np.ndarray, intercept: np.ndarray) -> tuple[Any, Any]:
        """Return ``coef_`` and ``intercept_``, with one dimension less for a single output."""
        if self.single:
            return weights[:, 0], float(intercept[0])
        return super().to_coef(weights, intercept)

    def check(self, n_scores: int) -> None:
        """Raise unless units and centre fit the number of outputs."""
        check_floats(self.centre, (n_scores,), "the centre of the targets")
        check_positive(self.unit, "the unit of the targets")
        if self.loss.is_classifier:
            raise ValueError(f"{self.loss!r} is not a loss for numbers")
        if self.single and n_scores != 1:
            raise ValueError("single is True, but there are several outputs")


@dataclass(frozen=True, eq=False)
class TaskOutputs(_Outputs):
    """Scores of tasks: one column for each, whose targets are numbers or two labels.

    Parameters
    ----------
    names : tuple
        The names of the tasks.
    classes : tuple of ndarray or None
        The two labels of each task, the second of which has positive scores; None for numbers.
    losses : tuple of Loss
        The loss of each task.
    single : bool
        Whether targets had one dimension; predictions have the same.
    """

    names: tuple[Any, ...]
    classes: tuple[np.ndarray | None, ...]
    losses: tuple[Any, ...]
    single: bool

    @property
    def n_outputs(self) -> int:
        """Number of tasks."""
        return len(self.names)

    def task_labels(self, task: int, scores: np.ndarray) -> np.ndarray:
        """Return the predictions of one task for its scores: numbers, or labels."""
        # Binary losses predict -1 and 1.
        found, classes = np.asarray(self.losses[task].predict(scores)), self.classes[task]
        return found if classes is None else np.asarray(classes[(found > 0.0).astype(np.intp)])

    def task_probabilities(self, task: int, scores: np.ndarray) -> np.ndarray:
        """Return the probabilities of the two labels of one task: ``(n_samples, 2)``."""
        loss = self.losses[task]
        if not gives_probabilities(loss):
            raise ValueError(
                f"Task {self.names[task]!r} has the loss {loss!r}, which has no probabilities; "
                "'logistic' has. Select one task with task=, or some with a dictionary."
            )
        second = np.asarray(loss.proba(scores))
        return np.stack([1.0 - second, second], axis=1)

    def check(self, n_scores: int) -> None:
        """Raise unless names, labels and losses fit the number of scores, and one another."""
        if {len(self.names), len(self.classes), len(self.losses)} != {n_scores}:
            raise ValueError(f"each of {n_scores} tasks must have a name, labels and a loss")
        if self.single and n_scores != 1:
            raise ValueError("single is True, but there are several tasks")
        if len(set(self.names)) != n_scores:
            raise ValueError("tasks_ must have a name for each task, each once")
        for loss, classes in zip(self.losses, self.classes, strict=True):
            if loss.is_classifier or not isinstance(loss, DualLoss):
                raise ValueError(f"{loss!r} is not a loss for a single score")
            fits = classes is None or classes.shape == (2,)
            if (classes is not None) != loss.is_binary or not fits:
                raise ValueError(
                    "classes_ must have two labels for each binary loss, None for others"
                )


def gives_probabilities(loss: Any) -> bool:
    """Tell whether a loss has probabilities of labels.

    Examples
    --------
    >>> from mixnorm.losses import Hinge, Logistic, MultinomialLogistic, Squared
    >>> [gives_probabilities(loss) for loss in (Logistic(), MultinomialLogistic())]
    [True, True]
    >>> [gives_probabilities(loss) for loss in (Hinge(), Squared(), None)]
    [False, False, False]
    """
    if loss is None or not (loss.is_classifier or loss.is_binary):
        return False
    try:
        loss.proba(np.zeros((1, 2 if loss.is_classifier else 1)))
    except TypeError:
        return False
    return True
