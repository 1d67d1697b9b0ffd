"""Data for the benchmarks: one recipe for each dataset, and the same arrays for every method.

Columns are raw or "+ products". For products the columns are divided by their largest absolute
value, and the matrix has linear terms, squares and cross products. Constant columns are dropped.
The others are standardised to mean 0 and variance 1. Every step uses the training part only. Arrays
are C-ordered float32. Sparse datasets are left as they are.
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
    """How the arrays of a benchmark are made from a stored dataset."""

    stored: str
    products: bool = False
    standardise: bool = True


@dataclass(frozen=True)
class Split:
    """The training and test parts of one dataset, ready for every method."""

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
        return count_bytes(self.X)


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
    """Return whether a matrix is a sparse matrix of SciPy."""
    return bool(sparse.issparse(X))


def count_bytes(X: Matrix) -> int:
    """Return the bytes of a dense or compressed sparse matrix."""
    if is_sparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes)


def load(name: str) -> Split:
    """Return the benchmark arrays of one dataset."""
    if name not in RECIPES:
        raise ValueError(f"Unknown dataset {name!r}. Choose from {', '.join(RECIPES)}.")
    return make_split(RECIPES[name])


def make_split(recipe: Recipe) -> Split:
    """Return the arrays that a recipe describes."""
    X, y, X_test, y_test = load_parts(recipe.stored)
    if not recipe.standardise:
        return Split(X.astype(np.float32), y, X_test.astype(np.float32), y_test)
    X = np.asarray(X, dtype=np.float64).reshape(len(X), -1)
    X_test = np.asarray(X_test, dtype=np.float64).reshape(len(X_test), -1)
    if recipe.products:
        largest = np.abs(X).max(axis=0)
        largest[largest == 0] = 1.0
        X, X_test = add_products(X / largest), add_products(X_test / largest)
    X, X_test = standardise(X, X_test)
    return Split(X, y, X_test, y_test)


def add_products(X: np.ndarray) -> np.ndarray:
    """Return the linear terms, followed by squares and all cross products."""
    left, right = np.triu_indices(X.shape[1])
    return np.hstack([X, X[:, left] * X[:, right]])


def standardise(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Drop the constant columns of ``X``, and standardise the others by ``X``."""
    keep = np.flatnonzero(np.ptp(X, axis=0) > 0)
    X, X_test = X[:, keep], X_test[:, keep]
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    for part in (X, X_test):
        part -= mean
        part /= deviation
    return _as_float32(X), _as_float32(X_test)


def resample(y: np.ndarray, resampling: int, share: float = 0.9) -> np.ndarray:
    """Return the rows of one resampling: all for 0, else a stratified random ``share``.

    The number of the resampling is the seed. Rows are drawn without replacement, at least one of
    each
    class, and returned in stored order.
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
    """Read what ``save`` wrote, with the training rows of one resampling.

    Dense columns that are constant on these rows are dropped, because abess refuses them.
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
        # A memory map allows taking some rows without loading the whole matrix.
        return np.load(dense) if rows is None else np.load(dense, mmap_mode="r")[rows]
    matrix: Matrix = sparse.load_npz(folder / f"{name}.npz")
    return matrix if rows is None else matrix[rows]


def load_parts(stored: str) -> tuple[Matrix, np.ndarray, Matrix, np.ndarray]:
    """Return the training and test parts of a stored dataset: ``X, y, X_test, y_test``."""
    X, y, X_test, y_test = load_stored(stored)
    if y_test is not None:
        return X, y, X_test, y_test
    from sklearn.model_selection import train_test_split

    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    return X, y, X_test, y_test


def load_stored(name: str) -> tuple[Matrix, np.ndarray, Matrix | None, np.ndarray | None]:
    """Return a stored dataset; the test part is None if there is no official one."""
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return X, y, None, None
    from mixnorm import datasets

    bunch = datasets.load(name)
    return bunch.X, bunch.y, bunch.get("X_test"), bunch.get("y_test")


def _as_float32(X: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(X, dtype=np.float32)
