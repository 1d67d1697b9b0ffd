"""Bounds for learning with several kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mixnorm.bounds.bound import RATE, Bound


def kernel_learning(
    bank: Any, *, gamma: float, n: int | None = None, largest: float | None = None
) -> Bound:
    r"""Bound what choosing among kernels costs, for a margin.

    With :math:`M \ge 8` kernels whose values :math:`k(x, x)` are at most :math:`B` it is :math:`e
    \sqrt{B \ln M / (\gamma^2 n)}`: the square of their number costs only
    the root of two times as much.

    Parameters
    ----------
    bank : KernelStack, FittedBank, or int
        The kernels of the training rows, or their number.
    gamma : float
        The margin.
    n : int, optional
        Training rows; those of the bank by default.
    largest : float, optional
        The largest of all :math:`k(x, x)`; that of the bank by default, or 1.

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
    count, rows, size = _bank_parts(bank, n, largest)
    if not rows >= 1 or not 0.0 <= size < math.inf:
        raise ValueError(f"n={rows!r} must be at least 1, and largest={size!r} not negative.")
    if count < 8:
        raise ValueError(f"The theorem is for at least 8 kernels, and there are {count}.")
    value = math.e * math.sqrt(size * math.log(count) / (float(gamma) ** 2 * rows))
    sentence = (
        f"The Rademacher complexity of {count} kernels on {rows} rows at the margin "
        f"{float(gamma):.3g} is at most {value:.3g}; twice that is added to the share of rows "
        "within the margin."
    )
    inputs = {"n": float(rows), "kernels": float(count), "largest": size, "margin": float(gamma)}
    theorem = "Kakade, Shalev-Shwartz and Tewari, Theorem 25"
    return Bound(value, "cost of learning kernels", theorem, inputs, sentence, power=-0.5)


def _bank_parts(bank: Any, n: Any, largest: Any) -> tuple[int, int, float]:
    """Return the number of kernels and of rows, and the largest value on a diagonal."""
    if isinstance(bank, (int, np.integer)) and not isinstance(bank, bool):
        if n is None:
            raise ValueError("n is missing; give the number of training rows.")
        return int(bank), int(n), 1.0 if largest is None else float(largest)
    stack = getattr(bank, "grams", None)
    grams = bank if stack is None else stack()
    if getattr(grams, "diagonals", None) is None:
        raise TypeError(
            f"bank, a {type(bank).__name__}, has no kernels of rows; give a KernelStack, a bank "
            "that was fitted (KernelBank.fit(X)), or a number of kernels."
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

    It is :math:`\xi(K)^2 (\ln n)^3 / n` with :math:`\xi(K) = \sqrt e (4 \ln K)^{1 + 1/(2 \ln K)}`
    for :math:`q \ge 2 \ln K`, else :math:`(2q)^{1 + 1/q} K^{1/q}`. Of functions whose losses have
    second moments up to :math:`r` it is :math:`\xi(K) \sqrt{\zeta r} (\ln n)^{3/2} / \sqrt n +
    \ln(1/\delta) / n`.

    Parameters
    ----------
    n : int
        Training rows, more than 1.
    n_classes : int
        Classes, at least 2.
    q : float, optional
        The dual exponent over classes; that from which on the first form holds by default.
    r : float, optional
        The second moment of losses, for the second rate.
    smoothness : float, default=1.0
        The smoothness :math:`\zeta` of the loss, for the second rate.
    delta : float, default=0.05
        The probability of being wrong, for the second rate.

    Returns
    -------
    Bound
        It orders; the paper gives no constants.

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
    if q >= 2.0 * logarithm:
        xi = math.sqrt(math.e) * (4.0 * logarithm) ** (1.0 + 0.5 / logarithm)
    else:
        xi = (2.0 * q) ** (1.0 + 1.0 / q) * n_classes ** (1.0 / q)
    inputs = {"n": float(n), "classes": float(n_classes), "q": q, "xi": xi}
    value = xi * xi * math.log(n) ** 3 / n
    if r is not None:
        inputs |= {"r": float(r), "smoothness": float(smoothness), "delta": float(delta)}
        value = xi * math.sqrt(smoothness * r / n) * math.log(n) ** 1.5 + math.log(1.0 / delta) / n
    sentence = (
        f"The rate for {n_classes} classes and {n} rows is {value:.3g}, up to constants that the "
        "paper leaves open: it orders, and bounds nothing by itself."
    )
    theorem = f"Multi-class learning: from theory to algorithm, Theorem {2 if r is None else 1}"
    return Bound(value, "local Rademacher complexity", theorem, inputs, sentence, "paper", RATE)


def sparse_kernels(norm: float, n_kernels: int, optimum: float = 0.0) -> Bound:
    r"""Bound the objective of greedily chosen kernels by that of any function.

    After :math:`d \ge 2` steps it is at most the optimum plus :math:`2 \|f\|^2 / (d - 1)`.

    Parameters
    ----------
    norm : float
        The norm of a function to compare with, the sum of its norms in all kernels.
    n_kernels : int
        Steps, at least 2.
    optimum : float, default=0.0
        Its objective.

    Returns
    -------
    Bound

    Examples
    --------
    >>> sparse_kernels(3.0, 10).value
    2.0
    """
    if not n_kernels >= 2:
        raise ValueError(f"n_kernels={n_kernels!r} must be at least 2: the theorem is for more.")
    if not 0.0 <= norm < math.inf:
        raise ValueError(f"norm={norm!r} must be finite, and not negative.")
    value = float(optimum) + 2.0 * norm * norm / (n_kernels - 1.0)
    sentence = (
        f"After {n_kernels} kernels the objective is at most {value:.3g}, in view of a function of "
        f"norm {norm:.3g} whose objective is {float(optimum):.3g}."
    )
    inputs = {"kernels": float(n_kernels), "norm": float(norm), "optimum": float(optimum)}
    theorem = "Jin, Yang and Mahdavi, Theorem 1"
    return Bound(value, "objective of sparse kernels", theorem, inputs, sentence)


def sparse_kernels_rate(gamma: float, n_steps: int, mu: float = 3.0) -> Bound:
    r"""Bound what is left of the loss above the best, after greedy steps without penalty.

    It is :math:`\frac12 \max(0, 1 - \tau)^d` with :math:`\tau = (\mu - 1)^2 / (8 \mu (\mu + 1)
    \gamma^2)`, for targets of mean square at most one.

    Parameters
    ----------
    gamma : float
        The constant of the kernels, from :func:`mixnorm.kernels.kernel_geometry`: how little they
        say the same.
    n_steps : int
        Steps.
    mu : float, default=3.0
        A number above one, of the proof.

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
    tau = 0.0 if gamma == math.inf else (mu - 1.0) ** 2 / (8.0 * mu * (mu + 1.0) * gamma**2)
    value = 0.5 * max(0.0, 1.0 - tau) ** n_steps
    sentence = f"After {n_steps} steps at most {value:.3g} is left above the best of the kernels."
    inputs = {"gamma": float(gamma), "steps": float(n_steps), "mu": float(mu), "tau": tau}
    theorem = "Jin, Yang and Mahdavi, Lemma 3, corrected"
    return Bound(value, "loss above the best", theorem, inputs, sentence)


def sparse_kernels_steps(gamma: float, error: float) -> Bound:
    r"""Return how many greedy steps are enough to be within six times an error.

    It is :math:`16 \gamma^2 \ln(1 / (12 \epsilon))`.

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
    sentence = f"{value:g} steps are enough to be within {6.0 * error:.3g}."
    inputs = {"gamma": float(gamma), "error": float(error)}
    theorem = "Jin, Yang and Mahdavi, Theorem 4, corrected"
    return Bound(value, "steps", theorem, inputs, sentence)


def sparse_kernels_generalization(
    radius: float, n_chosen: int, n_kernels: int, n: int, confidence: float = 2.0
) -> Bound:
    r"""Bound how much more greedily chosen kernels cost on new data than functions in a ball.

    It is :math:`196 (R + \sqrt d)^2 \sqrt{A \ln(m + 1) / N}` with probability :math:`1 - (m +
    1)^{1 - A}`, for :math:`A \ln(m + 1) \le N \le 2^{m+1}`.

    Parameters
    ----------
    radius : float
        The radius :math:`R` of the ball.
    n_chosen, n_kernels : int
        Kernels chosen, and to choose from, at least 3.
    n : int
        Training rows.
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
    theorem = "Jin, Yang and Mahdavi, Theorem 5"
    return Bound(value, "excess risk", theorem, inputs, sentence, power=-0.5)


def tensor_rate(gamma: float, step: float, delta: float = 0.5) -> Bound:
    r"""Bound the factor by which a gradient step lowers the tensor dual of squared losses.

    It is :math:`1 - \frac2\gamma \lambda (1 - \delta)` for a step :math:`\lambda`.

    Parameters
    ----------
    gamma : float
        What losses count.
    step : float
        The step that the line search accepted.
    delta : float, default=0.5
        The constant of the line search.

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
    value = max(0.0, 1.0 - 2.0 / gamma * step * (1.0 - delta))
    sentence = f"A step of {step:.3g} leaves at most {value:.3g} of what is above the minimum."
    inputs = {"gamma": float(gamma), "step": float(step), "delta": float(delta)}
    return Bound(value, "dual rate", "Salzo, Suykens and Rosasco, Theorem 2.3", inputs, sentence)
