"""Losses on the margin ``y z`` of targets that are -1 and +1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from mixnorm._array import namespace
from mixnorm.losses.arrays import clipped, inverse, ratio, total
from mixnorm.losses.newton import damped_logistic, logistic
from mixnorm.losses.scalar import (
    BoxDual,
    Scalar,
    SmoothScalar,
    balance_box,
    by_entry,
    inside,
)


class _Binary(Scalar):
    """What these share: their targets, and dual entries of the sign opposite to the target."""

    is_binary: ClassVar[bool] = True

    def encode(self, y: Any, n_outputs: int, like: Any) -> Any:
        """Prepare targets -1 and +1 of shape ``(n_samples, n_outputs)``."""
        target = super().encode(y, n_outputs, like)
        xp = namespace(target)
        if not bool(xp.all((target == 1.0) | (target == -1.0))):
            wrong = target[(target != 1.0) & (target != -1.0)]
            raise ValueError(
                f"{type(self).__name__} takes targets -1 and +1, got {float(wrong[0]):g}. "
                "Encode the two classes as -1 and +1, or take a loss on labels for more."
            )
        return target

    def proba(self, scores: Any) -> Any:
        """Raise: scores of this loss say nothing of probabilities."""
        raise TypeError(
            f"{type(self).__name__} has no class probabilities; losses.Logistic has them."
        )

    def predict(self, scores: Any) -> Any:
        """Return +1 or -1, the sign of each score, with +1 for zero."""
        xp = namespace(scores)
        return xp.where(scores >= 0.0, xp.ones_like(scores), -xp.ones_like(scores))

    def balance(self, theta: Any, target: Any, weight: Any) -> Any:
        """Return a point of the conjugate's domain near ``theta`` whose columns sum to zero."""
        weight = by_entry(weight)
        low, high = self._bounds(target, weight)
        return balance_box(theta, low, high, weight)

    def _bounds(self, target: Any, weight: Any) -> tuple[Any, Any]:
        """Return the least and the largest dual entries: from zero to ``-weight target``."""
        xp = namespace(target)
        return xp.where(target > 0.0, -weight, 0.0), xp.where(target > 0.0, 0.0, weight)

    def _margins(self, theta: Any, target: Any, weight: Any) -> Any | None:
        """Return ``-target theta``, zero or more and at most the weight; None if it is not so."""
        low, high = self._bounds(target, weight)
        if not inside(theta, low, high, weight):
            return None
        return -target * clipped(theta, low=low, high=high)


@dataclass
class Hinge(_Binary):
    r"""The hinge loss :math:`\max(0, 1 - y z)` for ``y`` of -1 or +1, summed over outputs.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Hinge()
    >>> scores = np.array([[0.5], [2.0]])
    >>> target = loss.encode(np.array([1, -1]), 1, scores)
    >>> loss.value_and_residual(scores, target, np.full(2, 0.5))[0]
    1.75
    """

    smoothness: ClassVar[float] = math.inf
    lipschitz: ClassVar[float] = 1.0

    def value_and_residual(self, scores: Any, target: Any, weight: Any) -> tuple[float, Any]:
        """Return the weighted mean loss and ``-weight * target`` where the margin is below one."""
        xp = namespace(scores)
        short = clipped(1.0 - target * scores, low=0.0)
        weight = by_entry(weight)
        return total(short * weight), -target * xp.where(short > 0.0, weight, 0.0)

    def conjugate(self, theta: Any, target: Any, weight: Any) -> float:
        """Return ``sum y theta`` where ``-y theta`` is between zero and the weight."""
        margins = self._margins(theta, target, by_entry(weight))
        return math.inf if margins is None else -total(margins)

    def prox_conjugate(self, theta: Any, step: Any, target: Any, weight: Any) -> Any:
        """Return ``theta - step y``, clipped to the domain."""
        low, high = self._bounds(target, by_entry(weight))
        return clipped(theta - step * target, low=low, high=high)

    def box_dual(self, target: Any, weight: Any) -> BoxDual:
        """Return the line between zero and the weights."""
        weight = by_entry(weight) + 0.0 * target
        none = 0.0 * target
        return BoxDual(target, none, none, *self._bounds(target, weight))


@dataclass
class SquaredHinge(SmoothScalar, _Binary):
    r"""The squared hinge :math:`\max(0, 1 - y z)^2` for ``y`` of -1 or +1, summed over outputs.

    Examples
    --------
    >>> import numpy as np
    >>> loss = SquaredHinge()
    >>> scores = np.array([[0.5], [2.0]])
    >>> target = loss.encode(np.array([1, -1]), 1, scores)
    >>> loss.value_and_residual(scores, target, np.full(2, 0.5))[0]
    4.625
    """

    smoothness: ClassVar[float] = 2.0
    lipschitz: ClassVar[float] = math.inf

    def value_and_residual(self, scores: Any, target: Any, weight: Any) -> tuple[float, Any]:
        """Return the weighted mean loss and ``-2 weight target max(0, 1 - y z)``."""
        short = clipped(1.0 - target * scores, low=0.0)
        slope = short * by_entry(weight)
        return total(short * slope), -2.0 * target * slope

    def curvature(self, residual: Any, target: Any, weight: Any) -> Any:
        """Return twice the weight where the margin is below one, and zero elsewhere."""
        xp = namespace(residual)
        return xp.where(residual != 0.0, 2.0 * by_entry(weight), 0.0)

    def conjugate(self, theta: Any, target: Any, weight: Any) -> float:
        """Return ``sum y theta + theta**2 / (4 w)`` where ``y theta`` is at most zero."""
        weight = by_entry(weight)
        margins = self._margins(theta, target, weight)
        if margins is None:
            return math.inf
        weight = namespace(theta).broadcast_to(weight, theta.shape)
        return total(margins * (0.25 * ratio(margins, weight) - 1.0))

    def prox_conjugate(self, theta: Any, step: Any, target: Any, weight: Any) -> Any:
        """Return ``2 w (theta - step y) / (2 w + step)``, zero where that has the sign of ``y``."""
        twice = 2.0 * by_entry(weight)
        margins = twice / (twice + step) * (step - target * theta)
        return -target * clipped(margins, low=0.0)

    def _bounds(self, target: Any, weight: Any) -> tuple[Any, Any]:
        xp = namespace(target)
        far = xp.full_like(target, math.inf)
        return xp.where(target > 0.0, -far, 0.0), xp.where(target > 0.0, 0.0, far)

    def box_dual(self, target: Any, weight: Any) -> BoxDual:
        """Return the half of a parabola."""
        weight = by_entry(weight) + 0.0 * target
        none = 0.0 * target
        return BoxDual(target, 0.5 / weight, none, *self._bounds(target, weight))


@dataclass
class Logistic(SmoothScalar, _Binary):
    r"""The logistic loss :math:`\ln(1 + \exp(-y z))` for ``y`` of -1 or +1, summed over outputs.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Logistic()
    >>> target = loss.encode(np.array([1, -1]), 1, np.zeros((2, 1)))
    >>> value, _ = loss.value_and_residual(np.zeros((2, 1)), target, np.full(2, 0.5))
    >>> bool(np.isclose(value, np.log(2)))
    True
    """

    smoothness: ClassVar[float] = 0.25
    lipschitz: ClassVar[float] = 1.0

    def value_and_residual(self, scores: Any, target: Any, weight: Any) -> tuple[float, Any]:
        """Return the weighted mean loss and ``-weight target / (1 + exp(y z))``."""
        xp = namespace(scores)
        weight = by_entry(weight)
        margins = target * scores
        small = xp.exp(-xp.abs(margins))
        losses = clipped(-margins, low=0.0) + xp.log1p(small)
        wrong = xp.where(margins > 0.0, small, 1.0) / (1.0 + small)
        return total(losses * weight), -target * wrong * weight

    def curvature(self, residual: Any, target: Any, weight: Any) -> Any:
        """Return ``weight * p (1 - p)``, read off the residual, which is ``weight * p`` in size."""
        size = namespace(residual).abs(residual)
        return size - size * (size * inverse(by_entry(weight)))

    def conjugate(self, theta: Any, target: Any, weight: Any) -> float:
        """Return ``sum Q ln(Q / w) + (w - Q) ln(1 - Q / w)`` with ``Q = -y theta``."""
        xp = namespace(theta)
        weight = by_entry(weight)
        margins = self._margins(theta, target, weight)
        if margins is None:
            return math.inf
        part = margins * inverse(weight)
        rest = clipped(1.0 - part, low=0.0)
        least = float(xp.finfo(theta.dtype).smallest_normal)
        entropy = part * xp.log(clipped(part, low=least))
        entropy = entropy + rest * xp.log(clipped(rest, low=least))
        return total(entropy * weight)

    def prox_conjugate(self, theta: Any, step: Any, target: Any, weight: Any) -> Any:
        """Return ``-w y q`` with ``ln(q / (1 - q)) + (w / step) q + y theta / step = 0``."""
        xp = namespace(theta)
        weight = by_entry(weight)
        rate = xp.broadcast_to(weight / step, theta.shape)
        return -target * weight * damped_logistic(target * theta / step, rate)

    def proba(self, scores: Any) -> Any:
        """Return the probability of +1 for each score."""
        return logistic(-scores)
