"""Soft-max losses: the margin loss of ShareBoost and plain multinomial logistic regression."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mixnorm._array import Array, device_of, exponential, is_numpy, namespace
from mixnorm.losses import codes
from mixnorm.losses.arrays import Numbers, clip, inverse, total
from mixnorm.losses.labels import Joint, Labels
from mixnorm.losses.newton import damped_softmax

# Added to each exponential: nothing beside one in single precision, and a probability of 1e-13 in
# double.
_LEAST_TERM = 1e-13
# A guard: the probabilities take exp(margin).
_LARGEST_MARGIN = 100.0


class _Softmax(Joint):
    """``ln sum_r exp(margin 1[r != y] - z_y + z_r)``, a cross-entropy of shifted scores.

    With ``u = z - margin * onehot(y)`` the loss is ``ln sum_r exp(u_r) - u_y``, and one piece of
    code serves margin zero (multinomial logistic) and margin one (:eq:`margin-softmax`).
    """

    row_code: ClassVar[int | None] = codes.SOFTMAX
    smoothness: ClassVar[float] = 0.5
    lipschitz: ClassVar[float] = math.sqrt(2.0)
    constant_curvature: ClassVar[bool] = False
    margin: float

    @property
    def row_constants(self) -> tuple[float, ...]:
        """The margin."""
        return (self.margin,)

    def encode(self, y: Array, n_outputs: int, like: Array) -> Labels:
        """Check the margin, and prepare labels ``0 .. n_outputs - 1``."""
        if not 0.0 <= self.margin <= _LARGEST_MARGIN:
            raise ValueError(f"margin={self.margin!r} must lie between 0 and {_LARGEST_MARGIN:g}.")
        return super().encode(y, n_outputs, like)

    def value_and_residual(self, scores: Array, target: Labels, weight: Array) -> tuple[float, Any]:
        """Return the weighted mean loss and ``weight * (softmax(u) - onehot)`` (:eq:`residual`)."""
        xp = namespace(scores)
        # Each branch makes a new array, which all lines below overwrite: this is one of
        # the hottest loops, and its time is that of the memory it touches. The scores belong to
        # the caller.
        if self.margin == 1.0:
            shifted = scores - target.one_hot
        elif self.margin == 0.0:
            shifted = scores - 0.0
        else:
            shifted = scores - target.one_hot * self.margin
        shifted -= xp.max(shifted, axis=1, keepdims=True)
        label = target.pick(shifted)
        shifted = exponential(shifted)
        shifted += _LEAST_TERM  # smaller terms would be denormal, a hundred times slower
        sums = shifted @ target.ones  # a product with ones is the fastest sum along rows
        value = total((xp.log(sums) - label) * weight)
        shifted *= (1.0 / sums)[:, None]
        shifted -= target.one_hot
        shifted *= weight[:, None]
        return value, shifted

    def curvature(self, residual: Array, target: Labels, weight: Array) -> Any:
        """Return ``weight * p (1 - p) k/(k-1)``, computed from the residual.

        ``|residual| = weight * p`` off the label and ``weight * (1 - p)`` on it, so
        ``|r| - r**2/weight`` is ``weight * p (1 - p)`` in both cases. The factor ``k/(k-1)`` makes
        the diagonal exact on directions that sum to zero when ``k = 2`` or all ``p`` are equal
        (:eq:`curvature-blocks`).
        """
        xp = namespace(residual)
        k = residual.shape[1]
        size = xp.abs(residual)
        # size / weight is at most one, so that the product with size cannot vanish for tiny
        # weights.
        square = size * inverse(weight)[:, None]
        square *= size
        size -= square
        size *= k / (k - 1)
        return size

    def _probabilities(self, residual: Array, target: Labels, weight: Array) -> Any:
        """Return ``weight * softmax(u)`` from the residual (:eq:`softmax-probabilities`)."""
        return residual + weight[:, None] * target.one_hot

    def hessian_form(
        self, direction: Array, residual: Array, target: Labels, weight: Array
    ) -> float:
        """Return ``sum_i w_i (sum_r p_ir d_ir^2 - (sum_r p_ir d_ir)^2)``."""
        xp = namespace(residual)
        weighted = self._probabilities(residual, target, weight) * direction
        first = xp.sum(weighted, axis=1)
        square = xp.sum(weighted * direction, axis=1)
        return total(square - first * first * inverse(weight))

    def column_hessian(self, column: Array, residual: Array, target: Labels, weight: Array) -> Any:
        """Return ``sum_i w_i x_i^2 (diag p_i - p_i p_i^T)`` (:eq:`column-gain`).

        The diagonal is computed from the rest, because rows sum to zero. A difference would lose
        its digits where a probability is next to one, and no ridge might make the matrix
        invertible.
        """
        xp = namespace(residual)
        square = column * column
        weighted = self._probabilities(residual, target, weight).T * square[None, :]
        other = self._probabilities(residual, target, weight).T * inverse(weight)[None, :]
        cross = weighted @ other.T
        eye = xp.eye(residual.shape[1], dtype=residual.dtype, device=device_of(residual))
        # Off the diagonal the block is minus ``cross``.
        others = (1.0 - eye) * cross
        return eye * xp.sum(others, axis=1)[:, None] - others

    def hessian_operator(
        self, scores: Array, residual: Array, target: Labels, weight: Array
    ) -> Callable[[Any], Any]:
        """Return a function that multiplies a direction in the scores by the Hessian.

        A row of it is ``w_i p_i * (d_i - <p_i, d_i>)``.
        """
        shares = self._probabilities(residual, target, weight)
        scale = inverse(weight)
        if is_numpy(residual):
            rows = np.ascontiguousarray(shares.T)

            def multiply_compiled(direction: np.ndarray) -> np.ndarray:
                from mixnorm.losses.softmax_jit import curve

                # A copy in the layout of the loop, which it overwrites.
                found = np.array(direction.T, dtype=rows.dtype, order="C")
                curve(found, rows, scale)
                return found.T

            return multiply_compiled

        def multiply(direction: Array) -> Any:
            weighted = shares * direction
            mean = namespace(residual).sum(weighted, axis=1) * scale
            return weighted - shares * mean[:, None]

        return multiply

    def max_norm_smoothness(self, n_outputs: int) -> float:
        """Return 1 for any number of classes (:eq:`softmax-smoothness`; Lemma 1 of ShareBoost)."""
        return 1.0

    def conjugate(self, theta: Array, target: Labels, weight: Array) -> float:
        """Return ``sum_i sum_r P_ir ln(P_ir / w_i) + margin theta_iy``, ``P = theta + w onehot``.

        ``P / w`` is the soft-max of the shifted scores whose residual is ``theta``. See
        :eq:`conjugate-sum` and the table after it.
        """
        xp = namespace(theta)
        share, inside = target.shares(theta, weight)
        if not inside:
            return math.inf
        part = share * inverse(weight)[:, None]
        least = float(xp.finfo(theta.dtype).smallest_normal)
        # 0 ln 0 is 0, as in the logistic loss.
        entropy = share * xp.log(clip(part, low=least))
        return total(entropy) + self.margin * total(target.pick(theta))

    def prox_conjugate(self, theta: Array, step: Numbers, target: Labels, weight: Array) -> Any:
        """Return the minimiser of ``F*(phi) + sum (phi - theta)**2 / (2 step)``.

        With ``phi = w (p - onehot)`` a row has to meet ``ln p + (w/step) p = a - L`` for one
        number ``L``, ``a = theta/step + (w/step - margin) onehot`` (:eq:`damped-softmax`).
        """
        rate = weight[:, None] / step
        row = theta / step + (rate - self.margin) * target.one_hot
        return (damped_softmax(row, rate) - target.one_hot) * weight[:, None]

    def proba(self, scores: Array) -> Any:
        """Return the class probabilities for which ``scores`` minimise the expected loss.

        With ``q = softmax(z)`` and ``e = exp(margin)`` they are proportional to
        ``q (e - (e - 1) q)`` (:eq:`margin-probabilities`); with margin zero that is ``q`` itself.
        The largest score keeps the largest probability.
        """
        xp = namespace(scores)
        with np.errstate(over="ignore"):  # a score infinitely far below has probability zero
            q = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
        q = q / xp.sum(q, axis=1, keepdims=True)
        if self.margin == 0.0:
            return q
        e = math.exp(self.margin)
        p = q * (e - (e - 1.0) * q)
        return p / xp.sum(p, axis=1, keepdims=True)


@dataclass
class MarginSoftmax(_Softmax):
    r"""ShareBoost's loss, :math:`\ln \sum_r \exp(m\,1[r \ne y] - z_y + z_r)`.

    Convex, smooth and, with margin one, never below the 0-1 loss.

    Parameters
    ----------
    margin : float, default=1.0
        The margin ``m``. Zero gives multinomial logistic regression.

    References
    ----------
    S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: efficient multiclass learning with
    feature sharing", equation (3).

    Examples
    --------
    >>> import numpy as np
    >>> loss = MarginSoftmax()
    >>> scores = np.zeros((2, 3))
    >>> target = loss.encode(np.array([0, 2]), 3, scores)
    >>> value, residual = loss.value_and_residual(scores, target, np.full(2, 0.5))
    >>> bool(np.isclose(value, np.log(1 + 2 * np.e)))
    True
    """

    name: ClassVar[str] = "margin"
    margin: float = 1.0


@dataclass
class MultinomialLogistic(_Softmax):
    r"""Multinomial logistic loss, :math:`\ln \sum_r \exp(z_r) - z_y`.

    Examples
    --------
    >>> import numpy as np
    >>> loss = MultinomialLogistic()
    >>> target = loss.encode(np.array([1]), 2, np.zeros((1, 2)))
    >>> value, _ = loss.value_and_residual(np.zeros((1, 2)), target, np.ones(1))
    >>> bool(np.isclose(value, np.log(2)))
    True
    """

    name: ClassVar[str] = "logistic"
    margin: ClassVar[float] = 0.0  # type: ignore[misc]  # a constant here, a field above
