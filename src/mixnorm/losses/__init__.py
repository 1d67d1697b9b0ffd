"""Losses: what a mistake costs, on scores of shape ``(n_samples, n_outputs)``.

Open ``base.py`` first, then ``squared.py``. The room imports no other, and nothing in it but
``compiled`` loads numba.
"""

from mixnorm.losses.base import DualLoss, Loss, SmoothLoss
from mixnorm.losses.binary import Hinge, Logistic, SquaredHinge
from mixnorm.losses.multiclass_hinge import MulticlassHinge, MulticlassSquaredHinge
from mixnorm.losses.names import JOINT, SCALAR, as_loss
from mixnorm.losses.regression import Absolute, EpsilonInsensitive, Huber
from mixnorm.losses.scalar import BoxDual, has_box_dual
from mixnorm.losses.softmax import MarginSoftmax, MultinomialLogistic
from mixnorm.losses.squared import Squared

__all__ = [
    "JOINT",
    "SCALAR",
    "Absolute",
    "BoxDual",
    "DualLoss",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "MarginSoftmax",
    "MulticlassHinge",
    "MulticlassSquaredHinge",
    "MultinomialLogistic",
    "SmoothLoss",
    "Squared",
    "SquaredHinge",
    "as_loss",
    "has_box_dual",
]
