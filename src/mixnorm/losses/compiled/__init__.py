"""Losses of single rows, compiled. ``losses`` itself must not load numba, and does not import them.

Open ``rows_jit.py``. Its only import from ``losses`` is ``losses/codes.py``.
"""

from mixnorm.losses.codes import MARGIN_BOX, PERCEPTRON
from mixnorm.losses.compiled.rows_jit import best_class, label_loss, number_loss

__all__ = ["MARGIN_BOX", "PERCEPTRON", "best_class", "label_loss", "number_loss"]
