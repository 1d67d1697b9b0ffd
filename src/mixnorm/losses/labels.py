"""The base of the losses on class labels: targets, and the geometry of their duals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from mixnorm._array import Array, device_of, epsilon, namespace
from mixnorm.losses.arrays import clip, ratio, slack
from mixnorm.losses.declared import Declared


@dataclass(frozen=True)
class Labels:
    """Encoded class labels.

    Parameters
    ----------
    one_hot : array of shape (n_samples, n_classes)
        One at the label of each row, zero elsewhere.
    position : array of int of shape (n_samples,)
        Where the label's entry lies in the scores, flattened output by output.
    ones : array of shape (n_classes,)
        Ones.
    """

    one_hot: Array
    position: Array
    ones: Array

    def stow(self, keep: Callable[[Any], Any]) -> Labels:
        """Return the labels with their one-hot rows where a function puts them."""
        return replace(self, one_hot=keep(self.one_hot))

    def pick(self, scores: Array) -> Any:
        """Return the label's entry of each row."""
        xp = namespace(scores)
        return xp.take(xp.reshape(scores.T, (-1,)), self.position)

    def shares(self, theta: Array, weight: Array) -> tuple[Any, bool]:
        """Return ``theta + weight onehot``, clipped at zero, and whether its rows lie in simplices.

        The dual points of the hinge and of the soft-max losses are ``weight * (p - onehot)`` with
        ``p`` in the unit simplex.
        """
        found = theta + weight[:, None] * self.one_hot
        outside = find_outside(theta, found, weight)
        return clip(found, low=0.0), not bool(namespace(theta).any(outside))


class Joint(Declared):
    """A loss of all scores of a sample and its class label."""

    shift_invariant: ClassVar[bool] = True
    is_classifier: ClassVar[bool] = True

    def encode(self, y: Array, n_outputs: int, like: Array) -> Labels:
        """Prepare labels ``0 .. n_outputs - 1``: their one-hot rows and flat positions."""
        xp, device = namespace(like), device_of(like)
        y = xp.astype(xp.asarray(y, device=device), xp.int64)
        classes = xp.arange(n_outputs, dtype=xp.int64, device=device)
        # Built as (output, sample) and transposed: losses go through one output at a time, whose
        # samples then lie together in memory.
        one_hot = xp.astype(classes[:, None] == y[None, :], like.dtype)
        rows = xp.arange(y.shape[0], dtype=xp.int64, device=device)
        ones = xp.ones((n_outputs,), dtype=like.dtype, device=device)
        return Labels(one_hot.T, y * y.shape[0] + rows, ones)

    def predict(self, scores: Array) -> Any:
        """Return the index of the largest score of each row."""
        return namespace(scores).argmax(scores, axis=1)

    def balance(self, theta: Array, target: Labels, weight: Array) -> Any:
        """Return a point of the conjugate's domain near ``theta`` whose columns sum to zero.

        ``P = theta + weight onehot`` has to lie in the transport polytope
        :eq:`transport-polytope`: its rows sum to the weights, its columns to the weights of the
        classes. It is rounded to that polytope: rows are scaled to their sums, columns that are too
        large are scaled down, and a matrix of rank one adds what rows and columns then lack
        (Altschuler, Weed and Rigollet, 2017, algorithm 2).
        """
        xp = namespace(theta)
        mass = weight[:, None] * target.one_hot
        share = clip(theta + mass, low=0.0)
        total = xp.sum(share, axis=1)
        # The sum of such a row is rounding, and scaling it to its weight would magnify noise.
        empty = total <= epsilon(theta) * weight
        share = share * ratio(xp.where(empty, 0.0, weight), total)[:, None]
        if bool(xp.any(empty)):  # such a row has nothing to scale; all its weight goes to the label
            share = xp.where(empty[:, None], mass, share)
        classes = xp.sum(mass, axis=0)
        columns = xp.sum(share, axis=0)
        # Scaling columns down only frees weight; what is freed is added by the rank-one matrix
        # below, so that nothing becomes negative and all sums are exact but for rounding.
        share = share * ratio(xp.minimum(classes, columns), columns)[None, :]
        rows = clip(weight - xp.sum(share, axis=1), low=0.0)
        lacking = clip(classes - xp.sum(share, axis=0), low=0.0)
        lacking = ratio(lacking, xp.broadcast_to(xp.sum(lacking), lacking.shape))
        return (share + rows[:, None] * lacking[None, :]) - mass


def find_outside(theta: Array, entries: Array, size: Array) -> Any:
    """Return which rows of ``theta`` do not sum to zero, or have negative ``entries``.

    Rounding is allowed for, relative to the ``size`` of each row.
    """
    xp = namespace(theta)
    allowed = slack(size, theta.shape[1])
    outside = xp.abs(xp.sum(theta, axis=1)) > allowed
    return outside | (xp.min(entries, axis=1) < -allowed)


def subtract_level(values: Array, cap: Array, ridge: Array) -> Any:
    """Return ``max(0, values - v)`` with ``v`` such that its rows sum to ``cap + ridge v``.

    The levels ``v`` are those of :eq:`simplex-level`, which has ``ridge`` zero.

    ``cap`` and ``ridge`` have shape ``(n_samples, 1)``, and ``ridge`` is zero or more. With zero
    this is the projection on the simplex of size ``cap``. Rows without a value above
    ``-cap / ridge`` become zero. Values of minus infinity are left out.
    """
    xp = namespace(values)
    top = xp.max(values, axis=1, keepdims=True)
    values = values - top  # relative to the largest value, a cap far below it keeps its digits
    cap = cap + ridge * top
    sums = xp.cumulative_sum(xp.sort(values, axis=1, descending=True), axis=1)
    count = 1.0 + xp.arange(values.shape[1], dtype=values.dtype, device=device_of(values))
    # If the j largest values are above the level, the level is the j-th of these candidates. To
    # leave out a value above the level, or to count one below it, makes a candidate smaller:
    # the largest candidate is the level.
    level = xp.max((sums - cap) / (count + ridge), axis=1, keepdims=True)
    return clip(values - level, low=0.0)
