"""Compiled loops that use several threads, but one thread in a forked process."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property, update_wrapper
from types import FunctionType
from typing import Any

import numba
from numba.np.ufunc.parallel import threading_layer


class Loop:
    """A function that is compiled twice: for the threads of numba, and for one thread.

    A forked process has none of its parent's threads. numba's usual threading layer (GNU OpenMP)
    kills such a process at its first parallel loop, and the parent waits for it for ever.
    Forked processes therefore run loops on one thread; there are usually as many of them as cores.

    Parameters
    ----------
    function : function
        The loop, over ``prange``. It may call other loops.
    options : dict
        Options of ``numba.njit``.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func, self._options = function, options
        update_wrapper(self, function)

    @cached_property
    def threaded(self) -> Any:
        """The function for several threads."""
        return numba.njit(cache=True, **self._options)(_bind(self.py_func, "threaded"))

    @cached_property
    def serial(self) -> Any:
        """The function for one thread."""
        options = {**self._options, "parallel": False}
        return numba.njit(cache=True, **options)(_bind(self.py_func, "serial"))

    def __call__(self, *arguments: Any) -> Any:
        """Run the loop."""
        return (self.serial if _Process.forked else self.threaded)(*arguments)


def loop(**options: Any) -> Callable[[Callable[..., Any]], Loop]:
    """Return a decorator that makes a :class:`Loop` of a function."""
    return lambda function: Loop(function, options)


def _bind(function: Callable[..., Any], kind: str) -> FunctionType:
    """Return a function that calls the threaded, or the serial, versions of other loops.

    The kind is part of its name, since numba names its cache files after functions.
    """
    known = dict(function.__globals__)
    for name in function.__code__.co_names:
        if isinstance(known.get(name), Loop):
            known[name] = getattr(known[name], kind)
    bound = FunctionType(function.__code__, known, f"{function.__name__}_{kind}")
    bound.__qualname__ = bound.__name__
    bound.__doc__ = function.__doc__
    return bound


class _Process:
    """The state of this process."""

    forked = False


def _note_fork() -> None:
    """Remember, in a new process, whether its parent had threads of numba."""
    try:
        threading_layer()  # type: ignore[no-untyped-call]
    except ValueError:  # the parent started none
        return
    _Process.forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)
