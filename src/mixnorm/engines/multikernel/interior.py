"""An interior-point method for a small joint machine on which coordinate ascent crawls.

The machine is solved in its weights ``W`` on the columns of a factor, and in the slacks

    slack_ik = hinge_i - [k != y_i] + F_iy - F_ik,   F = columns @ W,

which are not negative, with a multiplier for each. The scores of a row and the dual variables are
eliminated; what is left is one system in as many unknowns as ``W`` has entries
(:eq:`interior-system`). The number of steps hardly depends on what samples count, or on the
condition of the kernel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg

from mixnorm.engines._core.line_search import room
from mixnorm.engines.multikernel.settings import DEFAULT_SETTINGS, MultikernelSettings

if TYPE_CHECKING:
    from mixnorm.engines.multikernel.machine import HingeTarget

# Largest sum of the factors of losses, with kernels of about one: squares of sums stay finite.
_LARGEST_TOTAL = 1e60
# Singular values below this part of the largest are rounding errors of the columns.
_LEAST_SINGULAR = 1e-15
# Steps shorter than this part of a direction do not move the point in double precision.
_SHORTEST_INTERIOR_STEP = 1e-12


def estimate_interior_seconds(
    n_samples: int,
    n_columns: int,
    n_outputs: int,
    settings: MultikernelSettings = DEFAULT_SETTINGS,
) -> float:
    """Estimate the seconds of the method; infinity if there are too many unknowns."""
    # One output less: weights of all classes may sum to zero, which removes one unknown a column.
    unknowns = n_columns * (n_outputs - 1)
    if unknowns > settings.max_interior_unknowns:
        return math.inf
    # A step builds the system and factors it.
    products = n_samples * unknowns**2 + unknowns**3 / 3.0
    step = settings.interior_overhead + settings.seconds_per_product * products
    return settings.interior_usual_steps * step


@dataclass
class InteriorSolution:
    """Weights, dual variables, and the gap between the two."""

    W: np.ndarray
    A: np.ndarray
    gap: float


def solve_interior(
    columns: np.ndarray,
    target: HingeTarget,
    goal: float,
    settings: MultikernelSettings = DEFAULT_SETTINGS,
) -> InteriorSolution:
    """Solve the machine whose kernel is ``columns @ columns.T`` until its gap is ``goal``.

    The weights have shape ``(n_columns, n_outputs)``, and the dual variables are feasible.
    """
    # The columns are made orthogonal, and scaled so that the largest has length one. The factors of
    # losses grow by the square of the unit.
    left, sizes, rotation = linalg.svd(columns, full_matrices=False, check_finite=False)
    unit = float(sizes[0]) if sizes[0] > 0.0 else 1.0
    kept = sizes > _LEAST_SINGULAR * unit
    if not float(np.sum(target.caps)) * unit * unit < _LARGEST_TOTAL:
        zeros = np.zeros((len(target), target.n_outputs))
        return InteriorSolution(columns.T @ zeros, zeros, math.inf)
    caps = target.caps * unit * unit
    run = _InteriorMethod(left[:, kept] * (sizes[kept] / unit), target, caps, settings)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # the run ends on these
        found = run.run(goal * unit * unit)
    W = rotation[kept].T @ (found.W / unit)
    return InteriorSolution(W, found.A / unit**2, found.gap / unit**2)


@dataclass
class _Move:
    """A direction: changes of weights, hinges, slacks and multipliers."""

    W: np.ndarray
    hinge: np.ndarray
    slack: np.ndarray
    duals: np.ndarray


class _InteriorMethod:
    """A run of the method on orthogonal columns ``X`` (:eq:`interior-problem`)."""

    def __init__(
        self, X: np.ndarray, target: HingeTarget, caps: np.ndarray, settings: MultikernelSettings
    ) -> None:
        self.X, self.caps, self.squared, self.settings = X, caps, target.squared, settings
        n, k = len(target), target.n_outputs
        self.rows, self.labels = np.arange(n), target.labels
        self.other = np.ones((n, k))
        self.other[self.rows, self.labels] = 0.0
        # Only differences of scores matter, so the weights of all classes may sum to zero.
        self.basis = linalg.null_space(np.ones((1, k)))
        self.W = np.zeros((X.shape[1], k))
        self.F = np.zeros((n, k))
        # With weights of zero, hinges of two leave slacks of one and two: far from the boundary,
        # and all of about one size. Multipliers are shared out equally, and already add up.
        self.hinge = np.full(n, 2.0)
        self.slack = self._compute_slack()
        total = 2.0 * caps * self.hinge if self.squared else caps
        self.duals = np.repeat(total[:, None] / k, k, axis=1)
        self.best = InteriorSolution(self.W, np.zeros((n, k)), math.inf)
        self._value, self._bound = math.inf, 0.0

    def run(self, goal: float) -> InteriorSolution:
        """Take steps until the gap is small, or rounding stops the run."""
        idle, most = 0, self.settings.interior_idle_steps
        for _ in range(self.settings.interior_steps):
            idle = 0 if self._record_point() else idle + 1
            if self.best.gap <= goal or idle > most or not self._step():
                break
        return self.best

    # --- the best point so far

    def _record_point(self) -> bool:
        """Keep the better weights and the better dual variables; True if the gap fell."""
        # The hinges of the run are above the true ones on the way; the value takes the true ones.
        lost = np.max(self.F + self.other, axis=1) - self.F[self.rows, self.labels]
        lost = lost * lost if self.squared else lost
        value = 0.5 * float(np.sum(self.W * self.W)) + float(self.caps @ lost)
        A = self._assemble_duals(self.duals)
        own = A[self.rows, self.labels]
        if not self.squared:
            # Rounding may lift a row above its cap. Scaled down as a whole it still sums to zero.
            A *= np.minimum(1.0, self.caps / np.maximum(own, 1e-300))[:, None]
            own = A[self.rows, self.labels]
        gain = float(np.sum(own - own * own / (4.0 * self.caps) if self.squared else own))
        bound = gain - 0.5 * float(np.sum((self.X.T @ A) ** 2))
        before = self.best.gap
        if value < self._value:
            self._value, self.best.W = value, self.W.copy()
        if bound >= self._bound:
            self._bound, self.best.A = bound, A
        self.best.gap = max(0.0, self._value - self._bound)
        return self.best.gap < 0.9 * before

    def _assemble_duals(self, duals: np.ndarray) -> np.ndarray:
        """Return multipliers as dual variables: rows sum to zero."""
        A = -duals * self.other
        A[self.rows, self.labels] = -np.sum(A, axis=1)
        return A

    def _compute_slack(self) -> np.ndarray:
        own = self.F[self.rows, self.labels]
        return np.asarray((self.hinge + own)[:, None] - self.other - self.F)

    # --- steps

    def _step(self) -> bool:
        """Take one step, after a prediction (Mehrotra); return False if rounding prevents it.

        The prediction aims at the boundary. How far it gets tells how much of the products of
        slacks and multipliers the true step may remove: the cube is Mehrotra's rule. The true step
        uses the same factor, and corrects for the products of the predicted changes, which the
        linear equations leave out.
        """
        ratio = self.duals / self.slack
        try:
            factor = self._factorize_system(ratio)
        except (linalg.LinAlgError, ValueError):
            return False
        level = float(np.mean(self.duals * self.slack))
        move = self._find_direction(factor, ratio, np.zeros_like(ratio))
        length = min(1.0, self._find_longest_step(move))
        duals, slack = self.duals + length * move.duals, self.slack + length * move.slack
        after = float(np.mean(duals * slack))
        aim = level * min(1.0, (max(after, 0.0) / level) ** 3)
        move = self._find_direction(factor, ratio, (aim - move.slack * move.duals) / self.slack)
        # Not quite to the boundary, where ratios of multipliers and slacks would be infinite.
        share = self.settings.boundary_share
        length = min(1.0, share * self._find_longest_step(move))
        if not length > _SHORTEST_INTERIOR_STEP:
            return False
        self.W = self.W + length * move.W
        self.hinge = self.hinge + length * move.hinge
        self.duals = self.duals + length * move.duals
        self.F = self.X @ self.W
        slack = self._compute_slack()
        # If rounding of the scores swamps the hinge, the slack is updated instead of recomputed.
        self.slack = np.where(slack > 0.1 * self.slack, slack, self.slack + length * move.slack)
        return bool(np.all(np.isfinite(self.W)) and np.all(self.slack > 0.0))

    def _find_longest_step(self, move: _Move) -> float:
        """Return how far a direction can be followed until a slack or a multiplier is zero."""
        # Finite also if nothing falls, so that multiples of it are no NaN.
        return min(1e30, room(self.slack, move.slack), room(self.duals, move.duals))

    def _factorize_system(self, ratio: np.ndarray) -> Any:
        """Return the Cholesky factor of the equations in ``W``, its classes one after another.

        The matrix is that of :eq:`interior-system`. ``H[i]`` is the second derivative of row ``i``
        in its scores, after its hinge is eliminated. The textbook form is a difference,
        ``diag(r) - r r^T / sum r``, and ratios differ by many orders of magnitude near the end.
        Here every entry is a product or a sum of numbers of one sign, so that no digits cancel.
        """
        n, k = ratio.shape
        r, m = self.X.shape[1], k - 1
        extra = 2.0 * self.caps if self.squared else np.zeros(n)  # curvature of the squared hinge
        rest = ratio @ (1.0 - np.eye(k)) + extra[:, None]
        whole = np.sum(ratio, axis=1) + extra
        rivals = ratio * self.other
        own = ratio[self.rows, self.labels] + extra
        H = -rivals[:, :, None] * (rivals / whole[:, None])[:, None, :]
        H[:, np.arange(k), np.arange(k)] = rivals * rest / whole[:, None]
        across = -rivals * (own / whole)[:, None]
        H[self.rows, self.labels] = across
        H[self.rows, :, self.labels] = across
        H[self.rows, self.labels, self.labels] = np.sum(rivals, axis=1) * own / whole
        # In the coordinates of weights that sum to zero over the classes, ``H`` has no null vector.
        H = self.basis.T @ H @ self.basis
        system = np.empty((m * r, m * r))
        for a in range(m):
            for b in range(a + 1):  # the lower half, which is all that Cholesky's method reads
                block = self.X.T @ (H[:, a, b, None] * self.X)
                system[a * r : (a + 1) * r, b * r : (b + 1) * r] = block
        system[np.diag_indices(m * r)] += 1.0
        return linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)

    def _find_direction(self, factor: Any, ratio: np.ndarray, aims: np.ndarray) -> _Move:
        """Return the changes that solve the linearised equations (:eq:`interior-system`).

        Multipliers aim at ``aims``, if slacks stay.
        """
        whole = np.sum(ratio, axis=1)
        if self.squared:
            whole = whole + 2.0 * self.caps
        gained = aims - self.duals
        # Sums of multipliers over a row are right from the start, and steps keep them. First the
        # changes at fixed scores, which give the right side; then what the scores add.
        hinge = np.sum(gained, axis=1) / whole
        duals = gained - ratio * hinge[:, None]
        right = self.X.T @ (self._assemble_duals(self.duals) + self._assemble_duals(duals)) - self.W
        right = (right @ self.basis).T
        solved = linalg.cho_solve(factor, right.ravel(), check_finite=False)
        W = (self.basis @ solved.reshape(right.shape)).T
        F = self.X @ W
        apart = F[self.rows, self.labels][:, None] - F
        further = -np.sum(ratio * apart, axis=1) / whole
        slack = apart + (hinge + further)[:, None]
        return _Move(W, hinge + further, slack, gained - ratio * slack)
