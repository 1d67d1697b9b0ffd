"""Newton steps for a joint kernel machine whose kernel matrix is nearly singular.

If samples count much and the kernel is wide, coordinate ascent is slow. Then the dual objective
less ``|A - A_0|^2 / (2 sigma)`` is maximised instead (:eq:`proximal-machine`), by a semi-smooth
Newton method on

    A = projection of A_0 + sigma (onehot - K A).

Each step solves a system with one unknown for each direction in which rows are free: about two for
each sample on the margin, and few if samples count much.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

from mixnorm.engines.multikernel import machine_jit as jit

if TYPE_CHECKING:
    from mixnorm.engines.multikernel.machine import HingeTarget

_MOST_DIRECTIONS = 3000
_MOST_NEWTON_STEPS = 30
# Largest distance between the two sides of the equation, in parts of their distance from ``A_0``.
_LARGEST_RESIDUAL = 0.05
_REACH_FACTOR = 6.0  # by which a step that succeeds enlarges the next
_LARGEST_REACH = 1e9
_MOST_PATIENCE = 8.0


class ProximalNewton:
    """Proximal steps on the dual variables of one machine, with a size that adapts.

    ``reach`` is the size in units of the mean factor of losses over the mean of the diagonal.
    """

    def __init__(self, K: np.ndarray, target: HingeTarget, reach: float = 1.0) -> None:
        self.K, self.target, self.reach = K, target, reach
        self.directions = 0  # systems of equations solved so far
        size = max(float(np.mean(np.diagonal(K))), 1e-300)
        self._unit = float(np.mean(target.caps)) / size
        self._patience = 1.0  # grows with steps that fail
        self._one_hot = np.zeros((len(target), target.n_outputs))
        self._one_hot[np.arange(len(target)), target.labels] = 1.0

    @property
    def sigma(self) -> float:
        """Size of the steps."""
        self.reach = min(max(self.reach, 1.0 / _LARGEST_REACH), _LARGEST_REACH)
        return self.reach * self._unit

    def estimate_seconds(self, A: np.ndarray) -> float:
        """Estimate the seconds of a step; infinity if too many rows are free."""
        count = self._count_directions(A)
        if count > 4 * _MOST_DIRECTIONS:
            return math.inf
        count = min(count, _MOST_DIRECTIONS)
        products = 6e-10 * len(A) * count * A.shape[1]
        return self._patience * 10.0 * float(1.5e-11 * count**3 + 1e-8 * count**2 + products)

    def step(self, A: np.ndarray, F: np.ndarray) -> None:
        """Improve the dual variables ``A`` and their scores ``F`` in place, if possible."""
        slopes = self._one_hot - F.T
        found = self._solve_proximal(A, slopes)
        if found is None:
            self.reach *= _REACH_FACTOR  # fewer rows are free then
            self._patience = min(2.0 * self._patience, _MOST_PATIENCE)
            return
        change = found - A
        moved = score_duals(self.K, change).T
        given = self.target
        rise, bend = float(np.sum(change * slopes)), float(np.sum(change * moved))
        rise -= given.curvature(change, A)
        bend += given.curvature(change, change)
        length = min(1.0, rise / bend) if bend > 0.0 else float(rise > 0.0)
        if not length > 0.0:
            self.reach /= _REACH_FACTOR**2
            return
        A += length * change
        F += length * moved.T
        if length > 0.9:
            self.reach *= _REACH_FACTOR
            self._patience = max(1.0, 0.5 * self._patience)
        elif length < 0.1:
            self.reach /= _REACH_FACTOR
            self._patience = min(1.5 * self._patience, _MOST_PATIENCE)

    def _solve_proximal(self, A: np.ndarray, slopes: np.ndarray) -> np.ndarray | None:
        """Return the proximal point or one on the way to it; None if too many rows are free."""
        point, slope = A.copy(), slopes.copy()  # the slope is onehot - K point
        value, projected = self._evaluate(A, point, slope)
        for _ in range(_MOST_NEWTON_STEPS):
            off = point - projected
            bent = score_duals(self.K, off).T
            away = projected - A
            if (
                float(np.sum(off * bent))
                <= _LARGEST_RESIDUAL * float(np.sum(away * away)) / self.sigma
            ):
                break
            if self._count_directions(projected) > _MOST_DIRECTIONS:
                return None
            direction = self._solve_direction(projected, off, bent)
            self.directions += 1
            if direction is None:
                break
            moved = score_duals(self.K, direction).T
            fall = float(np.sum(off * moved))
            length = 1.0
            for _ in range(8):
                trial = self._evaluate(A, point + length * direction, slope - length * moved)
                if trial[0] <= value + 1e-4 * length * fall:
                    break
                length *= 0.4
            else:
                break
            point += length * direction
            slope -= length * moved
            value, projected = trial
        return projected

    def _evaluate(
        self, A: np.ndarray, point: np.ndarray, slope: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Return the value to minimise at ``point``, and the projection there.

        The value is that of :eq:`newton-value`.
        """
        projected = A + self.sigma * slope
        given = self.target
        jit.project_rows(projected, given.labels, given.caps, given.squared, self.sigma)
        away = projected - A
        value = 0.5 * float(np.sum(point * (self._one_hot - slope)))
        value += float(np.sum(projected * slope)) - float(np.sum(away * away)) / (2 * self.sigma)
        return value - 0.5 * given.curvature(projected, projected), projected

    def _count_directions(self, A: np.ndarray) -> int:
        given = self.target
        return int(jit.count_directions(A, given.labels, given.caps, given.squared))

    def _solve_direction(
        self, projected: np.ndarray, off: np.ndarray, bent: np.ndarray
    ) -> np.ndarray | None:
        """Return the Newton direction (:eq:`newton-direction`).

        None where rounding leaves no positive definite system.
        """
        count, given = self._count_directions(projected), self.target
        rows, basis = np.empty(count, dtype=np.int64), np.zeros((count, projected.shape[1]))
        jit.find_directions(
            projected, given.labels, given.caps, given.squared, self.sigma, rows, basis
        )
        system = np.empty((count, count))
        jit.build_newton_system(self.K, rows, basis, self.sigma, system)
        right = self.sigma * np.sum(basis * bent[rows], axis=1)
        try:
            factor = linalg.cho_factor(system.T, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return None
        lengths = linalg.cho_solve(factor, right, check_finite=False)
        direction = -off
        np.add.at(direction, rows, lengths[:, None] * basis)
        return direction


def score_duals(K: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return the scores ``(n_outputs, n_samples)`` of dual variables that are mostly zero."""
    support = np.flatnonzero(np.any(A != 0.0, axis=1))
    if len(support) == 0:
        return np.zeros(A.shape[::-1])
    part = A[support].T.astype(K.dtype)
    rows = K if len(support) == len(K) else K[support]
    return np.ascontiguousarray(part @ rows, dtype=np.float64)
