"""The corrective step: all chosen columns re-optimised together, from where they stood.

The objective is ``sum_i w_i loss(z_i, y_i) + alpha * penalty(W)`` with ``z = B^T W`` for the chosen
columns ``B`` (one per row of a growing buffer) and a free intercept as the first row.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace
from typing import Any

from mixnorm._array import Array, device_of, epsilon, namespace, tiny
from mixnorm.engines._core.curvature import CurvatureFactor
from mixnorm.engines._core.lbfgs import History
from mixnorm.engines._core.orthant import Orthant, shrunk
from mixnorm.engines.penalties import Penalty, Ridge
from mixnorm.losses import SmoothLoss
from mixnorm.pools import Curvature

# With more rows than this, one curvature model serves all outputs: the steps that one each would
# save cost less than the models.
_WIDE = 512


@dataclass(frozen=True)
class Problem:
    """What stays fixed while columns come and go."""

    loss: SmoothLoss
    target: Any
    weight: Any
    n_outputs: int
    alpha: float
    max_iter: int
    penalty: Penalty = field(default_factory=Ridge)

    @property
    def new_ridge(self) -> float:
        """Curvature of the penalty in weights that are zero."""
        return self.alpha * self.penalty.curvature_at_zero(self.n_outputs)

    @property
    def kink(self) -> float:
        """What a gradient must exceed to move a weight from zero."""
        return self.alpha * self.penalty.kink


@dataclass(frozen=True)
class Outcome:
    """How a corrective step ended: ``gap`` estimates what is left to gain."""

    iterations: int
    gap: float
    converged: bool

    def after(self, earlier: Outcome) -> Outcome:
        """Return this outcome with the iterations of an earlier step added."""
        return replace(self, iterations=self.iterations + earlier.iterations)


class Support:
    """The chosen columns, their weights, and the scores and residual these give."""

    def __init__(self, problem: Problem, fit_intercept: bool, capacity: int) -> None:
        self.problem = problem
        weight = problem.weight
        self._xp = xp = namespace(weight)
        self._options = {"dtype": weight.dtype, "device": device_of(weight)}
        self._epsilon, self._tiny = epsilon(weight), tiny(weight)
        n_samples, n_outputs = weight.shape[0], problem.n_outputs
        self._buffer = xp.empty((capacity + fit_intercept, n_samples), **self._options)
        self.size = int(fit_intercept)
        if fit_intercept:
            self._buffer[0, :] = 1.0
        self.has_intercept = fit_intercept
        self.weights = xp.zeros((self.size, n_outputs), **self._options)
        self.blocks: dict[Any, slice] = {}
        self._offsets = xp.zeros((self.size,), **self._options)
        self._factor: CurvatureFactor | None = None
        self._age = 0
        self._scanned: tuple[int, Any] | None = None
        self.rescore()
        #: Gradients below this are rounding errors of the empty model's residual.
        self.noise = 64.0 * self._epsilon * float(xp.sum(xp.abs(self.residual)))

    @property
    def design(self) -> Any:
        """The chosen columns, one per row."""
        return self._buffer[: self.size, :]

    @property
    def objective(self) -> float:
        """Weighted mean loss plus penalty."""
        return self.value + self._penalty(self.weights)

    def rescore(self) -> None:
        """Compute scores, loss and residual afresh from the weights."""
        xp, problem = self._xp, self.problem
        if self.size:
            scores = (self.weights.T @ self.design).T
        else:
            shape = (problem.n_outputs, problem.weight.shape[0])
            scores = xp.zeros(shape, **self._options).T
        self.scores = scores
        self.value, self.residual = problem.loss.value_and_residual(
            scores, problem.target, problem.weight
        )

    def centred(self, rows: Any) -> tuple[Any, Any]:
        """Return ``rows`` less their weighted means, and these; as they are without an intercept.

        A free intercept makes the two problems one, but a column whose mean is large beside its
        spread is nearly the intercept's, which the solver would have to tell apart.
        """
        if not self.has_intercept:
            return rows, self._xp.zeros((rows.shape[0],), **self._options)
        means = rows @ self.problem.weight
        return rows - means[:, None], means

    def centred_residual(self) -> Any:
        """Return the residual that any column has the same product with as its centred self.

        The intercept is solved to a tolerance only; what is left of its gradient, times a large
        mean, would pass for the gradient of a column.
        """
        if not self.has_intercept:
            return self.residual
        left = self._xp.sum(self.residual, axis=0)
        return self.residual - self.problem.weight[:, None] * left[None, :]

    def intercept(self) -> Any:
        """Return the intercept for columns that are not centred."""
        if not self.has_intercept:
            return self._xp.zeros((self.problem.n_outputs,), **self._options)
        return self.weights[0, :] - self._offsets[1:] @ self.weights[1:, :]

    def start_from(self, intercept: Any) -> None:
        """Set the intercept, given for columns that are not centred."""
        if self.has_intercept:
            shift = intercept - self.intercept()
            first = (self.weights[0, :] + shift)[None, :]
            self.weights = self._xp.concat([first, self.weights[1:, :]])
        self.rescore()

    def append(
        self, atom: Any, rows: Any, weights: Any | None = None, offset: Any | None = None
    ) -> None:
        """Add the columns of ``atom``, one per row of ``rows``.

        Their weights are zero if not given; ``offset`` is what was subtracted from them.
        """
        xp, start = self._xp, self.size
        stop = start + rows.shape[0]
        if stop > self._buffer.shape[0]:
            grown = xp.empty((max(stop, 3 * start // 2), self._buffer.shape[1]), **self._options)
            grown[:start, :] = self.design
            self._buffer = grown
        self._buffer[start:stop, :] = rows
        self.size = stop
        if start <= _WIDE < stop:
            self._factor = None
        if self._factor is not None:
            self._factor.extend(self.design, self.problem.new_ridge)
        self.blocks[atom] = slice(start, stop)
        if offset is None:
            offset = xp.zeros((rows.shape[0],), **self._options)
        self._offsets = xp.concat([self._offsets, offset])
        if weights is None:
            weights = xp.zeros((rows.shape[0], self.problem.n_outputs), **self._options)
        self.weights = xp.concat([self.weights, weights], axis=0)

    def columns(self, atom: Any) -> tuple[Any, Any]:
        """Return the centred columns of a chosen atom, and what was subtracted from them."""
        block = self.blocks[atom]
        return self._buffer[block, :], self._offsets[block]

    def branch(self, *, own_room: bool = False) -> Support:
        """Return a support to go on with; this one stays as it is.

        Both share the chosen columns and the room for more: only one may grow, unless the other
        has ``own_room``.
        """
        other = copy.copy(self)
        other.blocks = dict(self.blocks)
        other._factor = copy.copy(self._factor)
        if own_room:
            other._buffer = self._xp.empty(self._buffer.shape, **self._options)
            other._buffer[: self.size, :] = self.design
        return other

    def without(self, atom: Any) -> Support:
        """Return a copy that lacks ``atom``; the other weights stand as they were."""
        other = copy.copy(self)
        xp, gone = self._xp, self.blocks[atom]
        width = gone.stop - gone.start
        other._buffer = xp.empty(self._buffer.shape, **self._options)
        other._buffer[: gone.start, :] = self._buffer[: gone.start, :]
        other._buffer[gone.start : self.size - width, :] = self._buffer[gone.stop : self.size, :]
        other.size = self.size - width
        other.weights = xp.concat([self.weights[: gone.start, :], self.weights[gone.stop :, :]])
        other._offsets = xp.concat([self._offsets[: gone.start], self._offsets[gone.stop :]])
        other.blocks = {
            name: slice(part.start - width, part.stop - width) if part.start > gone.start else part
            for name, part in self.blocks.items()
            if name != atom
        }
        other._factor = None
        other.rescore()
        return other

    def promised_drop(self, rows: Any, gradient: float) -> float:
        """Return how far the objective falls at least when new ``rows`` come in at their best.

        The step of length ``s`` against the signs of the gradient moves no score by more than
        ``s m``, where ``m`` adds up the largest magnitudes of the new columns; with an intercept,
        which takes up a constant, half their ranges. Minimising the upper bound
        ``-s ||G||_1 + s^2 (b m^2 + alpha width c)``, with ``c`` of the penalty (``k`` for a ridge),
        gives the drop; for scaled columns, a soft-max loss and no penalty it is at least the
        ``||G||_1^2 / 4`` of Theorem 2. The gradient is less what kinks of the penalty take.
        """
        problem, xp = self.problem, self._xp
        used = xp.where(problem.weight > 0, rows, xp.zeros_like(rows[:, :1]))
        high, low = xp.max(used, axis=1), xp.min(used, axis=1)
        if not self.has_intercept:
            high, low = xp.maximum(xp.abs(high), xp.abs(low)), xp.zeros_like(low)
            high = 2.0 * high
        reach = 0.5 * float(xp.sum(high - low))
        bend = problem.loss.max_norm_smoothness(problem.n_outputs) * reach * reach
        smoothness = problem.penalty.max_norm_smoothness(problem.n_outputs)
        bend += problem.alpha * smoothness * rows.shape[0]
        return gradient * gradient / (4.0 * bend) if bend > 0.0 else 0.0

    def correct(self, tol: float, scale: float, goal: float = math.inf) -> Outcome:
        """Minimise over all weights until about ``tol * max(objective, scale)`` is left to gain.

        The objective falls to ``goal`` first, unless rounding forbids.
        """
        if self.size == 0:
            return Outcome(0, 0.0, True)
        precision = 2.0 * self._epsilon
        self._refresh_if(max(6, self.size // 2))
        gradient, orthant = self._slopes()
        history = self._history(orthant)
        objective, stalled = self.objective, False
        for iteration in range(self.problem.max_iter + 1):
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
            if moved is None and stalled:  # even a fresh model finds no descent: rounding rules
                return Outcome(iteration, gap, gap <= max(tol, 1e-3) * max(objective, scale))
            stalled = moved is None
            objective, previous, before = self.objective, gradient, orthant
            gradient, orthant = self._slopes()
            fresh = self._refresh_if(1 if stalled else max(4, self.size))
            if fresh or (orthant is not None and not orthant.same_as(before)):
                history = self._history(orthant)
            elif moved is not None:
                self._remember(history, moved, gradient - previous, orthant)
        return Outcome(self.problem.max_iter, gap, False)

    def gradient(self) -> Any:
        """Return the gradient of the loss and the smooth part of the penalty in the weights."""
        gradient, first = self.design @ self.residual, int(self.has_intercept)
        gradient[first:, :] += self.problem.alpha * self.problem.penalty.gradient(
            self.weights[first:, :]
        )
        return gradient

    def slope(self) -> Any:
        """Return the gradient of the objective; with kinks, in directions that weights can go."""
        gradient, orthant = self._slopes()
        return gradient if orthant is None else orthant.slope

    def slope_at_zero(self, rows: Any) -> Any:
        """Return the same for weights of new ``rows``, which are zero."""
        gradient, kink = rows @ self.residual, self.problem.kink
        return shrunk(gradient, kink) if kink > 0.0 else gradient

    def removal_costs(self) -> dict[Any, float]:
        """Return for each atom the predicted rise of the objective if it were dropped."""
        factor = self.curvature(fresh=True)
        return {
            atom: factor.removal_cost(self.weights, block) for atom, block in self.blocks.items()
        }

    def curvature(self, fresh: bool = False) -> CurvatureFactor:
        """Return the curvature model, rebuilt if it is missing or if ``fresh`` is asked for."""
        self._refresh_if(1 if fresh else math.inf)
        return self._factor  # type: ignore[return-value]  # never None now

    def set_alpha(self, alpha: float) -> None:
        """Change the weight of the penalty; the weights stay as they are."""
        self.problem = replace(self.problem, alpha=alpha)
        if self._factor is not None:
            self._factor = copy.copy(self._factor)  # which other supports may share
            self._factor.set_ridge(self._model_ridge)

    def penalty_value(self) -> float:
        """Return the penalty of the weights, without its own weight ``alpha``."""
        return self.problem.penalty.value(self.weights[int(self.has_intercept) :, :])

    def determined(self) -> float:
        """Return the number of weights that the data determine (:eq:`evidence-count`)."""
        problem, xp = self.problem, self._xp
        first = int(self.has_intercept)
        if problem.kink > 0.0:  # weights that are zero are held there
            weights = self.weights[first:, :]
            count = float(xp.sum(xp.astype(weights != 0.0, weights.dtype)))
        else:
            count = self.curvature().determined(self._model_ridge)
            if self.curvature().n_factors == 1:
                count *= problem.n_outputs
        if problem.loss.shift_invariant:  # of the weights of a row, all but one count
            count *= (problem.n_outputs - 1) / problem.n_outputs
        return count

    def scan_curvature(self) -> Curvature:
        """Return what a pool needs to tell the gains of Newton steps on its atoms.

        The second derivatives are those of the model when it was last twice as small or less: they
        change slowly, and a pool that has seen them need not go over its columns again.
        """
        problem, size = self.problem, len(self.blocks)
        if self._scanned is None or not self._scanned[0] <= size < 2 * max(1, self._scanned[0]):
            weights = problem.loss.curvature(self.residual, problem.target, problem.weight)
            self._scanned = (size, weights)
        return Curvature(
            weights=self._scanned[1],
            samples=problem.weight,
            loss_per_error=self.loss_per_error(),
            ridge=problem.new_ridge,
            intercept=self.has_intercept,
        )

    def loss_per_error(self) -> float:
        """Return the loss over the sum of all magnitudes of the residual."""
        return self.value / (float(self._xp.sum(self._xp.abs(self.residual))) + self._tiny)

    def forget_curvature(self) -> None:
        """Have the curvature model made anew when needed, as suits many columns to come at once."""
        self._factor = None

    @property
    def _ridge(self) -> Any:
        """Curvature of the penalty in each row, or in each output and row."""
        xp, problem, first = self._xp, self.problem, int(self.has_intercept)
        if problem.penalty.constant_curvature:
            ridge = xp.full((self.size,), problem.new_ridge, **self._options)
            ridge[:first] = 0.0
            return ridge
        bends = problem.alpha * problem.penalty.curvature(self.weights[first:, :])
        free = xp.zeros((first, problem.n_outputs), **self._options)
        return xp.concat([free, bends]).T

    @property
    def _model_ridge(self) -> Any:
        """The same for the curvature model, which may be one for all outputs."""
        ridge = self._ridge
        wide = self.size > _WIDE and ridge.ndim == 2
        return self._xp.mean(ridge, axis=0) if wide else ridge

    def _penalty(self, weights: Any) -> float:
        problem = self.problem
        if problem.alpha == 0.0:  # weights may be as large as they like
            return 0.0
        return problem.alpha * problem.penalty.value(weights[int(self.has_intercept) :, :])

    def _refresh_if(self, age: float) -> bool:
        """Rebuild the curvature model if it is missing, or if ``age`` steps old and changing."""
        loss = self.problem.loss
        constant = loss.constant_curvature and self.problem.penalty.constant_curvature
        stale = self._age >= age and not constant
        if self._factor is not None and not stale:
            return False
        curvature = loss.curvature(self.residual, self.problem.target, self.problem.weight)
        if self.size > _WIDE:
            curvature = self._xp.mean(curvature, axis=1, keepdims=True)
        self._factor = CurvatureFactor(self.design, curvature, self._model_ridge)
        self._age = 0
        return True

    def _doubts(self) -> bool:
        """Rebuild an old curvature model before its word on what is left to gain is taken.

        Where the penalty is linear and the loss flat, it may say far too little. Squares bend
        everywhere, and need no second look.
        """
        return self.problem.penalty.degree < 2 and self._refresh_if(1)

    def _slopes(self) -> tuple[Any, Orthant | None]:
        """Return the gradient and, for a penalty with kinks, the orthant for the next step."""
        gradient = self.gradient()
        if self.problem.kink == 0.0:
            return gradient, None
        kinks = self._xp.full((self.size, 1), self.problem.kink, **self._options)
        kinks[: int(self.has_intercept), :] = 0.0
        return gradient, Orthant(self.weights, gradient, kinks)

    def _step(
        self, history: History, gradient: Array, orthant: Orthant | None
    ) -> tuple[Any, float]:
        """Return the step to subtract, and how steeply the objective falls along it."""
        xp = self._xp
        slopes = gradient if orthant is None else orthant.slope
        flat = xp.reshape(slopes, (-1,))
        direction = history.direction(flat)
        step = xp.reshape(direction, gradient.shape)
        if orthant is not None:
            step = orthant.aligned(step)
            direction = xp.reshape(step, (-1,))
        return step, float(flat @ direction)

    def _remember(self, history: History, moved: Any, change: Any, orthant: Orthant | None) -> None:
        """Tell the history how the gradient changed along a step; only free weights count."""
        xp = self._xp
        if orthant is not None:
            change = xp.where(orthant.free, change, xp.zeros_like(change))
        history.record(xp.reshape(moved, (-1,)), xp.reshape(change, (-1,)))

    def _history(self, orthant: Orthant | None) -> History:
        xp, shape, factor = self._xp, self.weights.shape, self.curvature()
        mean = xp.full((shape[1],), 1.0 / shape[1], **self._options)
        if orthant is None:
            whole = None
        else:
            factor = factor.restricted(orthant.free.T)
            # A row with a weight that stays at zero cannot move by a constant.
            whole = xp.astype(xp.all(orthant.free, axis=1), self.weights.dtype)

        def solve(vector: Any) -> Any:
            step = factor.solve(xp.reshape(vector, shape))
            if self.problem.loss.shift_invariant:  # steps of mean zero over outputs lose nothing
                shift = step @ mean
                step -= (shift if whole is None else shift * whole)[:, None]
            return xp.reshape(step, (-1,))

        return History(solve)

    def _line_search(
        self, step: Any, slope: float, objective: float, orthant: Orthant | None
    ) -> Any | None:
        """Move against ``step`` as far as the objective falls enough; return the move, or None."""
        problem = self.problem
        noise = 4.0 * self._epsilon * abs(objective)
        length, along = 1.0, None
        for _ in range(20):
            move = -length * step
            weights = self.weights + move
            if orthant is not None:
                weights = orthant.landed(weights)
                move = weights - self.weights
                slope = max(0.0, -float(self._xp.sum(orthant.slope * move)) / length)
            if along is None or orthant is not None:  # else the scores move in proportion
                along = (step.T @ self.design if orthant is None else move.T @ self.design).T
            scores = along * (-length if orthant is None else 1.0)
            scores += self.scores
            value, residual = problem.loss.value_and_residual(
                scores, problem.target, problem.weight
            )
            reached = value + self._penalty(weights)
            if reached <= objective - 1e-4 * length * slope + noise:
                self.weights, self.scores = weights, scores
                self.value, self.residual = value, residual
                self._settle()
                return move
            bend = reached - objective + length * slope
            wanted = 0.5 * slope * length * length / bend if bend > 0 else 0.5 * length
            length = min(max(wanted, 0.1 * length), 0.5 * length)
        return None

    def _settle(self) -> None:
        """Subtract from each row the constant that costs least, which the loss does not see."""
        problem = self.problem
        if problem.loss.shift_invariant and problem.alpha > 0 and not problem.penalty.least_at_mean:
            first = int(self.has_intercept)
            weights = self.weights[first:, :]
            weights = weights - problem.penalty.shift(weights)
            self.weights = self._xp.concat([self.weights[:first, :], weights])
