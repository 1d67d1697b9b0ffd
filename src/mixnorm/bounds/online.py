"""Bounds for online learners: on their regret and on their mistakes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from mixnorm._array import ArrayLike
from mixnorm.bounds.bound import MATRIX_PAPER, Bound

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def regret(model: BaseEstimator, W: ArrayLike | None = None) -> Bound:
    r"""Bound the regret of an online learner against fixed weights.

    For steps :math:`\eta_t` and gradients :math:`v_t` the bound is :math:`f(u) / \eta_T + \sum_t
    \eta_t \|v_t\|_*^2 / (2 \beta)`, where :math:`f` is half the squared norm (:eq:`bound-steps`).

    Parameters
    ----------
    model : MirrorDescentClassifier, MirrorDescentRegressor or OnlineMultiTaskLearner
        A learner that has seen rows, with a step schedule that the theory covers.
    W : array of the shape of ``coef_``, optional
        The weights to compare with; the learner's own by default.

    Returns
    -------
    Bound
        ``inputs["measured"]`` is the regret itself.
    """
    W = _choose_weights(model, W)
    # The model has summed its steps and gradients while it learned; no row was kept.
    value, measured = float(model.regret_bound(W)), float(model.regret(W))
    rounds = float(model.n_rounds_)
    sentence = (
        f"In {rounds:g} rounds the learner's loss is at most {value:.3g} above that of these "
        f"weights. Its regret, with losses replaced by their tangents, is {measured:.3g}."
    )
    inputs = {"rounds": rounds, "measured": measured}
    return Bound(
        value, "regret", f"{MATRIX_PAPER}, Theorem 5, by the steps taken", inputs, sentence
    )


def best_regret(size: float, gradients: float, rounds: int, strong_convexity: float) -> Bound:
    r"""Bound the regret with the best fixed step, before any row is seen.

    The bound is :math:`V \sqrt{2 f_{\max} T / \beta}` (:eq:`bound-regret`) if the dual norms of the
    gradients are at most :math:`V`, and half the squared norm of the weights to compare with is at
    most :math:`f_{\max}`.

    Parameters
    ----------
    size : float
        The largest norm of the weights to compare with.
    gradients : float
        The largest dual norm :math:`V` of the gradients.
    rounds : int
        The number :math:`T` of rows to come.
    strong_convexity : float
        The constant :math:`\beta` of half the squared norm.

    Returns
    -------
    Bound
        ``inputs["step"]`` is the best step.

    Examples
    --------
    >>> best_regret(2.0, 3.0, 100, 1.0).value
    60.0
    """
    named = {"size": size, "gradients": gradients, "rounds": rounds}
    for name, value in (named | {"strong_convexity": strong_convexity}).items():
        if not 0.0 < float(value) < math.inf:
            raise ValueError(f"{name}={value!r} must be positive and finite.")
    # :eq:`bound-regret` with f_max = size^2 / 2, so that the factors of two cancel.
    value = gradients * size * math.sqrt(rounds / strong_convexity)
    step = size / gradients * math.sqrt(strong_convexity / rounds)
    sentence = (
        f"With steps of {step:.3g}, {rounds} rounds cost at most {value:.3g} more than the best "
        f"weights of norm up to {size:.3g}: {value / rounds:.3g} a round."
    )
    inputs = {name: float(value) for name, value in named.items()}
    inputs |= {"strong_convexity": float(strong_convexity), "step": step, "n": float(rounds)}
    return Bound(value, "regret", f"{MATRIX_PAPER}, Theorem 5", inputs, sentence, power=0.5)


def mistakes(model: BaseEstimator, W: ArrayLike | None = None) -> Bound:
    r"""Bound the number of mistakes of a perceptron.

    Let :math:`L` be the loss of fixed weights on the rows that the perceptron got wrong, and
    :math:`a = \|W\| \max \|X\|_* / \sqrt\beta`. The perceptron makes at most
    :math:`L + a \sqrt L + a^2` mistakes (:eq:`mistakes`).

    Parameters
    ----------
    model : GroupPerceptron
        A perceptron that has seen rows.
    W : array of the shape of ``coef_``, optional
        The weights to compare with; the learner's own by default.

    Returns
    -------
    Bound
        ``inputs["measured"]`` is the number of mistakes that were made.
    """
    W = _choose_weights(model, W)
    value, made = float(model.mistake_bound(W)), float(model.mistakes_)
    sentence = (
        f"Compared with these weights, at most {value:.4g} mistakes were possible; {made:g} were "
        "made."
    )
    inputs = {"rounds": float(model.n_rounds_), "measured": made}
    return Bound(value, "mistakes", f"{MATRIX_PAPER}, Corollary 24, corrected", inputs, sentence)


def _choose_weights(model: BaseEstimator, W: ArrayLike | None) -> np.ndarray:
    return np.asarray(model.coef_ if W is None else W, dtype=np.float64)
