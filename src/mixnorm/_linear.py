"""Scores of linear models, precise also where large terms cancel."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixnorm._array import is_sparse, to_dense

# A sum of floats is exact to about 1e-16 of its largest term. If that term exceeds all scores of a
# row by this factor, more than five digits have cancelled.
_CANCELLED = 1e5
# Rows whose terms are inspected: a column far from zero is far from zero in every row.
_INSPECTED_ROWS = 8
# Scores are equal if they differ by less than this share of the sizes of their terms.
_TIE_TOLERANCE = 1e-12
# Factor that splits a double into two halves of 26 bits (Veltkamp).
_SPLITTER = 2.0**27 + 1.0


def linear_scores(X: Any, weights: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Return ``X @ weights + intercept``, computed with care where large terms cancel.

    A column far from zero, such as a time stamp, has large products that the intercept or other
    columns cancel. Rounding errors would then make single rows differ from batches, and sparse from
    dense rows. Such scores are computed again with twice the digits.

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
    # The plain product first: cancellation is rare, and testing for it costs a few rows.
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
        careful = _score_precisely(some, weights, intercept)
    # Where an intermediate sum overflows, keep the plain score.
    scores[rows] = np.where(np.isfinite(careful), careful, scores[rows])
    return scores


def add_products(total: np.ndarray, block: np.ndarray, table: np.ndarray) -> None:
    """Add ``block @ table`` to the first columns of ``total``.

    If ``total`` has one more column, this one gets the largest sum of magnitudes of each row. The
    block is overwritten.

    Examples
    --------
    >>> total = np.zeros((1, 2))
    >>> add_products(total, np.array([[3.0, -2.0]]), np.array([[1.0], [2.0]]))
    >>> total
    array([[-1.,  7.]])
    """
    k = table.shape[1]
    total[:, :k] += linear_scores(block, table, np.zeros(1))
    if total.shape[1] > k:
        total[:, k] += np.abs(block, out=block) @ np.max(np.abs(table), axis=1, initial=0.0)


def _largest_term(X: Any, weights: np.ndarray, intercept: np.ndarray) -> float:
    """Return the largest sum of magnitudes behind a score, over a few rows."""
    few = X[:: 1 + X.shape[0] // _INSPECTED_ROWS]
    return float((abs(few) @ abs(weights) + abs(intercept)).max())


def _score_precisely(X: Any, weights: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Return ``X @ weights + intercept`` as if computed with 106 bits (Ogita, Rump and Oishi)."""
    columns = X.tocsc() if is_sparse(X) else X
    total = np.zeros((X.shape[0], weights.shape[1])) + intercept
    rest = np.zeros_like(total)
    for j in range(X.shape[1]):
        column = to_dense(columns[:, [j]]).astype(np.float64)
        weight = weights[j].astype(np.float64)
        # A power of two brings the column into [-1, 1]: halves of the largest floats overflow.
        power = int(np.frexp(np.max(np.abs(column), initial=0.0))[1])
        # The powers of two cancel in the product.
        product, error = _multiply(np.ldexp(column, -power), np.ldexp(weight, power))
        total, lost = _add(total, product)
        rest += error + lost
    return np.asarray(total + rest)


def _add(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rounded sum and its rounding error."""
    total = a + b
    # Knuth's two-sum: exact whatever the order of magnitude of the two.
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _multiply(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rounded product and its rounding error."""
    product = a * b
    (high, low), (top, bottom) = _split(a), _split(b)
    # Dekker's product: all four partial products of halves are exact.
    return product, ((high * top - product) + high * bottom + low * top) + low * bottom


def _split(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two numbers of half as many digits that add up to each entry."""
    shifted = _SPLITTER * a
    high = shifted - (shifted - a)
    return high, a - high


def even_ties(scores: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Set scores that equal the largest of their row, up to rounding, to that largest score.

    Rounding would otherwise decide which of two equal scores is larger, and so would the number of
    rows predicted at a time. ``sizes`` are the magnitudes of the terms that were summed.

    Examples
    --------
    >>> import numpy as np
    >>> even_ties(np.array([[0.0, 1.0, 1.0 + 1e-15]]), np.array([2.0])).argmax(axis=1)
    array([1])
    """
    largest = np.max(scores, axis=1)
    tied = scores >= (largest - _TIE_TOLERANCE * sizes)[:, None]
    return np.asarray(np.where(tied, largest[:, None], scores))
