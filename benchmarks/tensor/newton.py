r"""A textbook Newton method on the same dual: damped steps in NumPy with warm starts.

It minimises :math:`\frac14 \alpha^\top V(\alpha) \alpha - y^\top \alpha + \frac1{2\gamma}
\|\alpha\|^2` for one :math:`\gamma` after another. The gradient is :math:`g = V \alpha - y + \alpha
/ \gamma`, the Hessian :math:`3 V + I / \gamma`, and the duality gap :math:`\frac\gamma2 \|g\|^2`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks.tensor.fista import Solved

Matrix = Callable[[np.ndarray], np.ndarray]

ARMIJO = 1e-4  # share of the predicted decrease that a step must reach
SHORTEST = 1e-10  # step length at which the line search gives up
MOST_STEPS = 200  # for one gamma


def apply_features(F: np.ndarray) -> Matrix:
    """Return the function that computes ``V(alpha)`` from features, one in each column."""
    return lambda alpha: np.asarray((F * (alpha @ F) ** 2) @ F.T)


def apply_tensor(K: np.ndarray) -> Matrix:
    """Return the function that computes ``V(alpha)`` from the kernel of pairs of rows."""
    return lambda alpha: (K @ np.outer(alpha, alpha).ravel()).reshape(len(alpha), len(alpha))


def run_newton(
    matrix: Matrix, y: np.ndarray, gammas: Sequence[float], tol: float
) -> Iterator[Solved]:
    """Yield the result for each ``gamma``; each starts from the previous solution."""

    def value(alpha: np.ndarray, V: np.ndarray, gamma: float) -> float:
        return float(0.25 * alpha @ V @ alpha - y @ alpha + 0.5 / gamma * alpha @ alpha)

    alpha = np.zeros(len(y))
    V = matrix(alpha)
    for gamma in gammas:
        evaluations = 1
        for _ in range(MOST_STEPS):
            scores = V @ alpha
            g = scores - y + alpha / gamma
            gap = 0.5 * gamma * float(g @ g)
            primal = 0.5 * gamma * float(np.sum((y - scores) ** 2)) + 0.75 * float(alpha @ scores)
            if gap <= tol * primal:
                break
            step = np.linalg.solve(3.0 * V + np.eye(len(y)) / gamma, -g)
            start, slope, t = value(alpha, V, gamma), float(g @ step), 1.0
            while t > SHORTEST:
                trial = alpha + t * step
                V, evaluations = matrix(trial), evaluations + 1
                if value(trial, V, gamma) <= start + ARMIJO * t * slope:
                    break
                t *= 0.5
            alpha = trial
        yield Solved(float(gamma), primal, gap, evaluations)
