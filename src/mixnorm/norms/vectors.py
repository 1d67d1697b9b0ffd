"""Norms of rows and of vectors, and the points at which Hölder's inequality is an equality.

Nothing here overflows: magnitudes are divided by the largest before they are raised to a power.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mixnorm._array import Array, device_of, float_limits, is_numpy, namespace

# NumPy finds the maxima of rows shorter than this quicker in a transposed copy.
_SHORT = 64


def concatenate(vectors: Sequence[Array]) -> Any:
    """Join vectors, one per part, into one."""
    return vectors[0] if len(vectors) == 1 else namespace(vectors[0]).concat(vectors)


def row_norms(A: Array, p: float) -> Any:
    """Return the ``p``-norm of each row, ``p`` in 1, 2 and infinity; it may overflow."""
    xp = namespace(A)
    if A.shape[1] == 1:
        return xp.abs(A[:, 0])
    if p == 2.0:
        return np.sqrt(np.einsum("ij,ij->i", A, A)) if is_numpy(A) else xp.sqrt(row_sums(A * A))
    return row_sums(xp.abs(A)) if p == 1.0 else row_maxima(A)


def row_sums(A: Array) -> Any:
    """Return the sum of each row: a product with ones is quickest."""
    xp = namespace(A)
    # NumPy adds up short rows one by one; a matrix product uses the whole width of the processor.
    return A @ xp.ones((A.shape[1],), dtype=A.dtype, device=device_of(A))


def row_maxima(A: Array) -> Any:
    """Return the largest magnitude of each row; zero where rows are empty."""
    xp = namespace(A)
    if A.shape[1] == 0:
        return xp.zeros((A.shape[0],), dtype=A.dtype, device=device_of(A))
    if is_numpy(A) and A.shape[1] < _SHORT:
        return np.abs(A.T, order="C").max(axis=0)
    return xp.max(xp.abs(A), axis=1)


def max_magnitude(W: Array) -> float:
    """Return the largest magnitude; zero where there is none."""
    if math.prod(W.shape) == 0:
        return 0.0
    xp = namespace(W)
    return max(float(xp.max(W)), -float(xp.min(W)), 0.0)


def power_of_two_below(size: float) -> float:
    """Return the power of two below ``size``, so that dividing by it is exact; at most 2^1000."""
    # The bounds keep the inverse of the power a normal number, which has all its digits.
    return math.ldexp(1.0, min(max(math.frexp(size)[1] - 1, -1000), 1000))


def rescale(A: Array, unit: float) -> Any:
    """Return ``A * unit``; infinite where that is beyond the largest float."""
    if unit == 1.0:
        return A
    with np.errstate(over="ignore"):
        return A * unit


def vector_norm(v: Array, p: float) -> float:
    """Return the ``p``-norm of a vector of magnitudes whose squares and sums are safe."""
    if v.shape[0] == 0:
        return 0.0
    xp = namespace(v)
    if p == 1.0:
        # In double precision: gaps are small differences of such sums over many blocks.
        total = v.sum(dtype=np.float64) if is_numpy(v) else xp.sum(v, dtype=xp.float64)
        return float(total)
    if p == 2.0:
        v = xp.astype(v, xp.float64, copy=False)
        return math.sqrt(float(v @ v))
    # Powers of shares of the largest cannot overflow, and those that vanish do not count.
    top = float(v.max() if is_numpy(v) else xp.max(v))
    if p == math.inf or top == 0.0 or not math.isfinite(top):
        return top
    total = float(xp.sum(_raise_to(v / top, p), dtype=xp.float64))
    return top * math.pow(total, 1.0 / p)


def _raise_to(shares: Array, p: float) -> Any:
    """Return numbers from 0 to 1 raised to a power, which may be too large for their dtype."""
    return shares ** min(p, float_limits(shares).max)


def dual_vector(v: Array, p: float, q: float) -> Any:
    """Return ``t`` with ``p``-norm one and ``<t, v>`` the ``q``-norm of magnitudes ``v``.

    Hölder's inequality is an equality there (:eq:`aligned-point`). ``q`` is conjugate to ``p``.
    Zero where ``v`` is zero.
    """
    xp = namespace(v)
    if v.shape[0] == 0 or float(xp.max(v)) == 0.0:
        return xp.zeros_like(v)
    if p == math.inf:
        return xp.astype(v > 0.0, v.dtype)
    if p == 1.0:
        places = xp.arange(v.shape[0], device=device_of(v))
        return xp.astype(places == xp.argmax(v), v.dtype)
    # Divide by the largest, not by the norm: for large q the two agree to rounding, but a power of
    # the one may be several times that of the other.
    shares = v / xp.max(v)
    total = float(xp.sum(_raise_to(shares, q), dtype=xp.float64))
    return _raise_to(shares, q - 1.0) / math.pow(total, 1.0 / p)


def sign_largest(A: Array) -> Any:
    """Return the sign of the largest entry of each row, in its place, and zeros elsewhere."""
    xp = namespace(A)
    places = xp.arange(A.shape[1], device=device_of(A))
    first = places[None, :] == xp.argmax(xp.abs(A), axis=1)[:, None]
    return xp.sign(A) * xp.astype(first, A.dtype)


def divide_or_zero(number: float | Array, v: Array) -> Any:
    """Return ``number / v`` for magnitudes ``v``, and zero where they are zero.

    ``number`` is one float or one per magnitude. The quotient may be infinite.
    """
    xp = namespace(v)
    positive = v > 0.0
    if is_numpy(v) and np.all(positive):
        with np.errstate(over="ignore"):
            return number / v
    with np.errstate(over="ignore"):
        found = number / xp.where(positive, v, xp.ones_like(v))
    return xp.where(positive, found, xp.zeros_like(v))


def clip(W: Array, bound: Any) -> Any:
    """Return ``W`` cut to ``[-bound, bound]``, a float or an array that broadcasts."""
    xp = namespace(W)
    if isinstance(bound, float):
        bound = min(bound, float_limits(W).max)
    if is_numpy(W):
        return np.clip(W, -bound, bound)
    if isinstance(bound, float):
        bound = xp.asarray(bound, dtype=W.dtype, device=device_of(W))
    return xp.minimum(xp.maximum(W, -bound), bound)


def copy_signs(sizes: Any, W: Array) -> Any:
    """Return magnitudes with the signs of ``W``; overwrites the magnitudes."""
    return np.copysign(sizes, W, out=sizes) if is_numpy(W) else sizes * namespace(W).sign(W)


def soft_threshold(W: Array, bound: float | Array) -> Any:
    """Return ``W`` with magnitudes reduced by ``bound``, and zero where they are below it."""
    # W minus its clipped part: no signs and no comparison with zero, and the clipped array is new,
    # so that the result may overwrite it.
    clipped = clip(W, bound)
    return np.subtract(W, clipped, out=clipped) if is_numpy(W) else W - clipped
