"""Soft-max losses: the margin loss of ShareBoost and plain multinomial logistic regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from mixnorm._array import device_of, exponential, namespace
from mixnorm._params import Parameters

_LEAST = 1e-13
_LARGEST_MARGIN = 100.0


@dataclass(frozen=True)
class Labels:
    """Class labels as the soft-max losses want them."""

    one_hot: Any
    position: Any  # where the label's entry lies in the flattened, output-by-output scores
    ones: Any  # one per class


class _Softmax(Parameters):
    """``ln sum_r exp(margin 1[r != y] - z_y + z_r)``, a cross-entropy of shifted scores.

    With ``u = z - margin * onehot(y)`` the loss is ``ln sum_r exp(u_r) - u_y``, so margin zero
    (multinomial logistic) and margin one (ShareBoost) are one piece of code.
    """

    shift_invariant: ClassVar[bool] = True
    smoothness: ClassVar[float] = 0.5
    lipschitz: ClassVar[float] = math.sqrt(2.0)
    constant_curvature: ClassVar[bool] = False
    is_classifier: ClassVar[bool] = True
    margin: float

    def encode(self, y: Any, n_outputs: int, like: Any) -> Labels:
        """Prepare labels ``0 .. n_outputs - 1``: their one-hot rows and flat positions."""
        if not 0.0 <= self.margin <= _LARGEST_MARGIN:
            raise ValueError(f"margin={self.margin!r} must lie between 0 and {_LARGEST_MARGIN:g}.")
        xp, device = namespace(like), device_of(like)
        y = xp.astype(xp.asarray(y, device=device), xp.int64)
        classes = xp.arange(n_outputs, dtype=xp.int64, device=device)
        one_hot = xp.astype(classes[:, None] == y[None, :], like.dtype)
        rows = xp.arange(y.shape[0], dtype=xp.int64, device=device)
        ones = xp.ones((n_outputs,), dtype=like.dtype, device=device)
        return Labels(one_hot.T, y * y.shape[0] + rows, ones)

    def value_and_residual(self, scores: Any, target: Labels, weight: Any) -> tuple[float, Any]:
        """Return the weighted mean loss and ``weight * (softmax(u) - onehot)``."""
        xp = namespace(scores)
        if self.margin == 1.0:
            shifted = scores - target.one_hot
        elif self.margin == 0.0:
            shifted = scores - 0.0
        else:
            shifted = scores - target.one_hot * self.margin
        shifted -= xp.max(shifted, axis=1, keepdims=True)
        own = xp.take(xp.reshape(shifted.T, (-1,)), target.position)
        shifted = exponential(shifted)
        shifted += _LEAST  # smaller terms would become denormal numbers, a hundred times slower
        total = shifted @ target.ones  # a product with ones is the quickest sum along rows
        losses = xp.log(total) - own
        value = float(xp.sum(losses * weight, dtype=xp.float64))
        shifted *= (1.0 / total)[:, None]
        shifted -= target.one_hot
        shifted *= weight[:, None]
        return value, shifted

    def curvature(self, residual: Any, target: Labels, weight: Any) -> Any:
        """Return ``weight * p (1 - p) k/(k-1)``, read off the residual.

        ``|residual| = weight * p`` off the label and ``weight * (1 - p)`` on it, so
        ``|r| - r**2/weight`` is ``weight * p (1 - p)`` in both cases. The factor ``k/(k-1)`` makes
        the diagonal exact on directions that sum to zero when ``k = 2`` or all ``p`` are equal.
        """
        xp = namespace(residual)
        k = residual.shape[1]
        size = xp.abs(residual)
        square = size * _inverse(weight)[:, None]
        square *= size
        size -= square
        size *= k / (k - 1)
        return size

    def _probabilities(self, residual: Any, target: Labels, weight: Any) -> Any:
        """Return ``weight * softmax(u)`` from the residual."""
        return residual + weight[:, None] * target.one_hot

    def hessian_form(self, direction: Any, residual: Any, target: Labels, weight: Any) -> float:
        """Return ``sum_i w_i (sum_r p_ir d_ir^2 - (sum_r p_ir d_ir)^2)``."""
        xp = namespace(residual)
        weighted = self._probabilities(residual, target, weight) * direction
        first = xp.sum(weighted, axis=1)
        inverse = _inverse(weight)
        square = xp.sum(weighted * direction, axis=1)
        return float(xp.sum(square - first * first * inverse, dtype=xp.float64))

    def column_hessian(self, column: Any, residual: Any, target: Labels, weight: Any) -> Any:
        """Return ``sum_i w_i x_i^2 (diag p_i - p_i p_i^T)``."""
        xp = namespace(residual)
        inverse = _inverse(weight)
        square = column * column
        weighted = self._probabilities(residual, target, weight).T * square[None, :]
        other = self._probabilities(residual, target, weight).T * inverse[None, :]
        cross = weighted @ other.T
        diagonal = xp.sum(weighted, axis=1)
        eye = xp.eye(residual.shape[1], dtype=residual.dtype, device=device_of(residual))
        return eye * diagonal[:, None] - cross

    def max_norm_smoothness(self, n_outputs: int) -> float:
        """Return 1, whatever the number of classes (Lemma 1 of the ShareBoost paper)."""
        return 1.0

    def _softmax(self, scores: Any) -> Any:
        xp = namespace(scores)
        exponential = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
        return exponential / xp.sum(exponential, axis=1, keepdims=True)

    def proba(self, scores: Any) -> Any:
        """Return the class probabilities for which ``scores`` minimise the expected loss.

        With ``q = softmax(z)`` and ``e = exp(margin)`` they are proportional to
        ``q (e - (e - 1) q)``; with margin zero that is ``q`` itself. The largest score keeps the
        largest probability. The derivation is in the maths pages.
        """
        xp = namespace(scores)
        q = self._softmax(scores)
        if self.margin == 0.0:
            return q
        e = math.exp(self.margin)
        p = q * (e - (e - 1.0) * q)
        return p / xp.sum(p, axis=1, keepdims=True)

    def predict(self, scores: Any) -> Any:
        """Return the index of the largest score of each row."""
        return namespace(scores).argmax(scores, axis=1)


def _inverse(weight: Any) -> Any:
    """Return ``1 / weight``, and zero for weights that are zero or whose inverse would overflow."""
    xp = namespace(weight)
    large = weight > 4.0 * float(xp.finfo(weight.dtype).smallest_normal)
    return xp.where(large, 1.0 / xp.where(large, weight, 1.0), 0.0)


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

    margin: ClassVar[float] = 0.0  # type: ignore[misc]  # a constant here, a field above
