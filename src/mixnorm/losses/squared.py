"""Squared loss for one or many outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from mixnorm._array import namespace
from mixnorm.losses.arrays import ratio, total
from mixnorm.losses.scalar import SmoothScalar, by_entry


@dataclass
class Squared(SmoothScalar):
    r"""Half the squared residual, summed over outputs: :math:`\frac12 \|z - y\|_2^2`.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Squared()
    >>> target = loss.encode(np.array([[1.0], [3.0]]), 1, np.zeros((2, 1)))
    >>> loss.value_and_residual(np.zeros((2, 1)), target, np.full(2, 0.5))[0]
    2.5
    """

    smoothness: ClassVar[float] = 1.0
    lipschitz: ClassVar[float] = math.inf
    constant_curvature: ClassVar[bool] = True

    def value_and_residual(self, scores: Any, target: Any, weight: Any) -> tuple[float, Any]:
        """Return the weighted mean loss and ``weight * (scores - target)``."""
        difference = scores - target
        residual = difference * by_entry(weight)
        return 0.5 * total(difference * residual), residual

    def curvature(self, residual: Any, target: Any, weight: Any) -> Any:
        """Return the weights: exact, constant, and one per sample where they are."""
        return by_entry(weight)

    def conjugate(self, theta: Any, target: Any, weight: Any) -> float:
        """Return ``sum theta**2 / (2 w) + theta y``."""
        xp = namespace(theta)
        weight = xp.broadcast_to(by_entry(weight), theta.shape)
        if bool(xp.any((weight <= 0.0) & (theta != 0.0))):
            return math.inf
        return total(theta * (0.5 * ratio(theta, weight) + target))

    def prox_conjugate(self, theta: Any, step: Any, target: Any, weight: Any) -> Any:
        """Return ``w (theta - step y) / (w + step)``."""
        weight = by_entry(weight)
        return weight / (weight + step) * (theta - step * target)

    def balance(self, theta: Any, target: Any, weight: Any) -> Any:
        """Return ``theta`` less each output's sum, spread by weight."""
        xp = namespace(theta)
        weight = xp.broadcast_to(by_entry(weight), theta.shape)
        theta = xp.where(weight > 0.0, theta, 0.0)
        sums = xp.broadcast_to(xp.sum(weight, axis=0), theta.shape)
        return theta - ratio(weight, sums) * xp.sum(theta, axis=0)
