"""Losses: what a mistake costs, on scores of shape ``(n_samples, n_outputs)``."""

from mixnorm.losses._base import DualLoss, Loss, SmoothLoss
from mixnorm.losses._binary import Hinge, Logistic, SquaredHinge
from mixnorm.losses._multiclass_hinge import MulticlassHinge, MulticlassSquaredHinge
from mixnorm.losses._names import as_loss
from mixnorm.losses._regression import Absolute, EpsilonInsensitive, Huber
from mixnorm.losses._scalar import BoxDual
from mixnorm.losses._softmax import MarginSoftmax, MultinomialLogistic
from mixnorm.losses._squared import Squared

__all__ = [
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
