"""Data for ``benchmarks.matrix``, made or loaded once and then read by every process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.harness import splits
from benchmarks.matrix.gap import Problem, compute_alpha_max

# Setting -> correlation of neighbouring columns, alpha as a share of alpha_max.
MULTITASK = {
    "independent-0.1": (0.0, 0.1),
    "independent-0.02": (0.0, 0.02),
    "correlated-0.1": (0.9, 0.1),
    "correlated-0.03": (0.9, 0.03),
}
MULTICLASS = ("digits", "pendigits", "satimage", "isolet")
NORMS = ("l2,1", "linf,1")
PATH_SIZE, PATH_RATIO = 50, 100.0
TRACE = ("isolet", "low-rank")
# alpha of the trace-norm problems as a share of alpha_max, large enough to suppress the noise.
TRACE_SHARE = {"isolet": 0.05, "low-rank": 0.1}
GAPS = {"multitask": 1e-6, "multiclass": 1e-3, "trace": 1e-4}


@dataclass(frozen=True)
class Place:
    """What identifies a problem: part, data and norm."""

    part: str
    data: str
    norm: str

    @property
    def key(self) -> str:
        """The key of the problem in the results."""
        return f"{self.part}/{self.data}/{self.norm}"

    @property
    def arrays(self) -> str:
        """The name of the folder with its arrays."""
        return f"{self.part}-{self.data}"


def list_places(parts: tuple[str, ...]) -> list[Place]:
    """List the problems of some parts."""
    found = {
        "multitask": [Place("multitask", setting, "l2,1") for setting in MULTITASK],
        "multiclass": [Place("multiclass", data, norm) for data in MULTICLASS for norm in NORMS],
        "trace": [Place("trace", data, "trace") for data in TRACE],
    }
    return [place for part in parts for place in found.get(part, [])]


def draw_multitask(correlation: float, n: int = 500, d: int = 5000, tasks: int = 20) -> tuple:
    """Return centred ``X, Y`` with 50 nonzero rows of true coefficients and unit noise."""
    rng = np.random.default_rng(0)
    X = draw_autoregressive(rng, n, d, correlation)
    W = np.zeros((d, tasks))
    W[rng.choice(d, 50, replace=False)] = rng.standard_normal((50, tasks))
    Y = X @ W + rng.standard_normal((n, tasks))
    return X - X.mean(axis=0), Y - Y.mean(axis=0)


def draw_autoregressive(rng: np.random.Generator, n: int, d: int, correlation: float) -> np.ndarray:
    """Return normal columns of variance 1; neighbours have the given correlation."""
    X = rng.standard_normal((n, d))
    if correlation:
        fresh = np.sqrt(1 - correlation**2)
        for column in range(1, d):
            X[:, column] = correlation * X[:, column - 1] + fresh * X[:, column]
    return X


def draw_low_rank(n: int = 20_000, d: int = 2_000, tasks: int = 200, rank: int = 10) -> tuple:
    """Return ``X, Y`` with true coefficients of low rank and noise as large as the signal."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    W = rng.standard_normal((d, rank)) @ rng.standard_normal((rank, tasks)) / np.sqrt(d * rank)
    Y = X @ W + rng.standard_normal((n, tasks))
    return X, Y


def write(place: Place, folder: Path) -> None:
    """Write the arrays of a problem in double precision."""
    if (folder / "target.npy").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    X, target = _make_arrays(place)
    np.save(folder / "X.npy", X)
    np.save(folder / "target.npy", target)


def _make_arrays(place: Place) -> tuple[np.ndarray, np.ndarray]:
    if place.part == "multitask":
        X, Y = draw_multitask(MULTITASK[place.data][0])
        return X, Y
    if place.data == "low-rank":
        X, Y = draw_low_rank()
        return X, Y
    split = splits.load(place.data)
    y = np.unique(split.y, return_inverse=True)[1]
    return np.asarray(split.X, dtype=np.float64), y


def read(place: Place, folder: Path) -> Problem:
    """Return the problem whose arrays ``write`` stored."""
    X, target = np.load(folder / "X.npy"), np.load(folder / "target.npy")
    loss = "squared" if target.ndim == 2 else "multinomial"
    # Multi-task data are centred, and for the trace norm the other solvers have no intercept.
    intercept = place.part == "multiclass"
    base = Problem(X, target, loss, place.norm, np.ones(1), GAPS[place.part], intercept)
    largest = compute_alpha_max(base)
    if place.part == "multiclass":
        alphas = largest * np.logspace(0, -np.log10(PATH_RATIO), PATH_SIZE)
    elif place.part == "multitask":
        alphas = np.array([largest * MULTITASK[place.data][1]])
    else:
        alphas = np.array([largest * TRACE_SHARE[place.data]])
    return Problem(X, target, loss, place.norm, alphas, base.tol, base.intercept)
