"""Numbers too small for the usual form, taken as zero while kernels are read.

Narrow Gaussian kernels hold many such numbers in float32, below 1e-38. On x86 processors arithmetic
with one of them takes about a hundred times as long: products with such a kernel took ten times as
long as with its neighbours. Other processors compute with them at full speed.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = ["subnormals_as_zero", "with_subnormals_as_zero"]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

_APPLIES = platform.machine().lower() in ("x86_64", "amd64")


@contextmanager
def subnormals_as_zero() -> Iterator[None]:
    """Compute with numbers below the usual range as with zeros, in the thread that enters."""
    if not _APPLIES:
        yield
        return
    from mixnorm.kernels.grams.subnormal_jit import AS_ZERO, exchange

    before = exchange(AS_ZERO)
    try:
        yield
    finally:
        exchange(before)


def with_subnormals_as_zero(
    function: Callable[_Parameters, _Result],
) -> Callable[_Parameters, _Result]:
    """Decorate a function that reads kernels."""

    @wraps(function)
    def wrapped(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        with subnormals_as_zero():
            return function(*args, **kwargs)

    return wrapped
