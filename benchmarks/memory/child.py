"""The measuring process of ``benchmarks.memory``: one fit on one kind of array.

In ``python -m benchmarks.memory.child ORDER``, ORDER is JSON with estimator, kind, rows, columns
and call (by default ``fit``). The last line of the output is JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.harness.measure import measure_call

CLASSES = 10
DENSITY = 0.2  # share of nonzero entries, about that of mnist
WARM_UP = 500  # rows of a first fit, which loads compiled code

# Settings of a short fit, because only the memory counts.
ESTIMATORS: dict[str, dict[str, Any]] = {
    "ShareBoostClassifier": {"n_features_to_select": 10},
    "MixedNormClassifier": {"alpha": 0.02},
    "MirrorDescentClassifier": {},
}


def draw(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return grey levels from 0 to 255, a fifth of them nonzero, and labels that depend on them."""
    rng = np.random.default_rng(0)
    X = rng.integers(1, 256, size=(rows, columns), dtype=np.uint8)
    for start in range(0, rows, 1000):  # in blocks, because random numbers take eight bytes each
        block = X[start : start + 1000]
        block[rng.random(block.shape) > DENSITY] = 0
    weights = rng.standard_normal((min(20, columns), CLASSES)).astype(np.float32)
    scores = X[:, : len(weights)].astype(np.float32) @ weights
    return X, np.argmax(scores, axis=1)


def as_single(X: np.ndarray, folder: Path) -> np.ndarray:
    """Return the values in single precision, from 0 to 1."""
    return X / np.float32(255)


def as_double(X: np.ndarray, folder: Path) -> np.ndarray:
    """Return the values in double precision, from 0 to 1."""
    return X / 255


def map_values(values: np.ndarray, folder: Path) -> np.ndarray:
    """Return a read-only memory map of an array whose pages are all loaded."""
    folder.mkdir(exist_ok=True)
    np.save(folder / "X.npy", values)
    found: np.ndarray = np.load(folder / "X.npy", mmap_mode="r")
    for start in range(0, len(found), 1000):
        found[start : start + 1000].sum()
    return found


# Kind -> the array that an estimator is given.
KINDS: dict[str, Callable[[np.ndarray, Path], Any]] = {
    "float32": as_single,
    "float32, Fortran": lambda X, folder: np.asfortranarray(as_single(X, folder)),
    "float64": as_double,
    "float64, Fortran": lambda X, folder: np.asfortranarray(as_double(X, folder)),
    "uint8": lambda X, folder: X,
    "int32": lambda X, folder: X.astype(np.int32),
    "read-only map": lambda X, folder: map_values(as_single(X, folder), folder),
    "float64, read-only map": lambda X, folder: map_values(as_double(X, folder), folder),
    "CSR": lambda X, folder: sparse.csr_array(as_single(X, folder)),
    "CSC": lambda X, folder: sparse.csc_array(as_single(X, folder)),
}


def count_bytes(X: Any) -> int:
    """Return the bytes of an array, dense or sparse."""
    if sparse.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes)


def measure(
    estimator: str, kind: str, rows: int, columns: int, call: str = "fit"
) -> dict[str, Any]:
    """Return the bytes of ``X``, and the growth of the resident size during a fit."""
    import mixnorm

    def fit(X: Any, y: np.ndarray) -> Any:
        model = getattr(mixnorm, estimator)(**ESTIMATORS[estimator])
        return getattr(model, call)(X, y)

    with tempfile.TemporaryDirectory(prefix="mixnorm-bench-") as folder:
        few, labels = draw(WARM_UP, columns)
        fit(KINDS[kind](few, Path(folder) / "few"), labels)
        drawn, y = draw(rows, columns)
        X = KINDS[kind](drawn, Path(folder) / "all")
        del drawn
        _, cost = measure_call(lambda: fit(X, y))
        size = count_bytes(X)
    return {"x_bytes": size, "peak_bytes": cost.peak_bytes, "seconds": cost.seconds}


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the small fit only loads code, and may warn
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
