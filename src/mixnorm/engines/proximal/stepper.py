"""Accelerated proximal steps in the metric of a model, the base of the engine's solvers.

A step minimises a quadratic model of the loss (:eq:`loss-model`) plus the norm. The model bounds
the loss once it is curved enough. Momentum (:eq:`accelerated-point`) carries from step to step, and
along a path from one ``alpha`` to the next.
"""

from __future__ import annotations

import math

import numpy as np

from mixnorm.data import ColumnSet
from mixnorm.engines.proximal.loss_model import Model
from mixnorm.engines.proximal.mixed_precision import DoublePrecisionProblem
from mixnorm.engines.proximal.problem import NormProblem, Point, SecondOrder, Solver
from mixnorm.engines.proximal.settings import DEFAULT_SETTINGS, ProximalSettings

# Factors by which kappa rises: somewhat beyond the curvature that the step showed, and in any case
# by so much that the attempts end.
_BEYOND_CURVATURE, _LEAST_GROWTH_OF_KAPPA = 1.1, 1.2


class StepSchedule:
    """The number of steps in an iteration, chosen by what the last ones did to the gap.

    A gap costs a pass over all data, so that several steps between two gaps save time. Steps beyond
    the tolerance are wasted.

    Examples
    --------
    >>> schedule = StepSchedule()
    >>> schedule.steps(gap=1.0, tol=0.1)
    5
    >>> schedule.see(1.0)
    >>> schedule.steps(gap=1.0, tol=0.1)
    5
    >>> schedule.see(1e-5)
    >>> schedule.steps(gap=1.0, tol=0.1)
    3
    """

    def __init__(self, settings: ProximalSettings = DEFAULT_SETTINGS) -> None:
        self._settings = settings
        self._rate = settings.slowest
        self._before, self._taken = 0.0, 0

    def see(self, gap: float) -> None:
        """Take note of the gap that the last steps led to."""
        if self._taken > 0 and self._before > 0.0:
            # The geometric mean of old and new: gaps do not fall evenly, and one lucky step should
            # not promise that all are.
            rate = (gap / self._before) ** (1.0 / self._taken)
            rate = min(max(rate, self._settings.fastest), self._settings.slowest)
            self._rate = math.sqrt(self._rate * rate)
        self._before, self._taken = gap, 0

    def steps(self, gap: float, tol: float) -> int:
        """Return how many steps to take now, to bring the gap well below the tolerance."""
        most, share = self._settings.steps_per_iteration, self._settings.share_of_tol
        self._taken = most
        if tol > 0.0 and math.isfinite(gap):
            wanted = math.log(max(gap / (share * tol), 1.0)) / -math.log(self._rate)
            # Two at least: the first one after a change of rows has no momentum.
            self._taken = min(most, max(2, math.ceil(wanted)))
        return self._taken


def next_momentum(momentum: float) -> tuple[float, float]:
    """Return the next momentum, and how far beyond a point its step begins.

    These are ``t`` and its quotient in Nesterov's rule (:eq:`accelerated-point`).
    """
    following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
    return following, (momentum - 1.0) / following


class Stepper(Solver):
    """A solver that works on some rows of the weights, by a model of the loss there.

    Gradients and gaps come from ``double``, the problem in double precision, where it is given.
    """

    def __init__(
        self,
        problem: NormProblem,
        start: Point | None = None,
        double: DoublePrecisionProblem | None = None,
    ) -> None:
        self.problem = problem
        self._double = double
        self.point = problem.null() if start is None else start
        # In steps the intercept only follows the weights. A poor one from the caller would stay
        # poor.
        if start is not None and problem.fit_intercept:
            self.point = problem.best_intercept(start)
        self._rows = np.empty(0, dtype=np.intp)
        self._block: ColumnSet | None = None
        self._model: Model | None = None
        self._kappa, self._age = 1.0, 0
        self._before: Point | None = None
        self._anchor: Point | None = None
        self._momentum = 1.0
        self._count = 0
        self._schedule = StepSchedule(problem.settings)
        self.refresh()

    def pose(self, problem: NormProblem) -> None:
        """Continue with another ``alpha``, from the present point."""
        super().pose(problem)
        # The last two solutions of the path take the place of the last two points: the first step
        # starts from where the path would go on in a straight line.
        self._before, self._momentum = self._anchor, problem.settings.path_momentum
        self._anchor, self._count = self.point, 0

    def refresh(self) -> None:
        """Optimise the intercept of the point; compute its dual point and gradient."""
        if self._double is not None:
            self.point, self.theta, self.gradient = self._double.lift(self.point)
            return
        # For a quadratic loss the intercept that follows the weights is the best one already.
        if self.problem.fit_intercept and not self.problem.quadratic:
            unbalanced = self.problem.settings.unbalanced
            self.point = self.problem.best_intercept(self.point, unbalanced)
        self.theta = self.problem.dual_point(self.point)
        self.gradient = self.problem.design.gradient(self.theta)

    def gap(self) -> float:
        """Return the duality gap at the point."""
        gap = super().gap() if self._double is None else self._double.gap()
        self._schedule.see(gap)
        return gap

    @property
    def _model_age(self) -> int:
        """Iterations that one model of the curvature serves."""
        raise NotImplementedError

    def _minimise_model(self, start: np.ndarray, value: float, gradient: np.ndarray) -> np.ndarray:
        """Return weights of the rows that nearly minimise the model plus the norm."""
        raise NotImplementedError

    def _penalty(self, rows: np.ndarray) -> float:
        """Return ``alpha`` times the norm of weights of the rows; zero in a ball."""
        raise NotImplementedError

    def _curvature(self, *, exact: bool) -> np.ndarray:
        """Return the curvatures of rows for a model: a column for all outputs, or one for each."""
        design = self.problem.design
        found = SecondOrder(self.problem, self.point).diagonal()
        if not design.shared:
            return np.broadcast_to(found, (len(found), design.n_outputs))
        if found.shape[1] == 1 or self._keeps_outputs_apart(exact=exact):
            return found
        # One model for all outputs has to bound the most curved of them.
        return np.asarray(np.max(found, axis=1, keepdims=True))

    def _keeps_outputs_apart(self, *, exact: bool) -> bool:
        """Tell whether each output has its own model where one of all outputs would do."""
        return exact

    def _prepare(self, *, exact: bool) -> None:
        """Build the model of the rows, unless there is one that is recent enough."""
        self._age += 1
        if self._model is None or (not exact and self._age > self._model_age):
            self._model = Model(
                self._known_block,
                self._curvature(exact=exact),
                fit_intercept=self.problem.fit_intercept,
                exact=exact,
                settings=self.problem.settings,
            )
            self._age = 0
            self._use_model(self._model)

    def _use_model(self, model: Model) -> None:
        """Do what a subclass has to do once for a new model."""
        raise NotImplementedError

    def _work_on(self, rows: np.ndarray) -> None:
        """Choose the rows that may change; momentum that moved others ends."""
        self._rows = rows
        self._block, self._model = None, None
        # Momentum is an extrapolation of whole points: it would move rows that no step corrects.
        outside = np.ones(self.problem.design.n_features, dtype=bool)
        outside[rows] = False
        if self._before is not None and np.any(self._before.weights[outside]):
            self._stop_momentum()

    def _stop_momentum(self) -> None:
        self._before, self._momentum = None, 1.0

    def _proximal_steps(self, count: int) -> None:
        """Take accelerated proximal steps in the metric of the model (:eq:`accelerated-point`).

        A step is never shortened, because only a whole step ends at the zeros and ties of the norm.
        Instead the model is made more curved, until it is an upper bound.
        """
        for _ in range(count):
            momentum = 1.0 if self._before is None else self._momentum
            following, push = next_momentum(momentum)
            ahead = self.problem.beyond(self.point, self._before or self.point, push)
            moved = self._bounded_step(ahead)
            # Accelerated steps need not descend. A rise means that momentum carried too far, and
            # the same step without momentum is tried; if that rises too, only rounding is left.
            if moved is None or self._objective(moved) > self._objective(self.point):
                if momentum == 1.0:
                    return
                self._stop_momentum()
                continue
            self._before, self.point, self._momentum = self.point, moved, following

    def _objective(self, point: Point) -> float:
        return point.value + self._penalty(point.weights[self._rows])

    def _bounded_step(self, point: Point) -> Point | None:
        """Minimise the model (:eq:`loss-model`) at a point; None where it cannot be a bound."""
        model, block = self._known_model, self._known_block
        start = point.weights[self._rows]
        gradient, bias = model.centre(
            block.gradient(point.residual), np.sum(point.residual, axis=0)
        )
        settings = self.problem.settings
        # The rounding error of a difference of two losses. Smaller differences say nothing about
        # the curvature, and kappa would follow their noise.
        noise = 16.0 * float(np.finfo(start.dtype).eps) * abs(point.value)
        for _ in range(settings.kappa_tries):
            # Far too long steps overflow; the check below makes a warning needless.
            with np.errstate(over="ignore", invalid="ignore"):
                reached = self._minimise_model(start, point.value, gradient)
                step = reached - start
                scores = block.scores(step)
                intercept = model.follow(scores) - bias / scores.dtype.type(self._kappa)
                scores += intercept
                moved = self._replace_rows(point, reached, intercept, scores)
            if not math.isfinite(moved.value):
                return None
            if self.problem.quadratic:
                return moved  # the model is the loss itself, of the right curvature
            # ``rise`` is how far the loss is above its tangent, and ``kappa * bend`` how far the
            # model is. The norm is the same in both, so that comparing these two is enough.
            # Transposed, because numpy.vdot would copy arrays that lie column by column.
            rise = moved.value - point.value - float(np.vdot(point.residual.T, scores.T))
            bend = 0.5 * float(np.vdot(step, model.product(step)))
            bend += 0.5 * float(np.sum(model.totals * bias * bias)) / self._kappa**2
            if bend <= noise:
                return moved
            if rise <= self._kappa * bend + noise:
                # rise / bend is the smallest kappa that would have been enough for this step.
                eased = max(settings.easing * self._kappa, min(self._kappa, rise / bend))
                self._kappa = max(settings.least_kappa, eased)
                return moved
            self._kappa = max(_BEYOND_CURVATURE * rise / bend, _LEAST_GROWTH_OF_KAPPA * self._kappa)
        return None

    def _replace_rows(
        self, point: Point, rows: np.ndarray, intercept: np.ndarray, scores: np.ndarray
    ) -> Point:
        """Return the point with new weights of the rows, and with intercept and scores moved."""
        weights = point.weights.copy()
        weights[self._rows] = rows
        return self.problem.at(weights, point.intercept + intercept, point.scores + scores)

    @property
    def _known_model(self) -> Model:
        """The model; a step without one is a mistake of this engine, not of its caller."""
        if self._model is None:
            raise RuntimeError("The model of the rows has not been built.")
        return self._model

    @property
    def _known_block(self) -> ColumnSet:
        """The columns of the rows, read from the data when they are first needed."""
        if self._block is None:
            self._block = self.problem.design.block(self._rows)
        return self._block
