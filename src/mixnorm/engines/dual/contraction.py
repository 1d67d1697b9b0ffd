r"""Gram tensors of an even number of rows, contracted with one vector in all arguments but two.

With features :math:`F` and :math:`u = F \alpha`, one matrix :math:`V(\alpha) = F^\top
\mathrm{diag}(|u|^{q-2}) F` (:eq:`tensor-contraction`) gives all that a solver reads
(:eq:`tensor-derivatives`): the scores :math:`V \alpha` of the training rows, the norm
:math:`\alpha^\top V \alpha = \|u\|_q^q`, and the Hessian :math:`(q - 1) V`.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from scipy.linalg import blas

from mixnorm.kernels.tensor import multiplicities, multisets, weights_of_sums

# Values of features that are multiplied at a time: these stay in the cache with their products.
_FEATURE_VALUES_AT_A_TIME = 2**18
# Relative error of sums of many terms.
_ERROR_OF_SUMS = 1e-13


class Contraction:
    """Base of tensor kernels on training rows, as solvers read them.

    A subclass has ``matrix``; ``diagonal`` and ``take`` are for the callers of solvers. The
    defaults suit symmetric tensors.
    """

    #: The exponent; features are in :math:`\ell^q`.
    q: float
    #: Number of rows.
    n: int

    def matrix(self, alpha: np.ndarray) -> np.ndarray:
        """Return the matrix ``V(alpha)``, which is positive semi-definite."""
        raise NotImplementedError

    def diagonal(self) -> np.ndarray:
        """Return the kernel of each row with itself in all arguments."""
        raise NotImplementedError

    def take(self, rows: np.ndarray) -> Contraction:
        """Return the contraction of some of the rows."""
        raise NotImplementedError

    def hessian(self, alpha: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return the second derivatives of the norm's part of the dual, ``(q - 1) V``."""
        return (self.q - 1.0) * V

    def form(self, alpha: np.ndarray) -> float:
        """Return the q-th power of the norm of the features' sum."""
        return float(alpha @ (self.matrix(alpha) @ alpha))

    def rounding_error(self) -> float:
        """Return the relative rounding error of the form where large terms cancel."""
        return _ERROR_OF_SUMS

    def scores(self, alphas: np.ndarray) -> np.ndarray:
        """Return the scores of all rows for several vectors, ``(n, n_vectors)``."""
        return np.stack([self.matrix(alpha) @ alpha for alpha in alphas.T], axis=1)


class FeatureContraction(Contraction):
    """Contraction by explicit features, for any exponent above two.

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
        """Return the matrix, a sum of Gram matrices of blocks of features."""
        step = max(1, _FEATURE_VALUES_AT_A_TIME // max(1, self.n))
        # By blocks, or the weighted features would take as much memory as the features again. The
        # root of the weight goes on each side, so that the product is symmetric to the last bit.
        V = np.zeros((self.n, self.n))
        for start in range(0, len(self.features), step):
            part = self.features[start : start + step]
            u = np.abs(part @ alpha)
            # A power takes many times as long as a product, and q = 4 is the usual case.
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

    def rounding_error(self) -> float:
        """Return the q-th power of the relative error of the features' sums."""
        return float(_ERROR_OF_SUMS**self.q)

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
    """Contraction by the kernel of all multisets of half the arguments, ``q / 2`` rows each.

    For ``q = 4`` these are unordered pairs of rows (:eq:`tensor-pairs`).

    Parameters
    ----------
    gram : array of shape (n_sets, n_sets)
        The kernel of two multisets, in ascending order; only its lower triangle is read.
    n : int
        Number of rows.
    half : int
        The size of a multiset, at least 2.
    """

    def __init__(self, gram: np.ndarray, n: int, half: int = 2) -> None:
        self.gram, self.n, self.half = gram, n, half
        self.q = 2.0 * half
        self._sets = multisets(n, half)
        # How many tuples of rows are the same multiset: a pair i < j stands for two.
        self._times = multiplicities(self._sets)
        #: The places of the multisets of all tuples of rows, with an axis for each row.
        self._places = np.empty((n,) * half, dtype=np.int64)
        for order in permutations(self._sets):
            self._places[order] = np.arange(self._sets.shape[1])

    def matrix(self, alpha: np.ndarray) -> np.ndarray:
        """Return the matrix (:eq:`tensor-pairs`), by one product that reads half the kernel."""
        beta = self._times * np.prod(alpha[self._sets], axis=0)
        # BLAS reads columns first: it sees the lower triangle of the transpose as its upper one.
        return self._unpack(blas.dsymv(1.0, self.gram.T, beta), alpha)

    def diagonal(self) -> np.ndarray:
        """Return the kernel of each row with itself."""
        rows = np.arange(self.n)
        places = self._places[(rows,) * self.half]
        return np.asarray(self.gram[places, places])

    def _unpack(self, values: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """Return the matrix from a value for each multiset of half the arguments."""
        tensor = values[self._places]
        # For q = 2h the matrix has two free arguments; the other h - 2 are contracted here.
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
        # Row by row, and the lower triangle only: an index of all pairs would take more memory than
        # the kernel itself. The larger place comes first, as only that triangle is filled.
        gram = np.empty((len(index), len(index)))
        for place, row in enumerate(index):
            others = index[: place + 1]
            gram[place, : place + 1] = self.gram[np.maximum(row, others), np.minimum(row, others)]
        return TensorContraction(gram, len(rows), self.half)


class LowRankContraction(Contraction):
    r"""Contraction by a factor of few columns of the kernel of pairs, for ``q = 4``.

    The columns of a factor, unpacked to matrices :math:`A_r` (:eq:`tensor-low-rank`), define the
    norm :math:`\sum_r (\alpha^\top A_r \alpha)^2`, which is not a norm of features. Its Hessian is
    :math:`V + 2 \sum_r A_r \alpha \alpha^\top A_r`.

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
        """Return the matrix (:eq:`tensor-low-rank`), by two passes over the factor."""
        # As products with flat views of the factor, which are single calls of BLAS.
        flat = self.factor.reshape(len(self.factor), self.n * self.n)
        return np.asarray((flat.T @ (self._sides(alpha) @ alpha)).reshape(self.n, self.n))

    def _sides(self, alpha: np.ndarray) -> np.ndarray:
        """Return ``A_r alpha`` for every column of the factor."""
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
        V *= self.factor  # in place: every contraction makes a new matrix
        return V

    def hessian(self, alpha: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return the second derivatives."""
        # ``V`` is this class's own matrix; the contraction's is without the factor.
        return self.factor * self.contraction.hessian(alpha, V / self.factor)
