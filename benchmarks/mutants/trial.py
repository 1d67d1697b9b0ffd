"""Try mutants with the tests of their room, in a copy of the repository."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.harness.jobs import ONE_THREAD, ROOT, Record
from benchmarks.mutants.mutations import Mutation

_FACTOR, _SECONDS = 4.0, 60.0  # limit: factor on the time of the tests, plus seconds
# Exit codes of pytest. The last two are import errors, of a test module and of a conftest.
_ALL_PASSED, _SOME_FAILED, _NOT_COLLECTED, _NOT_STARTED = 0, 1, 2, 4


def judge_exit(code: int | None, output: str = "") -> str:
    """Return what the exit status of a trial, None at the limit of time, says about the mutant.

    A crash of the process counts as noticed. A signal from outside says nothing about the mutant,
    and so does a run without tests.
    """
    if code in (-signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP):
        raise KeyboardInterrupt
    if code is None:
        return "endless"
    if code == _ALL_PASSED:
        return "survived"
    if code in (_SOME_FAILED, _NOT_COLLECTED, _NOT_STARTED) or code < 0:
        return "killed"
    raise SystemExit(f"pytest ended with exit status {code}:\n{output[-3000:]}")


class Copy:
    """A copy of the files under version control, in which one file at a time is changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        names = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
        ).stdout.split("\0")
        for name in filter(None, names):
            source, target = ROOT / name, folder / name
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        self._seconds: dict[str, float] = {}

    def try_mutation(self, mutation: Mutation) -> Record:
        """Return whether the tests notice the change, and how long that took."""
        tests = self.tests(mutation.path)
        room = str(tests[-1])
        if room not in self._seconds:
            code, seconds, output = self._run(tests[-1:], 3600.0)
            if code != _ALL_PASSED:
                raise SystemExit(f"{room} fails without a mutant:\n{output[-3000:]}")
            self._seconds[room] = seconds
        with self._change_file(mutation), tempfile.TemporaryDirectory() as cache:
            # numba's cache of a function is not invalidated by a change of another file that it
            # uses.
            compiled = mutation.path.endswith("_jit.py")
            more = {"NUMBA_CACHE_DIR": cache} if compiled else {}
            limit = _FACTOR * self._seconds[room] + _SECONDS * (5.0 if compiled else 1.0)
            code, seconds, output = self._run(tests, limit, more)
        found = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
        by = found[0][:200] if found else "" if code == _ALL_PASSED else f"exit status {code}"
        return {"status": judge_exit(code, output), "seconds": seconds, "by": by}

    def tests(self, path: str) -> list[Path]:
        """Return the tests to run for a file: its own, its doctests, then all of its room."""
        source = Path("src/mixnorm") / path
        mirrored = Path("tests") / path
        name = mirrored.stem.removesuffix("_jit").strip("_")
        own = sorted(
            each.relative_to(self.folder)
            for each in (self.folder / mirrored.parent).glob(f"test_{name}*.py")
        )
        return [*own, source, mirrored.parent]

    @contextmanager
    def _change_file(self, mutation: Mutation) -> Iterator[None]:
        target = self.folder / "src/mixnorm" / mutation.path
        text, times = target.read_bytes(), target.stat()
        target.write_bytes(mutation.apply(text))
        try:
            yield
        finally:
            target.write_bytes(text)
            # The original time stamp keeps bytecode and compiled functions of the original valid.
            os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))

    def _run(
        self, tests: list[Path], limit: float, more: dict[str, str] | None = None
    ) -> tuple[int | None, float, str]:
        """Run pytest until the first failure; return exit code (None: limit), seconds, output."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
        environment = os.environ | ONE_THREAD | {"MPLBACKEND": "Agg"} | (more or {})
        environment["PYTHONPATH"] = str(self.folder / "src")
        start = time.perf_counter()
        try:
            done = subprocess.run(
                [*command, *map(str, tests)],
                cwd=self.folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None, time.perf_counter() - start, ""
        return done.returncode, time.perf_counter() - start, done.stdout + done.stderr
