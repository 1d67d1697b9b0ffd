"""What signals do: an interrupt keeps what there is, and never falls into the writing of files."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Asked to end, or left by its terminal: as Ctrl-C.
_ENDINGS = ("SIGTERM", "SIGHUP")


@contextmanager
def signals_as_interrupts() -> Iterator[None]:
    """Let requests to end the program do what Ctrl-C does, within the block."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    with _handle_signals(interrupt, _ENDINGS):
        yield


@contextmanager
def ignore_interrupts() -> Iterator[None]:
    """Ignore interrupts within the block, which is to be short."""
    with _handle_signals(signal.SIG_IGN, ("SIGINT", *_ENDINGS)):
        yield


class Interrupts:
    """Requests to end, which are noted, and raised only where nothing is lost by it.

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

    @contextmanager
    def record(self) -> Iterator[None]:
        """Note requests within the block, instead of raising them."""
        with _handle_signals(self._note, ("SIGINT", *_ENDINGS)):
            yield

    @contextmanager
    def raise_at_once(self) -> Iterator[None]:
        """Raise ``KeyboardInterrupt`` for a request within the block, or for one that came."""
        self._waiting = True
        try:
            if self.requested:
                raise KeyboardInterrupt
            yield
        finally:
            self._waiting = False

    def _note(self, number: int, frame: Any) -> None:
        self.requested = True
        if self._waiting:
            raise KeyboardInterrupt


@contextmanager
def _handle_signals(handler: Any, names: tuple[str, ...]) -> Iterator[None]:
    """Handle signals within the block; without effect outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [number for number in signal.Signals if number.name in names]
    # What is ignored stays so: nohup does that, and shells to what they run in the background.
    numbers = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    before = [(number, signal.signal(number, handler)) for number in numbers]
    try:
        yield
    finally:
        for number, earlier in before:
            signal.signal(number, signal.SIG_DFL if earlier is None else earlier)
