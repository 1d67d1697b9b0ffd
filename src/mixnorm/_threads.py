"""One thread for linear algebra too small to share."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS and LAPACK use one thread.

    Many small factorisations in a row gain nothing from a second thread, and on a busy machine
    each of them waits for that thread to be given a processor: a hundred times slower was measured.
    """
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit


@cache
def _controller() -> Any:
    # Comes with scikit-learn, which needs it.
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()
