"""Losses with kinks: a sequence of smooth problems, each centred at the dual point of the last.

The loss ``F`` is replaced by ``max_t <t, z> - F*(t) - |t - c|^2 / (2 step)`` (:eq:`smoothed-loss`).
That is smooth, and below ``F`` by no more than the last term, which is zero when the centre ``c``
is the dual solution. Each problem moves the centre to the dual point it finds (the proximal method
of multipliers), so that the smoothing need not become fine. The gap is that of the loss itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mixnorm.engines.proximal.problem import NormProblem, Point, Solver
from mixnorm.losses import DualLoss

_SMOOTH_ITERATIONS = 100  # on one smooth problem, at most
_INTERCEPT_DOUBLINGS, _INTERCEPT_HALVINGS = 1000, 200  # at most
_RATE_GROWTH = 4.0  # factor of the rate where the centre moves too slowly
_LARGEST_RATE = 1e30  # times the first rate; beyond it only rounding is left


class Smoothed:
    """The smooth loss around a dual point; ``rate`` times a row's weight is its curvature."""

    constant_curvature = False

    def __init__(self, loss: DualLoss, centre: np.ndarray, rate: float, weight: np.ndarray) -> None:
        self._loss, self._centre = loss, centre
        self.smoothness = float(rate)
        self.effort = float(getattr(loss, "effort", 1.0))
        self.is_classifier = bool(loss.is_classifier)
        spread = weight[:, None] if weight.ndim == 1 else weight
        self._step = np.maximum(spread * centre.dtype.type(rate), np.finfo(centre.dtype).tiny)

    def value_and_residual(
        self, scores: np.ndarray, target: Any, weight: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Return the maximum, and the point that attains it as the derivative."""
        best = self._find_maximiser(scores, target, weight)
        value = float(np.sum(best * scores, dtype=np.float64))
        return value - self.conjugate(best, target, weight), best

    def _find_maximiser(self, scores: np.ndarray, target: Any, weight: np.ndarray) -> np.ndarray:
        moved = self._centre + self._step * scores
        found = self._loss.prox_conjugate(moved, self._step, target, weight)
        return np.asfortranarray(found)

    def curvature_at(
        self, scores: np.ndarray, residual: np.ndarray, target: Any, weight: np.ndarray
    ) -> np.ndarray:
        """Return the largest possible curvature, and zero for rows at a corner of the dual."""
        probe = np.random.default_rng(0).standard_normal(scores.shape)
        direction = np.asfortranarray(probe.astype(scores.dtype))
        moved = self.hessian_operator(scores, residual, target, weight)(direction)
        bent = np.abs(moved) > 1e-4 * self._step * np.abs(direction)
        if self.is_classifier:
            bent = np.any(bent, axis=1, keepdims=True)
        return np.where(bent, self._step, 0.0).astype(scores.dtype)

    def hessian_operator(
        self, scores: np.ndarray, residual: np.ndarray, target: Any, weight: np.ndarray
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Return products with a generalised Hessian, as differences of derivatives."""
        small = float(np.sqrt(np.finfo(scores.dtype).eps))

        def product(direction: np.ndarray) -> np.ndarray:
            largest = float(np.max(np.abs(direction), initial=0.0))
            if not largest > 0.0:
                return np.zeros_like(direction)
            part = scores.dtype.type(small * (1.0 + float(np.max(np.abs(scores)))) / largest)
            moved = self._find_maximiser(scores + part * direction, target, weight)
            return np.asarray((moved - residual) / part)

        return product

    def conjugate(self, theta: np.ndarray, target: Any, weight: np.ndarray) -> float:
        """Return the conjugate: that of the loss and the squared distance to the centre."""
        apart = theta - self._centre
        distance = float(np.sum(apart * apart / self._step, dtype=np.float64))
        return float(self._loss.conjugate(theta, target, weight)) + 0.5 * distance

    def balance(self, theta: np.ndarray, target: Any, weight: np.ndarray) -> np.ndarray:
        """Return the balanced point of the loss itself."""
        return np.asarray(self._loss.balance(theta, target, weight))


class MultiplierSolver(Solver):
    """The solver for a loss with kinks, by way of a solver for smooth losses."""

    def __init__(
        self,
        problem: NormProblem,
        build: Callable[[NormProblem, Point | None], Solver],
        start: Point | None = None,
    ) -> None:
        self.problem = problem
        self._build = build
        self.point = problem.null() if start is None else start
        self._centre = problem.null_dual()
        scale = float(np.mean(np.abs(self.point.scores))) + problem.score_scale()
        self._rate = 1.0 / max(scale, 1e-12)
        self._largest_rate = _LARGEST_RATE * self._rate
        self._last_gap, self._settled = np.inf, False
        self.theta = self._centre
        self.gradient = problem.design.gradient(self.theta)

    def pose(self, problem: NormProblem) -> None:
        """Continue with another ``alpha``, from the present point."""
        super().pose(problem)
        self._last_gap, self._settled = np.inf, False

    def step(self, gap: float, tol: float) -> None:
        """Solve one smooth problem and move the centre."""
        if self._settled and gap > 0.5 * self._last_gap:
            self._rate = min(self._rate * _RATE_GROWTH, self._largest_rate)
        self._last_gap = gap
        problem = self.problem
        smoothed = Smoothed(problem.loss, self._centre, self._rate, problem.weight)
        inner = replace(problem, loss=smoothed, _memory={})
        point = self.point
        solver = self._build(inner, inner.at(point.weights, point.intercept, point.scores))
        wanted = max(0.1 * gap, 0.1 * tol)
        self._settled = False
        for _ in range(_SMOOTH_ITERATIONS):
            left = solver.gap()
            self._settled = left <= wanted
            if self._settled or problem.effort.exhausted:
                break
            solver.step(left, wanted)
        found = solver.point
        self._centre = found.residual
        self.point = problem.at(found.weights, found.intercept, found.scores)
        self.theta, self.gradient = solver.theta, solver.gradient


def best_intercept(problem: NormProblem, zero: Point) -> tuple[Point, np.ndarray]:
    """Return the best point without weights for a loss with kinks, and the dual point there."""
    if problem.loss.is_classifier:
        intercept, theta = problem.loss.best_constant(problem.target, problem.weight)
    else:
        intercept, theta = _bisect_intercepts(problem, zero)
    intercept = np.asarray(intercept, dtype=problem.design.dtype)
    theta = np.asfortranarray(theta, dtype=problem.design.dtype)
    return problem.start(zero.weights, intercept), theta


def _bisect_intercepts(problem: NormProblem, zero: Point) -> tuple[np.ndarray, np.ndarray]:
    """Return the intercepts where the derivatives of scalar losses change sign.

    Bisection ends between two neighbouring numbers, where the derivative of an output is below and
    above zero. The mean of the two residuals that sums to zero is then its dual point.
    """

    def residual(intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        theta = problem.at(zero.weights, intercept, zero.scores + intercept).residual
        return theta, np.asarray(np.sum(theta, axis=0, dtype=np.float64))

    def beyond(sign: float) -> np.ndarray:
        end = np.full(problem.design.n_outputs, sign)
        for _ in range(_INTERCEPT_DOUBLINGS):
            short = sign * residual(end)[1] < 0.0
            if not np.any(short):
                break
            end = np.where(short, 2.0 * end, end)
        return end

    low, high = beyond(-1.0), beyond(1.0)
    for _ in range(_INTERCEPT_HALVINGS):
        middle = 0.5 * (low + high)
        if np.all((middle == low) | (middle == high)):
            break
        below = residual(middle)[1] < 0.0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    (under, less), (over, more) = residual(low), residual(high)
    width = more - less
    part = np.where(width > 0.0, -less / np.where(width > 0.0, width, 1.0), 1.0)
    theta = under + part * (over - under)
    return high, np.asarray(problem.loss.balance(theta, problem.target, problem.weight))
