"""The selection step's rate beside the machine's matrix product.

``python -m benchmarks.shareboost.gemm`` prints both as JSON. A step scores every column against the
residual: ``2 n d k`` operations in one product of a wide and a narrow matrix, so it cannot reach
the rate of square ones. The GEMM rate is the best over square float32 products, on one thread like
everything else.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

# Rows, columns and classes: mnist's shape and isolet's.
SHAPES = ((60000, 717, 10), (6238, 617, 26))


def best_seconds(call: Callable[[], object], budget: float = 3.0, least: int = 5) -> float:
    """Shortest CPU time of a call, over ``least`` calls and then as many as ``budget`` allows."""
    call()
    times: list[float] = []
    while len(times) < least or sum(times) < budget:
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def gemm_rate(size: int = 2048) -> float:
    """Float32 operations per second of a square matrix product, in units of 1e9."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((size, size), dtype=np.float32)
    B = rng.standard_normal((size, size), dtype=np.float32)
    out = np.empty_like(A)
    return 2 * size**3 / best_seconds(lambda: np.matmul(A, B, out=out)) / 1e9


def selection_rate(rows: int, columns: int, classes: int) -> float:
    """Operations per second of one selection, in units of 1e9."""
    from mixnorm.pools import Columns

    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns), dtype=np.float32)
    pool = Columns().prepare(X)
    # The engine keeps one contiguous row per output and hands over the transposed view.
    residual = rng.standard_normal((classes, rows), dtype=np.float32).T
    seconds = best_seconds(lambda: pool.top(residual, "l1", 1, frozenset()))
    return 2 * rows * columns * classes / seconds / 1e9


def measure() -> dict[str, Any]:
    """Rates by number of classes, each beside a GEMM rate taken just before."""
    found = {}
    for shape in SHAPES:
        gemm = gemm_rate()
        rate = selection_rate(*shape)
        found[str(shape[2])] = {"shape": shape, "gemm": gemm, "rate": rate, "share": rate / gemm}
    return found


if __name__ == "__main__":
    print(json.dumps(measure()))
