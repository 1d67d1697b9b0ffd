"""What the checks share: how a broken promise is reported."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from mixnorm._array import to_numpy
from mixnorm.exceptions import ContractError


def require(holds: Any, subject: Any, promise: str, found: str = "") -> None:
    """Raise a ContractError unless the promise holds."""
    if not bool(holds):
        ending = f"; {found}." if found else "."
        raise ContractError(f"{subject!r} breaks its contract: {promise}{ending}")


def require_close(
    got: Any, wanted: Any, subject: Any, promise: str, *, rtol: float = 0.0, atol: Any = 0.0
) -> None:
    """Raise a ContractError unless two arrays agree in shape and entries."""
    got, wanted = to_numpy(got), to_numpy(wanted)
    require(got.shape == wanted.shape, subject, promise, f"shapes {got.shape} and {wanted.shape}")
    if got.size == 0:
        return
    wanted = wanted.astype(np.float64)
    error = np.abs(got.astype(np.float64) - wanted)
    allowed = np.broadcast_to(atol + rtol * np.abs(wanted), error.shape)
    excess = np.where(np.isfinite(error), error - allowed, np.inf)
    worst = np.unravel_index(np.argmax(excess), error.shape)
    found = f"they differ by {error[worst]:.3g}, allowed is {allowed[worst]:.3g}"
    require(excess[worst] <= 0.0, subject, promise, found)


# How copies are made, and what to do where that fails.
_COPIES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "cloning": (clone, "keep the arguments of __init__ unchanged, as attributes of their names"),
    "pickling": (
        lambda subject: pickle.loads(pickle.dumps(subject)),
        "define its class at the top level of a module",
    ),
}


def _copied(subject: Any, name: str) -> Any:
    make, remedy = _COPIES[name]
    try:
        return make(subject)
    except Exception as error:  # whatever the subject's own methods raise
        promise = f"{name} copies it"
        require(False, subject, promise, f"{str(error).rstrip('.')}; {remedy}")


def require_parameters(subject: Any) -> list[Any]:
    """Check that parameters survive cloning and pickling; return the two copies."""
    promise = "it has get_params, by which it is copied and searched over"
    remedy = "derive its class, a dataclass say, from sklearn.base.BaseEstimator"
    require(hasattr(subject, "get_params"), subject, promise, remedy)
    copies = [_copied(subject, name) for name in _COPIES]
    params = subject.get_params(deep=True)
    for name, copy in zip(_COPIES, copies, strict=True):
        require(type(copy) is type(subject), subject, f"{name} keeps the type")
        found = copy.get_params(deep=True)
        require(repr(found) == repr(params), subject, f"{name} keeps parameters", f"got {found}")
    return copies
