r"""First-order methods on the dual, with line search: gradient steps and forward-backward steps.

They are here for comparison: Newton's method takes far fewer steps, each of which costs about the
same.
"""

from __future__ import annotations

import math

import numpy as np

from mixnorm.engines.dual.problem import DualPoint, DualSteps

# The line search multiplies a step by theta until its bound with delta holds, this often at most.
_DELTA, _THETA = 0.5, 0.5
_MOST_TRIALS = 100


class ForwardBackward(DualSteps):
    r"""Gradient steps on the norm, proximal steps on the conjugates of the losses.

    A step :math:`\lambda` (:eq:`tensor-forward-backward`) is short enough where the norm's part of
    the dual is at most :math:`\frac{\delta}{\lambda} \|\alpha' - \alpha\|^2` above its tangent. The
    search starts with the last step divided by :math:`\theta`.
    """

    length = 0.0

    def step(self, state: DualPoint) -> tuple[DualPoint, int]:
        """Take a step, as long as the line search allows."""
        self.length = (
            self.length / _THETA if self.length else _choose_first_length(state, self.problem.q)
        )
        return self._search_line(state)

    def _search_line(self, state: DualPoint) -> tuple[DualPoint, int]:
        smooth = state.norm / self.problem.q
        for number in range(1, _MOST_TRIALS):
            ahead = self.problem.prox(state.alpha - self.length * state.scores, self.length)
            trial = self.problem.evaluate(ahead)
            move = trial.alpha - state.alpha
            above = trial.norm / self.problem.q - smooth - float(state.scores @ move)
            distance = float(move @ move)
            if distance == 0.0:
                return state, number
            if above <= _DELTA / self.length * distance:
                return trial, number
            self.length *= _THETA
        return state, _MOST_TRIALS


class DualGradientDescent(ForwardBackward):
    r"""Gradient steps on a smooth dual, such as that of squared losses (:eq:`tensor-gradient`).

    A step is short enough where it gains :math:`(1 - \delta) \lambda` times the squared norm of
    the gradient.
    """

    def _search_line(self, state: DualPoint) -> tuple[DualPoint, int]:
        weight, target = self.problem.weight, self.problem.target[:, 0]
        g = state.scores - target + state.alpha / weight
        size = float(g @ g)
        for number in range(1, _MOST_TRIALS):
            trial = self.problem.evaluate(state.alpha - self.length * g)
            if trial.value <= state.value - (1.0 - _DELTA) * self.length * size:
                return trial, number
            self.length *= _THETA
        return state, _MOST_TRIALS


def _choose_first_length(state: DualPoint, q: float) -> float:
    """Return a step that is too long: the inverse of the mean curvature."""
    curvature = (q - 1.0) * float(np.trace(state.V)) / len(state.V)
    return 1.0 / curvature if curvature > 0.0 and math.isfinite(curvature) else 1.0
