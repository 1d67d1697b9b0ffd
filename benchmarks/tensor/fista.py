r"""FISTA on the primal of squared losses with the norm of p = 4/3, on explicit features.

It minimises :math:`\frac\gamma2 \|y - F w\|^2 + \frac34 \|w\|_{4/3}^{4/3}` for one
:math:`\gamma` after another. A step costs two passes over the features: one for the scores of the
weights and one for the gradient. The residual in the gradient is also a dual point, so that a
duality gap takes no pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

EVERY = 10  # steps between two evaluations of the gap


@dataclass(frozen=True)
class Solved:
    """The result for one ``gamma``: a value, its duality gap, and the number of passes."""

    gamma: float
    objective: float
    gap: float
    evaluations: int

    @property
    def relative(self) -> float:
        """The gap relative to the value."""
        return self.gap / self.objective


@dataclass(frozen=True)
class Point:
    """The weights of all features, and the scores of the rows."""

    w: np.ndarray
    scores: np.ndarray

    def beyond(self, other: Point, share: float) -> Point:
        """Return the extrapolation from another point through this one, by a share of the step."""
        ahead = self.w - other.w
        ahead *= share
        ahead += self.w
        return Point(ahead, self.scores + share * (self.scores - other.scores))


def solve_cubic(v: np.ndarray, step: float) -> np.ndarray:
    r"""Return the root of :math:`t^3 + \lambda t = v`; its cube is the proximal step from ``v``."""
    h = math.sqrt(step / 3.0)
    t = v * (0.5 / h**3)
    np.arcsinh(t, out=t)
    t *= 1.0 / 3.0
    np.sinh(t, out=t)
    t *= 2.0 * h
    return t


@dataclass(frozen=True)
class Primal:
    """The problem for one ``gamma``; the step size is the inverse Lipschitz constant."""

    F: np.ndarray  # one feature in each column, for the fastest passes
    y: np.ndarray
    gamma: float
    step: float

    def gap(self, new: Point, root: np.ndarray, alpha: np.ndarray, u: np.ndarray) -> Solved:
        """Return value and gap; ``root`` has cube roots of the weights, ``u`` the dual's features.

        All dual points are feasible. The point is scaled by the multiple with the smallest gap.
        """
        left, fourth, square = self.y - new.scores, root * root, u * u
        value = 0.5 * self.gamma * float(left @ left) + 0.75 * float(fourth @ fourth)
        norm, size = float(square @ square), float(alpha @ alpha) / self.gamma
        reach = float(self.y @ alpha)
        t = float(solve_cubic(np.array([reach / norm]), size / norm)[0])
        dual = 0.25 * norm * t**4 - reach * t + 0.5 * size * t**2
        return Solved(self.gamma, value, value + dual, 0)

    def solve(self, at: Point, lead: Point, tol: float) -> tuple[Point, Solved]:
        """Take accelerated steps from a point until the gap is small; the first is from ``lead``.

        Acceleration restarts if a step goes against the previous one.
        """
        theta, count = 1.0, 0
        while True:
            alpha = self.gamma * (self.y - lead.scores)
            u = alpha @ self.F
            root = self.step * u
            root += lead.w
            root = solve_cubic(root, self.step)
            w = root * root * root  # NumPy's power is ten times slower
            new = Point(w, self.F @ w)
            if count % EVERY == 0:
                found = self.gap(new, root, alpha, u)
                if found.gap <= tol * found.objective:
                    return new, Solved(self.gamma, found.objective, found.gap, count + 1)
            if (lead.w - new.w) @ (new.w - at.w) > 0.0:
                theta = 1.0
            later = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * theta * theta))
            lead, at = new.beyond(at, (theta - 1.0) / later), new
            theta, count = later, count + 1


def run_fista(
    F: np.ndarray, y: np.ndarray, gammas: Sequence[float], tol: float, *, extrapolate: bool
) -> Iterator[Solved]:
    """Yield the result for each ``gamma``; each starts from the previous solution.

    With ``extrapolate``, each starts from a point as far beyond the previous solution as that is
    from the one before it. This takes fewer steps if the values of ``gamma`` are close.
    """
    largest = float(np.linalg.eigvalsh(F @ F.T)[-1])
    at = before = Point(np.zeros(F.shape[1]), np.zeros(len(y)))
    for gamma in gammas:
        start = at.beyond(before, 1.0) if extrapolate else at
        problem = Primal(F, y, float(gamma), 1.0 / (float(gamma) * largest))
        before = at
        at, found = problem.solve(at, start, tol)
        yield found
