"""Run benchmark jobs, each in a process with one thread and a limit, and store the results."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import platform
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FORMAT = 1

ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}

Record = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One method on one dataset, with ``size`` features and the rows of one ``resampling``.

    ``suite`` is the module whose ``METHODS`` has the method.
    """

    suite: str
    data: str
    method: str
    size: int
    resampling: int = 0

    @property
    def key(self) -> str:
        """The key of the job's record in the results."""
        return f"{self.data}/{self.method}/{self.size}/{self.resampling}"


class Store:
    """Results by key, written to a file after every change when a path is given.

    The file is written under another name and then renamed, so that an interrupted run leaves a
    complete one.
    """

    def __init__(self, path: Path | None = None, *, resume: bool = False) -> None:
        self.path = path
        self.content: dict[str, Any] = {"format": FORMAT, "machine": describe_machine(), "runs": {}}
        if path is not None and resume and path.exists():
            found = json.loads(path.read_text())
            if found.get("format") != FORMAT:
                raise ValueError(
                    f"{path} has format {found.get('format')!r}, this program writes {FORMAT}. "
                    "Give another --json, or leave out --resume."
                )
            self.content |= found

    @property
    def runs(self) -> Mapping[str, Record]:
        """Records of finished jobs."""
        found: dict[str, Record] = self.content["runs"]
        return found

    def add(self, job: Job, record: Record) -> None:
        """Store the record of one job."""
        self.content["runs"][job.key] = dataclasses.asdict(job) | record
        self._write()

    def put(self, part: str, value: Any) -> None:
        """Store a part that is not a job, such as the summary."""
        self.content[part] = value
        self._write()

    def _write(self) -> None:
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_name(f"{self.path.name}.{os.getpid()}.partial")
        partial.write_text(json.dumps(self.content, indent=1))
        partial.replace(self.path)


def describe_machine() -> dict[str, Any]:
    """Return a description of the machine."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0].split(":", 1)[1].strip() if names else cpu
    return {"cpu": cpu, "cores": os.cpu_count(), "python": platform.python_version()}


def make_child_environment() -> dict[str, str]:
    """Return this environment, with the number of threads set to one."""
    # Children import ``benchmarks`` from the repository, whatever their working directory is.
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(p for p in paths if p)}


def run_job(job: Job, folder: Path, limit: float, tuned: Mapping[str, Any] | None = None) -> Record:
    """Run one job in its own process, and return its record.

    ``tuned`` are settings found before; with None, the method searches for them.

    ``status`` is ``"ok"``, ``"timeout"`` (more than ``limit`` CPU seconds in one stage) or
    ``"failed"`` (with the last lines of the error output). A job that was stopped in its second
    call is "ok", with one call.
    """
    with tempfile.TemporaryDirectory(prefix="mixnorm-bench-") as scratch:
        report, order = Path(scratch) / "report.jsonl", Path(scratch) / "job.json"
        extra: Record = {"folder": str(folder), "limit": limit, "report": str(report)}
        if tuned is not None:
            extra["tuned"] = tuned
        order.write_text(json.dumps(dataclasses.asdict(job) | extra))
        code, errors = run_process(
            [sys.executable, "-m", "benchmarks.harness.child", str(order)], 12 * limit + 120
        )
        stages = report.read_text().splitlines() if report.exists() else []
    record: Record = {}
    for line in stages:
        record |= json.loads(line)
    if "points" in record:
        return record | {"status": "ok", "load": os.getloadavg()[0]}
    if code in (-signal.SIGXCPU, None):
        return record | {"status": "timeout", "limit": limit}
    return record | {"status": "failed", "message": errors[-2000:] or f"exit code {code}"}


def run_module(
    arguments: list[str], wall: float = 3600, environment: Mapping[str, str] | None = None
) -> Any:
    """Run ``python -m`` in a measuring process, and return the JSON of its last line.

    ``environment`` overrides variables; its ``PYTHONPATH`` comes before the repository.
    """
    command = [sys.executable, "-m", *arguments]
    own, more = make_child_environment(), dict(environment or {})
    if "PYTHONPATH" in more:
        more["PYTHONPATH"] = os.pathsep.join([more["PYTHONPATH"], own["PYTHONPATH"]])
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=own | more,
        capture_output=True,
        text=True,
        timeout=wall,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def run_module_safely(
    arguments: list[str], wall: float, environment: Mapping[str, str] | None = None
) -> Record:
    """Run :func:`run_module`, and return a record even after a failure or a timeout."""
    try:
        made: Record = run_module(arguments, wall, environment)
    except subprocess.TimeoutExpired:
        return {"status": "timeout"}
    except RuntimeError as error:
        return {"status": "failed", "message": str(error)}
    return made


def unpack_commit(commit: str, folder: Path) -> dict[str, str]:
    """Write the package of a commit into a folder; return an environment that imports it."""
    packed = subprocess.run(
        ["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=False
    )
    if packed.returncode:
        reason = packed.stderr.decode(errors="replace").strip()
        raise SystemExit(
            f"git cannot read the package of commit {commit!r}: {reason}\n"
            "Give a commit of this repository, in a clone with the full history."
        )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return {"PYTHONPATH": str(folder / "src")}


def run_jobs(
    jobs: list[Job], folders: Mapping[str, Path], store: Store, limit: float
) -> Iterator[tuple[Job, Record, bool]]:
    """Run the jobs that are not in ``store``; yield each record and whether it is new.

    After a timeout, a method is not tried at larger sizes, nor on other resamplings of that size.
    The settings found on all training rows (resampling 0) are reused on the other resamplings.
    """
    for job in jobs:
        record = store.runs.get(job.key)
        fresh = record is None or record["status"] == "failed"
        if fresh:
            whole = dataclasses.replace(job, resampling=0)
            found = store.runs.get(whole.key, {}).get("tuned") if job.resampling else None
            more = {} if found is None else {"tuned": found}
            record = _find_timeout(job, store) or run_job(job, folders[job.data], limit, **more)
            store.add(job, record)
        yield job, store.runs[job.key], fresh


def _find_timeout(job: Job, store: Store) -> Record | None:
    for other in store.runs.values():
        same = other["data"] == job.data and other["method"] == job.method
        if same and other["status"] == "timeout" and other["size"] <= job.size:
            return {"status": "timeout", "limit": other["limit"], "inferred": True}
    return None


def run_process(command: list[str], wall: float) -> tuple[int | None, str]:
    """Run a command; return its exit code (None if stopped after ``wall`` seconds) and errors."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=make_child_environment(),
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        try:
            code: int | None = process.wait(timeout=wall)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        errors.seek(0)
        return code, errors.read()
