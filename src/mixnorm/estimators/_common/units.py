"""Units of targets in which nothing overflows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixnorm.losses import Loss

# The largest targets for which weights and predictions stay far from overflow.
_LARGEST_TARGET = {"float64": 1e304, "float32": 1e34}
# The smallest targets for which weights and predictions keep some digits.
_SMALLEST_TARGET = {"float64": 1e-318, "float32": 1e-40}
# The largest targets whose squares are safe where losses have no unit in common.
_SAFE_TO_SQUARE = 1e100
# Spread of a column of targets, relative to the largest, below which its squares vanish.
_VANISHING_SPREAD = 1e-140


@dataclass(frozen=True)
class Frame:
    """The centre that is subtracted from targets, their unit, and its power in the loss."""

    centre: np.ndarray
    unit: float
    degree: int

    def scale_loss(self, loss: Any) -> Any:
        """Return the loss for targets in this unit."""
        parameter = getattr(loss, "scaled_parameter", None)
        if parameter is None or self.unit == 1.0:
            return loss
        given = float(getattr(loss, parameter))
        # No residual is larger than 1e100 units.
        # A width such as Huber's delta is in the units of the targets.
        scaled = given / self.unit if given < 1e100 * self.unit else 1e100
        if degree_of(loss) == 2 and scaled < float(np.finfo(np.float64).eps) and given > 0.0:
            raise ValueError(
                f"{loss!r} beside targets that vary by {self.unit:.0e}: {parameter} is lost in "
                f"their rounding. Give {parameter} in the units of the targets, or scale y."
            )
        return replace(loss, **{parameter: scaled})


def target_frame(
    losses: Sequence[Loss], y: np.ndarray, weight: np.ndarray, *, fit_intercept: bool, dtype: Any
) -> Frame:
    """Return the frame for targets ``(n_samples, n_outputs)``, with a loss for each output.

    The solution stays the same, and float32 is as precise as the spread of the targets allows.
    ``weight`` has shape ``(n_samples,)`` or that of ``y`` and sums to one; ``dtype`` is that of the
    model's weights.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm.losses import Squared
    >>> y, weight = np.array([[1.0], [5.0]]), np.full(2, 0.5)
    >>> target_frame([Squared()], y, weight, fit_intercept=True, dtype=np.float64)
    Frame(centre=array([3.]), unit=2.0, degree=2)
    """
    # Targets of weight zero may hold anything, also NaN.
    counts = np.broadcast_to(weight.reshape(len(y), -1) > 0.0, y.shape)
    numbers = np.asarray([not loss.is_binary for loss in losses])
    sizes = np.max(np.where(counts & numbers, np.abs(y), 0.0), axis=0, initial=0.0)
    check_sizes(sizes, np.dtype(dtype).name)
    shifted = np.asarray([degree_of(loss) is not None for loss in losses])
    centre = np.zeros(y.shape[1])
    if fit_intercept:
        means = np.sum(weight.reshape(len(y), -1) * np.where(counts, y, 0.0), axis=0)
        centre[shifted] = means[shifted]
    degrees = {degree_of(loss) for loss in losses}
    # Losses with different powers have no common unit: a factor would change their proportion.
    degree = degrees.pop() if len(degrees) == 1 else None
    if degree is None:
        size = float(np.max(sizes, initial=0.0))
        if size > _SAFE_TO_SQUARE:
            raise ValueError(
                f"The targets are as large as {size:.0e}, and these losses have no unit in common "
                "in which that is moderate. Divide y by a number of that size."
            )
        return Frame(centre, 1.0, 2)
    spread = np.max(np.where(counts, np.abs(y - centre), 0.0), axis=0, initial=0.0)
    check_alike(spread, sizes)
    return Frame(centre, float(np.max(spread, initial=0.0)) or 1.0, degree)


def squared_frame(low: np.ndarray, high: np.ndarray, mean: np.ndarray, *, centred: bool) -> Frame:
    """Return the frame for the squared loss of targets with a range and a mean.

    Examples
    --------
    >>> import numpy as np
    >>> squared_frame(np.array([1.0]), np.array([5.0]), np.array([3.0]), centred=True)
    Frame(centre=array([3.]), unit=2.0, degree=2)
    """
    sizes = np.maximum(np.abs(low), np.abs(high))
    check_sizes(sizes, "float64")
    centre = mean if centred else np.zeros(len(sizes))
    spread = np.maximum(high - centre, centre - low)
    check_alike(spread, sizes)
    return Frame(centre, float(np.max(spread, initial=0.0)) or 1.0, 2)


def degree_of(loss: Loss) -> int | None:
    """Return the power with which a loss grows if score and target are scaled; None without one.

    A loss with such a power does not change if score and target are shifted alike.

    Examples
    --------
    >>> from mixnorm.losses import Absolute, Squared
    >>> degree_of(Squared()), degree_of(Absolute())
    (2, 1)
    """
    return getattr(loss, "degree", None)


def safe_unit(y: np.ndarray) -> float:
    """Return the power of two by which to divide ``y`` so that squares neither overflow nor vanish.

    It is one where they do not anyway.

    Examples
    --------
    >>> import numpy as np
    >>> safe_unit(np.array([3.0])), safe_unit(np.array([2.0**600])) == 2.0**600
    (1.0, True)
    """
    size = float(np.max(np.abs(y), initial=0.0))
    if 1.0 / _SAFE_TO_SQUARE < size < _SAFE_TO_SQUARE or not 0.0 < size < math.inf:
        return 1.0
    return math.ldexp(1.0, max(math.frexp(size)[1] - 1, -1022))


def check_sizes(sizes: np.ndarray, dtype: str) -> None:
    """Raise if targets are too large or too small for weights and predictions of a dtype."""
    size = float(np.max(sizes, initial=0.0))
    if size > _LARGEST_TARGET.get(dtype, math.inf) or 0.0 < size < _SMALLEST_TARGET.get(dtype, 0.0):
        kind = "large" if size > 1.0 else "small"
        wide = " give X as float64, or" if dtype != "float64" else ""
        raise ValueError(
            f"The targets, of size {size:.0e}, are too {kind} for {dtype};{wide} divide y by "
            "a number of that size."
        )


def check_alike(spread: np.ndarray, sizes: np.ndarray) -> None:
    """Raise if the loss of one output is negligible beside that of another."""
    # A column that varies by rounding alone counts as constant.
    varies = np.flatnonzero(spread > 64.0 * np.finfo(np.float64).eps * sizes)
    if len(varies) == 0:
        return
    small, large = (int(varies[pick(spread[varies])]) for pick in (np.argmin, np.argmax))
    if spread[small] < _VANISHING_SPREAD * spread[large]:
        raise ValueError(
            f"Targets in column {small} of y vary by {spread[small]:.0e}, those in column {large} "
            f"by {spread[large]:.0e}; beside these the former are negligible. Divide each column "
            "by its size, or fit them separately."
        )
