"""Solutions for many penalties: the grid of penalties, and what was found along it."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixnorm._checks import check_array
from mixnorm.estimators._common.parameters import Number, Whole

_NUMBER = Whole(least=1, why="it is the number of penalties")
_RATIO = Number(above=0, below=1, why="it is the smallest penalty divided by the largest")


@dataclass(frozen=True)
class MixedNormPath:
    """Solutions along a path of penalties, the largest first, as ``path`` returns them.

    Only the weights of features in use are kept, so that a path over many features takes little
    memory where few of them are in use.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        The penalties, falling.
    intercepts : ndarray of shape (n_alphas, n_outputs)
        The intercepts.
    gaps : ndarray of shape (n_alphas,)
        Duality gaps: no objective is further than this above its optimum.
    objectives : ndarray of shape (n_alphas,)
        Loss plus ``alpha`` times norm.
    norm_values : ndarray of shape (n_alphas,)
        Norms of the weights.
    n_iters : ndarray of shape (n_alphas,)
        Iterations, each solution started from the one before.
    scale : float
        The objective with no weights; ``gaps / scale`` are the relative gaps.
    alpha_max : float
        The smallest penalty known to leave all weights at zero.
    supports : tuple of ndarray
        For each penalty the features with a weight that is not zero.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixnorm import MixedNormClassifier
    >>> path = MixedNormClassifier("l2,1").path(*load_iris(return_X_y=True), alphas=5)
    >>> path.coefs.shape, int(path.n_features[0]), bool(path.n_features[-1] > 1)
    ((5, 3, 4), 0, True)
    >>> path.decision_function(load_iris().data[:10]).shape
    (5, 10, 3)
    """

    alphas: np.ndarray
    intercepts: np.ndarray
    gaps: np.ndarray
    objectives: np.ndarray
    norm_values: np.ndarray
    n_iters: np.ndarray
    scale: float
    alpha_max: float
    supports: tuple[np.ndarray, ...] = field(repr=False)
    _weights: tuple[np.ndarray, ...] = field(repr=False)
    _width: int = field(repr=False)

    def __len__(self) -> int:
        return len(self.alphas)

    @property
    def n_features(self) -> np.ndarray:
        """For each penalty the number of features in use."""
        return np.asarray([len(support) for support in self.supports], dtype=np.intp)

    @property
    def coefs(self) -> np.ndarray:
        """All weights, of shape ``(n_alphas, n_outputs, n_features)``; made anew at each use."""
        coefs = np.zeros((len(self), self.intercepts.shape[1], self._width), self.intercepts.dtype)
        for full, support, weights in zip(coefs, self.supports, self._weights, strict=True):
            full[:, support] = weights
        return coefs

    def coef(self, position: int) -> np.ndarray:
        """Return the weights for one of the penalties, of shape ``(n_outputs, n_features)``."""
        full = np.zeros((self.intercepts.shape[1], self._width), self.intercepts.dtype)
        full[:, self.supports[position]] = self._weights[position]
        return full

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores for every penalty.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data.

        Returns
        -------
        ndarray of shape (n_alphas, n_samples, n_outputs)
            The predictions of a regressor, or scores of classes or tasks. Of two classes there is
            one output, positive for the second of them.
        """
        X = check_array(X, accept_sparse="csc", dtype=[np.float64, np.float32])
        if X.shape[1] != self._width:
            raise ValueError(
                f"X has {X.shape[1]} features, but the path was fitted with {self._width}; give "
                "the same columns."
            )
        scores = [
            X[:, support] @ weights.T + intercept
            for support, weights, intercept in zip(
                self.supports, self._weights, self.intercepts, strict=True
            )
        ]
        return np.asarray(scores)


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
        _weights=tuple(kept),
        _width=width,
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
