"""Tensor kernels: functions of an even number of rows that are sums of products of features."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln

from mixnorm.kernels.functions.base import (
    KernelParameters,
    check_degree,
    check_flag,
    check_positive,
)
from mixnorm.kernels.functions.kernels import _power
from mixnorm.kernels.tensor.monomials import MonomialList, Monomials

# Exponentials of larger numbers, or sums of them, would overflow.
# exp(709) is the largest number of float64; the room is for sums of many such terms.
_LARGEST_EXPONENT = 600.0


class TensorKernel(KernelParameters):
    r"""Base of the kernels of ``q`` rows that are functions of one product.

    With :math:`\langle x_1, \dots, x_q \rangle = \sum_j x_{1j} \cdots x_{qj}` a kernel is
    :math:`K(x_1, \dots, x_q) = \kappa(\langle x_1, \dots, x_q \rangle)` with :math:`\kappa(t) =
    \sum_s \rho_s t^s` and no negative :math:`\rho_s` (:eq:`tensor-kernel`): a sum over features
    :math:`\sum_k \phi_k(x_1) \cdots \phi_k(x_q)` that are monomials of the columns
    (:eq:`tensor-monomials`).

    A kernel of your own is a dataclass that derives from this one and has ``of_products``, and
    ``degrees`` if the number of features is finite. If it is infinite, set ``finite = False``;
    features can then be drawn if the kernel has ``log_rho`` and ``draw_degrees``.
    """

    #: Whether the number of features is finite.
    finite: ClassVar[bool] = True
    #: Whether the kernel is a function of products; otherwise it is defined by its features only.
    has_products: ClassVar[bool] = True

    def resolve(self, X: np.ndarray) -> TensorKernel:
        """Return the kernel for training rows, its parameters checked and None replaced."""
        self.check()
        if self.finite and self.has_products:
            for degree, rho in self.degrees():
                if degree != int(degree) or degree < 0 or not 0.0 < rho < math.inf:
                    raise ValueError(
                        f"{self!r} has the coefficient {rho!r} for the degree {degree!r}; a tensor "
                        "kernel has whole degrees from 0 up, and positive coefficients."
                    )
        return self

    def columns(self, X: np.ndarray) -> np.ndarray:
        """Return the columns of which the kernel takes products, in float64."""
        return np.asarray(X, dtype=np.float64)

    def shifts(self, X: np.ndarray, q: float) -> np.ndarray | None:
        """Return the logarithm of a factor of each row; None if there are no such factors."""
        return None

    def of_products(self, P: np.ndarray, shift: float | np.ndarray = 0.0) -> np.ndarray:
        """Return the kernel for products ``P`` of rows whose shifts add up to ``shift``.

        The memory of the products may be reused.
        """
        raise NotImplementedError(
            f"{type(self).__name__} needs a method of_products(P, shift=0.0), which returns the "
            "kernel where products are P."
        )

    def degrees(self) -> list[tuple[int, float]]:
        r"""Return the degrees :math:`s` of features, each with its :math:`\rho_s > 0`."""
        raise NotImplementedError(
            f"{type(self).__name__} needs a method degrees(), which lists the degrees of its "
            "monomials with their coefficients. If these are infinitely many, set finite=False, "
            "and give it log_rho(degrees) and draw_degrees(totals, rng) to have monomials drawn."
        )

    def homogeneous(self) -> int | None:
        """Return the degree, if all features have the same degree; else None."""
        return None

    def n_features(self, n_columns: int) -> float:
        """Return the number of features of rows with ``n_columns`` entries, or infinity."""
        return self.count(self.columns(np.zeros((1, n_columns))).shape[1])

    def count(self, width: int) -> float:
        """Return the number of features where ``columns`` returns ``width`` columns."""
        if not self.finite:
            return math.inf
        return float(sum(math.comb(width + s - 1, s) for s, _ in self.degrees()))

    def features(self, X: np.ndarray, q: float) -> np.ndarray:
        """Return the features of rows, one in each row: ``(n_features, n_rows)``.

        Their weights depend on ``q``: products of ``q`` of them add up to the kernel.
        """
        if not self.finite:
            raise ValueError(f"{self!r} has infinitely many features, which cannot be listed.")
        return self.features_of_columns(self.columns(X), q)

    def features_of_columns(self, columns: np.ndarray, q: float) -> np.ndarray:
        """Return the features of rows given by their columns."""
        parts = []
        for degree, rho in self.degrees():
            made = Monomials.of_degree(columns.shape[1], degree)
            parts.append(made.values(columns, (rho * made.coefficients) ** (1.0 / q)))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def exponents(self, places: Iterable[int], width: int) -> np.ndarray:
        """Return the exponents of the columns in the features at some places."""
        # Features are numbered degree by degree, in the order of ``features_of_columns``.
        made = [Monomials.of_degree(width, degree) for degree, _ in self.degrees()]
        ends = np.cumsum([len(part) for part in made])
        asked = np.fromiter(places, dtype=np.int64)
        which = np.searchsorted(ends, asked, side="right")
        found = np.empty((len(asked), width), dtype=np.int16)
        for number, part in enumerate(made):
            own = which == number
            found[own] = part.exponents(asked[own] - (ends[number - 1] if number else 0))
        return found

    def count_on(self, columns: np.ndarray) -> float:
        """Return the number of features of rows given by their columns."""
        return self.count(columns.shape[1])

    def diagonal(self, columns: np.ndarray, q: float) -> np.ndarray:
        """Return the kernel of each row with itself."""
        shift = self.shifts(columns, q)
        powers = (np.abs(columns) ** q).sum(axis=1)
        return self.of_products(powers, 0.0 if shift is None else q * shift)

    # --- drawn features

    def draw(self, columns: np.ndarray, q: float, rng: np.random.Generator) -> np.ndarray:
        r"""Draw the exponents of a feature for each row (:eq:`tensor-shares`).

        The probability of a feature is its share of :math:`K(x, \dots, x)`.
        """
        totals = (np.abs(columns) ** q).sum(axis=1)
        return _split(self.draw_degrees(totals, rng), np.abs(columns) ** q, rng)

    def draw_degrees(self, totals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw the degree of a feature for each row, given its product with itself."""
        degrees, rho = (np.array(part) for part in zip(*self.degrees(), strict=True))
        # In logarithms less their maximum, because powers of large totals overflow. The probability
        # of degree s is rho_s t^s over the sum of all (:eq:`tensor-shares`).
        logs = np.log(rho) + degrees * np.log(np.maximum(totals, 1e-300))[:, None]
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        ends = np.cumsum(shares, axis=1)
        places = (ends < rng.uniform(size=(len(totals), 1)) * ends[:, -1:]).sum(axis=1)
        return np.asarray(degrees[places])

    def log_rho(self, degrees: np.ndarray) -> np.ndarray:
        r"""Return :math:`\log \rho_s` of degrees."""
        known = dict(self.degrees())
        return np.array(
            [math.log(known[int(s)]) if int(s) in known else -math.inf for s in degrees]
        )

    def features_with(self, columns: np.ndarray, exponents: np.ndarray, q: float) -> np.ndarray:
        """Return the features with these exponents: ``(n_features, n_rows)``."""
        made = MonomialList(exponents)
        # Logarithms of :eq:`tensor-monomials`: a large power times a small coefficient would
        # overflow on the way, although the feature itself is of normal size.
        logs = made.log_sizes(columns)
        logs += ((self.log_rho(exponents.sum(axis=1)) + made.log_counts()) / q)[:, None]
        shift = self.shifts(columns, q)
        logs += 0.0 if shift is None else shift
        values = np.exp(logs, out=logs)
        values *= made.signs(columns)
        return np.asarray(values)

    # --- values

    def between(self, *rows: np.ndarray) -> np.ndarray:
        """Return the kernel of ``q`` tables, row by row.

        Parameters
        ----------
        *rows : arrays of shape (n_rows, n_columns)
            One table for each argument of the kernel, an even number.
        """
        if len(rows) < 2 or len(rows) % 2:
            raise ValueError(f"A tensor kernel has an even number of arguments, got {len(rows)}.")
        kernel = self.resolve(np.asarray(rows[0]))
        if not kernel.has_products:
            parts = [kernel.features(np.asarray(part), len(rows)) for part in rows]
            return np.asarray(np.prod(parts, axis=0).sum(axis=0))
        columns = [kernel.columns(np.asarray(part)) for part in rows]
        shifts = [kernel.shifts(part, len(rows)) for part in columns]
        shift = sum(part for part in shifts if part is not None)
        return kernel.of_products(np.prod(np.stack(columns), axis=0).sum(axis=1), shift)


@dataclass
class PolynomialTensorKernel(TensorKernel):
    r"""The polynomial tensor kernel.

    .. math:: K(x_1, \dots, x_q) = (c^q + \langle x_1, \dots, x_q \rangle)^s

    Its features are all monomials of degree :math:`s` of the columns and the constant :math:`c`.
    With ``constant=0`` they are monomials of the columns only.

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
    >>> float(np.sum(kernel.features(X, q=4) ** 4).round(9))
    324.0
    """

    degree: int = 2
    constant: float = 1.0

    def check(self) -> None:
        """Raise a ValueError or TypeError for parameters that are not allowed."""
        check_degree(self)
        check_positive(self.constant, "constant", self, or_zero=True)

    def columns(self, X: np.ndarray) -> np.ndarray:
        """Return the columns and a constant one, in float64."""
        wide = np.asarray(X, dtype=np.float64)
        # The constant is one more column: c^q + <x_1, ..., x_q> is the product of the rows (x, c).
        if self.constant == 0.0:
            return wide
        return np.concatenate([wide, np.full((len(wide), 1), float(self.constant))], axis=1)

    def of_products(self, P: np.ndarray, shift: float | np.ndarray = 0.0) -> np.ndarray:
        """Return powers of the products."""
        return _power(P, int(self.degree)) if self.degree > 1 else P

    def degrees(self) -> list[tuple[int, float]]:
        """Return the degree, with the coefficient 1: the constant is one of the columns."""
        return [(int(self.degree), 1.0)]

    def homogeneous(self) -> int | None:
        """Return the degree."""
        return int(self.degree)


@dataclass
class PowerSeriesTensorKernel(TensorKernel):
    r"""The tensor kernel that is a polynomial of the product, given by its coefficients.

    .. math:: K(x_1, \dots, x_q) = \sum_s \rho_s \langle x_1, \dots, x_q \rangle^s

    Its features are the monomials of all degrees with positive coefficients.

    Parameters
    ----------
    coefficients : sequence of float, default=(1.0, 1.0, 0.5)
        The coefficients :math:`\rho_0, \rho_1, \dots`; none is negative, and one is positive.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = PowerSeriesTensorKernel([1.0, 0.0, 2.0])
    >>> X = np.array([[1.0, 2.0]])
    >>> kernel.between(X, X, X, X)
    array([579.])
    >>> kernel.n_features(2)
    4.0
    """

    coefficients: Any = (1.0, 1.0, 0.5)

    def check(self) -> None:
        """Raise a ValueError or TypeError for parameters that are not allowed."""
        try:
            given = np.asarray(self.coefficients, dtype=np.float64)
        except (TypeError, ValueError):
            given = np.zeros(())
        if given.ndim != 1:
            raise TypeError(
                f"PowerSeriesTensorKernel(coefficients={self.coefficients!r}) must have a list of "
                "numbers, one for each degree from 0 up."
            )
        if not np.all((given >= 0.0) & np.isfinite(given)) or not np.any(given > 0.0):
            raise ValueError(
                f"PowerSeriesTensorKernel(coefficients={self.coefficients!r}) must have finite "
                "coefficients, none of them negative and at least one positive."
            )

    def resolve(self, X: np.ndarray) -> PowerSeriesTensorKernel:
        """Return the kernel with its coefficients as a tuple of floats."""
        self.check()
        return replace(self, coefficients=tuple(float(rho) for rho in self.coefficients))

    def of_products(self, P: np.ndarray, shift: float | np.ndarray = 0.0) -> np.ndarray:
        """Return the polynomial of the products, by Horner's rule."""
        found = np.zeros_like(P)
        for rho in reversed([float(rho) for rho in self.coefficients]):
            found *= P
            found += rho
        return found

    def degrees(self) -> list[tuple[int, float]]:
        """Return the degrees with positive coefficients."""
        return [(s, float(rho)) for s, rho in enumerate(self.coefficients) if float(rho) > 0.0]


@dataclass
class ExponentialTensorKernel(TensorKernel):
    r"""The exponential tensor kernel, whose features are all monomials.

    .. math:: K(x_1, \dots, x_q) = \exp\Bigl(\sigma \Bigl[\langle x_1, \dots, x_q \rangle
              - \frac1q \sum_r \|x_r\|_q^q\Bigr]\Bigr)

    It is 1 where all rows are the same, and a Gaussian kernel for ``q = 2``. Without
    normalisation, the second sum is left out.

    Parameters
    ----------
    sigma : float, optional
        The factor :math:`\sigma`; by default 0.1 divided by the number of columns, which suits
        columns of unit variance. A larger factor gives more weight to monomials of high degrees.
    normalized : bool, default=True
        Whether the kernel is 1 where all rows are the same.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0], [0.0, 2.0]])
    >>> ExponentialTensorKernel(sigma=0.5).between(X, X, X, X)
    array([1., 1.])
    """

    sigma: float | None = None
    normalized: bool = True

    finite: ClassVar[bool] = False

    def check(self) -> None:
        """Raise a ValueError or TypeError for parameters that are not allowed."""
        if self.sigma is not None:
            check_positive(self.sigma, "sigma", self)
        check_flag(self.normalized, "normalized", self)

    def resolve(self, X: np.ndarray) -> ExponentialTensorKernel:
        """Return the kernel, with the default factor for these rows if none is given."""
        self.check()
        sigma = 0.1 / max(1, X.shape[1]) if self.sigma is None else float(self.sigma)
        return replace(self, sigma=sigma)

    def _sigma(self) -> float:
        if self.sigma is None:
            raise ValueError("sigma depends on the number of columns; call resolve(X) first.")
        return float(self.sigma)

    def shifts(self, X: np.ndarray, q: float) -> np.ndarray | None:
        """Return the logarithm of the normalising factor of each row."""
        if not self.normalized:
            return None
        powers = np.abs(np.asarray(X, dtype=np.float64)) ** q
        return np.asarray(-self._sigma() / q * powers.sum(axis=1))

    def of_products(self, P: np.ndarray, shift: float | np.ndarray = 0.0) -> np.ndarray:
        """Return exponentials of the products and shifts."""
        # Products may fill gigabytes, so their memory is reused.
        P = np.multiply(P, self._sigma(), out=P)
        P += shift
        if P.size and float(np.max(P)) > _LARGEST_EXPONENT:
            raise ValueError(
                f"ExponentialTensorKernel has the value exp({float(np.max(P)):.3g}), which is too "
                "large. Set normalized=True, scale the columns, or lower sigma."
            )
        return np.asarray(np.exp(P, out=P))

    def diagonal(self, columns: np.ndarray, q: float) -> np.ndarray:
        """Return ones if the kernel is normalised, because sums of powers would cancel."""
        return np.ones(len(columns)) if self.normalized else super().diagonal(columns, q)

    def draw_degrees(self, totals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw degrees from a Poisson distribution."""
        # NumPy's Poisson draws fail for huge means. Degrees near 1e6 are refused by the caller
        # anyway.
        return rng.poisson(np.minimum(self._sigma() * totals, 1e6))

    def log_rho(self, degrees: np.ndarray) -> np.ndarray:
        r"""Return :math:`\log(\sigma^s / s!)`."""
        return np.asarray(degrees * math.log(self._sigma()) - gammaln(degrees + 1.0))


@dataclass
class FeatureTensorKernel(TensorKernel):
    r"""The tensor kernel of your own features.

    .. math:: K(x_1, \dots, x_q) = \sum_k \phi_k(x_1) \cdots \phi_k(x_q)

    Parameters
    ----------
    function : callable
        Takes rows, and returns their features: an array of shape ``(n_rows, n_features)``.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = FeatureTensorKernel(lambda X: np.concatenate([X, np.cos(X)], axis=1))
    >>> X = np.zeros((2, 3))
    >>> kernel.between(X, X, X, X)
    array([3., 3.])
    """

    function: Callable[[np.ndarray], np.ndarray]

    has_products: ClassVar[bool] = False

    def check(self) -> None:
        """Raise a TypeError if the function cannot be called."""
        if not callable(self.function):
            raise TypeError(f"FeatureTensorKernel(function={self.function!r}) cannot be called.")

    def count(self, width: int) -> float:
        """Return the number of features of a row of zeros."""
        return float(len(self.features_of_columns(np.zeros((1, width)), 4)))

    def count_on(self, columns: np.ndarray) -> float:
        """Return the number of features of the first row."""
        return float(len(self.features_of_columns(columns[:1], 4)))

    def features_of_columns(self, columns: np.ndarray, q: float) -> np.ndarray:
        """Return the features that the function computes, one in each row."""
        found = np.asarray(self.function(columns), dtype=np.float64)
        if found.ndim != 2 or len(found) != len(columns):
            raise ValueError(
                f"The function of FeatureTensorKernel returned an array of shape {found.shape} for "
                f"{len(columns)} rows; it must return one of shape ({len(columns)}, n_features)."
            )
        return np.ascontiguousarray(found.T)


def _split(degrees: np.ndarray, shares: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Split the degree of each row among columns at random, in proportion to their shares."""
    totals = shares.sum(axis=1, keepdims=True)
    empty = totals[:, 0] <= 0.0
    even = np.full_like(shares, 1.0 / shares.shape[1])
    parts = np.divide(shares, totals, out=even, where=totals > 0.0)
    # The last share is what the others leave, which must not be negative by rounding.
    parts /= np.maximum(1.0, parts[:, :-1].sum(axis=1, keepdims=True))
    return rng.multinomial(np.where(empty, 0, degrees), parts)
