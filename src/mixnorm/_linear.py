"""Scores of linear models that keep their digits where large terms cancel."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixnorm._array import is_sparse, to_dense

# A sum of floats is right to about 1e-16 of its terms. Where these are so much larger than all
# scores of a row, more than five digits have cancelled.
_CANCELLED = 1e5
# Rows whose terms are looked at: a column far from zero is so in every row.
_LOOKED_AT = 8
# Scores that differ by less, beside the sizes of their terms, are equal.
_TIED = 1e-12
# Splits a double into two halves of 26 bits (Veltkamp).
_SPLITTER = 2.0**27 + 1.0


def linear_scores(X: Any, weights: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Return ``X @ weights + intercept``, with care where large terms cancel.

    A column far from zero, such as a time stamp, has large products that the intercept or other
    columns take back. Single rows and batches, sparse and dense rows would then differ by what
    rounding leaves. Such scores are computed again with twice the digits.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Rows.
    weights : ndarray of shape (n_features, n_outputs)
        Weights.
    intercept : ndarray of shape (n_outputs,) or float
        Added to every row.

    Examples
    --------
    >>> X = np.array([[1e15 + 2.0, 1e15]])
    >>> linear_scores(X, np.array([[1.1], [1.1]]), np.array([-2.2e15]))
    array([[2.37763568]])
    """
    scores = np.asarray(X @ weights + intercept)
    if scores.size == 0:
        return scores
    with np.errstate(over="ignore", invalid="ignore"):
        terms = _largest_term(X, weights, intercept)
        sizes = np.maximum(scores.max(axis=1), -scores.min(axis=1))
        rows = np.flatnonzero(_CANCELLED * sizes < terms)
        if not np.isfinite(terms) or len(rows) == 0:
            return scores
        some = X.tocsr()[rows] if is_sparse(X) else X[rows]
        careful = _twice_as_precise(some, weights, intercept)
    # Where a sum overflows on the way, the plain one is all that there is.
    scores[rows] = np.where(np.isfinite(careful), careful, scores[rows])
    return scores


def _largest_term(X: Any, weights: np.ndarray, intercept: np.ndarray) -> float:
    """Return the largest sum of magnitudes behind a score, of a few rows."""
    few = X[:: 1 + X.shape[0] // _LOOKED_AT]
    return float((abs(few) @ abs(weights) + abs(intercept)).max())


def _twice_as_precise(X: Any, weights: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Return ``X @ weights + intercept`` as if computed with 106 bits (Ogita, Rump and Oishi)."""
    columns = X.tocsc() if is_sparse(X) else X
    total = np.zeros((X.shape[0], weights.shape[1])) + intercept
    rest = np.zeros_like(total)
    for j in range(X.shape[1]):
        column = columns[:, [j]]
        column = to_dense(column)
        column, weight = column.astype(np.float64), weights[j].astype(np.float64)
        # To within [-1, 1], by a power of two: halves of the largest floats would overflow.
        power = int(np.frexp(np.max(np.abs(column), initial=0.0))[1])
        product, error = _product(np.ldexp(column, -power), np.ldexp(weight, power))
        total, lost = _sum(total, product)
        rest += error + lost
    return np.asarray(total + rest)


def _sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rounded sum and what rounding took from it."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rounded product and what rounding took from it."""
    product = a * b
    (high, low), (top, bottom) = _halves(a), _halves(b)
    return product, ((high * top - product) + high * bottom + low * top) + low * bottom


def _halves(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    shifted = _SPLITTER * a
    high = shifted - (shifted - a)
    return high, a - high


def even_ties(scores: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return scores in which those that are the largest of a row but for rounding are equal.

    Which of two equal scores comes out larger would depend on how many rows are predicted at a
    time. ``sizes`` are the magnitudes of what was summed.

    Examples
    --------
    >>> import numpy as np
    >>> even_ties(np.array([[0.0, 1.0, 1.0 + 1e-15]]), np.array([2.0])).argmax(axis=1)
    array([1])
    """
    largest = np.max(scores, axis=1)
    tied = scores >= (largest - _TIED * sizes)[:, None]
    return np.asarray(np.where(tied, largest[:, None], scores))
