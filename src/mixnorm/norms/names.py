"""Names of norms."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from mixnorm.norms.base import Norm
from mixnorm.norms.mixed import MixedNorm
from mixnorm.norms.schatten import TraceNorm

#: The norms that have a name.
NORMS: dict[str, Callable[[], Norm]] = {
    "l1,1": partial(MixedNorm, 1, 1),
    "l2,1": partial(MixedNorm, 2, 1),
    "l2,2": partial(MixedNorm, 2, 2),
    "linf,1": partial(MixedNorm, math.inf, 1),
    "trace": TraceNorm,
}


def as_norm(norm: str | Norm) -> Norm:
    """Return the norm of a name, or a norm as it is.

    Parameters
    ----------
    norm : str or Norm
        ``"l1,1"``, ``"l2,1"``, ``"l2,2"``, ``"linf,1"`` or ``"trace"``, or an object with ``value``
        and ``dual``. Spaces and capitals in a name do not matter.

    Examples
    --------
    >>> as_norm("l2,1")
    MixedNorm(inner=2, outer=1, groups=None)
    >>> as_norm("Trace")
    TraceNorm()
    """
    if isinstance(norm, str):
        name = "".join(norm.split()).lower()
        if name in NORMS:
            return NORMS[name]()
    if isinstance(norm, (str, type)) or not isinstance(norm, Norm):
        raise ValueError(
            f"norm={norm!r} is not known; choose one of {sorted(NORMS)} or give a norm object, "
            "such as mixnorm.norms.MixedNorm(inner=2, outer=1)."
        )
    check = getattr(norm, "check", None)
    if check is not None:
        check()
    return norm
