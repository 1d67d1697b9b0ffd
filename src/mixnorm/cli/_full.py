"""The model that uses every column, for comparison."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from mixnorm.cli._data import Data
from mixnorm.cli._search import Fold, mean_error

# Rows times columns times outputs of a fit that takes about a second, and of the largest that is
# worth the wait; in between fewer iterations are made.
_QUICK = 6e7
_LARGEST = 1.5e8
_ITERATIONS = 100


class FullFit(NamedTuple):
    """A linear model over all columns: its error, its size, and how it was fitted."""

    error: float
    n_features: int
    multiply_adds: int
    note: str


def fit_full(data: Data, folds: list[Fold]) -> FullFit | None:
    """Fit scikit-learn's linear model on all columns, and score it on the rows held out.

    Logistic regression or ridge regression, with columns scaled as ours are and the usual penalty;
    on all folds where that is quick, else on the first.

    Parameters
    ----------
    data : Data
        The table.
    folds : list of Fold
        Which rows to fit on, and which to score.

    Returns
    -------
    FullFit or None
        None for a table so small that a fold has one class only.
    """
    outputs = len(np.unique(data.y)) if data.task == "classification" else 1
    per_row = data.X.shape[1] * (1 if outputs == 2 else outputs)
    one = len(folds) > 1 and len(folds) * len(folds[0].train) * per_row > _QUICK
    folds = folds[:1] if one else folds
    if outputs > 1 and any(len(np.unique(data.y[fold.train])) < 2 for fold in folds):
        return None
    train, note = _affordable(folds[0].train, per_row)
    iterations = int(np.clip(_ITERATIONS * _QUICK / (len(train) * per_row), 25, _ITERATIONS))
    errors = [
        _error(data, train if fold is folds[0] else fold.train, fold.test, iterations)
        for fold in folds
    ]
    if one:
        note += ", on the first fold only"
    name = "logistic regression" if data.task == "classification" else "ridge regression"
    if data.task == "classification" and iterations < _ITERATIONS:
        note += f", {iterations} iterations"
    return FullFit(
        error=float(np.mean(errors)),
        n_features=len(data.encoder.names),
        multiply_adds=int(per_row),
        note=f"scikit-learn's {name} on all columns{note}",
    )


def _error(data: Data, train: np.ndarray, test: np.ndarray, iterations: int) -> float:
    """Return the error on some rows of a linear model fitted on others."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.preprocessing import MaxAbsScaler

    linear: Any
    labelled = data.task == "classification"
    linear = LogisticRegression(max_iter=iterations) if labelled else Ridge()
    weight = None if data.weight is None else data.weight[train]
    scaler = MaxAbsScaler()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        linear.fit(scaler.fit_transform(data.X[train]), data.y[train], sample_weight=weight)
    found = linear.predict(scaler.transform(data.X[test]))
    held = None if data.weight is None else data.weight[test]
    held = held if held is not None and held.any() else None
    return mean_error(data.y[test], found, held, data.task)


def _affordable(train: np.ndarray, per_row: int) -> tuple[np.ndarray, str]:
    """Return the rows to fit on, evenly spaced where all would take too long."""
    most = max(1000, int(_LARGEST / max(1, per_row)))
    if len(train) <= most:
        return train, ""
    kept = train[np.linspace(0, len(train) - 1, most).astype(int)]
    return kept, f", fitted on {most:,} of {len(train):,} rows to save time"
