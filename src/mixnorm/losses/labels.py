"""What the losses on class labels share: targets, and the geometry of their duals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mixnorm._array import Array, device_of, epsilon, namespace
from mixnorm.losses.arrays import clipped, ratio, slack
from mixnorm.losses.declared import Declared


@dataclass(frozen=True)
class Labels:
    """Class labels as the losses want them."""

    one_hot: Any
    position: Any  # where the label's entry lies in the flattened, output-by-output scores
    ones: Any  # one per class


class Joint(Declared):
    """A loss of all scores of a sample and its class label."""

    shift_invariant: ClassVar[bool] = True
    is_classifier: ClassVar[bool] = True

    def encode(self, y: Array, n_outputs: int, like: Array) -> Labels:
        """Prepare labels ``0 .. n_outputs - 1``: their one-hot rows and flat positions."""
        xp, device = namespace(like), device_of(like)
        y = xp.astype(xp.asarray(y, device=device), xp.int64)
        classes = xp.arange(n_outputs, dtype=xp.int64, device=device)
        one_hot = xp.astype(classes[:, None] == y[None, :], like.dtype)
        rows = xp.arange(y.shape[0], dtype=xp.int64, device=device)
        ones = xp.ones((n_outputs,), dtype=like.dtype, device=device)
        return Labels(one_hot.T, y * y.shape[0] + rows, ones)

    def predict(self, scores: Array) -> Any:
        """Return the index of the largest score of each row."""
        return namespace(scores).argmax(scores, axis=1)


def own(scores: Array, target: Labels) -> Any:
    """Return the label's entry of each row."""
    xp = namespace(scores)
    return xp.take(xp.reshape(scores.T, (-1,)), target.position)


def shares(theta: Array, target: Labels, weight: Array) -> tuple[Any, bool]:
    """Return ``theta + weight onehot``, clipped at zero, and whether its rows lie in simplices.

    The dual points of the hinge and of the soft-max losses are ``weight * (p - onehot)`` with
    ``p`` in the unit simplex.
    """
    xp = namespace(theta)
    found = theta + weight[:, None] * target.one_hot
    allowed = slack(weight, theta.shape[1])
    off = xp.abs(xp.sum(theta, axis=1)) > allowed
    off = off | (xp.min(found, axis=1) < -allowed)
    return clipped(found, low=0.0), not bool(xp.any(off))


def balance_shares(theta: Array, target: Labels, weight: Array) -> Any:
    """Return a point near ``theta`` whose rows keep to their simplices and columns sum to zero.

    ``P = theta + weight onehot`` has to have rows that sum to the weights and columns that sum to
    the weights of the classes. It is rounded to that transport polytope: rows are scaled to their
    sums, columns that are too large are scaled down, and what rows and columns then lack is
    filled up by a matrix of rank one (Altschuler, Weed and Rigollet, 2017, algorithm 2).
    """
    xp = namespace(theta)
    mass = weight[:, None] * target.one_hot
    share = clipped(theta + mass, low=0.0)
    total = xp.sum(share, axis=1)
    empty = total <= epsilon(theta) * weight
    share = share * ratio(xp.where(empty, 0.0, weight), total)[:, None]
    if bool(xp.any(empty)):  # nothing to scale: such a row is far off, and is put at its label
        share = xp.where(empty[:, None], mass, share)
    classes = xp.sum(mass, axis=0)
    columns = xp.sum(share, axis=0)
    share = share * ratio(xp.minimum(classes, columns), columns)[None, :]
    rows = clipped(weight - xp.sum(share, axis=1), low=0.0)
    lacking = clipped(classes - xp.sum(share, axis=0), low=0.0)
    lacking = ratio(lacking, xp.broadcast_to(xp.sum(lacking), lacking.shape))
    return (share + rows[:, None] * lacking[None, :]) - mass


def above_level(values: Any, cap: Any, ridge: Any) -> Any:
    """Return ``max(0, values - v)`` with ``v`` such that its rows sum to ``cap + ridge v``.

    ``cap`` and ``ridge`` have shape ``(n_samples, 1)``, and the latter is zero or more; with zero
    this is the projection on the simplex of size ``cap``. Rows that have no value above
    ``-cap / ridge`` come out as zero. Values of minus infinity are left out.
    """
    xp = namespace(values)
    top = xp.max(values, axis=1, keepdims=True)
    values = values - top  # measured from the largest value, a cap far below it is not lost
    cap = cap + ridge * top
    sums = xp.cumulative_sum(xp.sort(values, axis=1, descending=True), axis=1)
    count = 1.0 + xp.arange(values.shape[1], dtype=values.dtype, device=device_of(values))
    # If the j largest are above it, the level is the j-th of these. To leave out a value that is
    # above it, or to count in one that is below, lowers what is found: the largest is right.
    level = xp.max((sums - cap) / (count + ridge), axis=1, keepdims=True)
    return clipped(values - level, low=0.0)
