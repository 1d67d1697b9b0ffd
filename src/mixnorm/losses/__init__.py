"""Losses: what a mistake costs, on scores of shape ``(n_samples, n_outputs)``."""

from mixnorm.losses._base import Loss
from mixnorm.losses._softmax import MarginSoftmax, MultinomialLogistic
from mixnorm.losses._squared import Squared

__all__ = ["Loss", "MarginSoftmax", "MultinomialLogistic", "Squared"]
