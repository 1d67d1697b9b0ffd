"""The rate of a selection step, compared with the machine's rate of matrix products.

``python -m benchmarks.shareboost.gemm`` prints both as JSON. A step scores every column against the
residual, which takes ``2 n d k`` operations in one product of a wide and a narrow matrix. It cannot
reach the rate of square matrices. The GEMM rate is the best over square float32 products on one
thread.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

# Rows, columns and classes of mnist and isolet.
SHAPES = ((60000, 717, 10), (6238, 617, 26))


def time_best(call: Callable[[], object], budget: float = 3.0, least: int = 5) -> float:
    """Return the shortest CPU time of at least ``least`` calls, more if ``budget`` allows."""
    call()
    times: list[float] = []
    while len(times) < least or sum(times) < budget:
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def measure_gemm(size: int = 2048) -> float:
    """Return the float32 operations per second of a square matrix product, in 1e9."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((size, size), dtype=np.float32)
    B = rng.standard_normal((size, size), dtype=np.float32)
    out = np.empty_like(A)
    return 2 * size**3 / time_best(lambda: np.matmul(A, B, out=out)) / 1e9


def measure_selection(rows: int, columns: int, classes: int) -> float:
    """Return the operations per second of one selection, in 1e9."""
    from mixnorm.pools import Columns

    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns), dtype=np.float32)
    pool = Columns().prepare(X)
    # As in the engine: one contiguous row per output, passed as a transposed view.
    residual = rng.standard_normal((classes, rows), dtype=np.float32).T
    seconds = time_best(lambda: pool.top(residual, "l1", 1, frozenset()))
    return 2 * rows * columns * classes / seconds / 1e9


def measure() -> dict[str, Any]:
    """Return rates by number of classes, each with a GEMM rate measured just before."""
    found = {}
    for shape in SHAPES:
        gemm = measure_gemm()
        rate = measure_selection(*shape)
        found[str(shape[2])] = {"shape": shape, "gemm": gemm, "rate": rate, "share": rate / gemm}
    return found


if __name__ == "__main__":
    print(json.dumps(measure()))
