"""Models that use every column, for comparison: scikit-learn's at its best, and ours."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mixnorm._array import is_sparse, to_dense
from mixnorm.cli.data import TrainingData
from mixnorm.cli.held_out import FoldPath, error_on, split_rows
from mixnorm.cli.screen import format_error
from mixnorm.cli.search import SearchOutcome

# Penalties to choose from: C of logistic regression as in LogisticRegressionCV, and alpha of ridge
# regression.
_PENALTIES = {"classification": np.logspace(-4, 4, 10), "regression": np.logspace(-4, 5, 10)}
_INNER = 5
_ITERATIONS = 300
# Iterations that a fit of work 1 can make; slower fits make fewer.
_ALL_ITERATIONS = 3e10
# Work is entries times outputs, and about 1e8 of it takes a second. So much is done in the search
# for the penalty, and as much in the fits.
_WORK = 6e8
# A sparse entry takes so many times as long; work on the weights themselves is so many entries.
_SPARSE, _WEIGHTS = 20, 20
_LEAST_ROWS = 1000
# Weights and work of the largest model of ours that is worth the wait.
_OWN_WEIGHTS, _OWN_WORK = 20_000, 2e8
# Numbers from here to the inverse have squares, and sums of them, that can be computed with.
_SMALL = 1e-100


class AllColumnsFit(NamedTuple):
    """Linear models over all columns: errors, size, and how scikit-learn's was fitted."""

    error: float
    n_features: int
    multiply_adds: int
    note: str
    own_error: float | None


class _Plan(NamedTuple):
    """What a table allows: penalties, inner folds, rows to search with and to fit on."""

    penalties: np.ndarray
    inner: int
    search_rows: int
    fit_rows: int
    iterations: int


def fit_all_columns(data: TrainingData, found: SearchOutcome) -> AllColumnsFit | None:
    """Fit linear models on all columns, and score them on the rows held out by the search.

    scikit-learn's logistic or ridge regression gets columns of mean 0 and deviation 1 (sparse ones
    keep their mean), and the penalty that inner cross-validation on the training rows prefers.
    ShareBoost gets all columns in one round. Large tables get fewer folds, penalties and rows.

    Parameters
    ----------
    data : TrainingData
        The table.
    found : SearchOutcome
        Which rows to fit on, which to score, and the settings of ShareBoost.

    Returns
    -------
    AllColumnsFit or None
        None for a table so small that a fold has one class only.
    """
    data, unit = _scale_to_finite(data)
    outputs = len(np.unique(data.y)) if data.task == "classification" else 1
    folds, rows = found.folds, len(found.folds[0].train)
    fits = len(folds) * _INNER * len(_PENALTIES[data.task])
    one = len(folds) > 1 and fits * _work(data, outputs, rows) > _WORK
    folds = folds[:1] if one else folds
    if outputs > 1 and any(len(np.unique(data.y[fold.train])) < 2 for fold in folds):
        return None
    plan = _plan(data, outputs, rows)
    errors = [_error(data, fold, plan) for fold in folds]
    note = _note(data, plan, rows)
    own = _score_shareboost(data, found, folds, plan, outputs)
    if one:
        ours = folds[0].errors[: found.chosen][-1]
        note += f", on the first fold only, where this model has {format_error(ours, data.task)}"
    return AllColumnsFit(
        error=unit * float(np.mean(errors)),
        n_features=len(data.encoder.names),
        multiply_adds=data.X.shape[1] * (1 if outputs == 2 else outputs),
        note=note,
        own_error=None if own is None else unit * own,
    )


def _scale_to_finite(data: TrainingData) -> tuple[TrainingData, float]:
    """Return a table whose squares are finite, and the unit of its targets.

    Columns and targets far from 1 are divided by powers of two, which changes no digit; models on
    standardised columns stay what they are.
    """
    largest = to_dense(abs(data.X).max(axis=0))
    units = np.array([_unit(float(size)) for size in largest.reshape(-1)])
    if np.any(units != 1):
        data = replace(data, X=_divide_columns(data.X, units))
    if data.weight is not None:
        data = replace(data, weight=data.weight / _unit(float(np.max(data.weight))))
    if data.task == "classification":
        return data, 1.0
    unit = _unit(float(np.max(np.abs(data.y))))
    return (data if unit == 1 else replace(data, y=data.y / unit)), unit


def _unit(size: float) -> float:
    """Return a power of two near a size that is far from 1, else 1."""
    usual = size == 0 or _SMALL < size < 1 / _SMALL
    return 1.0 if usual else float(np.exp2(np.floor(np.log2(size))))


def _divide_columns(X: Any, units: np.ndarray) -> Any:
    if not is_sparse(X):
        return X / units
    X = X.tocsr(copy=True)
    X.data = X.data / units[X.indices]
    return X


def _work(data: TrainingData, outputs: int, rows: int) -> float:
    """Return what a fit on so many rows costs."""
    height, width = data.X.shape
    filled = width if not is_sparse(data.X) else _SPARSE * data.X.nnz / max(1, height)
    work = outputs * (filled * rows + _WEIGHTS * width)
    if data.task == "regression":  # solved at once, instead of by iterations
        work *= max(1.0, min(rows, width) / 50)
    return float(work)


def _plan(data: TrainingData, outputs: int, rows: int) -> _Plan:
    penalties, inner = _PENALTIES[data.task], _INNER
    if len(penalties) * inner * _work(data, outputs, _LEAST_ROWS) > 2 * _WORK:
        penalties, inner = penalties[2:7:2], 3
    each = _work(data, outputs, rows) / rows
    search = int(_WORK / (len(penalties) * inner * each))
    fit = int(_WORK / each)
    search, fit = (min(rows, max(_LEAST_ROWS, most)) for most in (search, fit))
    most = _ALL_ITERATIONS / _work(data, outputs, fit)
    return _Plan(penalties, inner, search, fit, int(np.clip(most, 50, _ITERATIONS)))


def _note(data: TrainingData, plan: _Plan, rows: int) -> str:
    """Say how scikit-learn's model was fitted."""
    labels = data.task == "classification"
    name, penalty = ("logistic", "C") if labels else ("ridge", "alpha")
    part = "the training rows"
    if plan.search_rows < rows:
        part = f"{plan.search_rows:,} of the {rows:,} training rows to save time"
    note = (
        f"scikit-learn's {name} regression on standardised columns, {penalty} chosen from "
        f"{len(plan.penalties)} values by {plan.inner}-fold cross-validation on {part}"
    )
    if plan.fit_rows < rows:
        note += f", fitted on {plan.fit_rows:,} of them"
    if labels and plan.iterations < _ITERATIONS:
        note += f", {plan.iterations} iterations at most"
    return note


def _error(data: TrainingData, fold: FoldPath, plan: _Plan) -> float:
    """Return the held-out error of scikit-learn's model, its penalty chosen on training rows."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler(with_mean=not is_sparse(data.X))
    train = _take_spaced(fold.train, plan.fit_rows)
    y, weight = data.y[train], _weight(data, train)
    X = scaler.fit_transform(data.X[train].astype(np.float64), sample_weight=weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        penalty = _choose_penalty(data.task, X, y, weight, plan)
        model = _linear(data.task, plan).set_params(**_named(data.task, penalty))
        model.fit(X, y, sample_weight=weight)
    found = model.predict(scaler.transform(data.X[fold.test].astype(float)))
    return error_on(data, fold.test, found)


def _choose_penalty(task: str, X: Any, y: np.ndarray, weight: Any, plan: _Plan) -> float:
    """Return the penalty with the smallest held-out loss over inner folds of these rows."""
    rows = _take_spaced(np.arange(len(y)), plan.search_rows)
    losses = np.zeros(len(plan.penalties))
    for train, test in split_rows(y[rows], task, plan.inner, seed=0):
        train, test = rows[train], rows[test]
        part, held = (None, None) if weight is None else (weight[train], weight[test])
        if (task == "classification" and len(np.unique(y[train])) < 2) or (
            part is not None and not part.any()
        ):
            continue
        model = _linear(task, plan)
        for place, penalty in enumerate(plan.penalties):
            model.set_params(**_named(task, penalty)).fit(X[train], y[train], sample_weight=part)
            each = _losses(model, X[test], y[test])
            losses[place] += each.sum() if held is None else held @ each
    best = int(np.argmin(losses)) if losses.any() else len(losses) // 2  # no rows to search with
    return float(plan.penalties[best])


def _losses(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """Return the log loss or the squared error of each row; 0 for classes that are not known."""
    from sklearn.base import is_regressor

    if is_regressor(model):
        return np.asarray((model.predict(X) - y) ** 2)
    place = np.minimum(np.searchsorted(model.classes_, y), len(model.classes_) - 1)
    chances = model.predict_proba(X)[np.arange(len(y)), place]
    return np.where(model.classes_[place] == y, -np.log(np.maximum(chances, 1e-15)), 0.0)


def _linear(task: str, plan: _Plan) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge

    # A fit starts at the weights of the penalty before.
    labels = task == "classification"
    return LogisticRegression(max_iter=plan.iterations, warm_start=True) if labels else Ridge()


def _named(task: str, penalty: float) -> dict[str, float]:
    return {"C" if task == "classification" else "alpha": penalty}


def _score_shareboost(
    data: TrainingData, found: SearchOutcome, folds: list[FoldPath], plan: _Plan, outputs: int
) -> float | None:
    """Return the held-out error of ShareBoost with all columns; None where that takes too long."""
    from sklearn.base import clone

    from mixnorm.engines.greedy import GreedyOptions
    from mixnorm.exceptions import MixnormWarning
    from mixnorm.pools import Columns

    width = data.X.shape[1]
    if outputs * width > _OWN_WEIGHTS or _work(data, outputs, plan.fit_rows) > _OWN_WORK:
        return None
    whole = {"pool": Columns(groups=[0] * width), "n_features_to_select": 1, "warm_start": False}
    others = {"max_inputs": None, "random_state": None, "options": GreedyOptions(rule="l2")}
    errors = []
    for fold in folds:
        train = _take_spaced(fold.train, plan.fit_rows)
        model = clone(found.model).set_params(**whole, **others)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MixnormWarning)
            model.fit(data.X[train], data.y[train], sample_weight=_weight(data, train))
        errors.append(error_on(data, fold.test, model.predict(data.X[fold.test])))
    return float(np.mean(errors))


def _weight(data: TrainingData, rows: np.ndarray) -> np.ndarray | None:
    return None if data.weight is None else data.weight[rows]


def _take_spaced(rows: np.ndarray, most: int) -> np.ndarray:
    """Return at most so many rows, evenly spaced."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(int)]
