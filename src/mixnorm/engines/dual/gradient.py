r"""First-order methods on the dual, with line search: gradient steps and forward-backward steps.

They are here for comparison: Newton's method takes far fewer steps, each of which costs about the
same.
"""

from __future__ import annotations

import math

import numpy as np

from mixnorm.engines.dual.problem import DualPoint, DualSteps


class ForwardBackward(DualSteps):
    r"""Gradient steps on the norm, proximal steps on the conjugates of the losses.

    A step :math:`\lambda` (:eq:`tensor-forward-backward`) is short enough where the norm's part of
    the dual is at most :math:`\frac{\delta}{\lambda} \|\alpha' - \alpha\|^2` above its tangent. The
    search starts with the last step divided by :math:`\theta`.
    """

    length = 0.0

    def step(self, state: DualPoint) -> tuple[DualPoint, int]:
        """Take a step, as long as the line search allows."""
        settings = self.problem.settings
        # One factor longer than the last step: the length can recover after a steep part, at the
        # price of one attempt that fails.
        self.length = (
            self.length / settings.theta
            if self.length
            else _choose_first_length(state, self.problem.q)
        )
        for number in range(1, settings.most_lengths):
            found = self._try_step(state)
            if found is not None:
                return found, number
            self.length *= settings.theta
        return state, settings.most_lengths

    def _try_step(self, state: DualPoint) -> DualPoint | None:
        """Return the point after a step of this length, or None if the step is too long."""
        ahead = self.problem.prox(state.alpha - self.length * state.scores, self.length)
        trial = self.problem.evaluate(ahead)
        move = trial.alpha - state.alpha
        smooth = state.norm / self.problem.q
        above = trial.norm / self.problem.q - smooth - float(state.scores @ move)
        distance = float(move @ move)
        # A fixed point of the step is the solution; the same object tells the caller to stop.
        if distance == 0.0:
            return state
        return trial if above <= self.problem.settings.delta / self.length * distance else None


class DualGradientDescent(ForwardBackward):
    r"""Gradient steps on a smooth dual, such as that of squared losses (:eq:`tensor-gradient`).

    A step is short enough where it gains :math:`(1 - \delta) \lambda` times the squared norm of
    the gradient.
    """

    def _try_step(self, state: DualPoint) -> DualPoint | None:
        # The gradient of the closed form, in which losses are smooth and need no proximal map.
        weight, target = self.problem.weight, self.problem.target[:, 0]
        g = state.scores - target + state.alpha / weight
        trial = self.problem.evaluate(state.alpha - self.length * g)
        enough = (1.0 - self.problem.settings.delta) * self.length * float(g @ g)
        return trial if trial.value <= state.value - enough else None


def _choose_first_length(state: DualPoint, q: float) -> float:
    """Return a step that is too long: the inverse of the mean curvature.

    The largest curvature, which bounds the step, is at least the mean. The search shortens it.
    """
    curvature = (q - 1.0) * float(np.trace(state.V)) / len(state.V)
    return 1.0 / curvature if curvature > 0.0 and math.isfinite(curvature) else 1.0
