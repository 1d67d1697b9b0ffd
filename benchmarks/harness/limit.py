"""A limit on CPU seconds that leaves the process alive."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any


class OutOfTime(BaseException):
    """Not an ``Exception``: learners may catch those."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise ``OutOfTime`` after ``seconds`` of CPU time, as soon as Python code runs again."""

    def stop(*_: Any) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
