"""Data for the benchmarks: one recipe, the same arrays for every method.

Columns are raw or "+ products" (divided by their largest absolute value, then linear terms,
squares and cross products); columns constant on the training part are dropped, the rest
standardised to mean 0 and variance 1 on the training part, and everything is stored as C-ordered
float32. Sparse sets are left as they are. All of it uses the training part only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

Matrix = Any  # a float32 array, or a scipy CSR matrix


@dataclass(frozen=True)
class Recipe:
    """The steps from a stored dataset to the arrays of a benchmark."""

    stored: str
    products: bool = False
    standardise: bool = True


@dataclass(frozen=True)
class Split:
    """Training and test part of one dataset, ready for every method."""

    X: Matrix
    y: np.ndarray
    X_test: Matrix
    y_test: np.ndarray

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns and classes."""
        return (*self.X.shape, len(np.unique(self.y)))

    @property
    def nbytes(self) -> int:
        """Bytes of the training matrix."""
        return matrix_bytes(self.X)


RECIPES = {
    "digits": Recipe("digits"),
    "pendigits": Recipe("pendigits", products=True),
    "segment": Recipe("segment", products=True),
    "satimage": Recipe("satimage", products=True),
    "isolet": Recipe("isolet"),
    "mnist": Recipe("mnist"),
    "reuters_r52": Recipe("reuters_r52", standardise=False),
}


def is_sparse(X: Matrix) -> bool:
    """Tell whether a matrix is a sparse matrix of SciPy."""
    return bool(sparse.issparse(X))


def matrix_bytes(X: Matrix) -> int:
    """Bytes held by a dense or compressed sparse matrix."""
    if is_sparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes)


def load(name: str) -> Split:
    """Build the benchmark arrays of one dataset."""
    if name not in RECIPES:
        raise ValueError(f"Unknown dataset {name!r}. Choose from {', '.join(RECIPES)}.")
    return make_split(RECIPES[name])


def make_split(recipe: Recipe) -> Split:
    """Carry out a recipe."""
    X, y, X_test, y_test = parts(recipe.stored)
    if not recipe.standardise:
        return Split(X.astype(np.float32), y, X_test.astype(np.float32), y_test)
    X = np.asarray(X, dtype=np.float64).reshape(len(X), -1)
    X_test = np.asarray(X_test, dtype=np.float64).reshape(len(X_test), -1)
    if recipe.products:
        largest = np.abs(X).max(axis=0)
        largest[largest == 0] = 1.0
        X, X_test = with_products(X / largest), with_products(X_test / largest)
    X, X_test = standardise(X, X_test)
    return Split(X, y, X_test, y_test)


def with_products(X: np.ndarray) -> np.ndarray:
    """Linear terms, then squares and all cross products."""
    left, right = np.triu_indices(X.shape[1])
    return np.hstack([X, X[:, left] * X[:, right]])


def standardise(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Drop columns constant in ``X``; give the others mean 0 and variance 1 there."""
    keep = np.flatnonzero(np.ptp(X, axis=0) > 0)
    X, X_test = X[:, keep], X_test[:, keep]
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    for part in (X, X_test):
        part -= mean
        part /= deviation
    return _float32(X), _float32(X_test)


def resample(y: np.ndarray, resampling: int, share: float = 0.9) -> np.ndarray:
    """Rows of one resampling: all of them for 0, else a stratified random ``share``.

    The seed is the number of the resampling. Rows are drawn without replacement, at least one per
    class, and come back in their stored order.
    """
    if resampling == 0:
        return np.arange(len(y))
    rng = np.random.default_rng(resampling)
    rows = []
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        count = max(1, round(share * len(members)))
        rows.append(rng.choice(members, size=count, replace=False))
    return np.sort(np.concatenate(rows))


def save(split: Split, folder: Path) -> None:
    """Write a split so that ``read`` opens it without temporary copies."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "labels.npz", y=split.y, y_test=split.y_test)
    for name, matrix in (("X", split.X), ("X_test", split.X_test)):
        if is_sparse(matrix):
            sparse.save_npz(folder / f"{name}.npz", matrix, compressed=False)
        else:
            np.save(folder / f"{name}.npy", matrix)


def read(folder: Path, resampling: int = 0) -> Split:
    """Read what ``save`` wrote, keeping the training rows of one resampling.

    Dense columns constant on those rows are dropped, as abess refuses them.
    """
    labels = np.load(folder / "labels.npz")
    y, y_test = labels["y"], labels["y_test"]
    rows = resample(y, resampling)
    X_test = _read_matrix(folder, "X_test")
    X = _read_matrix(folder, "X", None if resampling == 0 else rows)
    if resampling and not is_sparse(X):
        varies = X.min(axis=0) < X.max(axis=0)
        if not varies.all():
            X, X_test = X[:, varies], X_test[:, varies]
    return Split(X, y[rows], X_test, y_test)


def _read_matrix(folder: Path, name: str, rows: np.ndarray | None = None) -> Matrix:
    dense = folder / f"{name}.npy"
    if dense.exists():
        # A mapped file lets a subset be taken without the whole matrix ever being resident.
        return np.load(dense) if rows is None else np.load(dense, mmap_mode="r")[rows]
    matrix: Matrix = sparse.load_npz(folder / f"{name}.npz")
    return matrix if rows is None else matrix[rows]


def parts(stored: str) -> tuple[Matrix, np.ndarray, Matrix, np.ndarray]:
    """Return training and test part of a stored dataset: ``X, y, X_test, y_test``."""
    X, y, X_test, y_test = as_stored(stored)
    if y_test is not None:
        return X, y, X_test, y_test
    from sklearn.model_selection import train_test_split

    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    return X, y, X_test, y_test


def as_stored(name: str) -> tuple[Matrix, np.ndarray, Matrix | None, np.ndarray | None]:
    """Return a stored dataset; the test part is None where there is no official one."""
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return X, y, None, None
    from mixnorm import datasets

    bunch = datasets.load(name)
    return bunch.X, bunch.y, bunch.get("X_test"), bunch.get("y_test")


def _float32(X: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(X, dtype=np.float32)
