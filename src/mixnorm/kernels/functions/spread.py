"""Mean distances between rows: the units of relative widths."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixnorm._chunks import row_blocks
from mixnorm.kernels.functions.metrics import Rows

# Entries that are sorted at a time.
_SORTED_ENTRIES = 2**20


def mean_squared_distance(X: Rows, weight: np.ndarray | None = None) -> float:
    r"""Return the mean of :math:`\|x - x'\|_2^2` over all pairs of rows.

    This is twice the sum of the variances of the columns. ``weight`` holds positive weights of the
    rows; a row of weight two counts as two rows.

    Examples
    --------
    >>> mean_squared_distance(np.array([[0.0], [2.0]]))
    2.0
    >>> mean_squared_distance(np.array([[0.0], [2.0]]), np.array([3.0, 1.0]))
    1.5
    """
    n = X.shape[0]
    share = np.full(n, 1.0 / n) if weight is None else weight / np.sum(weight)
    if not isinstance(X, np.ndarray):
        wide = X.astype(np.float64)
        # Twice the sum of the variances; centring would fill a sparse matrix.
        means, squares = share @ wide, share @ wide.multiply(wide).tocsr()
        return 2.0 * float(np.sum(np.maximum(squares - means**2, 0.0)))
    # The rounded mean of equal numbers may differ from them, though their variance is zero.
    varies = np.max(X, axis=0) > np.min(X, axis=0)
    if weight is None:
        return 2.0 * float(np.sum(np.var(X, axis=0, dtype=np.float64)[varies]))
    left = X - share @ X
    return 2.0 * float(np.sum((share @ (left * left))[varies]))


def mean_distance(X: Rows, weight: np.ndarray | None = None) -> float:
    r"""Return the mean of :math:`\|x - x'\|_1` over all pairs of rows, by sorting columns.

    In a sorted column, entry :math:`k` of :math:`n` is the larger one of :math:`k` pairs and the
    smaller one of :math:`n - 1 - k`. Positive weights of rows count pairs by their product.

    Examples
    --------
    >>> mean_distance(np.array([[0.0], [2.0]]))
    1.0
    """
    n = X.shape[0]
    if weight is not None:
        return _weighted_mean_distance(X, weight / np.sum(weight))
    if not isinstance(X, np.ndarray):
        return _mean_distance_of_sparse(X.tocsc(), n)
    # Entry k is added k times and subtracted n - 1 - k times. The smallest entry is subtracted
    # first, so that large columns with small differences keep their digits.
    signs = 2.0 * np.arange(n) - (n - 1)
    total = 0.0
    for part in row_blocks(X.shape[1], _SORTED_ENTRIES, n):
        columns = np.sort(X[:, part].astype(np.float64), axis=0)
        total += float(np.sum(signs @ (columns - columns[0])))
    return float(2.0 * max(total, 0.0) / n**2)


def _mean_distance_of_sparse(X: Any, n: int) -> float:
    """Return the mean distance from sorted stored entries.

    The zeros that are not stored lie between the negative and the positive entries.
    """
    stored = np.diff(X.indptr)
    column = np.repeat(np.arange(X.shape[1]), stored)
    values = X.data.astype(np.float64)
    values = values[np.lexsort((values, column))]
    rank = np.arange(len(values)) - np.repeat(X.indptr[:-1], stored)
    # All zeros of the column lie below a positive entry: n - stored of them.
    rank = np.where(values > 0.0, rank + n - np.repeat(stored, stored), rank)
    total = float(np.sum((2.0 * rank - (n - 1)) * values))
    return float(2.0 * max(total, 0.0) / n**2)


def _weighted_mean_distance(X: Rows, share: np.ndarray) -> float:
    """Return the mean distance of rows whose weights sum to one, some columns at a time.

    In a sorted column, an entry is the larger one of all pairs with the weight before it.
    """
    total = 0.0
    for part in row_blocks(X.shape[1], _SORTED_ENTRIES, X.shape[0]):
        block = X[:, part]
        columns = (block if isinstance(block, np.ndarray) else block.toarray()).astype(np.float64)
        order = np.argsort(columns, axis=0, kind="stable")
        columns = np.take_along_axis(columns, order, axis=0)
        shares = share[order]
        before = np.cumsum(shares, axis=0) - shares
        signs = before - (1.0 - before - shares)
        total += float(np.sum(shares * signs * (columns - columns[0])))
    return 2.0 * max(total, 0.0)
