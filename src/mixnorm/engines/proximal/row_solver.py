"""The proximal engine for sums of row norms: few rows are not zero, and work is done on those.

Each iteration takes the rows that are not zero or whose gradient says they should not be (the
working set) and minimises the objective over them: block coordinate descent solves least squares,
and the models of any other loss, to which Newton steps on the rows found are added once these have
settled. The duality gap of the whole problem ends it.
"""

from __future__ import annotations

import numpy as np

from mixnorm.data import ColumnSet, DenseColumns
from mixnorm.engines.proximal.descent import (
    GramQuadratic,
    Quadratic,
    ResidualQuadratic,
    descend,
    row_norms,
)
from mixnorm.engines.proximal.loss_model import Model
from mixnorm.engines.proximal.manifold import SmoothPart, Step, newton_step
from mixnorm.engines.proximal.mixed_precision import Twin
from mixnorm.engines.proximal.preconditioner import precondition
from mixnorm.engines.proximal.problem import Point, Problem
from mixnorm.engines.proximal.stepper import Stepper

_FEWEST = 64  # rows of the first working set
_NEAR = 0.97  # of what lets a row in, and it stays
_SPARE = 16
_LOOSE = 1.2  # times as many rows as needed are too many
_EPOCHS = 6  # of descent on a model that is only a model
_EXACT_EPOCHS = 1000
_EPOCH = 0.25  # of the effort of evaluating the loss is an epoch
_SETTLED = 2  # iterations before Newton steps are tried
_SHORTEST = 0.03  # part of a Newton step; shorter ones are left to the next proximal step
_AGE = 12  # iterations that a model of the curvature serves
_FACTORS = 2e7  # entries of the Gram matrices of all outputs together that are still few


class RowSolver(Stepper):
    """The solver for penalties that add up over rows."""

    def __init__(
        self, problem: Problem, start: Point | None = None, twin: Twin | None = None
    ) -> None:
        self._exponent = float(problem.norm.row_exponent)
        self._outputs: np.ndarray | None = None
        super().__init__(problem, start, twin)

    def step(self, gap: float, tol: float) -> None:
        """Do one iteration, ``gap`` being what is left and ``tol`` what is allowed."""
        grown = self._choose_rows()
        if self.problem.quadratic:
            self._prepare(exact=True)
            self._descend_exactly(0.3 * tol if not grown else max(0.3 * tol, 0.1 * gap))
        else:
            self._prepare(exact=False)
            steps = self._pace.steps(gap, tol)
            self._pace.take(steps)
            self._proximal_steps(steps)
            self._count += 1
            if self._count > _SETTLED:  # earlier it would work on the wrong rows
                self._newton_step()
                self._stop_momentum()
        self.refresh()

    # Working set.

    def _choose_rows(self) -> bool:
        """Choose the rows to work on; return whether some were new."""
        alpha = float(self.problem.alpha or 0.0)
        duals = np.asarray(self.problem.norm.row_duals(self.gradient))
        active = np.any(self.point.weights != 0.0, axis=1)
        support = np.flatnonzero(active)
        limit = max(_FEWEST, 2 * len(support))
        scores = np.where(active, np.inf, duals)
        wanted = np.flatnonzero(scores > alpha * (1.0 - 1e-9))
        if len(wanted) > limit:
            wanted = np.argpartition(-scores, limit - 1)[:limit]
        held = np.zeros(len(duals), dtype=bool)
        held[self._rows] = True
        missing = not np.all(held[wanted])
        if missing or len(self._rows) > _LOOSE * len(wanted) + _SPARE:
            near = self._rows[scores[self._rows] > _NEAR * alpha]  # they may come back
            self._work_on(np.union1d(wanted, near))
        return missing

    def _prepare(self, *, exact: bool) -> None:
        """Have the block and the model of the working set at hand, the model not too old."""
        self._age += 1
        if self._block is None:
            self._block = self.problem.design.block(self._rows)
        if exact and self._holds_residual():
            return
        if self._model is None or (not exact and self._age > _AGE):
            self._model = Model(
                self._block,
                self._curvature(self._block.size),
                fit_intercept=self.problem.fit_intercept,
                exact=exact,
            )
            self._outputs = self.problem.second_order(self.point).outputs(self._model.totals)
            self._age = 0

    def _holds_residual(self) -> bool:
        """Whether least squares is better held by its residual than by products of columns."""
        dense = isinstance(self._block, DenseColumns) and self.problem.weight.ndim == 1
        return dense and len(self._rows) > self.problem.design.n_samples

    def _curvature(self, size: int) -> np.ndarray:
        """Return row curvatures: a column for all outputs, or one each where that is better."""
        found = self.problem.second_order(self.point).diagonal()
        outputs = self.problem.design.n_outputs
        if not self.problem.design.shared:
            return np.broadcast_to(found, (found.shape[0], outputs))
        few = outputs * size**2 <= _FACTORS and (self.problem.quadratic or outputs <= 8)
        if found.shape[1] == 1 or few:
            return found
        return np.asarray(np.max(found, axis=1, keepdims=True))

    # Steps.

    def _descend_exactly(self, tol: float) -> None:
        """Minimise over the working set where the model is the loss itself."""
        problem, point, block = self.problem, self.point, self._block
        before = point.weights[self._rows]
        quadratic: Quadratic
        if self._model is None and isinstance(block, DenseColumns):
            weight = problem.weight
            root = np.where(weight > 0.0, 1.0 / np.sqrt(np.where(weight > 0.0, weight, 1.0)), 0.0)
            means = block.means(weight[:, None]) if problem.fit_intercept else None
            columns = block.rooted(weight, means)
            quadratic = ResidualQuadratic(columns, before, self.theta * root[:, None])
        else:
            gradient = self.gradient[self._rows]
            quadratic = GramQuadratic(self._known_model, 1.0, before, point.value, gradient)
        alpha = float(problem.alpha or 0.0)
        done = descend(quadratic, alpha, self._exponent, tol=tol, max_epochs=_EXACT_EPOCHS)
        problem.effort.spent += _EPOCH * done
        step = quadratic.weights - before
        scores = self._known_block.scores(step)
        intercept = self._follow(scores)
        self.point = self._arrived(point, quadratic.weights, intercept, scores + intercept)

    def _follow(self, scores: np.ndarray) -> np.ndarray:
        if self._model is not None:
            return self._model.follow(scores)
        if not self.problem.fit_intercept:
            return np.zeros(scores.shape[1], dtype=scores.dtype)
        return np.asarray(-(self.problem.weight @ scores) / np.sum(self.problem.weight))

    def _minimise_model(self, start: np.ndarray, value: float, gradient: np.ndarray) -> np.ndarray:
        quadratic = GramQuadratic(self._known_model, self._kappa, start, value, gradient)
        quadratic.epochs(float(self.problem.alpha or 0.0), self._exponent, _EPOCHS)
        return quadratic.weights

    def _newton_step(self) -> None:
        """Go on where the norm is smooth: on the rows that are not zero."""
        weights = self.point.weights[self._rows]
        used = np.flatnonzero(row_norms(weights, self._exponent) > 0.0)
        if len(used) == 0:
            return
        weights = weights[used]
        smooth = SmoothPart(weights, self._exponent)
        ridge = smooth.ridge()
        factor = precondition(
            self._known_model.part(used),
            self._outputs,
            None if ridge is None else ridge * weights.dtype.type(self.problem.alpha),
            smooth.unknowns(),
        )
        block = self._known_block.part(used)
        found = newton_step(self.problem, block, factor, self.point, weights, smooth)
        if not found.slope < 0.0:
            return
        self._search(used, block, smooth, weights, found)

    def _search(
        self,
        used: np.ndarray,
        block: ColumnSet,
        smooth: SmoothPart,
        weights: np.ndarray,
        found: Step,
    ) -> None:
        """Halve a Newton step until the objective falls, and take it."""
        point, rows = self.point, self._rows[used]
        before = point.value + self._penalty(weights)
        slack = 4.0 * float(np.finfo(weights.dtype).eps) * abs(before)
        length = 1.0
        while length > _SHORTEST:
            part = weights.dtype.type(length)
            straight = weights + part * found.weights
            reached = smooth.retract(straight)
            scores = point.scores + part * found.scores
            if reached is not straight:
                held = np.flatnonzero(np.any(reached != straight, axis=1))
                scores += block.part(held).scores(reached[held] - straight[held])
            full = point.weights.copy()
            full[rows] = reached
            moved = self.problem.at(full, point.intercept + part * found.intercept, scores)
            if moved.value + self._penalty(reached) <= before + 1e-4 * length * found.slope + slack:
                self.point = moved
                return
            length *= 0.5

    def _penalty(self, weights: np.ndarray) -> float:
        norms = row_norms(weights, self._exponent)
        return float(self.problem.alpha or 0.0) * float(np.sum(norms, dtype=np.float64))
