"""Squared loss for one or many outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from mixnorm._array import device_of, namespace
from mixnorm._params import Parameters


@dataclass
class Squared(Parameters):
    r"""Half the squared residual, summed over outputs: :math:`\frac12 \|z - y\|_2^2`.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Squared()
    >>> target = loss.encode(np.array([[1.0], [3.0]]), 1, np.zeros((2, 1)))
    >>> loss.value_and_residual(np.zeros((2, 1)), target, np.full(2, 0.5))[0]
    2.5
    """

    shift_invariant: ClassVar[bool] = False
    smoothness: ClassVar[float] = 1.0
    lipschitz: ClassVar[float] = math.inf
    constant_curvature: ClassVar[bool] = True
    is_classifier: ClassVar[bool] = False

    def encode(self, y: Any, n_outputs: int, like: Any) -> Any:
        """Prepare targets of shape ``(n_samples, n_outputs)``, laid out output by output."""
        xp, device = namespace(like), device_of(like)
        y = xp.astype(xp.asarray(y, device=device), like.dtype)
        y = xp.reshape(y, (y.shape[0], n_outputs))
        return xp.reshape(xp.reshape(y.T, (-1,)), (n_outputs, y.shape[0])).T

    def value_and_residual(self, scores: Any, target: Any, weight: Any) -> tuple[float, Any]:
        """Return the weighted mean loss and ``weight * (scores - target)``."""
        xp = namespace(scores)
        difference = scores - target
        residual = difference * weight[:, None]
        return 0.5 * float(xp.sum(difference * residual, dtype=xp.float64)), residual

    def curvature(self, residual: Any, target: Any, weight: Any) -> Any:
        """Return the weights: exact, constant, and shared by all outputs."""
        return weight[:, None]

    def hessian_form(self, direction: Any, residual: Any, target: Any, weight: Any) -> float:
        """Return ``sum_i w_i ||d_i||^2``."""
        xp = namespace(residual)
        return float(xp.sum(direction * direction * weight[:, None], dtype=xp.float64))

    def column_hessian(self, column: Any, residual: Any, target: Any, weight: Any) -> Any:
        """Return ``sum_i w_i x_i^2`` times the identity."""
        xp = namespace(residual)
        eye = xp.eye(residual.shape[1], dtype=residual.dtype, device=device_of(residual))
        return eye * xp.sum(column * column * weight)

    def max_norm_smoothness(self, n_outputs: int) -> float:
        """Return half the number of outputs."""
        return 0.5 * n_outputs

    def proba(self, scores: Any) -> Any:
        """Raise: a regression loss has no class probabilities."""
        raise TypeError("Squared is a regression loss and has no class probabilities.")

    def predict(self, scores: Any) -> Any:
        """Return the scores."""
        return scores
