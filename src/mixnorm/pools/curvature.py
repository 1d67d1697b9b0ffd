"""Second derivatives of the loss, from which a pool ranks its atoms by their gains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mixnorm._array import namespace, tiny


@dataclass(frozen=True)
class Curvature:
    """Second derivatives of a loss, from which a pool estimates the gains of Newton steps.

    Parameters
    ----------
    weights : array of shape (n_samples, n_outputs)
        Second derivatives in the scores, times the weights of the samples.
    samples : array of shape (n_samples,)
        The weights of the samples, which sum to one.
    loss_per_error : float
        The loss over the sum of all magnitudes of the residual, which shares it out.
    ridge : float
        Second derivative of the penalty in a weight.
    intercept : bool
        Whether an intercept follows every step.
    """

    weights: Any
    samples: Any
    loss_per_error: float
    ridge: float
    intercept: bool


def capped_gain(gains: Any, limits: Any) -> Any:
    """Add up gains over outputs (the first axis), none beyond its limit.

    Small gains are hardly changed, large ones approach their limits (:eq:`capped-gain`).

    Examples
    --------
    >>> import numpy as np
    >>> capped_gain(np.array([[1e-6, 1e6]]), np.array([[0.5, 0.5]])).round(6).tolist()
    [1e-06, 0.5]
    """
    xp = namespace(gains)
    return xp.sum(-xp.expm1(-gains / (limits + tiny(gains))) * limits, axis=0)
