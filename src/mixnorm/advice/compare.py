"""Advice on which norm to use, from held-out errors and from bounds."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm._numbers import check_count
from mixnorm.advice.advice import Advice, NormAdvice
from mixnorm.advice.cases import AdviceCase, make_case
from mixnorm.advice.curves import NormCurve, compute_curve
from mixnorm.advice.words import choose_verdict, explain
from mixnorm.bounds import Bound, excess_risk
from mixnorm.data import check_in_memory
from mixnorm.norms import MixedNorm, Norm, as_norm

#: One norm, several, or several with names.
Norms = str | Norm | Iterable[str | Norm] | Mapping[str, str | Norm]
_DEFAULT_NORMS = ("l1,1", "l2,1", "l2,2", "trace")


@dataclass(frozen=True)
class ComparisonSettings:
    """How norms are compared.

    Attributes
    ----------
    rows_for_one_cut, most_cuts : int
        This many rows need only one cut into folds. Fewer rows are cut several times, at most
        ``most_cuts`` times.
    max_iter : int
        Iterations per fit: a comparison needs no exact solutions.
    share_of_empty_loss : float
        The share of the loss of the first, empty models in the common level (:eq:`bound-level`).
    """

    rows_for_one_cut: int = 400
    most_cuts: int = 4
    max_iter: int = 300
    share_of_empty_loss: float = 0.02


_COMPARISON = ComparisonSettings()


def advise(
    X: MatrixLike,
    y: ArrayLike | None = None,
    *,
    norms: Norms = _DEFAULT_NORMS,
    groups: ArrayLike | None = None,
    cv: int = 5,
    n_alphas: int = 12,
    max_rows: int = 2000,
    standardize: bool = True,
    task: str | None = None,
    tol: float = 2e-3,
    random_state: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Advice:
    """Compare norms on your data, and advise which one to use and why.

    Every norm is fitted along a path of penalties on the same folds, and norms are ranked by
    held-out error. The result also has the terms of the theory for each norm: the largest dual
    norm of an example, the norm of weights that reach the common held-out loss
    (:eq:`bound-level`), and the bound on the excess risk (:eq:`bound-excess`).

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features), or a list of them
        The rows, or a list with the rows of every task.
    y : array of shape (n_samples,) or (n_samples, n_outputs), or a list of arrays
        The labels, or the targets of one or several outputs, or a list with those of every task.
    norms : list of str or of norms, or dict, default=("l1,1", "l2,1", "l2,2", "trace")
        The norms to compare; the keys of a dictionary are used as their names.
    groups : array of int of shape (n_features,), optional
        A group for each feature. One more norm, which keeps or drops whole groups, is compared.
    cv : int, default=5
        The number of folds. Fewer than 400 rows are cut into folds several times.
    n_alphas : int, default=12
        The number of penalties for each norm.
    max_rows : int, default=2000
        The largest number of rows to compare norms on, drawn at random; for tasks, of each task.
    standardize : bool, default=True
        Whether each model divides columns by their standard deviations on its training rows.
        Sparse matrices stay sparse.
    task : {"classification", "regression"}, optional
        The kind of one-dimensional targets; by default their type decides. Floats of more than 20
        different values are numbers.
    tol : float, default=2e-3
        The relative duality gap at which fits stop.
    random_state : int, default=0
        The seed for the choice of rows and folds.
    progress : callable, optional
        Called with the name of each norm before it is fitted.

    Returns
    -------
    Advice

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixnorm import advise
    >>> advice = advise(*load_iris(return_X_y=True), cv=3, n_alphas=6)
    >>> advice.best_norm_ in ("l1,1", "l2,1", "l2,2", "trace")
    True
    """
    check_in_memory(X, "advise")
    cv, n_alphas = check_count("cv", cv, 2), check_count("n_alphas", n_alphas, 2)
    max_rows = check_count("max_rows", max_rows, 20)
    seed = check_count("random_state", random_state, 0)  # not None: all norms get the same folds
    if not isinstance(standardize, (bool, np.bool_)):
        raise TypeError(f"standardize={standardize!r} must be True or False.")
    case = make_case(X, y, max_rows=max_rows, standardize=bool(standardize), seed=seed, task=task)
    chosen = _choose_norms(norms, groups, case.d)
    if case.n < 2 * cv:
        where = "the smallest task has" if case.kind == "tasks" else "there are"
        raise ValueError(
            f"{where} {case.n} rows, too few for cv={cv} folds; lower cv, or add rows."
        )
    # The fewer rows there are, the more a single cut into folds depends on chance.
    cuts = int(np.clip(_COMPARISON.rows_for_one_cut // max(1, case.n), 1, _COMPARISON.most_cuts))
    # All norms get the same folds, so that their errors can be compared fold by fold.
    folds = [fold for repeat in range(cuts) for fold in case.folds(cv, (seed + repeat) % 2**32)]
    null = np.array([case.null_error(train, test) for train, test in folds])
    curves = {}
    for name, norm in chosen.items():
        if progress is not None:
            progress(name)
        model = case.make_model(norm, tol=float(tol), max_iter=_COMPARISON.max_iter)
        curves[name] = compute_curve(case, model, folds, n_alphas, cuts)
    level = _find_common_level(curves)
    found = [
        NormAdvice(name, norm, curves[name], *_bound_excess_risk(case, norm, curves[name], level))
        for name, norm in chosen.items()
    ]
    # Rounded: errors that are equal but for rounding are ordered by their losses.
    found.sort(key=lambda one: (round(one.error, 12), one.loss))
    verdict = choose_verdict(case, found, null)
    targets: Any = y
    n_samples = sum(map(len, targets)) if case.kind == "tasks" else len(targets)
    return Advice(
        found,
        _fit_best(case, X, targets, found[0], n_samples),
        explain(case, found, null, verdict),
        verdict,
        float(null.mean()),
        case.what,
        n_samples,
        case.d,
        case.n_outputs,
        case.n_used,
    )


def _find_common_level(curves: dict[str, NormCurve]) -> float:
    """Return a held-out loss that all norms reach (:eq:`bound-level`)."""
    means = [curve.losses.mean(axis=0) for curve in curves.values()]
    worst = max(float(losses.min()) for losses in means)
    # The first penalty leaves no weights, so that its loss is that of the empty model.
    first = max(float(losses[0]) for losses in means)
    return worst + _COMPARISON.share_of_empty_loss * max(0.0, first - worst)


def _find_comparator(curve: NormCurve, level: float) -> float:
    """Return the norm of the first weights along the path that reach a held-out loss."""
    losses = curve.losses.mean(axis=0)
    # The level is the largest of minima and a little more, so that every norm reaches it.
    reached = np.flatnonzero(losses <= level + 1e-12)
    place = int(reached[0]) if len(reached) else int(np.argmin(losses))
    return float(curve.norms[:, place].mean())


def _bound_excess_risk(
    case: AdviceCase, norm: Norm, curve: NormCurve, level: float
) -> tuple[float, float, Bound | None]:
    """Return the radius of the data, the norm of the comparator, and the bound if there is one."""
    comparator = _find_comparator(curve, level)
    # Outputs that share rows are examples with one row for all tasks (:eq:`bound-radii`).
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
            f"{bound.sentence} Squared losses have no Lipschitz constant, so this is only a rate."
        )
        bound = replace(bound, kind="rate", sentence=said)
    return bound.inputs["examples"], comparator, bound


def _fit_best(case: AdviceCase, X: MatrixLike, y: Any, best: NormAdvice, n_samples: int) -> Any:
    """Return the best model, fitted on all rows in their original units."""
    # The best penalty is proportional to one over the root of the number of rows.
    alpha = best.alpha * math.sqrt(case.n_used / n_samples)
    if case.kind == "tasks":
        y = [np.asarray(part, np.float64).ravel() for part in y]
    return clone(case.make_model(best.norm, alpha=alpha)).fit(X, y)


def _choose_norms(norms: Norms, groups: ArrayLike | None, n_columns: int) -> dict[str, Norm]:
    """Return the norms to compare, by name."""
    if isinstance(norms, Mapping):
        found = {str(name): as_norm(norm) for name, norm in norms.items()}
    elif norms is None or isinstance(norms, numbers.Number):
        raise TypeError(f"norms={norms!r} must be a list of norms, or a dictionary of them.")
    else:
        several = [norms] if isinstance(norms, str) or not isinstance(norms, Iterable) else norms
        found = {norm if isinstance(norm, str) else repr(norm): as_norm(norm) for norm in several}
    if groups is not None:
        labels = np.asarray(groups)
        if labels.shape != (n_columns,):
            raise ValueError(
                f"groups has the shape {labels.shape}; give a label for each of {n_columns} "
                "features."
            )
        found["groups"] = MixedNorm(2, 1, np.unique(labels, return_inverse=True)[1])
    if len(found) < 1:
        raise ValueError("norms is empty; give at least one norm to compare.")
    return found
