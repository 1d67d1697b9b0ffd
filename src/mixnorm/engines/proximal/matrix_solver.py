"""The proximal engine for any norm with a proximal map, or a projection onto its balls.

Accelerated proximal steps minimise a model of the loss (see ``loss_model``) plus the norm. Each
costs a product with a Gram matrix and one proximal map. Where a Gram matrix would be too large, the
steps are taken on the data themselves.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mixnorm.engines.proximal.descent import least_squares_gap
from mixnorm.engines.proximal.loss_model import Model
from mixnorm.engines.proximal.problem import NormProblem, Point
from mixnorm.engines.proximal.stepper import Stepper, next_momentum
from mixnorm.norms import Norm, has_ability

_LARGEST_MODEL = 4096  # features
_LARGEST_GRAMS = 4e7  # entries of all Gram matrices together
_FEWEST_ROWS = 64  # to work on, where there are as many
_MODEL_STEPS, _EXACT_MODEL_STEPS = 200, 2000  # accelerated steps on a model, at most
_STEPS_PER_GAP = 10  # accelerated steps between looks at the gap
_MODEL_SHARE = 0.1  # part of the gap to which a model is minimised
_MODELS_PER_ITERATION = 3  # models minimised in an iteration
# A value of the quadratic model above this means that rounding made its steps diverge.
_DIVERGED = 1e250
_EFFORT_OF_PROX = 0.4  # effort of a proximal map; that of evaluating the loss is 1


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
        problem.effort.spent += _EFFORT_OF_PROX
        if problem.radius is not None:
            return np.asarray(norm.project(weights, problem.radius))
        amount = step * float(problem.alpha or 0.0)
        if not has_ability(norm, "prox_factors"):
            return np.asarray(norm.prox(weights, amount))
        left, sizes, right = norm.prox_factors(weights, amount, self._basis)
        tall = weights.shape[0] >= weights.shape[1]
        self._basis = (right.T if tall else left) if len(sizes) else None
        return np.asarray((left * sizes) @ right)

    def model_gap(self, weights: np.ndarray, gradient: np.ndarray, value: float) -> float:
        """Return the duality gap of least squares with this gradient and value."""
        problem = self.problem
        inner, dual = float(np.vdot(weights, gradient)), float(problem.norm.dual(gradient))
        if problem.radius is not None:
            return inner + problem.radius * dual
        alpha = float(problem.alpha or 0.0)
        return least_squares_gap(value, inner, dual, alpha, problem.penalty(weights))


class MatrixSolver(Stepper):
    """The solver for any norm with a proximal map or a projection."""

    model_age = 6

    _eigenvalue = _wanted = 0.0
    _data_steps: DataSteps | None = None
    _proximal: Proximal | None = None

    def pose(self, problem: NormProblem) -> None:
        """Continue with another ``alpha``, from the present point."""
        super().pose(problem)
        self._data_steps, self._proximal = None, None

    def step(self, gap: float, tol: float) -> None:
        """Do one iteration; ``gap`` is the present gap and ``tol`` the allowed one."""
        self._choose_rows()
        if not self._fits():
            if self._data_steps is None:
                self._data_steps = DataSteps(self.problem)
            self.point = self._data_steps.run(self.problem, self.point, _STEPS_PER_GAP)
        elif self.problem.quadratic:
            self._prepare(exact=True)
            self._wanted, self._kappa = 0.3 * tol, 1.0
            self.point = self._bounded_step(self.point) or self.point
        else:
            self._prepare(exact=False)
            self._wanted = max(0.3 * tol, _MODEL_SHARE * gap)
            self._proximal_steps(_MODELS_PER_ITERATION)
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
        limit = min(n_features, max(_FEWEST_ROWS, 2 * int(np.sum(active))))
        wanted = np.argpartition(-np.where(active, np.inf, duals), limit - 1)[:limit]
        if not np.all(np.isin(wanted, self._rows)):
            self._work_on(np.union1d(wanted, np.flatnonzero(active)))
            self._proximal = None

    def _fits(self) -> bool:
        """Tell whether the Gram matrices of the rows are small enough to keep."""
        size, design = len(self._rows), self.problem.design
        separate = not design.shared or (self.problem.quadratic and self.problem.weight.ndim == 2)
        factors = design.n_outputs if separate else 1
        return size <= _LARGEST_MODEL and factors * size**2 <= _LARGEST_GRAMS

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
        """Minimise the model by accelerated proximal steps of its own."""
        model, proximal, kappa = self._known_model, self._proximal_map(), self._kappa
        top = kappa * self._eigenvalue
        if not top > 0.0:
            return start
        scale, step = start.dtype.type(kappa), start.dtype.type(1.0 / top)
        here = ahead = start
        slope, momentum = gradient, 1.0
        before = value + proximal.problem.penalty(start)
        for count in range(1, (_EXACT_MODEL_STEPS if self.problem.quadratic else _MODEL_STEPS) + 1):
            reached = proximal(ahead - step * slope, float(step))
            if float(np.vdot(ahead - reached, reached - here)) > 0.0:
                momentum = 1.0  # it swings: start the momentum anew
            following, push = next_momentum(momentum)
            ahead = reached + start.dtype.type(push) * (reached - here)
            here, momentum = reached, following
            slope = gradient + scale * model.product(ahead - start)
            if count % _STEPS_PER_GAP == 0:
                own = gradient + scale * model.product(here - start)
                modelled = value + 0.5 * float(np.vdot(here - start, gradient + own))
                if not abs(modelled) < _DIVERGED:
                    return start
                falls = modelled + proximal.problem.penalty(here) <= before
                if falls and proximal.model_gap(here, own, modelled) <= self._wanted:
                    break
        return here


class DataSteps:
    """Accelerated proximal gradient steps on the data, for problems too wide for a model.

    Columns are centred about their weighted means, so that the intercept moves by itself.
    """

    def __init__(self, problem: NormProblem) -> None:
        design, weight = problem.design, problem.weight
        shape = (len(weight), design.n_outputs)
        self._spread = np.asfortranarray(np.broadcast_to(weight.reshape(len(weight), -1), shape))
        totals = np.sum(self._spread, axis=0)
        self._totals = np.where(totals > 0.0, totals, 1.0)
        self._means = design.gradient(self._spread) / self._totals * problem.fit_intercept
        self._steepness = float(problem.loss.smoothness) * self._largest_eigenvalue(problem)
        self._last: Point | None = None
        self._momentum = 1.0

    def _largest_eigenvalue(self, problem: NormProblem) -> float:
        """Estimate the largest eigenvalue of the weighted, centred Gram matrices."""
        vector = np.random.default_rng(0).standard_normal(self._means.shape)
        vector = vector.astype(problem.design.dtype)
        value = 0.0
        for _ in range(20):
            vector = vector / max(float(np.sqrt(np.vdot(vector, vector))), 1e-30)
            scores = problem.design.scores(vector) - np.sum(self._means * vector, axis=0)
            theta = self._spread * scores
            vector = problem.design.gradient(theta) - self._means * np.sum(theta, axis=0)
            value = float(np.sqrt(np.vdot(vector, vector)))
        return value

    def run(self, problem: NormProblem, point: Point, count: int) -> Point:
        """Return the point that ``count`` steps lead to."""
        proximal = Proximal(problem)
        before = point if self._last is None else self._last
        for _ in range(count):
            following, push = next_momentum(self._momentum)
            ahead = problem.beyond(point, before, push)
            reached = self._step(problem, proximal, ahead)
            if float(np.vdot(ahead.weights - reached.weights, reached.weights - point.weights)) > 0:
                following = 1.0
            before, point, self._momentum = point, reached, following
        self._last = before
        return point

    def _step(self, problem: NormProblem, proximal: Proximal, point: Point) -> Point:
        """Return the point after one step, shortened until the loss stays below its bound."""
        bias = np.sum(point.residual, axis=0) * problem.fit_intercept
        gradient = problem.design.gradient(point.residual) - self._means * bias
        flat = float(problem.loss.smoothness) * self._totals
        slack = 4.0 * float(np.finfo(problem.design.dtype).eps) * abs(point.value)
        self._steepness *= 0.9
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
            self._steepness *= 2.0
