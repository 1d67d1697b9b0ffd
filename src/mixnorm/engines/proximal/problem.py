"""The objective of the proximal engine: its value, its second derivatives, and its duality gap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from mixnorm.engines._core.line_search import backtrack
from mixnorm.engines.proximal.design import Design
from mixnorm.engines.proximal.settings import DEFAULT_SETTINGS, ProximalSettings

Found = TypeVar("Found")

# The shortest step of the intercept. Newton steps of a convex loss are rarely cut more than twice.
_SHORTEST_STEP = 1e-6
# Curvature below this share of the largest possible counts as none.
_FLAT_CURVATURE = 1e-6
# Eigenvalues of the intercept's Hessian below this share of the largest count as zero.
_RANK_TOLERANCE = 1e-10
# Share of the largest possible curvature that is added to a model. Samples that are flat at a point
# need not be flat a step away, and a model without their curvature would send steps too far.
_ADDED_CURVATURE = 1e-3
# A loss below this share of that without an intercept is a perfect fit but for rounding. Labels of
# one class only are fitted ever better by a growing intercept, which stops somewhere: hence more.
_PERFECT_FIT, _PERFECT_FIT_OF_LABELS = 1e-9, 1e-6


@dataclass
class Effort:
    """The work on a problem, counted in evaluations of the loss, and its limit.

    Iterations differ in cost by orders of magnitude, and seconds depend on the machine: neither
    would be a good limit. All copies of a problem share one object.
    """

    spent: float = 0.0
    limit: float = math.inf

    @property
    def exhausted(self) -> bool:
        """Whether the limit is reached."""
        return self.spent >= self.limit


@dataclass(frozen=True)
class Point:
    """Weights and intercept, their scores, and the loss and its derivative at these."""

    weights: np.ndarray
    intercept: np.ndarray
    scores: np.ndarray
    value: float
    residual: np.ndarray


class Solver:
    """A point that steps improve, with its dual point ``theta`` and the gradient ``Xᵀ theta``."""

    problem: NormProblem
    point: Point
    theta: np.ndarray
    gradient: np.ndarray

    def pose(self, problem: NormProblem) -> None:
        """Continue with another ``alpha``, from the present point."""
        self.problem = problem

    def gap(self) -> float:
        """Return the duality gap at the point."""
        return self.problem.gap(self.point, self.theta, self.gradient)

    def step(self, gap: float, tol: float) -> None:
        """Do one iteration; ``gap`` is the present gap and ``tol`` the allowed one."""
        raise NotImplementedError


@dataclass(frozen=True)
class NormProblem:
    """A loss of scores under a norm: ``F(XW + b) + alpha * norm(W)``, or ``norm(W) <= radius``.

    Exactly one of ``alpha`` and ``radius`` is given. ``weight`` has shape ``(n_samples,)`` or one
    column per output. ``settings`` are handed down to every part of the engine that works on the
    problem.
    """

    design: Design
    loss: Any  # a DualLoss, or a smooth loss in its place
    target: Any
    weight: np.ndarray
    norm: Any
    fit_intercept: bool = True
    alpha: float | None = None
    radius: float | None = None
    settings: ProximalSettings = DEFAULT_SETTINGS
    effort: Effort = field(default_factory=Effort, compare=False)
    # Shared by ``replace``: what is in it must depend on neither ``alpha`` nor ``radius``.
    _memory: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def quadratic(self) -> bool:
        """Whether the loss has the same curvature everywhere."""
        return bool(getattr(self.loss, "constant_curvature", False))

    @property
    def effort_of_loss(self) -> float:
        """The effort of one evaluation: 1, or the number of losses of a mixture."""
        return float(getattr(self.loss, "effort", 1.0))

    def at(self, weights: np.ndarray, intercept: np.ndarray, scores: np.ndarray) -> Point:
        """Return the point with these weights and scores."""
        self.effort.spent += self.effort_of_loss
        value, residual = self.loss.value_and_residual(scores, self.target, self.weight)
        keep = self.design.keep_rows
        return Point(weights, intercept, keep(scores), value, keep(residual))

    def beyond(self, point: Point, before: Point, push: float) -> Point:
        """Return the point that momentum leads to (:eq:`accelerated-point`).

        It lies ``push`` times as far beyond ``point`` as ``before`` lies behind it.
        """
        if push == 0.0:
            return point
        # Scores are linear in the weights and need no product with the data. The cast keeps arrays
        # in single precision, which a NumPy scalar in double precision would promote.
        part = point.scores.dtype.type(push)
        return self.at(
            point.weights + part * (point.weights - before.weights),
            point.intercept + part * (point.intercept - before.intercept),
            point.scores + part * (point.scores - before.scores),
        )

    def start(self, weights: np.ndarray, intercept: np.ndarray) -> Point:
        """Return the point with these weights, its scores computed from them."""
        scores = self.design.scores(weights)
        scores += intercept  # in place: the product is a new array
        return self.at(weights, intercept, scores)

    def _remember(self, name: str, compute: Callable[[], Found]) -> Found:
        """Compute a value once; problems that differ in their penalty alone share it."""
        if name not in self._memory:
            self._memory[name] = compute()
        found: Found = self._memory[name]
        return found

    def null(self) -> Point:
        """Return the point with no weights and the best intercept."""
        return self._remember("null", self._find_null)[0]

    def null_dual(self) -> np.ndarray:
        """Return the dual point that goes with no weights."""
        return self._remember("null", self._find_null)[1]

    def score_scale(self) -> float:
        """Return the size of scores that matters to the loss: about the error of the null model.

        A loss with slopes up to its Lipschitz constant falls from the null model to zero over about
        the null model's loss, divided by that constant.
        """
        null = self.null()
        steepness = float(self.loss.lipschitz)
        if not math.isfinite(steepness) or steepness <= 0.0:
            return 1.0
        outputs = 1 if self.loss.is_classifier else self.design.n_outputs
        return max(null.value / (steepness * outputs), 1e-12)

    def _find_null(self) -> tuple[Point, np.ndarray]:
        shape = (self.design.n_features, self.design.n_outputs)
        zero = np.zeros(shape, dtype=self.design.dtype)
        point = self.start(zero, np.zeros(shape[1], dtype=self.design.dtype))
        if not self.fit_intercept:
            return point, point.residual
        if math.isfinite(self.loss.smoothness):
            point = self.best_intercept(point)
            return point, self.dual_point(point)
        # Imported here, as that module needs the classes of this one.
        from mixnorm.engines.proximal.multiplier_solver import best_intercept

        return best_intercept(self, point)

    def penalty(self, weights: np.ndarray) -> float:
        """Return ``alpha * norm(W)``; zero where the norm is held in a ball."""
        return 0.0 if self.alpha is None else self.alpha * float(self.norm.value(weights))

    def best_intercept(self, point: Point, small: float | None = None) -> Point:
        """Return the point with its intercept optimised by damped Newton steps.

        They end when the derivative in the intercept is at most ``small``, or is only rounding.
        """
        # The rounding error of a sum of so many residuals.
        best, size = point, float(np.max(np.abs(point.residual), initial=0.0))
        least = 4.0 * float(np.finfo(self.design.dtype).eps) * size * self.design.n_samples
        small = least if small is None else max(small, least)
        for _ in range(self.settings.intercept_steps):
            gradient = np.asarray(np.sum(best.residual, axis=0, dtype=np.float64))
            if np.max(np.abs(gradient)) <= small:
                break
            step = -self._solve_intercept(best, gradient)
            moved = self._line(best, step.astype(self.design.dtype), float(gradient @ step))
            if moved is None:
                break
            best = moved
        return best

    def _solve_intercept(self, point: Point, gradient: np.ndarray) -> np.ndarray:
        """Return the Newton step of the intercept, to be subtracted."""
        hessian = SecondOrder(self, point).intercept_hessian()
        steepest = float(self.loss.smoothness)
        # Where all samples are flat (on the linear part of Huber's loss, say) there is no Newton
        # step. One over the largest possible curvature is a step that surely lowers the loss.
        least = _FLAT_CURVATURE * steepest
        if hessian.ndim == 1:
            return np.asarray(gradient / np.where(hessian > least, hessian, steepest))
        if float(np.trace(hessian)) <= least:
            return np.asarray(gradient / steepest)
        # Least squares, because the Hessian of a soft-max is singular: constants change nothing.
        return np.asarray(np.linalg.lstsq(hessian, gradient, rcond=_RANK_TOLERANCE)[0])

    def _line(self, point: Point, step: np.ndarray, slope: float) -> Point | None:
        """Halve a step of the intercept until the loss falls.

        A step that promises less than rounding is tried once, at its whole length.
        """

        def trial(length: float) -> Point | None:
            scores = point.scores + length * step
            moved = self.at(point.weights, point.intercept + length * step, scores)
            enough = point.value + self.settings.armijo * length * slope
            return moved if moved.value <= enough else None

        rounding = 2.0 * float(np.finfo(self.design.dtype).eps) * abs(point.value)
        return backtrack(trial, least=_SHORTEST_STEP if abs(slope) > rounding else 0.5)[0]

    def dual_point(self, point: Point) -> np.ndarray:
        """Return the residual; with an intercept, moved until it sums to zero in every output.

        Only such a point bounds the objective for every intercept (:eq:`lower-bound`).
        """
        if not self.fit_intercept:
            return point.residual
        found = np.asarray(self.loss.balance(point.residual, self.target, self.weight))
        return self.design.keep_rows(found)

    def objective(self, point: Point) -> float:
        """Return the objective."""
        return point.value + self.penalty(point.weights)

    def bound(self, theta: np.ndarray, gradient: np.ndarray) -> float:
        """Return the lower bound of the objective (:eq:`lower-bound`) that a dual point gives.

        ``gradient`` is ``Xᵀ theta``. The bound is NaN where the numbers overflow.
        """
        dual_norm = float(self.norm.dual(gradient))
        # Zero is a dual point too, and its bound holds for every penalty. It is the better one far
        # from the solution, and does not depend on the point.
        least = -self._remember("zero", lambda: self._conjugate(np.zeros_like(theta)))
        if self.radius is not None:
            found = -self._conjugate(theta) - self.radius * dual_norm
        else:
            alpha = float(self.alpha or 0.0)
            scale = 1.0 if dual_norm <= alpha else alpha / dual_norm
            # Scaling keeps the point in the domain, which is convex and contains zero.
            found = -self._conjugate(theta if scale == 1.0 else theta * theta.dtype.type(scale))
        # ``fmax``, unlike ``max``, ignores a NaN among its arguments.
        return float(np.fmax(found, least))

    def _conjugate(self, theta: np.ndarray) -> float:
        return float(self.loss.conjugate(theta, self.target, self.weight))

    def gap(self, point: Point, theta: np.ndarray, gradient: np.ndarray) -> float:
        """Return the duality gap (:eq:`penalty-gap`, :eq:`ball-gap`) of a point and a dual point.

        ``gradient`` is ``Xᵀ theta``.
        """
        gap = self.objective(point) - self.bound(theta, gradient)
        # NaN would compare as progress to nothing; an infinite gap is simply a bad one.
        return math.inf if math.isnan(gap) else max(0.0, gap)


class SecondOrder:
    """Second derivatives of a loss in the scores, at one point."""

    def __init__(self, problem: NormProblem, point: Point) -> None:
        self._problem, self._point, self._loss = problem, point, problem.loss

    def diagonal(self) -> np.ndarray:
        """Return a bound of the Hessian that is diagonal in the outputs.

        Its shape is ``(n_samples, n_outputs)`` or ``(n_samples, 1)``; it is ``c`` in
        :eq:`loss-model`.
        """
        loss, point, problem = self._loss, self._point, self._problem
        weight = problem.weight
        bent = getattr(loss, "curvature_at", None)
        if bent is not None:
            found = bent(point.scores, point.residual, problem.target, weight)
        else:
            found = np.asarray(loss.curvature(point.residual, problem.target, weight))
        if loss.is_classifier:
            # By Gershgorin's theorem: rows of diag p - p p' sum to zero, so that the entries off
            # the diagonal add up to the one on it. No eigenvalue is above twice the largest of
            # these.
            found = 2.0 * np.max(found, axis=1, keepdims=True)
        if not problem.quadratic:
            spread = weight[:, None] if weight.ndim == 1 else weight
            added = _ADDED_CURVATURE * float(loss.smoothness)
            found = np.maximum(found, 0.0) + added * spread
        return np.asarray(found, dtype=point.scores.dtype)

    def product(self) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function that multiplies a direction in the scores by the Hessian."""
        loss, point, problem = self._loss, self._point, self._problem
        operator = getattr(loss, "hessian_operator", None)
        if operator is not None:
            multiply = operator(point.scores, point.residual, problem.target, problem.weight)
        else:
            curvature = np.asarray(loss.curvature(point.residual, problem.target, problem.weight))
            multiply = partial(np.multiply, curvature)

        def call(direction: np.ndarray) -> np.ndarray:
            # A product passes over all scores once, as an evaluation does.
            problem.effort.spent += problem.effort_of_loss
            return np.asarray(multiply(direction))

        return call

    def outputs(self, totals: np.ndarray) -> np.ndarray | None:
        """Return the mean Hessian of a joint loss, divided by the total curvature.

        None for scalar losses, and where nothing bends.
        """
        if not self._loss.is_classifier or len(totals) != 1 or not totals[0] > 0.0:
            return None
        return self.intercept_hessian() / float(totals[0])

    def intercept_hessian(self) -> np.ndarray:
        """Return the Hessian in the intercept: a matrix, or its diagonal for scalar losses."""
        loss, point = self._loss, self._point
        n_samples, n_outputs = point.scores.shape
        # Sums over many samples are in double precision, as their difference from zero matters.
        if not loss.is_classifier:
            ones = np.ones((n_samples, n_outputs), dtype=point.scores.dtype, order="F")
            return np.asarray(np.sum(self.product()(ones), axis=0, dtype=np.float64))
        of_column = getattr(loss, "column_hessian", None)
        if of_column is not None:
            ones = np.ones(n_samples, dtype=point.scores.dtype)
            target, weight = self._problem.target, self._problem.weight
            return np.asarray(of_column(ones, point.residual, target, weight), dtype=np.float64)
        product = self.product()
        hessian = np.empty((n_outputs, n_outputs))
        for output in range(n_outputs):
            direction = np.zeros((n_samples, n_outputs), dtype=point.scores.dtype, order="F")
            direction[:, output] = 1.0
            hessian[output] = np.sum(product(direction), axis=0, dtype=np.float64)
        # Products by differences (smoothed losses) are symmetric up to their error only.
        return 0.5 * (hessian + hessian.T)


def relative_size(problem: NormProblem) -> float:
    """Return the objective with no weights, by which gaps are divided.

    It is replaced by the loss without an intercept, or by 1, if it is zero up to rounding.
    """
    return problem._remember("size", lambda: _size(problem))


def _size(problem: NormProblem) -> float:
    value = problem.null().value
    if math.isfinite(value) and value > 0.0:
        weights = np.zeros_like(problem.null().weights)
        start = problem.start(weights, np.zeros_like(problem.null().intercept)).value
        perfect = _PERFECT_FIT_OF_LABELS if problem.loss.is_classifier else _PERFECT_FIT
        if value > perfect * start:
            return value
        return start if math.isfinite(start) and start > 0.0 else 1.0
    return 1.0
