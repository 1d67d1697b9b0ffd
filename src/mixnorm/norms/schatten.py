"""Schatten norms: norms of the singular values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from mixnorm._array import Array, device_of, epsilon, float_limits, namespace
from mixnorm._params import Parameters
from mixnorm.norms.ability import ability
from mixnorm.norms.ball import project_magnitudes
from mixnorm.norms.base import check_exponent, check_level, check_matrix, conjugate
from mixnorm.norms.svd import (
    find_ball_triplets,
    find_largest_value,
    find_leading_triplet,
    find_triplets_above,
    svd,
)
from mixnorm.norms.vectors import (
    clip,
    dual_vector,
    max_magnitude,
    power_of_two_below,
    rescale,
    vector_norm,
)

# The squares of entries between these, and their sums, keep their digits, also in float32.
# Products of four entries and sums of many stay well within float32 (1e-38 to 3e38).
_LEAST_SAFE_ENTRY, _LARGEST_SAFE_ENTRY = 1e-8, 1e8
# No singular value of such an array is above this.
# Entries are at most 1e8, so a value above it would need a matrix of 1e14 entries.
_ABOVE_SINGULAR_VALUES = 1e15

# Which norms have an ability, for errors.
_PROXIMAL_SCHATTEN_NORMS = "Schatten norms with q 1, 2 or infinity have one"
_CONVEX_SCHATTEN_NORMS = "Schatten norms with 1 < q <= 2 have one"
_ONLY_TRACE_NORM = "the trace norm has one"


def _has_prox(norm: Spectral) -> bool:
    return norm.q in (1, 2, math.inf)


def _is_strongly_convex(norm: Spectral) -> bool:
    return 1.0 < norm.q <= 2.0


def _is_trace(norm: Spectral) -> bool:
    return norm.q == 1


class Spectral(Parameters):
    """The base of the norms of singular values; ``q`` is their exponent."""

    q: float

    def check(self) -> None:
        """Raise a ValueError or TypeError for an exponent that is not allowed."""
        check_exponent(self.q, "q", self)

    # --- values

    def value(self, W: Array) -> float:
        """Return the norm."""
        self.check()
        return self._compute_value(W, float(self.q))

    def dual(self, V: Array) -> float:
        """Return the dual norm: the one with the conjugate exponent."""
        self.check()
        return self._compute_value(V, conjugate(float(self.q)))

    def dual_norm(self) -> SchattenNorm:
        """Return the dual norm as an object."""
        self.check()
        return SchattenNorm(conjugate(float(self.q)))

    # --- prox, projection, linear minimiser

    @ability(_is_trace, _ONLY_TRACE_NORM)
    def prox_factors(
        self, W: Array, tau: float, start: Array | None = None
    ) -> tuple[Any, Any, Any]:
        """Return the factors ``U, s, Vt`` of the prox ``(U * s) @ Vt`` (:eq:`block-prox`).

        Parameters
        ----------
        W : array of shape (n_features, n_outputs)
            The point.
        tau : float
            The amount taken from the singular values.
        start : array of shape (min(n_features, n_outputs), r), optional
            Guesses of leading singular vectors of the smaller side, one per column: the right ones
            (``Vt.T`` of an earlier call), or the left ones where there are fewer features than
            outputs. They are used where both sides are longer than 128.

        Returns
        -------
        U, s, Vt : arrays of shapes (n_features, r), (r,), (r, n_outputs)
            The singular values above ``tau``, reduced by ``tau``, largest first.
        """
        A, unit = self._scale(W)
        tau, xp, side = check_level(tau, "tau", W), namespace(A), min(A.shape)
        if start is not None and (getattr(start, "ndim", 0) != 2 or start.shape[0] != side):
            raise ValueError(
                f"start must have one column per guess and {side} rows, as the smaller side of W; "
                f"got shape {getattr(start, 'shape', None)}."
            )
        if not unit > 0.0:
            rank = 1 if math.isnan(unit) else 0
            shapes = (W.shape[0], rank), (rank,), (rank, W.shape[1])
            where = {"dtype": W.dtype, "device": device_of(W)}
            left, values, right = (xp.full(shape, unit, **where) for shape in shapes)
            return left, values, right
        # An infinite level would make NaN of differences.
        relative = min(tau / unit, _ABOVE_SINGULAR_VALUES)
        found = find_triplets_above(A, relative, start)
        # Ritz values are never too large, so those above the level are the ones that stay; the
        # maximum is for rounding alone.
        values = found.values - relative
        values = xp.maximum(values, xp.zeros_like(values)) * unit
        return found.left, values, found.right.T

    @ability(_has_prox, _PROXIMAL_SCHATTEN_NORMS)
    def prox(self, W: Array, tau: float) -> Any:
        """Return the minimiser of ``tau * value(X) + ||X - W||^2 / 2``.

        See :eq:`block-prox` and, for ``q=inf``, :eq:`moreau`.
        """
        if self.q == math.inf:
            return W - TraceNorm().project(W, tau)  # Moreau
        if self.q == 2:
            size, tau = self.value(W), check_level(tau, "tau", W)
            return W * (max(0.0, 1.0 - tau / size) if size > 0.0 else 1.0)
        A, unit = self._scale(W)
        if not unit > 1.0:
            left, values, right = self.prox_factors(W, tau)
            return (left * values) @ right
        # Singular values may overflow, but entries do not, except by rounding.
        # The factors of the scaled array: those of W could have infinite singular values, although
        # every entry of the product is finite.
        left, values, right = self.prox_factors(A, check_level(tau, "tau", W) / unit)
        return clip((left * values) @ right, float_limits(W).max / unit) * unit

    @ability(_has_prox, _PROXIMAL_SCHATTEN_NORMS)
    def project(self, W: Array, radius: float) -> Any:
        """Return the nearest point whose value is at most ``radius``.

        A point that meets this to rounding comes back as it is.
        """
        (A, unit), radius, xp = self._scale(W), check_level(radius, "radius", W), namespace(W)
        if not unit > 0.0:
            return xp.full_like(W, unit)
        if self.q == 2:
            return W * min(1.0, radius / self.value(W))
        # Of the trace norm only the values that stay positive are needed.
        found = find_ball_triplets(A, radius / unit) if self.q == 1 else svd(A)
        size = vector_norm(found.values, float(self.q)) * unit
        # A point on the boundary is not moved by rounding.
        if size <= radius * (1.0 + 64.0 * epsilon(W)):
            return xp.asarray(W, copy=True)
        if radius == 0.0:
            return xp.zeros_like(W)
        project = project_magnitudes if self.q == 1 else clip
        values = project(found.values, radius / unit)
        return (found.left * values) @ found.right.T * unit

    def lmo(self, G: Array) -> Any:
        """Return a point of the unit ball with the least inner product with ``G``.

        That product is ``-dual(G)``. For the trace norm the point has rank one, and only the
        leading pair of singular vectors is computed. The point is zero for ``G = 0``.
        """
        self.check()
        if self.q != 1:
            return -self._find_aligned(G, float(self.q))[0]
        A, unit = self._scale(G)
        if not unit > 0.0:
            return namespace(G).full_like(G, unit)
        pair = find_leading_triplet(A)
        return -pair.left @ pair.right.T

    # --- mirror maps

    @ability(_is_strongly_convex, _CONVEX_SCHATTEN_NORMS)
    def mirror(self, theta: Array) -> Any:
        """Return the gradient of half the squared dual norm (:eq:`aligned-point`)."""
        point, size, unit = self._find_aligned(theta, float(self.q))
        return rescale(point * size, unit)

    @ability(_is_strongly_convex, _CONVEX_SCHATTEN_NORMS)
    def link(self, W: Array) -> Any:
        """Return the gradient of half the squared norm, the inverse of ``mirror``."""
        point, size, unit = self._find_aligned(W, conjugate(float(self.q)))
        return rescale(point * size, unit)

    @ability(_is_strongly_convex, _CONVEX_SCHATTEN_NORMS)
    def strong_convexity(self) -> float:
        """Return the constant of half the squared norm with respect to the norm itself.

        It is ``q - 1``, a result of Ball, Carlen and Lieb; see :eq:`bound-smooth` for its meaning.
        """
        return float(self.q) - 1.0

    @ability(_is_trace, _ONLY_TRACE_NORM)
    def surrogate(self, shape: tuple[int, int]) -> SchattenNorm:
        r"""Return the strongly convex norm to use in place of this one, on arrays of a shape.

        Its exponent is :math:`q = p/(p - 1)` with :math:`p = \max(2, \ln D)`, and :math:`D` the
        smaller side (:eq:`bound-twin`).
        """
        return SchattenNorm(conjugate(max(2.0, math.log(max(min(shape), 1)))))

    def _compute_value(self, W: Array, q: float) -> float:
        """Return the norm with exponent ``q``."""
        A, unit = self._scale(W)
        if not unit > 0.0:
            return unit
        xp = namespace(A)
        if q == 2.0:
            return unit * vector_norm(xp.reshape(xp.abs(A), (-1,)), 2.0)
        if q == math.inf:
            # No decomposition of the whole matrix for its largest value.
            return unit * find_largest_value(A)
        return unit * vector_norm(xp.linalg.svdvals(A), q)

    def _find_aligned(self, G: Array, q: float) -> tuple[Any, float, float]:
        """Return the point of the unit ball of ``q`` with the largest inner product with ``G``.

        See :eq:`aligned-point`. Also return the product, divided by a unit, and this unit.
        """
        A, unit = self._scale(G)
        if not unit > 0.0:
            return namespace(G).full_like(G, unit), unit, 1.0
        if q == 2.0:
            size = self._compute_value(A, 2.0)
            return A / size, size, unit
        left, values, right = svd(A)
        weights = dual_vector(values, q, conjugate(q))
        return (left * weights) @ right.T, vector_norm(values, conjugate(q)), unit

    def _scale(self, W: Array) -> tuple[Any, float]:
        """Return ``W / unit``, whose squares are safe, and the power of two ``unit``.

        The unit is zero for an array of zeros or of nothing, NaN for one that is not finite.
        """
        check_matrix(W, self)
        self.check()
        size = max_magnitude(W)
        if not 0.0 < size < math.inf:
            return W, 0.0 if size == 0.0 else math.nan
        if _LEAST_SAFE_ENTRY < size < _LARGEST_SAFE_ENTRY:
            return W, 1.0
        unit = power_of_two_below(size)
        return W / unit, unit


@dataclass
class SchattenNorm(Spectral):
    r"""The :math:`\ell_q` norm of the singular values, :math:`\|\sigma(W)\|_q`.

    Parameters
    ----------
    q : float, default=2.0
        The exponent, from 1 (:class:`TraceNorm`) over 2 (the Euclidean norm of all entries) to
        infinity (the largest singular value).

    Notes
    -----
    Methods that a norm lacks are absent (``hasattr`` is False): ``prox`` and ``project`` need ``q``
    1, 2 or infinity; ``mirror``, ``link`` and ``strong_convexity`` need ``1 < q <= 2``;
    ``surrogate`` and ``prox_factors`` need ``q=1``. Unless ``q`` is 2, everything but the largest
    singular value costs a thin singular value decomposition; see :class:`TraceNorm`.

    References
    ----------
    S. Kakade, S. Shalev-Shwartz, A. Tewari, "Regularization techniques for learning with
    matrices", JMLR 13, 2012, section 2.4.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.diag([3.0, 4.0])
    >>> [round(SchattenNorm(q).value(W), 6) for q in (1.0, 2.0, np.inf)]
    [7.0, 5.0, 4.0]
    >>> norm = SchattenNorm(1.5)
    >>> norm.strong_convexity()
    0.5
    >>> np.allclose(norm.link(norm.mirror(W)), W)
    True
    """

    q: float = 2.0


@dataclass
class TraceNorm(Spectral):
    r"""The sum of the singular values, :math:`\|W\|_{S(1)}`, which favours weights of low rank.

    Notes
    -----
    ``prox`` needs only the singular values above ``tau``. Where the smaller side is at most 128
    they come from its Gram matrix, or from a thin singular value decomposition where ``tau`` is a
    small part of the largest. For larger arrays they come from block Krylov spaces, which are
    restarted until the relative error is below 1e-10 (1e-5 in single precision); ``prox_factors``
    takes a ``start`` for them. Where more than a fifth of the singular values stay, a dense
    decomposition costs no more and is made instead.

    Examples
    --------
    >>> import numpy as np
    >>> norm = TraceNorm()
    >>> W = np.asarray([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> norm.value(W), norm.dual(W)
    (4.0, 3.0)
    >>> U, s, Vt = norm.prox_factors(W, 1.5)
    >>> s
    array([1.5])
    >>> norm.surrogate((1000, 100))
    SchattenNorm(q=1.277...)
    """

    q: ClassVar[float] = 1.0  # type: ignore[misc]
