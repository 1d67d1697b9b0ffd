"""Penalties of the corrective step, which are added to the loss.

Weights have shape ``(n_rows, n_outputs)``, one row per chosen column; the intercept is never among
them. A penalty is the sum of a smooth part and of ``kink * sum |W|``, where ``kink`` may be zero.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from mixnorm._array import Array, namespace
from mixnorm._params import Parameters

__all__ = ["AbsoluteSum", "Penalty", "Ridge", "SmoothMaxNorm", "as_penalty"]


@runtime_checkable
class Penalty(Protocol):
    """The methods that the greedy engine needs of a penalty; the engine multiplies it by ``alpha``.

    A class that inherits from this one has the defaults.
    """

    #: The factor of ``sum |W|``; zero where the penalty is smooth.
    kink: ClassVar[float] = 0.0
    #: The power of the weights with which it grows where they are large.
    degree: ClassVar[int]
    #: The curvature does not depend on the weights.
    constant_curvature: ClassVar[bool] = False
    #: Of weights that differ by a constant per row, those of mean zero cost least.
    least_at_mean: ClassVar[bool] = False

    def check(self) -> None:
        """Raise a ValueError for parameters out of their range."""
        return

    def value(self, weights: Array) -> float:
        """Return the penalty, kinks included; zero for weights that are zero."""
        ...

    def gradient(self, weights: Array) -> Any:
        """Return the gradient of the smooth part."""
        ...

    def curvature(self, weights: Array) -> Any:
        """Return a diagonal model of the curvature, for steps about as long as the weights.

        It is the diagonal of the Hessian where that is positive. A penalty that grows linearly has
        no curvature far from zero, and steps would have no bound where the loss is flat. The
        curvature ``1 / |w|`` of a parabola that touches ``|w|`` is added then.
        """
        ...

    def curvature_at_zero(self, n_outputs: int) -> float:
        """Return the second derivative of the smooth part in a weight of a row of zeros."""
        return 0.0

    def max_norm_smoothness(self, n_outputs: int) -> float:
        """Return ``c`` with smooth part at most ``c max_r |w_r|^2`` for every row ``w``."""
        return 0.0

    def shift(self, weights: Array) -> Any:
        """Return the constant per row, ``(n_rows, 1)``, whose subtraction costs least."""
        ...


@dataclass
class Ridge(Parameters, Penalty):
    r"""The sum of squares, :math:`\|W\|_F^2`.

    Examples
    --------
    >>> import numpy as np
    >>> Ridge().value(np.asarray([[1.0, -2.0]]))
    5.0
    """

    degree: ClassVar[int] = 2
    constant_curvature: ClassVar[bool] = True
    least_at_mean: ClassVar[bool] = True

    def value(self, weights: Array) -> float:
        """Return the sum of squares."""
        # A dot product: no array of squares is made.
        flat = namespace(weights).reshape(weights, (-1,))
        return float(flat @ flat)

    def gradient(self, weights: Array) -> Any:
        """Return twice the weights."""
        return 2.0 * weights

    def curvature(self, weights: Array) -> Any:
        """Return twos."""
        return namespace(weights).full_like(weights, 2.0)

    def curvature_at_zero(self, n_outputs: int) -> float:
        """Return 2."""
        return 2.0

    def max_norm_smoothness(self, n_outputs: int) -> float:
        """Return the number of outputs."""
        return float(n_outputs)

    def shift(self, weights: Array) -> Any:
        """Return the means."""
        return namespace(weights).mean(weights, axis=1, keepdims=True)


@dataclass
class SmoothMaxNorm(Parameters, Penalty):
    r"""A smooth :math:`\ell_{\infty,1}` norm: the sum of the largest magnitudes of the rows.

    .. math:: \frac1\beta \sum_j \ln \frac{1}{2k} \sum_{r=1}^{k}
              \bigl(e^{\beta W_{jr}} + e^{-\beta W_{jr}}\bigr)

    The term of a row is below its largest magnitude, by at most :math:`\ln(2k)/\beta`
    (:eq:`smooth-max-norm`). The penalty lowers the largest weights of a feature and hardly changes
    the others.

    Parameters
    ----------
    beta : float, default=10.0
        How closely the maximum is approximated; the curvature grows with it.

    References
    ----------
    S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: efficient multiclass learning with
    feature sharing", section 3.

    Examples
    --------
    >>> import numpy as np
    >>> weights = np.asarray([[3.0, -3.0, 0.0], [0.0, 0.0, 0.0]])
    >>> round(SmoothMaxNorm(beta=100.0).value(weights), 2)
    2.99
    """

    beta: float = 10.0

    degree: ClassVar[int] = 1

    def check(self) -> None:
        """Raise unless ``beta`` is positive and finite."""
        if not isinstance(self.beta, numbers.Real) or not 0.0 < self.beta < math.inf:
            raise ValueError(f"beta={self.beta!r} must be a positive, finite number.")

    def value(self, weights: Array) -> float:
        """Return the penalty, with exponents that are never positive."""
        xp = namespace(weights)
        up, down, largest = self._exponentials(weights)
        # The largest magnitude is taken out of the logarithm: one exponential is one, none is
        # larger.
        mean = xp.sum(up + down, axis=1) / (2.0 * weights.shape[1])
        rows = largest[:, 0] + xp.log(mean) / self.beta
        # In double: the line search compares objectives that differ in the last digits of float32.
        return float(xp.sum(rows, dtype=xp.float64))

    def gradient(self, weights: Array) -> Any:
        """Return the difference of the shares of the two exponentials of each weight.

        The common factor of :meth:`_exponentials` cancels.
        """
        xp = namespace(weights)
        up, down, _ = self._exponentials(weights)
        return (up - down) / xp.sum(up + down, axis=1, keepdims=True)

    def curvature(self, weights: Array) -> Any:
        """Return the second derivatives, plus ``1 / (1 + m)`` divided among the outputs of a row.

        The second derivatives are ``beta`` times the variances of random signs, and the gradient is
        the mean of these signs. ``m`` is the largest magnitude of the row.
        """
        xp = namespace(weights)
        up, down, largest = self._exponentials(weights)
        total = xp.sum(up + down, axis=1, keepdims=True)
        slope = (up - down) / total
        # Far from zero the norm is linear, and its Hessian vanishes. The parabola that touches it
        # has the curvature ``1 / m``; one is added to ``m``, so that it is finite at zero.
        parabola = 1.0 / (weights.shape[1] * (1.0 + largest))
        return self.beta * ((up + down) / total - slope * slope) + parabola

    def curvature_at_zero(self, n_outputs: int) -> float:
        """Return ``beta / n_outputs``."""
        return self.beta / n_outputs

    def max_norm_smoothness(self, n_outputs: int) -> float:
        """Return ``beta / 2``: a row costs at most ``ln(cosh(beta m)) / beta``."""
        return 0.5 * self.beta

    def shift(self, weights: Array) -> Any:
        """Return where ``sum_r sinh(beta (w_r - c))`` vanishes."""
        # ``e^(2 beta c)`` is the ratio of the sums of ``e^(beta w)`` and ``e^(-beta w)``. Both are
        # taken relative to their largest term, and the logarithms of these are added back.
        xp = namespace(weights)
        high = xp.max(weights, axis=1, keepdims=True)
        low = xp.min(weights, axis=1, keepdims=True)
        above = xp.sum(xp.exp(self.beta * (weights - high)), axis=1, keepdims=True)
        below = xp.sum(xp.exp(self.beta * (low - weights)), axis=1, keepdims=True)
        return 0.5 * (high + low + xp.log(above / below) / self.beta)

    def _exponentials(self, weights: Array) -> tuple[Any, Any, Any]:
        """Return ``exp(beta (w - m))``, ``exp(-beta (w + m))`` and ``m``, the largest magnitude."""
        xp = namespace(weights)
        largest = xp.max(xp.abs(weights), axis=1, keepdims=True)
        up = xp.exp(self.beta * (weights - largest))
        return up, xp.exp(-self.beta * (weights + largest)), largest


@dataclass
class AbsoluteSum(Parameters, Penalty):
    r"""The sum of magnitudes, :math:`\sum_{jr} |W_{jr}|`: single weights become exactly zero.

    Examples
    --------
    >>> import numpy as np
    >>> AbsoluteSum().value(np.asarray([[1.0, -2.0]]))
    3.0
    """

    kink: ClassVar[float] = 1.0
    degree: ClassVar[int] = 1

    def value(self, weights: Array) -> float:
        """Return the sum of magnitudes."""
        xp = namespace(weights)
        return float(xp.sum(xp.abs(weights), dtype=xp.float64))

    def gradient(self, weights: Array) -> Any:
        """Return zeros: there is no smooth part."""
        return namespace(weights).zeros_like(weights)

    def curvature(self, weights: Array) -> Any:
        """Return ``1 / (1 + |w|)``, as the Hessian is zero."""
        return 1.0 / (1.0 + namespace(weights).abs(weights))

    def shift(self, weights: Array) -> Any:
        """Return the medians; of an even number of weights, the median nearest to zero."""
        # Any number between the two middle weights is a median. The nearest to zero leaves weights
        # alone that need not move.
        xp = namespace(weights)
        k = weights.shape[1]
        ranked = xp.sort(weights, axis=1)
        low, high = ranked[:, (k - 1) // 2], ranked[:, k // 2]
        zero = xp.zeros_like(low)
        return xp.minimum(xp.maximum(zero, low), high)[:, None]


#: The penalties that have a name.
PENALTIES: dict[str, type[Penalty]] = {"l1": AbsoluteSum, "linf,1": SmoothMaxNorm, "ridge": Ridge}


def as_penalty(penalty: Any) -> Penalty:
    """Return the penalty of this name; return a penalty object as it is.

    Examples
    --------
    >>> as_penalty("linf,1")
    SmoothMaxNorm(beta=10.0)
    """
    if isinstance(penalty, str) and penalty in PENALTIES:
        return PENALTIES[penalty]()
    if isinstance(penalty, (str, type)) or not isinstance(penalty, Penalty):
        raise ValueError(
            f"penalty={penalty!r} is not known; choose one of {sorted(PENALTIES)} or give a "
            "penalty object of mixnorm.engines.penalties."
        )
    penalty.check()
    return penalty
