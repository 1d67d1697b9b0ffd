"""The proximal engine for sums of row norms, which works on the few rows that are not zero.

The working set has the rows that are not zero, and those whose gradient says that they should not
be. Each iteration minimises the objective over the working set. Block coordinate descent
(:eq:`row-step`) solves least squares, and the quadratic models of any other loss. For other losses
Newton steps are added once the rows have settled. The duality gap of the whole problem ends the
work: whatever the working set leaves out, the gap sees it.
"""

from __future__ import annotations

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

# A dual norm that is smaller than alpha by this share only is larger but for rounding.
_ROUNDING_OF_DUALS = 1e-9
# Most outputs for which a Gram matrix each is worth its time where one would do for all.
_FEW_OUTPUTS = 8


class RowSolver(Stepper):
    """The solver for penalties that add up over rows."""

    _outputs: np.ndarray | None = None

    @property
    def _model_age(self) -> int:
        return self.problem.settings.row_model_age

    @property
    def _exponent(self) -> float:
        return float(self.problem.norm.row_exponent)

    def step(self, gap: float, tol: float) -> None:
        """Do one iteration; ``gap`` is the present gap and ``tol`` the allowed one."""
        settings = self.problem.settings
        grown = self._choose_rows()
        if self.problem.quadratic:
            if not self._holds_residual():
                self._prepare(exact=True)
            # While rows still come in, the solution of the working set is not the one looked for.
            wanted = settings.share_of_tol * tol
            self._descend_exactly(wanted if not grown else max(wanted, settings.share_of_gap * gap))
        else:
            self._prepare(exact=False)
            self._proximal_steps(self._schedule.steps(gap, tol))
            self._count += 1
            if self._count > settings.settled:
                self._newton_step()
                # The last proximal step no longer points to where the Newton step ended.
                self._stop_momentum()
        self.refresh()

    # Working set.

    def _choose_rows(self) -> bool:
        """Choose the rows to work on; tell whether some are new."""
        settings, alpha = self.problem.settings, float(self.problem.alpha or 0.0)
        duals = np.asarray(self.problem.norm.row_duals(self.gradient))
        active = np.any(self.point.weights != 0.0, axis=1)
        support = np.flatnonzero(active)
        # At most twice as many rows as in use: the first gradients say little about the last ones.
        limit = max(settings.first_rows, 2 * len(support))
        # Zero is optimal for a row at zero whose dual norm is at most alpha (:eq:`alpha-max`, row
        # by row); rows that are not zero always stay.
        scores = np.where(active, np.inf, duals)
        wanted = np.flatnonzero(scores > alpha * (1.0 - _ROUNDING_OF_DUALS))
        if len(wanted) > limit:
            wanted = np.argpartition(-scores, limit - 1)[:limit]
        held = np.zeros(len(duals), dtype=bool)
        held[self._rows] = True
        missing = not np.all(held[wanted])
        # Rows near the border are kept, as they often come back in the next iteration.
        if missing or len(self._rows) > settings.loose * len(wanted) + settings.spare:
            near = self._rows[scores[self._rows] > settings.near * alpha]
            self._work_on(np.union1d(wanted, near))
        return missing

    def _holds_residual(self) -> bool:
        """Tell whether a residual is quicker for least squares than a Gram matrix."""
        # An update of the residual takes time of the samples, one of the gradients by a Gram matrix
        # time of the rows. Outputs with their own weights have no residual in common units.
        dense = isinstance(self._known_block, DenseColumns) and self.problem.weight.ndim == 1
        return dense and len(self._rows) > self.problem.design.n_samples

    def _use_model(self, model: Model) -> None:
        self._outputs = SecondOrder(self.problem, self.point).outputs(model.totals)

    def _keeps_outputs_apart(self, *, exact: bool) -> bool:
        outputs = self.problem.design.n_outputs
        # Separate models make better steps, but each costs a Gram matrix. The model of a quadratic
        # loss is built once and is then exact; any other one is soon built again.
        few = outputs * len(self._rows) ** 2 <= self.problem.settings.few_entries
        return few and (self.problem.quadratic or outputs <= _FEW_OUTPUTS)

    # Steps.

    def _descend_exactly(self, tol: float) -> None:
        """Minimise over the working set where the model is the loss itself."""
        problem, point, block = self.problem, self.point, self._known_block
        before = point.weights[self._rows]
        quadratic: Quadratic
        if self._model is None and isinstance(block, DenseColumns):
            weight = problem.weight
            # The dual point is the weight times the error; the residual is its root times the
            # error.
            root = np.where(weight > 0.0, 1.0 / np.sqrt(np.where(weight > 0.0, weight, 1.0)), 0.0)
            means = block.means(weight[:, None]) if problem.fit_intercept else None
            columns = block.scale_rows(weight, means)
            quadratic = ResidualQuadratic(columns, before, self.theta * root[:, None])
        else:
            gradient = self.gradient[self._rows]
            quadratic = GramQuadratic(self._known_model, 1.0, before, point.value, gradient)
        alpha, settings = float(problem.alpha or 0.0), problem.settings
        done = descend(
            quadratic,
            alpha,
            self._exponent,
            tol=tol,
            max_epochs=settings.exact_epochs,
            depth=settings.anderson_depth,
        )
        problem.effort.spent += settings.epoch_effort * done
        # Scores follow from the change of the weights, which touches few rows.
        step = quadratic.weights - before
        scores = block.scores(step)
        intercept = self._follow(scores)
        self.point = self._replace_rows(point, quadratic.weights, intercept, scores + intercept)

    def _follow(self, scores: np.ndarray) -> np.ndarray:
        """Return the step of the intercept that goes with a step of the scores."""
        if self._model is not None:
            return self._model.follow(scores)
        if not self.problem.fit_intercept:
            return np.zeros(scores.shape[1], dtype=scores.dtype)
        return np.asarray(-(self.problem.weight @ scores) / np.sum(self.problem.weight))

    def _minimise_model(self, start: np.ndarray, value: float, gradient: np.ndarray) -> np.ndarray:
        quadratic = GramQuadratic(self._known_model, self._kappa, start, value, gradient)
        alpha, epochs = float(self.problem.alpha or 0.0), self.problem.settings.epochs
        quadratic.epochs(alpha, self._exponent, epochs)
        return quadratic.weights

    def _newton_step(self) -> None:
        """Take a Newton step on the rows that are not zero, halved until the objective falls.

        The step is that of :eq:`manifold-newton`. If no length helps, the point stays where it is.
        """
        weights = self.point.weights[self._rows]
        used = np.flatnonzero(row_norms(weights, self._exponent) > 0.0)
        if len(used) == 0:
            return
        weights = weights[used]
        smooth = SmoothPart(weights, self._exponent)
        ridge, model = smooth.ridge(), self._known_model.part(used)
        if ridge is not None:
            ridge = ridge * weights.dtype.type(self.problem.alpha)
        settings = self.problem.settings
        factor = precondition(model, self._outputs, ridge, smooth.unknowns(), settings)
        block = self._known_block.part(used)
        point, rows = self.point, self._rows[used]
        found = newton_step(self.problem, block, factor, point, weights, smooth)
        if not found.slope < 0.0:  # no descent: rounding, or numbers that are not finite
            return
        # Near the solution a good step changes the objective by less than its rounding.
        before = point.value + self._penalty(weights)
        slack = 4.0 * float(np.finfo(weights.dtype).eps) * abs(before)

        def trial(length: float) -> Point | None:
            part = weights.dtype.type(length)
            straight = weights + part * found.weights
            reached = smooth.retract(straight)
            scores = point.scores + part * found.scores
            # Scores are linear along the straight step. Only rows that were stopped at a kink need
            # a product with their columns.
            if reached is not straight:
                held = np.flatnonzero(np.any(reached != straight, axis=1))
                scores += block.part(held).scores(reached[held] - straight[held])
            full = point.weights.copy()
            full[rows] = reached
            moved = self.problem.at(full, point.intercept + part * found.intercept, scores)
            enough = before + settings.armijo * length * found.slope + slack
            return moved if moved.value + self._penalty(reached) <= enough else None

        self.point = backtrack(trial, least=settings.shortest)[0] or point

    def _penalty(self, weights: np.ndarray) -> float:
        return float(self.problem.alpha or 0.0) * sum_of_norms(weights, self._exponent)
