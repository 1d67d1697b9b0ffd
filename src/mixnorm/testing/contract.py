"""The base of all checks: it reports a broken promise as an error."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from mixnorm._array import to_numpy
from mixnorm.exceptions import ContractError


@dataclass(frozen=True)
class Contract:
    """An object whose promises are checked.

    Parameters
    ----------
    subject : object
        The loss, norm or pool.
    """

    subject: Any

    def require(self, holds: object, promise: str, found: str = "") -> None:
        """Raise a ContractError unless the promise holds."""
        if not bool(holds):
            ending = f"; {found}." if found else "."
            raise ContractError(f"{self.subject!r} breaks its contract: {promise}{ending}")

    def at_most(self, found: float, most: float, promise: str, what: str = "") -> None:
        """Raise a ContractError unless a number is within a bound, described by ``what``."""
        self.require(found <= most, promise, f"{what}{found:.9g} is above {most:.9g}")

    def call(self, function: Callable[..., Any], *arguments: Any, name: str) -> Any:
        """Call a function, and raise a ContractError if it changes arrays among its arguments."""
        kept = [(part, part.copy()) for part in arguments if isinstance(part, np.ndarray)]
        found = function(*arguments)
        same = all(np.array_equal(*pair) for pair in kept)
        self.require(same, f"{name} does not change its arguments")
        return found

    def close(
        self, got: Any, wanted: Any, promise: str, *, rtol: float = 0.0, atol: Any = 0.0
    ) -> None:
        """Raise a ContractError unless two arrays agree in shape and entries."""
        got, wanted = to_numpy(got), to_numpy(wanted)
        self.require(got.shape == wanted.shape, promise, f"shapes {got.shape} and {wanted.shape}")
        if got.size == 0:
            return
        wanted = wanted.astype(np.float64)
        error = np.abs(got.astype(np.float64) - wanted)
        allowed = np.broadcast_to(atol + rtol * np.abs(wanted), error.shape)
        excess = np.where(np.isfinite(error), error - allowed, np.inf)
        worst = np.unravel_index(np.argmax(excess), error.shape)
        found = f"they differ by {error[worst]:.3g}, allowed is {allowed[worst]:.3g}"
        self.require(excess[worst] <= 0.0, promise, found)

    def check_copies(self, evaluate: Callable[[Any], float]) -> None:
        """Check that clones and pickles have the same parameters, and the same value."""
        value = evaluate(self.subject)
        for copy in self.copies():
            again = evaluate(copy)
            self.require(again == value, "a copy gives the same value", f"{again}, not {value}")

    def copies(self) -> list[Any]:
        """Check that parameters survive cloning and pickling; return the two copies."""
        subject = self.subject
        promise = "it has get_params, which copies and searches need"
        remedy = "derive its class, for example a dataclass, from sklearn.base.BaseEstimator"
        self.require(getattr(subject, "get_params", None) is not None, promise, remedy)
        copies = [self._copy(name) for name in _COPIES]
        params = subject.get_params(deep=True)
        for name, copy in zip(_COPIES, copies, strict=True):
            self.require(type(copy) is type(subject), f"{name} keeps the type")
            found = copy.get_params(deep=True)
            self.require(repr(found) == repr(params), f"{name} keeps parameters", f"got {found}")
        return copies

    def _copy(self, name: str) -> Any:
        make, remedy = _COPIES[name]
        try:
            return make(self.subject)
        except Exception as error:  # whatever the subject's own methods raise
            self.require(False, f"{name} copies it", f"{str(error).rstrip('.')}; {remedy}")


# Ways to make copies, and the remedy if one fails.
_COPIES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "cloning": (clone, "keep the arguments of __init__ unchanged, as attributes of their names"),
    "pickling": (
        lambda subject: pickle.loads(pickle.dumps(subject)),
        "define its class at the top level of a module",
    ),
}


def differentiate(
    function: Callable[[np.ndarray], float], point: np.ndarray, step: float
) -> np.ndarray:
    """Return the gradient of a function by central differences."""
    found = np.empty_like(point)
    for entry in np.ndindex(*point.shape):
        move = np.zeros_like(point)
        move[entry] = step
        found[entry] = (function(point + move) - function(point - move)) / (2.0 * step)
    return found
