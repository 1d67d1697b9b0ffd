"""CPU seconds and peak memory of one call."""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

# Calls below a second are repeated, up to so many times.
SHORT, REPEATS = 1.0, 5

Result = TypeVar("Result")


@dataclass(frozen=True)
class Cost:
    """CPU seconds (user + system), wall seconds, and the resident peak in bytes.

    ``peak_bytes`` is its growth over what was resident before, ``total_bytes`` all of it.
    """

    seconds: float
    wall: float
    peak_bytes: int
    total_bytes: int


def cpu_seconds() -> float:
    """CPU seconds of this process so far, all threads together."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure_call(call: Callable[[], Result]) -> tuple[Result, Cost]:
    """Run ``call`` and return what it gave with what it cost.

    Memory is the highest resident size during the call less the resident size before it. On Linux
    the high-water mark is set back first, so what loading the data needed for a moment does not
    hide it; elsewhere the mark is that of the whole process, and growth is a lower bound.
    """
    gc.collect()
    _reset_peak()
    resident = resident_bytes()
    wall, cpu = time.perf_counter(), cpu_seconds()
    result = call()
    seconds, passed, peak = cpu_seconds() - cpu, time.perf_counter() - wall, peak_bytes()
    return result, Cost(seconds, passed, max(0, peak - resident), peak)


def resident_bytes() -> int:
    """Resident size now (the peak so far where the system does not say)."""
    return _status("VmRSS") or peak_bytes()


def peak_bytes() -> int:
    """Highest resident size of this process.

    Linux's ``ru_maxrss`` starts at the size of the process that started this one; ``VmHWM`` does
    not.
    """
    scale = 1 if sys.platform == "darwin" else 1024
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


def limit_cpu(seconds: float) -> None:
    """Have the system end this process after so many more CPU seconds (``SIGXCPU``).

    A signal with its default action, not an exception: peers spend minutes inside one C++ call.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = int(cpu_seconds() + max(seconds, 1)) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _reset_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _status(field: str) -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    values = [line.split() for line in lines if line.startswith(field + ":")]
    return int(values[0][1]) * 1024 if values else 0
