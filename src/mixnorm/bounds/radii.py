"""Dual norms of examples, which bounds multiply by the norm of the weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from mixnorm._array import MatrixLike
from mixnorm.norms import MixedNorm, Norm, Spectral, conjugate, has_ability

#: Kinds of example: a row with its class and another, a row of every task, or a row alone.
EXAMPLES = ("classes", "tasks", "rows")


def find_strongly_convex(norm: Norm, shape: tuple[int, int]) -> Any:
    """Return the strongly convex norm of the proofs: the norm itself or its surrogate.

    Surrogates are those of :eq:`bound-twin`.
    """
    # A norm that is strongly convex itself has the better constant.
    if has_ability(norm, "strong_convexity"):
        return norm
    surrogate = getattr(norm, "surrogate", None)
    if surrogate is not None:
        return surrogate(shape)
    raise ValueError(
        f"{norm!r} is not strongly convex and has no strongly convex surrogate; choose 'l1,1', "
        "'l2,1', 'l2,2', 'trace', or a norm with exponents between theirs."
    )


def radii(norm: Norm, X: MatrixLike, n_outputs: int, examples: str) -> np.ndarray:
    r"""Return the dual norm of every example (:eq:`bound-radii`).

    An example of kind ``"classes"`` is :math:`x (e_y - e_r)^\top`, whose norm is the same for any
    two classes. With ``"rows"`` there is one output.

    Parameters
    ----------
    norm : Norm
        The norm of the weights.
    X : array or sparse matrix of shape (n_samples, n_features), or a list of them
        The rows. With ``"tasks"``, a list with the rows of every task, of which as many are used
        as the smallest task has, or one array of rows that all tasks share.
    n_outputs : int
        The number of classes or tasks.
    examples : {"classes", "tasks", "rows"}
        The kind of example.
    """
    columns = {"tasks": n_outputs, "rows": 1, "classes": 2}[examples]
    own = X if examples == "tasks" and isinstance(X, (list, tuple)) else None
    # If all tasks share the row, or a row has two signs, an example is a matrix of rank one, whose
    # norm is a product.
    if own is None and isinstance(norm, MixedNorm) and norm.groups is None:
        inner, outer = conjugate(float(norm.inner)), conjugate(float(norm.outer))
        # A matrix x s' with signs s in ``columns`` places: the s-norm of each row is |x_j|
        # columns^(1/s).
        return np.asarray(columns ** (1.0 / inner) * row_norms(X, outer))
    if own is None and isinstance(norm, Spectral):
        # The one singular value of a matrix of rank one is the product of the two lengths, for any
        # exponent.
        return math.sqrt(columns) * row_norms(X, 2.0)
    if examples == "tasks":
        tasks = [_dense_rows(part) for part in own or [X] * n_outputs]
        together = zip(*tasks, strict=False)  # up to the rows of the smallest task
        return np.array([norm.dual(np.stack(rows, axis=1)) for rows in together])
    # With groups the norm may treat outputs differently, so the example has all columns: the first
    # class counts 1, the second -1.
    wide = np.zeros(max(columns, n_outputs))
    wide[:columns] = [1.0, -1.0][:columns]
    return np.array([norm.dual(np.outer(row, wide)) for row in _dense_rows(X)])


def _dense_rows(X: MatrixLike) -> Iterator[np.ndarray]:
    """Return an iterator over the rows as dense vectors."""
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        return (X[[i]].toarray()[0] for i in range(X.shape[0]))
    return iter(np.asarray(X, dtype=np.float64))


def row_norms(X: MatrixLike, p: float) -> np.ndarray:
    """Return the p-norm of every row; powers do not overflow.

    Examples
    --------
    >>> import numpy as np
    >>> row_norms(np.array([[3.0, -4.0]]), 2.0), row_norms(np.array([[3.0, -4.0]]), np.inf)
    (array([5.]), array([4.]))
    """
    if sparse.issparse(X):
        return _sparse_row_norms(sparse.csr_array(X), p)
    X = np.abs(np.asarray(X, dtype=np.float64))
    largest = np.max(X, axis=1, initial=0.0)
    if p == math.inf:
        return np.asarray(largest)
    # Powers of up to ln d: entries above 1e20 would overflow, and small ones vanish.
    scale = np.where(largest > 0.0, largest, 1.0)[:, None]
    return np.asarray(largest * ((X / scale) ** p).sum(axis=1) ** (1.0 / p))


def _sparse_row_norms(X: sparse.csr_array, p: float) -> np.ndarray:
    X = abs(X.astype(np.float64))
    # Entries that are not stored are zero, and change neither a maximum of magnitudes nor a sum of
    # powers.
    largest = np.asarray(X.max(axis=1).todense()).ravel()
    if p == math.inf:
        return largest
    scale = np.where(largest > 0.0, largest, 1.0)
    small = (X.data / np.repeat(scale, np.diff(X.indptr))) ** p
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.asarray(largest * np.bincount(rows, small, minlength=X.shape[0]) ** (1.0 / p))
