"""Folds of rows, as ``cv`` describes them."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from mixnorm._array import Array, ArrayLike, to_numpy
from mixnorm.estimators._common.arrays import take_rows
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.exceptions import SortedRowsWarning

# Rows of a fold, and of the rest, that are enough to tell sorted targets from chance.
_FEW = 5


def row_folds(
    cv: Any,
    X: Array,
    y: Array,
    groups: Array | None = None,
    *,
    classifier: bool,
    weight: Array | None = None,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the rows to learn from and the rows to score of every fold of ``cv``.

    Rows of weight zero count for nothing: a splitter does not see them, and they are in no fold.
    Folds that are given as lists of rows stay as they are. Warns where the targets of a regression
    look sorted.

    Examples
    --------
    >>> import numpy as np
    >>> [test.tolist() for _, test in row_folds(2, np.zeros(4), np.zeros(4), classifier=False)]
    [[0, 1], [2, 3]]
    """
    from sklearn.model_selection import TimeSeriesSplit

    kept = None if weight is None else np.flatnonzero(np.asarray(weight) > 0.0)
    given = isinstance(cv, Iterable) and not hasattr(cv, "split")
    if kept is not None and len(kept) < len(y) and not given:
        parts = (take_rows(X, kept), y[kept], None if groups is None else np.asarray(groups)[kept])
        inner = row_folds(cv, *parts, classifier=classifier)
        return [(kept[train], kept[test]) for train, test in inner]
    splitter = fold_splitter(cv, y, classifier=classifier)
    n_samples = int(np.shape(y)[0])
    try:
        splits = list(splitter.split(X, y, groups))
    except (TypeError, ValueError) as error:
        if given:
            raise ValueError(f"{_shown(cv)} must give pairs of training and test rows.") from error
        raise ValueError(
            f"{_shown(cv)} cannot split these rows: {error} Give other folds, or more rows."
        ) from error
    if not splits:
        raise ValueError(f"{_shown(cv)} gives no folds; give at least one.")
    folds = [
        (_row_numbers(cv, train, n_samples), _row_numbers(cv, test, n_samples))
        for train, test in splits
    ]
    if not classifier and not isinstance(splitter, TimeSeriesSplit):
        warn_of_sorted_rows(y, [test for _, test in folds])
    return folds


def fold_splitter(cv: Any, y: ArrayLike | None = None, *, classifier: bool = False) -> Any:
    """Return the splitter that ``cv`` stands for, as scikit-learn has it."""
    from sklearn.model_selection import check_cv

    allowed = (
        "give None, a number of folds of at least 2, a splitter of sklearn.model_selection, or a "
        "list of pairs of training and test rows"
    )
    whole = isinstance(cv, numbers.Integral) and not isinstance(cv, bool)
    known = cv is None or whole or hasattr(cv, "split") or isinstance(cv, Iterable)
    if isinstance(cv, (str, bytes)) or not known:
        raise TypeError(f"cv={cv!r} is no way to split rows; {allowed}.")
    if whole and cv < 2:
        raise ValueError(f"cv={cv!r} is less than two folds; {allowed}.")
    return check_cv(cv, y, classifier=classifier)


def _shown(cv: Any) -> str:
    return f"cv, a {type(cv).__name__}," if len(repr(cv)) > 60 else f"cv={cv!r}"


def _row_numbers(cv: Any, given: Any, n_samples: int) -> np.ndarray:
    rows = np.asarray(given)
    if rows.dtype == bool and rows.shape == (n_samples,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or len(rows) == 0:
        raise ValueError(f"{_shown(cv)} gives a fold with no rows to learn from or to score.")
    if rows.dtype.kind not in "iu" or rows.min() < -n_samples or rows.max() >= n_samples:
        raise ValueError(
            f"{_shown(cv)} gives rows that X does not have; give row numbers from 0 to "
            f"{n_samples - 1}."
        )
    return np.asarray(rows, dtype=np.intp) % n_samples


def warn_of_sorted_rows(y: ArrayLike, tests: Iterable[np.ndarray]) -> None:
    """Warn if a test fold has no target in the range of the others; for one column of numbers."""
    targets = to_numpy(y)
    if targets.dtype.kind not in "iuf" or targets.size != len(targets):
        return
    targets = targets.reshape(-1)
    for fold, rows in enumerate(tests):
        held = np.zeros(len(targets), dtype=bool)
        held[rows] = True
        own, others = (part[~np.isnan(part)] for part in (targets[held], targets[~held]))
        if min(len(own), len(others)) < _FEW:
            continue
        vary = own.min() < own.max() and others.min() < others.max()
        if vary and (own.min() > others.max() or own.max() < others.min()):
            warn_caller(
                f"Fold {fold + 1} of cv holds the targets from {own.min():.4g} to "
                f"{own.max():.4g}, and no other row has one in that range: the rows seem to be "
                "sorted by y, and scores then tell little. Shuffle the rows, with "
                "cv=KFold(5, shuffle=True, random_state=0) say.",
                SortedRowsWarning,
            )
            return
