"""What searches by cross-validation share: values to try, and shares of variance."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np


def values_to_try(given: Any, name: str) -> list[Any]:
    """Return a list of numbers to try; a single one is a list of one."""
    if isinstance(given, numbers.Real) and not isinstance(given, bool):
        return [given]
    if isinstance(given, (str, bytes, dict)) or not isinstance(given, Iterable):
        raise TypeError(f"{name}={given!r} must be a list of numbers to try.")
    values = [value.item() if isinstance(value, np.generic) else value for value in given]
    for value in values:
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise TypeError(f"{name}={given!r} must be a list of numbers to try, got {value!r}.")
    if not values:
        raise ValueError(f"{name} is empty; give at least one number to try.")
    return values


def explained(y: np.ndarray, given: np.ndarray, weight: np.ndarray) -> float:
    """Return the share of variance explained, the mean over outputs; NaN for less than two rows."""
    if np.count_nonzero(weight > 0.0) < 2:  # one row does not vary
        return math.nan
    centre = np.average(y, axis=0, weights=weight)
    spread = np.sum(weight[:, None] * (y - centre) ** 2, axis=0)
    left = np.sum(weight[:, None] * (y - given) ** 2, axis=0)
    # As scikit-learn has it: outputs that do not vary count as one or nothing.
    shares = np.where(left == 0.0, 1.0, 0.0)
    np.divide(spread - left, spread, out=shares, where=spread > 0.0)
    return float(np.mean(shares))
