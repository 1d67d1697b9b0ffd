"""Losses by name."""

from __future__ import annotations

from collections.abc import Mapping

from mixnorm.losses.base import Loss
from mixnorm.losses.declared import Declared


def by_name(room: Mapping[str, object], *, joint: bool) -> dict[str, type[Declared]]:
    """Return the losses among the objects of a module, under the names that they declare.

    Joint losses depend on all scores of a sample and its label, the others on one score.
    """
    losses = [each for each in room.values() if isinstance(each, type)]
    named = [each for each in losses if issubclass(each, Declared) and each.name]
    return {str(each.name): each for each in named if each.is_classifier == joint}


def as_loss(loss: object, known: Mapping[str, type]) -> Loss:
    """Return the loss object for a name in ``known``, or the object itself.

    Examples
    --------
    >>> from mixnorm.losses import SCALAR, Huber
    >>> as_loss("huber", SCALAR)
    Huber(delta=1.0)
    >>> as_loss(Huber(delta=2.0), SCALAR)
    Huber(delta=2.0)
    """
    if isinstance(loss, str) and loss in known:
        found: Loss = known[loss]()
        return found
    if isinstance(loss, (str, type)) or not isinstance(loss, Loss):
        raise ValueError(
            f"loss={loss!r} is not known; choose one of {sorted(known)} or give a loss object of "
            "mixnorm.losses."
        )
    return loss
