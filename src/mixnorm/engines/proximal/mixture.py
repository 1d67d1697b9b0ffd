"""Tasks with losses of their own, as one loss of all their scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class LossMixture:
    """A scalar loss per output, grouped so that outputs with equal losses are done together.

    It has what the proximal engine asks of a loss. Targets and weights have one column per output.

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
        groups: dict[str, tuple[Any, list[int]]] = {}
        for output, loss in enumerate(losses):
            groups.setdefault(repr(loss), (loss, []))[1].append(output)
        self.parts = [(loss, np.asarray(columns)) for loss, columns in groups.values()]
        different = [loss for loss, _ in self.parts]
        self.constant_curvature = all(
            getattr(loss, "constant_curvature", False) for loss in different
        )
        self.smoothness = max(float(loss.smoothness) for loss in different)
        self.lipschitz = max(float(loss.lipschitz) for loss in different)
        self.effort = float(len(self.parts))

    def encode(self, y: Any, n_outputs: int, like: Any) -> list[Any]:
        """Prepare the targets of each part."""
        return [loss.encode(y[:, columns], len(columns), like) for loss, columns in self.parts]

    def value_and_residual(
        self, scores: np.ndarray, target: list[Any], weight: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Return the sum of the losses and its derivative."""
        total, residual = 0.0, np.empty_like(scores, order="F")
        for (loss, columns), own in zip(self.parts, target, strict=True):
            value, part = loss.value_and_residual(scores[:, columns], own, weight[:, columns])
            total += value
            residual[:, columns] = part
        return total, residual

    def curvature(self, residual: np.ndarray, target: list[Any], weight: np.ndarray) -> np.ndarray:
        """Return the second derivatives."""
        return self._each("curvature", target, residual, weight)

    def conjugate(self, theta: np.ndarray, target: list[Any], weight: np.ndarray) -> float:
        """Return the sum of the conjugates."""
        total = 0.0
        for (loss, columns), own in zip(self.parts, target, strict=True):
            total += float(loss.conjugate(theta[:, columns], own, weight[:, columns]))
        return total

    def prox_conjugate(
        self, theta: np.ndarray, step: Any, target: list[Any], weight: np.ndarray
    ) -> np.ndarray:
        """Return each part's proximal point."""
        found = np.empty_like(theta, order="F")
        steps = np.broadcast_to(step, theta.shape)
        for (loss, columns), own in zip(self.parts, target, strict=True):
            found[:, columns] = loss.prox_conjugate(
                theta[:, columns], steps[:, columns], own, weight[:, columns]
            )
        return found

    def balance(self, theta: np.ndarray, target: list[Any], weight: np.ndarray) -> np.ndarray:
        """Return each part's balanced point."""
        return self._each("balance", target, theta, weight)

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
        self, method: str, target: list[Any], array: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        found = np.empty_like(array, order="F")
        for (loss, columns), own in zip(self.parts, target, strict=True):
            found[:, columns] = getattr(loss, method)(array[:, columns], own, weight[:, columns])
        return found
