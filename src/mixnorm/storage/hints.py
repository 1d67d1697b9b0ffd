"""Whether a value read from a file has the type that a dataclass asks for."""

from __future__ import annotations

import numbers
import types
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from mixnorm.exceptions import ModelFileError


def check_fields(kind: type, content: dict[str, Any]) -> None:
    """Raise unless each value fits the annotation of its field."""
    hints = hints_of(kind)
    for name, value in content.items():
        if name in hints and not fits(value, hints[name]):
            raise ModelFileError(
                f"{kind.__name__}.{name} must be {hints[name]}, but is of type "
                f"{type(value).__name__}"
            )


@cache
def hints_of(kind: type) -> dict[str, Any]:
    """Return the annotations of a class; none where they name what only a checker imports."""
    try:
        return get_type_hints(kind)
    except NameError:
        return {}


def fits(value: object, hint: object) -> bool:
    """Tell whether a value fits an annotation; annotations not understood fit everything.

    Examples
    --------
    >>> fits((1, 2), tuple[int, ...]), fits((1, "2"), tuple[int, ...])
    (True, False)
    >>> fits(None, float | None), fits(True, float | None)
    (True, False)
    """
    if hint is Any:
        return True
    origin, args = get_origin(hint), get_args(hint)
    # ``X | None`` and ``Optional[X]`` have different origins before Python 3.14.
    if origin in (Union, types.UnionType):
        return any(fits(value, arg) for arg in args)
    if origin is Literal:
        # 1 == True in Python, but they are not the same literal.
        return any(type(value) is type(arg) and value == arg for arg in args)
    if origin is tuple:
        return isinstance(value, tuple) and _fit_in_tuple(value, args)
    if origin is list:
        return isinstance(value, list) and all(fits(item, args[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            fits(key, args[0]) and fits(item, args[1]) for key, item in value.items()
        )
    # Annotations that are not understood, such as Callable, fit every value: their class checks
    # them.
    return origin is not None or _is_a(value, hint)


def _fit_in_tuple(value: tuple[Any, ...], args: tuple[Any, ...]) -> bool:
    if len(args) == 2 and args[1] is Ellipsis:
        return all(fits(item, args[0]) for item in value)
    return len(value) == len(args) and all(map(fits, value, args))


def _is_a(value: object, hint: object) -> bool:
    # bool is a subclass of int, so that it is asked for first and excluded below.
    if hint is bool:
        return isinstance(value, (bool, np.bool_))
    if hint in (int, float):
        number = numbers.Integral if hint is int else numbers.Real
        return isinstance(value, number) and not isinstance(value, bool)
    # A protocol without runtime checks cannot be asked.
    if not isinstance(hint, type) or getattr(hint, "_is_protocol", False):
        return True
    return isinstance(value, hint)
