"""Tasks with losses of their own, as one loss of all their scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class LossMixture:
    """A scalar loss per output; outputs with equal losses are computed together.

    It has all the methods that the proximal engine needs of a loss. Targets and weights have one
    column per output.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm.losses import Hinge, Squared
    >>> mixture = LossMixture([Squared(), Hinge(), Squared()])
    >>> [columns.tolist() for _, columns in mixture.parts]
    [[0, 2], [1]]
    """

    shift_invariant = False
    is_classifier = False
    is_binary = False

    def __init__(self, losses: Sequence[Any]) -> None:
        # By representation, which has all parameters: losses need not be hashable.
        groups: dict[str, tuple[Any, list[int]]] = {}
        for output, loss in enumerate(losses):
            groups.setdefault(repr(loss), (loss, []))[1].append(output)
        self.parts = [(loss, np.asarray(columns)) for loss, columns in groups.values()]
        different = [loss for loss, _ in self.parts]
        self.constant_curvature = all(
            getattr(loss, "constant_curvature", False) for loss in different
        )
        # The constants of a sum over outputs are those of its worst part. One loss with a kink
        # makes the smoothness infinite, and the engine then smooths all of them.
        self.smoothness = max(float(loss.smoothness) for loss in different)
        self.lipschitz = max(float(loss.lipschitz) for loss in different)
        # Each part evaluates its own columns only. Counting them as whole evaluations accounts for
        # the copies of columns.
        self.effort = float(len(self.parts))

    def encode(self, y: np.ndarray, n_outputs: int, like: np.ndarray) -> list[Any]:
        """Prepare the targets of every loss."""
        return [loss.encode(y[:, columns], len(columns), like) for loss, columns in self.parts]

    def value_and_residual(
        self, scores: np.ndarray, target: list[Any], weight: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Return the sum of the losses and its derivative."""
        # In Fortran order, as the residuals of single losses are: columns are written whole.
        total, residual = 0.0, np.empty_like(scores, order="F")
        for (loss, columns), own in zip(self.parts, target, strict=True):
            value, part = loss.value_and_residual(scores[:, columns], own, weight[:, columns])
            total += value
            residual[:, columns] = part
        return total, residual

    def curvature(self, residual: np.ndarray, target: list[Any], weight: np.ndarray) -> np.ndarray:
        """Return the second derivatives."""
        return self._each("curvature", target, weight, residual)

    def conjugate(self, theta: np.ndarray, target: list[Any], weight: np.ndarray) -> float:
        """Return the sum of the conjugates."""
        return sum(
            float(loss.conjugate(theta[:, columns], own, weight[:, columns]))
            for (loss, columns), own in zip(self.parts, target, strict=True)
        )

    def prox_conjugate(
        self, theta: np.ndarray, step: float | np.ndarray, target: list[Any], weight: np.ndarray
    ) -> np.ndarray:
        """Return the proximal point of every loss."""
        steps = np.broadcast_to(step, theta.shape)
        return self._each("prox_conjugate", target, weight, theta, steps)

    def balance(self, theta: np.ndarray, target: list[Any], weight: np.ndarray) -> np.ndarray:
        """Return the balanced point of every loss."""
        return self._each("balance", target, weight, theta)

    def predict(self, scores: np.ndarray) -> np.ndarray:
        """Return the predictions of every output by its own loss."""
        found = np.empty_like(scores)
        for loss, columns in self.parts:
            found[:, columns] = loss.predict(scores[:, columns])
        return found

    def proba(self, scores: np.ndarray) -> np.ndarray:
        """Raise: not every loss has probabilities."""
        raise TypeError("A mixture of losses has no class probabilities; ask a single loss.")

    def _each(
        self, method: str, target: list[Any], weight: np.ndarray, *arrays: np.ndarray
    ) -> np.ndarray:
        """Return what a method of every loss gives for its columns."""
        found = np.empty_like(arrays[0], order="F")
        for (loss, columns), own in zip(self.parts, target, strict=True):
            parts = [array[:, columns] for array in arrays]
            found[:, columns] = getattr(loss, method)(*parts, own, weight[:, columns])
        return found
