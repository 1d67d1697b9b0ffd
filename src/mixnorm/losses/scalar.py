"""The base of the losses of one score: targets, weights, and dual entries that sum to zero."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from mixnorm._array import Array, device_of, namespace
from mixnorm.losses.arrays import clip, ratio, slack
from mixnorm.losses.declared import Declared


class Scalar(Declared):
    """A loss of single scores, summed over the outputs."""

    shift_invariant: ClassVar[bool] = False

    def encode(self, y: Array, n_outputs: int, like: Array) -> Any:
        """Return targets of shape ``(n_samples, n_outputs)``, laid out output by output."""
        xp, device = namespace(like), device_of(like)
        y = xp.astype(xp.asarray(y, device=device), like.dtype)
        # The targets of one output lie together in memory, like scores and residuals.
        y = xp.reshape(y, (y.shape[0], n_outputs))
        return xp.reshape(xp.reshape(y.T, (-1,)), (n_outputs, y.shape[0])).T

    def predict(self, scores: Array) -> Any:
        """Return the scores."""
        return scores


class SmoothScalar(Scalar):
    """A scalar loss whose second derivatives all follow from its curvature."""

    smoothness: ClassVar[float]

    @property
    def constant_curvature(self) -> bool:
        """Whether the curvature does not depend on the scores."""
        return False

    def curvature(self, residual: Array, target: Array, weight: Array) -> Any:
        """Return the second derivative in each score."""
        raise NotImplementedError

    def hessian_form(
        self, direction: Array, residual: Array, target: Array, weight: Array
    ) -> float:
        """Return ``sum d**2 curvature``."""
        xp = namespace(residual)
        curvature = self.curvature(residual, target, weight)
        return float(xp.sum(direction * direction * curvature, dtype=xp.float64))

    def column_hessian(self, column: Array, residual: Array, target: Array, weight: Array) -> Any:
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
    """Return weights that broadcast with scores: weights of samples become a column."""
    return weight[:, None] if weight.ndim == 1 else weight


def inside(theta: Array, low: float, high: float, weight: Array) -> bool:
    """Tell whether dual entries lie between two bounds times the weights, up to rounding.

    Bounds may be infinite. Where the weight is zero, only zero is inside.
    """
    xp = namespace(theta)
    # An entry of weight zero has the conjugate of a zero loss, which is finite at zero only.
    off = (weight <= 0.0) & xp.astype(theta, xp.bool)
    if math.isfinite(low):
        off = off | (theta < low * weight - slack(weight))
    if math.isfinite(high):
        off = off | (theta > high * weight + slack(weight))
    return not bool(xp.any(off))


def spread_sums(theta: Array, weight: Array) -> Any:
    """Return ``theta`` minus the sum of each output, which is spread by weight."""
    xp = namespace(theta)
    weight = xp.broadcast_to(weight, theta.shape)
    theta = xp.where(weight > 0.0, theta, 0.0)
    sums = xp.broadcast_to(xp.sum(weight, axis=0), theta.shape)
    return theta - ratio(weight, sums) * xp.sum(theta, axis=0)


def balance_box(theta: Array, low: Array, high: Array, weight: Array) -> Any:
    """Return entries between two bounds, near ``theta``, that sum to zero in every output.

    See :eq:`balanced-box`. Zero has to lie between the bounds. Entries move towards one bound, each
    by the same part of its way; no entry moves towards an infinite bound. The sum of the ways is at
    least the sum to be removed, because zero lies between the bounds.
    """
    xp = namespace(theta)
    theta = xp.where(weight > 0.0, clip(theta, low=low, high=high), 0.0)
    # Entries come down towards the lower bound if their sum is positive, and go up otherwise. With
    # an infinite bound some entries have no such part; those with a finite way take it all.
    excess = xp.sum(theta, axis=0)
    bound = xp.where(excess > 0.0, low, high)
    way = xp.where((weight > 0.0) & xp.isfinite(bound), theta - bound, 0.0)
    total = xp.sum(way, axis=0)
    some = total != 0.0
    # At most one by the argument above, up to rounding.
    part = clip(xp.where(some, excess / xp.where(some, total, 1.0), 0.0), low=0.0, high=1.0)
    return clip(theta - part * way, low=low, high=high)
