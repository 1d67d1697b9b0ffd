r"""Learning with :math:`\ell^p` norms, :math:`1 < p < 2`, through a smooth dual of ``n`` unknowns.

The primal is :math:`\gamma \sum_i L(y_i, \langle w, \Phi(x_i) \rangle) + \frac1p \|w\|_p^p`. Its
dual :math:`\Lambda(\alpha) = \frac1q \|\sum_i \alpha_i \Phi(x_i)\|_q^q + \gamma \sum_i L^*(y_i,
-\alpha_i / \gamma)`, :math:`q = p / (p - 1)`, is minimised by Newton's method. Features are met
only in a contraction, which may know them by a tensor kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mixnorm.engines._contraction import (
    Contraction,
    FeatureContraction,
    PairContraction,
    pair_index,
)
from mixnorm.losses import DualLoss

__all__ = [
    "Contraction",
    "DualSolution",
    "FeatureContraction",
    "PairContraction",
    "pair_index",
    "path",
    "solve",
]

# Steps that are tried along one direction before a shorter way is taken.
_TRIES = 12
# What a step must gain, in parts of what its slope promises.
_ARMIJO = 1e-4


@dataclass(frozen=True)
class DualSolution:
    """What a solver found for one ``gamma``.

    Attributes
    ----------
    alpha : array of shape (n_samples,)
        The dual variables.
    scores : array of shape (n_samples,)
        The scores of the training rows.
    gamma : float
        What a loss counts.
    objective : float
        The primal value.
    gap : float
        It is at most this much above the optimum.
    evaluations : int
        How many contractions it took.
    converged : bool
        Whether the gap is below the tolerance.
    """

    alpha: np.ndarray
    scores: np.ndarray
    gamma: float
    objective: float
    gap: float
    evaluations: int
    converged: bool


def path(
    contraction: Contraction,
    loss: DualLoss,
    target: np.ndarray,
    gammas: Sequence[float],
    *,
    tol: float = 1e-8,
    max_iter: int = 200,
) -> Iterator[DualSolution]:
    """Yield a solution for each ``gamma``, each from where the last one ended.

    Parameters
    ----------
    contraction : Contraction
        The training rows.
    loss : DualLoss
        A loss of one score, with a conjugate.
    target : array of shape (n_samples, 1)
        What the loss's ``encode`` returned.
    gammas : sequence of float
        What losses count; ascending values are quickest.
    tol : float
        Relative duality gap to stop at.
    max_iter : int
        Most contractions for one of them.
    """
    state: _State | None = None
    for gamma in gammas:
        problem = _Problem(contraction, loss, target, float(gamma), tol, max_iter)
        state = problem.start() if state is None else problem.moved(state)
        state, evaluations = problem.run(state)
        yield problem.solution(state, evaluations)


def solve(
    contraction: Contraction,
    loss: DualLoss,
    target: np.ndarray,
    gamma: float,
    *,
    tol: float = 1e-8,
    max_iter: int = 200,
) -> DualSolution:
    """Return the solution for one ``gamma``; the parameters are those of :func:`path`."""
    return next(path(contraction, loss, target, [gamma], tol=tol, max_iter=max_iter))


@dataclass(frozen=True)
class _State:
    """A point of the dual, with what one contraction says of it."""

    alpha: np.ndarray
    V: np.ndarray
    scores: np.ndarray
    norm: float  # the q-th power of that of the features' sum
    value: float  # of the dual
    primal: float

    @property
    def gap(self) -> float:
        return self.primal + self.value


class _Problem:
    """The dual for one ``gamma``."""

    def __init__(
        self,
        contraction: Contraction,
        loss: Any,
        target: np.ndarray,
        gamma: float,
        tol: float,
        max_iter: int,
    ) -> None:
        self.contraction, self.loss, self.target = contraction, loss, target
        self.gamma, self.tol, self.max_iter = gamma, tol, max_iter
        self.q = contraction.q
        self.weight = np.full(contraction.n, gamma)
        self.damping = 0.0

    # --- points

    def state(self, alpha: np.ndarray, V: np.ndarray | None = None) -> _State:
        """Return a point; it takes one contraction, unless that is known."""
        V = self.contraction.matrix(alpha) if V is None else V
        scores = V @ alpha
        norm = max(0.0, float(alpha @ scores))
        paid = float(self.loss.conjugate(-alpha[:, None], self.target, self.weight))
        lost, _ = self.loss.value_and_residual(scores[:, None], self.target, self.weight)
        primal = float(lost) + norm * (1.0 - 1.0 / self.q)
        return _State(alpha, V, scores, norm, norm / self.q + paid, primal)

    def start(self) -> _State:
        """Return the best point on the line to the residual of scores that are zero."""
        zeros = np.zeros((self.contraction.n, 1))
        _, residual = self.loss.value_and_residual(zeros, self.target, self.weight)
        alpha = -np.asarray(residual)[:, 0]
        V = self.contraction.matrix(alpha)
        norm = max(0.0, float(alpha @ (V @ alpha)))

        def value(t: float) -> float:
            paid = self.loss.conjugate(-t * alpha[:, None], self.target, self.weight)
            return float(norm * t**self.q / self.q + paid)

        t = _least(value)
        return self.state(t * alpha, t ** (self.q - 2.0) * V)

    def moved(self, state: _State) -> _State:
        """Return the point that a solution for another ``gamma`` is here."""
        return self.state(self.inside(state.alpha), state.V if self._same(state.alpha) else None)

    def _same(self, alpha: np.ndarray) -> bool:
        return bool(np.array_equal(self.inside(alpha), alpha))

    def inside(self, alpha: np.ndarray) -> np.ndarray:
        """Return the point of the conjugate's domain that is next to another."""
        if math.isfinite(self.loss.conjugate(-alpha[:, None], self.target, self.weight)):
            return alpha
        step = 1e-12 * (1.0 + float(np.max(np.abs(alpha))))
        return -self._prox(-alpha, step)

    def _prox(self, theta: np.ndarray, step: float) -> np.ndarray:
        found = self.loss.prox_conjugate(theta[:, None], step, self.target, self.weight)
        return np.asarray(found)[:, 0]

    # --- steps

    def run(self, state: _State) -> tuple[_State, int]:
        """Take steps until the gap is small."""
        evaluations = 1
        while state.gap > self.tol * abs(state.primal) and evaluations < self.max_iter:
            state, taken = self.step(state)
            evaluations += taken
            if taken >= _TRIES + 2 and not state.gap < math.inf:
                break
        return state, evaluations

    def step(self, state: _State) -> tuple[_State, int]:
        """Take a Newton step on the equation that a point is its own proximal step.

        A number on the diagonal holds it back where the dual is flat, more of it with every trial
        that gains nothing.
        """
        H = (self.q - 1.0) * state.V
        size = float(np.max(np.diagonal(H)))
        step = 1.0 / size if size > 0.0 else 1.0
        z = state.alpha - step * state.scores
        near = -self._prox(-z, step)
        left = state.alpha - near
        slopes = self._slopes(z, step)
        for number in range(_TRIES):
            move = self._newton(H, left, slopes, step, self.damping * size)
            trial = self.state(self.inside(state.alpha + move))
            if trial.value < state.value or trial.gap < 0.5 * state.gap:
                self.damping *= 0.1 if number == 0 else 1.0
                return trial, number + 1
            self.damping = max(1e-12, 30.0 * self.damping)
        return self._plain(state, step, near)

    def _newton(
        self, H: np.ndarray, left: np.ndarray, slopes: np.ndarray, step: float, damping: float
    ) -> np.ndarray:
        """Return the step; where the proximal map is constant, to where it leads."""
        free = slopes > 1e-9
        move = -left
        if np.any(free):
            share = slopes[free]
            system = H[np.ix_(free, free)]
            system[np.diag_indices(len(share))] += (1.0 - share) / (step * share) + damping
            right = -left[free] / (step * share) - H[np.ix_(free, ~free)] @ move[~free]
            move[free] = _solved(system, right)
        return move

    def _plain(self, state: _State, step: float, near: np.ndarray) -> tuple[_State, int]:
        """Take a proximal gradient step, as short as it must be."""
        taken = _TRIES
        for _ in range(60):
            trial = self.state(near)
            taken += 1
            if trial.value <= state.value:
                return trial, taken
            step *= 0.5
            near = -self._prox(-(state.alpha - step * state.scores), step)
        return state, self.max_iter

    def _slopes(self, z: np.ndarray, step: float) -> np.ndarray:
        """Return the derivatives of the proximal map, entry by entry."""
        h = 1e-6 * (np.abs(z) + 1e-3 * float(np.max(np.abs(z), initial=1e-300)))
        up, down = self._prox(-z + h, step), self._prox(-z - h, step)
        return np.asarray(np.clip((up - down) / (2.0 * h), 0.0, 1.0))

    def solution(self, state: _State, evaluations: int) -> DualSolution:
        """Return what is told of a point."""
        gap = max(0.0, state.gap)
        return DualSolution(
            state.alpha,
            state.scores,
            self.gamma,
            state.primal,
            gap,
            evaluations,
            gap <= self.tol * abs(state.primal),
        )


def _solved(system: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve a system with no negative eigenvalue but for rounding."""
    try:
        factor = linalg.cho_factor(system, lower=True, check_finite=False)
        return np.asarray(linalg.cho_solve(factor, right, check_finite=False))
    except linalg.LinAlgError:
        values, vectors = np.linalg.eigh(0.5 * (system + system.T))
        least = 1e-14 * float(values[-1])
        return np.asarray(vectors @ ((vectors.T @ right) / np.maximum(values, least)))


def _least(value: Any) -> float:
    """Return about where a convex function of a positive number up to one is least."""
    best, at = value(1.0), 1.0
    t = 0.5
    while t > 1e-30:
        found = value(t)
        if found >= best:
            break
        best, at, t = found, t, 0.5 * t
    return at
