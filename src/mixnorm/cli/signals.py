"""Signals: an interrupt stops the work but keeps its results, and never breaks a file."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any

# A request to stop and a closed terminal act like Ctrl-C.
_STOP_SIGNALS = ("SIGTERM", "SIGHUP")


def signals_as_interrupts() -> AbstractContextManager[None]:
    """Handle requests to stop like Ctrl-C within the block."""
    return _handle_signals(signal.default_int_handler, _STOP_SIGNALS)


def ignore_interrupts() -> AbstractContextManager[None]:
    """Ignore interrupts within the block, which should be short."""
    return _handle_signals(signal.SIG_IGN, ("SIGINT", *_STOP_SIGNALS))


class Interrupts:
    """A record of requests to stop, which raises them only where no work is lost.

    Examples
    --------
    >>> interrupts = Interrupts()
    >>> with interrupts.record():
    ...     signal.raise_signal(signal.SIGTERM)
    >>> interrupts.requested
    True
    """

    def __init__(self) -> None:
        self.requested = False
        self._waiting = False

    def record(self) -> AbstractContextManager[None]:
        """Record requests within the block instead of raising them."""
        return _handle_signals(self._note, ("SIGINT", *_STOP_SIGNALS))

    @contextmanager
    def raise_at_once(self) -> Iterator[None]:
        """Raise ``KeyboardInterrupt`` for a request within the block or an earlier one."""
        self._waiting = True
        try:
            if self.requested:
                raise KeyboardInterrupt
            yield
        finally:
            self._waiting = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        if self._waiting:
            raise KeyboardInterrupt


@contextmanager
def _handle_signals(
    handler: Callable[[int, FrameType | None], Any] | signal.Handlers, names: tuple[str, ...]
) -> Iterator[None]:
    """Handle signals within the block; outside the main thread do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [number for number in signal.Signals if number.name in names]
    # Ignored signals stay ignored: nohup ignores them, and so do shells for background jobs.
    numbers = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    before = [(number, signal.signal(number, handler)) for number in numbers]
    try:
        yield
    finally:
        for number, earlier in before:
            signal.signal(number, signal.SIG_DFL if earlier is None else earlier)
