"""What banks ask of a kernel, and the base class of kernels that are functions of a metric."""

from __future__ import annotations

import math
import numbers
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from mixnorm._array import MatrixLike
from mixnorm._numbers import check_number
from mixnorm._params import Parameters
from mixnorm.kernels.functions.metrics import compute_diagonal, pairwise


@runtime_checkable
class Kernel(Protocol):
    """A positive semi-definite function of two rows.

    Kernels of one ``metric`` on the same columns are elementwise functions of the same matrix,
    which a bank computes once for all of them. Where the metric is None, a bank calls ``between``
    instead, with some rows at a time.
    """

    #: ``"sqeuclidean"``, ``"cityblock"``, ``"chi2"``, ``"dot"``, or None.
    metric: ClassVar[str | None]

    def of_metric(self, D: np.ndarray) -> np.ndarray:
        """Return the kernel where the metric has the values ``D``: a new array of its dtype."""
        ...

    def between(self, X: MatrixLike, Y: MatrixLike) -> np.ndarray:
        """Return the kernel of all rows of ``X`` and ``Y``."""
        ...

    def diagonal(self, X: MatrixLike) -> np.ndarray:
        """Return the kernel of each row and itself."""
        ...

    def resolve(self, X: MatrixLike) -> Kernel:
        """Return the kernel for training rows ``X``, with its parameters checked and final."""
        ...


class KernelParameters(Parameters):
    """Base of kernels: parameters that are checked before a kernel is used."""

    def check(self) -> None:
        """Raise a ValueError or TypeError for parameters that are not allowed."""

    def _check_stored(self) -> None:
        self.check()

    def resolve(self, X: Any) -> Self:
        """Return the kernel itself, its parameters checked."""
        self.check()
        return self


class MetricKernel(KernelParameters):
    """Base of the kernels that are functions of a metric."""

    metric: ClassVar[str | None]

    def of_metric(self, D: np.ndarray) -> np.ndarray:
        """Return the kernel where the metric has the values ``D``: a new array of its dtype."""
        raise NotImplementedError

    def between(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the kernel of all rows of ``X`` and ``Y``, or of ``X`` and itself, in float64."""
        self.check()
        return self.of_metric(pairwise(str(self.metric), X, Y))

    def diagonal(self, X: MatrixLike) -> np.ndarray:
        """Return the kernel of each row and itself, in float64."""
        self.check()
        return self.of_metric(compute_diagonal(str(self.metric), X))


def check_positive(value: Any, name: str, kernel: object, *, or_zero: bool = False) -> None:
    """Raise unless a parameter is a positive finite number, or zero where that is allowed."""
    check_number(f"{type(kernel).__name__}.{name}", value)
    if not 0.0 <= value < math.inf or (value == 0.0 and not or_zero):
        wanted = "finite and not negative" if or_zero else "positive and finite"
        raise ValueError(
            f"{type(kernel).__name__}({name}={value!r}) is not a kernel; {name} must be {wanted}."
        )


def check_degree(kernel: Any) -> None:
    """Raise unless the parameter ``degree`` is a whole number of at least 1."""
    degree = kernel.degree
    whole = isinstance(degree, numbers.Integral) and not isinstance(degree, bool)
    if not whole or degree < 1:
        # A number of the wrong size is a bad value, anything else a bad type.
        kind = ValueError if isinstance(degree, numbers.Real) else TypeError
        raise kind(
            f"{type(kernel).__name__}(degree={degree!r}) is not offered; degree must be a whole "
            "number of at least 1, or the kernel is not positive semi-definite."
        )


def check_flag(value: object, name: str, kernel: object) -> None:
    """Raise unless a parameter is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{type(kernel).__name__}({name}={value!r}) must be True or False.")


def decay(D: np.ndarray, rate: float) -> np.ndarray:
    """Return ``exp(-rate * D)``, and zero where that is tiny.

    Subnormal numbers make every later product with them a hundred times slower. Values up to
    ``exp(-80)`` in float32, and up to ``exp(-700)`` in float64, are zero instead.
    """
    lowest = D.dtype.type(-80.0 if D.dtype == np.float32 else -700.0)
    rate = min(rate, float(np.finfo(D.dtype).max))  # infinity times zero is not zero
    with np.errstate(over="ignore"):
        found: np.ndarray = np.multiply(D, D.dtype.type(-rate))
    np.maximum(found, lowest, out=found)
    np.exp(found, out=found)
    found -= np.exp(np.full(1, lowest))  # from the same loop, so that exactly zero is left
    return found
