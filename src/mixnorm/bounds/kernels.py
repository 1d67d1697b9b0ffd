"""Bounds for learning with several kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mixnorm.bounds.bound import MATRIX_PAPER, RATE, Bound

_SPARSE_PAPER = "Jin, Yang and Mahdavi"


def kernel_learning(
    bank: Any, *, gamma: float, n: int | None = None, largest: float | None = None
) -> Bound:
    r"""Bound the Rademacher complexity of learning with several kernels, for a margin.

    For :math:`M \ge 8` kernels with values :math:`k(x, x)` of at most :math:`B`, the bound is
    :math:`e \sqrt{B \ln M / (\gamma^2 n)}` (:eq:`bound-kernels`). If the number of kernels is
    squared, the bound grows only by the factor :math:`\sqrt 2`.

    Parameters
    ----------
    bank : KernelStack, FittedBank, or int
        The kernels of the training rows, or the number of kernels.
    gamma : float
        The margin :math:`\gamma`.
    n : int, optional
        The number of training rows; that of the bank by default.
    largest : float, optional
        The largest of all :math:`k(x, x)`; that of the bank by default, or 1 for a number.

    Returns
    -------
    Bound

    Examples
    --------
    >>> round(kernel_learning(100, gamma=0.5, n=10_000).value, 4)
    0.1167
    """
    if not 0.0 < float(gamma) < math.inf:
        raise ValueError(f"gamma={gamma!r}, the margin, must be positive and finite.")
    count, rows, size = _measure_bank(bank, n, largest)
    if not rows >= 1 or not 0.0 <= size < math.inf:
        raise ValueError(f"n={rows!r} must be at least 1, and largest={size!r} not negative.")
    # The proof sets p = ln M, and a dual exponent below 2 would lose strong convexity: M >= e^2.
    if count < 8:
        raise ValueError(f"bank has {count} kernels; the theorem is for at least 8 kernels.")
    value = math.e * math.sqrt(size * math.log(count) / (float(gamma) ** 2 * rows))
    sentence = (
        f"The Rademacher complexity of {count} kernels on {rows} rows at the margin "
        f"{float(gamma):.3g} is at most {value:.3g}. The error on new rows is on average at "
        "most the share of training rows within the margin plus twice that."
    )
    inputs = {"n": float(rows), "kernels": float(count), "largest": size, "margin": float(gamma)}
    theorem = f"{MATRIX_PAPER}, Theorem 25"
    return Bound(value, "cost of learning kernels", theorem, inputs, sentence, power=-0.5)


def _measure_bank(bank: Any, n: int | None, largest: float | None) -> tuple[int, int, float]:
    """Return the numbers of kernels and of rows, and the largest value on a diagonal."""
    if isinstance(bank, (int, np.integer)) and not isinstance(bank, bool):
        if n is None:
            raise ValueError("n is missing; give the number of training rows.")
        return int(bank), int(n), 1.0 if largest is None else float(largest)
    # A fitted bank makes its matrices when asked; a stack is one already.
    stack = getattr(bank, "grams", None)
    grams = bank if stack is None else stack()
    if getattr(grams, "diagonals", None) is None:
        raise TypeError(
            f"bank is a {type(bank).__name__}, which has no kernels of rows; give a KernelStack, a "
            "fitted bank (KernelBank.fit(X)), or the number of kernels."
        )
    diagonals = grams.diagonals()
    rows = diagonals.shape[1] if n is None else int(n)
    return len(diagonals), rows, float(np.max(diagonals)) if largest is None else float(largest)


def local_rademacher(
    n: int,
    n_classes: int,
    *,
    q: float | None = None,
    r: float | None = None,
    smoothness: float = 1.0,
    delta: float = 0.05,
) -> Bound:
    r"""Return the rate of the local Rademacher complexity of many classes, up to constants.

    The rate is :math:`\xi(K)^2 (\ln n)^3 / n` (:eq:`bound-local`), with
    :math:`\xi(K) = \sqrt e (4 \ln K)^{1 + 1/(2 \ln K)}` for :math:`q \ge 2 \ln K`, and
    :math:`(2q)^{1 + 1/q} K^{1/q}` otherwise. For functions whose losses have second moments of at
    most :math:`r`, it is :math:`\xi(K) \sqrt{\zeta r} (\ln n)^{3/2} / \sqrt n + \ln(1/\delta) / n`
    (:eq:`bound-local-moment`).

    Parameters
    ----------
    n : int
        The number of training rows, at least 2.
    n_classes : int
        The number of classes, at least 2.
    q : float, optional
        The dual exponent over classes; :math:`2 \ln K` by default.
    r : float, optional
        The largest second moment of the losses, which chooses the second rate.
    smoothness : float, default=1.0
        The smoothness :math:`\zeta` of the loss, for the second rate.
    delta : float, default=0.05
        The probability that the second rate fails.

    Returns
    -------
    Bound
        A rate: the paper gives no constants.

    Examples
    --------
    >>> local_rademacher(10_000, 10).kind
    'rate'
    """
    if not n >= 2 or not n_classes >= 2:
        raise ValueError(f"n={n!r} and n_classes={n_classes!r} must be at least 2.")
    if not 0.0 < delta < 1.0 or not smoothness > 0.0 or not (r is None or r > 0.0):
        raise ValueError("r and smoothness must be positive, and delta between 0 and 1.")
    logarithm = math.log(n_classes)
    q = 2.0 * logarithm if q is None else float(q)
    if not q > 0.0:
        raise ValueError(f"q={q!r} must be positive.")
    # For larger q the norm over classes hardly changes, and the bound is that of q = 2 ln K.
    if q >= 2.0 * logarithm:
        xi = math.sqrt(math.e) * (4.0 * logarithm) ** (1.0 + 0.5 / logarithm)
    else:
        xi = (2.0 * q) ** (1.0 + 1.0 / q) * n_classes ** (1.0 / q)
    inputs = {"n": float(n), "classes": float(n_classes), "q": q, "xi": xi}
    # No ``power`` is given to the bound: logarithms of n make it no power of n.
    value = xi * xi * math.log(n) ** 3 / n
    if r is not None:
        inputs |= {"r": float(r), "smoothness": float(smoothness), "delta": float(delta)}
        value = xi * math.sqrt(smoothness * r / n) * math.log(n) ** 1.5 + math.log(1.0 / delta) / n
    sentence = (
        f"The rate for {n_classes} classes and {n} rows is {value:.3g}, up to constants that the "
        "paper leaves open: it orders numbers of classes and rows, and is not a bound by itself."
    )
    theorem = f"Multi-class learning: from theory to algorithm, Theorem {2 if r is None else 1}"
    return Bound(value, "local Rademacher complexity", theorem, inputs, sentence, "paper", RATE)


def sparse_kernels(norm: float, n_kernels: int, optimum: float = 0.0) -> Bound:
    r"""Bound the objective of greedily chosen kernels by that of any function.

    After :math:`d \ge 2` steps the objective is above that of a function :math:`f` by at most
    :math:`2 \|f\|^2 / (d - 1)` (:eq:`lasso-rate`).

    Parameters
    ----------
    norm : float
        The norm of :math:`f`: the sum of its norms in all kernels.
    n_kernels : int
        The number of steps, at least 2.
    optimum : float, default=0.0
        The objective of :math:`f`.

    Returns
    -------
    Bound

    Examples
    --------
    >>> sparse_kernels(3.0, 10).value
    2.0
    """
    if not n_kernels >= 2:
        raise ValueError(f"n_kernels={n_kernels!r} must be at least 2.")
    if not 0.0 <= norm < math.inf:
        raise ValueError(f"norm={norm!r} must be finite and at least 0.")
    value = float(optimum) + 2.0 * norm * norm / (n_kernels - 1.0)
    sentence = (
        f"After {n_kernels} kernels the objective is at most {value:.3g}, because a function "
        f"of norm {norm:.3g} has the objective {float(optimum):.3g}."
    )
    inputs = {"kernels": float(n_kernels), "norm": float(norm), "optimum": float(optimum)}
    theorem = f"{_SPARSE_PAPER}, Theorem 1"
    return Bound(value, "objective of sparse kernels", theorem, inputs, sentence)


def sparse_kernels_rate(gamma: float, n_steps: int, mu: float = 3.0) -> Bound:
    r"""Bound the loss above the smallest possible one, after greedy steps without a penalty.

    For targets with a mean square of at most one, the bound is
    :math:`\frac12 \max(0, 1 - \tau)^d` with
    :math:`\tau = (\mu - 1)^2 / (8 \mu (\mu + 1) \gamma^2)` (:eq:`geometric-rate`).

    Parameters
    ----------
    gamma : float
        The constant :math:`\gamma` of the kernels, from :func:`mixnorm.kernels.kernel_geometry`. It
        is large if kernels are nearly redundant.
    n_steps : int
        The number :math:`d` of steps.
    mu : float, default=3.0
        A parameter :math:`\mu > 1` of the proof.

    Returns
    -------
    Bound

    Examples
    --------
    >>> sparse_kernels_rate(1.0, 10).value < 0.5
    True
    """
    if not gamma > 0.0 or not n_steps >= 0 or not mu > 1.0:
        raise ValueError("gamma must be positive, n_steps not negative, and mu above 1.")
    # Kernels that share a direction have an infinite gamma: the bound is then that of no step at
    # all.
    tau = 0.0 if gamma == math.inf else (mu - 1.0) ** 2 / (8.0 * mu * (mu + 1.0) * gamma**2)
    # The empty model has half the mean square of the targets, at most one half.
    value = 0.5 * max(0.0, 1.0 - tau) ** n_steps
    sentence = f"After {n_steps} steps the loss is at most {value:.3g} above the smallest one."
    inputs = {"gamma": float(gamma), "steps": float(n_steps), "mu": float(mu), "tau": tau}
    theorem = f"{_SPARSE_PAPER}, Lemma 3, corrected"
    return Bound(value, "loss above the best", theorem, inputs, sentence)


def sparse_kernels_steps(gamma: float, error: float) -> Bound:
    r"""Return a number of greedy steps after which the loss is at most six times an error.

    It is :math:`16 \gamma^2 \ln(1 / (12 \epsilon))` (:eq:`enough-steps`).

    Parameters
    ----------
    gamma : float
        The constant of the kernels, as in :func:`sparse_kernels_rate`.
    error : float
        The error :math:`\epsilon` of the best few kernels, below one twelfth.

    Returns
    -------
    Bound

    Examples
    --------
    >>> sparse_kernels_steps(1.0, 0.01).value
    34.0
    """
    if not 0.0 < error < 1.0 / 12.0 or not 0.0 < gamma < math.inf:
        raise ValueError("error must be between 0 and 1/12, and gamma positive and finite.")
    value = float(math.ceil(16.0 * gamma**2 * math.log(1.0 / (12.0 * error))))
    sentence = f"{value:g} steps are enough for a loss of at most {6.0 * error:.3g}."
    inputs = {"gamma": float(gamma), "error": float(error)}
    theorem = f"{_SPARSE_PAPER}, Theorem 4, corrected"
    return Bound(value, "steps", theorem, inputs, sentence)


def sparse_kernels_generalization(
    radius: float, n_chosen: int, n_kernels: int, n: int, confidence: float = 2.0
) -> Bound:
    r"""Bound the excess risk of greedily chosen kernels against functions in a ball.

    The bound is :math:`196 (R + \sqrt d)^2 \sqrt{A \ln(m + 1) / N}`, with probability
    :math:`1 - (m + 1)^{1 - A}`, for :math:`A \ln(m + 1) \le N \le 2^{m+1}`
    (:eq:`bound-sparse-rows`).

    Parameters
    ----------
    radius : float
        The radius :math:`R` of the ball.
    n_chosen : int
        The number :math:`d` of chosen kernels.
    n_kernels : int
        The number :math:`m` of kernels to choose from, at least 3.
    n : int
        The number :math:`N` of training rows.
    confidence : float, default=2.0
        The number :math:`A`, above one.

    Returns
    -------
    Bound

    Examples
    --------
    >>> sparse_kernels_generalization(1.0, 4, 1000, 10**6).value > 0.0
    True
    """
    if not confidence > 1.0 or not n_kernels >= 3 or not n_chosen >= 1 or not radius >= 0.0:
        raise ValueError(
            "confidence must be above 1, n_kernels at least 3, n_chosen at least 1, and radius not "
            "negative."
        )
    # The theorem needs n between A ln(m + 1) and 2^(m + 1); the second is compared in logarithms,
    # because 2^(m + 1) overflows.
    size = confidence * math.log(n_kernels + 1.0)
    if not n >= size or math.log2(n) > n_kernels + 1.0:
        raise ValueError(
            f"The theorem is for n from {size:.0f} to 2 to the power of {n_kernels + 1}, got {n}."
        )
    value = 196.0 * (radius + math.sqrt(n_chosen)) ** 2 * math.sqrt(size / n)
    sure = 1.0 - (n_kernels + 1.0) ** (1.0 - confidence)
    sentence = (
        f"With probability {sure:.3g}, {n_chosen} of {n_kernels} kernels cost at most {value:.3g} "
        f"more on new data than the best function of norm {radius:.3g}."
    )
    inputs = {"n": float(n), "radius": float(radius), "chosen": float(n_chosen)}
    inputs |= {"kernels": float(n_kernels), "confidence": float(confidence), "sure": sure}
    theorem = f"{_SPARSE_PAPER}, Theorem 5"
    return Bound(value, "excess risk", theorem, inputs, sentence, power=-0.5)


def tensor_rate(gamma: float, step: float, delta: float = 0.5) -> Bound:
    r"""Bound the factor by which a gradient step lowers the tensor dual of squared losses.

    For a step :math:`\lambda` the factor is :math:`1 - \frac2\gamma \lambda (1 - \delta)`
    (:eq:`tensor-gradient-rate`).

    Parameters
    ----------
    gamma : float
        The weight of the losses in the objective.
    step : float
        The step :math:`\lambda` that the line search accepted.
    delta : float, default=0.5
        The constant :math:`\delta` of the line search.

    Returns
    -------
    Bound

    Examples
    --------
    >>> tensor_rate(10.0, 1.0).value
    0.9
    """
    if not gamma > 0.0 or not step > 0.0 or not 0.0 < delta < 1.0:
        raise ValueError("gamma and step must be positive, and delta between 0 and 1.")
    # For a long step the factor could be negative, which would say that the minimum is passed.
    value = max(0.0, 1.0 - 2.0 / gamma * step * (1.0 - delta))
    sentence = f"A step of {step:.3g} leaves at most {value:.3g} of the gap to the minimum."
    inputs = {"gamma": float(gamma), "step": float(step), "delta": float(delta)}
    return Bound(value, "dual rate", "Salzo, Suykens and Rosasco, Theorem 2.3", inputs, sentence)
