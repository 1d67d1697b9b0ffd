"""Start measuring processes: each in a session of its own, on all cores, with a time limit."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.harness.jobs import ONE_THREAD, ROOT, Record, make_child_environment


def make_environment(scratch: Path) -> dict[str, str]:
    """Return the environment of a measuring process, with a thread per core.

    Row files and the files of a cluster go into ``scratch``.
    """
    cores = str(count_cores())
    threads = {name: cores for name, value in ONE_THREAD.items() if value == "1"}
    return make_child_environment() | threads | {"TMPDIR": str(scratch)}


def count_cores() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_child(order: dict[str, Any], limit: float, scratch: Path | None = None) -> Record:
    """Carry out an order in its own process; return what it reported, with a ``status``.

    The status is "ok", "failed" or "timeout". A process that fails or is stopped may have reported
    its first stages. It is stopped with all the processes that it started.
    """
    with tempfile.TemporaryDirectory(prefix="mixnorm-scale-", dir=scratch) as name:
        folder = Path(name)
        output, errors = folder / "output", folder / "errors"
        with output.open("wb") as out, errors.open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.scale.child", json.dumps(order)],
                cwd=ROOT,
                env=make_environment(folder),
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            try:
                code: int | None = process.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end_session(process)
        record = collect(output.read_text(errors="replace"))
        message = errors.read_text(errors="replace")[-2000:]
    if code is None:
        return record | {"status": "timeout", "limit": limit}
    if code:
        return record | {"status": "failed", "message": message or f"exit code {code}"}
    return record | {"status": "ok", "load": os.getloadavg()[0]}


def collect(output: str) -> Record:
    """Return the stages that a process has reported, one JSON object per line, as one record."""
    record: Record = {}
    for line in output.splitlines():
        if line.startswith("{"):
            record |= json.loads(line)
    return record


def _end_session(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started, such as the workers of its cluster."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
