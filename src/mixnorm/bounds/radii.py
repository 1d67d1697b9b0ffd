"""How large examples are in the dual norm: what bounds multiply the size of weights by."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from mixnorm._array import Array, MatrixLike, is_sparse
from mixnorm.norms import MixedNorm, Norm, Spectral, conjugate

#: What an example is: a row with a class and another, rows of all tasks, or a row by itself.
EXAMPLES = ("classes", "tasks", "rows")


def pair(norm: Any, shape: tuple[int, int]) -> Any:
    """Return the strongly convex norm that proofs are about: the norm itself, or its surrogate."""
    if getattr(norm, "strong_convexity", None) is not None:
        return norm
    surrogate = getattr(norm, "surrogate", None)
    if surrogate is not None:
        return surrogate(shape)
    raise ValueError(
        f"{norm!r} is not strongly convex and has no strongly convex surrogate; these bounds are "
        "for the norms 'l1,1', 'l2,1', 'l2,2' and 'trace', and others between them."
    )


def radii(norm: Norm, X: Array, n_outputs: int, examples: str) -> np.ndarray:
    r"""Return the dual norm of every example.

    With ``"classes"`` that is the largest of :math:`x (e_y - e_r)^\top` over two classes. With
    ``"rows"`` there is one output.

    Parameters
    ----------
    norm : Norm
        The norm of the weights.
    X : array or sparse matrix of shape (n_samples, n_features), or a list of them
        The rows; with ``"tasks"`` a list with the rows of every task, as many for each, or one
        array of rows that all tasks share.
    n_outputs : int
        Classes or tasks.
    examples : {"classes", "tasks", "rows"}
        What an example is.
    """
    columns = {"tasks": n_outputs, "rows": 1, "classes": 2}[examples]
    shared = examples != "tasks" or not isinstance(X, (list, tuple))
    # Equal rows for all tasks, as one with two signs, make a matrix of rank one.
    if shared and isinstance(norm, MixedNorm) and norm.groups is None:
        inner, outer = conjugate(float(norm.inner)), conjugate(float(norm.outer))
        return np.asarray(columns ** (1.0 / inner) * row_norms(X, outer))
    if shared and isinstance(norm, Spectral):
        return math.sqrt(columns) * row_norms(X, 2.0)
    if examples == "tasks":
        return _task_radii(norm, [X] * n_outputs if shared else list(X))
    signs = np.array([[1.0, -1.0]])[:, :columns]
    wide = np.zeros((1, max(columns, n_outputs)))
    wide[:, :columns] = signs
    return np.array([norm.dual(np.outer(row, wide)) for row in _rows(X)])


def _task_radii(norm: Norm, parts: list[Any]) -> np.ndarray:
    """Return the dual norm of the rows that come together, one of every task."""
    n = min(part.shape[0] for part in parts)
    rows = [_rows(part) for part in parts]
    found = np.empty(n)
    for place in range(n):
        found[place] = norm.dual(np.stack([next(each) for each in rows], axis=1))
    return found


def _rows(X: Array) -> Any:
    """Yield the rows as dense vectors."""
    if is_sparse(X):
        X = X.tocsr()
        return (X[[i]].toarray()[0] for i in range(X.shape[0]))
    return iter(np.asarray(X, dtype=np.float64))


def row_norms(X: MatrixLike, p: float) -> np.ndarray:
    """Return the p-norm of every row, safe against overflow of powers.

    Examples
    --------
    >>> import numpy as np
    >>> row_norms(np.array([[3.0, -4.0]]), 2.0), row_norms(np.array([[3.0, -4.0]]), np.inf)
    (array([5.]), array([4.]))
    """
    if sparse.issparse(X):
        return _sparse_row_norms(X, p)
    X = np.abs(np.asarray(X, dtype=np.float64))
    largest = np.max(X, axis=1, initial=0.0)
    if p == math.inf:
        return np.asarray(largest)
    scale = np.where(largest > 0.0, largest, 1.0)[:, None]
    return np.asarray(largest * ((X / scale) ** p).sum(axis=1) ** (1.0 / p))


def _sparse_row_norms(X: Array, p: float) -> np.ndarray:
    X = abs(X.tocsr().astype(np.float64))
    largest = np.asarray(X.max(axis=1).todense()).ravel()
    if p == math.inf:
        return largest
    scale = np.where(largest > 0.0, largest, 1.0)
    small = (X.data / np.repeat(scale, np.diff(X.indptr))) ** p
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.asarray(largest * np.bincount(rows, small, minlength=X.shape[0]) ** (1.0 / p))
