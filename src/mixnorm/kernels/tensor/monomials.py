"""Monomials of several variables: their exponents, coefficients and values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln


@dataclass(frozen=True)
class Monomials:
    r"""All monomials of one degree.

    Those of degree :math:`t` are ordered by their largest variable. Those with largest variable
    :math:`v` are :math:`x_v` times the first :math:`N_{t-1}(v)` monomials of degree :math:`t - 1`,
    whose variables are at most :math:`v`. Their values are therefore computed by whole blocks.

    Attributes
    ----------
    n_variables, degree : int
        The number of variables, and the degree of all monomials.
    counts : array of shape (degree + 1, n_variables)
        The number of monomials of each degree whose largest variable is at most each variable.
    coefficients : array of shape (n_monomials,)
        The multinomial coefficients :math:`\binom{s}{\kappa}` of :eq:`tensor-monomials`.
    """

    n_variables: int
    degree: int
    counts: np.ndarray
    coefficients: np.ndarray

    @classmethod
    def of_degree(cls, n_variables: int, degree: int) -> Monomials:
        """Return all monomials of a degree.

        Examples
        --------
        >>> made = Monomials.of_degree(2, 3)
        >>> [made.exponents(k).tolist() for k in range(len(made))]
        [[3, 0], [2, 1], [1, 2], [0, 3]]
        >>> made.coefficients
        array([1., 3., 3., 1.])
        """
        counts = np.ones((degree + 1, n_variables), dtype=np.int64)
        # A monomial x_v^r * rest of degree t comes from its parent of degree t - 1 by one more
        # factor x_v. The multinomial coefficient grows by t over the new power of x_v, which is one
        # more than the parent's if x_v was also its last variable.
        coefficients, last, run = np.ones(1), np.full(1, -1), np.zeros(1, dtype=np.int64)
        for t in range(1, degree + 1):
            counts[t] = np.cumsum(counts[t - 1])
            sizes = counts[t - 1]
            parents = np.concatenate([np.arange(size) for size in sizes])
            variable = np.repeat(np.arange(n_variables), sizes)
            again = np.where(last[parents] == variable, run[parents], 0)
            coefficients = coefficients[parents] * t / (again + 1)
            last, run = variable, again + 1
        return cls(n_variables, degree, counts, coefficients)

    def __len__(self) -> int:
        return len(self.coefficients)

    def exponents(self, places: int | np.ndarray) -> np.ndarray:
        """Return the exponents of the variables in a monomial, or in several, one in each row."""
        left = np.array(places, dtype=np.int64)
        found = np.zeros((*left.shape, self.n_variables), dtype=np.int64)
        for t in range(self.degree, 0, -1):
            # Monomials of degree t are ordered by their largest variable. The place tells this
            # variable; what is left of the place is that of the parent, of degree t - 1.
            ends = self.counts[t]
            variable = np.searchsorted(ends, left, side="right")
            left = left - np.where(variable > 0, ends[variable - 1], 0)
            found += variable[..., None] == np.arange(self.n_variables)
        return found

    def values(self, X: np.ndarray, scales: np.ndarray | None = None) -> np.ndarray:
        """Return the monomials of rows, ``(n_monomials, n_rows)``, each times its scale.

        Examples
        --------
        >>> import numpy as np
        >>> Monomials.of_degree(2, 2).values(np.array([[2.0, 3.0]]))
        array([[4.],
               [6.],
               [9.]])
        """
        columns = np.ascontiguousarray(X.T)
        found = np.ones((1, X.shape[0]))
        for t in range(1, self.degree + 1):
            made = np.empty((int(self.counts[t, -1]), X.shape[0]))
            start = 0
            for variable, size in enumerate(self.counts[t - 1].tolist()):
                # The parents of all monomials with one largest variable are the first ``size`` of
                # the degree below.
                np.multiply(found[:size], columns[variable], out=made[start : start + size])
                start += size
            found = made
        if scales is not None:
            found *= scales[:, None]
        return found


@dataclass(frozen=True)
class MonomialList:
    """Monomials of any degrees, each given by the exponents of its variables.

    Attributes
    ----------
    exponents : array of shape (n_monomials, n_variables)
        Whole numbers, not negative.
    """

    exponents: np.ndarray

    def log_counts(self) -> np.ndarray:
        """Return the logarithms of the multinomial coefficients.

        Examples
        --------
        >>> import numpy as np
        >>> np.exp(MonomialList(np.array([[2, 1]])).log_counts()).round(9)
        array([3.])
        """
        powers = np.asarray(self.exponents, dtype=np.float64)
        return np.asarray(gammaln(powers.sum(axis=1) + 1.0) - gammaln(powers + 1.0).sum(axis=1))

    def log_sizes(self, X: np.ndarray) -> np.ndarray:
        """Return the logarithms of the magnitudes at rows: ``(n_monomials, n_rows)``."""
        powers = np.asarray(self.exponents, dtype=np.float64)
        sizes = np.abs(X)
        # The logarithm of zero times a power of zero would be NaN, but a monomial without that
        # column does not vanish: zeros count as log 1 here, and monomials that have one are set to
        # zero below.
        logs = np.log(sizes, out=np.zeros(X.shape), where=sizes > 0.0)
        found = powers @ logs.T
        if not np.all(sizes > 0.0):
            found[(powers > 0.0).astype(np.float64) @ (sizes == 0.0).T > 0.0] = -math.inf
        return np.asarray(found)

    def signs(self, X: np.ndarray) -> np.ndarray:
        """Return the signs at rows: -1 or 1, and 1 where a monomial is zero."""
        odd = np.asarray(self.exponents % 2, dtype=np.float64)
        return 1.0 - 2.0 * np.asarray(np.mod(odd @ (X < 0.0).T.astype(np.float64), 2.0))
