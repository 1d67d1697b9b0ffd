"""Regression losses: the squared loss, and losses that grow more slowly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from mixnorm._array import Array
from mixnorm.losses.box import Box, BoxLoss, SmoothBoxLoss


@dataclass
class Squared(SmoothBoxLoss):
    r"""Half the squared residual, summed over outputs: :math:`\frac12 \|z - y\|_2^2`.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Squared()
    >>> target = loss.encode(np.array([[1.0], [3.0]]), 1, np.zeros((2, 1)))
    >>> loss.value_and_residual(np.zeros((2, 1)), target, np.full(2, 0.5))[0]
    2.5
    """

    name: ClassVar[str] = "squared"
    degree: ClassVar[int] = 2
    # The derivative is the distance itself, without bounds.
    box = Box(curvature=1.0)


@dataclass
class Absolute(BoxLoss):
    r"""The absolute residual, summed over outputs: :math:`\|z - y\|_1`.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Absolute()
    >>> target = loss.encode(np.array([1.0, -3.0]), 1, np.zeros((2, 1)))
    >>> loss.value_and_residual(np.zeros((2, 1)), target, np.full(2, 0.5))[0]
    2.0
    """

    name: ClassVar[str] = "absolute"
    degree: ClassVar[int] = 1
    # The derivative is the sign of the distance, anything from -1 to 1 at zero.
    box = Box(low=-1.0, high=1.0)


@dataclass
class Huber(SmoothBoxLoss):
    r"""Huber's loss: square for residuals up to ``delta``, linear beyond, summed over outputs.

    :math:`\frac12 r^2` where :math:`|r| \le \delta`, and :math:`\delta |r| - \frac12 \delta^2`
    beyond, with :math:`r = z - y`.

    Parameters
    ----------
    delta : float, default=1.0
        The size of a residual from which the loss is linear.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Huber(delta=2.0)
    >>> target = loss.encode(np.array([1.0, -3.0]), 1, np.zeros((2, 1)))
    >>> loss.value_and_residual(np.zeros((2, 1)), target, np.full(2, 0.5))[0]
    2.25
    """

    name: ClassVar[str] = "huber"
    degree: ClassVar[int] = 2
    scaled_parameter: ClassVar[str] = "delta"
    delta: float = 1.0

    @property
    def box(self) -> Box:
        """The parabola between ``-delta`` and ``delta``."""
        return Box(curvature=1.0, low=-self.delta, high=self.delta)

    def encode(self, y: Array, n_outputs: int, like: Array) -> Any:
        """Check ``delta``, and return targets of shape ``(n_samples, n_outputs)``."""
        if not 0.0 < self.delta < math.inf:
            raise ValueError(
                f"delta={self.delta!r} must be positive and finite; "
                "losses.Squared has no linear part, losses.Absolute no quadratic part."
            )
        return super().encode(y, n_outputs, like)


@dataclass
class EpsilonInsensitive(BoxLoss):
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

    name: ClassVar[str] = "epsilon_insensitive"
    degree: ClassVar[int] = 1
    scaled_parameter: ClassVar[str] = "epsilon"
    epsilon: float = 0.1

    @property
    def box(self) -> Box:
        """The lines between minus one and one."""
        return Box(kink=self.epsilon, low=-1.0, high=1.0)

    def encode(self, y: Array, n_outputs: int, like: Array) -> Any:
        """Check ``epsilon``, and return targets of shape ``(n_samples, n_outputs)``."""
        if not 0.0 <= self.epsilon < math.inf:
            raise ValueError(f"epsilon={self.epsilon!r} must be zero or more, and finite.")
        return super().encode(y, n_outputs, like)
