"""A limit on CPU seconds that does not end the process."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any


class OutOfTime(BaseException):
    """A block ran out of time. It is no ``Exception``, because learners may catch those."""


@contextlib.contextmanager
def limit_seconds(seconds: float) -> Iterator[None]:
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
