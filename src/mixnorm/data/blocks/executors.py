"""Executors, which compute the parts of a sum. All give the same bits."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from mixnorm._numbers import check_count
from mixnorm._threads import one_thread


class Executor(Protocol):
    """What a table asks of an executor."""

    #: Whether tasks run on workers, to which sources are sent.
    remote: bool

    @property
    def n_workers(self) -> int:
        """Number of tasks that run at the same time."""
        ...

    def run(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        """Yield the results of ``work`` for all tasks, in their order."""
        ...

    def forget(self, token: str) -> None:
        """Forget what workers keep for a token."""
        ...


class ThreadExecutor:
    """Threads of this process; with one, the caller's thread.

    Parameters
    ----------
    n_workers : int, optional
        Number of threads; by default the processors that this process may use.
    """

    remote = False

    def __init__(self, n_workers: int | None = None) -> None:
        if n_workers is not None:
            check_count("executor", n_workers, other=", a Dask client, or None")
        self.n_workers = count_processors() if n_workers is None else int(n_workers)

    def run(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        """Yield the results in order. An error or an interrupt cancels the tasks that wait."""
        # A block is small: a second thread of BLAS would not help, and may change the last bits.
        with one_thread():
            if self.n_workers == 1 or len(tasks) == 1:
                yield from map(work, tasks)
                return
            with ThreadPoolExecutor(self.n_workers, thread_name_prefix="mixnorm-rows") as pool:
                futures = deque(pool.submit(work, task) for task in tasks)
                try:
                    # A result that was handed over is not held here.
                    while futures:
                        yield futures.popleft().result()
                finally:
                    for future in futures:
                        future.cancel()

    def forget(self, token: str) -> None:
        """Forget what this process keeps for a token."""
        from mixnorm.data.blocks.kept import forget

        forget(token)


def count_processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def as_executor(executor: Any) -> Executor:
    """Return the executor for a number of threads, a Dask client, the address of one, or None.

    None takes the Dask client that is active, if there is one, and else a thread per processor.
    """
    if executor is None:
        from mixnorm.data.blocks.remote.cluster import active_client

        client = active_client()
        if client is None:
            return ThreadExecutor()
        executor = client
    if isinstance(executor, int) and not isinstance(executor, bool):
        return ThreadExecutor(executor)
    if hasattr(executor, "run") and hasattr(executor, "remote"):
        found: Executor = executor
        return found
    from mixnorm.data.blocks.remote.cluster import connect, find_executor, is_client

    if isinstance(executor, str):
        if "://" not in executor:
            raise ValueError(
                f"executor={executor!r} is not the address of a Dask scheduler, such as "
                "'tcp://127.0.0.1:8786'."
            )
        executor = connect(executor)
    if is_client(executor):
        return find_executor(executor)
    raise TypeError(
        f"executor={executor!r} must be a number of threads, a dask.distributed.Client, the "
        f"address of a Dask scheduler or None, got {type(executor).__name__}."
    )
