"""The dual of an lp-norm problem for one ``gamma``: its points, their values and their gaps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixnorm.engines._core.stopping import BestPoint
from mixnorm.engines.dual.contraction import Contraction
from mixnorm.losses import DualLoss


@dataclass(frozen=True)
class DualPoint:
    """A point of the dual, with what one contraction says of it."""

    alpha: np.ndarray
    V: np.ndarray
    scores: np.ndarray
    norm: float  # the q-th power of that of the features' sum
    value: float  # of the dual
    primal: float
    gap: float


class DualProblem:
    """The dual for one ``gamma``.

    Parameters
    ----------
    contraction : Contraction
        The training rows.
    loss : DualLoss
        A loss of one score.
    target : array of shape (n_samples, 1)
        What the loss's ``encode`` returned.
    weight : array of shape (n_samples,)
        What each row's loss counts, ``gamma`` times its weight.
    """

    def __init__(
        self, contraction: Contraction, loss: DualLoss, target: np.ndarray, weight: np.ndarray
    ) -> None:
        self.contraction, self.loss, self.target, self.weight = contraction, loss, target, weight
        self.q = contraction.q

    def evaluate(self, alpha: np.ndarray, V: np.ndarray | None = None) -> DualPoint:
        """Return a point; it takes one contraction, unless that is known."""
        V = self.contraction.matrix(alpha) if V is None else V
        scores = V @ alpha
        norm = max(0.0, float(alpha @ scores))
        paid = float(self.loss.conjugate(-alpha[:, None], self.target, self.weight))
        lost, _ = self.loss.value_and_residual(scores[:, None], self.target, self.weight)
        primal = float(lost) + norm * (1.0 - 1.0 / self.q)
        value = norm / self.q + paid
        return DualPoint(alpha, V, scores, norm, value, primal, primal + value)

    def start(self) -> DualPoint:
        """Return the best point on the line to the residual of scores that are zero."""
        zeros = np.zeros((self.contraction.n, 1))
        _, residual = self.loss.value_and_residual(zeros, self.target, self.weight)
        alpha = -np.asarray(residual)[:, 0]
        V = self.contraction.matrix(alpha)
        norm = max(0.0, float(alpha @ (V @ alpha)))

        def value(t: float) -> float:
            paid = self.loss.conjugate(-t * alpha[:, None], self.target, self.weight)
            return float(norm * t**self.q / self.q + paid)

        t = _minimize_convex(value)
        return self.evaluate(t * alpha, t ** (self.q - 2.0) * V)

    def transfer(self, state: DualPoint) -> DualPoint:
        """Return the point that a solution for another ``gamma`` is here."""
        alpha = self.bring_inside(state.alpha)
        return self.evaluate(alpha, state.V if alpha is state.alpha else None)

    def bring_inside(self, alpha: np.ndarray) -> np.ndarray:
        """Return the point of the conjugate's domain that is next to another."""
        if math.isfinite(self.loss.conjugate(-alpha[:, None], self.target, self.weight)):
            return alpha
        step = 1e-12 * (1.0 + float(np.max(np.abs(alpha))))
        return self.prox(alpha, step)

    def prox(self, alpha: np.ndarray, step: float) -> np.ndarray:
        """Return the proximal step on the conjugates of the losses."""
        found = self.loss.prox_conjugate(-alpha[:, None], step, self.target, self.weight)
        return -np.asarray(found)[:, 0]


# Least gain of the dual's value, in parts of it, that is no rounding.
_ROUNDING = 1e-15
# A gap below this, in parts of the objective, is rounding; that it still falls says nothing.
_NO_GAP = 1e-16


class DualSteps:
    """A way down the dual of a problem."""

    #: Idle steps in a row with which the descent ends.
    patience = 3

    def step(self, state: DualPoint) -> tuple[DualPoint, int]:
        """Return the next point, and how many contractions it took."""
        raise NotImplementedError


@dataclass(frozen=True)
class Descent:
    """Where a way down ended, and the gaps on it."""

    state: DualPoint
    evaluations: int
    interrupted: bool
    history: tuple[float, ...]


def descend(steps: DualSteps, state: DualPoint, tol: float, max_iter: int) -> Descent:
    """Take steps until the gap is small, or no step makes it smaller; keep the best point."""
    evaluations, best = 1, BestPoint(state, steps.patience)
    best.note(state, state.gap, progress=True)
    with best.until_interrupted():
        while not (
            best.gap <= tol * abs(best.point.primal) or evaluations >= max_iter or best.given_up
        ):
            moved, taken = steps.step(state)
            evaluations += taken
            gains = state.value - moved.value > _ROUNDING * abs(state.value)
            closer = moved.gap < best.gap and best.gap > _NO_GAP * abs(best.point.primal)
            best.note(moved, moved.gap, progress=gains or closer)
            if moved is state:
                break
            state = moved
    return Descent(best.point, evaluations, best.interrupted, tuple(best.history))


def _minimize_convex(value: Callable[[float], float]) -> float:
    """Return about where a convex function of a positive number up to one is least."""
    best, at = value(1.0), 1.0
    t = 0.5
    while t > 1e-30:
        found = value(t)
        if found >= best:
            break
        best, at, t = found, t, 0.5 * t
    return at
