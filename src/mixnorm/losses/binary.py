"""Losses on the margin ``y z`` of targets that are -1 and +1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from mixnorm._array import Array, namespace
from mixnorm.losses import codes
from mixnorm.losses.arrays import Numbers, clip, inverse, total
from mixnorm.losses.box import Box, BoxLoss, SmoothBoxLoss
from mixnorm.losses.newton import damped_logistic, logistic
from mixnorm.losses.scalar import Scalar, SmoothScalar, balance_box, by_entry, inside


class _Binary(Scalar):
    """The base of these losses: targets and predictions."""

    is_binary: ClassVar[bool] = True
    _no_probabilities: ClassVar[str] = "has no class probabilities; losses.Logistic has them."

    def encode(self, y: Array, n_outputs: int, like: Array) -> Any:
        """Return targets -1 and +1 of shape ``(n_samples, n_outputs)``."""
        target = super().encode(y, n_outputs, like)
        xp = namespace(target)
        if not bool(xp.all((target == 1.0) | (target == -1.0))):
            wrong = target[(target != 1.0) & (target != -1.0)]
            raise ValueError(
                f"{type(self).__name__} takes targets -1 and +1, got {float(wrong[0]):g}. "
                "Encode two classes as -1 and +1; for more classes choose a loss on labels."
            )
        return target

    def predict(self, scores: Array) -> Any:
        """Return +1 or -1, the sign of each score, with +1 for zero."""
        xp = namespace(scores)
        return xp.where(scores >= 0.0, xp.ones_like(scores), -xp.ones_like(scores))


class MarginBox(_Binary, BoxLoss):
    """A loss of the distance ``1 - y z`` of margins from one; a subclass defines its ``box``."""

    row_code: ClassVar[int | None] = codes.MARGIN_BOX

    def distance(self, scores: Array, target: Array) -> Any:
        """Return how far the margins are below one."""
        return 1.0 - target * scores

    def convert_slopes(self, theta: Array, target: Array) -> Any:
        """Return ``-target theta``."""
        return -target * theta

    def origin(self, target: Array) -> float:
        """Return minus one: the distance is zero at a margin of one, for both targets."""
        return -1.0

    def bounds(self, target: Array, weight: Array) -> tuple[Any, Any]:
        """Return the least and the largest dual entries; a target of +1 swaps and negates them."""
        xp, (low, high) = namespace(target), super().bounds(target, weight)
        return xp.where(target > 0.0, -high, low), xp.where(target > 0.0, -low, high)


@dataclass
class Hinge(MarginBox):
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

    name: ClassVar[str] = "hinge"
    box = Box(low=0.0, high=1.0)


@dataclass
class SquaredHinge(SmoothBoxLoss, MarginBox):
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

    name: ClassVar[str] = "squared_hinge"
    box = Box(curvature=0.5, low=0.0)


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

    name: ClassVar[str] = "logistic"
    row_code: ClassVar[int] = codes.LOGISTIC
    smoothness: ClassVar[float] = 0.25
    lipschitz: ClassVar[float] = 1.0

    def value_and_residual(self, scores: Array, target: Array, weight: Array) -> tuple[float, Any]:
        """Return the weighted mean loss and ``-weight target / (1 + exp(y z))``."""
        xp = namespace(scores)
        weight = by_entry(weight)
        margins = target * scores
        # exp of minus a magnitude cannot overflow: ln(1 + exp(-m)) is max(0, -m) + ln(1 +
        # exp(-|m|)).
        small = xp.exp(-xp.abs(margins))
        losses = clip(-margins, low=0.0) + xp.log1p(small)
        wrong = xp.where(margins > 0.0, small, 1.0) / (1.0 + small)
        return total(losses * weight), -target * wrong * weight

    def curvature(self, residual: Array, target: Array, weight: Array) -> Any:
        """Return ``weight * p (1 - p)``, from the residual, whose size is ``weight * p``."""
        # With size = w p this is w p (1 - p). The inner product is taken first: size * inverse is
        # at most one, whereas size**2 of a tiny weight would vanish.
        size = namespace(residual).abs(residual)
        return size - size * (size * inverse(by_entry(weight)))

    def conjugate(self, theta: Array, target: Array, weight: Array) -> float:
        """Return ``sum Q ln(Q / w) + (w - Q) ln(1 - Q / w)`` with ``Q = -y theta``.

        The table after :eq:`conjugate-sum` has it for weight one.
        """
        xp = namespace(theta)
        weight = by_entry(weight)
        margins = -target * theta
        if not inside(margins, 0.0, 1.0, weight):
            return math.inf
        margins = clip(margins, low=0.0, high=weight)
        part = margins * inverse(weight)
        rest = clip(1.0 - part, low=0.0)
        # 0 ln 0 is 0: below the smallest normal number the logarithm is cut, and its product
        # vanishes.
        least = float(xp.finfo(theta.dtype).smallest_normal)
        entropy = part * xp.log(clip(part, low=least))
        entropy = entropy + rest * xp.log(clip(rest, low=least))
        return total(entropy * weight)

    def prox_conjugate(self, theta: Array, step: Numbers, target: Array, weight: Array) -> Any:
        """Return ``-w y q`` with ``ln(q / (1 - q)) + (w / step) q + y theta / step = 0``.

        See :eq:`damped-logistic`.
        """
        xp = namespace(theta)
        weight = by_entry(weight)
        rate = xp.broadcast_to(weight / step, theta.shape)
        return -target * weight * damped_logistic(target * theta / step, rate)

    def balance(self, theta: Array, target: Array, weight: Array) -> Any:
        """Return a point of the conjugate's domain near ``theta`` whose columns sum to zero."""
        xp, weight = namespace(target), by_entry(weight)
        # The residual of a target +1 lies between -w and 0, that of -1 between 0 and w.
        low = xp.where(target > 0.0, -weight, 0.0)
        return balance_box(theta, low, low + weight, weight)

    def proba(self, scores: Array) -> Any:
        """Return the probability of +1 for each score."""
        return logistic(-scores)
