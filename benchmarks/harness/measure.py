"""Measure the CPU seconds and the peak memory of one call."""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

# Calls of less than SHORT seconds are repeated, at most REPEATS times.
SHORT, REPEATS = 1.0, 5

Result = TypeVar("Result")


@dataclass(frozen=True)
class Cost:
    """CPU seconds (user and system), wall-clock seconds, and peak memory in bytes.

    ``total_bytes`` is the highest resident size, ``peak_bytes`` its growth during the call.
    """

    seconds: float
    wall: float
    peak_bytes: int
    total_bytes: int


def read_cpu_seconds() -> float:
    """Return the CPU seconds of this process so far, all threads together."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure_call(call: Callable[[], Result]) -> tuple[Result, Cost]:
    """Run ``call``, and return its result and its cost.

    Memory is the highest resident size during the call less the resident size before it. On Linux
    the high-water mark is reset first, because loading the data may have needed more memory for a
    moment. Elsewhere the mark is that of the whole process, and the growth is a lower bound.
    """
    gc.collect()
    _reset_peak()
    resident = read_resident_bytes()
    wall, cpu = time.perf_counter(), read_cpu_seconds()
    result = call()
    seconds, passed, peak = read_cpu_seconds() - cpu, time.perf_counter() - wall, read_peak_bytes()
    return result, Cost(seconds, passed, max(0, peak - resident), peak)


def read_resident_bytes() -> int:
    """Return the resident size, or the peak so far if the system does not give the size."""
    return _read_status("VmRSS") or read_peak_bytes()


def read_peak_bytes() -> int:
    """Return the highest resident size of this process.

    Linux's ``ru_maxrss`` starts at the size of the parent process; ``VmHWM`` does not.
    """
    scale = 1 if sys.platform == "darwin" else 1024
    return _read_status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


def limit_cpu(seconds: float) -> None:
    """Let the system end this process after this many more CPU seconds (``SIGXCPU``).

    A signal with its default action works even if a library spends minutes inside one C++ call. An
    exception would have to wait for the call to return.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = int(read_cpu_seconds() + seconds) + 1  # the system counts whole seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _reset_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _read_status(field: str) -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    values = [line.split() for line in lines if line.startswith(field + ":")]
    return int(values[0][1]) * 1024 if values else 0
