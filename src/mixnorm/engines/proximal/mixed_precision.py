"""Steps in single precision on data in double: half the memory traffic, and the same gap.

After every iteration the weights go back to the data as they were given: scores, dual point,
gradient and gap are computed there, in double precision, and the next steps start from those.
Rounding can make a step useless, but never a result wrong. Where steps become useless, the work
continues in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from mixnorm.data import DenseMatrix
from mixnorm.engines._core.stopping import BestPoint
from mixnorm.engines.proximal.design import SharedDesign
from mixnorm.engines.proximal.problem import NormProblem, Point, Solver

# Magnitude whose square, summed over many rows, does not overflow in single precision (3e38).
_MODERATE = 1e12


def suits(problem: NormProblem, tol: float) -> bool:
    """Tell whether steps in single precision are likely to reach ``tol``."""
    design, loss, settings = problem.design, problem.loss, problem.settings
    # Least squares have one model for all iterations, which is solved to all digits.
    if tol < settings.single_tol or problem.quadratic or not math.isfinite(loss.smoothness):
        return False
    # Sparse products spend their time on indices, which a copy in single precision does not halve.
    if not isinstance(design, SharedDesign) or design.dtype != np.float64:
        return False
    matrix = design.matrix
    entries = matrix.shape[0] * matrix.shape[1]
    if not isinstance(matrix, DenseMatrix) or entries < settings.single_entries:
        return False
    return matrix.largest() < _MODERATE


class DoublePrecisionProblem(Solver):
    """The problem in double precision, and the point there."""

    def __init__(self, problem: NormProblem) -> None:
        self.problem = problem
        self.point = problem.null()
        self.theta = self.gradient = np.empty(0)

    def lift(self, rough: Point) -> tuple[Point, np.ndarray, np.ndarray]:
        """Compute a point in double precision; return it with dual point and gradient, rounded."""
        problem, weights = self.problem, rough.weights.astype(np.float64)
        # Rounding may have put the point outside of the ball, where its gap would be no bound.
        if problem.radius is not None:
            size = float(problem.norm.value(weights))
            weights *= problem.radius / size if size > problem.radius else 1.0
        point = problem.start(weights, rough.intercept.astype(np.float64))
        if problem.fit_intercept:
            point = problem.best_intercept(point, problem.settings.unbalanced)
        self.point = point
        self.theta = problem.dual_point(point)
        self.gradient = problem.design.gradient(self.theta)
        # The value stays in double precision: line searches compare it with others.
        rounded = Point(
            rough.weights,
            _single(point.intercept),
            _single(point.scores),
            point.value,
            _single(point.residual),
        )
        return rounded, _single(self.theta), _single(self.gradient)


class MixedSolver(Solver):
    """A solver whose steps are in single precision as long as they help.

    Parameters
    ----------
    problem : NormProblem
        The problem in double precision.
    build : callable
        Returns a solver, given a problem, a point to start from or None, and the problem in double
        precision or None.
    start : Point, optional
        Where to start.
    """

    def __init__(
        self, problem: NormProblem, build: Callable[..., Solver], start: Point | None = None
    ) -> None:
        self.problem = problem
        self._build = build
        self._rough = _round_problem(problem)
        self._double: DoublePrecisionProblem | None = DoublePrecisionProblem(problem)
        first = None
        if start is not None:
            first = self._rough.start(_single(start.weights), _single(start.intercept))
        self._solver = build(self._rough, first, self._double)
        self.point = self._double.point
        self._best = self._expect_progress()

    def _expect_progress(self) -> BestPoint[None]:
        """Return a new count of iterations without progress; the points are kept elsewhere."""
        return BestPoint(None, self.problem.settings.single_patience)

    def pose(self, problem: NormProblem) -> None:
        """Continue with another ``alpha``, from the present point."""
        super().pose(problem)
        self._best = self._expect_progress()
        # Double precision stays for the rest of a path: smaller values of alpha are harder.
        if self._double is None:
            self._solver.pose(problem)
            return
        self._double.pose(problem)
        self._rough = replace(self._rough, alpha=problem.alpha)
        self._solver.pose(self._rough)

    def gap(self) -> float:
        """Return the duality gap at the point."""
        return self._solver.gap()

    def step(self, gap: float, tol: float) -> None:
        """Do one iteration, in double precision once single precision makes no progress."""
        progress = gap < self.problem.settings.single_progress * self._best.gap
        self._best.note(None, gap, progress=progress)
        # Dropping the rounded problem frees its copy of the data.
        if self._double is not None and self._best.given_up:
            self._solver, self._double = self._build(self.problem, self._double.point, None), None
        self._solver.step(gap, tol)
        self.point = self._solver.point if self._double is None else self._double.point


def _single(array: np.ndarray) -> np.ndarray:
    """Return the array in single precision, in the same layout."""
    return array.astype(np.float32)


def _round_problem(problem: NormProblem) -> NormProblem:
    design: Any = problem.design
    return replace(
        problem,
        design=SharedDesign(design.matrix.single(), design.n_outputs),
        target=_round_target(problem.target),
        weight=_single(problem.weight),
        _memory={},  # the null model there is in double precision
    )


def _round_target(target: Any) -> Any:
    """Return encoded targets with their numbers in single precision."""
    if isinstance(target, np.ndarray):
        return _single(target) if target.dtype == np.float64 else target
    if is_dataclass(target) and not isinstance(target, type):
        parts = {item.name: _round_target(getattr(target, item.name)) for item in fields(target)}
        return replace(target, **parts)
    if isinstance(target, (list, tuple)):
        return type(target)(_round_target(part) for part in target)
    return target
