r"""An interior-point method for duals that are parabolas with a kink, between bounds.

The dual is :math:`g(\alpha) + \sum_i c_i \alpha_i + \frac12 r_i \alpha_i^2 + k_i |\alpha_i|` with
bounds on every entry. Where there is a kink, an entry is the difference of two variables that are
not negative. Steps are Mehrotra's: one system, with two right-hand sides (:eq:`interior-step`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import lapack

from mixnorm.engines._core.line_search import backtrack, room
from mixnorm.engines.dual.newton import solve_semidefinite
from mixnorm.engines.dual.problem import DualPoint, DualProblem, DualSteps
from mixnorm.engines.dual.settings import DualSettings
from mixnorm.losses import BoxDual

# A rise of the value by less than this share is rounding.
_ROUNDING_OF_BARRIER = 1e-13
# The first multipliers share the gap, or this part of the objective if the gap is smaller: positive
# multipliers are what a step can start from.
_LEAST_SHARE_OF_GAP = 1e-8

# Steps of the variables, and of the multipliers of their lower and upper bounds.
_Step = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class _SplitVariables:
    """Variables with their bounds and the multipliers of these."""

    x: np.ndarray
    low: np.ndarray
    high: np.ndarray
    under: np.ndarray  # multipliers of the lower bounds, zero where there is none
    over: np.ndarray

    def below(self) -> np.ndarray:
        return np.asarray(self.x - self.low)

    def above(self) -> np.ndarray:
        return np.asarray(self.high - self.x)

    def curvature(self) -> np.ndarray:
        """Return what the multipliers add to the diagonal (:eq:`interior-step`)."""
        return np.asarray(self.under / self.below() + self.over / self.above())

    def mean(self) -> float:
        """Return the mean of the products of multipliers and distances to bounds."""
        lower, upper = np.isfinite(self.low), np.isfinite(self.high)
        total = float(self.under[lower] @ self.below()[lower])
        total += float(self.over[upper] @ self.above()[upper])
        return total / self.n_bounds()

    def n_bounds(self) -> int:
        return max(1, int(np.isfinite(self.low).sum() + np.isfinite(self.high).sum()))

    def barrier(self) -> float:
        """Return minus the logarithms of all distances to bounds."""
        lower, upper = np.isfinite(self.low), np.isfinite(self.high)
        return -float(np.log(self.below()[lower]).sum() + np.log(self.above()[upper]).sum())

    def move(self, moves: _Step, lengths: tuple[float, float]) -> _SplitVariables:
        dx, under, over = moves
        t, s = lengths
        return replace(
            self, x=self.x + t * dx, under=self.under + s * under, over=self.over + s * over
        )


class DualInteriorPoint(DualSteps):
    """Steps inside the bounds.

    Parameters
    ----------
    problem : DualProblem
        The dual, of a loss with ``box_dual``.
    state : DualPoint
        The start, which is moved inside the bounds.
    """

    patience = 12  # the gap may grow for some steps before it falls

    def __init__(self, problem: DualProblem, state: DualPoint) -> None:
        super().__init__(problem)
        loss: Any = problem.loss
        form: BoxDual = loss.box_dual(problem.target, problem.weight)
        # The dual variable of the loss is minus alpha.
        self.c, self.r = -form.slope[:, 0], form.curvature[:, 0]
        low, high, kink = -form.high[:, 0], -form.low[:, 0], form.kink[:, 0]
        split = np.flatnonzero((kink > 0.0) & (low < 0.0) & (high > 0.0))
        whole = np.arange(len(low))
        # The entry and the sign of every variable; those of the second part are negated.
        self.entry = np.concatenate([whole, split])
        self.sign = np.concatenate([np.ones(len(whole)), -np.ones(len(split))])
        first = low.copy()
        first[split] = 0.0
        low_x = np.concatenate([first, np.zeros(len(split))])
        high_x = np.concatenate([high, -low[split]])
        # The kink of an entry that cannot change its sign is a slope: no second variable is needed.
        one_sided = np.where(low >= 0.0, kink, -kink)
        self.kink = kink
        self.k = np.concatenate([np.where(np.isin(whole, split), kink, one_sided), kink[split]])
        x = np.concatenate([state.alpha, np.maximum(0.0, -state.alpha[split])])
        x[split] = np.maximum(0.0, state.alpha[split])
        self.parts = place_inside(x, low_x, high_x, state, problem.settings)

    def join(self, x: np.ndarray) -> np.ndarray:
        """Return the entries, which are variables or differences of two."""
        found = np.zeros(len(self.c))
        np.add.at(found, self.entry, self.sign * x)
        return found

    # --- steps

    def step(self, state: DualPoint) -> tuple[DualPoint, int]:
        """Take one step from where the last one ended."""
        # ``state`` may be the best point so far; steps go on from their own variables.
        alpha, taken = self.join(self.parts.x), 0
        if not np.array_equal(alpha, state.alpha):
            state, taken = self.problem.evaluate(alpha), 1
        H = self.problem.contraction.hessian(alpha, state.V)
        slope = self.sign * (state.scores + self.c + self.r * alpha)[self.entry] + self.k
        system = _SplitSystem(H, self.r, self.parts.curvature(), self.entry, self.sign)
        mean = self.parts.mean()
        # The predictor aims at products of zero. How far it gets says how much centring is needed:
        # hardly any if it can go all the way (Mehrotra's rule, the cube of the share left).
        plain = self._solve_step(system, slope, 0.0, None)
        ahead = self.parts.move(plain, self._limit_step(plain)).mean()
        aim = mean * min(1.0, ahead / mean) ** 3 if mean > 0.0 else 0.0
        # Products must not vanish before the rest of the gap does.
        rest = state.gap / self.parts.n_bounds() - mean
        aim = max(aim, min(mean, self.problem.settings.share_of_rest * rest))
        moves = self._solve_step(system, slope, aim, plain)
        trial, tries = self._try_step(state, moves, aim, 1.0), 1
        if trial is None:
            # Without the correction by the plain step, this direction surely descends.
            aim = max(aim, self.problem.settings.centring * mean)
            moves = self._solve_step(system, slope, aim, None)
            trial, more = backtrack(
                lambda length: self._try_step(state, moves, aim, length),
                least=self.problem.settings.shortest_centred_step,
            )
            tries += more
        return (state if trial is None else trial), taken + tries

    def _try_step(
        self, state: DualPoint, moves: _Step, aim: float, part: float
    ) -> DualPoint | None:
        """Move by a part of a step and return the new point, or None if it is not better."""
        primal, multipliers = self._limit_step(moves)
        ahead = self.parts.move(moves, (part * primal, multipliers))
        trial = self.problem.evaluate(self.join(ahead.x))
        before = state.value + aim * self.parts.barrier()
        after = trial.value + aim * ahead.barrier()
        # Both variables of an entry pay for the kink; the value has only their difference.
        kinks = float(self.kink @ (np.abs(trial.alpha) - np.abs(state.alpha)))
        spare = float(self.k @ (ahead.x - self.parts.x)) - kinks
        if after + spare > before + _ROUNDING_OF_BARRIER * abs(before):
            return None
        self.parts = ahead
        return trial

    def _solve_step(
        self, system: _SplitSystem, slope: np.ndarray, mean: float, plain: _Step | None
    ) -> _Step:
        """Return the steps of variables and multipliers towards products that are ``mean``."""
        parts = self.parts
        below, above = parts.below(), parts.above()
        lower, upper = np.isfinite(below), np.isfinite(above)
        left, right = mean * lower, mean * upper
        # The system is linear in products that are not: the corrector takes off the product of the
        # predictor's two steps, which the linear system leaves out.
        if plain is not None:
            dx, under, over = plain
            left, right = left - dx * under, right + dx * over
        pull, push = left / below, right / above
        dx = system.solve(-slope + pull - push)
        under = np.where(lower, pull - parts.under - parts.under / below * dx, 0.0)
        over = np.where(upper, push - parts.over + parts.over / above * dx, 0.0)
        return dx, under, over

    def _limit_step(self, moves: _Step) -> tuple[float, float]:
        """Return the lengths that keep variables and multipliers inside their bounds."""
        dx, under, over = moves
        parts = self.parts
        share = self.problem.settings.share_of_way
        primal = min(room(parts.below(), dx), room(parts.above(), -dx))
        multipliers = min(room(parts.under, under), room(parts.over, over))
        return min(1.0, share * primal), min(1.0, share * multipliers)


class _SplitSystem:
    """The Newton system of all variables, reduced to that of the entries."""

    def __init__(
        self, H: np.ndarray, r: np.ndarray, D: np.ndarray, entry: np.ndarray, sign: np.ndarray
    ) -> None:
        self.D, self.entry, self.sign = D, entry, sign
        n = len(r)
        self.pairs = entry[n:]
        # The two variables of an entry enter the smooth part by their difference only. Eliminating
        # one leaves the entry with the curvatures of both in series, as resistors in parallel.
        diagonal = D[:n].copy()
        other = D[n:]
        diagonal[self.pairs] = D[self.pairs] * other / (D[self.pairs] + other)
        self.M = H
        self.M.flat[:: n + 1] += r
        system = self.M.copy()
        system.flat[:: n + 1] += diagonal
        self.diagonal = diagonal
        # Factored once for the two right-hand sides. Kept whole only if Cholesky's method fails.
        self.factor, info = lapack.dpotrf(system, lower=1)
        self.system = None if info == 0 else system

    def solve(self, right: np.ndarray) -> np.ndarray:
        """Return the step of the variables."""
        n = len(self.diagonal)
        short = right[:n].copy()
        first, second = right[self.pairs], right[n:]
        D, other = self.D[self.pairs], self.D[n:]
        short[self.pairs] = self.diagonal[self.pairs] * (first / D - second / other)
        if self.system is None:
            moved, _ = lapack.dpotrs(self.factor, short, lower=1)
        else:
            moved = solve_semidefinite(self.system, short)
        found = np.empty(len(right))
        found[:n] = moved
        if len(self.pairs):
            force = (self.M @ moved)[self.pairs]
            found[self.pairs] = (first - force) / D
            found[n:] = (second + force) / other
        return found


def place_inside(
    x: np.ndarray, low: np.ndarray, high: np.ndarray, state: DualPoint, settings: DualSettings
) -> _SplitVariables:
    """Move variables inside their bounds; multipliers share the gap of ``state``."""
    size = float(np.mean(np.abs(x))) or 1.0
    # Where a bound is infinite, so is the distance, and the size alone sets the margin.
    margin = np.minimum(
        settings.margin_between_bounds * (high - low), settings.margin_of_size * size
    )
    x = np.minimum(np.maximum(x, low + margin), high - margin)
    # Equal products of multipliers and distances: the point is on the central path as far as the
    # bounds go. An infinite distance gives a multiplier of zero.
    mean = max(state.gap, _LEAST_SHARE_OF_GAP * abs(state.primal), 1e-300) / len(x)
    return _SplitVariables(x, low, high, mean / (x - low), mean / (high - x))
