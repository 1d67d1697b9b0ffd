"""Squared loss for one or many outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mixnorm.losses.box import Box, SmoothBoxLoss


@dataclass
class Squared(SmoothBoxLoss):
    r"""Half the squared residual, summed over outputs: :math:`\frac12 \|z - y\|_2^2`.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Squared()
    >>> target = loss.encode(np.array([[1.0], [3.0]]), 1, np.zeros((2, 1)))
    >>> loss.value_and_residual(np.zeros((2, 1)), target, np.full(2, 0.5))[0]
    2.5
    """

    name: ClassVar[str] = "squared"
    degree: ClassVar[int] = 2
    box = Box(curvature=1.0)
