"""Limits on threads: one for linear algebra and for loops too small to gain from more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS and LAPACK use one thread.

    Many small factorisations in a row gain nothing from a second thread. On a busy machine each of
    them waits until that thread gets a processor, which made them a hundred times slower.
    """
    return _controller().limit(limits=1, user_api="blas")


@contextmanager
def threads_for(operations: int, least: int = 1_000_000) -> Iterator[None]:
    """Let compiled loops use one thread if there are fewer than ``least`` operations.

    Fewer operations take no longer than it takes to wake other threads and to wait for them.
    """
    from numba import get_num_threads, set_num_threads

    before = get_num_threads()
    set_num_threads(1 if operations < least else before)
    try:
        yield
    finally:
        set_num_threads(before)


@cache
def _controller() -> Any:
    # scikit-learn requires threadpoolctl, so that it is always installed.
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()
