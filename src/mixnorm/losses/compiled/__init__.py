"""Losses of single rows, compiled: apart from ``losses``, which must not load numba.

Open ``rows_jit.py``. It imports the numbers in ``losses/codes.py`` alone.
"""

from mixnorm.losses.compiled.rows_jit import (
    MARGIN_BOX,
    PERCEPTRON,
    best_class,
    label_loss,
    number_loss,
)

__all__ = ["MARGIN_BOX", "PERCEPTRON", "best_class", "label_loss", "number_loss"]
