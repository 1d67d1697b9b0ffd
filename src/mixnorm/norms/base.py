"""The seam between engines and norms."""

from __future__ import annotations

import math
import numbers
from typing import Any, Protocol, runtime_checkable

from mixnorm._array import Array, float_limits, is_real_floating, namespace


@runtime_checkable
class Norm(Protocol):
    r"""A norm: two methods, and abilities that depend on its parameters.

    ``hasattr`` tells whether a norm has an ability.

    Arrays have shape ``(n_features, n_outputs)`` and a real floating dtype. Results have the same
    namespace, dtype and device, and are always new arrays.

    ========================  =====================================================================
    ability                   what it is
    ========================  =====================================================================
    ``prox(W, tau)``          the minimiser of ``tau * value(X)`` plus half the squared distance
    ``project(W, radius)``    the nearest point whose value is at most ``radius``
    ``lmo(G)``                a minimiser of the inner product with ``G`` over the unit ball
    ``mirror(theta)``         the gradient of half the squared dual norm
    ``link(W)``               the gradient of half the squared norm: the inverse of ``mirror``
    ``strong_convexity()``    of half the squared norm, with respect to the norm
    ``surrogate(shape)``      the strongly convex norm to use in place of this one
    ``dual_norm()``           the dual as an object
    ``row_duals(V)``          for each row the dual norm of its block: ``dual`` is their maximum
    ``restrict(rows)``        the norm of the rows with these indices, which are whole blocks
    ``row_exponent``          the exponent inside a row, where every row is a block
    ========================  =====================================================================
    """

    def value(self, W: Array) -> float:
        """Return the norm."""
        ...

    def dual(self, V: Array) -> float:
        """Return the dual norm, the largest inner product with a point of the unit ball."""
        ...


def check_matrix(W: Array, norm: object) -> Any:
    """Return the namespace of a matrix of real floating numbers; raise for anything else."""
    if getattr(W, "ndim", None) != 2:
        shape = getattr(W, "shape", None)
        got = f"type {type(W).__name__}" if shape is None else f"shape {tuple(shape)}"
        raise ValueError(
            f"{type(norm).__name__} takes arrays of shape (n_features, n_outputs), got {got}. "
            "Reshape one output to (n_features, 1)."
        )
    if not is_real_floating(W):
        raise TypeError(
            f"{type(norm).__name__} takes arrays of real floating numbers, got {W.dtype}. "
            "Convert with astype."
        )
    return namespace(W)


def check_level(value: float | Array, name: str, W: Array) -> float:
    """Return ``tau`` or a radius as a float, not negative, that the dtype of ``W`` can hold."""
    level = float(value)
    if not level >= 0.0:
        raise ValueError(f"{name}={value!r} must be zero or more.")
    return min(level, float_limits(W).max)


def check_exponent(value: float, name: str, norm: object) -> float:
    """Return an exponent as a float in ``[1, inf]``."""
    plain = type(value) in (int, float)  # asking for numbers.Real takes longer
    if not plain and (isinstance(value, bool) or not isinstance(value, numbers.Real)):
        raise TypeError(
            f"{type(norm).__name__}({name}={value!r}) is not a number; give an exponent of at "
            "least 1, or numpy.inf."
        )
    if not float(value) >= 1.0:
        raise ValueError(
            f"{type(norm).__name__}({name}={value!r}) is not convex, so it is not a norm; use "
            f"{name} >= 1."
        )
    return float(value)


def conjugate(p: float) -> float:
    """Return the exponent of the dual norm, ``1/p + 1/q = 1``.

    Examples
    --------
    >>> [conjugate(p) for p in (1.0, 1.5, 2.0, math.inf)]
    [inf, 3.0, 2.0, 1.0]
    """
    if p == 1.0:
        return math.inf
    return 1.0 if p == math.inf else p / (p - 1.0)
