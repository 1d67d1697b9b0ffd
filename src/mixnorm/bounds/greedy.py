"""Bounds for ShareBoost: how fast the loss falls, and what it says of new data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mixnorm._array import ArrayLike, MatrixLike, is_sparse, to_numpy
from mixnorm.bounds.bound import GUARANTEE, RATE, Bound

# Refits to this tolerance count as exact.
_EXACT = 1e-8
_PAPER = "Shalev-Shwartz, Wexler and Shashua"


def shareboost(
    model: Any, X: MatrixLike, y: ArrayLike, W: Any = None, intercept: Any = None
) -> Bound:
    r"""Bound ShareBoost's training loss by that of any weights.

    After :math:`T` rounds it is at most :math:`L(W) + 4 \|W\|_{\infty,1}^2 / T`, where columns are
    divided by their largest size, for a model without a penalty.

    Parameters
    ----------
    model : ShareBoostClassifier
        A fitted model on columns.
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
        ``inputs["measured"]`` is the loss itself, ``inputs["needed"]`` how many rounds are enough
        to be within a tenth of the loss of the empty model.
    """
    given = getattr(model, "coef_", 0.0) if W is None else W
    coef = np.atleast_2d(np.asarray(to_numpy(given), dtype=np.float64))
    _checked(model, X, coef)
    bias = to_numpy(model.intercept_ if intercept is None else intercept)
    X, y, classes = np.asarray(to_numpy(X), np.float64), to_numpy(y), to_numpy(model.classes_)
    scores = X @ coef.T + np.atleast_1d(bias).astype(np.float64)
    labels = np.searchsorted(classes, y)
    if np.any(labels >= len(classes)) or np.any(classes[labels] != y):
        raise ValueError("y has labels that the model does not know.")
    loss = model.model_.outputs.loss
    if scores.shape[1] == 1:  # two classes have one row of weights, that of the second
        scores = np.concatenate([-0.5 * scores, 0.5 * scores], axis=1)
        coef = np.concatenate([-0.5 * coef, 0.5 * coef])
    n = len(X)
    encoded = loss.encode(labels, scores.shape[1], scores)
    lost, _ = loss.value_and_residual(scores, encoded, np.full(n, 1.0 / n))
    size = float(np.sum(np.max(np.abs(coef), axis=0) * np.max(np.abs(X), axis=0, initial=0.0)))
    rounds = max(1, len(model.path_["loss"]))
    value = float(lost) + 4.0 * size * size / rounds
    measured = float(model.path_["loss"][-1]) if len(model.path_["loss"]) else model.null_loss_
    enough = 1
    if model.null_loss_:
        enough = max(1, math.ceil(4.0 * size * size / (0.1 * model.null_loss_)))
    sentence = (
        f"After {rounds} rounds the training loss is at most {value:.3g}, in view of weights that "
        f"lose {float(lost):.3g} and have norm {size:.3g}; it is {measured:.3g}. {enough} rounds "
        "would be enough to be within a tenth of the empty model's loss of theirs."
    )
    inputs = {"rounds": float(rounds), "comparator": size, "loss": float(lost)}
    inputs |= {"measured": measured, "needed": float(enough)}
    reason = _not_by_gradient(model)
    if reason:
        sentence += f" The theorem is not about a model with {reason}, so that this only orders."
    kind = RATE if reason else GUARANTEE
    return Bound(value, "training loss", f"{_PAPER}, Theorem 2", inputs, sentence, kind=kind)


def _outside(model: Any) -> str:
    """Return what keeps a model out of the theorem; nothing, if it is one of those it is about."""
    if isinstance(model.alpha, str) or model.alpha != 0.0:
        return f"a penalty (alpha={model.alpha!r}; set 0)"
    options = model.options_
    if options.scale != "max":
        return (
            f"columns in other units than their largest size (scale={options.scale!r}; set 'max')"
        )
    if options.backward or options.swaps or options.tune or options.atoms_per_round != 1:
        return "rounds that do more than add one feature"
    return ""


def _not_by_gradient(model: Any) -> str:
    """Return what keeps a model out of Theorem 2, which is about choices and exact refits too."""
    reason, options = _outside(model), model.options_
    if not reason and options.rule != "l1":
        reason = f"another choice than by gradients (rule={options.rule!r}; set 'l1')"
    if not reason and options.tol > _EXACT:
        reason = f"refits that are not exact (tol={options.tol:g}; set {_EXACT:g} or less)"
    return reason


def _checked(model: Any, X: MatrixLike, coef: np.ndarray) -> None:
    """Raise a clear error for models and rows that the bound cannot be computed for."""
    if not hasattr(model, "path_") or not hasattr(model, "classes_"):
        raise TypeError(
            f"{type(model).__name__} is no fitted ShareBoostClassifier, which the theorem is about."
        )
    if not model.model_.pool.plain:
        raise ValueError("The bound is for models on columns of X; this one has other features.")
    if is_sparse(X):
        raise TypeError("X is sparse; give X.toarray().")
    if coef.shape != np.atleast_2d(to_numpy(model.coef_)).shape:
        raise ValueError(f"W has the shape {coef.shape}; give weights of the shape of coef_.")


def shareboost_drops(model: Any) -> tuple[np.ndarray, np.ndarray]:
    r"""Return what the loss fell by in every round, and what it must fall by at least.

    That is :math:`\frac14 \|G_j\|_1^2` for the gradient of the column that came in, for a model
    without penalty.

    Parameters
    ----------
    model : ShareBoostClassifier
        A fitted model on columns.

    Returns
    -------
    fell, least : ndarray of shape (n_rounds,)
    """
    reason = _outside(model)
    if reason:
        raise ValueError(f"The theorem is not about a model with {reason}.")
    losses = np.concatenate([[model.null_loss_], model.path_["loss"]])
    return -np.diff(losses), 0.25 * np.asarray(model.path_["gradient"]) ** 2


def shareboost_generalization(
    n_chosen: int, n_classes: int, n_features: int, n: int, delta: float = 0.05
) -> Bound:
    r"""Return how far the error of a few shared features may be from that on the training rows.

    It is :math:`\sqrt{(T k \ln(T k) \ln k + T \ln d + \ln(1/\delta)) / n}` up to a constant that
    the paper does not give.

    Parameters
    ----------
    n_chosen, n_classes, n_features : int
        Chosen features, classes, and features to choose from.
    n : int
        Training rows.
    delta : float, default=0.05
        The probability of being wrong.

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
    weights = n_chosen * n_classes
    total: float = weights * math.log(weights) * math.log(n_classes)
    total += n_chosen * math.log(n_features) + math.log(1.0 / delta)
    value = math.sqrt(total / n)
    sentence = (
        f"The error on new data is within about {value:.3g} of that on {n} training rows, up to a "
        f"constant; {n_features} features to choose from cost a logarithm."
    )
    inputs = {"n": float(n), "chosen": float(n_chosen), "classes": float(n_classes)}
    inputs |= {"features": float(n_features), "delta": float(delta)}
    theorem = f"{_PAPER}, Theorem 1"
    return Bound(value, "generalization", theorem, inputs, sentence, "paper", RATE, -0.5)
