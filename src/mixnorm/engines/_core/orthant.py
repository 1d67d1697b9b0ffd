"""Steps for penalties with kinks: weights keep their signs or become exactly zero.

Away from zero, ``kink * |w|`` is linear, so that the objective is smooth within one orthant. A
weight at zero moves to the side on which the objective falls, and stays at zero if it falls on
neither. A weight that would change its sign stops at zero (Andrew and Gao, "Scalable training of
L1-regularized log-linear models", 2007).
"""

from __future__ import annotations

from typing import Any

from mixnorm._array import Array, namespace


class Orthant:
    """The orthant in which the next step stays.

    Parameters
    ----------
    weights : array of shape (n_rows, n_outputs)
        The point at which the step begins.
    gradient : array of the same shape
        The gradient of the loss and the smooth part of the penalty.
    kinks : array of shape (n_rows, 1)
        The factor of ``|w|`` in each row; rows where it is zero have no kinks.

    Attributes
    ----------
    slope : array
        The gradient in the directions in which weights can move: zero for those that stay at zero.
    free : array of bool
        The weights that can move.
    """

    def __init__(self, weights: Array, gradient: Array, kinks: Array) -> None:
        xp = namespace(weights)
        sign = xp.sign(weights)
        # Away from zero the kink is a constant slope. At zero it takes up to its size from the
        # gradient, and what is left says to which side the objective falls.
        self._at_zero = (sign == 0.0) & (kinks > 0.0)
        self.slope = xp.where(self._at_zero, shrink(gradient, kinks), gradient + kinks * sign)
        self._sign = xp.where(self._at_zero, -xp.sign(self.slope), sign)
        # Kinks have one column; this spreads them over all outputs in any array library.
        self._bound = (kinks > 0.0) & xp.ones_like(self._at_zero)
        self.free = ~self._at_zero | (self.slope != 0.0)

    def align(self, step: Array) -> Any:
        """Return the step (to be subtracted) without the parts that leave zero on the wrong side.

        Along these parts the objective rises, so that it falls more steeply without them.
        """
        xp = namespace(step)
        return xp.where(self._at_zero & (step * self.slope <= 0.0), xp.zeros_like(step), step)

    def land(self, weights: Array) -> Any:
        """Return the weights, with zero in place of those that have changed their sign."""
        xp = namespace(weights)
        return xp.where(
            self._bound & (weights * self._sign <= 0.0), xp.zeros_like(weights), weights
        )

    def same_as(self, other: Orthant | None) -> bool:
        """Tell whether the same weights can move."""
        return other is not None and bool(namespace(self.free).all(self.free == other.free))


def shrink(gradient: Array, kinks: Array | float) -> Any:
    """Return the soft-thresholded gradient of weights at zero (:eq:`shrunk-gradient`)."""
    xp = namespace(gradient)
    left = xp.abs(gradient) - kinks
    return xp.where(left > 0.0, xp.sign(gradient) * left, xp.zeros_like(gradient))
