"""Folds of rows that the parameter ``cv`` describes."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from mixnorm._array import ArrayLike, MatrixLike, to_numpy
from mixnorm.estimators._common.arrays import take_rows
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.exceptions import SortedRowsWarning

# Rows that a fold and the rest must have to tell sorted targets from chance.
_ROWS_TO_TELL_ORDER = 5


def row_folds(
    cv: object,
    X: MatrixLike,
    y: np.ndarray,
    groups: ArrayLike | None = None,
    *,
    classifier: bool,
    weight: np.ndarray | None = None,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the training rows and the test rows of every fold of ``cv``.

    Rows of weight zero are ignored: a splitter does not see them, and they are in no fold. Folds
    given as lists of rows stay as they are. Warns if the targets of a regression look sorted.

    Examples
    --------
    >>> import numpy as np
    >>> [test.tolist() for _, test in row_folds(2, np.zeros(4), np.zeros(4), classifier=False)]
    [[0, 1], [2, 3]]
    """
    from sklearn.model_selection import TimeSeriesSplit

    kept = None if weight is None else np.flatnonzero(weight > 0.0)
    given = isinstance(cv, Iterable) and not hasattr(cv, "split")
    # A splitter that counts rows of no weight could make folds without any row that counts.
    if kept is not None and len(kept) < len(y) and not given:
        parts = (take_rows(X, kept), y[kept], None if groups is None else np.asarray(groups)[kept])
        # Without weights the call below takes the other branch.
        inner = row_folds(cv, *parts, classifier=classifier)
        return [(kept[train], kept[test]) for train, test in inner]
    splitter = fold_splitter(cv, y, classifier=classifier)
    try:
        splits = list(splitter.split(X, y, groups))
    except (TypeError, ValueError) as error:
        if given:
            raise ValueError(
                f"{_describe_cv(cv)} must give pairs of training and test rows."
            ) from error
        raise ValueError(
            f"{_describe_cv(cv)} cannot split these rows: {error} Give other folds, or more rows."
        ) from error
    if not splits:
        raise ValueError(f"{_describe_cv(cv)} gives no folds; give at least one.")
    folds = [
        (_check_rows(cv, train, len(y)), _check_rows(cv, test, len(y))) for train, test in splits
    ]
    if not classifier and not isinstance(splitter, TimeSeriesSplit):
        warn_of_sorted_rows(y, [test for _, test in folds])
    return folds


def fold_splitter(cv: Any, y: ArrayLike | None = None, *, classifier: bool = False) -> Any:
    """Return scikit-learn's splitter for ``cv``."""
    from sklearn.model_selection import check_cv

    allowed = (
        "give None, a number of folds of at least 2, a splitter of sklearn.model_selection, or a "
        "list of pairs of training and test rows"
    )
    whole = isinstance(cv, numbers.Integral) and not isinstance(cv, bool)
    known = cv is None or whole or hasattr(cv, "split") or isinstance(cv, Iterable)
    if isinstance(cv, (str, bytes)) or not known:
        raise TypeError(f"cv={cv!r} does not say how to split rows; {allowed}.")
    if whole and cv < 2:
        raise ValueError(f"cv={cv!r} is less than two folds; {allowed}.")
    return check_cv(cv, y, classifier=classifier)


def _describe_cv(cv: object) -> str:
    return f"cv, a {type(cv).__name__}," if len(repr(cv)) > 60 else f"cv={cv!r}"


def _check_rows(cv: object, given: ArrayLike, n_samples: int) -> np.ndarray:
    """Return the rows of a fold as numbers from zero up; raise for rows that ``X`` lacks."""
    rows = np.asarray(given)
    if rows.dtype == bool and rows.shape == (n_samples,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or len(rows) == 0:
        raise ValueError(f"{_describe_cv(cv)} gives a fold with no rows to learn from or to score.")
    if rows.dtype.kind not in "iu" or rows.min() < -n_samples or rows.max() >= n_samples:
        raise ValueError(
            f"{_describe_cv(cv)} gives rows that X does not have; give row numbers from 0 to "
            f"{n_samples - 1}."
        )
    return np.asarray(rows, dtype=np.intp) % n_samples


def warn_of_sorted_rows(y: ArrayLike, tests: Iterable[np.ndarray]) -> None:
    """Warn if the targets of a test fold do not overlap those of the other rows; for numbers."""
    targets = to_numpy(y)
    if targets.dtype.kind not in "iuf" or targets.size != len(targets):
        return
    targets = targets.reshape(-1)
    for fold, rows in enumerate(tests):
        held = np.zeros(len(targets), dtype=bool)
        held[rows] = True
        own, others = (part[~np.isnan(part)] for part in (targets[held], targets[~held]))
        # A fold of few rows may be at one end of the others by chance.
        if min(len(own), len(others)) < _ROWS_TO_TELL_ORDER:
            continue
        vary = own.min() < own.max() and others.min() < others.max()
        if vary and (own.min() > others.max() or own.max() < others.min()):
            warn_caller(
                f"Fold {fold + 1} of cv holds the targets from {own.min():.4g} to "
                f"{own.max():.4g}, and no other row has one in that range: the rows seem to be "
                "sorted by y, and scores then tell little. Shuffle the rows, for example with "
                "cv=KFold(5, shuffle=True, random_state=0).",
                SortedRowsWarning,
            )
            return
