"""Bounds for ShareBoost: on the fall of the training loss, and on the error on new data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from mixnorm._array import ArrayLike, MatrixLike, is_sparse, to_numpy
from mixnorm.bounds.bound import GUARANTEE, RATE, Bound
from mixnorm.data import check_in_memory

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

# Largest tolerance of refits that count as exact.
# The theorem assumes optimal weights after every round; a bound is printed with fewer digits.
_TOL_OF_EXACT_REFITS = 1e-8
_SHAREBOOST_PAPER = "Shalev-Shwartz, Wexler and Shashua"


def shareboost(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    W: ArrayLike | None = None,
    intercept: ArrayLike | None = None,
) -> Bound:
    r"""Bound ShareBoost's training loss by the loss of any weights.

    After :math:`T` rounds without a penalty the loss is at most
    :math:`L(W) + 4 \|W\|_{\infty,1}^2 / T` (:eq:`bound-shareboost`), where columns are divided by
    their largest magnitude.

    Parameters
    ----------
    model : ShareBoostClassifier
        A fitted model whose pool is the columns of X.
    X : array of shape (n_samples, n_features)
        Its training rows.
    y : array of shape (n_samples,)
        Their labels.
    W : array of the shape of ``coef_``, optional
        The weights to compare with; those of the model itself by default.
    intercept : array of the shape of ``intercept_``, optional
        Their intercept; the model's by default.

    Returns
    -------
    Bound
        ``inputs["measured"]`` is the loss itself. ``inputs["needed"]`` is the number of rounds
        after which the bound is above the loss of ``W`` by at most a tenth of the loss of the
        empty model.
    """
    given = getattr(model, "coef_", 0.0) if W is None else W
    coef = np.atleast_2d(np.asarray(to_numpy(given), dtype=np.float64))
    _check_model_and_rows(model, X, coef)
    bias = to_numpy(model.intercept_ if intercept is None else intercept)
    X, y, classes = np.asarray(to_numpy(X), np.float64), to_numpy(y), to_numpy(model.classes_)
    # The theorem holds for any intercept, so that of the model is as good as another.
    scores = X @ coef.T + np.atleast_1d(bias).astype(np.float64)
    labels = np.searchsorted(classes, y)
    if np.any(labels >= len(classes)) or np.any(classes[labels] != y):
        raise ValueError("y has labels that are not in classes_; give the training labels.")
    loss = model.model_.outputs.loss
    # The soft-max loss depends on the difference of the two scores alone. Halves with opposite
    # signs have the smallest largest weight.
    if scores.shape[1] == 1:  # two classes have one row of weights, that of the second
        scores = np.concatenate([-0.5 * scores, 0.5 * scores], axis=1)
        coef = np.concatenate([-0.5 * coef, 0.5 * coef])
    n = len(X)
    encoded = loss.encode(labels, scores.shape[1], scores)
    lost, _ = loss.value_and_residual(scores, encoded, np.full(n, 1.0 / n))
    # The theorem measures columns in units of their largest magnitude. Weights of columns divided
    # by it are multiplied by it.
    size = float(np.sum(np.max(np.abs(coef), axis=0) * np.max(np.abs(X), axis=0, initial=0.0)))
    rounds = max(1, len(model.path_["loss"]))
    value = float(lost) + 4.0 * size * size / rounds
    measured = float(model.path_["loss"][-1]) if len(model.path_["loss"]) else model.null_loss_
    enough = 1
    # 4 |W|^2 / T is a tenth of the empty model's loss at this T.
    if model.null_loss_:
        enough = max(1, math.ceil(4.0 * size * size / (0.1 * model.null_loss_)))
    sentence = (
        f"After {rounds} rounds the training loss is at most {value:.3g}, because weights of norm "
        f"{size:.3g} have the loss {float(lost):.3g}. The training loss is {measured:.3g}. After "
        f"{enough} rounds the bound is above the loss of these weights by at most a tenth of the "
        "empty model's loss."
    )
    inputs = {"rounds": float(rounds), "comparator": size, "loss": float(lost)}
    inputs |= {"measured": measured, "needed": float(enough)}
    reason = _explain_why_not_exact(model)
    if reason:
        sentence += f" The theorem does not cover a model with {reason}, so this is only a rate."
    kind = RATE if reason else GUARANTEE
    return Bound(
        value, "training loss", f"{_SHAREBOOST_PAPER}, Theorem 2", inputs, sentence, kind=kind
    )


def _explain_why_outside(model: BaseEstimator) -> str:
    """Return why the theorems do not cover a model, or an empty string if they do."""
    # The proof minimises the loss alone; a penalty stops the weights before its minimum.
    if isinstance(model.alpha, str) or model.alpha != 0.0:
        return f"a penalty (alpha={model.alpha!r}; set 0)"
    options = model.options_
    if options.scale != "max":
        return f"columns that are scaled otherwise (scale={options.scale!r}; set 'max')"
    if options.backward or options.swaps or options.tune or options.atoms_per_round != 1:
        return "rounds that do more than add one feature"
    return ""


def _explain_why_not_exact(model: BaseEstimator) -> str:
    """Return why Theorem 2 does not cover a model: it also needs choices by gradients."""
    reason, options = _explain_why_outside(model), model.options_
    if not reason and options.rule != "l1":
        reason = f"choices that are not made by gradients (rule={options.rule!r}; set 'l1')"
    if not reason and options.tol > _TOL_OF_EXACT_REFITS:
        most = f"{_TOL_OF_EXACT_REFITS:g}"
        reason = f"refits that are not exact (tol={options.tol:g}; set {most} or less)"
    return reason


def _check_model_and_rows(model: BaseEstimator, X: MatrixLike, coef: np.ndarray) -> None:
    """Raise a clear error for models and rows that the bound cannot be computed for."""
    if not hasattr(model, "path_") or not hasattr(model, "classes_"):
        raise TypeError(
            f"{type(model).__name__} is not a fitted ShareBoostClassifier; fit one, because the "
            "theorem is about such models."
        )
    if not model.model_.pool.plain:
        raise ValueError("The bound is for models whose pool is the columns of X; set pool=None.")
    check_in_memory(X, "The bound")
    if is_sparse(X):
        raise TypeError("X is sparse; give X.toarray().")
    if coef.shape != np.atleast_2d(to_numpy(model.coef_)).shape:
        raise ValueError(f"W has the shape {coef.shape}; give weights of the shape of coef_.")


def shareboost_drops(model: BaseEstimator) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the fall of the loss in every round, and a lower bound on it.

    Without a penalty the loss falls by at least :math:`\frac14 \|G_j\|_1^2`, where :math:`G_j` is
    the gradient of the column that is added (:eq:`round-drop`).

    Parameters
    ----------
    model : ShareBoostClassifier
        A fitted model on columns.

    Returns
    -------
    fell, least : ndarray of shape (n_rounds,)
    """
    reason = _explain_why_outside(model)
    if reason:
        raise ValueError(f"The theorem does not cover a model with {reason}.")
    losses = np.concatenate([[model.null_loss_], model.path_["loss"]])
    # ``path_["gradient"]`` is the l1 norm of the gradient of the column that each round added.
    return -np.diff(losses), 0.25 * np.asarray(model.path_["gradient"]) ** 2


def shareboost_generalization(
    n_chosen: int, n_classes: int, n_features: int, n: int, delta: float = 0.05
) -> Bound:
    r"""Return the rate of the gap between the errors on new rows and on the training rows.

    Up to a constant that the paper does not give, the gap of a model of a few shared features is
    :math:`\sqrt{(T k \ln(T k) \ln k + T \ln d + \ln(1/\delta)) / n}`
    (:eq:`bound-shareboost-rows`).

    Parameters
    ----------
    n_chosen, n_classes, n_features : int
        The numbers of chosen features, of classes, and of features to choose from.
    n : int
        The number of training rows.
    delta : float, default=0.05
        The probability that the gap is larger.

    Returns
    -------
    Bound

    Examples
    --------
    >>> few, many = (shareboost_generalization(20, 10, d, 1000).value for d in (100, 10_000))
    >>> many / few < 1.1
    True
    """
    for name, given in {"n_chosen": n_chosen, "n_features": n_features, "n": n}.items():
        if not given >= 1:
            raise ValueError(f"{name}={given!r} must be at least 1.")
    if not n_classes >= 2:
        raise ValueError(f"n_classes={n_classes!r} must be at least 2.")
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta={delta!r} must be between 0 and 1.")
    # T k ln(T k) ln k is the Natarajan dimension of linear classifiers of T features, and T ln d
    # the union over the choices of features.
    weights = n_chosen * n_classes
    total: float = weights * math.log(weights) * math.log(n_classes)
    total += n_chosen * math.log(n_features) + math.log(1.0 / delta)
    value = math.sqrt(total / n)
    sentence = (
        f"The error on new data is within about {value:.3g} of that on {n} training rows, up to a "
        f"constant. The choice among {n_features} features costs only a logarithm."
    )
    inputs = {"n": float(n), "chosen": float(n_chosen), "classes": float(n_classes)}
    inputs |= {"features": float(n_features), "delta": float(delta)}
    theorem = f"{_SHAREBOOST_PAPER}, Theorem 1"
    return Bound(value, "generalization", theorem, inputs, sentence, "paper", RATE, -0.5)
