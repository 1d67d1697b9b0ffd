"""The grid of penalties, and the path of what was found along it."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np

from mixnorm.engines.proximal import Solution
from mixnorm.estimators._common.parameters import Number, Whole
from mixnorm.models import MixedNormPath

_ALPHA_COUNT = Whole(least=1, why="it is the number of penalties")
_ALPHA_RATIO = Number(above=0, below=1, why="it is the smallest penalty divided by the largest")

#: Falling penalties, or their number.
Alphas: TypeAlias = int | Sequence[float] | np.ndarray


def collect(
    found: Iterable[Solution],
    make_coef: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
    alpha_max: float,
) -> MixedNormPath:
    """Return the path of solutions, of which only the features in use are kept.

    ``make_coef`` returns weights as ``(n_outputs, n_features)``, and the intercept.
    """
    figures, intercepts, supports, kept, scale, width = [], [], [], [], 1.0, 0
    for point in found:
        coef, intercept = make_coef(point.weights, point.intercept)
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


def check_grid(alphas: Alphas, alpha_ratio: float) -> None:
    """Raise unless the two describe a falling grid of penalties."""
    if isinstance(alphas, bool):
        raise TypeError(f"alphas={alphas!r} must be a whole number or a falling sequence.")
    if isinstance(alphas, numbers.Integral):
        _ALPHA_COUNT.check("alphas", alphas)
        _ALPHA_RATIO.check("alpha_ratio", alpha_ratio)
        return
    given = _as_numbers(alphas)
    if given.ndim != 1 or len(given) == 0:
        raise ValueError(
            f"alphas has shape {given.shape}; give a whole number, or a sequence of penalties."
        )
    if not (np.all(np.isfinite(given)) and np.all(given > 0.0)):
        raise ValueError("alphas must be positive and finite; leave the others out.")
    if np.any(np.diff(given) >= 0.0):
        raise ValueError(
            "alphas must fall: every solution is the start of the next. Sort them, the largest "
            "first."
        )


def grid_size(alphas: Alphas) -> int:
    """Return the number of penalties."""
    return int(alphas) if isinstance(alphas, (int, np.integer)) else len(alphas)


def alpha_grid(alphas: Alphas, alpha_ratio: float, largest: float) -> np.ndarray:
    """Return the given penalties, or a number of them that fall evenly in logarithms.

    Examples
    --------
    >>> alpha_grid(3, 0.01, 2.0)
    array([2.  , 0.2 , 0.02])
    >>> alpha_grid([0.3, 0.1], 0.01, 2.0)
    array([0.3, 0.1])
    """
    if not isinstance(alphas, numbers.Integral):
        return _as_numbers(alphas)
    # Evenly in logarithms, as the number of features falls roughly with the logarithm of the
    # penalty.
    return np.asarray(largest * np.geomspace(1.0, float(alpha_ratio), int(alphas)))


def _as_numbers(alphas: Alphas) -> np.ndarray:
    try:
        return np.asarray(alphas, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"alphas={alphas!r} must be a whole number or a falling sequence of numbers."
        ) from error
