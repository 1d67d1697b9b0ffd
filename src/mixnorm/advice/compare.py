"""Advice on which norm to use, from held-out errors and from bounds."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from mixnorm._array import Array, ArrayLike
from mixnorm.advice.advice import Advice, NormAdvice
from mixnorm.advice.cases import Case, case_of
from mixnorm.advice.curves import Curve, curve_of
from mixnorm.advice.words import verdict_of, why
from mixnorm.bounds import Bound, excess_risk
from mixnorm.norms import MixedNorm, as_norm

_DEFAULT = ("l1,1", "l2,1", "l2,2", "trace")
# Rows of which one cut into folds is enough, and cuts of fewer, at most.
_STEADY, _MOST_CUTS = 400, 4
# Iterations of a fit in the comparison, at most.
_MAX_ITER = 300
# Part of the way from the worst best loss to the loss of nothing, that all norms must reach.
_SLACK = 0.02


def advise(
    X: Array,
    y: Array | None = None,
    *,
    norms: Any = _DEFAULT,
    groups: Array | None = None,
    cv: int = 5,
    n_alphas: int = 12,
    max_rows: int = 2000,
    standardize: bool = True,
    task: str | None = None,
    tol: float = 2e-3,
    random_state: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Advice:
    """Compare norms on your data, and say which to use and why.

    Every norm goes along a path of penalties on the same folds. They are ranked by held-out error.
    Beside it stands what the theory says of each: how large examples are in its dual norm, how
    large weights must be that reach the same held-out loss, and the bound on the excess risk that
    these make.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features), or a list of them
        Rows; a list has those of every task.
    y : array of shape (n_samples,) or (n_samples, n_outputs), or a list of arrays
        Labels, or the targets of a regression, several columns of them or tasks.
    norms : list of str or of norms, or dict, default=("l1,1", "l2,1", "l2,2", "trace")
        The norms to compare; a dictionary names them.
    groups : array of int of shape (n_features,), optional
        Groups of columns that belong together: one more norm, that keeps or drops them whole.
    cv : int, default=5
        Folds; few rows are cut into folds several times.
    n_alphas : int, default=12
        Penalties for each norm.
    max_rows : int, default=2000
        Rows that norms are compared on, at most, drawn at random; of tasks, in each.
    standardize : bool, default=True
        Measure columns in standard deviations, each model by its own training rows; sparse
        matrices stay sparse.
    task : {"classification", "regression"}, optional
        What one-dimensional targets are; told from their type by default. Floats of more than 20
        different values are numbers.
    tol : float, default=2e-3
        Relative duality gap of the fits.
    random_state : int, default=0
        Draws rows and folds.
    progress : callable, optional
        Is told the name of each norm before its turn.

    Returns
    -------
    Advice

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixnorm import advise
    >>> advice = advise(*load_iris(return_X_y=True))
    >>> advice.best_norm_ in ("l1,1", "l2,1", "l2,2", "trace")
    True
    """
    _check_whole(2, cv=cv, n_alphas=n_alphas)
    _check_whole(20, max_rows=max_rows)
    _check_whole(0, random_state=random_state)  # rows and folds are the same for all norms
    if not isinstance(standardize, (bool, np.bool_)):
        raise TypeError(f"standardize={standardize!r} must be True or False.")
    cv, seed = int(cv), int(random_state)
    case = case_of(
        X, y, max_rows=int(max_rows), standardize=bool(standardize), seed=seed, task=task
    )
    chosen = _norms(norms, groups, case.d)
    if case.n < 2 * cv:
        where = "the smallest task has" if case.kind == "tasks" else "there are"
        raise ValueError(
            f"{where} {case.n} rows, too few for cv={cv} folds; lower cv, or add rows."
        )
    cuts = _repeats(case.n)
    folds = [fold for repeat in range(cuts) for fold in case.folds(cv, (seed + repeat) % 2**32)]
    null = np.array([case.null_error(train, test) for train, test in folds])
    curves = {}
    for name, norm in chosen.items():
        if progress is not None:
            progress(name)
        model = case.model(norm, tol=float(tol), max_iter=_MAX_ITER)
        curves[name] = curve_of(case, model, folds, int(n_alphas), cuts)
    found = _compared(case, chosen, curves)
    verdict = verdict_of(case, found, null)
    n_samples = sum(part.shape[0] for part in X) if case.kind == "tasks" else len(y)
    return Advice(
        found,
        _fitted(case, X, y, found[0], n_samples),
        why(case, found, null, verdict),
        verdict,
        float(null.mean()),
        case.what,
        n_samples,
        case.d,
        case.n_outputs,
        case.n_used,
    )


def _repeats(n: int) -> int:
    """Return how often rows are cut into folds: the fewer there are, the more chance is in one."""
    return int(np.clip(_STEADY // max(1, n), 1, _MOST_CUTS))


def _compared(case: Case, norms: dict[str, Any], curves: dict[str, Curve]) -> list[NormAdvice]:
    """Return what was found of all norms, the smallest held-out error first."""
    level = _common_level(curves)
    found = []
    for name, norm in norms.items():
        curve = curves[name]
        comparator = _comparator(curve, level)
        found.append(NormAdvice(name, norm, curve, *_bounded(case, norm, comparator)))
    return sorted(found, key=lambda one: (round(one.error, 12), one.loss))


def _common_level(curves: dict[str, Curve]) -> float:
    """Return a held-out loss that all norms reach."""
    lowest = [float(curve.losses.mean(axis=0).min()) for curve in curves.values()]
    first = max(float(curve.losses.mean(axis=0)[0]) for curve in curves.values())
    return max(lowest) + _SLACK * max(0.0, first - max(lowest))


def _comparator(curve: Curve, level: float) -> float:
    """Return the norm of the first weights along the path that reach a held-out loss."""
    losses = curve.losses.mean(axis=0)
    reached = np.flatnonzero(losses <= level + 1e-12)
    place = int(reached[0]) if len(reached) else int(np.argmin(losses))
    return float(curve.norms[:, place].mean())


def _bounded(case: Case, norm: Any, comparator: float) -> tuple[float, float, Bound | None]:
    """Return the radius of the data, the comparator's norm, and the bound if there is one."""
    examples = "classes" if case.kind == "classes" else "tasks"
    try:
        bound = excess_risk(
            norm, case.X, radius=comparator, n_outputs=case.n_outputs, examples=examples
        )
    except ValueError as error:
        if "no strongly convex surrogate" not in str(error):
            raise
        return math.nan, comparator, None
    if case.kind != "classes":
        said = (
            f"{bound.sentence} Squared losses have no Lipschitz constant, so that it only orders."
        )
        bound = replace(bound, kind="rate", sentence=said)
    return bound.inputs["examples"], comparator, bound


def _fitted(case: Case, X: Array, y: Array, best: NormAdvice, n_samples: int) -> Any:
    """Return the best model, fitted on all rows, which takes rows as they were given."""
    # The best penalty falls with the root of the number of rows.
    alpha = best.alpha * math.sqrt(case.n_used / n_samples)
    if case.kind == "tasks":
        y = [np.asarray(part, np.float64).ravel() for part in y]
    return clone(case.model(best.norm, alpha=alpha)).fit(X, y)


def _norms(norms: Any, groups: ArrayLike, n_columns: int) -> dict[str, Any]:
    """Return the norms to compare, by name."""
    if isinstance(norms, Mapping):
        found = {str(name): as_norm(norm) for name, norm in norms.items()}
    elif norms is None or isinstance(norms, numbers.Number):
        raise TypeError(f"norms={norms!r} must be a list of norms, or a dictionary of them.")
    else:
        alone = isinstance(norms, str) or not isinstance(norms, Iterable)
        found = {_name(norm): as_norm(norm) for norm in ([norms] if alone else norms)}
    if groups is not None:
        labels = np.asarray(groups)
        if labels.shape != (n_columns,):
            raise ValueError(
                f"groups has the shape {labels.shape}; give a label for each of {n_columns} "
                "columns."
            )
        found["groups"] = MixedNorm(2, 1, np.unique(labels, return_inverse=True)[1])
    if len(found) < 1:
        raise ValueError("norms is empty; give at least one norm to compare.")
    return found


def _name(norm: Any) -> str:
    return norm if isinstance(norm, str) else repr(norm)


def _check_whole(least: int, **given: Any) -> None:
    for name, value in given.items():
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if not whole or value < least:
            raise ValueError(f"{name}={value!r} must be a whole number of at least {least}.")
