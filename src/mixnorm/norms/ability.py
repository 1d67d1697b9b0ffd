"""Methods that an object has for some parameters only."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class Ability(Generic[Result]):
    """A method that an object has only while a condition holds; otherwise ``hasattr`` is False.

    ``isinstance`` with a protocol does not see the difference: since Python 3.12 it looks at the
    class, which always has the method.
    """

    def __init__(
        self, method: Callable[..., Result], holds: Callable[[Any], bool], who: str
    ) -> None:
        self._method, self._holds, self._who = method, holds, who
        update_wrapper(self, method)  # type: ignore[arg-type]  # typed for functions alone

    def __get__(self, owner: object | None, kind: type) -> Callable[..., Result]:
        """Return the bound method; of the class, the plain function."""
        if owner is None:
            return self._method
        # AttributeError is what ``hasattr`` and ``getattr`` with a default look for, so that
        # callers ask in plain Python and the message reaches who calls the method all the same.
        if not self._holds(owner):
            name = self._method.__name__
            raise AttributeError(f"{owner!r} has no {name}; {self._who}.")
        return MethodType(self._method, owner)


def has_ability(norm: object, name: str) -> bool:
    """Tell whether a norm has a method of that name.

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
