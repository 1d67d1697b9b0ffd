"""Losses of single rows, compiled: apart from ``losses``, which must not load numba.

Open ``rows_jit.py``. It imports nothing else of mixnorm.
"""

from mixnorm.losses.compiled.rows_jit import (
    ABSOLUTE,
    EPSILON_INSENSITIVE,
    HINGE,
    HUBER,
    LOGISTIC,
    MULTICLASS_HINGE,
    PERCEPTRON,
    SOFTMAX,
    SQUARED,
    SQUARED_HINGE,
    best_class,
    label_loss,
    number_loss,
)

__all__ = [
    "ABSOLUTE",
    "EPSILON_INSENSITIVE",
    "HINGE",
    "HUBER",
    "LOGISTIC",
    "MULTICLASS_HINGE",
    "PERCEPTRON",
    "SOFTMAX",
    "SQUARED",
    "SQUARED_HINGE",
    "best_class",
    "label_loss",
    "number_loss",
]
