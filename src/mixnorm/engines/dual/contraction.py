r"""Gram tensors of an even number of rows, contracted with the same vector all but twice.

With features :math:`F` and :math:`u = F \alpha`, one matrix :math:`V(\alpha) = F^\top
\mathrm{diag}(|u|^{q-2}) F` has all that a solver asks for: the scores :math:`V \alpha` of the
training rows, the norm :math:`\alpha^\top V \alpha = \|u\|_q^q`, and the Hessian :math:`(q - 1) V`.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from scipy.linalg import blas

from mixnorm.kernels.tensor import multiplicities, multisets, weights_of_sums

# Features that are worked on at a time: these stay in the cache with their products.
_BLOCK = 2**18
# Relative errors of sums of many terms.
_EPSILON = 1e-13


class Contraction:
    """A tensor kernel on training rows, as a solver takes it; the defaults suit symmetric tensors.

    A subclass gives ``matrix``; ``diagonal`` and ``take`` are for the callers of solvers.
    """

    #: The exponent; features are in :math:`\ell^q`.
    q: float
    #: Number of rows.
    n: int

    def matrix(self, alpha: np.ndarray) -> np.ndarray:
        """Return the symmetric matrix ``V(alpha)``, with no negative eigenvalue."""
        raise NotImplementedError

    def diagonal(self) -> np.ndarray:
        """Return the kernel of each row with itself, of all arguments."""
        raise NotImplementedError

    def take(self, rows: np.ndarray) -> Contraction:
        """Return the contraction of some of the rows."""
        raise NotImplementedError

    def hessian(self, alpha: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return the second derivatives of the norm's part of the dual: mostly ``(q - 1) V``."""
        return (self.q - 1.0) * V

    def form(self, alpha: np.ndarray) -> float:
        """Return the q-th power of the norm of the features' sum."""
        return float(alpha @ (self.matrix(alpha) @ alpha))

    def rounding(self) -> float:
        """Return the relative rounding error of the form where large terms cancel."""
        return _EPSILON

    def scores(self, alphas: np.ndarray) -> np.ndarray:
        """Return the scores of all rows for several vectors, ``(n, n_vectors)``."""
        return np.stack([self.matrix(alpha) @ alpha for alpha in alphas.T], axis=1)


class FeatureContraction(Contraction):
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
        step = max(1, _BLOCK // max(1, self.n))
        V = np.zeros((self.n, self.n))
        for start in range(0, len(self.features), step):
            part = self.features[start : start + step]
            u = np.abs(part @ alpha)
            W = part * (u if self.q == 4.0 else u ** (0.5 * self.q - 1.0))[:, None]
            product = W.T @ W
            V = product if start == 0 else V + product
        return V

    def diagonal(self) -> np.ndarray:
        """Return the kernel of each row with itself."""
        return np.asarray((np.abs(self.features) ** self.q).sum(axis=0))

    def form(self, alpha: np.ndarray) -> float:
        """Return the sum of powers, which does not cancel."""
        return float(np.sum(np.abs(self.features @ alpha) ** self.q))

    def rounding(self) -> float:
        """Return what rounding leaves: sums of features are known to so many digits."""
        return float(_EPSILON**self.q)

    def weights(self, alpha: np.ndarray) -> np.ndarray:
        """Return the weights of the features, ``sign(u) |u|^(q-1)``."""
        return weights_of_sums(self.features @ alpha, self.q)

    def scores(self, alphas: np.ndarray) -> np.ndarray:
        """Return the scores of all rows for several vectors."""
        return np.asarray(self.features.T @ self.weights(alphas))

    def take(self, rows: np.ndarray) -> FeatureContraction:
        """Return the contraction of some of the rows."""
        return FeatureContraction(self.features[:, rows], self.q)


class TensorContraction(Contraction):
    """By the kernel of all multisets of half the arguments, ``q / 2`` rows each.

    For ``q = 4`` these are unordered pairs of rows.

    Parameters
    ----------
    gram : array of shape (n_sets, n_sets)
        The kernel of two multisets, in ascending order; its lower triangle alone is read.
    n : int
        Number of rows.
    half : int
        The size of a multiset, at least 2.
    """

    def __init__(self, gram: np.ndarray, n: int, half: int = 2) -> None:
        self.gram, self.n, self.half = gram, n, half
        self.q = 2.0 * half
        self._sets = multisets(n, half)
        self._times = multiplicities(self._sets)
        self._places = _index_multisets(self._sets, n)

    def matrix(self, alpha: np.ndarray) -> np.ndarray:
        """Return the matrix, by one product that reads half the kernel."""
        beta = self._times * np.prod(alpha[self._sets], axis=0)
        return self._unpack(blas.dsymv(1.0, self.gram.T, beta), alpha)

    def diagonal(self) -> np.ndarray:
        """Return the kernel of each row with itself."""
        rows = np.arange(self.n)
        places = self._places[(rows,) * self.half]
        return np.asarray(self.gram[places, places])

    def _unpack(self, values: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        tensor = values[self._places]
        for _ in range(self.half - 2):
            tensor = tensor @ alpha
        return np.asarray(tensor)

    def scores(self, alphas: np.ndarray) -> np.ndarray:
        """Return the scores of all rows for several vectors, by one matrix product."""
        betas = self._times[:, None] * np.prod(alphas[self._sets], axis=0)
        values = blas.dsymm(1.0, self.gram.T, betas)
        parts = zip(values.T, alphas.T, strict=True)
        return np.stack([self._unpack(v, alpha) @ alpha for v, alpha in parts], axis=1)

    def take(self, rows: np.ndarray) -> TensorContraction:
        """Return the contraction of some of the rows."""
        index = self._places[tuple(rows[multisets(len(rows), self.half)])]
        gram = np.empty((len(index), len(index)))
        for place, row in enumerate(index):
            others = index[: place + 1]
            gram[place, : place + 1] = self.gram[np.maximum(row, others), np.minimum(row, others)]
        return TensorContraction(gram, len(rows), self.half)


class LowRankContraction(Contraction):
    r"""By a factor of few columns of the kernel of pairs, for ``q = 4``.

    A factor :math:`L` makes matrices :math:`A_r` of its columns. The norm :math:`\sum_r
    (\alpha^\top A_r \alpha)^2` is not that of features, and its Hessian is :math:`V + 2 \sum_r
    A_r \alpha \alpha^\top A_r`.

    Parameters
    ----------
    factor : array of shape (n_columns, n, n)
        The symmetric matrices.
    """

    q = 4.0

    def __init__(self, factor: np.ndarray) -> None:
        self.factor = factor
        self.n = factor.shape[1]

    def matrix(self, alpha: np.ndarray) -> np.ndarray:
        """Return the matrix, by two passes over the factor."""
        flat = self.factor.reshape(len(self.factor), self.n * self.n)
        return np.asarray((flat.T @ (self._sides(alpha) @ alpha)).reshape(self.n, self.n))

    def _sides(self, alpha: np.ndarray) -> np.ndarray:
        flat = self.factor.reshape(len(self.factor) * self.n, self.n)
        return np.asarray(flat @ alpha).reshape(len(self.factor), self.n)

    def diagonal(self) -> np.ndarray:
        """Return the kernel of each row with itself."""
        return np.asarray((np.diagonal(self.factor, axis1=1, axis2=2) ** 2).sum(axis=0))

    def hessian(self, alpha: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return the second derivatives."""
        sides = self._sides(alpha)
        return np.asarray(V + 2.0 * (sides.T @ sides))

    def take(self, rows: np.ndarray) -> LowRankContraction:
        """Return the contraction of some of the rows."""
        return LowRankContraction(np.ascontiguousarray(self.factor[:, rows][:, :, rows]))


class ScaledContraction(Contraction):
    """A contraction whose kernel is multiplied by a number.

    Parameters
    ----------
    contraction : Contraction
        The contraction.
    factor : float
        The number.
    """

    def __init__(self, contraction: Contraction, factor: float) -> None:
        self.contraction, self.factor = contraction, factor
        self.q, self.n = contraction.q, contraction.n

    def matrix(self, alpha: np.ndarray) -> np.ndarray:
        """Return the matrix."""
        V = self.contraction.matrix(alpha)
        V *= self.factor
        return V

    def hessian(self, alpha: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return the second derivatives."""
        return self.factor * self.contraction.hessian(alpha, V / self.factor)


def _index_multisets(sets: np.ndarray, n: int) -> np.ndarray:
    """Return the place of the multiset of any indices, as an array of ``n`` in every axis."""
    places = np.zeros((n,) * len(sets), dtype=np.int64)
    for order in permutations(range(len(sets))):
        places[tuple(sets[list(order)])] = np.arange(sets.shape[1])
    return places
