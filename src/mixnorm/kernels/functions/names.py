"""Kernels from their names, and short names for kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from mixnorm.kernels.functions.base import Kernel, MetricKernel
from mixnorm.kernels.functions.kernels import (
    FUNCTIONS,
    ChiSquaredKernel,
    FunctionKernel,
    GaussianKernel,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
)

#: Kernel classes by name. Where a class has several names, the last one is displayed.
KERNELS: Mapping[str, type[MetricKernel]] = {
    "chi2": ChiSquaredKernel,
    "rbf": GaussianKernel,
    "gaussian": GaussianKernel,
    "laplacian": LaplacianKernel,
    "linear": LinearKernel,
    "poly": PolynomialKernel,
    "polynomial": PolynomialKernel,
}
_WORDS: Mapping[type, str] = {kernel: name for name, kernel in KERNELS.items()}


def as_kernel(spec: object) -> Kernel:
    """Return the kernel for a name or a function, or the kernel itself.

    Parameters
    ----------
    spec : Kernel, str or callable
        A kernel; ``"gaussian"`` (or ``"rbf"``), ``"laplacian"``, ``"polynomial"`` (or ``"poly"``),
        ``"linear"`` or ``"chi2"``, with their default parameters; a name given to
        :func:`register_kernel`; or a function of two tables, for a :class:`FunctionKernel`.

    Examples
    --------
    >>> as_kernel("gaussian")
    GaussianKernel(tau=1.0, relative=False)
    >>> as_kernel(PolynomialKernel(degree=2))
    PolynomialKernel(degree=2, gamma=1.0, coef0=1.0)
    """
    if isinstance(spec, str):
        if spec in KERNELS:
            return KERNELS[spec]()
        if spec in FUNCTIONS:
            return FunctionKernel(spec)
        raise ValueError(
            f"kernel {spec!r} is not known; choose one of {sorted({*KERNELS, *FUNCTIONS})}, give a "
            "kernel object of mixnorm.kernels, or name a function with register_kernel."
        )
    if isinstance(spec, Kernel) and not isinstance(spec, type):
        return spec
    if callable(spec) and not isinstance(spec, type):
        return FunctionKernel(spec)
    hint = f"; write {spec.__name__}()" if isinstance(spec, type) else ""
    raise TypeError(
        f"{spec!r} is not a kernel{hint}. Give a name of {sorted(KERNELS)}, a kernel object of "
        "mixnorm.kernels, or a function of (X, Y)."
    )


def register_kernel(name: str, function: Callable[[Any, Any], Any]) -> None:
    """Give a kernel function a name, so that model files can refer to it.

    Registering a name again replaces its function.

    Parameters
    ----------
    name : str
        A name that none of mixnorm's own kernels has.
    function : callable
        ``function(X, Y)`` returns the kernel of all rows of ``X`` and ``Y``.

    Examples
    --------
    >>> import numpy as np
    >>> register_kernel("intersection", lambda X, Y: np.minimum(X[:, None], Y).sum(axis=2))
    >>> as_kernel("intersection")
    FunctionKernel(function='intersection')
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a kernel must be a string, got {name!r}.")
    if not name or name in KERNELS:
        raise ValueError(
            f"a kernel cannot be registered as {name!r}; choose a name that is not empty and not "
            f"one of {sorted(KERNELS)}."
        )
    if not callable(function):
        raise TypeError(f"register_kernel needs a function of (X, Y), got {function!r}.")
    FUNCTIONS[name] = function


def describe(kernel: Kernel) -> str:
    """Return a short description of a kernel, for tables and plots.

    Examples
    --------
    >>> describe(GaussianKernel(tau=0.5)), describe(GaussianKernel(2.0, relative=True))
    ('gaussian(tau=0.5)', 'gaussian(tau=2, relative)')
    >>> describe(LinearKernel()), describe(PolynomialKernel())
    ('linear', 'polynomial(degree=3, gamma=1, coef0=1)')
    """
    if isinstance(kernel, FunctionKernel):
        name = getattr(kernel.function, "__name__", type(kernel.function).__name__)
        name = kernel.function if isinstance(kernel.function, str) else str(name)
        return "function" if name == "<lambda>" else name
    word = _WORDS.get(type(kernel), type(kernel).__name__)
    if not is_dataclass(kernel):
        return word
    parts = []
    for field in fields(kernel):
        value = getattr(kernel, field.name)
        if isinstance(value, bool):
            parts += [field.name] * value
        else:
            # Six digits are enough to tell kernels apart in a table.
            number = f"{value:g}" if isinstance(value, (int, float)) else str(value)
            parts.append(f"{field.name}={number}")
    return f"{word}({', '.join(parts)})" if parts else word
