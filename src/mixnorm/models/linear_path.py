"""Linear models for many penalties."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mixnorm._array import MatrixLike
from mixnorm._checks import check_array


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
    weights : tuple of ndarray
        For each penalty their weights, of shape ``(n_outputs, n_selected)``.
    width : int
        Number of columns seen in the fit.

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
    weights: tuple[np.ndarray, ...] = field(repr=False)
    width: int = field(repr=False)

    def __len__(self) -> int:
        return len(self.alphas)

    @property
    def n_features(self) -> np.ndarray:
        """For each penalty the number of features in use."""
        return np.asarray([len(support) for support in self.supports], dtype=np.intp)

    @property
    def coefs(self) -> np.ndarray:
        """All weights, of shape ``(n_alphas, n_outputs, n_features)``; made again at each use."""
        return np.stack([self.coef(position) for position in range(len(self))])

    def coef(self, position: int) -> np.ndarray:
        """Return the weights for one of the penalties, of shape ``(n_outputs, n_features)``."""
        full = np.zeros((self.intercepts.shape[1], self.width), self.intercepts.dtype)
        full[:, self.supports[position]] = self.weights[position]
        return full

    def decision_function(self, X: MatrixLike) -> np.ndarray:
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
        if X.shape[1] != self.width:
            raise ValueError(
                f"X has {X.shape[1]} features, but the path was fitted with {self.width}; give "
                "the same columns."
            )
        scores = [
            X[:, support] @ weights.T + intercept
            for support, weights, intercept in zip(
                self.supports, self.weights, self.intercepts, strict=True
            )
        ]
        return np.asarray(scores)
