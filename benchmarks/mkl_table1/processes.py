"""Run ``benchmarks.mkl_table1``: a process for each split of each dataset."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

from benchmarks.harness.jobs import ROOT, Record, make_child_environment

# A process that prints nothing for PATIENCE * limit + ADDED wall-clock seconds is ended. The limit
# on CPU seconds cannot stop a method inside a call that does not return to Python.
PATIENCE, ADDED = 3.0, 300.0


def measure_methods(order: dict[str, Any]) -> Iterator[Record]:
    """Yield the records of all methods of an order; start a new process if one dies."""
    left = list(order["methods"])
    while left:
        died = ""
        try:
            for found in read_answers(order | {"methods": left}):
                left.remove(found["method"])
                yield found
        except subprocess.TimeoutExpired:
            yield {"method": left.pop(0), "status": "timeout", "limit": order["limit"]}
            continue
        except RuntimeError as error:
            died = str(error)
        if left:
            yield {"method": left.pop(0), "status": "failed", "message": died or "it ended early"}


def read_answers(order: dict[str, Any]) -> Iterator[Record]:
    """Yield the records that one process prints; raise if it fails or is silent too long."""
    command = [sys.executable, "-m", "benchmarks.mkl_table1.child", json.dumps(order)]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=make_child_environment(),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        with process, Watch(process, PATIENCE * order["limit"] + ADDED) as watch:
            for line in process.stdout or ():
                watch.start_again()
                yield json.loads(line)
            code = process.wait()
        if watch.expired:
            raise subprocess.TimeoutExpired(command, watch.seconds)
        if code:
            errors.seek(0)
            raise RuntimeError(errors.read()[-2000:] or f"exit code {code}")


class Watch:
    """Ends a process that is silent for too long, or whose reader has stopped."""

    def __init__(self, process: subprocess.Popen[str], seconds: float) -> None:
        self.process, self.seconds, self.expired = process, seconds, False
        self._timer = self._start_timer()

    def start_again(self) -> None:
        """Start the time of silence again."""
        self._timer.cancel()
        self._timer = self._start_timer()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self.process.poll() is None:
            self.process.kill()

    def _start_timer(self) -> threading.Timer:
        timer = threading.Timer(self.seconds, self._end)
        timer.daemon = True
        timer.start()
        return timer

    def _end(self) -> None:
        self.expired = True
        self.process.kill()
