r"""Losses whose conjugate is a parabola with a kink, between two bounds, which determines the rest.

With weight one, and ``u`` the distance of the score from the target, such a loss is

.. math:: \ell(u) = \max_{low \le \theta \le high} u \theta - c \theta^2 / 2 - k |\theta|.

The maximum is at ``theta = clip(s / c, low, high)`` with ``s = sign(u) max(0, |u| - k)``; if the
curvature ``c`` is zero, it is at the bound on the side of ``s``. This ``theta`` is the derivative
of the loss, and the loss is ``(s - c theta / 2) theta`` (:eq:`box-loss`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any, ClassVar

from mixnorm._array import Array, namespace
from mixnorm.losses import codes
from mixnorm.losses.arrays import Numbers, clip, ratio, total
from mixnorm.losses.scalar import Scalar, SmoothScalar, balance_box, by_entry, inside, spread_sums


@dataclass(frozen=True)
class Box:
    """The conjugate of a loss of one distance, for weight one, with ``low <= 0 <= high``."""

    curvature: float = 0.0
    kink: float = 0.0
    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True)
class BoxDual:
    """A conjugate that is a parabola with a kink at zero, entry by entry, between two bounds.

    Its value is ``slope theta + curvature theta**2 / 2 + kink |theta|`` for ``low <= theta <=
    high``, and infinite elsewhere. A loss with such a conjugate returns it from
    ``box_dual(target, weight)``, and engines then have one more way to minimise the dual.

    Attributes
    ----------
    slope, curvature, kink, low, high : array
        Arrays of the shape of the targets; bounds may be infinite.
    """

    slope: Array
    curvature: Array
    kink: Array
    low: Array
    high: Array


class BoxLoss(Scalar):
    """A loss of the difference between score and target; a subclass defines its ``box``."""

    row_code: ClassVar[int | None] = codes.BOX

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # A solver that trusts ``box_dual`` would otherwise solve the dual of the base class.
        if "conjugate" in vars(cls) and "box_dual" not in vars(cls):
            cls.box_dual = None  # type: ignore[assignment]  # a conjugate of its own may have another form

    @property
    def box(self) -> Box:
        """The conjugate, for weight one."""
        raise NotImplementedError

    @property
    def row_constants(self) -> tuple[float, ...]:
        """The constants of the box."""
        return self.box.curvature, self.box.kink, self.box.low, self.box.high

    @property
    def smoothness(self) -> float:
        """The inverse of the curvature of the conjugate."""
        return 1.0 / self.box.curvature if self.box.curvature > 0.0 else math.inf

    @property
    def lipschitz(self) -> float:
        """The size of the bound that is farther from zero."""
        return max(-self.box.low, self.box.high)

    # --- the distance from the target, which losses of margins measure in another way

    def distance(self, scores: Array, target: Array) -> Any:
        """Return the distances of the scores from their targets."""
        return scores - target

    def convert_slopes(self, theta: Array, target: Array) -> Any:
        """Convert derivatives in scores to derivatives in distances, or back."""
        return theta

    def origin(self, target: Array) -> Any:
        """Return the slope of the conjugate as a function of derivatives in distances."""
        return target

    def bounds(self, target: Array, weight: Array) -> tuple[Any, Any]:
        """Return the least and the largest dual entries."""
        return _times(self.box.low, weight), _times(self.box.high, weight)

    def _full_curvature(self, weight: Array) -> Any:
        """Return the curvature of the loss where neither a bound nor the kink is active."""
        weight = by_entry(weight)
        return weight if self.box.curvature == 1.0 else weight / self.box.curvature

    # --- all else follows from the box

    def value_and_residual(self, scores: Array, target: Array, weight: Array) -> tuple[float, Any]:
        """Return the weighted mean loss and its derivative in the scores."""
        box = self.box
        # From here on the formulas of the module's docstring, with s in place of the distance.
        s = _soft(self.distance(scores, target), box.kink)
        # With a bound at zero the derivative is zero on that side, and so must be the loss.
        if 0.0 in (box.low, box.high):
            s = clip(s, low=_zero_or_none(box.low), high=_zero_or_none(box.high))
        if box.curvature == 0.0:
            residual = _side(s, box.low, box.high) * by_entry(weight)
            return total(s * residual), self.convert_slopes(residual, target)
        low, high = (_some(box.curvature * bound) for bound in (box.low, box.high))
        # c theta, clipped before the division by c: a curvature of one then costs no operation.
        kept = clip(s, low=low, high=high)
        residual = kept * self._full_curvature(weight)
        free = low is None and high is None
        # (s - c theta / 2) theta; without bounds c theta is s itself.
        value = 0.5 * total(s * residual) if free else total((s - 0.5 * kept) * residual)
        return value, self.convert_slopes(residual, target)

    def conjugate(self, theta: Array, target: Array, weight: Array) -> float:
        """Return ``sum slope theta + c theta**2 / (2 w) + kink |theta|`` between the bounds.

        See :eq:`conjugate-sum` and the table after it.
        """
        xp, box, weight = namespace(theta), self.box, by_entry(weight)
        theta, slope = self.convert_slopes(theta, target), self.origin(target)
        if not inside(theta, box.low, box.high, weight):
            return math.inf
        if box.curvature > 0.0:
            weight = xp.broadcast_to(weight, theta.shape)
            slope = (0.5 * box.curvature) * ratio(theta, weight) + slope
        value = total(theta * slope)
        return value + box.kink * total(xp.abs(theta)) if box.kink > 0.0 else value

    def prox_conjugate(self, theta: Array, step: Numbers, target: Array, weight: Array) -> Any:
        """Return ``w (theta - step slope) / (w + c step)``, shrunk by the kink, and clipped.

        See :eq:`box-prox`.
        """
        weight = by_entry(weight)
        low, high = (
            _times(bound, weight) if math.isfinite(bound) else None
            for bound in (self.box.low, self.box.high)
        )
        # No variable holds the unclipped array, so that NumPy can reuse its memory.
        return self.convert_slopes(
            clip(self._unbounded_prox(theta, step, target, weight), low, high), target
        )

    def _unbounded_prox(self, theta: Array, step: Numbers, target: Array, weight: Array) -> Any:
        """Return the prox of the conjugate without its bounds."""
        if self.box.curvature == 0.0:
            return self._line_prox(theta, step, target)
        share = weight / (weight + self.box.curvature * step)
        return share * self._line_prox(theta, step, target)

    def _line_prox(self, theta: Array, step: Numbers, target: Array) -> Any:
        """Return the prox of the conjugate without its bounds and its curvature."""
        return _soft(
            self.convert_slopes(theta, target) - step * self.origin(target), self.box.kink, step
        )

    def balance(self, theta: Array, target: Array, weight: Array) -> Any:
        """Return a point of the conjugate's domain near ``theta`` whose columns sum to zero."""
        weight = by_entry(weight)
        if math.isinf(self.box.low) and math.isinf(self.box.high):
            return spread_sums(theta, weight)
        low, high = self.bounds(target, weight)
        return balance_box(theta, low, high, weight)

    def box_dual(self, target: Array, weight: Array) -> BoxDual:
        """Return the conjugate entry by entry."""
        # Zeros of the targets' shape, dtype and device, to which the constants are broadcast.
        none = 0.0 * target
        weight = by_entry(weight) + none
        curvature = self.box.curvature / weight if self.box.curvature > 0.0 else none
        low, high = self.bounds(target, weight)
        return BoxDual(target, curvature, none + self.box.kink, low, high)


class SmoothBoxLoss(SmoothScalar, BoxLoss):
    """A loss whose box has a curvature, and which therefore has second derivatives."""

    @property
    def constant_curvature(self) -> bool:
        """Whether the box has neither a bound nor a kink."""
        return self.box == Box(self.box.curvature)

    def curvature(self, residual: Array, target: Array, weight: Array) -> Any:
        """Return the weight over ``c`` where neither a bound nor the kink is active, else zero."""
        box, full, weight = self.box, self._full_curvature(weight), by_entry(weight)
        if self.constant_curvature:
            return full
        theta, free = self.convert_slopes(residual, target), []
        # Where the derivative is zero or at a bound, it stays so under a small change of the score:
        # the loss is linear there, or zero, and has no curvature.
        if box.kink > 0.0 or 0.0 in (box.low, box.high):
            free.append(theta != 0.0)
        if _some(box.low) is not None:
            free.append(theta > box.low * weight)
        if _some(box.high) is not None:
            free.append(theta < box.high * weight)
        return namespace(residual).where(reduce(and_, free), full, 0.0)


def _soft(values: Array, kink: float, step: Numbers = 1.0) -> Any:
    """Return values moved towards zero by ``kink * step``; the step is a number or an array."""
    if kink == 0.0:
        return values
    # Moving towards zero by at most the kink takes away the part between -kink and kink.
    return values - clip(values, low=-(kink * step), high=kink * step)


def _side(values: Array, low: float, high: float) -> Any:
    """Return the bound on the side of each value, and zero at zero."""
    xp = namespace(values)
    sign = xp.sign(values)
    # Symmetric bounds, or one at zero, where ``s`` has no negative entries left: one product
    # instead of three.
    if low in (0.0, -high):
        return sign if high == 1.0 else high * sign
    return xp.where(sign > 0.0, high * sign, -low * sign)


def _some(bound: float) -> float | None:
    """Return the bound if it is neither zero nor infinite, else None."""
    return bound if 0.0 < abs(bound) < math.inf else None


def _zero_or_none(bound: float) -> float | None:
    return 0.0 if bound == 0.0 else None


def _times(bound: float, weight: Array) -> Any:
    """Return a bound times the weights; an infinite bound stays infinite for zero weights."""
    if math.isinf(bound):
        return namespace(weight).full_like(weight, bound)
    return bound * weight
