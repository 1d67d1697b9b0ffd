"""Tensor kernels: functions of an even number of rows, sums of products of their features."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mixnorm._params import Parameters
from mixnorm.kernels._base import positive, real
from mixnorm.kernels._functions import _power
from mixnorm.kernels._monomials import Monomials

# The largest exponent whose exponential is finite, with room for sums.
_LARGEST = 600.0


class TensorKernel(Parameters):
    r"""Base of the kernels of ``q`` rows that are functions of one product.

    With :math:`\langle x_1, \dots, x_q \rangle = \sum_j x_{1j} \cdots x_{qj}` a kernel is
    :math:`K(x_1, \dots, x_q) = \kappa(\langle x_1, \dots, x_q \rangle)`, a sum over features
    :math:`\sum_k \phi_k(x_1) \cdots \phi_k(x_q)` that are monomials of the columns.
    """

    #: Whether there is an end of features.
    finite: ClassVar[bool] = True

    def check(self) -> None:
        """Raise a ValueError or TypeError for parameters that are not allowed."""

    def columns(self, X: np.ndarray) -> np.ndarray:
        """Return the columns that products are taken of, in float64."""
        return np.asarray(X, dtype=np.float64)

    def shifts(self, X: np.ndarray, q: int) -> np.ndarray | None:
        """Return what each row adds to the argument of an exponential; None if there is none."""
        return None

    def of_products(self, P: np.ndarray, shift: Any = 0.0) -> np.ndarray:
        """Return the kernel where products are ``P`` and shifts of the rows add up to ``shift``.

        The memory of the products may be reused.
        """
        raise NotImplementedError

    def monomials(self, n_columns: int) -> Monomials:
        """Return the features as monomials of so many columns of the data."""
        raise NotImplementedError

    def n_features(self, n_columns: int) -> float:
        """Return the number of features; infinity where there is no end of them."""
        raise NotImplementedError

    def features(self, X: np.ndarray, q: float) -> np.ndarray:
        """Return the features of rows, one in each row: ``(n_features, n_rows)``.

        Their weights depend on ``q``: products of ``q`` of them add up to the kernel.
        """
        columns = self.columns(X)
        made = self.monomials(X.shape[1])
        return made.values(columns, made.coefficients ** (1.0 / q))

    def between(self, *rows: np.ndarray) -> np.ndarray:
        """Return the kernel of ``q`` tables, row by row.

        Parameters
        ----------
        *rows : arrays of shape (n_rows, n_columns)
            As many as the kernel has arguments, an even number.
        """
        self.check()
        products = np.prod(np.stack([self.columns(np.asarray(part)) for part in rows]), axis=0)
        shifts = [self.shifts(np.asarray(part), len(rows)) for part in rows]
        shift = sum(part for part in shifts if part is not None)
        return self.of_products(products.sum(axis=1), shift)


@dataclass
class PolynomialTensorKernel(TensorKernel):
    r"""The polynomial tensor kernel.

    .. math:: K(x_1, \dots, x_q) = (c^q + \langle x_1, \dots, x_q \rangle)^s

    Its features are all monomials of degree :math:`s` of the columns and the constant :math:`c`;
    without a constant, of the columns.

    Parameters
    ----------
    degree : int, default=2
        The degree :math:`s`, at least 1.
    constant : float, default=1.0
        The constant :math:`c`, not negative.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = PolynomialTensorKernel(degree=2)
    >>> X = np.array([[1.0, 2.0]])
    >>> kernel.between(X, X, X, X)
    array([324.])
    >>> float(np.sum(kernel.features(X, q=4) ** 4))
    324.0
    """

    degree: int = 2
    constant: float = 1.0

    def check(self) -> None:
        """Raise a ValueError or TypeError for parameters that are not allowed."""
        whole = isinstance(self.degree, numbers.Integral) and not isinstance(self.degree, bool)
        if not whole or self.degree < 1:
            kind = ValueError if isinstance(self.degree, numbers.Real) else TypeError
            raise kind(
                f"PolynomialTensorKernel(degree={self.degree!r}) is not offered; degree must be a "
                "whole number of at least 1."
            )
        if not 0.0 <= real(self.constant, "constant", self) < math.inf:
            raise ValueError(
                f"PolynomialTensorKernel(constant={self.constant!r}) must have a finite constant "
                "that is not negative."
            )

    def columns(self, X: np.ndarray) -> np.ndarray:
        """Return the columns and the constant, in float64."""
        wide = np.asarray(X, dtype=np.float64)
        if self.constant == 0.0:
            return wide
        return np.concatenate([wide, np.full((len(wide), 1), float(self.constant))], axis=1)

    def of_products(self, P: np.ndarray, shift: Any = 0.0) -> np.ndarray:
        """Return powers of the products."""
        return _power(P, int(self.degree)) if self.degree > 1 else P

    def monomials(self, n_columns: int) -> Monomials:
        """Return all monomials of the degree; the constant comes after the columns."""
        return Monomials.of_degree(n_columns + (self.constant > 0.0), int(self.degree))

    def n_features(self, n_columns: int) -> float:
        """Return the number of monomials."""
        variables = n_columns + (self.constant > 0.0)
        return float(math.comb(variables + int(self.degree) - 1, int(self.degree)))


@dataclass
class ExponentialTensorKernel(TensorKernel):
    r"""The exponential tensor kernel, whose features are all monomials there are.

    .. math:: K(x_1, \dots, x_q) = \exp\Bigl(\sigma \Bigl[\langle x_1, \dots, x_q \rangle
              - \frac1q \sum_r \|x_r\|_q^q\Bigr]\Bigr)

    It is 1 where all rows are the same, and a Gaussian kernel for ``q = 2``. Without
    normalisation, the second sum is left out.

    Parameters
    ----------
    sigma : float, default=1.0
        The factor :math:`\sigma`.
    normalized : bool, default=True
        Whether the kernel is 1 where all rows are the same.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0], [0.0, 2.0]])
    >>> ExponentialTensorKernel(sigma=0.5).between(X, X, X, X)
    array([1., 1.])
    """

    sigma: float = 1.0
    normalized: bool = True

    finite: ClassVar[bool] = False

    def check(self) -> None:
        """Raise a ValueError or TypeError for parameters that are not allowed."""
        positive(self.sigma, "sigma", self)
        if not isinstance(self.normalized, (bool, np.bool_)):
            raise TypeError(
                f"ExponentialTensorKernel(normalized={self.normalized!r}) must be True or False."
            )

    def shifts(self, X: np.ndarray, q: int) -> np.ndarray | None:
        """Return what normalisation subtracts, for each row."""
        if not self.normalized:
            return None
        powers = np.abs(np.asarray(X, dtype=np.float64)) ** q
        return np.asarray(-float(self.sigma) / q * powers.sum(axis=1))

    def of_products(self, P: np.ndarray, shift: Any = 0.0) -> np.ndarray:
        """Return exponentials of the products and shifts."""
        P = np.multiply(P, float(self.sigma), out=P)
        P += shift
        if P.size and float(np.max(P)) > _LARGEST:
            raise ValueError(
                f"ExponentialTensorKernel has the value exp({float(np.max(P)):.3g}), which is too "
                "large. Set normalized=True, scale the columns, or lower sigma."
            )
        return np.asarray(np.exp(P, out=P))

    def n_features(self, n_columns: int) -> float:
        """Return infinity."""
        return math.inf
