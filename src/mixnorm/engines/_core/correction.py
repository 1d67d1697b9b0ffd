"""The corrective step: all chosen columns re-optimised together, from where they stood.

The objective is ``sum_i w_i loss(z_i, y_i) + alpha * penalty(W)`` with ``z = B^T W`` for the chosen
columns ``B`` (one per row) and a free intercept as the first row. This module has the steps, which
see the rows of the data through a few sums only; subclasses compute these.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mixnorm._array import Array
from mixnorm.engines._core.curvature import CurvatureFactor
from mixnorm.engines._core.lbfgs import History
from mixnorm.engines._core.orthant import Orthant
from mixnorm.engines.penalties import Penalty, Ridge
from mixnorm.losses import SmoothLoss

# With more columns than this, one curvature model serves all outputs: a model for each output would
# save steps, but cost more than these steps.
_COLUMNS_FOR_SHARED_MODEL = 512
# A step must lower the objective by this share of what its slope promises (Armijo's rule). A small
# one, as the whole quasi-Newton step is nearly always right.
_LEAST_GAIN_OF_STEP = 1e-4
# Lengths that a line search tries at most, and the range of the factor from each to the next.
_MOST_LENGTHS, _SHORTEST_CUT, _LONGEST_CUT = 20, 0.1, 0.5
# A step that ends because of rounding counts as converged if about this part of the objective is
# left to gain: a user can do nothing about the rest.
_ENOUGH_IN_SPITE_OF_ROUNDING = 1e-3
# Steps that a curvature model serves at least, within one correction and from one to the next.
_LEAST_AGE, _LEAST_AGE_AT_START = 4, 6


@dataclass(frozen=True)
class CorrectionProblem:
    """The loss, the targets and the penalty, which stay fixed while columns come and go."""

    loss: SmoothLoss
    target: Any
    weight: Array
    n_outputs: int
    alpha: float
    max_iter: int
    penalty: Penalty = field(default_factory=Ridge)

    @property
    def new_ridge(self) -> float:
        """The curvature of the penalty in weights that are zero."""
        return self.alpha * self.penalty.curvature_at_zero(self.n_outputs)

    @property
    def kink(self) -> float:
        """The magnitude that a gradient must exceed to move a weight from zero."""
        return self.alpha * self.penalty.kink


@dataclass(frozen=True)
class Outcome:
    """How a corrective step ended; ``gap`` estimates how far the objective can still fall."""

    iterations: int
    gap: float
    converged: bool

    def plus(self, iterations: int) -> Outcome:
        """Return this outcome with the iterations of earlier steps added."""
        return replace(self, iterations=self.iterations + iterations)


def shares_model(size: int) -> bool:
    """Tell whether one curvature model serves all outputs."""
    return size > _COLUMNS_FOR_SHARED_MODEL


class Correction:
    """The chosen columns and their weights; a subclass has the rows of the data.

    A subclass computes the loss and its gradient (``rescore``, ``_loss_gradient``, ``_trial``,
    ``_accept``) and the curvature model of the chosen columns (``_make_factor``).
    """

    problem: CorrectionProblem
    #: The row of the first column: those before are of the intercept.
    first: int
    #: Number of rows: of the intercept and of all columns.
    size: int
    has_intercept: bool
    weights: Any
    #: The rows of each atom.
    blocks: dict[Any, slice]
    #: The weighted mean loss.
    value: float
    #: Gradients below this are no larger than the rounding errors of the first residual.
    noise: float
    _xp: Any
    _options: dict[str, Any]
    _epsilon: float
    _offsets: Any
    _factor: CurvatureFactor | None = None
    _age: int = 0

    def rescore(self) -> None:
        """Compute the loss from the weights, and what its gradient takes."""
        raise NotImplementedError

    def _loss_gradient(self) -> Any:
        """Return the gradient of the loss in all weights (:eq:`column-gradient`)."""
        raise NotImplementedError

    def _trial(self, step: Array, straight: bool) -> Callable[[Any, Any, float], tuple[float, Any]]:
        """Return a function for the points of a line search against ``step``.

        It takes the weights, the move to them and the length of the step, and returns the loss
        there and what ``_accept`` takes. A path that is not ``straight`` bends at kinks.
        """
        raise NotImplementedError

    def _accept(self, found: Any) -> None:
        """Take over what a trial has computed."""
        raise NotImplementedError

    def bound_gains(self, atoms: Sequence[Any], bounds: Sequence[Any]) -> Any:
        """Return bounds of the gains of atoms of which only bounds of the gradients are known."""
        raise NotImplementedError

    def _places_without(self, atom: Any) -> dict[Any, slice]:
        """Return the rows of each other atom once those of ``atom`` are gone."""
        gone = self.blocks[atom]
        width = gone.stop - gone.start
        return {
            name: slice(part.start - width, part.stop - width) if part.start > gone.start else part
            for name, part in self.blocks.items()
            if name != atom
        }

    def _make_factor(self) -> CurvatureFactor:
        """Return a new curvature model of the chosen columns."""
        raise NotImplementedError

    def loss_per_error(self) -> float:
        """Return the loss divided by the sum of the magnitudes of the residual."""
        raise NotImplementedError

    def _reach(self, rows: Any) -> float:
        """Return the sum of half the ranges of columns; without an intercept, of magnitudes."""
        raise NotImplementedError

    @property
    def column_weights(self) -> Any:
        """The weights without those of the intercept."""
        return self.weights[self.first :, :]

    @property
    def objective(self) -> float:
        """The weighted mean loss plus the penalty."""
        return self.value + self._penalise(self.weights)

    def intercept(self) -> Any:
        """Return the intercept for columns that are not centred."""
        if not self.has_intercept:
            return self._xp.zeros((self.problem.n_outputs,), **self._options)
        # w (x - m) + b is w x + (b - w m).
        return self.weights[0, :] - self._offsets[1:] @ self.weights[1:, :]

    def start_from(self, intercept: Array) -> None:
        """Set the intercept, which is given for columns that are not centred."""
        if self.has_intercept:
            shift = intercept - self.intercept()
            first = (self.weights[0, :] + shift)[None, :]
            self.weights = self._xp.concat([first, self.column_weights])
        self.rescore()

    def promised_drop(self, rows: Array, gradient: float) -> float:
        """Return a lower bound on the fall of the objective when new ``rows`` come in.

        A step of length ``s`` against the signs of the gradient ``G`` moves no score by more than
        ``s m``, where ``m`` adds up the largest magnitudes of the new columns. With an intercept,
        which takes up constants, ``m`` adds up half their ranges. The bound minimises
        ``-s ||G||_1 + s^2 (b m^2 + alpha width c)``, where ``b`` is of the loss and ``c`` of the
        penalty (``k`` for a ridge). For scaled columns, a soft-max loss and no penalty it is at
        least ``||G||_1^2 / 4`` (:eq:`round-drop`). ``gradient`` is ``||G||_1``, less what the kinks
        of the penalty take from it.
        """
        problem, reach = self.problem, self._reach(rows)
        bend = problem.loss.max_norm_smoothness(problem.n_outputs) * reach * reach
        smoothness = problem.penalty.max_norm_smoothness(problem.n_outputs)
        bend += problem.alpha * smoothness * rows.shape[0]
        return gradient * gradient / (4.0 * bend) if bend > 0.0 else 0.0

    def correct(self, tol: float, scale: float, goal: float = math.inf) -> Outcome:
        """Minimise over all weights until about ``tol * max(objective, scale)`` is left to gain.

        Iterations go on at least until the objective is at most ``goal``, unless rounding prevents
        it. Steps are those of L-BFGS around the curvature model (:eq:`curvature-blocks`).
        """
        if self.size == 0:
            return Outcome(0, 0.0, True)
        precision = 2.0 * self._epsilon
        # A model costs about as much as ``size`` steps, so that larger ones serve longer.
        self._refresh_if(max(_LEAST_AGE_AT_START, self.size // 2))
        gradient, orthant = self._slopes()
        history = self._history(orthant)
        objective, stalled = self.objective, False
        for iteration in range(self.problem.max_iter + 1):
            # With B the inverse Hessian of the model, the step is B g, the slope is g' B g, and
            # half of it is what the quadratic model has left to gain.
            step, slope = self._step(history, gradient, orthant)
            gap = 0.5 * slope
            enough = tol * max(objective, scale) if objective <= goal else 0.0
            last = iteration == self.problem.max_iter
            if gap <= max(enough, precision * objective):
                if last or not self._doubts():
                    return Outcome(iteration, max(gap, 0.0), True)
                history = self._history(orthant)
                continue
            if last:
                break
            moved = self._line_search(step, slope, objective, orthant)
            self._age += 1
            # Even a new model finds no descent: only rounding is left.
            if moved is None and stalled:
                enough = max(tol, _ENOUGH_IN_SPITE_OF_ROUNDING) * max(objective, scale)
                return Outcome(iteration, gap, gap <= enough)
            stalled = moved is None
            objective, previous, before = self.objective, gradient, orthant
            gradient, orthant = self._slopes()
            # A step that failed is a reason to doubt the model. Past steps are of no use around a
            # new model, or for other free weights: their changes were measured along other
            # directions.
            fresh = self._refresh_if(1 if stalled else max(_LEAST_AGE, self.size))
            if fresh or (orthant is not None and not orthant.same_as(before)):
                history = self._history(orthant)
            elif moved is not None:
                change = gradient - previous
                # Weights that stay at zero do not move, whatever their gradient does.
                if orthant is not None:
                    change = self._xp.where(orthant.free, change, self._xp.zeros_like(change))
                history.record(self._xp.reshape(moved, (-1,)), self._xp.reshape(change, (-1,)))
        return Outcome(self.problem.max_iter, gap, False)

    def gradient(self) -> Any:
        """Return the gradient of the loss and the smooth part of the penalty in the weights.

        That of the loss is :eq:`column-gradient`; the intercept has no penalty.
        """
        gradient, problem = self._loss_gradient(), self.problem
        gradient[self.first :, :] += problem.alpha * problem.penalty.gradient(self.column_weights)
        return gradient

    def slope(self) -> Any:
        """Return the gradient of the objective; at kinks, along directions in which it falls."""
        gradient, orthant = self._slopes()
        return gradient if orthant is None else orthant.slope

    def removal_costs(self) -> dict[Any, float]:
        """Return for each atom how far the objective would rise without it (:eq:`removal-cost`)."""
        factor = self.curvature(fresh=True)
        return {
            atom: factor.removal_cost(self.weights, block) for atom, block in self.blocks.items()
        }

    def curvature(self, fresh: bool = False) -> CurvatureFactor:
        """Return the curvature model, rebuilt if it is missing, or with ``fresh`` if it is old."""
        self._refresh_if(1 if fresh else math.inf)
        return self._factor  # type: ignore[return-value]  # never None now

    def set_alpha(self, alpha: float) -> None:
        """Change the weight of the penalty; the weights of the columns are unchanged."""
        self.problem = replace(self.problem, alpha=alpha)
        if self._factor is not None:
            self._factor = copy.copy(self._factor)  # other supports may share it
            self._factor.set_ridge(self._ridge)

    def count_determined(self) -> float:
        """Return the number of weights that the data determine (:eq:`evidence-count`)."""
        problem, xp = self.problem, self._xp
        if problem.kink > 0.0:  # the penalty holds weights at zero
            count = float(xp.count_nonzero(self.column_weights))
        else:
            count = self.curvature().count_determined(self._ridge)
            if self.curvature().n_factors == 1:
                count *= problem.n_outputs
        # A constant added to all weights of a row changes nothing: one of them is not determined.
        if problem.loss.shift_invariant:
            count *= (problem.n_outputs - 1) / problem.n_outputs
        return count

    def forget_curvature(self) -> None:
        """Drop the curvature model, which costs less than extending it by many columns."""
        self._factor = None

    @property
    def _ridge(self) -> Any:
        """The curvature of the penalty in each row; by output too, where models are by output."""
        xp, problem, first = self._xp, self.problem, self.first
        if problem.penalty.constant_curvature:
            ridge = xp.full((self.size,), problem.new_ridge, **self._options)
            ridge[:first] = 0.0
            return ridge
        # Penalties of degree one bend by an amount that depends on the weights.
        bends = problem.alpha * problem.penalty.curvature(self.column_weights)
        free = xp.zeros((first, problem.n_outputs), **self._options)
        ridge = xp.concat([free, bends]).T
        return xp.mean(ridge, axis=0) if shares_model(self.size) else ridge

    def _penalise(self, weights: Array) -> float:
        """Return the penalty of some weights."""
        problem = self.problem
        # Zero times an overflow would be NaN: weights without a penalty may be very large.
        if problem.alpha == 0.0:
            return 0.0
        return problem.alpha * problem.penalty.value(weights[self.first :, :])

    def _refresh_if(self, age: float) -> bool:
        """Rebuild the curvature model if it is missing, or out of date after ``age`` steps."""
        constant = self.problem.loss.constant_curvature and self.problem.penalty.constant_curvature
        stale = self._age >= age and not constant
        if self._factor is not None and not stale:
            return False
        self._factor = self._make_factor()
        self._age = 0
        return True

    def _doubts(self) -> bool:
        """Rebuild an old curvature model before its estimate of the gap ends the step.

        Where the penalty is linear and the loss is flat, an old model may give a gap that is far
        too small. A penalty of squares is curved everywhere.
        """
        return self.problem.penalty.degree < 2 and self._refresh_if(1)

    def _slopes(self) -> tuple[Any, Orthant | None]:
        """Return the gradient and, for a penalty with kinks, the orthant for the next step."""
        gradient = self.gradient()
        if self.problem.kink == 0.0:
            return gradient, None
        kinks = self._xp.full((self.size, 1), self.problem.kink, **self._options)
        kinks[: self.first, :] = 0.0
        return gradient, Orthant(self.weights, gradient, kinks)

    def _step(
        self, history: History, gradient: Array, orthant: Orthant | None
    ) -> tuple[Any, float]:
        """Return the step to subtract, and the slope of the objective along it."""
        xp = self._xp
        # The penalty's kinks are part of the slope; without them the step would run into zero and
        # stop there, at no gain.
        slopes = gradient if orthant is None else orthant.slope
        flat = xp.reshape(slopes, (-1,))
        step = xp.reshape(history.direction(flat), gradient.shape)
        if orthant is not None:
            step = orthant.align(step)
        return step, float(flat @ xp.reshape(step, (-1,)))

    def _history(self, orthant: Orthant | None) -> History:
        """Return an empty history around the present curvature model."""
        xp, shape, factor = self._xp, self.weights.shape, self.curvature()
        mean = xp.full((shape[1],), 1.0 / shape[1], **self._options)
        if orthant is None:
            whole = None
        else:
            factor = factor.restrict(orthant.free.T)
            # A row with a weight that stays at zero cannot move by a constant.
            whole = xp.astype(xp.all(orthant.free, axis=1), self.weights.dtype)

        def solve(vector: Array) -> Any:
            step = factor.solve(xp.reshape(vector, shape))
            if self.problem.loss.shift_invariant:  # steps of mean zero over outputs lose nothing
                shift = step @ mean
                step -= (shift if whole is None else shift * whole)[:, None]
            return xp.reshape(step, (-1,))

        return History(solve)

    def _line_search(
        self, step: Array, slope: float, objective: float, orthant: Orthant | None
    ) -> Any | None:
        """Move against ``step`` until the objective falls enough; return the move, or None."""
        # Near the optimum a good step changes the objective by less than its rounding error.
        noise = 4.0 * self._epsilon * abs(objective)
        length, trial = 1.0, self._trial(step, orthant is None)
        for _ in range(_MOST_LENGTHS):
            move = -length * step
            weights = self.weights + move
            if orthant is not None:
                weights = orthant.land(weights)
                move = weights - self.weights
                # Weights that stopped at zero bend the path: the slope is that of the actual move.
                slope = max(0.0, -float(self._xp.sum(orthant.slope * move)) / length)
            value, found = trial(weights, move, length)
            reached = value + self._penalise(weights)
            if reached <= objective - _LEAST_GAIN_OF_STEP * length * slope + noise:
                self.weights, self.value = weights, value
                self._accept(found)
                self._settle()
                return move
            # The minimum of the parabola with this slope at zero and this value at ``length``, kept
            # within a range: a soft-max is flatter than a parabola far out.
            bend = reached - objective + length * slope
            wanted = 0.5 * slope * length * length / bend if bend > 0 else 0.5 * length
            length = min(max(wanted, _SHORTEST_CUT * length), _LONGEST_CUT * length)
        return None

    def _settle(self) -> None:
        """Shift each row by the constant that makes the penalty least; the loss does not change."""
        problem = self.problem
        if problem.loss.shift_invariant and problem.alpha > 0 and not problem.penalty.least_at_mean:
            weights = self.column_weights - problem.penalty.shift(self.column_weights)
            self.weights = self._xp.concat([self.weights[: self.first, :], weights])
