"""Data for ``benchmarks.mkl`` and ``benchmarks.mkl_table1``: splits, and 21 Gaussian kernels.

A split is a random order of all rows; the first 80 % are training rows. Columns are scaled to [-1,
1] on these. Kernels are ``exp(-|x - x'|^2 / (2 tau))``, computed in double and stored in single
precision.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.harness.splits import load_stored

WIDTHS = tuple(2.0**power for power in range(-10, 11))
TABLE1 = ("iris", "wine", "glass", "svmguide2", "vowel", "vehicle", "segment", "dna", "satimage")
UNSCALED = ("dna",)  # zeros and ones
SHARE = 0.8  # of training rows


@dataclass(frozen=True)
class Rows:
    """Scaled training and test rows in double precision, with labels from zero up."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@dataclass(frozen=True)
class Kernels:
    """Kernels of the training rows, ``(M, n, n)``, and between test and training rows."""

    K: np.ndarray
    K_test: np.ndarray
    y: np.ndarray
    y_test: np.ndarray

    def few(self, each: int) -> Kernels:
        """Return the kernels of ``each`` training rows per class, and of as many test rows."""
        classes = np.unique(self.y)
        rows = np.concatenate([np.flatnonzero(self.y == label)[:each] for label in classes])
        K_test = np.ascontiguousarray(self.K_test[:, :each][:, :, rows])
        K = np.ascontiguousarray(self.K[:, rows[:, None], rows])
        return Kernels(K, K_test, self.y[rows], self.y_test[:each])


def load_rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a stored dataset, with its official parts stacked."""
    X, y, X_test, y_test = load_stored(name)
    if y_test is not None:
        X, y = np.concatenate([X, X_test]), np.concatenate([y, y_test])
    return np.asarray(X, dtype=np.float64), np.unique(y, return_inverse=True)[1]


def make_split(name: str, seed: int = 0, rows: int = 0) -> Rows:
    """Return one random split, of the first ``rows`` rows of the order unless that is 0."""
    X, y = load_rows(name)
    order = np.random.default_rng(seed).permutation(len(y))[: rows or None]
    train, test = np.split(order, [int(SHARE * len(order))])
    found = Rows(X[train], y[train], X[test], y[test])
    return found if name in UNSCALED else scale_rows(found)


def take_all_rows(name: str, tested: int) -> Rows:
    """Return all rows of a dataset as training rows; the first ones are also the test rows."""
    X, y = load_rows(name)
    return scale_rows(Rows(X, y, X[:tested].copy(), y[:tested]))


def scale_rows(rows: Rows) -> Rows:
    """Scale columns to [-1, 1] on the training rows, and constant columns to 0."""
    low, high = rows.X.min(axis=0), rows.X.max(axis=0)
    varies = high > low
    size, middle = np.where(varies, (high - low) / 2, 1.0), (high + low) / 2
    X, X_test = ((part - middle) / size for part in (rows.X, rows.X_test))
    X_test[:, ~varies] = 0.0
    return Rows(X, rows.y, X_test, rows.y_test)


def compute_kernels(rows: Rows) -> Kernels:
    """Return the Gaussian kernels of all widths."""
    K, K_test = (compute_gaussians(part, rows.X) for part in (rows.X, rows.X_test))
    return Kernels(K, K_test, rows.y, rows.y_test)


def compute_gaussians(X: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the kernels ``(M, len(X), len(others))`` in float32, without a second copy."""
    from scipy.spatial.distance import cdist

    distances = cdist(X, others, "sqeuclidean")
    found = np.empty((len(WIDTHS), *distances.shape), dtype=np.float32)
    for place, width in zip(found, WIDTHS, strict=True):
        place[...] = np.exp(distances / (-2.0 * width))
    return found


def draw_synthetic(n_rows: int, n_test: int, seed: int = 0) -> Rows:
    """Return rows of 5 classes around 30 centres in 20 dimensions."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((30, 20))
    places = rng.integers(len(centres), size=n_rows + n_test)
    X, y = centres[places] + 0.7 * rng.standard_normal((len(places), 20)), places % 5
    return scale_rows(Rows(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]))
