"""Hinge losses on class labels: Crammer and Singer's, and its square."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from mixnorm._array import Array, device_of, namespace
from mixnorm.losses import codes
from mixnorm.losses.arrays import Numbers, clip, ratio, total
from mixnorm.losses.labels import Joint, Labels, find_outside, subtract_level


class _MulticlassHinge(Joint):
    """The base of both losses: the class that violates the margin most, and the best constant."""

    # The class that violates the margin most may change from one score to the next, so that the
    # derivative of the square jumps too.
    smoothness: ClassVar[float] = math.inf
    _no_probabilities: ClassVar[str] = (
        "has no class probabilities; losses.MultinomialLogistic and losses.MarginSoftmax have them."
    )

    def _hinge_and_slope(self, scores: Array, target: Labels) -> tuple[Any, Any]:
        """Return each row's hinge loss, and its derivative ``onehot(worst) - onehot(label)``."""
        xp = namespace(scores)
        # 1[r != y] + z_r - z_y; it is zero at the label, so that the largest is never negative.
        excess = scores - target.pick(scores)[:, None] + (1.0 - target.one_hot)
        worst = xp.argmax(excess, axis=1)
        classes = xp.arange(scores.shape[1], dtype=worst.dtype, device=device_of(scores))
        # A comparison instead of an index: not every array library assigns by index. Transposed for
        # the layout of the scores.
        chosen = xp.astype(classes[:, None] == worst[None, :], scores.dtype).T
        return xp.max(excess, axis=1), chosen - target.one_hot

    def best_constant(self, target: Labels, weight: Array) -> tuple[Any, Any]:
        """Return the best scores that are the same for all samples, and the dual point there.

        Only a class with more than half of the weight gets another score than the others. The dual
        point is a circulation between the classes: how much flows from each class to each other
        (:eq:`constant-flows`).
        """
        xp = namespace(weight)
        classes = xp.sum(weight[:, None] * target.one_hot, axis=0)
        most = float(xp.max(classes))
        leads = (classes == most) & (most > 0.5)
        height, flows = self._height_and_flows(classes, leads, most)
        # What flows out of a class is divided among its rows in proportion to their weights.
        shares = _circulation(flows) * ratio(xp.ones_like(classes), classes)[:, None]
        theta = (target.one_hot @ shares) * weight[:, None]
        return xp.where(leads, height, 0.0), _close_rows(theta * (1.0 - target.one_hot), target)

    def _height_and_flows(self, classes: Array, leads: Array, most: float) -> tuple[float, Any]:
        """Return how far the leading class is above the others, and what leaves each class."""
        raise NotImplementedError


@dataclass
class MulticlassHinge(_MulticlassHinge):
    r"""Crammer and Singer's hinge loss, :math:`\max_r (1[r \ne y] - z_y + z_r)`.

    References
    ----------
    K. Crammer, Y. Singer, "On the algorithmic implementation of multiclass kernel-based vector
    machines", 2001.

    Examples
    --------
    >>> import numpy as np
    >>> loss = MulticlassHinge()
    >>> scores = np.array([[2.0, 0.0, 0.0], [0.0, 0.5, 0.0]])
    >>> target = loss.encode(np.array([0, 2]), 3, scores)
    >>> loss.value_and_residual(scores, target, np.full(2, 0.5))[0]
    0.75
    """

    name: ClassVar[str] = "hinge"
    row_code: ClassVar[int | None] = codes.MULTICLASS_HINGE
    lipschitz: ClassVar[float] = math.sqrt(2.0)

    def value_and_residual(self, scores: Array, target: Labels, weight: Array) -> tuple[float, Any]:
        """Return the weighted mean loss and ``weight * (onehot(worst) - onehot(label))``."""
        hinge, slope = self._hinge_and_slope(scores, target)
        return total(hinge * weight), slope * weight[:, None]

    def conjugate(self, theta: Array, target: Labels, weight: Array) -> float:
        """Return ``sum_i theta_iy`` where ``theta + weight onehot`` has rows in simplices.

        See :eq:`conjugate-sum` and the table after it.
        """
        if not target.shares(theta, weight)[1]:
            return math.inf
        return total(target.pick(theta))

    def prox_conjugate(self, theta: Array, step: Numbers, target: Labels, weight: Array) -> Any:
        """Return ``P - weight onehot`` with ``P`` a projection on simplices.

        The rows of ``theta + (weight - step) onehot`` are projected on simplices whose sizes are
        the weights (:eq:`simplex-level`).
        """
        xp = namespace(theta)
        weight = weight[:, None]
        moved = theta + (weight - step) * target.one_hot
        # The conjugate is theta_y on the domain, so its prox first moves the label's entry by the
        # step.
        share = subtract_level(moved, weight, xp.zeros_like(weight))
        # Where theta is far larger than its weight, rounding changes the sums.
        share = share * ratio(weight, xp.sum(share, axis=1, keepdims=True))
        return share - weight * target.one_hot

    def _height_and_flows(self, classes: Array, leads: Array, most: float) -> tuple[float, Any]:
        return 1.0, namespace(classes).where(leads, 1.0 - most, classes)


@dataclass
class MulticlassSquaredHinge(_MulticlassHinge):
    r"""The square of the multi-class hinge, :math:`\max_r (1[r \ne y] - z_y + z_r)^2`.

    With two classes it is smooth. With more classes its derivative jumps where two classes violate
    the margin equally, and engines that need second derivatives do not take it.

    Examples
    --------
    >>> import numpy as np
    >>> loss = MulticlassSquaredHinge()
    >>> scores = np.array([[2.0, 0.0, 0.0], [0.0, 0.5, 0.0]])
    >>> target = loss.encode(np.array([0, 2]), 3, scores)
    >>> loss.value_and_residual(scores, target, np.full(2, 0.5))[0]
    1.125
    """

    name: ClassVar[str] = "squared_hinge"
    lipschitz: ClassVar[float] = math.inf

    def value_and_residual(self, scores: Array, target: Labels, weight: Array) -> tuple[float, Any]:
        """Return the mean loss and ``2 weight hinge (onehot(worst) - onehot(label))``."""
        hinge, slope = self._hinge_and_slope(scores, target)
        return total(hinge * hinge * weight), slope * (2.0 * hinge * weight)[:, None]

    def conjugate(self, theta: Array, target: Labels, weight: Array) -> float:
        """Return ``sum_i S_i**2 / (4 w_i) - S_i``, with ``S`` the row sums off the labels.

        In the domain the entries at the labels are ``-S``, and all others zero or more. See
        :eq:`conjugate-sum` and the table after it.
        """
        xp = namespace(theta)
        others = theta * (1.0 - target.one_hot)
        # The domain is a cone without an upper bound, so that rounding is relative to the entries
        # as well.
        size = xp.where(weight > 0.0, weight + xp.max(xp.abs(theta), axis=1), 0.0)
        outside = find_outside(theta, others, size) | ((weight <= 0.0) & xp.any(theta, axis=1))
        if bool(xp.any(outside)):
            return math.inf
        # In double precision, because a class of tiny weight makes large numbers here.
        sums = xp.astype(xp.sum(clip(others, low=0.0), axis=1), xp.float64)
        weight = xp.astype(weight, xp.float64)
        return total(sums * (0.25 * ratio(sums, weight) - 1.0))

    def prox_conjugate(self, theta: Array, step: Numbers, target: Labels, weight: Array) -> Any:
        """Return ``max(0, theta - v)`` off the labels, and at them what makes rows sum to zero.

        The derivative vanishes if ``v = (1 + step / (2 w)) S + theta_y - step``, with ``S`` the sum
        of the entries off the label.
        """
        xp = namespace(theta)
        twice = 2.0 * weight[:, None]
        # The condition v = (1 + step / 2w) S + theta_y - step, solved for S = ridge (v - free):
        # sums that grow with the level, where the simplex has a fixed sum.
        ridge = twice / (twice + step)
        free = target.pick(theta)[:, None] - step
        others = xp.where(target.one_hot > 0.0, -xp.full_like(theta, math.inf), theta)
        return _close_rows(subtract_level(others, -ridge * free, ridge), target)

    def balance(self, theta: Array, target: Labels, weight: Array) -> Any:
        """Return a point of the conjugate's domain near ``theta`` whose columns sum to zero.

        If the sum of a column is too large, the rows of its class give to columns whose sums are
        too small, which they always can, each row in proportion to its weight.
        """
        xp = namespace(theta)
        classes = xp.sum(weight[:, None] * target.one_hot, axis=0)
        allowed = (weight[:, None] > 0.0) & (classes > 0.0) & (target.one_hot <= 0.0)
        others = xp.where(allowed, clip(theta, low=0.0), 0.0)
        # The columns sum to zero in total, because the rows do: what is too much in some is lacking
        # in others, and the rows of the former can give it, as their entries off the label have no
        # upper bound.
        sums = xp.sum(_close_rows(others, target), axis=0)
        part = ratio(weight, target.one_hot @ classes)  # of the weight of the row's class
        given = target.one_hot @ clip(sums, low=0.0) * part
        lacking = clip(-sums, low=0.0)
        taken = ratio(lacking, xp.broadcast_to(xp.sum(lacking), lacking.shape))
        return _close_rows(others + given[:, None] * taken, target)

    def _height_and_flows(self, classes: Array, leads: Array, most: float) -> tuple[float, Any]:
        if most <= 0.5:
            return 0.0, 2.0 * classes
        parts = namespace(classes).where(leads, 1.0 - most, classes)
        return 2.0 * most - 1.0, 4.0 * most * parts


def _close_rows(others: Array, target: Labels) -> Any:
    """Return entries off the labels, and at the labels what makes rows sum to zero."""
    return others - namespace(others).sum(others, axis=1, keepdims=True) * target.one_hot


def _circulation(flows: Array) -> Any:
    """Return how much flows from class to class, given what leaves and enters each class.

    Nothing flows from a class to itself, so that no flow may be larger than all others together.
    The flows are laid end to end on a circle, and each goes to what lies half a turn on.

    Examples
    --------
    >>> import numpy as np
    >>> _circulation(np.array([1.0, 2.0, 1.0]))
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    xp = namespace(flows)
    ends = xp.cumulative_sum(flows)
    starts, half = ends - flows, 0.5 * ends[-1]

    # The length that interval c, moved along the circle, has in common with interval r. Half a turn
    # on lies another class, because no flow is longer than half the circle.
    def overlap(shift: Array) -> Any:
        last = xp.minimum((ends + shift)[:, None], ends[None, :])
        return clip(last - xp.maximum((starts + shift)[:, None], starts[None, :]), low=0.0)

    return overlap(half) + overlap(-half)
