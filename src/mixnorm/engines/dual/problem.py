"""The dual problem for one ``gamma``: its points with their values and gaps, and descent on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixnorm.engines._core.stopping import BestPoint
from mixnorm.engines.dual.contraction import Contraction
from mixnorm.engines.dual.settings import DEFAULT_SETTINGS, DualSettings
from mixnorm.losses import DualLoss

# Move into the domain of the conjugate, relative to the largest dual variable: a proximal map with
# so short a step is nearly the projection.
_PROJECTING_STEP = 1e-12
# Multiples of the start below this change nothing any more.
_LEAST_MULTIPLE = 1e-30


@dataclass(frozen=True)
class DualPoint:
    """A point of the dual, with all that one contraction gives."""

    alpha: np.ndarray
    V: np.ndarray
    scores: np.ndarray
    norm: float  # the q-th power of the norm of the features' sum
    value: float  # the value of the dual
    primal: float
    gap: float


class DualProblem:
    """The dual for one ``gamma`` (:eq:`tensor-dual`).

    Parameters
    ----------
    contraction : Contraction
        The training rows.
    loss : DualLoss
        A loss of one score.
    target : array of shape (n_samples, 1)
        The targets, encoded by the loss.
    weight : array of shape (n_samples,)
        The weight of each row's loss: ``gamma`` times the weight of the row.
    settings : DualSettings
        Numbers that shape the solvers, for all that work on the problem.
    """

    def __init__(
        self,
        contraction: Contraction,
        loss: DualLoss,
        target: np.ndarray,
        weight: np.ndarray,
        settings: DualSettings = DEFAULT_SETTINGS,
    ) -> None:
        self.contraction, self.loss, self.target, self.weight = contraction, loss, target, weight
        self.settings = settings
        self.q = contraction.q

    def evaluate(self, alpha: np.ndarray, V: np.ndarray | None = None) -> DualPoint:
        """Return a point with its gap (:eq:`tensor-gap`); it takes a contraction, unless given."""
        V = self.contraction.matrix(alpha) if V is None else V
        scores = V @ alpha
        # A q-th power of a norm; where large terms cancel, rounding can make it negative.
        norm = max(0.0, float(alpha @ scores))
        # The dual variable of the loss is minus alpha (:eq:`tensor-kkt`).
        conjugate = float(self.loss.conjugate(-alpha[:, None], self.target, self.weight))
        loss, _ = self.loss.value_and_residual(scores[:, None], self.target, self.weight)
        primal = float(loss) + norm * (1.0 - 1.0 / self.q)
        value = norm / self.q + conjugate
        return DualPoint(alpha, V, scores, norm, value, primal, primal + value)

    def start(self) -> DualPoint:
        """Return the best point between zero and the residual of zero scores.

        Both ends are in the domain of the conjugate, which is convex. All multiples share one
        contraction, as ``V`` of a multiple is a power times ``V``.
        """
        zeros = np.zeros((self.contraction.n, 1))
        _, residual = self.loss.value_and_residual(zeros, self.target, self.weight)
        alpha = -np.asarray(residual)[:, 0]
        V = self.contraction.matrix(alpha)
        norm = max(0.0, float(alpha @ (V @ alpha)))

        def value(t: float) -> float:
            conjugate = self.loss.conjugate(-t * alpha[:, None], self.target, self.weight)
            return float(norm * t**self.q / self.q + conjugate)

        t = _minimize_convex(value)
        return self.evaluate(t * alpha, t ** (self.q - 2.0) * V)

    def transfer(self, state: DualPoint) -> DualPoint:
        """Return the solution for another ``gamma`` as a point of this problem."""
        # Bounds are multiples of the weights, and a smaller ``gamma`` narrows them. A point that
        # did not have to move keeps its contraction.
        alpha = self.bring_inside(state.alpha)
        return self.evaluate(alpha, state.V if alpha is state.alpha else None)

    def bring_inside(self, alpha: np.ndarray) -> np.ndarray:
        """Return the nearest point in the domain of the conjugate."""
        if math.isfinite(self.loss.conjugate(-alpha[:, None], self.target, self.weight)):
            return alpha
        step = _PROJECTING_STEP * (1.0 + float(np.max(np.abs(alpha))))
        return self.prox(alpha, step)

    def prox(self, alpha: np.ndarray, step: float) -> np.ndarray:
        """Return the proximal map of the conjugates of the losses."""
        # The losses' own map is in their dual variable, minus alpha: the sign changes twice.
        found = self.loss.prox_conjugate(-alpha[:, None], step, self.target, self.weight)
        return -np.asarray(found)[:, 0]


# A gain below this share of the dual's value is rounding.
_ROUNDING_OF_VALUE = 1e-15
# A gap below this share of the objective is rounding, and its fall is no progress.
_ROUNDING_OF_GAP = 1e-16


class DualSteps:
    """Base of the methods that take steps down the dual.

    Parameters
    ----------
    problem : DualProblem
        The dual.
    """

    #: Idle steps in a row after which the descent ends.
    patience = 3

    def __init__(self, problem: DualProblem) -> None:
        self.problem = problem

    def step(self, state: DualPoint) -> tuple[DualPoint, int]:
        """Return the next point, and the number of contractions that it took."""
        raise NotImplementedError


@dataclass(frozen=True)
class Descent:
    """The result of a descent: its best point, and the gaps of all points."""

    state: DualPoint
    evaluations: int
    interrupted: bool
    history: tuple[float, ...]


def descend(steps: DualSteps, state: DualPoint, tol: float, max_iter: int) -> Descent:
    """Take steps until the gap is small or stops falling, and keep the best point."""
    evaluations, best = 1, BestPoint(state, steps.patience)
    best.note(state, state.gap, progress=True)
    with best.until_interrupted():
        while not (
            best.gap <= tol * abs(best.point.primal) or evaluations >= max_iter or best.given_up
        ):
            moved, taken = steps.step(state)
            evaluations += taken
            # Either counts as progress: the value may stand still while the gap falls, near the
            # optimum, and the gap may rise while the value falls, far from it.
            gains = state.value - moved.value > _ROUNDING_OF_VALUE * abs(state.value)
            closer = moved.gap < best.gap and best.gap > _ROUNDING_OF_GAP * abs(best.point.primal)
            best.note(moved, moved.gap, progress=gains or closer)
            # A method that has no step left returns the point that it got.
            if moved is state:
                break
            state = moved
    return Descent(best.point, evaluations, best.interrupted, tuple(best.history))


def _minimize_convex(value: Callable[[float], float]) -> float:
    """Return about the minimiser of a convex function of a number between zero and one."""
    # Halving until the value rises: the minimiser is off by a factor of two at most, which the
    # first Newton step makes up for.
    best, at = value(1.0), 1.0
    t = 0.5
    while t > _LEAST_MULTIPLE:
        found = value(t)
        if found >= best:
            break
        best, at, t = found, t, 0.5 * t
    return at
