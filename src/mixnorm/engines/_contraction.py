r"""Gram tensors of an even number of rows, contracted with the same vector all but twice.

With features :math:`F` and :math:`u = F \alpha`, one matrix :math:`V(\alpha) = F^\top
\mathrm{diag}(|u|^{q-2}) F` has all that a solver asks for: the scores :math:`V \alpha` of the
training rows, the norm :math:`\alpha^\top V \alpha = \|u\|_q^q`, and the Hessian :math:`(q - 1) V`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

# Features that are worked on at a time: these stay in the cache with their products.
_BLOCK = 2**18


class Contraction(Protocol):
    """What a solver asks of a tensor kernel on training rows."""

    #: The exponent; features are in :math:`\ell^q`.
    q: float
    #: Number of rows.
    n: int

    def matrix(self, alpha: np.ndarray) -> np.ndarray:
        """Return the symmetric matrix ``V(alpha)``, with no negative eigenvalue."""
        ...


class FeatureContraction:
    """By explicit features, for any exponent above two.

    Parameters
    ----------
    features : array of shape (n_features, n_rows)
        Features, one in each row.
    q : float
        The exponent.
    """

    def __init__(self, features: np.ndarray, q: float) -> None:
        self.features = np.ascontiguousarray(features, dtype=np.float64)
        self.q = float(q)
        self.n = self.features.shape[1]

    def matrix(self, alpha: np.ndarray) -> np.ndarray:
        """Return the matrix, by blocks of features, each of which adds a Gram matrix."""
        V = np.zeros((self.n, self.n))
        step = max(1, _BLOCK // max(1, self.n))
        for start in range(0, len(self.features), step):
            part = self.features[start : start + step]
            u = np.abs(part @ alpha)
            W = part * (u if self.q == 4.0 else u ** (0.5 * self.q - 1.0))[:, None]
            V += W.T @ W
        return V

    def weights(self, alpha: np.ndarray) -> np.ndarray:
        """Return the weights of the features, ``sign(u) |u|^(q-1)``."""
        u = self.features @ alpha
        return np.asarray(np.sign(u) * np.abs(u) ** (self.q - 1.0))


class PairContraction:
    """By the matrix of all unordered pairs of rows, for ``q = 4``.

    Parameters
    ----------
    pairs : array of shape (n_pairs, n_pairs)
        The kernel of two pairs, in the order of :func:`pair_index`.
    n : int
        Number of rows.
    """

    q = 4.0

    def __init__(self, pairs: np.ndarray, n: int) -> None:
        self.pairs = pairs
        self.n = n
        self._left, self._right = pair_index(n)
        self._times = np.where(self._left == self._right, 1.0, 2.0)

    def matrix(self, alpha: np.ndarray) -> np.ndarray:
        """Return the matrix, by one product."""
        beta = self._times * alpha[self._left] * alpha[self._right]
        values = self.pairs @ beta.astype(self.pairs.dtype, copy=False)
        V = np.empty((self.n, self.n))
        V[self._left, self._right] = values
        V[self._right, self._left] = values
        return V


def pair_index(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the second row of every unordered pair.

    Examples
    --------
    >>> pair_index(2)
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    return np.triu_indices(n)
