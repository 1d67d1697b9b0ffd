"""Regression losses that grow more slowly than the square."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from mixnorm._array import namespace
from mixnorm.losses.arrays import clipped, ratio, total
from mixnorm.losses.scalar import (
    BoxDual,
    Scalar,
    SmoothScalar,
    balance_box,
    by_entry,
    inside,
)


@dataclass
class Absolute(Scalar):
    r"""The absolute residual, summed over outputs: :math:`\|z - y\|_1`.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Absolute()
    >>> target = loss.encode(np.array([1.0, -3.0]), 1, np.zeros((2, 1)))
    >>> loss.value_and_residual(np.zeros((2, 1)), target, np.full(2, 0.5))[0]
    2.0
    """

    smoothness: ClassVar[float] = math.inf
    lipschitz: ClassVar[float] = 1.0

    def value_and_residual(self, scores: Any, target: Any, weight: Any) -> tuple[float, Any]:
        """Return the weighted mean loss and ``weight * sign(scores - target)``."""
        difference = scores - target
        residual = namespace(scores).sign(difference) * by_entry(weight)
        return total(difference * residual), residual

    def conjugate(self, theta: Any, target: Any, weight: Any) -> float:
        """Return ``sum theta y`` where no entry exceeds its weight."""
        weight = by_entry(weight)
        return total(theta * target) if inside(theta, -weight, weight, weight) else math.inf

    def prox_conjugate(self, theta: Any, step: Any, target: Any, weight: Any) -> Any:
        """Return ``theta - step y``, clipped to the weights."""
        weight = by_entry(weight)
        return clipped(theta - step * target, low=-weight, high=weight)

    def balance(self, theta: Any, target: Any, weight: Any) -> Any:
        """Return entries within the weights, near ``theta``, that sum to zero in every output."""
        weight = by_entry(weight)
        return balance_box(theta, -weight, weight, weight)

    def box_dual(self, target: Any, weight: Any) -> BoxDual:
        """Return the line between the weights."""
        weight = by_entry(weight) + 0.0 * target
        none = 0.0 * target
        return BoxDual(target, none, none, -weight, weight)


@dataclass
class Huber(SmoothScalar):
    r"""Huber's loss: square for residuals up to ``delta``, linear beyond, summed over outputs.

    :math:`\frac12 r^2` where :math:`|r| \le \delta`, and :math:`\delta |r| - \frac12 \delta^2`
    beyond, with :math:`r = z - y`.

    Parameters
    ----------
    delta : float, default=1.0
        Where the line begins.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Huber(delta=2.0)
    >>> target = loss.encode(np.array([1.0, -3.0]), 1, np.zeros((2, 1)))
    >>> loss.value_and_residual(np.zeros((2, 1)), target, np.full(2, 0.5))[0]
    2.25
    """

    smoothness: ClassVar[float] = 1.0
    delta: float = 1.0

    @property
    def lipschitz(self) -> float:
        """The slope of the line, ``delta``."""
        return self.delta

    def encode(self, y: Any, n_outputs: int, like: Any) -> Any:
        """Prepare targets of shape ``(n_samples, n_outputs)``, laid out output by output."""
        if not 0.0 < self.delta < math.inf:
            raise ValueError(
                f"delta={self.delta!r} must be positive and finite; "
                "losses.Squared has no line, losses.Absolute no square."
            )
        return super().encode(y, n_outputs, like)

    def value_and_residual(self, scores: Any, target: Any, weight: Any) -> tuple[float, Any]:
        """Return the weighted mean loss and ``weight * clip(scores - target)``."""
        difference = scores - target
        kept = clipped(difference, low=-self.delta, high=self.delta)
        residual = kept * by_entry(weight)
        return total((difference - 0.5 * kept) * residual), residual

    def curvature(self, residual: Any, target: Any, weight: Any) -> Any:
        """Return the weight where the residual is not clipped, and zero elsewhere."""
        xp = namespace(residual)
        weight = by_entry(weight)
        return xp.where(xp.abs(residual) < self.delta * weight, weight, 0.0)

    def conjugate(self, theta: Any, target: Any, weight: Any) -> float:
        """Return ``sum theta**2 / (2 w) + theta y`` where no entry exceeds ``delta w``."""
        xp = namespace(theta)
        weight = by_entry(weight)
        if not inside(theta, -self.delta * weight, self.delta * weight, weight):
            return math.inf
        weight = xp.broadcast_to(weight, theta.shape)
        return total(theta * (0.5 * ratio(theta, weight) + target))

    def prox_conjugate(self, theta: Any, step: Any, target: Any, weight: Any) -> Any:
        """Return ``w (theta - step y) / (w + step)``, clipped to ``delta w``."""
        weight = by_entry(weight)
        shrunk = weight / (weight + step) * (theta - step * target)
        bound = self.delta * weight
        return clipped(shrunk, low=-bound, high=bound)

    def balance(self, theta: Any, target: Any, weight: Any) -> Any:
        """Return entries within ``delta w``, near ``theta``, that sum to zero in every output."""
        weight = by_entry(weight)
        return balance_box(theta, -self.delta * weight, self.delta * weight, weight)

    def box_dual(self, target: Any, weight: Any) -> BoxDual:
        """Return the parabola between ``delta`` times the weights."""
        weight = by_entry(weight) + 0.0 * target
        none = 0.0 * target
        return BoxDual(target, 1.0 / weight, none, -self.delta * weight, self.delta * weight)


@dataclass
class EpsilonInsensitive(Scalar):
    r"""The absolute residual beyond a tolerance, summed over outputs.

    :math:`\max(0, |z - y| - \epsilon)`: residuals up to ``epsilon`` cost nothing.

    Parameters
    ----------
    epsilon : float, default=0.1
        The tolerance, in units of the target. Zero gives :class:`Absolute`.

    Examples
    --------
    >>> import numpy as np
    >>> loss = EpsilonInsensitive(epsilon=1.0)
    >>> target = loss.encode(np.array([1.0, -3.0]), 1, np.zeros((2, 1)))
    >>> loss.value_and_residual(np.zeros((2, 1)), target, np.full(2, 0.5))[0]
    1.0
    """

    smoothness: ClassVar[float] = math.inf
    lipschitz: ClassVar[float] = 1.0
    epsilon: float = 0.1

    def encode(self, y: Any, n_outputs: int, like: Any) -> Any:
        """Prepare targets of shape ``(n_samples, n_outputs)``, laid out output by output."""
        if not 0.0 <= self.epsilon < math.inf:
            raise ValueError(f"epsilon={self.epsilon!r} must be zero or more, and finite.")
        return super().encode(y, n_outputs, like)

    def value_and_residual(self, scores: Any, target: Any, weight: Any) -> tuple[float, Any]:
        """Return the weighted mean loss and the weights with the signs of residuals beyond."""
        xp = namespace(scores)
        difference = scores - target
        beyond = difference - clipped(difference, low=-self.epsilon, high=self.epsilon)
        residual = xp.sign(beyond) * by_entry(weight)
        return total(beyond * residual), residual

    def conjugate(self, theta: Any, target: Any, weight: Any) -> float:
        """Return ``sum theta y + epsilon |theta|`` where no entry exceeds its weight."""
        weight = by_entry(weight)
        if not inside(theta, -weight, weight, weight):
            return math.inf
        return total(theta * target) + self.epsilon * total(namespace(theta).abs(theta))

    def prox_conjugate(self, theta: Any, step: Any, target: Any, weight: Any) -> Any:
        """Return ``theta - step y``, shrunk by ``epsilon step`` and clipped to the weights."""
        xp = namespace(theta)
        weight = by_entry(weight)
        moved = theta - step * target
        dead = self.epsilon * step
        size = clipped(xp.abs(moved) - dead, low=0.0)
        return clipped(xp.sign(moved) * size, low=-weight, high=weight)

    def balance(self, theta: Any, target: Any, weight: Any) -> Any:
        """Return entries within the weights, near ``theta``, that sum to zero in every output."""
        weight = by_entry(weight)
        return balance_box(theta, -weight, weight, weight)

    def box_dual(self, target: Any, weight: Any) -> BoxDual:
        """Return the lines between the weights."""
        weight = by_entry(weight) + 0.0 * target
        none = 0.0 * target
        return BoxDual(target, none, none + self.epsilon, -weight, weight)
