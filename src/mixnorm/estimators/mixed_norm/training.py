"""The data as the proximal engine takes them, and their units."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixnorm._array import is_sparse
from mixnorm.data import ColumnStatistics, as_matrix
from mixnorm.engines.proximal import SeparateDesign, SharedDesign, Solution
from mixnorm.estimators._common.units import Frame

# Share of a column's square that rounding may take where only an intercept centres it.
_LARGEST_ROUNDING_OF_MEANS = 0.02
# Part of the largest number: columns that vary by more may hold differences that overflow.
_HUGE = 1e-10
# In the units of the engine, penalties and radii beyond these have the same effect as these.
_LEAST_LEVEL, _LARGEST_LEVEL = 1e-200, 1e100
# Targets in the units in which they were given.
_GIVEN_TARGETS = Frame(np.zeros(()), 1.0, 2)


def moderate(matrices: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return matrices with entries whose squares stay in range, and their units for ``Training``.

    All are divided by one power of two, ``input_unit``, which is 1 in all but extreme cases.

    Examples
    --------
    >>> import numpy as np
    >>> moderate([np.full((2, 2), 3.0)])[1]
    {'input_unit': 1.0, 'largest_input': 3.0}
    >>> moderate([np.full((2, 2), 2.0**200)])[1] == {"input_unit": 2.0**200, "largest_input": 1.0}
    True
    """
    largest = max(_largest(X) for X in matrices)
    unit = power_of_two(largest, matrices[0].dtype)
    units = {"input_unit": unit, "largest_input": largest / unit}
    if unit == 1.0:
        return list(matrices), units
    return [X * X.dtype.type(1.0 / unit) for X in matrices], units


def power_of_two(largest: float, dtype: Any) -> float:
    """Return the power of two by which to divide entries; 1 in all but extreme cases."""
    info = np.finfo(dtype)
    # The eighth root: products of four entries and sums of many stay in range.
    if largest == 0.0 or float(info.tiny) ** 0.125 < largest < float(info.max) ** 0.125:
        return 1.0
    power = min(max(math.floor(math.log2(largest)), 2 - info.maxexp), info.maxexp - 2)
    return float(2.0**power)


@dataclass(frozen=True)
class ColumnUnits:
    """The centres and scales of columns: float64, of shape ``(n_features,)``.

    A column that is not in use has the scale zero, and is zero inside.
    """

    centre: np.ndarray
    scale: np.ndarray

    def apply(self, X: Any) -> Any:
        """Return a copy of a matrix in these units; a sparse one is not centred."""
        safe = np.where(self.scale > 0.0, self.scale, 1.0).astype(X.dtype)
        unused = self.scale == 0.0
        if is_sparse(X):
            inside = X.tocsr().astype(X.dtype, copy=True)
            inside.data /= safe[inside.indices]
            # A column that does not vary is zero inside: scaling would magnify its rounding.
            inside.data[unused[inside.indices]] = 0.0
            return inside
        centre = self.centre.astype(X.dtype)
        if np.max(self.scale, initial=0.0) > _HUGE * float(np.finfo(X.dtype).max):
            # A quarter of all three, so that no difference overflows.
            huge = np.where(self.scale > _HUGE * float(np.finfo(X.dtype).max), 0.25, 1.0)
            parts = huge.astype(X.dtype)
            X, centre, safe = X * parts, centre * parts, safe * parts
        inside = X - centre
        inside /= safe
        inside[:, unused] = 0.0
        return inside

    def part(self, index: np.ndarray | slice) -> ColumnUnits:
        """Return the units of some of the columns."""
        return ColumnUnits(self.centre[index], self.scale[index])

    def outward(self, weights: np.ndarray) -> np.ndarray:
        """Return weights for the columns as given, in float64, from weights inside."""
        found = np.zeros(weights.shape)
        used = self.scale > 0.0
        found[used] = weights[used] / self.scale[used, None]
        return found


def standardize_columns(
    matrices: Sequence[Any], weights: Sequence[np.ndarray], *, centred: bool
) -> tuple[list[Any], dict[str, Any]]:
    """Return matrices with columns in standard deviations, and their units for ``Training``.

    Means and deviations are those of the rows of all matrices together, each row with its weight.
    The weights of every matrix have the same sum. Without an intercept (``centred=False``) columns
    are divided by the root of their mean square instead, and not centred. Sparse matrices stay
    sparse: only an intercept centres their columns.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 5.0], [3.0, 5.0]])
    >>> inside, units = standardize_columns([X], [np.full(2, 0.5)], centred=True)
    >>> inside[0].tolist(), units["columns"].scale.tolist(), units["largest_input"]
    ([[-1.0, 0.0], [1.0, 0.0]], [1.0, 0.0], 1.0)
    """
    found = [
        as_matrix(X, X.dtype).statistics(np.asarray(weight, X.dtype))
        for X, weight in zip(matrices, weights, strict=True)
    ]
    # Only the intercept centres sparse columns; then it does so for all tasks.
    # Subtracting a mean would fill a sparse table. With an intercept the solution is the same
    # without, but for rounding, which is checked below.
    moved = centred and not any(is_sparse(X) for X in matrices)
    columns = column_units(found, centred=centred, moved=moved)
    if centred and not moved:
        check_offsets(found, columns.scale)
    inside = [columns.apply(X) for X in matrices]
    return inside, {"columns": columns, "largest_input": max(_largest(X) for X in inside)}


def check_offsets(found: Sequence[ColumnStatistics], scale: np.ndarray) -> None:
    """Raise a clear error for sparse columns whose mean drowns their deviation in rounding."""
    dtype = found[0].mean.dtype
    mean = np.max([np.abs(one.mean.astype(np.float64)) for one in found], axis=0)
    times = np.divide(mean, scale, out=np.zeros_like(mean), where=scale > 0.0)
    worst = int(np.argmax(times)) if len(times) else 0
    if len(times) and times[worst] ** 2 * float(np.finfo(dtype).eps) > _LARGEST_ROUNDING_OF_MEANS:
        raise ValueError(
            f"Column {worst} of the sparse X has a mean of {times[worst]:.3g} times its standard "
            f"deviation, too much for {dtype} without centring. Give X as a dense array, or "
            "subtract a typical value from the column."
        )


def column_units(found: Sequence[ColumnStatistics], *, centred: bool, moved: bool) -> ColumnUnits:
    """Return the units of columns, from statistics of matrices of equal weight."""
    dtype = found[0].mean.dtype
    means = np.asarray([one.mean for one in found], dtype=np.float64)
    centre = np.mean(means, axis=0)
    within = np.asarray([one.deviation for one in found], dtype=np.float64)
    # The variance of the joined rows is that within the matrices plus that of their means.
    between = means - centre
    if centred:
        low = np.min([one.low for one in found], axis=0)
        used = np.max([one.high for one in found], axis=0) > low
    else:
        between = means
        used = np.max([one.largest for one in found], axis=0) > 0.0
    deviation = _root_mean_square(np.concatenate([within, between]), len(found))
    # The inverse of a scale must be a number, or weights could not be turned outward.
    used &= deviation > 4.0 * np.finfo(dtype).tiny
    # In the dtype of the matrices, so that the same number is subtracted here and added outside.
    scale = np.where(used, deviation, 0.0).astype(dtype).astype(np.float64)
    return ColumnUnits(centre.astype(dtype).astype(np.float64) * moved, scale)


def _root_mean_square(values: np.ndarray, count: int) -> np.ndarray:
    """Return the roots of sums of squares over the first axis, divided by a count.

    No square underflows.
    """
    unit = np.max(np.abs(values), axis=0)
    unit[unit == 0.0] = 1.0
    return np.asarray(unit * np.sqrt(np.sum((values / unit) ** 2, axis=0) / count))


def _largest(X: Any) -> float:
    entries = X.data if is_sparse(X) else X
    return float(max(np.max(entries), -np.min(entries))) if entries.size else 0.0


def _ratio(above: float, below: float) -> float:
    """Return a quotient, infinity where it overflows."""
    with np.errstate(over="ignore"):
        return float(np.float64(above) / np.float64(below))


@dataclass(frozen=True)
class Training:
    """The data as the engine takes them, in units in which nothing overflows.

    Targets are in the units of ``frame``. ``X`` is divided by ``input_unit``, and then has
    ``largest_input`` as its largest magnitude (0 where that is not known). Where ``columns`` is
    given, ``X`` is in these units, and norms, penalties and radii are those of the weights in them.
    """

    design: SharedDesign | SeparateDesign
    loss: Any
    target: Any
    weight: np.ndarray
    frame: Frame = _GIVEN_TARGETS
    input_unit: float = 1.0
    largest_input: float = 0.0
    columns: ColumnUnits | None = None

    @property
    def weight_unit(self) -> float:
        """The factor from weights inside to weights outside."""
        return self.frame.unit / self.input_unit

    @property
    def alpha_unit(self) -> float:
        """The factor from a penalty inside to that outside; zero or infinity at the limits."""
        return self.frame.unit ** (self.frame.degree - 1) * self.input_unit

    def inside_alpha(self, alpha: float) -> float:
        """Return the penalty in the units of the engine, kept in a range in which it matters."""
        inside = _ratio(_ratio(alpha, self.frame.unit ** (self.frame.degree - 1)), self.input_unit)
        return min(max(inside, _LEAST_LEVEL), _LARGEST_LEVEL)

    def inside_radius(self, radius: float) -> float:
        """Return the radius in the units of the engine, kept in a range in which it matters."""
        inside = _ratio(radius, self.frame.unit) * self.input_unit
        return min(max(inside, _LEAST_LEVEL), _LARGEST_LEVEL) if radius > 0.0 else 0.0

    def outward(self, found: Solution) -> Solution:
        """Return a solution in the units of the data as they were given.

        A loss that overflows becomes the largest number.
        """
        with np.errstate(over="ignore", under="ignore"):  # the fit is checked for it elsewhere
            loss_unit = float(np.float64(self.frame.unit) ** self.frame.degree)
        unit = self.weight_unit
        weights, intercept = self._for_given_columns(found)

        def loss(inside: float) -> float:
            # A zero stays zero where the unit overflows.
            return min(inside * loss_unit, sys.float_info.max) if inside else 0.0

        return replace(
            found,
            weights=weights,
            intercept=intercept,
            alpha=None if found.alpha is None else found.alpha * self.alpha_unit,
            radius=None if found.radius is None else found.radius * unit,
            value=loss(found.value),
            norm_value=found.norm_value * unit,
            objective=loss(found.objective),
            gap=loss(found.gap),
            scale=loss(found.scale),
            history=tuple(loss(gap) for gap in found.history),
        )

    def _for_given_columns(self, found: Solution) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and intercept for the columns and targets as they were given."""
        unit, dtype = self.weight_unit, found.weights.dtype
        if self.columns is None:
            weights = found.weights if unit == 1.0 else found.weights * dtype.type(unit)
            intercept = found.intercept * self.frame.unit + self.frame.centre
        else:
            exact = self.columns.outward(found.weights) * unit
            weights = exact.astype(dtype, copy=False)
            shift = self.columns.centre @ weights.astype(np.float64)
            intercept = found.intercept * self.frame.unit + (self.frame.centre - shift)
        return weights, intercept.astype(dtype, copy=False)

    def inward(self, weights: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and intercept in the units of the engine."""
        dtype = self.design.dtype
        if self.columns is not None:
            intercept = intercept + self.columns.centre @ weights.astype(np.float64)
            weights = weights * self.columns.scale[:, None]
        inside = np.ascontiguousarray(weights / self.weight_unit, dtype=dtype)
        return inside, np.asarray((intercept - self.frame.centre) / self.frame.unit, dtype=dtype)
