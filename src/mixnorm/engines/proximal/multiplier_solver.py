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

# Enough to pass through all exponents of a double, and then through all bits of its fraction.
_INTERCEPT_DOUBLINGS, _INTERCEPT_HALVINGS = 1000, 200
# The rate grows up to this multiple of the first one; beyond it only rounding is left.
_LARGEST_RATE = 1e30
# Scores of the null model below this count as zero when the first rate is chosen.
_LEAST_SCALE = 1e-12
# A sample bends if it moves by this share of what a loss with the largest curvature would.
_LEAST_RESPONSE = 1e-4


class Smoothed:
    """The smooth loss around a dual point; ``rate`` times a row's weight is its curvature."""

    constant_curvature = False

    def __init__(self, loss: DualLoss, centre: np.ndarray, rate: float, weight: np.ndarray) -> None:
        self._loss, self._centre = loss, centre
        self.smoothness = float(rate)
        self.effort = float(getattr(loss, "effort", 1.0))
        self.is_classifier = bool(loss.is_classifier)
        spread = weight[:, None] if weight.ndim == 1 else weight
        # Samples of weight zero have a tiny step instead of none, because it is divided by.
        self._step = np.maximum(spread * centre.dtype.type(rate), np.finfo(centre.dtype).tiny)

    def value_and_residual(
        self, scores: np.ndarray, target: Any, weight: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Return the maximum (:eq:`smoothed-loss`), and its argument, which is the derivative."""
        best = self._find_maximiser(scores, target, weight)
        # In double precision: the sum and the conjugate cancel to a large part.
        value = float(np.sum(best * scores, dtype=np.float64))
        return value - self.conjugate(best, target, weight), best

    def _find_maximiser(self, scores: np.ndarray, target: Any, weight: np.ndarray) -> np.ndarray:
        """Return the proximal point that is the derivative in :eq:`smoothed-loss`."""
        moved = self._centre + self._step * scores
        found = self._loss.prox_conjugate(moved, self._step, target, weight)
        return np.asfortranarray(found)

    def curvature_at(
        self, scores: np.ndarray, residual: np.ndarray, target: Any, weight: np.ndarray
    ) -> np.ndarray:
        """Return the largest possible curvature, and zero for samples at a corner of the dual.

        A proximal map is constant where its value stays at a corner, and elsewhere moves at most as
        fast as its argument. A product with a random direction tells the two apart.
        """
        probe = np.random.default_rng(0).standard_normal(scores.shape)
        direction = np.asfortranarray(probe.astype(scores.dtype))
        moved = self.hessian_operator(scores, residual, target, weight)(direction)
        bent = np.abs(moved) > _LEAST_RESPONSE * self._step * np.abs(direction)
        # A joint loss couples the outputs of a sample, which then has one curvature for all.
        if self.is_classifier:
            bent = np.any(bent, axis=1, keepdims=True)
        return np.where(bent, self._step, 0.0).astype(scores.dtype)

    def hessian_operator(
        self, scores: np.ndarray, residual: np.ndarray, target: Any, weight: np.ndarray
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Return products with a generalised Hessian, as differences of derivatives.

        The derivative is a proximal map without a formula for its own derivative. It is piecewise
        smooth, and the difference is a product with an element of the generalised Hessian.
        """
        # The root of the rounding error balances the errors of cancellation and of curvature.
        small = float(np.sqrt(np.finfo(scores.dtype).eps))

        def product(direction: np.ndarray) -> np.ndarray:
            largest = float(np.max(np.abs(direction), initial=0.0))
            if not largest > 0.0:
                return np.zeros_like(direction)
            # Relative to the scores, or adding it to large scores would change nothing.
            part = scores.dtype.type(small * (1.0 + float(np.max(np.abs(scores)))) / largest)
            moved = self._find_maximiser(scores + part * direction, target, weight)
            return np.asarray((moved - residual) / part)

        return product

    def conjugate(self, theta: np.ndarray, target: Any, weight: np.ndarray) -> float:
        """Return the conjugate (:eq:`smoothed-conjugate`).

        It is that of the loss plus half the squared distance to the centre, over the steps.
        """
        apart = theta - self._centre
        distance = float(np.sum(apart * apart / self._step, dtype=np.float64))
        return float(self._loss.conjugate(theta, target, weight)) + 0.5 * distance

    def balance(self, theta: np.ndarray, target: Any, weight: np.ndarray) -> np.ndarray:
        """Return the balanced point of the loss itself."""
        # Smoothing leaves the domain of the conjugate as it is, and so what balancing must respect.
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
        # A kink is smoothed over about one over the rate, in units of the scores. The first rate
        # makes that the size of the scores themselves.
        scale = float(np.mean(np.abs(self.point.scores))) + problem.score_scale()
        self._rate = 1.0 / max(scale, _LEAST_SCALE)
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
        problem, settings = self.problem, self.problem.settings
        # Only if the smooth problem was solved is the smoothing to blame for a gap that did not
        # fall.
        if self._settled and gap > 0.5 * self._last_gap:
            self._rate = min(self._rate * settings.rate_growth, self._largest_rate)
        self._last_gap = gap
        smoothed = Smoothed(problem.loss, self._centre, self._rate, problem.weight)
        # What a problem remembers (its null model) is of its loss, and is not shared.
        inner = replace(problem, loss=smoothed, _memory={})
        point = self.point
        solver = self._build(inner, inner.at(point.weights, point.intercept, point.scores))
        wanted = settings.share_of_gap * max(gap, tol)
        self._settled = False
        for _ in range(settings.smooth_iterations):
            left = solver.gap()
            self._settled = left <= wanted
            if self._settled or problem.effort.exhausted:
                break
            solver.step(left, wanted)
        found = solver.point
        # The derivative of the smooth loss is its dual point: the step of the proximal point
        # method.
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
    """Return the intercepts where the derivatives of scalar losses change sign, and a dual point.

    Bisection ends between two neighbouring numbers: the derivative of an output is below zero at
    one and above zero at the other. The dual point is the mean of the two residuals, weighted so
    that it sums to zero.
    """

    def residual(intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        theta = problem.at(zero.weights, intercept, zero.scores + intercept).residual
        return theta, np.asarray(np.sum(theta, axis=0, dtype=np.float64))

    def beyond(sign: float) -> np.ndarray:
        """Return intercepts on one side of the change of sign."""
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
        # No number is between neighbours; halving further would loop on the same two.
        if np.all((middle == low) | (middle == high)):
            break
        below = residual(middle)[1] < 0.0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    (under, less), (over, more) = residual(low), residual(high)
    # A width of zero means that both sides have the same derivative: either residual will do.
    width = more - less
    part = np.where(width > 0.0, -less / np.where(width > 0.0, width, 1.0), 1.0)
    theta = under + part * (over - under)
    return high, np.asarray(problem.loss.balance(theta, problem.target, problem.weight))
