"""The proximal engine for sums of row norms, which works on the few rows that are not zero.

The working set has the rows that are not zero, and those whose gradient says that they should not
be. Each iteration minimises the objective over it. Block coordinate descent (:eq:`row-step`) solves
least squares, and the models of any other loss. Once the rows have settled, Newton steps are added
for other losses. The duality gap of the whole problem ends the work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixnorm.data import DenseColumns
from mixnorm.engines._core.line_search import backtrack
from mixnorm.engines.proximal.descent import (
    GramQuadratic,
    Quadratic,
    ResidualQuadratic,
    descend,
    row_norms,
    sum_of_norms,
)
from mixnorm.engines.proximal.loss_model import Model
from mixnorm.engines.proximal.manifold import SmoothPart, newton_step
from mixnorm.engines.proximal.preconditioner import precondition
from mixnorm.engines.proximal.problem import Point, SecondOrder
from mixnorm.engines.proximal.stepper import Stepper


@dataclass(frozen=True)
class Settings:
    """The constants of a :class:`RowSolver`.

    Attributes
    ----------
    fewest : int
        Rows of the first working set.
    near : float
        A row stays in the working set while its gradient is this part of what lets a row in.
    loose, spare : float, int
        The working set is cut once it has ``spare`` rows more than ``loose`` times those needed.
    epochs, exact_epochs : int
        Epochs of descent on a model, and at most on a model that is the loss itself.
    epoch_effort : float
        Effort of an epoch; that of evaluating the loss is 1.
    settled : int
        Iterations before Newton steps are tried.
    shortest : float
        Newton steps are not cut below this part of their length.
    few_entries : float
        Each output has its own Gram matrix where all of them have at most this many entries.
    """

    fewest: int = 64
    near: float = 0.97
    loose: float = 1.2
    spare: int = 16
    epochs: int = 6
    exact_epochs: int = 1000
    epoch_effort: float = 0.25
    settled: int = 2
    shortest: float = 0.03
    few_entries: float = 2e7


class RowSolver(Stepper):
    """The solver for penalties that add up over rows."""

    model_age = 12
    settings = Settings()

    _outputs: np.ndarray | None = None

    @property
    def _exponent(self) -> float:
        return float(self.problem.norm.row_exponent)

    def step(self, gap: float, tol: float) -> None:
        """Do one iteration; ``gap`` is the present gap and ``tol`` the allowed one."""
        grown = self._choose_rows()
        if self.problem.quadratic:
            if not self._holds_residual():
                self._prepare(exact=True)
            self._descend_exactly(0.3 * tol if not grown else max(0.3 * tol, 0.1 * gap))
        else:
            self._prepare(exact=False)
            self._proximal_steps(self._schedule.steps(gap, tol))
            self._count += 1
            if self._count > self.settings.settled:  # earlier it would work on the wrong rows
                self._newton_step()
                self._stop_momentum()
        self.refresh()

    # Working set.

    def _choose_rows(self) -> bool:
        """Choose the rows to work on; tell whether some are new."""
        alpha = float(self.problem.alpha or 0.0)
        duals = np.asarray(self.problem.norm.row_duals(self.gradient))
        active = np.any(self.point.weights != 0.0, axis=1)
        support = np.flatnonzero(active)
        limit = max(self.settings.fewest, 2 * len(support))
        scores = np.where(active, np.inf, duals)
        wanted = np.flatnonzero(scores > alpha * (1.0 - 1e-9))
        if len(wanted) > limit:
            wanted = np.argpartition(-scores, limit - 1)[:limit]
        held = np.zeros(len(duals), dtype=bool)
        held[self._rows] = True
        missing = not np.all(held[wanted])
        if missing or len(self._rows) > self.settings.loose * len(wanted) + self.settings.spare:
            near = self._rows[scores[self._rows] > self.settings.near * alpha]  # they may come back
            self._work_on(np.union1d(wanted, near))
        return missing

    def _holds_residual(self) -> bool:
        """Tell whether a residual is quicker for least squares than a Gram matrix."""
        dense = isinstance(self._known_block, DenseColumns) and self.problem.weight.ndim == 1
        return dense and len(self._rows) > self.problem.design.n_samples

    def _use_model(self, model: Model) -> None:
        self._outputs = SecondOrder(self.problem, self.point).outputs(model.totals)

    def _keeps_outputs_apart(self, *, exact: bool) -> bool:
        outputs = self.problem.design.n_outputs
        few = outputs * len(self._rows) ** 2 <= self.settings.few_entries
        return few and (self.problem.quadratic or outputs <= 8)

    # Steps.

    def _descend_exactly(self, tol: float) -> None:
        """Minimise over the working set where the model is the loss itself."""
        problem, point, block = self.problem, self.point, self._known_block
        before = point.weights[self._rows]
        quadratic: Quadratic
        if self._model is None and isinstance(block, DenseColumns):
            weight = problem.weight
            root = np.where(weight > 0.0, 1.0 / np.sqrt(np.where(weight > 0.0, weight, 1.0)), 0.0)
            means = block.means(weight[:, None]) if problem.fit_intercept else None
            columns = block.scale_rows(weight, means)
            quadratic = ResidualQuadratic(columns, before, self.theta * root[:, None])
        else:
            gradient = self.gradient[self._rows]
            quadratic = GramQuadratic(self._known_model, 1.0, before, point.value, gradient)
        alpha = float(problem.alpha or 0.0)
        most = self.settings.exact_epochs
        done = descend(quadratic, alpha, self._exponent, tol=tol, max_epochs=most)
        problem.effort.spent += self.settings.epoch_effort * done
        step = quadratic.weights - before
        scores = block.scores(step)
        intercept = self._follow(scores)
        self.point = self._replace_rows(point, quadratic.weights, intercept, scores + intercept)

    def _follow(self, scores: np.ndarray) -> np.ndarray:
        if self._model is not None:
            return self._model.follow(scores)
        if not self.problem.fit_intercept:
            return np.zeros(scores.shape[1], dtype=scores.dtype)
        return np.asarray(-(self.problem.weight @ scores) / np.sum(self.problem.weight))

    def _minimise_model(self, start: np.ndarray, value: float, gradient: np.ndarray) -> np.ndarray:
        quadratic = GramQuadratic(self._known_model, self._kappa, start, value, gradient)
        quadratic.epochs(float(self.problem.alpha or 0.0), self._exponent, self.settings.epochs)
        return quadratic.weights

    def _newton_step(self) -> None:
        """Take a Newton step on the rows that are not zero, halved until the objective falls."""
        weights = self.point.weights[self._rows]
        used = np.flatnonzero(row_norms(weights, self._exponent) > 0.0)
        if len(used) == 0:
            return
        weights = weights[used]
        smooth = SmoothPart(weights, self._exponent)
        ridge, model = smooth.ridge(), self._known_model.part(used)
        if ridge is not None:
            ridge = ridge * weights.dtype.type(self.problem.alpha)
        factor = precondition(model, self._outputs, ridge, smooth.unknowns())
        block = self._known_block.part(used)
        point, rows = self.point, self._rows[used]
        found = newton_step(self.problem, block, factor, point, weights, smooth)
        if not found.slope < 0.0:
            return
        before = point.value + self._penalty(weights)
        slack = 4.0 * float(np.finfo(weights.dtype).eps) * abs(before)

        def trial(length: float) -> Point | None:
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
            enough = before + 1e-4 * length * found.slope + slack
            return moved if moved.value + self._penalty(reached) <= enough else None

        self.point = backtrack(trial, least=self.settings.shortest)[0] or point

    def _penalty(self, weights: np.ndarray) -> float:
        return float(self.problem.alpha or 0.0) * sum_of_norms(weights, self._exponent)
