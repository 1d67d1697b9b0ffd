"""Checks of arrays and numbers in models that come from files."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def check_floats(array: object, shape: tuple[int | None, ...], what: str) -> None:
    """Raise unless ``array`` has floats and this shape, where None matches any length.

    Examples
    --------
    >>> import numpy as np
    >>> check_floats(np.zeros((2, 3)), (None, 3), "the weights")
    """
    fits = (
        isinstance(array, np.ndarray)
        and array.dtype in (np.float32, np.float64)
        and array.ndim == len(shape)
        and array.shape[-1] > 0
        and all(n in (None, length) for n, length in zip(shape, array.shape, strict=True))
    )
    if not fits:
        raise ValueError(f"{what} must be an array of floats of shape {shape}")


def check_finite(array: Any, shape: tuple[int, ...], dtype: Any, what: str) -> None:
    """Raise unless ``array`` is finite and has exactly this shape and dtype."""
    fits = isinstance(array, np.ndarray) and array.shape == shape and array.dtype == dtype
    if not fits or not np.all(np.isfinite(array)):
        raise ValueError(f"{what} must be a finite array of {np.dtype(dtype)} of shape {shape}")


def check_whole(array: Any, shape: tuple[int, ...], below: float, what: str) -> None:
    """Raise unless an array has this shape and whole numbers from zero up, below a bound."""
    sound = isinstance(array, np.ndarray) and array.dtype.kind == "i" and array.shape == shape
    if not sound or (array.size and not 0 <= array.min() <= array.max() < below):
        raise ValueError(f"{what} must be an array of shape {shape} of whole numbers below {below}")


def check_positive(value: object, what: str) -> None:
    """Raise unless ``value`` is a float above zero and finite."""
    # ``type`` and not ``isinstance``: subclasses may compare as they like.
    if type(value) is not float or not 0.0 < value < math.inf:
        raise ValueError(f"{what} must be a positive number")
