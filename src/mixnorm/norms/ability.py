"""Methods that are there only for some parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class Ability(Generic[Result]):
    """A method that an object lacks, so that ``hasattr`` is False, unless a condition holds.

    Do not ask ``isinstance`` with a protocol: since Python 3.12 that looks at the class, where the
    method always is.
    """

    def __init__(
        self, method: Callable[..., Result], holds: Callable[[Any], bool], who: str
    ) -> None:
        self._method, self._holds, self._who = method, holds, who
        update_wrapper(self, method)  # type: ignore[arg-type]  # typed for functions alone

    def __get__(self, owner: Any, kind: type) -> Callable[..., Result]:
        """Return the bound method; the plain function where the class is asked."""
        if owner is None:
            return self._method
        if not self._holds(owner):
            name = self._method.__name__
            raise AttributeError(f"{owner!r} has no {name}; {self._who}.")
        return MethodType(self._method, owner)


def has_ability(norm: object, name: str) -> bool:
    """Tell whether a norm can do what a method of that name does.

    Examples
    --------
    >>> from mixnorm.norms import MixedNorm
    >>> has_ability(MixedNorm(2, 1), "prox"), has_ability(MixedNorm(2, 1), "mirror")
    (True, False)
    """
    return hasattr(norm, name)


def ability(
    holds: Callable[[Any], bool], who: str
) -> Callable[[Callable[..., Result]], Ability[Result]]:
    """Make a method an :class:`Ability`; ``who`` says which objects have it, for the error.

    Examples
    --------
    >>> class Door:
    ...     locked = True
    ...
    ...     @ability(lambda door: not door.locked, "doors that are not locked have it")
    ...     def open(self):
    ...         return "open"
    >>> door = Door()
    >>> hasattr(door, "open")
    False
    >>> door.locked = False
    >>> door.open()
    'open'
    """
    return lambda method: Ability(method, holds, who)
