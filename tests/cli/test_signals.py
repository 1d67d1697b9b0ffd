"""Signals within the blocks that handle them."""

import os
import signal
import threading

import pytest

from mixnorm.cli.signals import ignore_interrupts, signals_as_interrupts


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_request_to_end_is_an_interrupt(name):
    number = getattr(signal, name)
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), signals_as_interrupts():
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) == before


def test_interrupts_wait():
    before = signal.getsignal(signal.SIGINT)
    with ignore_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) == before


def test_other_threads_are_left_alone():
    done = []

    def work():
        with ignore_interrupts(), signals_as_interrupts():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
