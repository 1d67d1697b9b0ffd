"""Objective and duality gap of any coefficients, for ``benchmarks.matrix``.

One implementation in NumPy, independent of the package, measures every method alike. The objective
is the mean loss (summed over outputs) plus ``alpha`` times the norm; ``W`` has one row per feature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Problem:
    """One problem: arrays, loss, norm, requested penalties and requested relative gap."""

    X: np.ndarray
    target: np.ndarray
    loss: str  # "squared" (target of shape (n, k)) or "multinomial" (labels)
    norm: str  # "l2,1", "linf,1" or "trace"
    alphas: np.ndarray
    tol: float
    intercept: bool

    @property
    def outputs(self) -> int:
        """The number of tasks or classes."""
        return self.target.shape[1] if self.loss == "squared" else int(self.target.max()) + 1

    @property
    def encoded(self) -> np.ndarray:
        """The targets with one column per output."""
        return self.target if self.loss == "squared" else np.eye(self.outputs)[self.target]


@dataclass(frozen=True)
class Value:
    """Objective and gap at one point; ``relative`` is the gap over the objective at 0."""

    objective: float
    gap: float
    relative: float


def compute_norm(W: np.ndarray, name: str) -> float:
    """Return the value of a norm."""
    if name == "trace":
        return float(np.linalg.svd(W, compute_uv=False).sum())
    return float(np.linalg.norm(W, ord={"l2,1": 2, "linf,1": np.inf}[name], axis=1).sum())


def compute_dual_norm(V: np.ndarray, name: str) -> float:
    """Return the value of the dual norm."""
    if name == "trace":
        return float(np.linalg.norm(V, ord=2))
    return float(np.linalg.norm(V, ord={"l2,1": 2, "linf,1": 1}[name], axis=1).max())


def compute_alpha_max(problem: Problem) -> float:
    """Return the smallest penalty at which the solution is zero."""
    residual = _compute_at_zero(problem)
    return compute_dual_norm(problem.X.T @ residual, problem.norm)


def compute_value(problem: Problem, W: np.ndarray, alpha: float) -> Value:
    """Return objective and gap of ``W`` with its best intercept."""
    scores = problem.X @ W
    loss, residual = _compute_loss(problem, scores)
    largest = compute_dual_norm(problem.X.T @ residual, problem.norm)
    scale = min(1.0, alpha / largest) if largest > 0 else 1.0
    objective = loss + alpha * compute_norm(W, problem.norm)
    gap = objective + _compute_conjugate(problem, scale * residual)
    start = _compute_loss(problem, np.zeros_like(scores))[0]
    return Value(objective, gap, gap / start)


def _compute_at_zero(problem: Problem) -> np.ndarray:
    return _compute_loss(problem, np.zeros((problem.X.shape[0], problem.outputs)))[1]


def _compute_loss(problem: Problem, scores: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the loss with the best intercept, and its derivative with respect to scores."""
    count = len(scores)
    if problem.loss == "squared":
        residual = scores - problem.target
        if problem.intercept:
            residual = residual - residual.mean(axis=0)
        return float(np.sum(residual**2)) / (2 * count), residual / count
    encoded = problem.encoded
    shift = _find_class_shift(scores, encoded) if problem.intercept else 0.0
    proba, logs = _compute_softmax(scores + shift)
    return -float(np.sum(encoded * logs)) / count, (proba - encoded) / count


def _compute_softmax(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    logs = scores - scores.max(axis=1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    return np.exp(logs), logs


def _find_class_shift(scores: np.ndarray, encoded: np.ndarray, steps: int = 100) -> np.ndarray:
    """Return the best intercepts of the multinomial loss, by damped Newton steps."""
    shift = np.zeros(encoded.shape[1])
    count, share = len(scores), encoded.mean(axis=0)
    proba, logs = _compute_softmax(scores)
    loss = -float(np.sum(encoded * logs)) / count
    for _ in range(steps):
        gradient = proba.mean(axis=0) - share
        if np.abs(gradient).max() < 1e-14:
            break
        hessian = np.diag(proba.mean(axis=0)) - proba.T @ proba / count
        # The Hessian is singular: a constant shift of all scores changes nothing.
        step = np.linalg.lstsq(hessian, gradient, rcond=1e-12)[0]
        rate = 1.0
        while rate > 1e-8:
            proba, logs = _compute_softmax(scores + shift - rate * step)
            found = -float(np.sum(encoded * logs)) / count
            if found <= loss + 1e-15:
                break
            rate /= 2
        shift, loss = shift - rate * step, found
    return shift


def _compute_conjugate(problem: Problem, theta: np.ndarray) -> float:
    """Return the conjugate of the mean loss at a dual point."""
    count = len(theta)
    if problem.loss == "squared":
        return count / 2 * float(np.sum(theta**2)) + float(np.sum(theta * problem.target))
    proba = np.maximum(count * theta + problem.encoded, 0.0)
    logs = np.log(np.where(proba > 0, proba, 1.0))
    return float(np.sum(proba * logs)) / count
