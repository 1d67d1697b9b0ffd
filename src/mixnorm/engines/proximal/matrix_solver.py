"""The proximal engine for any norm with a proximal map, or a projection onto its balls.

Accelerated proximal steps minimise a model of the loss (see ``loss_model``) plus the norm. Each
costs a product with a Gram matrix and one proximal map. Where a Gram matrix would be too large, the
steps are taken on the data themselves (:eq:`accelerated-point`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mixnorm.engines.proximal.descent import least_squares_gap
from mixnorm.engines.proximal.loss_model import Model
from mixnorm.engines.proximal.problem import NormProblem, Point
from mixnorm.engines.proximal.stepper import Stepper, next_momentum
from mixnorm.norms import Norm, has_ability

# A value of the quadratic model above this means that rounding made its steps diverge.
_DIVERGED = 1e250
# Products by which the largest eigenvalue of the data is estimated, and the least length of a
# vector that is divided by. A poor estimate costs a few steps that are too long, which are then
# shortened.
_POWER_ITERATIONS, _LEAST_LENGTH = 20, 1e-30
# Factors of the steepness of the data's steps before each step, and after one that is too long. The
# first lets steps grow where the loss is flatter than its bound.
_EASING_OF_STEEPNESS, _GROWTH_OF_STEEPNESS = 0.9, 2.0


class Proximal:
    """The proximal map of ``alpha * norm``, or the projection onto a ball.

    ``norm`` replaces that of the problem: the same for some of its rows. The map of the trace norm
    needs the leading singular vectors; it starts from those of the last call.
    """

    def __init__(self, problem: NormProblem, norm: Norm | None = None) -> None:
        self.problem = problem if norm is None else replace(problem, norm=norm)
        self._basis: np.ndarray | None = None

    def __call__(self, weights: np.ndarray, step: float) -> np.ndarray:
        """Return the weights after the map for a gradient step of that length."""
        problem, norm = self.problem, self.problem.norm
        problem.effort.spent += problem.settings.prox_effort
        if problem.radius is not None:
            return np.asarray(norm.project(weights, problem.radius))
        amount = step * float(problem.alpha or 0.0)
        if not has_ability(norm, "prox_factors"):
            return np.asarray(norm.prox(weights, amount))
        # Only the vectors of the smaller side are kept: the others follow by one product.
        left, sizes, right = norm.prox_factors(weights, amount, self._basis)
        tall = weights.shape[0] >= weights.shape[1]
        self._basis = (right.T if tall else left) if len(sizes) else None
        return np.asarray((left * sizes) @ right)

    def model_gap(self, weights: np.ndarray, gradient: np.ndarray, value: float) -> float:
        """Return the duality gap of least squares (:eq:`model-gap`, :eq:`ball-gap`)."""
        problem = self.problem
        inner, dual = float(np.vdot(weights, gradient)), float(problem.norm.dual(gradient))
        # The dual point is the derivative of the model itself: what is left of the ball's gap is
        # that of Frank and Wolfe, whatever the value is.
        if problem.radius is not None:
            return inner + problem.radius * dual
        alpha = float(problem.alpha or 0.0)
        return least_squares_gap(value, inner, dual, alpha, problem.penalty(weights))


class MatrixSolver(Stepper):
    """The solver for any norm with a proximal map or a projection."""

    _eigenvalue = _wanted = 0.0
    _data_steps: DataSteps | None = None
    _proximal: Proximal | None = None

    @property
    def _model_age(self) -> int:
        return self.problem.settings.matrix_model_age

    def pose(self, problem: NormProblem) -> None:
        """Continue with another ``alpha``, from the present point."""
        super().pose(problem)
        # Both hold the problem, and with it the old ``alpha``.
        self._data_steps, self._proximal = None, None

    def step(self, gap: float, tol: float) -> None:
        """Do one iteration; ``gap`` is the present gap and ``tol`` the allowed one."""
        settings = self.problem.settings
        self._choose_rows()
        if not self._fits():
            if self._data_steps is None:
                self._data_steps = DataSteps(self.problem)
            self.point = self._data_steps.run(self.problem, self.point, settings.steps_per_gap)
        elif self.problem.quadratic:
            # The model is the loss: ``kappa`` is one, and one bounded step solves the problem.
            self._prepare(exact=True)
            self._wanted, self._kappa = settings.share_of_tol * tol, 1.0
            self.point = self._bounded_step(self.point) or self.point
        else:
            self._prepare(exact=False)
            self._wanted = max(settings.share_of_tol * tol, settings.share_of_gap * gap)
            self._proximal_steps(settings.models_per_iteration)
        self.refresh()

    def _choose_rows(self) -> None:
        """Choose the rows to work on: those that matter to a sum over rows, all for other norms."""
        norm, n_features = self.problem.norm, self.problem.design.n_features
        if not has_ability(norm, "row_exponent"):
            if len(self._rows) == 0:
                self._work_on(np.arange(n_features))
            return
        duals = np.asarray(norm.row_duals(self.gradient))
        active = np.any(self.point.weights != 0.0, axis=1)
        # Twice the rows in use, so that the set doubles at most and settles after a few rounds. The
        # others are those of the largest gradients; the gap says whether they were enough.
        limit = min(n_features, max(self.problem.settings.first_rows, 2 * int(np.sum(active))))
        wanted = np.argpartition(-np.where(active, np.inf, duals), limit - 1)[:limit]
        # A set that has all these rows stays, as another would cost a new Gram matrix.
        if not np.all(np.isin(wanted, self._rows)):
            self._work_on(np.union1d(wanted, np.flatnonzero(active)))
            self._proximal = None

    def _fits(self) -> bool:
        """Tell whether the Gram matrices of the rows are small enough to keep."""
        size, design = len(self._rows), self.problem.design
        # Exact models of outputs with their own sample weights cannot share a matrix.
        separate = not design.shared or (self.problem.quadratic and self.problem.weight.ndim == 2)
        factors = design.n_outputs if separate else 1
        settings = self.problem.settings
        return size <= settings.largest_model and factors * size**2 <= settings.largest_grams

    def _use_model(self, model: Model) -> None:
        self._eigenvalue = model.largest_eigenvalue()

    def _proximal_map(self) -> Proximal:
        if self._proximal is None:
            norm, whole = self.problem.norm, self.problem.design.n_features
            part = norm if len(self._rows) == whole else norm.restrict(self._rows)
            self._proximal = Proximal(self.problem, part)
        return self._proximal

    def _penalty(self, rows: np.ndarray) -> float:
        return self._proximal_map().problem.penalty(rows)

    def _minimise_model(self, start: np.ndarray, value: float, gradient: np.ndarray) -> np.ndarray:
        """Minimise the model by accelerated proximal steps of its own (:eq:`accelerated-point`)."""
        model, proximal, kappa = self._known_model, self._proximal_map(), self._kappa
        settings = self.problem.settings
        most = settings.exact_model_steps if self.problem.quadratic else settings.model_steps
        # With steps of one over the largest curvature the model never rises above its bound, so
        # that no line search is needed. A model without curvature has no such step.
        top = kappa * self._eigenvalue
        if not top > 0.0:
            return start
        scale, step = start.dtype.type(kappa), start.dtype.type(1.0 / top)
        here = ahead = start
        slope, momentum = gradient, 1.0
        before = value + proximal.problem.penalty(start)
        for count in range(1, most + 1):
            reached = proximal(ahead - step * slope, float(step))
            # The step points back against the last move: momentum has carried too far, and starts
            # anew (O'Donoghue and Candès, "Adaptive restart for accelerated gradient schemes",
            # 2015).
            if float(np.vdot(ahead - reached, reached - here)) > 0.0:
                momentum = 1.0
            following, push = next_momentum(momentum)
            ahead = reached + start.dtype.type(push) * (reached - here)
            here, momentum = reached, following
            slope = gradient + scale * model.product(ahead - start)
            if count % settings.steps_per_gap == 0:
                # The gradient at ``here``; ``slope`` is that of the point ahead.
                own = gradient + scale * model.product(here - start)
                modelled = value + 0.5 * float(np.vdot(here - start, gradient + own))
                if not abs(modelled) < _DIVERGED:
                    return start
                # The start of the model is where the loss is known: rising above it would be
                # undone.
                falls = modelled + proximal.problem.penalty(here) <= before
                if falls and proximal.model_gap(here, own, modelled) <= self._wanted:
                    break
        return here


class DataSteps:
    """Accelerated proximal gradient steps on the data, for problems too wide for a model.

    Columns are centred about their weighted means, so that the intercept moves by itself: steps of
    the weights and of the intercept do not change each other's curvature (:eq:`loss-model`). The
    curvature of every sample is taken to be the largest, the smoothness times its weight.
    """

    def __init__(self, problem: NormProblem) -> None:
        design, weight = problem.design, problem.weight
        shape = (len(weight), design.n_outputs)
        self._spread = np.asfortranarray(np.broadcast_to(weight.reshape(len(weight), -1), shape))
        totals = np.sum(self._spread, axis=0)
        self._totals = np.where(totals > 0.0, totals, 1.0)
        # Means are kept beside the data: centred sparse columns would be dense.
        self._means = design.gradient(self._spread) / self._totals * problem.fit_intercept
        self._steepness = float(problem.loss.smoothness) * self._largest_eigenvalue(problem)
        self._last: Point | None = None
        self._momentum = 1.0

    def _largest_eigenvalue(self, problem: NormProblem) -> float:
        """Estimate the largest eigenvalue of the weighted, centred Gram matrices from below.

        The method is power iteration. A fixed start makes fits repeatable.
        """
        vector = np.random.default_rng(0).standard_normal(self._means.shape)
        vector = vector.astype(problem.design.dtype)
        value = 0.0
        for _ in range(_POWER_ITERATIONS):
            vector = vector / max(float(np.sqrt(np.vdot(vector, vector))), _LEAST_LENGTH)
            scores = problem.design.scores(vector) - np.sum(self._means * vector, axis=0)
            theta = self._spread * scores
            vector = problem.design.gradient(theta) - self._means * np.sum(theta, axis=0)
            value = float(np.sqrt(np.vdot(vector, vector)))
        return value

    def run(self, problem: NormProblem, point: Point, count: int) -> Point:
        """Return the point that ``count`` steps lead to."""
        proximal = Proximal(problem)
        # Momentum goes on from the last call, although the intercept was optimised in between.
        before = point if self._last is None else self._last
        for _ in range(count):
            following, push = next_momentum(self._momentum)
            ahead = problem.beyond(point, before, push)
            reached = self._step(problem, proximal, ahead)
            # As on a model: a step back against the last move restarts the momentum.
            if float(np.vdot(ahead.weights - reached.weights, reached.weights - point.weights)) > 0:
                following = 1.0
            before, point, self._momentum = point, reached, following
        self._last = before
        return point

    def _step(self, problem: NormProblem, proximal: Proximal, point: Point) -> Point:
        """Return the point after one step, shortened until the loss stays below its bound.

        The bound is the tangent plus half the steepness times the squared step
        (:eq:`step-bound`). It is all that the rate of accelerated steps rests on.
        """
        bias = np.sum(point.residual, axis=0) * problem.fit_intercept
        gradient = problem.design.gradient(point.residual) - self._means * bias
        flat = float(problem.loss.smoothness) * self._totals
        # Near the solution the two sides differ by less than their rounding. Without the slack the
        # steps would become ever shorter.
        slack = 4.0 * float(np.finfo(problem.design.dtype).eps) * abs(point.value)
        self._steepness *= _EASING_OF_STEEPNESS
        while True:
            step = problem.design.dtype.type(1.0 / self._steepness)
            weights = proximal(point.weights - step * gradient, float(step))
            change = weights - point.weights
            shift = (-bias / flat).astype(problem.design.dtype)
            intercept = point.intercept + shift - np.sum(self._means * change, axis=0)
            scores = problem.design.scores(weights) + intercept
            moved = problem.at(weights, intercept, scores)
            model = point.value + float(np.vdot(gradient, change)) + float(bias @ shift)
            model += 0.5 * self._steepness * float(np.vdot(change, change))
            model += 0.5 * float(np.sum(flat * shift * shift))
            if moved.value <= model + slack:
                return moved
            self._steepness *= _GROWTH_OF_STEEPNESS
