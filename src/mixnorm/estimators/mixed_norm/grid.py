"""The grid of penalties, and the path of what was found along it."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mixnorm.estimators._common.parameters import Number, Whole
from mixnorm.models import MixedNormPath

_NUMBER = Whole(least=1, why="it is the number of penalties")
_RATIO = Number(above=0, below=1, why="it is the smallest penalty divided by the largest")


def collect(
    found: Iterable[Any],
    turned: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
    alpha_max: float,
) -> MixedNormPath:
    """Return the path of solutions as they come, each forgotten but for its features in use.

    ``turned`` makes ``(n_outputs, n_features)`` of weights and their intercept.
    """
    figures, intercepts, supports, kept, scale, width = [], [], [], [], 1.0, 0
    for point in found:
        coef, intercept = turned(point.weights, point.intercept)
        support = np.flatnonzero(np.any(coef != 0.0, axis=0))
        figures.append(
            (point.alpha, point.gap, point.objective, point.norm_value, point.iterations)
        )
        intercepts.append(intercept)
        supports.append(support)
        kept.append(np.ascontiguousarray(coef[:, support]))
        scale, width = point.scale, coef.shape[1]
    alphas, gaps, objectives, norms, iterations = np.asarray(figures, dtype=np.float64).T
    return MixedNormPath(
        alphas=alphas,
        intercepts=np.asarray(intercepts),
        gaps=gaps,
        objectives=objectives,
        norm_values=norms,
        n_iters=iterations.astype(np.intp),
        scale=float(scale),
        alpha_max=alpha_max,
        supports=tuple(supports),
        weights=tuple(kept),
        width=width,
    )


def check_grid(alphas: Any, alpha_ratio: Any) -> None:
    """Raise a clear error unless the two describe a falling grid of penalties."""
    if isinstance(alphas, bool):
        raise TypeError(f"alphas={alphas!r} must be a whole number or a falling sequence.")
    if isinstance(alphas, numbers.Integral):
        _NUMBER.check("alphas", alphas)
        _RATIO.check("alpha_ratio", alpha_ratio)
        return
    given = _numbers(alphas)
    if given.ndim != 1 or len(given) == 0:
        raise ValueError(
            f"alphas has shape {given.shape}; give a whole number, or a sequence of penalties."
        )
    if not (np.all(np.isfinite(given)) and np.all(given > 0.0)):
        raise ValueError("alphas must be positive and finite; leave out what is not.")
    if np.any(np.diff(given) >= 0.0):
        raise ValueError(
            "alphas must fall from each to the next: every solution is where the next one starts. "
            "Sort them, the largest first."
        )


def grid_size(alphas: Any) -> int:
    """Return the number of penalties."""
    return int(alphas) if isinstance(alphas, numbers.Integral) else len(alphas)


def alpha_grid(alphas: Any, alpha_ratio: float, largest: float) -> np.ndarray:
    """Return the penalties: those given, or so many from the largest down, evenly in logarithms.

    Examples
    --------
    >>> alpha_grid(3, 0.01, 2.0)
    array([2.  , 0.2 , 0.02])
    >>> alpha_grid([0.3, 0.1], 0.01, 2.0)
    array([0.3, 0.1])
    """
    if not isinstance(alphas, numbers.Integral):
        return _numbers(alphas)
    if not largest > 0.0:  # no feature helps whatever the penalty
        largest = 1.0
    return np.asarray(largest * np.geomspace(1.0, float(alpha_ratio), int(alphas)))


def _numbers(alphas: Any) -> np.ndarray:
    try:
        return np.asarray(alphas, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"alphas={alphas!r} must be a whole number or a falling sequence of numbers."
        ) from error
