r"""FISTA on the primal of squared losses with the norm of p = 4/3, on explicit features.

It minimises :math:`\frac\gamma2 \|y - F w\|^2 + \frac34 \|w\|_{4/3}^{4/3}` for one
:math:`\gamma` after another. A step costs two passes over the features: one for the weights' scores
and one for the gradient. The gradient's are dual variables too, so that a duality gap takes none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

EVERY = 10  # steps from one look at the gap to the next


@dataclass(frozen=True)
class Solved:
    """The result for one ``gamma``: a value, its duality gap, and the number of passes."""

    gamma: float
    objective: float
    gap: float
    evaluations: int

    @property
    def relative(self) -> float:
        """The gap in parts of the value."""
        return self.gap / self.objective


@dataclass(frozen=True)
class Point:
    """Weights of all features, and the scores of the rows."""

    w: np.ndarray
    scores: np.ndarray

    def beyond(self, other: Point, share: float) -> Point:
        """Return where the way from another point leads to, so much farther on."""
        ahead = self.w - other.w
        ahead *= share
        ahead += self.w
        return Point(ahead, self.scores + share * (self.scores - other.scores))


def solve_cubic(v: np.ndarray, step: float) -> np.ndarray:
    r"""Return the root of :math:`t^3 + \lambda t = v`; the proximal step to ``v`` is its cube."""
    h = math.sqrt(step / 3.0)
    t = v * (0.5 / h**3)
    np.arcsinh(t, out=t)
    t *= 1.0 / 3.0
    np.sinh(t, out=t)
    t *= 2.0 * h
    return t


@dataclass(frozen=True)
class Primal:
    """The problem for one ``gamma``; the step is one over the gradient's Lipschitz constant."""

    F: np.ndarray  # features, one in each column: one pass over them is quickest so
    y: np.ndarray
    gamma: float
    step: float

    def gap(self, new: Point, root: np.ndarray, alpha: np.ndarray, u: np.ndarray) -> Solved:
        """Return value and gap; ``root`` is that of the weights, and ``u`` the dual's features.

        Any dual variables are feasible: these are taken by the multiple that leaves the least gap.
        """
        left, fourth, square = self.y - new.scores, root * root, u * u
        value = 0.5 * self.gamma * float(left @ left) + 0.75 * float(fourth @ fourth)
        norm, size = float(square @ square), float(alpha @ alpha) / self.gamma
        reach = float(self.y @ alpha)
        t = float(solve_cubic(np.array([reach / norm]), size / norm)[0])
        dual = 0.25 * norm * t**4 - reach * t + 0.5 * size * t**2
        return Solved(self.gamma, value, value + dual, 0)

    def solve(self, at: Point, lead: Point, tol: float) -> tuple[Point, Solved]:
        """Take accelerated steps from a point, the first from ``lead``, until the gap is small.

        Acceleration starts again where a step goes against the last move.
        """
        theta, count = 1.0, 0
        while True:
            alpha = self.gamma * (self.y - lead.scores)
            u = alpha @ self.F
            root = self.step * u
            root += lead.w
            root = solve_cubic(root, self.step)
            w = root * root * root  # not a power: NumPy's is ten times slower
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
    """Yield what is found for each ``gamma``, each from where the last one ended.

    With ``extrapolate`` from as far beyond it as that was from the one before, which takes fewer
    steps where the values of ``gamma`` are close.
    """
    largest = float(np.linalg.eigvalsh(F @ F.T)[-1])
    at = before = Point(np.zeros(F.shape[1]), np.zeros(len(y)))
    for gamma in gammas:
        start = at.beyond(before, 1.0) if extrapolate else at
        problem = Primal(F, y, float(gamma), 1.0 / (float(gamma) * largest))
        before = at
        at, found = problem.solve(at, start, tol)
        yield found
