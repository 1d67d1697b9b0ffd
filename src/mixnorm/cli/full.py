"""Models of all columns for comparison: a tuned one of scikit-learn, and ShareBoost."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator

from mixnorm._array import is_sparse, to_dense
from mixnorm.cli.data import TrainingTable
from mixnorm.cli.held_out import FoldPath, measure_error, select_weights, split_rows
from mixnorm.cli.screen import format_error
from mixnorm.cli.search import SearchOutcome
from mixnorm.display import FullModel

# The linear model of each task, with the name and the candidates of its penalty; C as in
# LogisticRegressionCV.
_MODELS = {
    "classification": ("logistic", "C", np.logspace(-4, 4, 10)),
    "regression": ("ridge", "alpha", np.logspace(-4, 5, 10)),
}
_INNER_FOLDS = 5
_ITERATIONS = 300
# Work is measured in matrix entries times outputs; 1e8 of it takes about a second.
# Limit on iterations times work of a fit.
_ALL_ITERATIONS = 3e10
# Limit on the work of the search for the penalty, and on that of the fits.
_WORK = 6e8
# Work for an entry of a sparse matrix, and for a weight.
_SPARSE_WORK, _WEIGHT_WORK = 20, 20
_LEAST_ROWS_TO_FIT = 1000
# Most weights and most work of ShareBoost with all columns.
_OWN_WEIGHTS, _OWN_WORK = 20_000, 2e8
# Sums of squares of numbers between this and its inverse neither underflow nor overflow.
_SMALLEST_SQUARABLE = 1e-100


class _FitPlan(NamedTuple):
    """The penalties, inner folds, rows and iterations that the size of a table allows."""

    penalties: np.ndarray
    inner: int
    search_rows: int
    fit_rows: int
    iterations: int


def fit_all_columns(data: TrainingTable, found: SearchOutcome) -> FullModel | None:
    """Fit linear models on all columns, and score them on the rows held out by the search.

    scikit-learn's logistic or ridge regression gets columns of mean 0 and deviation 1 (sparse ones
    keep their mean), with the penalty chosen by inner cross-validation on the training rows.
    ShareBoost gets all columns in one round. Large tables get fewer folds, penalties and rows.

    Parameters
    ----------
    data : TrainingTable
        The table.
    found : SearchOutcome
        The training and test rows, and the settings of ShareBoost.

    Returns
    -------
    FullModel or None
        None if the training rows of a fold have only one class.
    """
    data, unit = _scale_to_finite(data)
    outputs = len(np.unique(data.y)) if data.task == "classification" else 1
    folds, rows = found.folds, len(found.folds[0].train)
    fits = len(folds) * _INNER_FOLDS * len(_MODELS[data.task][2])
    one = len(folds) > 1 and fits * _estimate_work(data, outputs, rows) > _WORK
    folds = folds[:1] if one else folds
    if outputs > 1 and any(len(np.unique(data.y[fold.train])) < 2 for fold in folds):
        return None
    plan = _plan_fit(data, outputs, rows)
    errors = [_fit_and_score(data, fold, plan) for fold in folds]
    note = _describe_fit(data, plan, rows)
    own = _score_shareboost(data, found, folds, plan, outputs)
    if one:
        ours = folds[0].errors[: found.chosen][-1]
        note += f", on the first fold only, where this model has {format_error(ours, data.task)}"
    return FullModel(
        error=unit * float(np.mean(errors)),
        n_features=len(data.encoder.names),
        multiply_adds=data.X.shape[1] * (1 if outputs == 2 else outputs),
        note=note,
        own_error=None if own is None else unit * own,
    )


def _scale_to_finite(data: TrainingTable) -> tuple[TrainingTable, float]:
    """Return a table whose squares are finite, and the unit of its targets.

    Columns and targets far from 1 are divided by powers of two, which is exact and does not change
    models of standardised columns.
    """
    largest = to_dense(abs(data.X).max(axis=0))
    units = np.array([_find_unit(float(size)) for size in largest.reshape(-1)])
    if np.any(units != 1):
        data = replace(data, X=_divide_columns(data.X, units))
    if data.weight is not None:
        data = replace(data, weight=data.weight / _find_unit(float(np.max(data.weight))))
    if data.task == "classification":
        return data, 1.0
    unit = _find_unit(float(np.max(np.abs(data.y))))
    return (data if unit == 1 else replace(data, y=data.y / unit)), unit


def _find_unit(size: float) -> float:
    """Return a power of two near the size if that is far from 1, else 1."""
    usual = size == 0 or _SMALLEST_SQUARABLE < size < 1 / _SMALLEST_SQUARABLE
    return 1.0 if usual else float(np.exp2(np.floor(np.log2(size))))


def _divide_columns(X: np.ndarray | csr_array, units: np.ndarray) -> np.ndarray | csr_array:
    if isinstance(X, np.ndarray):
        return X / units
    X = X.copy()
    X.data = X.data / units[X.indices]
    return X


def _estimate_work(data: TrainingTable, outputs: int, rows: int) -> float:
    """Return the work of a fit on this number of rows."""
    height, width = data.X.shape
    filled = width if not is_sparse(data.X) else _SPARSE_WORK * data.X.nnz / max(1, height)
    work = outputs * (filled * rows + _WEIGHT_WORK * width)
    if data.task == "regression":  # solved by a factorisation instead of iterations
        work *= max(1.0, min(rows, width) / 50)
    return float(work)


def _plan_fit(data: TrainingTable, outputs: int, rows: int) -> _FitPlan:
    penalties, inner = _MODELS[data.task][2], _INNER_FOLDS
    if len(penalties) * inner * _estimate_work(data, outputs, _LEAST_ROWS_TO_FIT) > 2 * _WORK:
        penalties, inner = penalties[2:7:2], 3
    each = _estimate_work(data, outputs, rows) / rows
    search = int(_WORK / (len(penalties) * inner * each))
    fit = int(_WORK / each)
    search, fit = (min(rows, max(_LEAST_ROWS_TO_FIT, most)) for most in (search, fit))
    most = _ALL_ITERATIONS / _estimate_work(data, outputs, fit)
    return _FitPlan(penalties, inner, search, fit, int(np.clip(most, 50, _ITERATIONS)))


def _describe_fit(data: TrainingTable, plan: _FitPlan, rows: int) -> str:
    """Return a note on the fit of scikit-learn's model."""
    name, penalty, _ = _MODELS[data.task]
    part = "the training rows"
    if plan.search_rows < rows:
        part = f"{plan.search_rows:,} of the {rows:,} training rows to save time"
    note = (
        f"scikit-learn's {name} regression on standardised columns, {penalty} chosen from "
        f"{len(plan.penalties)} values by {plan.inner}-fold cross-validation on {part}"
    )
    if plan.fit_rows < rows:
        note += f", fitted on {plan.fit_rows:,} of them"
    if name == "logistic" and plan.iterations < _ITERATIONS:
        note += f", at most {plan.iterations} iterations"
    return note


def _fit_and_score(data: TrainingTable, fold: FoldPath, plan: _FitPlan) -> float:
    """Return the held-out error of scikit-learn's model, with a penalty chosen on training rows."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler(with_mean=not is_sparse(data.X))
    train = _take_spaced(fold.train, plan.fit_rows)
    y, weight = data.y[train], select_weights(data, train)
    X = scaler.fit_transform(data.X[train].astype(np.float64), sample_weight=weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        penalty = _choose_penalty(data.task, X, y, weight, plan)
        model = _make_model(data.task, plan).set_params(**penalty)
        model.fit(X, y, sample_weight=weight)
    found = model.predict(scaler.transform(data.X[fold.test].astype(float)))
    return measure_error(data, fold.test, found)


def _choose_penalty(
    task: str, X: np.ndarray | csr_array, y: np.ndarray, weight: np.ndarray | None, plan: _FitPlan
) -> dict[str, float]:
    """Return the penalty with the smallest held-out loss over inner folds, under its name."""
    name = _MODELS[task][1]
    rows = _take_spaced(np.arange(len(y)), plan.search_rows)
    losses = np.zeros(len(plan.penalties))
    for train, test in split_rows(y[rows], task, plan.inner, seed=0):
        train, test = rows[train], rows[test]
        part, held = (None, None) if weight is None else (weight[train], weight[test])
        if (task == "classification" and len(np.unique(y[train])) < 2) or (
            part is not None and not part.any()
        ):
            continue
        model = _make_model(task, plan)
        for place, penalty in enumerate(plan.penalties):
            model.set_params(**{name: penalty}).fit(X[train], y[train], sample_weight=part)
            each = _compute_row_losses(model, X[test], y[test])
            losses[place] += each.sum() if held is None else held @ each
    # Without any loss there were no rows to search with.
    best = int(np.argmin(losses)) if losses.any() else len(losses) // 2
    return {name: float(plan.penalties[best])}


def _compute_row_losses(
    model: BaseEstimator, X: np.ndarray | csr_array, y: np.ndarray
) -> np.ndarray:
    """Return the log loss or the squared error of each row; 0 for unknown classes."""
    from sklearn.base import is_regressor

    if is_regressor(model):
        return np.asarray((model.predict(X) - y) ** 2)
    place = np.minimum(np.searchsorted(model.classes_, y), len(model.classes_) - 1)
    chances = model.predict_proba(X)[np.arange(len(y)), place]
    return np.where(model.classes_[place] == y, -np.log(np.maximum(chances, 1e-15)), 0.0)


def _make_model(task: str, plan: _FitPlan) -> BaseEstimator:
    """Return scikit-learn's model; each fit of it starts at the weights of the previous one."""
    from sklearn.linear_model import LogisticRegression, Ridge

    labels = task == "classification"
    return LogisticRegression(max_iter=plan.iterations, warm_start=True) if labels else Ridge()


def _score_shareboost(
    data: TrainingTable, found: SearchOutcome, folds: list[FoldPath], plan: _FitPlan, outputs: int
) -> float | None:
    """Return the held-out error of ShareBoost with all columns; None if it takes too long."""
    from sklearn.base import clone

    from mixnorm.engines.greedy import GreedyOptions
    from mixnorm.exceptions import MixnormWarning
    from mixnorm.pools import Columns

    width = data.X.shape[1]
    if outputs * width > _OWN_WEIGHTS or _estimate_work(data, outputs, plan.fit_rows) > _OWN_WORK:
        return None
    whole = {"pool": Columns(groups=[0] * width), "n_features_to_select": 1, "warm_start": False}
    others = {"max_inputs": None, "random_state": None, "options": GreedyOptions(rule="l2")}
    errors = []
    for fold in folds:
        train = _take_spaced(fold.train, plan.fit_rows)
        model = clone(found.model).set_params(**whole, **others)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MixnormWarning)
            model.fit(data.X[train], data.y[train], sample_weight=select_weights(data, train))
        errors.append(measure_error(data, fold.test, model.predict(data.X[fold.test])))
    return float(np.mean(errors))


def _take_spaced(rows: np.ndarray, most: int) -> np.ndarray:
    """Return at most ``most`` evenly spaced rows."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(int)]
