"""Bounds for learning with several kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mixnorm.bounds._bound import RATE, Bound


def kernel_learning(
    bank: Any, *, gamma: float, n: int | None = None, largest: float | None = None
) -> Bound:
    r"""Bound what choosing among kernels costs, for a margin.

    With :math:`M \ge 8` kernels whose values :math:`k(x, x)` are at most :math:`B` it is :math:`e
    \sqrt{B \ln M / (\gamma^2 n)}`: a hundred times as many kernels cost twice as much.

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
    if count < 8:
        raise ValueError(f"The theorem is for at least 8 kernels, and there are {count}.")
    value = math.e * math.sqrt(size * math.log(count) / (float(gamma) ** 2 * rows))
    sentence = (
        f"Learning which of {count} kernels to use adds at most {value:.3g} to the share of {rows} "
        f"rows within the margin {float(gamma):.3g}, on average."
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
    grams = bank.grams() if hasattr(bank, "grams") else bank
    if not hasattr(grams, "diagonals"):
        raise TypeError(
            f"bank={bank!r} has no kernels of rows; give a KernelStack, a bank that was fitted "
            "(KernelBank.fit(X)), or a number of kernels."
        )
    diagonals = grams.diagonals()
    rows = diagonals.shape[1] if n is None else int(n)
    return len(diagonals), rows, float(np.max(diagonals)) if largest is None else float(largest)


def local_rademacher(
    n: int, n_classes: int, *, q: float | None = None, radius: float = 1.0, delta: float = 0.05
) -> Bound:
    r"""Return the rate of the local Rademacher complexity of many classes, up to constants.

    It is :math:`\xi(K)^2 (\ln n)^3 / n` with :math:`\xi(K) = \sqrt e (4 \ln K)^{1 + 1/(2 \ln K)}`
    for :math:`q \ge 2 \ln K`, else :math:`(2q)^{1 + 1/q} K^{1/q}`.

    Parameters
    ----------
    n : int
        Training rows, more than 1.
    n_classes : int
        Classes, at least 2.
    q : float, optional
        The dual exponent over classes; that from which on the first form holds by default.
    radius, delta : float
        They are told, and change constants alone.

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
    logarithm = math.log(n_classes)
    q = 2.0 * logarithm if q is None else float(q)
    if not q > 0.0:
        raise ValueError(f"q={q!r} must be positive.")
    if q >= 2.0 * logarithm:
        xi = math.sqrt(math.e) * (4.0 * logarithm) ** (1.0 + 0.5 / logarithm)
    else:
        xi = (2.0 * q) ** (1.0 + 1.0 / q) * n_classes ** (1.0 / q)
    value = xi * xi * math.log(n) ** 3 / n
    sentence = (
        f"The rate for {n_classes} classes and {n} rows is {value:.3g}, up to constants that the "
        "paper leaves open: it orders, and bounds nothing by itself."
    )
    inputs = {"n": float(n), "classes": float(n_classes), "q": q, "xi": xi}
    inputs |= {"radius": float(radius), "delta": float(delta)}
    theorem = "Multi-class learning with local Rademacher complexity, Theorem 1"
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
