"""Kernels as functions of two rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from mixnorm._array import MatrixLike
from mixnorm.kernels.functions.base import (
    KernelParameters,
    MetricKernel,
    check_degree,
    check_flag,
    check_positive,
    decay,
)
from mixnorm.kernels.functions.metrics import Rows, as_rows
from mixnorm.kernels.functions.spread import mean_distance, mean_squared_distance

# Rows whose square kernel matrix is computed at a time for its diagonal.
_ROWS_OF_DIAGONAL = 64


@dataclass
class WidthKernel(MetricKernel):
    """Base of kernels with a width, which may be relative to the spread of the training rows."""

    tau: float = 1.0
    relative: bool = False

    def check(self) -> None:
        """Raise a ValueError or TypeError for parameters that are not allowed."""
        check_positive(self.tau, "tau", self)
        check_flag(self.relative, "relative", self)

    def _spread(self, X: Rows, weight: np.ndarray | None) -> float:
        raise NotImplementedError

    def _width(self) -> float:
        if self.relative:
            raise ValueError(
                f"{self!r} has a width relative to training rows; call resolve(X) with these rows "
                "first, or set relative=False."
            )
        return float(self.tau)

    def spread(self, X: MatrixLike, weight: np.ndarray | None = None) -> float:
        """Return the unit of relative widths, for training rows and their weights."""
        spread = self._spread(as_rows(X), weight)
        # If all rows are equal, every width gives the same kernel of ones.
        return spread if spread > 0.0 else 1.0

    def resolve(self, X: MatrixLike, spread: float | None = None) -> Self:
        """Return the kernel with its parameters checked and its width absolute.

        ``spread`` is the spread of the rows, if the caller knows it from another width.
        """
        self.check()
        if not self.relative:
            return self
        tau = float(self.tau) * (self.spread(X) if spread is None else spread)
        return replace(self, tau=tau, relative=False)


@dataclass
class GaussianKernel(WidthKernel):
    r"""The Gaussian kernel.

    .. math:: k(x, x') = \exp\Bigl(-\frac{\|x - x'\|_2^2}{2\tau}\Bigr)

    Parameters
    ----------
    tau : float, default=1.0
        The width :math:`\tau`, the square of a standard deviation.
    relative : bool, default=False
        Whether ``tau`` is in units of the mean squared distance of two training rows, so that the
        same widths suit data of any dimension and scale. If all rows are equal, the unit is 1.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [2.0]])
    >>> GaussianKernel(tau=2.0).between(X)
    array([[1.        , 0.36787944],
           [0.36787944, 1.        ]])
    >>> GaussianKernel(tau=0.5, relative=True).resolve(X)
    GaussianKernel(tau=1.0, relative=False)
    """

    metric: ClassVar[str | None] = "sqeuclidean"

    def of_metric(self, D: np.ndarray) -> np.ndarray:
        """Return the kernel at squared distances ``D``."""
        return decay(D, 0.5 / self._width())

    def _spread(self, X: Rows, weight: np.ndarray | None) -> float:
        return mean_squared_distance(X, weight)


@dataclass
class LaplacianKernel(WidthKernel):
    r"""The Laplacian kernel.

    .. math:: k(x, x') = \exp\Bigl(-\frac{\|x - x'\|_1}{\tau}\Bigr)

    Parameters
    ----------
    tau : float, default=1.0
        The width :math:`\tau`.
    relative : bool, default=False
        Whether ``tau`` is in units of the mean distance :math:`\|x - x'\|_1` of two training rows.
        If all rows are equal, the unit is 1.

    Notes
    -----
    The distance takes as many steps as a row has columns, and matrix products cannot compute it:
    with many columns this kernel is much slower than the Gaussian kernel.

    Examples
    --------
    >>> import numpy as np
    >>> LaplacianKernel(tau=2.0).between(np.array([[0.0], [2.0]]))
    array([[1.        , 0.36787944],
           [0.36787944, 1.        ]])
    """

    metric: ClassVar[str | None] = "cityblock"

    def of_metric(self, D: np.ndarray) -> np.ndarray:
        """Return the kernel at distances ``D``."""
        return decay(D, 1.0 / self._width())

    def _spread(self, X: Rows, weight: np.ndarray | None) -> float:
        return mean_distance(X, weight)


@dataclass
class ChiSquaredKernel(MetricKernel):
    r"""The exponential chi-squared kernel, for histograms and counts.

    .. math:: k(x, x') = \exp\Bigl(-\gamma \sum_j \frac{(x_j - x'_j)^2}{x_j + x'_j}\Bigr)

    Terms with :math:`x_j + x'_j = 0` are zero.

    Parameters
    ----------
    gamma : float, default=1.0
        The rate :math:`\gamma`.

    Examples
    --------
    >>> import numpy as np
    >>> ChiSquaredKernel(gamma=0.5).between(np.array([[2.0, 0.0], [0.0, 0.0]]))
    array([[1.        , 0.36787944],
           [0.36787944, 1.        ]])
    """

    gamma: float = 1.0

    metric: ClassVar[str | None] = "chi2"

    def check(self) -> None:
        """Raise a ValueError or TypeError for parameters that are not allowed."""
        check_positive(self.gamma, "gamma", self)

    def of_metric(self, D: np.ndarray) -> np.ndarray:
        """Return the kernel at chi-squared distances ``D``."""
        return decay(D, float(self.gamma))

    def between(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the kernel of all rows of ``X`` and ``Y``, or of ``X`` and itself, in float64."""
        for rows in (X,) if Y is None else (X, Y):
            check_not_negative(as_rows(rows), "X")
        return super().between(X, Y)

    def resolve(self, X: MatrixLike) -> Self:
        """Return the kernel itself, after a check of its parameters and of the rows."""
        check_not_negative(as_rows(X), "X")
        return super().resolve(X)


def check_not_negative(rows: Rows, what: str) -> None:
    """Raise a ValueError if rows have a negative entry; histograms and counts have none."""
    values = rows if isinstance(rows, np.ndarray) else rows.data
    if values.size and np.min(values) < 0.0:
        raise ValueError(
            f"ChiSquaredKernel needs histograms or counts, but {what} has {np.min(values):g}; no "
            "entry may be negative. Scale columns to [0, 1], for example with "
            "sklearn.preprocessing.MinMaxScaler(clip=True), or use another kernel."
        )


@dataclass
class PolynomialKernel(MetricKernel):
    r"""The polynomial kernel.

    .. math:: k(x, x') = (\gamma\,\langle x, x' \rangle + c_0)^d

    Parameters
    ----------
    degree : int, default=3
        The degree :math:`d`, at least 1.
    gamma : float, default=1.0
        The factor :math:`\gamma` of the inner product.
    coef0 : float, default=1.0
        The constant :math:`c_0`, not negative. With 0 the kernel has products of exactly
        ``degree`` columns only.

    Examples
    --------
    >>> import numpy as np
    >>> PolynomialKernel(degree=2).between(np.array([[1.0], [2.0]]))
    array([[ 4.,  9.],
           [ 9., 25.]])
    """

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 1.0

    metric: ClassVar[str | None] = "dot"

    def check(self) -> None:
        """Raise a ValueError or TypeError for parameters that are not allowed."""
        check_degree(self)
        check_positive(self.gamma, "gamma", self)
        check_positive(self.coef0, "coef0", self, or_zero=True)

    def of_metric(self, D: np.ndarray) -> np.ndarray:
        """Return the kernel at inner products ``D``."""
        with np.errstate(over="ignore"):  # banks check the diagonal, which is largest
            base = D * D.dtype.type(self.gamma)
            base += D.dtype.type(self.coef0)
            return _power(base, int(self.degree))


def _power(base: np.ndarray, degree: int) -> np.ndarray:
    """Return a whole power, by squaring: far quicker than ``base**degree``."""
    found = None
    while True:
        if degree % 2:
            # Bits of the degree from the lowest on; ``base`` runs through the squares.
            found = base.copy() if found is None else np.multiply(found, base, out=found)
        degree //= 2
        if not degree:
            return np.asarray(found)
        base = np.multiply(base, base, out=base)


@dataclass
class LinearKernel(MetricKernel):
    r"""The inner product of two rows, :math:`k(x, x') = \langle x, x' \rangle`.

    Examples
    --------
    >>> import numpy as np
    >>> LinearKernel().between(np.array([[1.0], [2.0]]))
    array([[1., 2.],
           [2., 4.]])
    """

    metric: ClassVar[str | None] = "dot"

    def of_metric(self, D: np.ndarray) -> np.ndarray:
        """Return the inner products ``D``."""
        return D.copy()


#: Kernel functions by their registered name; a model file holds such a name.
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {}


@dataclass
class FunctionKernel(KernelParameters):
    """A kernel of your own, given as a function or by a registered name.

    Parameters
    ----------
    function : callable or str
        ``function(X, Y)`` returns the kernel of all rows of ``X`` and ``Y``, a matrix of shape
        ``(len(X), len(Y))``; it must be positive semi-definite. It is called with some rows at a
        time. Or a name given to :func:`register_kernel`: only a kernel with such a name can be
        saved in a model file, and the function must be registered again before the file is
        loaded.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = FunctionKernel(lambda X, Y: np.minimum(X, Y.T))
    >>> kernel.between(np.array([[1.0], [2.0]]))
    array([[1., 1.],
           [1., 2.]])
    """

    function: Callable[[Any, Any], Any] | str

    metric: ClassVar[str | None] = None

    def check(self) -> None:
        """Raise a ValueError or TypeError if there is no such function."""
        self._resolve()

    def _check_stored(self) -> None:
        if not isinstance(self.function, str):
            raise ValueError("FunctionKernel.function must be a name in a file")

    def of_metric(self, D: np.ndarray) -> np.ndarray:
        """Raise a TypeError: a function of two rows need not be a function of a metric."""
        raise TypeError(f"{self!r} is not a function of a metric; use between(X, Y).")

    def between(self, X: Any, Y: Any = None) -> np.ndarray:
        """Return the kernel of all rows of ``X`` and ``Y``, or of ``X`` and itself."""
        function = self._resolve()
        other = X if Y is None else Y
        found = np.asarray(function(X, other))
        # A function that returns a row or a number by mistake would be broadcast silently.
        shape = (X.shape[0], other.shape[0])
        if found.shape != shape:
            raise ValueError(
                f"{self!r} returned shape {found.shape} for {shape[0]} and {shape[1]} rows; it "
                f"must return a matrix of shape {shape}."
            )
        if found.dtype.kind not in "fiub":
            raise TypeError(
                f"{self!r} returned an array of {found.dtype}; it must return real numbers."
            )
        return found if found.dtype.kind == "f" else found.astype(np.float64)

    def diagonal(self, X: Any) -> np.ndarray:
        """Return the kernel of each row and itself."""
        # Blocks of 64 rows: the matrix of all rows, of which only the diagonal counts, may not fit.
        parts = [
            np.diagonal(self.between(X[start : start + _ROWS_OF_DIAGONAL]))
            for start in range(0, X.shape[0], _ROWS_OF_DIAGONAL)
        ]
        return np.concatenate(parts) if parts else np.empty(0)

    def _resolve(self) -> Callable[[Any, Any], Any]:
        if isinstance(self.function, str):
            if self.function not in FUNCTIONS:
                raise ValueError(
                    f"FunctionKernel({self.function!r}) names a kernel that is not registered; "
                    f"call mixnorm.kernels.register_kernel({self.function!r}, function) first. "
                    f"Registered are {sorted(FUNCTIONS)}."
                )
            return FUNCTIONS[self.function]
        if not callable(self.function):
            raise TypeError(
                f"FunctionKernel({self.function!r}) needs a function of (X, Y); give one, or the "
                "name of a registered one."
            )
        return self.function
