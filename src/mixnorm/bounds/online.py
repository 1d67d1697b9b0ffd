"""Bounds for learners that meet rows one at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mixnorm.bounds.bound import Bound

_PAPER = "Kakade, Shalev-Shwartz and Tewari"


def regret(model: Any, W: Any = None) -> Bound:
    r"""Bound how much more an online learner lost than fixed weights.

    From the steps :math:`\eta_t` and the gradients :math:`v_t` that occurred it is :math:`f(u) /
    \eta_T + \sum_t \eta_t \|v_t\|_*^2 / (2 \beta)`, with :math:`f` half the squared norm.

    Parameters
    ----------
    model : MirrorDescentClassifier, MirrorDescentRegressor or OnlineMultiTaskLearner
        A learner that has met rows, with steps that the theory is about.
    W : array of the shape of ``coef_``, optional
        The weights to compare with; those of the learner by default.

    Returns
    -------
    Bound
        ``inputs["measured"]`` is the regret itself.
    """
    W = _weights(model, W)
    value, measured = float(model.regret_bound(W)), float(model.regret(W))
    rounds = float(model.n_rounds_)
    sentence = (
        f"In {rounds:g} rounds the learner cannot have lost more than {value:.3g} above what these "
        f"weights would have; its regret, with losses replaced by tangents, is {measured:.3g}."
    )
    inputs = {"rounds": rounds, "measured": measured}
    return Bound(value, "regret", f"{_PAPER}, Theorem 5, by the steps taken", inputs, sentence)


def best_regret(size: float, gradients: float, rounds: int, strong_convexity: float) -> Bound:
    r"""Bound the regret before learning begins, by the best fixed step.

    It is :math:`V \sqrt{2 f_{\max} T / \beta}` for gradients of dual norm up to :math:`V`, and
    weights to compare with whose half squared norm is at most :math:`f_{\max}`.

    Parameters
    ----------
    size : float
        The norm of the weights to compare with, at most.
    gradients : float
        The dual norm of gradients, at most.
    rounds : int
        How many rows will come.
    strong_convexity : float
        The constant of half the squared norm.

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
    value = gradients * size * math.sqrt(rounds / strong_convexity)
    step = size / gradients * math.sqrt(strong_convexity / rounds)
    sentence = (
        f"With steps of {step:.3g}, {rounds} rounds cost at most {value:.3g} more than the best "
        f"weights of norm up to {size:.3g}: {value / rounds:.3g} a round."
    )
    inputs = {name: float(value) for name, value in named.items()}
    inputs |= {"strong_convexity": float(strong_convexity), "step": step, "n": float(rounds)}
    return Bound(value, "regret", f"{_PAPER}, Theorem 5", inputs, sentence, power=0.5)


def mistakes(model: Any, W: Any = None) -> Bound:
    r"""Bound the mistakes of a perceptron by what fixed weights lose on its mistakes.

    With :math:`a = \|W\| \max \|X\|_* / \sqrt\beta` it makes at most :math:`L + a \sqrt L + a^2`.

    Parameters
    ----------
    model : GroupPerceptron
        A perceptron that has met rows.
    W : array of the shape of ``coef_``, optional
        The weights to compare with; the learner's own by default.

    Returns
    -------
    Bound
        ``inputs["measured"]`` is how many mistakes were made.
    """
    W = _weights(model, W)
    value, made = float(model.mistake_bound(W)), float(model.mistakes_)
    sentence = (
        f"At most {value:.4g} mistakes could have been made in view of these weights; {made:g} "
        "were made."
    )
    inputs = {"rounds": float(model.n_rounds_), "measured": made}
    return Bound(value, "mistakes", f"{_PAPER}, Corollary 24, corrected", inputs, sentence)


def _weights(model: Any, W: Any) -> np.ndarray:
    if W is None:
        W = model.coef_
    return np.asarray(W, dtype=np.float64)
