"""Losses: what a mistake costs, on scores of shape ``(n_samples, n_outputs)``.

Open ``base.py`` first, then ``regression.py``. This package imports no other one, and only its
``compiled`` part loads numba.
"""

from mixnorm.losses.base import DualLoss, Loss, SmoothLoss
from mixnorm.losses.binary import Hinge, Logistic, SquaredHinge
from mixnorm.losses.box import BoxDual
from mixnorm.losses.multiclass_hinge import MulticlassHinge, MulticlassSquaredHinge
from mixnorm.losses.names import as_loss, by_name
from mixnorm.losses.regression import Absolute, EpsilonInsensitive, Huber, Squared
from mixnorm.losses.softmax import MarginSoftmax, MultinomialLogistic

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
]

#: Losses by name: of all scores of a sample and its class label, and of one score.
JOINT, SCALAR = (by_name(globals(), joint=joint) for joint in (True, False))
