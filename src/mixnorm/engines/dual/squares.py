r"""Newton's method on the dual of squared losses, which is smooth and has a closed gap.

With :math:`\Lambda(\alpha) = \frac1q \alpha^\top V \alpha - y^\top \alpha + \frac12 \sum_i
\alpha_i^2 / c_i` and gradient :math:`g`, the gap is :math:`\frac12 \sum_i c_i g_i^2`
(:eq:`tensor-gap-squares`).
"""

from __future__ import annotations

import math

import numpy as np

from mixnorm.engines.dual.contraction import Contraction
from mixnorm.engines.dual.newton import solve_semidefinite
from mixnorm.engines.dual.problem import DualPoint, DualSteps
from mixnorm.engines.dual.settings import DEFAULT_SETTINGS, DualSettings

# A slope below this share of the value is rounding.
_FLAT_SLOPE = 1e-10
# Newton steps for the first multiple, and the relative step that ends them. Convergence is
# quadratic from above; sixty is far more than it takes.
_START_STEPS, _START_TOL = 60, 1e-12


class SquaresNewton(DualSteps):
    """Damped Newton steps for one ``gamma`` (:eq:`tensor-newton`): problem and steps in one.

    Parameters
    ----------
    contraction : Contraction
        The training rows.
    y : array of shape (n_samples,)
        The targets.
    weight : array of shape (n_samples,)
        The weight of each row's loss.
    settings : DualSettings
        Numbers that shape the line search.
    """

    def __init__(
        self,
        contraction: Contraction,
        y: np.ndarray,
        weight: np.ndarray,
        settings: DualSettings = DEFAULT_SETTINGS,
    ) -> None:
        self.contraction, self.y, self.weight = contraction, y, weight
        self.settings = settings
        self.ridge = 1.0 / weight
        self.q = contraction.q

    @np.errstate(over="ignore", invalid="ignore")
    def evaluate(self, alpha: np.ndarray, V: np.ndarray | None = None) -> DualPoint:
        """Return a point; its values are infinite where numbers overflow."""
        V = self.contraction.matrix(alpha) if V is None else V
        f = V @ alpha
        norm = float(alpha @ f)
        value = norm / self.q - float(self.y @ alpha) + 0.5 * float(alpha @ (alpha * self.ridge))
        # The closed gap is a sum of squares: unlike primal plus dual, it has no cancellation and is
        # right to its last digits.
        left, g = self.y - f, self.gradient(alpha, f)
        primal = 0.5 * float(left @ (left * self.weight)) + norm * (1.0 - 1.0 / self.q)
        return DualPoint(alpha, V, f, norm, value, primal, 0.5 * float(g @ (g * self.weight)))

    def gradient(self, alpha: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Return the gradient of the dual."""
        return np.asarray(f - self.y + alpha * self.ridge)

    def start(self) -> DualPoint:
        r"""Return the best multiple of the weighted targets (:eq:`tensor-start`).

        It is :math:`t c y` with :math:`t^{q-1} Q(c y) + t \sum_i c_i y_i^2 = \sum_i c_i y_i^2`.
        """
        alpha = self.weight * self.y
        V = self.contraction.matrix(alpha)
        norm, size = float(alpha @ (V @ alpha)), float(alpha @ self.y)
        t = _solve_start(norm, size, self.q)
        return self.evaluate(t * alpha, t ** (self.q - 2.0) * V)

    def transfer(self, state: DualPoint) -> DualPoint:
        """Return the solution for another ``gamma`` as a point of this problem."""
        return self.evaluate(state.alpha, state.V)

    def step(self, state: DualPoint) -> tuple[DualPoint, int]:
        """Take a Newton step, shortened where it is too long."""
        g = self.gradient(state.alpha, state.scores)
        H = self.contraction.hessian(state.alpha, state.V)
        # Onto the diagonal in place; the Hessian is a new matrix.
        H.flat[:: len(g) + 1] += self.ridge
        # Trials that overflow have an infinite value and are not taken.
        with np.errstate(over="ignore", invalid="ignore"):
            return self._search_line(state, g, solve_semidefinite(H, -g))

    def _search_line(self, state: DualPoint, g: np.ndarray, d: np.ndarray) -> tuple[DualPoint, int]:
        """Search along a direction; a step that is too long is cut by the slope at its end."""
        slope, t = float(g @ d), 1.0
        settings = self.settings
        for number in range(1, settings.most_search_points):
            trial = self.evaluate(state.alpha + t * d)
            if trial.value <= state.value + settings.armijo * t * slope:
                return trial, number
            # Near the optimum the value is rounding, but the gap still falls.
            if abs(slope) < _FLAT_SLOPE * abs(state.value) and trial.gap < state.gap:
                return trial, number
            # The trial's contraction gives the slope at its end for nothing. The zero of the line
            # through both slopes is where a parabola has its minimum.
            end = float(self.gradient(trial.alpha, trial.scores) @ d)
            cut = -slope / (end - slope) if end > slope else settings.longest_cut
            t *= min(settings.longest_cut, max(settings.shortest_cut, cut))
        return state, settings.most_search_points


def _solve_start(norm: float, size: float, q: float) -> float:
    """Return the positive root of ``t**(q-1) norm + t size = size`` (:eq:`tensor-start`).

    The left side is convex, so that Newton steps from above the root stay above it.
    """
    if not size > 0.0:
        return 1.0
    ratio, t = norm / size, 1.0
    if not 0.0 < ratio < math.inf:  # rounding, or out of range
        return 1.0
    # With t = 1 the left side is too large for any positive ratio. If the power dominates, a start
    # at its own root is nearer and still above.
    if ratio > 1.0:
        t = ratio ** (-1.0 / (q - 1.0))
    for _ in range(_START_STEPS):
        step = (t ** (q - 1.0) * ratio + t - 1.0) / ((q - 1.0) * t ** (q - 2.0) * ratio + 1.0)
        t -= step
        if abs(step) <= _START_TOL * t:
            break
    return t
