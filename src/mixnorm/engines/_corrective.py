"""The corrective step: all chosen columns re-optimised together, from where they stood.

The objective is ``sum_i w_i loss(z_i, y_i) + alpha * ||W||^2`` with ``z = B^T W`` for the chosen
columns ``B`` (one per row of a growing buffer) and a free intercept as the first row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mixnorm._array import device_of, epsilon, namespace
from mixnorm.engines._curvature import CurvatureFactor
from mixnorm.engines._lbfgs import History
from mixnorm.losses import Loss


@dataclass(frozen=True)
class Problem:
    """What stays fixed while columns come and go."""

    loss: Loss
    target: Any
    weight: Any
    n_outputs: int
    alpha: float
    max_iter: int


@dataclass(frozen=True)
class Outcome:
    """How a corrective step ended: ``gap`` estimates what is left to gain."""

    iterations: int
    gap: float
    converged: bool


class Support:
    """The chosen columns, their weights, and the scores and residual these give."""

    def __init__(self, problem: Problem, fit_intercept: bool, capacity: int) -> None:
        self.problem = problem
        weight = problem.weight
        self._xp = xp = namespace(weight)
        self._options = {"dtype": weight.dtype, "device": device_of(weight)}
        self._epsilon = epsilon(weight)
        n_samples, n_outputs = weight.shape[0], problem.n_outputs
        self._buffer = xp.empty((capacity + fit_intercept, n_samples), **self._options)
        self._ridges = xp.full((capacity + fit_intercept,), 2.0 * problem.alpha, **self._options)
        self.size = int(fit_intercept)
        if fit_intercept:
            self._buffer[0, :] = 1.0
            self._ridges[0] = 0.0
        self.has_intercept = fit_intercept
        self.weights = xp.zeros((self.size, n_outputs), **self._options)
        self.blocks: dict[Any, slice] = {}
        self._offsets = xp.zeros((self.size,), **self._options)
        self._factor: CurvatureFactor | None = None
        self._age = 0
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
            more = xp.full((stop,), 2.0 * self.problem.alpha, **self._options)
            self._ridges = xp.concat([self._ridges, more])
        self._buffer[start:stop, :] = rows
        self.size = stop
        if self._factor is not None:
            self._factor.extend(self.design, 2.0 * self.problem.alpha)
        self.blocks[atom] = slice(start, stop)
        if offset is None:
            offset = xp.zeros((rows.shape[0],), **self._options)
        self._offsets = xp.concat([self._offsets, offset])
        if weights is None:
            weights = xp.zeros((rows.shape[0], self.problem.n_outputs), **self._options)
        self.weights = xp.concat([self.weights, weights], axis=0)

    def without(self, atom: Any) -> Support:
        """Return a copy that lacks ``atom``; the other weights stand as they were."""
        other = Support.__new__(Support)
        other.__dict__.update(self.__dict__)
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
        ``-s ||G||_1 + s^2 (b m^2 + alpha width k)`` gives the drop; for scaled columns, a soft-max
        loss and no ridge it is at least the ``||G||_1^2 / 4`` of Theorem 2.
        """
        problem, xp = self.problem, self._xp
        used = xp.where(problem.weight > 0, rows, xp.zeros_like(rows[:, :1]))
        high, low = xp.max(used, axis=1), xp.min(used, axis=1)
        if not self.has_intercept:
            high, low = xp.maximum(xp.abs(high), xp.abs(low)), xp.zeros_like(low)
            high = 2.0 * high
        reach = 0.5 * float(xp.sum(high - low))
        bend = problem.loss.max_norm_smoothness(problem.n_outputs) * reach * reach
        bend += problem.alpha * problem.n_outputs * rows.shape[0]
        return gradient * gradient / (4.0 * bend) if bend > 0.0 else 0.0

    def correct(self, tol: float, scale: float, drop: float = 0.0) -> Outcome:
        """Minimise over all weights until about ``tol * max(objective, scale)`` is left to gain.

        The objective falls by at least ``drop`` first, unless rounding forbids.
        """
        if self.size == 0:
            return Outcome(0, 0.0, True)
        precision = 2.0 * self._epsilon
        self._refresh_if(max(6, self.size // 2))
        history, gradient = self._history(), self.gradient()
        objective, stalled = self.objective, False
        goal = objective - drop
        for iteration in range(self.problem.max_iter + 1):
            flat = self._xp.reshape(gradient, (-1,))
            direction = history.direction(flat)
            slope = float(flat @ direction)
            gap = 0.5 * slope
            enough = tol * max(objective, scale) if objective <= goal else 0.0
            if gap <= max(enough, precision * objective):
                return Outcome(iteration, max(gap, 0.0), True)
            if iteration == self.problem.max_iter:
                break
            step = self._xp.reshape(direction, gradient.shape)
            length = self._line_search(step, slope, objective)
            self._age += 1
            if length == 0.0 and stalled:  # even a fresh model finds no descent: rounding rules
                return Outcome(iteration, gap, gap <= max(tol, 1e-3) * max(objective, scale))
            stalled = length == 0.0
            objective, previous, gradient = self.objective, gradient, self.gradient()
            if self._refresh_if(1 if stalled else max(4, self.size)):
                history = self._history()
            else:
                history.record(-length * direction, self._xp.reshape(gradient - previous, (-1,)))
        return Outcome(self.problem.max_iter, gap, False)

    def gradient(self) -> Any:
        """Return the gradient of the objective in the weights."""
        gradient = self.design @ self.residual
        gradient += self._ridge[:, None] * self.weights
        return gradient

    def removal_costs(self) -> dict[Any, float]:
        """Return for each atom the predicted rise of the objective if it were dropped."""
        factor = self.curvature(fresh=True)
        return {
            atom: factor.removal_cost(self.weights, block) for atom, block in self.blocks.items()
        }

    def curvature(self, fresh: bool = False) -> CurvatureFactor:
        """Return the curvature model, rebuilt if it is missing or if ``fresh`` is asked for."""
        self._refresh_if(1 if fresh else math.inf)
        factor: CurvatureFactor = self._factor  # type: ignore[assignment]  # never None now
        return factor

    @property
    def _ridge(self) -> Any:
        """Second derivative of the penalty in each row's weights."""
        return self._ridges[: self.size]

    def _penalty(self, weights: Any) -> float:
        part = self._xp.reshape(weights[int(self.has_intercept) :, :], (-1,))
        return self.problem.alpha * float(part @ part)

    def _refresh_if(self, age: float) -> bool:
        """Rebuild the curvature model if it is missing, or if ``age`` steps old and changing."""
        loss = self.problem.loss
        stale = self._age >= age and not loss.constant_curvature
        if self._factor is not None and not stale:
            return False
        curvature = loss.curvature(self.residual, self.problem.target, self.problem.weight)
        self._factor = CurvatureFactor(self.design, curvature, self._ridge)
        self._age = 0
        return True

    def _history(self) -> History:
        xp, shape, factor = self._xp, self.weights.shape, self.curvature()
        shift_invariant = self.problem.loss.shift_invariant
        mean = xp.full((shape[1],), 1.0 / shape[1], **self._options)

        def solve(vector: Any) -> Any:
            step = factor.solve(xp.reshape(vector, shape))
            if shift_invariant:  # weights that sum to zero over outputs lose nothing
                step -= (step @ mean)[:, None]
            return xp.reshape(step, (-1,))

        return History(solve)

    def _line_search(self, step: Any, slope: float, objective: float) -> float:
        """Move against ``step`` as far as the objective falls enough; return the length, or 0."""
        problem = self.problem
        noise = 4.0 * self._epsilon * abs(objective)
        length = 1.0
        for _ in range(20):
            scores = ((-length * step).T @ self.design).T  # again after a rare failure: less memory
            scores += self.scores
            value, residual = problem.loss.value_and_residual(
                scores, problem.target, problem.weight
            )
            weights = self.weights - length * step
            reached = value + self._penalty(weights)
            if reached <= objective - 1e-4 * length * slope + noise:
                self.weights, self.scores = weights, scores
                self.value, self.residual = value, residual
                return length
            bend = reached - objective + length * slope
            wanted = 0.5 * slope * length * length / bend if bend > 0 else 0.5 * length
            length = min(max(wanted, 0.1 * length), 0.5 * length)
        return 0.0
