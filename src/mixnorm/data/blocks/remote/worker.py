"""What runs on the workers of a cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from mixnorm._memory import keep_freed_memory
from mixnorm._threads import one_thread
from mixnorm.data.blocks import kept
from mixnorm.data.blocks.sources import RowsNeeded

_PREPARED = threading.Event()
_PREPARING = threading.Lock()
# Held for the life of the process, which keeps its limit.
_LIMITS: list[Any] = []


class Answer(NamedTuple):
    """The answer of a worker: a result, or a request for the rows that it needs."""

    worker: str
    seconds: float
    value: Any


def compute(work: Callable[[Any], Any], task: Any, inputs: list[Any] | None) -> Answer:
    """Compute a task on a worker, with its inputs where it has some."""
    from distributed import get_worker

    worker = get_worker()
    if not _PREPARED.is_set():
        _prepare(worker)
    start = time.monotonic()
    if inputs is not None:
        task = task.receive(inputs)
    try:
        value = work(task)
    except RowsNeeded as needed:
        value = needed.request
    return Answer(worker.address, time.monotonic() - start, value)


def _prepare(worker: Any) -> None:
    """Prepare the process: one thread of BLAS, files where the nanny deletes them, memory."""
    with _PREPARING:
        if _PREPARED.is_set():
            return
        if not worker.address.startswith("inproc"):
            import scipy.linalg  # noqa: F401  (it brings a BLAS of its own)

            limit = one_thread()
            limit.__enter__()
            _LIMITS.append(limit)
            kept.use_folder(worker.local_directory)
            keep_freed_memory()
        _PREPARED.set()


def forget_here(token: str) -> None:
    """Forget what this process keeps for a token."""
    kept.forget(token)
