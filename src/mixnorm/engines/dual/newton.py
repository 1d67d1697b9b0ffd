"""Newton's method on the dual of any loss with a conjugate."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from mixnorm.engines._core.line_search import backtrack
from mixnorm.engines.dual.problem import DualPoint, DualSteps

# Damping of the first step that gains nothing, relative to the largest diagonal entry.
_LEAST_DAMPING = 1e-12
# Slopes below this count as zero: their entries are at a bound or a kink, but for the error of
# differences.
_LEAST_SLOPE = 1e-9
# Step of the differences, relative to the entry and to the largest entry. The error of a central
# difference is least near the third root of the rounding error, 6e-6.
_DIFFERENCE, _DIFFERENCE_OF_LARGEST = 1e-6, 1e-3
# Eigenvalues of a semidefinite matrix below this share of the largest are rounding.
_CLIPPED_EIGENVALUE = 1e-14


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
        settings = self.problem.settings
        H = self.problem.contraction.hessian(state.alpha, state.V)
        # The length of the proximal step only scales the equation. One over the largest diagonal
        # entry makes both terms of the system about as large.
        size = float(np.max(np.diagonal(H)))
        step = 1.0 / size if size > 0.0 else 1.0
        z = state.alpha - step * state.scores
        near = self.problem.prox(z, step)
        left = state.alpha - near
        slopes = self._differentiate_prox(z, step)
        for number in range(settings.damped_steps):
            move = self._solve_direction(H, left, slopes, step, self.damping * size)
            trial = self.problem.evaluate(self.problem.bring_inside(state.alpha + move))
            # Near the solution the value changes by less than its rounding while the gap, a sum of
            # terms that are not negative, still falls.
            if trial.value < state.value or trial.gap < 0.5 * state.gap:
                self.damping *= settings.damping_decay if number == 0 else 1.0
                return trial, number + 1
            self.damping = max(_LEAST_DAMPING, settings.damping_growth * self.damping)
        # The Newton equation is of a map with kinks and may point anywhere. A proximal gradient
        # step that is short enough always lowers the value.
        moved, tries = backtrack(
            lambda part: self._take_proximal_step(state, part * step),
            least=settings.shortest_proximal_step,
        )
        return state if moved is None else moved, settings.damped_steps + tries

    def _solve_direction(
        self, H: np.ndarray, left: np.ndarray, slopes: np.ndarray, step: float, damping: float
    ) -> np.ndarray:
        """Return the step of :eq:`tensor-semismooth`.

        Entries where the proximal map is constant go to its value. Those that are left have a
        symmetric system, divided by their slopes.
        """
        free = slopes > _LEAST_SLOPE
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
        # Entries near zero take a step in the scale of the others, or it would be lost.
        largest = float(np.max(np.abs(z), initial=1e-300))
        h = _DIFFERENCE * (np.abs(z) + _DIFFERENCE_OF_LARGEST * largest)
        up, down = self.problem.prox(z + h, step), self.problem.prox(z - h, step)
        # A proximal map is monotone and does not expand: anything outside of [0, 1] is rounding.
        return np.asarray(np.clip((up - down) / (2.0 * h), 0.0, 1.0))


def solve_semidefinite(system: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve a symmetric system whose eigenvalues are not negative, except by rounding."""
    _, found, info = lapack.dposv(system, right, lower=1)
    if info == 0:
        return np.asarray(found)
    # Cholesky's method met a pivot that is not positive. Clipped eigenvalues bound the step along
    # directions in which the dual is flat but for rounding.
    values, vectors = np.linalg.eigh(0.5 * (system + system.T))
    least = max(_CLIPPED_EIGENVALUE * float(values[-1]), 1e-300)
    return np.asarray(vectors @ ((vectors.T @ right) / np.maximum(values, least)))
