"""Memory and disk space of a call, by samples of the system's figures; wall and CPU seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.harness.measure import read_cpu_seconds

# Seconds between samples. A peak that lasts less than that may be missed.
PAUSE = 0.02
ROW_FILES = "mixnorm-rows-*/*"
_CLEAR = Path("/proc/self/clear_refs")


def read_memory(pid: int | str = "self") -> dict[str, int]:
    """Return the resident bytes of a process: anonymous ones, and pages of files.

    Shared memory counts as anonymous, because the page cache cannot drop it. ``peak`` is the
    highest resident size. Zeros stand for a process that has ended, and for other systems.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        lines = []
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    sizes = {name: int(text.split()[0]) * 1024 for name, text in pairs if text.endswith(" kB")}
    return {
        "anonymous": sizes.get("RssAnon", 0) + sizes.get("RssShmem", 0),
        "file": sizes.get("RssFile", 0),
        "peak": sizes.get("VmHWM", 0),
    }


class Watch:
    """A block whose costs are measured: ``with Watch(folder) as watch: ...``, then ``figures``.

    Parameters
    ----------
    folder : Path
        The folder in which row files appear.
    children : bool
        Whether to measure child processes too, which takes psutil.
    """

    def __init__(self, folder: Path, *, children: bool = False) -> None:
        self.folder, self.children = folder, children
        self.figures: dict[str, Any] = {}
        self._anonymous = self._file = self._rows = self._worker = 0
        self._child_seconds: dict[tuple[int, float], float] = {}
        self._over = threading.Event()

    def __enter__(self) -> Watch:
        if _CLEAR.exists():
            _CLEAR.write_text("5")  # the highest size so far is that of reading the data
        self._before = read_memory()
        self._first_seconds = self._read_children()
        self._thread = threading.Thread(target=self._sample_often, daemon=True)
        self._thread.start()
        self._cpu, self._wall = read_cpu_seconds(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        wall, cpu = time.perf_counter() - self._wall, read_cpu_seconds() - self._cpu
        self._over.set()
        self._thread.join()
        self._sample(disk=True)
        before, peak = self._before, read_memory()["peak"]
        spent = self._child_seconds.items()
        cpu += sum(seconds - self._first_seconds.get(each, 0.0) for each, seconds in spent)
        self.figures = {
            "wall": wall,
            "cpu": cpu,
            "anonymous_before": before["anonymous"],
            "anonymous_peak": self._anonymous,
            "file_peak": self._file,
            "resident_peak": peak,
            "worker_anonymous_peak": self._worker,
            "row_file_bytes": self._rows,
        }

    def _sample_often(self) -> None:
        number = 0
        while not self._over.wait(PAUSE):
            self._sample(disk=number % 10 == 0)
            number += 1

    def _sample(self, *, disk: bool) -> None:
        now = read_memory()
        self._anonymous = max(self._anonymous, now["anonymous"])
        self._file = max(self._file, now["file"])
        if disk:
            self._rows = max(self._rows, count_bytes(self.folder.glob(ROW_FILES)))
            self._child_seconds |= self._read_children()
            for pid, _ in self._child_seconds:
                self._worker = max(self._worker, read_memory(pid)["anonymous"])

    def _read_children(self) -> dict[tuple[int, float], float]:
        """Return the CPU seconds of the child processes by id and start, those that live."""
        if not self.children:
            return {}
        import psutil

        found = {}
        for child in psutil.Process().children(recursive=True):
            try:
                times = child.cpu_times()
                found[child.pid, child.create_time()] = times.user + times.system
            except psutil.Error:
                continue  # it ended just now
        return found


def count_bytes(paths: Iterable[Path]) -> int:
    """Return the bytes of files, of those that still exist."""
    total = 0
    for path in paths:
        try:
            total += path.stat().st_size
        except OSError:
            continue
    return total
