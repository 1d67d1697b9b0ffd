"""Small operations on arrays of any namespace that several losses need."""

from __future__ import annotations

from typing import Any, TypeAlias

from mixnorm._array import Array, device_of, epsilon, namespace

#: One number, or an array that broadcasts.
Numbers: TypeAlias = float | Array
#: How many rounding errors a dual point may be out of its domain.
# Dual points come from sums and products over a row; their rounding grows with the number of terms,
# which :func:`slack` adds.
SLACK = 64.0


def clip(array: Array, low: Numbers | None = None, high: Numbers | None = None) -> Any:
    """Return ``array`` between two bounds, numbers or arrays, in the memory layout it has.

    The ``clip`` of a namespace may lay out its result row by row, which is slow here.
    """
    xp = namespace(array)
    if low is not None:
        array = xp.maximum(array, _follow(low, array))
    if high is not None:
        array = xp.minimum(array, _follow(high, array))
    return array


def _follow(bound: Numbers, array: Array) -> Any:
    """Return a number as an array like ``array``; arrays come back as they are."""
    # The standard of array APIs has no maximum of an array and a number.
    if isinstance(bound, (float, int)):
        return namespace(array).asarray(bound, dtype=array.dtype, device=device_of(array))
    return bound


def total(values: Array) -> float:
    """Return the sum of an array, added up in double precision."""
    xp = namespace(values)
    return float(xp.sum(values, dtype=xp.float64))


def ratio(part: Array, whole: Array) -> Any:
    """Return ``part / whole``, and zero where the whole is zero."""
    xp = namespace(part)
    # The inner ``where`` keeps the division itself from zeros, which would warn; the outer one
    # chooses.
    some = whole > 0.0
    return xp.where(some, part / xp.where(some, whole, 1.0), 0.0)


def inverse(weight: Array) -> Any:
    """Return ``1 / weight``, and zero where the weight is zero or its inverse would overflow."""
    xp = namespace(weight)
    large = weight > 4.0 * float(xp.finfo(weight.dtype).smallest_normal)
    return xp.where(large, 1.0 / xp.where(large, weight, 1.0), 0.0)


def slack(weight: Array, n_terms: int = 1) -> Any:
    """Return how far rounding may put a dual point out of its domain, in sums of ``n_terms``.

    The slack is zero where the weight is zero. Elsewhere it is at least a denormal number, because
    the parts of a tiny weight are rounded to denormal numbers.
    """
    xp = namespace(weight)
    finest = SLACK * float(xp.finfo(weight.dtype).smallest_normal)
    size = (SLACK + n_terms) * epsilon(weight) * weight
    return xp.where(weight > 0.0, size + finest, 0.0)
