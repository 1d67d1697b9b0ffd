"""Small operations on arrays of any namespace that several losses need."""

from __future__ import annotations

from typing import Any

from mixnorm._array import Array, device_of, epsilon, namespace

#: How many rounding errors a dual point may be out of its domain.
SLACK = 64.0


def clipped(array: Any, low: Any = None, high: Any = None) -> Any:
    """Return ``array`` between two bounds, numbers or arrays, in the layout it has.

    A ``clip`` of the namespace may lay its result out row by row, and be slow.
    """
    xp = namespace(array)
    if low is not None:
        array = xp.maximum(array, _like(low, array))
    if high is not None:
        array = xp.minimum(array, _like(high, array))
    return array


def _like(bound: Any, array: Any) -> Any:
    if isinstance(bound, (float, int)):
        return namespace(array).asarray(bound, dtype=array.dtype, device=device_of(array))
    return bound


def total(values: Any) -> float:
    """Return the sum of an array, added up in double precision."""
    xp = namespace(values)
    return float(xp.sum(values, dtype=xp.float64))


def ratio(part: Any, whole: Any) -> Any:
    """Return ``part / whole``, zero where the whole is zero."""
    xp = namespace(part)
    some = whole > 0.0
    return xp.where(some, part / xp.where(some, whole, 1.0), 0.0)


def inverse(weight: Array) -> Any:
    """Return ``1 / weight``, and zero for weights that are zero or whose inverse would overflow."""
    xp = namespace(weight)
    large = weight > 4.0 * float(xp.finfo(weight.dtype).smallest_normal)
    return xp.where(large, 1.0 / xp.where(large, weight, 1.0), 0.0)


def slack(weight: Array, n_terms: int = 1) -> Any:
    """Return how far a dual point may be out of its domain, by rounding of sums of ``n_terms``.

    Zero where the weight is zero; and never less than a denormal number otherwise, which the
    parts of a tiny weight are rounded to.
    """
    xp = namespace(weight)
    finest = SLACK * float(xp.finfo(weight.dtype).smallest_normal)
    size = (SLACK + n_terms) * epsilon(weight) * weight
    return xp.where(weight > 0.0, size + finest, 0.0)
