r"""Learning with :math:`\ell^p` norms, :math:`1 < p < 2`, through a smooth dual of ``n`` unknowns.

The primal is :math:`\gamma \sum_i L(y_i, \langle w, \Phi(x_i) \rangle) + \frac1p \|w\|_p^p`. Its
dual :math:`\Lambda(\alpha) = \frac1q \|\sum_i \alpha_i \Phi(x_i)\|_q^q + \gamma \sum_i L^*(y_i,
-\alpha_i / \gamma)`, :math:`q = p / (p - 1)`, is minimised by Newton's method. Features are met
only in a contraction, which may know them by a tensor kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np

from mixnorm.engines._core.result import Result
from mixnorm.engines.dual.contraction import Contraction
from mixnorm.engines.dual.gradient import DualGradientDescent, ForwardBackward
from mixnorm.engines.dual.interior import DualInteriorPoint
from mixnorm.engines.dual.newton import DualNewton
from mixnorm.engines.dual.problem import Descent, DualPoint, DualProblem, DualSteps, descend
from mixnorm.engines.dual.settings import DEFAULT_SETTINGS, DualSettings
from mixnorm.engines.dual.squares import SquaresNewton
from mixnorm.losses import DualLoss, SmoothLoss

# The default of ``max_iter``, which ``solve`` shares out among the values of its path.
_MOST_CONTRACTIONS = 200
# The methods that minimise the dual of any loss, by name.
_METHODS: dict[str, type[DualSteps]] = {
    "newton": DualNewton,
    "gradient": DualGradientDescent,
    "forward-backward": ForwardBackward,
}
#: The names of solvers.
SOLVERS = tuple(_METHODS)


@dataclass(frozen=True, kw_only=True)
class DualSolution(Result):
    """The solution for one ``gamma``; its iterations are contractions.

    Attributes
    ----------
    alpha : array of shape (n_samples,)
        The dual variables.
    scores : array of shape (n_samples,)
        The scores of the training rows.
    gamma : float
        The weight of the losses.
    """

    alpha: np.ndarray
    scores: np.ndarray
    gamma: float


def path(
    contraction: Contraction,
    loss: DualLoss,
    target: np.ndarray,
    gammas: Sequence[float],
    *,
    weight: np.ndarray | None = None,
    solver: str = "newton",
    tol: float = 1e-8,
    max_iter: int = _MOST_CONTRACTIONS,
    settings: DualSettings = DEFAULT_SETTINGS,
) -> Iterator[DualSolution]:
    """Yield a solution of :eq:`tensor-dual` for each ``gamma``, started from the previous one.

    Parameters
    ----------
    contraction : Contraction
        The training rows.
    loss : DualLoss
        A loss of one score, with a conjugate.
    target : array of shape (n_samples, 1)
        The targets, encoded by the loss.
    gammas : sequence of float
        Weights of the losses; ascending values are fastest.
    weight : array of shape (n_samples,), optional
        Positive weights of the rows, which multiply ``gamma``.
    solver : {"newton", "gradient", "forward-backward"}
        ``"gradient"`` is for squared losses only. It and ``"forward-backward"`` take hundreds of
        steps where Newton's method takes a few, and are there for comparison.
    tol : float
        Relative duality gap to stop at.
    max_iter : int
        Most contractions for each ``gamma``.
    settings : DualSettings
        Numbers that shape the solvers.
    """
    check_solver(solver, loss)
    weight = np.ones(contraction.n) if weight is None else weight
    state: DualPoint | None = None
    for gamma in gammas:
        if not 0.0 < float(gamma) < math.inf:
            raise ValueError(f"gamma={gamma!r} must be positive and finite.")
        given = contraction, loss, target, float(gamma) * weight
        problem, steps = _pose_problem(*given, solver, settings)
        # The contraction of the last solution serves again: it does not depend on ``gamma``.
        state = problem.start() if state is None else problem.transfer(state)
        end = _minimize(steps, state, tol, max_iter)
        state = end.state
        # A gap of nearly zero may be rounded to below zero. NaN stays, and is not converged.
        gap = 0.0 if state.gap < 0.0 else state.gap
        yield DualSolution(
            alpha=state.alpha,
            scores=state.scores,
            gamma=float(gamma),
            objective=state.primal,
            gap=gap,
            iterations=end.evaluations,
            converged=bool(gap <= tol * abs(state.primal) and math.isfinite(state.primal)),
            interrupted=end.interrupted,
            history=end.history,
        )
        if end.interrupted:
            return


def solve(
    contraction: Contraction, loss: DualLoss, target: np.ndarray, gamma: float, **options: Any
) -> DualSolution:
    """Return the solution for one ``gamma``; the parameters are those of :func:`path`.

    If it is not found within ``max_iter``, the solver follows smaller values of ``gamma``, by
    powers of ten, with at most as many evaluations again.
    """
    found = next(path(contraction, loss, target, [gamma], **options))
    # Below one the direct way hardly ever fails: the model barely fits.
    if found.converged or found.interrupted or not gamma > 1.0:
        return found
    most = options.get("settings", DEFAULT_SETTINGS).most_decades
    steps = [*10.0 ** np.arange(0, min(most, math.ceil(math.log10(gamma)))), gamma]
    each = max(1, int(options.get("max_iter", _MOST_CONTRACTIONS)) // len(steps))
    along = list(path(contraction, loss, target, steps, **(options | {"max_iter": each})))
    spent = found.iterations + sum(one.iterations for one in along)
    # After an interrupt the last solution is that of another ``gamma``.
    last = along[-1]
    best = last if last.gamma == gamma and last.gap < found.gap else found
    return replace(best, iterations=spent, interrupted=last.interrupted)


def _minimize(steps: DualSteps, state: DualPoint, tol: float, max_iter: int) -> Descent:
    """Descend; where Newton's method is slow on a dual with bounds, take interior-point steps."""
    if not isinstance(steps, DualNewton) or getattr(steps.problem.loss, "box_dual", None) is None:
        return descend(steps, state, tol, max_iter)
    most = steps.problem.settings.newton_contractions
    end = descend(steps, state, tol, min(max_iter, most))
    done = end.interrupted or end.state.gap <= tol * abs(end.state.primal)
    if done or end.evaluations >= max_iter:
        return end
    # From the start of Newton's method: at its end many entries are at bounds, perhaps the wrong
    # ones.
    inside = DualInteriorPoint(steps.problem, state)
    more = descend(inside, state, tol, max_iter - end.evaluations)
    best = more.state if more.state.gap < end.state.gap else end.state
    evaluations = end.evaluations + more.evaluations
    return Descent(best, evaluations, more.interrupted, end.history + more.history)


def check_solver(solver: object, loss: DualLoss) -> None:
    """Raise for an unknown solver, or one that does not suit the loss."""
    if not isinstance(solver, str) or solver not in SOLVERS:
        raise ValueError(f"solver={solver!r} is not known; choose one of {list(SOLVERS)}.")
    if solver == "gradient" and not _is_square(loss):
        raise ValueError(
            f"solver='gradient' needs a smooth dual, which squared losses have and {loss!r} does "
            "not. Choose 'newton', or 'forward-backward', which is slower."
        )


def _is_square(loss: DualLoss) -> TypeGuard[SmoothLoss]:
    """Tell whether a loss is proportional to the squared difference of score and target."""
    return getattr(loss, "constant_curvature", False) and getattr(loss, "degree", None) == 2


def _pose_problem(
    contraction: Contraction,
    loss: DualLoss,
    target: np.ndarray,
    weight: np.ndarray,
    solver: str,
    settings: DualSettings,
) -> tuple[DualProblem | SquaresNewton, DualSteps]:
    """Return the problem, and the method that takes steps on it."""
    if solver == "newton" and _is_square(loss):
        # The closed form is for half the squared difference; a multiple of it is a larger weight.
        curvature = loss.curvature(np.zeros_like(target), target, weight)[:, 0]
        y = np.ascontiguousarray(target[:, 0])
        squares = SquaresNewton(contraction, y, curvature, settings)
        return squares, squares
    problem = DualProblem(contraction, loss, target, weight, settings)
    return problem, _METHODS[solver](problem)
