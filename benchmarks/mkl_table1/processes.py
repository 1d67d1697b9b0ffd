"""Running ``benchmarks.mkl_table1``: a process for every split of every dataset."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

from benchmarks.harness.jobs import ROOT, Record, child_environment

# Seconds of a clock, times the limit and added, after which a silent process is ended: a method
# may be in a call that does not come back to Python.
PATIENCE, ADDED = 3.0, 300.0


def records(order: dict[str, Any]) -> Iterator[Record]:
    """Yield the records of all methods of an order as they come; a new process after a dead one."""
    left = list(order["methods"])
    while left:
        died = ""
        try:
            for found in answers(order | {"methods": left}):
                left.remove(found["method"])
                yield found
        except subprocess.TimeoutExpired:
            yield {"method": left.pop(0), "status": "timeout", "limit": order["limit"]}
            continue
        except RuntimeError as error:
            died = str(error)
        if left:
            yield {"method": left.pop(0), "status": "failed", "message": died or "it ended early"}


def answers(order: dict[str, Any]) -> Iterator[Record]:
    """Yield what one process writes; raises when it fails, or is silent for too long."""
    command = [sys.executable, "-m", "benchmarks.mkl_table1.child", json.dumps(order)]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=child_environment(),
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
    """Ends a process that has been silent for too long, or that nobody listens to any more."""

    def __init__(self, process: subprocess.Popen[str], seconds: float) -> None:
        self.process, self.seconds, self.expired = process, seconds, False
        self._timer = self._started()

    def start_again(self) -> None:
        """Count from now on."""
        self._timer.cancel()
        self._timer = self._started()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self.process.poll() is None:
            self.process.kill()

    def _started(self) -> threading.Timer:
        timer = threading.Timer(self.seconds, self._end)
        timer.daemon = True
        timer.start()
        return timer

    def _end(self) -> None:
        self.expired = True
        self.process.kill()
