"""As many threads as the work pays for: one for linear algebra and loops that are too small."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS and LAPACK use one thread.

    Many small factorisations in a row gain nothing from a second thread, and on a busy machine
    each of them waits for that thread to be given a processor: a hundred times slower was measured.
    """
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit


@contextmanager
def threads_for(operations: int, least: int = 1_000_000) -> Iterator[None]:
    """Let compiled loops use one thread where there are fewer than ``least`` operations.

    So many take as long as waking other threads, and waiting for them on a busy machine.
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
    # Comes with scikit-learn, which needs it.
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()
