"""The growth of our time with the numbers of rows, columns and classes.

``python -m benchmarks.shareboost.growth FOLDER`` prints JSON. The exponent is the slope of log
seconds against log size, by least squares. Rows and columns are subsets of mnist, whose
arrays are in ``FOLDER``. Classes are Gaussian clusters whose centres differ in a few columns,
because no stored dataset has every number of classes at the same number of rows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import splits
from benchmarks.shareboost.gemm import time_best

FEATURES = 20
ROWS = (3750, 7500, 15000, 30000, 60000)
COLUMNS = (90, 179, 358, 717)
CLASSES = (4, 8, 16, 32, 64)


def fit_slope(sizes: Iterable[float], seconds: Iterable[float]) -> float:
    """Return the exponent ``e`` of the best fit ``seconds = c * sizes ** e``."""
    x, y = np.log(np.fromiter(sizes, float)), np.log(np.fromiter(seconds, float))
    return float(np.polyfit(x, y, 1)[0])


def draw_clusters(
    classes: int, rows: int = 12800, columns: int = 300
) -> tuple[np.ndarray, np.ndarray]:
    """Return Gaussian clusters, one per class, whose centres differ in 30 columns."""
    rng = np.random.default_rng(0)
    y = np.arange(rows) % classes
    centres = np.zeros((classes, columns), dtype=np.float32)
    centres[:, :30] = rng.standard_normal((classes, 30))
    return centres[y] + rng.standard_normal((rows, columns), dtype=np.float32), y


def time_fit(X: np.ndarray, y: np.ndarray) -> float:
    """Return the CPU seconds of a path to 20 features: the better of two warm calls."""
    from mixnorm import ShareBoostClassifier

    model = ShareBoostClassifier(n_features_to_select=FEATURES)
    return time_best(lambda: model.fit(X, y), budget=0.0, least=2)


def measure(split: splits.Split) -> dict[str, Any]:
    """Return seconds for growing rows, columns and classes, with fitted exponents."""
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(len(split.y)), rng.permutation(split.X.shape[1])

    def part(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
        return np.ascontiguousarray(split.X[rows[:n]][:, columns[:d]]), split.y[rows[:n]]

    n_small, d_all = 15000, split.X.shape[1]
    found = {
        "n": {n: time_fit(*part(n, d_all)) for n in ROWS},
        "d": {d: time_fit(*part(n_small, d)) for d in COLUMNS},
        "k": {k: time_fit(*draw_clusters(k)) for k in CLASSES},
    }
    return {
        name: {"exponent": fit_slope(times.keys(), times.values()), "seconds": times}
        for name, times in found.items()
    }


if __name__ == "__main__":
    print(json.dumps(measure(splits.read(Path(sys.argv[1])))))
