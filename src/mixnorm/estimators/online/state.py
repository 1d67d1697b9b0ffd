"""The state of an online estimator, as one value, and the targets that it learns from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import column_or_1d

from mixnorm._array import ArrayLike
from mixnorm.engines.mirror import PERCEPTRON, BlockLearner, LearnerState, RowLearner, Rows
from mixnorm.estimators._common.inputs import check_one_kind_of_label
from mixnorm.estimators.online.curve import Curve
from mixnorm.estimators.online.names import Names
from mixnorm.models import ClassOutputs, Inputs, NumberOutputs, TaskOutputs, gives_probabilities


class OnlineRows(NamedTuple):
    """Rows that an estimator learns from, after checks.

    Parameters
    ----------
    X : ndarray or CSR matrix
        The rows.
    names : Names, optional
        The columns of rows that are dicts; None for arrays.
    fresh : dict
        The new names with their columns.
    """

    X: Rows
    names: Names | None = None
    fresh: Mapping[Any, int] = MappingProxyType({})


class OnlineTargets(NamedTuple):
    """The targets of some rows, and all outputs known so far.

    Parameters
    ----------
    places : ndarray of shape (n_samples,) or (0,)
        The class of each row, or its task. If empty, each row has targets for all outputs.
    values : ndarray of shape (n_samples, n_targets)
        The numbers to predict; no columns for classes.
    labels, low, single
        As in :class:`OnlineState`.
    """

    places: np.ndarray
    values: np.ndarray
    labels: np.ndarray | None = None
    low: tuple[float, ...] = ()
    single: bool = False

    @property
    def n_outputs(self) -> int:
        """Number of classes, tasks or targets known so far."""
        return self.values.shape[1] if self.labels is None else len(self.labels)

    def tasks(self) -> list[Any]:
        """Return the labels as plain values."""
        return [] if self.labels is None else list(self.labels.tolist())


@dataclass(frozen=True, eq=False)
class OnlineState:
    """The state from which an online estimator predicts and continues to learn.

    Parameters
    ----------
    stored : LearnerState
        The learner.
    curve : Curve
        The curve of its mistakes and losses.
    inputs : Inputs
        The columns.
    names : Names, optional
        The columns of rows that are dicts; None for arrays.
    labels : ndarray of shape (n_outputs,), optional
        The classes or tasks in order of arrival; None for numbers.
    low : tuple of float
        For each task the lower of its two classes as the user gave it; NaN if not seen so far.
    single : bool
        Whether the targets are numbers that had one dimension; predictions then have one as well.
    """

    stored: LearnerState
    curve: Curve
    inputs: Inputs
    names: Names | None = None
    labels: np.ndarray | None = None
    low: tuple[float, ...] = ()
    single: bool = False

    @property
    def learner(self) -> RowLearner | BlockLearner:
        """The learner that works on the stored arrays."""
        return self.stored.learner

    @cached_property
    def places(self) -> dict[Any, int]:
        """The place of each class or task."""
        labels = [] if self.labels is None else self.labels.tolist()
        return {label: place for place, label in enumerate(labels)}

    @cached_property
    def outputs(self) -> ClassOutputs | NumberOutputs | TaskOutputs:
        """What the scores mean."""
        losses = self.stored.plan.losses
        if self.labels is None:
            return NumberOutputs(self.single, 1.0, np.zeros(self.stored.n_outputs), losses[0])
        if self.stored.plan.joint:
            # A perceptron has no loss that could turn scores into probabilities.
            known = losses[0] != PERCEPTRON and gives_probabilities(losses[0])
            return ClassOutputs(self.labels, losses[0] if known else None)
        # A task of which only the upper class was seen so far has -1 as its lower one.
        low = [-1.0 if math.isnan(value) else value for value in self.low]
        classes = [
            np.asarray([value, 1.0]) if loss.is_binary else None
            for value, loss in zip(low, losses, strict=True)
        ]
        return TaskOutputs(tuple(self.places), tuple(classes), tuple(losses), False)

    def check(self, max_bytes: int) -> None:
        """Raise ValueError unless learning can continue from here; the state may be a file's."""
        # First the arrays, which all checks below read.
        self.stored.check(max_bytes)
        self.curve.check()
        n_features, n_outputs = self.stored.n_features, self.stored.n_outputs
        known = self.inputs.n_features
        # Without any column there is one weight, because arrays need a length.
        if type(known) is not int or max(known, 1) != max(n_features, 1):
            raise ValueError(f"n_features_in_ must be {n_features}, the number of weights")
        if self.inputs.names is not None and len(self.inputs.names) != n_features:
            raise ValueError(f"feature_names_in_ must have {n_features} names")
        if self.names is not None:
            self.names.check(known)
        if self.labels is None:
            fits = not self.stored.plan.joint and not self.low
        else:
            fits = self.labels.shape == (n_outputs,) and len(self.places) == n_outputs
            fits = fits and len(self.low) == (0 if self.stored.plan.joint else n_outputs)
        if not fits or (self.single and (self.labels is not None or n_outputs != 1)):
            raise ValueError(f"the labels or targets must be those of {n_outputs} outputs")


def place_labels(
    given: np.ndarray, known: np.ndarray, places: Mapping[Any, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of labels, and all labels: known ones first, then new ones.

    Texts and numbers together raise a TypeError.

    Examples
    --------
    >>> import numpy as np
    >>> place_labels(np.array(["c", "a", "c"]), np.array(["a", "b"]), {"a": 0, "b": 1})
    (array([2, 0, 2]), array(['a', 'b', 'c'], dtype='<U1'))
    """
    found, inverse = np.unique(given, return_inverse=True)
    labels = found.tolist()
    unseen = [label for label in labels if label not in places]
    if unseen:
        # NumPy would turn numbers beside texts into texts: the label 1 would become '1'.
        texts = [all(isinstance(label, str) for label in each) for each in (known.tolist(), unseen)]
        if len(known) and texts[0] != texts[1]:
            raise TypeError(
                f"{unseen[0]!r} has another type than earlier labels such as "
                f"{known.tolist()[0]!r}; give labels of one type, for example str(label) for each."
            )
        new = np.asarray(unseen, dtype=found.dtype)
        known = np.concatenate([known, new]) if len(known) else new
        # A new dictionary: the old one belongs to a state that stays if learning fails.
        places = {**places, **{label: len(places) + at for at, label in enumerate(unseen)}}
    own = np.asarray([places[label] for label in labels], dtype=np.int64)
    return own[inverse.reshape(-1)], known


def check_tasks(task: ArrayLike, n_samples: int) -> np.ndarray:
    """Return the tasks of rows as an array, after checks."""
    found = np.asarray(task)
    if found.ndim == 0:
        raise ValueError(f"task={task!r} is a single task; give one for each row.")
    check_one_kind_of_label(task, "task")
    found = np.asarray(column_or_1d(task))
    if any(name is None or name != name for name in found.tolist()):
        raise ValueError("task contains NaN or None; drop rows whose task is unknown.")
    if len(found) != n_samples:
        raise ValueError(f"X has {n_samples} rows and task {len(found)}: give one task per row.")
    return found
