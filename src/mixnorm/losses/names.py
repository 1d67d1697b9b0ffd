"""Losses by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mixnorm.losses.base import Loss
from mixnorm.losses.binary import Hinge, Logistic, SquaredHinge
from mixnorm.losses.multiclass_hinge import MulticlassHinge, MulticlassSquaredHinge
from mixnorm.losses.regression import Absolute, EpsilonInsensitive, Huber
from mixnorm.losses.softmax import MarginSoftmax, MultinomialLogistic
from mixnorm.losses.squared import Squared

#: Losses of one score, summed over outputs.
SCALAR: Mapping[str, type] = {
    "absolute": Absolute,
    "epsilon_insensitive": EpsilonInsensitive,
    "hinge": Hinge,
    "huber": Huber,
    "logistic": Logistic,
    "squared": Squared,
    "squared_hinge": SquaredHinge,
}

#: Losses of all scores of a sample and its class label.
JOINT: Mapping[str, type] = {
    "hinge": MulticlassHinge,
    "logistic": MultinomialLogistic,
    "margin": MarginSoftmax,
    "squared_hinge": MulticlassSquaredHinge,
}


def as_loss(loss: Any, known: Mapping[str, type]) -> Loss:
    """Return the loss object for a name in ``known``, or the object itself.

    Examples
    --------
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
