"""What the losses of one score share: targets, weights, and dual entries that sum to zero."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from mixnorm._array import Array, device_of, namespace
from mixnorm.losses.arrays import clipped, ratio, slack
from mixnorm.losses.declared import Declared


class Scalar(Declared):
    """A loss that is taken score by score, and summed over the outputs."""

    shift_invariant: ClassVar[bool] = False

    def encode(self, y: Array, n_outputs: int, like: Array) -> Any:
        """Prepare targets of shape ``(n_samples, n_outputs)``, laid out output by output."""
        xp, device = namespace(like), device_of(like)
        y = xp.astype(xp.asarray(y, device=device), like.dtype)
        y = xp.reshape(y, (y.shape[0], n_outputs))
        return xp.reshape(xp.reshape(y.T, (-1,)), (n_outputs, y.shape[0])).T

    def proba(self, scores: Array) -> Any:
        """Raise: a regression loss has no class probabilities."""
        name = type(self).__name__
        raise TypeError(f"{name} is a regression loss and has no class probabilities.")

    def predict(self, scores: Array) -> Any:
        """Return the scores."""
        return scores


class SmoothScalar(Scalar):
    """A scalar loss with second derivatives, all of which follow from the curvature."""

    smoothness: ClassVar[float]

    @property
    def constant_curvature(self) -> bool:
        """Whether the curvature does not depend on the scores."""
        return False

    def curvature(self, residual: Array, target: Any, weight: Array) -> Any:
        """Return the second derivative in each score."""
        raise NotImplementedError

    def hessian_form(self, direction: Array, residual: Array, target: Any, weight: Array) -> float:
        """Return ``sum d**2 curvature``."""
        xp = namespace(residual)
        curvature = self.curvature(residual, target, weight)
        return float(xp.sum(direction * direction * curvature, dtype=xp.float64))

    def column_hessian(self, column: Array, residual: Array, target: Any, weight: Array) -> Any:
        """Return the diagonal matrix of ``sum_i x_i^2 curvature_ir``."""
        xp = namespace(residual)
        curvature = self.curvature(residual, target, weight)
        diagonal = xp.sum(curvature.T * (column * column), axis=1)
        eye = xp.eye(residual.shape[1], dtype=residual.dtype, device=device_of(residual))
        return eye * diagonal

    def max_norm_smoothness(self, n_outputs: int) -> float:
        """Return half the smoothness times the number of outputs."""
        return 0.5 * self.smoothness * n_outputs


def by_entry(weight: Array) -> Any:
    """Return weights that broadcast with scores: one per sample becomes a column."""
    return weight[:, None] if weight.ndim == 1 else weight


def inside(theta: Array, low: float, high: float, weight: Array) -> bool:
    """Tell whether dual entries lie between two bounds times the weights, but for rounding.

    Bounds may be infinite; yet where the weight is zero, only zero is inside.
    """
    xp = namespace(theta)
    off = (weight <= 0.0) & (theta != 0.0)
    if math.isfinite(low):
        off = off | (theta < low * weight - slack(weight))
    if math.isfinite(high):
        off = off | (theta > high * weight + slack(weight))
    return not bool(xp.any(off))


def spread_sums(theta: Array, weight: Array) -> Any:
    """Return ``theta`` less each output's sum, spread by weight."""
    xp = namespace(theta)
    weight = xp.broadcast_to(weight, theta.shape)
    theta = xp.where(weight > 0.0, theta, 0.0)
    sums = xp.broadcast_to(xp.sum(weight, axis=0), theta.shape)
    return theta - ratio(weight, sums) * xp.sum(theta, axis=0)


def balance_box(theta: Array, low: Any, high: Any, weight: Array) -> Any:
    """Return entries between two bounds, near ``theta``, that sum to zero in every output.

    Zero is between the bounds. Entries are moved towards one bound, each by the same part of its
    way; towards a bound at infinity nothing moves. As the bounds leave room for zero, the sum of
    the ways is at least the sum to be cured.
    """
    xp = namespace(theta)
    theta = xp.where(weight > 0.0, clipped(theta, low=low, high=high), 0.0)
    excess = xp.sum(theta, axis=0)
    bound = xp.where(excess > 0.0, low, high)
    way = xp.where((weight > 0.0) & xp.isfinite(bound), theta - bound, 0.0)
    total = xp.sum(way, axis=0)
    some = total != 0.0
    part = clipped(xp.where(some, excess / xp.where(some, total, 1.0), 0.0), low=0.0, high=1.0)
    return clipped(theta - part * way, low=low, high=high)
