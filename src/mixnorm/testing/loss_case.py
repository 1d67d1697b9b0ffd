"""A loss with targets, scores and weights to check it on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm.testing.contract import Contract

#: Sums of a few dozen terms of size one are good to this much in float64.
ROUNDING = 1e-11


@dataclass(frozen=True)
class LossCase(Contract):
    """A loss, targets, and scores, weights and a direction to try it with."""

    y: np.ndarray
    scores: np.ndarray
    weight: np.ndarray
    direction: np.ndarray

    @property
    def loss(self) -> Any:
        """The loss."""
        return self.subject

    @property
    def n_outputs(self) -> int:
        """Number of scores of a row."""
        return int(self.scores.shape[1])

    @property
    def target(self) -> Any:
        """The targets, as the loss encodes them."""
        return self.loss.encode(self.y, self.n_outputs, self.scores)

    def at(
        self, scores: np.ndarray, weight: np.ndarray | None = None, rows: Any = slice(None)
    ) -> tuple[float, np.ndarray]:
        """Return value and residual at given scores, for some of the targets."""
        target = self.loss.encode(self.y[rows], self.n_outputs, scores)
        weight = self.weight if weight is None else weight
        value, residual = self.loss.value_and_residual(scores, target, weight)
        return float(value), np.asarray(residual)

    def second_order(self) -> tuple[np.ndarray, Any, np.ndarray]:
        """Return residual, target and weight, as second-order methods take them."""
        return self.at(self.scores)[1], self.target, self.weight

    def single(self) -> tuple[np.ndarray, Any, np.ndarray, np.ndarray]:
        """Return scores, target, weight and direction in single precision."""
        arrays = (self.scores, self.weight, self.direction)
        scores, weight, direction = (array.astype(np.float32) for array in arrays)
        return scores, self.loss.encode(self.y, self.n_outputs, scores), weight, direction

    def require_single(self, found: dict[str, Any]) -> None:
        """Raise a ContractError unless all arrays are float32."""
        for name, array in found.items():
            kept = array.dtype == np.float32
            self.require(kept, f"{name} keeps the dtype float32", f"got {array.dtype}")
