"""Run ``benchmarks.matrix``: a process for each solver, in the environment that it needs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness.jobs import ROOT, Record, make_child_environment, run_process
from benchmarks.matrix.data import Place
from benchmarks.matrix.methods import Solver

# Contents of separate environments: the arguments of pip, one list per step.
RECIPES: dict[str, list[list[str]]] = {
    "celer": [["celer", "scikit-learn==1.6.*"]],
    "adelie": [["adelie"]],
    "lightning": [
        ["cython<3", "numpy<2", "scikit-learn<1.6", "setuptools<70", "wheel"],
        ["--no-build-isolation", "sklearn-contrib-lightning"],
    ],
}


def find_interpreters(given: Mapping[str, Path | None], create: bool) -> dict[str, str]:
    """Return the Python of each environment, which is given, found in the tree, or created."""
    found = {"": sys.executable}
    for name in RECIPES:
        python = given.get(name) or ROOT / f".venv-bench-{name}" / "bin" / "python"
        if create and not python.exists():
            _create(name, python)
        if python.exists():
            found[name] = str(python)
    return found


def _create(name: str, python: Path) -> None:
    """Create an environment; report a library that does not build, and go on."""
    subprocess.run([sys.executable, "-m", "venv", str(python.parent.parent)], check=True)
    for step in RECIPES[name]:
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*pip, *step], check=False).returncode:
            print(f"{name} could not be installed; it is left out.", file=sys.stderr)
            return


def is_importable(python: str, module: str) -> bool:
    """Return whether a Python environment has a library."""
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
    done = subprocess.run(
        [python, "-c", code, module.split(".")[0]], env=make_child_environment(), check=False
    )
    return done.returncode == 0


def measure(
    place: Place, method: str, solver: Solver, python: str, folder: Path, limit: float
) -> Record:
    """Find the tolerance that a solver needs, time the solver with it, and return the record.

    ``status`` is "ok", "timeout" (more than ``limit`` CPU seconds in one call) or "failed".
    """
    order = {
        "part": place.part,
        "data": place.data,
        "norm": place.norm,
        "method": method,
        "folder": str(folder),
        "limit": limit,
    }
    tol = solver.grid[0] if solver.grid else None
    if len(solver.grid) > 1:
        tuned = _run_process(order | {"stage": "tune"}, python, limit)
        if tuned["status"] != "ok":
            return order | tuned
        tol = tuned["tol"]
    return order | _run_process(order | {"stage": "time", "tol": tol}, python, limit)


def _run_process(order: dict[str, Any], python: str, limit: float) -> Record:
    with tempfile.TemporaryDirectory(prefix="mixnorm-bench-") as scratch:
        report, task = Path(scratch) / "report.jsonl", Path(scratch) / "order.json"
        task.write_text(json.dumps(order | {"report": str(report)}))
        done = run_process([python, "-m", "benchmarks.matrix.child", str(task)], 20 * limit + 120)
        stages = report.read_text().splitlines() if report.exists() else []
    record: Record = {}
    for line in stages:
        record |= json.loads(line)
    code, errors = done
    finished = "relative_gap" in record if order["stage"] == "time" else code == 0
    if finished:
        return record | {"status": "ok", "load": os.getloadavg()[0]}
    if code in (-signal.SIGXCPU, None):
        return record | {"status": "timeout", "limit": limit}
    return record | {"status": "failed", "message": errors[-2000:] or f"exit code {code}"}
