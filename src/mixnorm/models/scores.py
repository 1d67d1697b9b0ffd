"""Scores and labels in the array library of the new data, from weights on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixnorm._array import (
    Array,
    MatrixLike,
    follow,
    is_foreign,
    is_numpy,
    namespace,
    to_dense,
    to_numpy,
)
from mixnorm._linear import linear_scores
from mixnorm.pools import working_dtype


def weighted_scores(columns: MatrixLike, weights: np.ndarray, intercept: np.ndarray) -> Any:
    """Return the scores of columns of any namespace, for weights on the host."""
    columns = to_dense(columns)
    if is_numpy(columns):
        return linear_scores(columns, weights, intercept)
    dtype = working_dtype(columns)
    columns = namespace(columns).astype(columns, dtype, copy=False)
    return columns @ follow(weights, columns, dtype) + follow(intercept, columns)


def check_scores(scores: Array) -> Any:
    """Return scores or predicted values; raise if they overflow."""
    # Only on the host: to ask an array on a device would wait for it.
    if is_numpy(scores) and not np.all(np.isfinite(scores)):
        row = int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0])
        raise ValueError(
            f"X is too large or too small for this model: the scores of row {row} overflow. Bring "
            "columns to moderate sizes (StandardScaler) before fit and predict."
        )
    return scores


def constant_scores(intercept: np.ndarray, X: Array) -> Any:
    """Return the scores of a model without features."""
    return follow(np.repeat(np.asarray(intercept)[None, :], X.shape[0], axis=0), X)


def labels_at(classes: Array, places: Array) -> Any:
    """Return the labels at some indices, in the namespace of the indices; texts stay in NumPy's."""
    if is_numpy(classes) and is_numpy(places):
        return classes[places]
    # Labels that are numbers can follow the data to a device; texts cannot.
    if is_foreign(places) and (is_foreign(classes) or classes.dtype.kind in "bif"):
        return namespace(places).take(follow(classes, places), places, axis=0)
    found = to_numpy(classes)[to_numpy(places)]
    return follow(found, places) if found.dtype.kind in "biuf" else found
