"""Newton's method on the dual of any loss with a conjugate."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from mixnorm.engines._core.line_search import backtrack
from mixnorm.engines.dual.problem import DualPoint, DualSteps

# Damped steps that are tried before a proximal gradient step is taken instead.
_DAMPED_STEPS = 12
# The shortest proximal gradient step, as a share of the first one.
_SHORTEST_PROXIMAL_STEP = 0.5**60


class DualNewton(DualSteps):
    """Semismooth Newton steps on the fixed-point equation of proximal steps.

    See :eq:`tensor-fixed-point` and :eq:`tensor-semismooth`.
    """

    damping = 0.0

    def step(self, state: DualPoint) -> tuple[DualPoint, int]:
        """Take one step.

        A damping on the diagonal shortens steps where the dual is flat; it grows with every trial
        that gains nothing.
        """
        H = self.problem.contraction.hessian(state.alpha, state.V)
        size = float(np.max(np.diagonal(H)))
        step = 1.0 / size if size > 0.0 else 1.0
        z = state.alpha - step * state.scores
        near = self.problem.prox(z, step)
        left = state.alpha - near
        slopes = self._differentiate_prox(z, step)
        for number in range(_DAMPED_STEPS):
            move = self._solve_direction(H, left, slopes, step, self.damping * size)
            trial = self.problem.evaluate(self.problem.bring_inside(state.alpha + move))
            if trial.value < state.value or trial.gap < 0.5 * state.gap:
                self.damping *= 0.1 if number == 0 else 1.0
                return trial, number + 1
            self.damping = max(1e-12, 30.0 * self.damping)
        moved, tries = backtrack(
            lambda part: self._take_proximal_step(state, part * step), least=_SHORTEST_PROXIMAL_STEP
        )
        return state if moved is None else moved, _DAMPED_STEPS + tries

    def _solve_direction(
        self, H: np.ndarray, left: np.ndarray, slopes: np.ndarray, step: float, damping: float
    ) -> np.ndarray:
        """Return the step; entries where the proximal map is constant go to its value."""
        free = slopes > 1e-9
        move = -left
        if np.any(free):
            share = slopes[free]
            system = H[np.ix_(free, free)]
            system[np.diag_indices(len(share))] += (1.0 - share) / (step * share) + damping
            right = -left[free] / (step * share) - H[np.ix_(free, ~free)] @ move[~free]
            move[free] = solve_semidefinite(system, right)
        return move

    def _take_proximal_step(self, state: DualPoint, step: float) -> DualPoint | None:
        """Return the end of a proximal gradient step, or None if the value rises."""
        trial = self.problem.evaluate(self.problem.prox(state.alpha - step * state.scores, step))
        return trial if trial.value <= state.value else None

    def _differentiate_prox(self, z: np.ndarray, step: float) -> np.ndarray:
        """Return the derivatives of the proximal map, entry by entry."""
        h = 1e-6 * (np.abs(z) + 1e-3 * float(np.max(np.abs(z), initial=1e-300)))
        up, down = self.problem.prox(z + h, step), self.problem.prox(z - h, step)
        return np.asarray(np.clip((up - down) / (2.0 * h), 0.0, 1.0))


def solve_semidefinite(system: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve a symmetric system whose eigenvalues are not negative, except by rounding."""
    _, found, info = lapack.dposv(system, right, lower=1)
    if info == 0:
        return np.asarray(found)
    values, vectors = np.linalg.eigh(0.5 * (system + system.T))
    least = max(1e-14 * float(values[-1]), 1e-300)
    return np.asarray(vectors @ ((vectors.T @ right) / np.maximum(values, least)))
