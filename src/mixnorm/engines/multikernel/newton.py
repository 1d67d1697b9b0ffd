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
from mixnorm.engines.multikernel.settings import DEFAULT_SETTINGS, MultikernelSettings

if TYPE_CHECKING:
    from mixnorm.engines.multikernel.machine import HingeTarget

# Sizes of steps lie between this and its inverse: beyond, a step is no longer or shorter.
_LARGEST_REACH = 1e9
# Seconds of a step by its parts, measured on one thread: the factorisation (cubic), the solves
# (square) and the products that build the system. The estimate allows ten systems for a step. Only
# the ratio to ``seconds_per_update`` of the settings matters.
_FACTOR_SECONDS, _SOLVE_SECONDS, _PRODUCT_SECONDS, _SYSTEMS_PER_STEP = 1.5e-11, 1e-8, 6e-10, 10.0


class ProximalNewton:
    """Proximal steps on the dual variables of one machine, with a size that adapts.

    A step of size ``sigma`` is :eq:`proximal-machine`. ``reach`` is the size in units of the mean
    factor of losses over the mean of the diagonal, so that one is a sensible start for any ``C``
    and any scale of the kernel.
    """

    def __init__(
        self,
        K: np.ndarray,
        target: HingeTarget,
        reach: float = 1.0,
        settings: MultikernelSettings = DEFAULT_SETTINGS,
    ) -> None:
        self.K, self.target, self.reach, self.settings = K, target, reach, settings
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
        count, most = self._count_directions(A), self.settings.max_directions
        # The proximal point has fewer free directions than its start, for a large ``sigma``. So a
        # few times too many are tried nevertheless.
        if count > 4 * most:
            return math.inf
        count = min(count, most)
        products = _PRODUCT_SECONDS * len(A) * count * A.shape[1]
        system = float(_FACTOR_SECONDS * count**3 + _SOLVE_SECONDS * count**2 + products)
        return self._patience * _SYSTEMS_PER_STEP * system

    def step(self, A: np.ndarray, F: np.ndarray) -> None:
        """Improve the dual variables ``A`` and their scores ``F`` in place, if possible."""
        slopes = self._one_hot - F.T
        factor, most = self.settings.reach_factor, self.settings.max_patience
        found = self._solve_proximal(A, slopes)
        if found is None:
            self.reach *= factor  # fewer rows are free then
            self._patience = min(2.0 * self._patience, most)
            return
        # The point may be inexact. The best point of the line from ``A`` to it is as feasible as
        # both, and never lowers the dual value, which is quadratic along the line.
        change = found - A
        change_of_scores = score_duals(self.K, change).T
        given = self.target
        slope = float(np.sum(change * slopes)) - given.curvature(change, A)
        bend = float(np.sum(change * change_of_scores)) + given.curvature(change, change)
        length = min(1.0, slope / bend) if bend > 0.0 else float(slope > 0.0)
        if not length > 0.0:
            self.reach /= factor**2
            return
        A += length * change
        F += length * change_of_scores.T
        # The maximum near the end of the line asks for a longer step, near its start for a shorter.
        if length > 0.9:
            self.reach *= factor
            self._patience = max(1.0, 0.5 * self._patience)
        elif length < 0.1:
            self.reach /= factor
            self._patience = min(1.5 * self._patience, most)

    def _solve_proximal(self, A: np.ndarray, slopes: np.ndarray) -> np.ndarray | None:
        """Return the proximal point or one on the way to it; None if too many rows are free.

        A semi-smooth Newton method for the root of ``point - projected``, whose steps are shortened
        until :eq:`newton-value` falls.
        """
        point, slope = A.copy(), slopes.copy()  # the slope is onehot - K point
        value, projected = self._evaluate(A, point, slope)
        for _ in range(self.settings.newton_steps):
            residual = point - projected
            bent = score_duals(self.K, residual).T
            away = projected - A
            # ``bent`` is the gradient of the value; its energy is compared with that of the step.
            enough = self.settings.newton_residual * float(np.sum(away * away)) / self.sigma
            if float(np.sum(residual * bent)) <= enough:
                break
            if self._count_directions(projected) > self.settings.max_directions:
                return None
            direction = self._solve_direction(projected, residual, bent)
            self.directions += 1
            if direction is None:
                break
            moved = score_duals(self.K, direction).T
            fall = float(np.sum(residual * moved))  # the derivative along the direction: negative
            length = 1.0
            # Armijo's rule. The value is convex and piecewise quadratic, so that full steps are
            # accepted close to the root. Eight lengths go from 1 to 1/600.
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
        self, projected: np.ndarray, residual: np.ndarray, bent: np.ndarray
    ) -> np.ndarray | None:
        """Return the Newton direction (:eq:`newton-direction`).

        None where rounding leaves no positive definite system.
        """
        count, given = self._count_directions(projected), self.target
        rows, basis = np.empty(count, dtype=np.int64), np.zeros((count, projected.shape[1]))
        jit.find_directions(
            projected, given.labels, given.caps, given.squared, self.sigma, rows, basis
        )
        # The loop writes the lower half row by row. Its transpose is the upper half in the order
        # that LAPACK wants, which is factored in place without a copy.
        system = np.empty((count, count))
        jit.build_newton_system(self.K, rows, basis, self.sigma, system)
        right = self.sigma * np.sum(basis * bent[rows], axis=1)
        try:
            factor = linalg.cho_factor(system.T, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return None
        lengths = linalg.cho_solve(factor, right, check_finite=False)
        # A row may have several directions: plain indexing would add only the last of them.
        direction = -residual
        np.add.at(direction, rows, lengths[:, None] * basis)
        return direction


def score_duals(K: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return the scores ``(n_outputs, n_samples)`` of dual variables that are mostly zero."""
    support = np.flatnonzero(np.any(A != 0.0, axis=1))
    if len(support) == 0:
        return np.zeros(A.shape[::-1])
    # In the precision of the kernel: a product of mixed precisions would copy all of it.
    part = A[support].T.astype(K.dtype)
    rows = K if len(support) == len(K) else K[support]
    return np.ascontiguousarray(part @ rows, dtype=np.float64)
