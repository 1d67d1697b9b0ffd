"""A limit on the threads of linear algebra."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS and LAPACK use one thread.

    Many small factorisations in a row gain nothing from a second thread. On a busy machine each of
    them waits until that thread gets a processor, which made them a hundred times slower.
    """
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> Any:
    # scikit-learn requires threadpoolctl, so that it is always installed.
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()
