"""Steps for penalties with kinks: signs are kept, and weights end exactly at zero.

Between the kinks ``kink * |w|`` is linear, so that within one orthant the objective is smooth. A
weight that is zero enters the orthant into which the objective falls, or stays where it is if it
falls on neither side; a weight that would change its sign stops at zero (Andrew and Gao, "Scalable
training of L1-regularized log-linear models", 2007).
"""

from __future__ import annotations

from typing import Any

from mixnorm._array import Array, namespace


class Orthant:
    """The orthant in which the next step stays.

    Parameters
    ----------
    weights : array of shape (n_rows, n_outputs)
        Where the step begins.
    gradient : array of the same shape
        Of the loss and the smooth part of the penalty.
    kinks : array of shape (n_rows, 1)
        Weight of the magnitudes of each row; rows where it is zero are free of all this.

    Attributes
    ----------
    slope : array
        The gradient in the directions in which weights can move: zero for those that stay at zero.
    free : array of bool
        The weights that can move.
    """

    def __init__(self, weights: Any, gradient: Array, kinks: Any) -> None:
        xp = namespace(weights)
        sign = xp.sign(weights)
        self._at_zero = (weights == 0.0) & (kinks > 0.0)
        self.slope = xp.where(self._at_zero, shrunk(gradient, kinks), gradient + kinks * sign)
        self._sign = xp.where(self._at_zero, -xp.sign(self.slope), sign)
        self._bound = (kinks > 0.0) & xp.ones_like(self._at_zero)
        self.free = ~self._at_zero | (self.slope != 0.0)

    def aligned(self, step: Any) -> Any:
        """Return the step (to be subtracted) without the parts that leave zero the wrong way.

        They have the wrong sign beside the slope, so that without them it descends more steeply.
        """
        xp = namespace(step)
        return xp.where(self._at_zero & (step * self.slope <= 0.0), xp.zeros_like(step), step)

    def landed(self, weights: Any) -> Any:
        """Return the weights with those at zero that would have changed their sign."""
        xp = namespace(weights)
        return xp.where(
            self._bound & (weights * self._sign <= 0.0), xp.zeros_like(weights), weights
        )

    def same_as(self, other: Orthant | None) -> bool:
        """Tell whether the same weights can move."""
        return other is not None and bool(namespace(self.free).all(self.free == other.free))


def shrunk(gradient: Array, kinks: Any) -> Any:
    """Return the gradient less what the kinks at zero take of it: soft thresholding."""
    xp = namespace(gradient)
    left = xp.abs(gradient) - kinks
    return xp.where(left > 0.0, xp.sign(gradient) * left, xp.zeros_like(gradient))
