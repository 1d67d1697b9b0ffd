"""Batch learning under a norm, stopped by a duality gap.

:func:`solve` minimises ``F(XW + b) + alpha * norm(W)``, or ``F(XW + b)`` over the ball
``norm(W) <= radius``, where ``F`` is the weighted mean loss (summed over tasks). :func:`path` does
so for many values of ``alpha``, each started from the last. Working sets and block coordinate
descent solve for sums of row norms, accelerated proximal steps for all other norms. A loss with
kinks is replaced by a sequence of smooth ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixnorm.engines._core.result import Result
from mixnorm.engines._core.stopping import BestPoint
from mixnorm.engines.proximal.design import Design
from mixnorm.engines.proximal.matrix_solver import MatrixSolver
from mixnorm.engines.proximal.mixed_precision import DoublePrecisionProblem, MixedSolver, suits
from mixnorm.engines.proximal.multiplier_solver import MultiplierSolver
from mixnorm.engines.proximal.problem import NormProblem, Point, Solver, relative_size
from mixnorm.engines.proximal.row_solver import RowSolver
from mixnorm.engines.proximal.settings import DEFAULT_SETTINGS, ProximalSettings
from mixnorm.losses import DualLoss
from mixnorm.norms import Norm, as_norm, has_ability

#: Iterations without progress after which a fit ends, for the messages of callers.
PATIENCE = DEFAULT_SETTINGS.patience
#: The default of ``effort`` in :func:`path`, for all values of ``alpha`` together: twice that of a
#: single fit is enough, as each value starts near its solution.
PATH_EFFORT = 40.0
# Relative error allowed in the sum of the sample weights, which may be in single precision.
_ERROR_OF_WEIGHTS = 1e-3


@dataclass(frozen=True, kw_only=True)
class Solution(Result):
    """The weights that the engine found, with a bound of their distance from the optimum.

    Attributes
    ----------
    weights : ndarray of shape (n_features, n_outputs)
        The weights.
    intercept : ndarray of shape (n_outputs,)
        The intercept, zero where none was asked for.
    alpha, radius : float or None
        The weight of the norm, or the radius of its ball.
    value : float
        The loss.
    norm_value : float
        The norm of the weights.
    scale : float
        The objective with no weights.
    relative_gap : float
        The gap divided by ``scale``.
    exhausted : bool
        Whether the iterations took more evaluations of the loss than are allowed.
    objective, gap : float
        The loss plus ``alpha * norm``, and the duality gap: the objective is at most ``gap`` above
        the optimum.
    iterations : int
        Iterations done.
    converged, interrupted : bool
        Whether the relative gap is at most the tolerance, and whether a keyboard interrupt ended
        the work.
    history : tuple of float
        The gap before the first iteration and after each.
    """

    weights: np.ndarray
    intercept: np.ndarray
    alpha: float | None
    radius: float | None
    value: float
    norm_value: float
    scale: float
    relative_gap: float
    exhausted: bool = False


def solve(
    design: Design,
    loss: DualLoss,
    target: Any,
    norm: str | Norm,
    *,
    weight: np.ndarray,
    alpha: float | None = None,
    radius: float | None = None,
    fit_intercept: bool = True,
    start: tuple[np.ndarray, np.ndarray] | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
    on_iteration: Callable[[int, float], None] | None = None,
    settings: ProximalSettings = DEFAULT_SETTINGS,
) -> Solution:
    """Minimise a loss under a norm, a penalty or a ball (:eq:`penalty-and-ball`).

    Parameters
    ----------
    design : SharedDesign or SeparateDesign
        The data.
    loss : DualLoss
        The loss, with its conjugate; a :class:`LossMixture` where tasks differ.
    target : object
        The targets, as ``loss.encode`` gives them.
    norm : str or Norm
        The norm, with a proximal map (``alpha``) or a projection (``radius``).
    weight : array of shape (n_samples,) or (n_samples, n_outputs)
        Weights of the rows, which sum to one (in every output).
    alpha, radius : float
        Weight of the norm, or largest norm; one of them is given.
    fit_intercept : bool
        Fit an intercept, which the norm does not see.
    start : (weights, intercept), optional
        Where to start; the weights are zero otherwise.
    tol : float
        Relative gap to stop at: the gap divided by the objective with no weights.
    max_iter : int
        Most iterations. Evaluations of the loss are limited to twenty times as many, or to 20000
        where that is more.
    on_iteration : callable, optional
        Called with the number of iterations done and the relative gap. A keyboard interrupt that
        it raises ends the work like any other.
    settings : ProximalSettings
        Numbers that shape the algorithms.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm.engines.proximal import SharedDesign
    >>> from mixnorm.losses import Squared
    >>> from mixnorm.norms import MixedNorm
    >>> X, Y = np.eye(4), np.array([[3.0, 4.0], [0.0, 0.0], [0.3, 0.4], [0.0, 0.0]])
    >>> loss, weight = Squared(), np.full(4, 0.25)
    >>> design, target = SharedDesign(X, 2), Squared().encode(Y, 2, weight)
    >>> found = solve(
    ...     design, loss, target, MixedNorm(2, 1), weight=weight, alpha=0.25, fit_intercept=False
    ... )
    >>> found.weights.round(2) + 0.0
    array([[2.4, 3.2],
           [0. , 0. ],
           [0. , 0. ],
           [0. , 0. ]])
    """
    if (alpha is None) == (radius is None):
        raise ValueError("Give alpha (a penalty) or radius (a ball), and not both.")
    given = design, loss, target, weight, as_norm(norm), fit_intercept
    problem = _check(NormProblem(*given, alpha, radius, settings=settings))
    solver = _build_solver(problem, start and _find_start(problem, start), tol)
    # The limit comes after the null model, whose cost does not depend on ``max_iter``.
    allowed = settings.effort * max(max_iter, settings.few_iterations)
    problem.effort.limit = problem.effort.spent + allowed
    return _run(solver, tol, max_iter, on_iteration)


def path(
    design: Design,
    loss: DualLoss,
    target: Any,
    norm: str | Norm,
    *,
    weight: np.ndarray,
    alphas: Iterable[float],
    fit_intercept: bool = True,
    tol: float = 1e-4,
    max_iter: int = 1000,
    effort: float = PATH_EFFORT,
    on_iteration: Callable[[int, float], None] | None = None,
    settings: ProximalSettings = DEFAULT_SETTINGS,
) -> Iterator[Solution]:
    """Yield the solution for each of ``alphas`` in turn, each started from the last.

    Parameters are those of :func:`solve`. Evaluations of the loss are limited to ``effort`` times
    ``max_iter`` for up to 50 values of ``alpha`` together, of which none may take more than twice
    its share. Falling values are quickest. An interrupt ends the path; the last solution then has
    ``interrupted`` set.

    Yields
    ------
    Solution
    """
    given = design, loss, target, weight, as_norm(norm), fit_intercept
    problem = _check(NormProblem(*given, alpha=math.inf, settings=settings))
    solver: Solver | None = None
    # An iterable without a length may go on for ever; its effort is that of a usual path.
    usual = settings.penalties_per_effort
    count = len(alphas) if isinstance(alphas, Sized) else usual
    whole = effort * max(max_iter, settings.few_iterations) * max(1.0, count / usual)
    for place, alpha in enumerate(alphas):
        # The copy shares the effort spent and all that does not depend on ``alpha``.
        problem = replace(problem, alpha=float(alpha))
        spent, left = problem.effort.spent, max(count - place, 1)
        allowed = (whole - spent) * min(1.0, settings.largest_share / left)
        problem.effort.limit = spent + max(allowed, settings.least_share * whole / count)
        # One solver for the whole path keeps its working set, its model and its momentum.
        if solver is None:
            solver = _build_solver(problem, None, tol)
        solver.pose(problem)
        found = _run(solver, tol, max_iter, on_iteration)
        yield found
        if found.interrupted:
            return


def alpha_max(
    design: Design,
    loss: DualLoss,
    target: Any,
    norm: str | Norm,
    *,
    weight: np.ndarray,
    fit_intercept: bool = True,
) -> float:
    """Return the smallest ``alpha`` that is known to leave all weights at zero.

    It is the dual norm of ``Xᵀ theta``, with ``theta`` the residual of the best intercept alone
    (:eq:`alpha-max`). For losses with kinks ``theta`` is one of several, and a smaller ``alpha``
    may leave all weights at zero too.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm.engines.proximal import SharedDesign
    >>> from mixnorm.losses import Squared
    >>> from mixnorm.norms import MixedNorm
    >>> weight, Y = np.full(2, 0.5), np.array([[3.0, 4.0], [0.0, 0.0]])
    >>> target = Squared().encode(Y, 2, weight)
    >>> alpha_max(
    ...     SharedDesign(np.eye(2), 2),
    ...     Squared(),
    ...     target,
    ...     MixedNorm(2, 1),
    ...     weight=weight,
    ...     fit_intercept=False,
    ... )
    2.5
    """
    given = design, loss, target, weight, as_norm(norm), fit_intercept
    problem = _check(NormProblem(*given, alpha=math.inf))
    return float(problem.norm.dual(design.gradient(problem.null_dual())))


def _check(problem: NormProblem) -> NormProblem:
    """Return the problem; raise unless loss and norm have the methods that the engine needs."""
    for name, given in (("alpha", problem.alpha), ("radius", problem.radius)):
        if given is not None and not given >= 0.0:  # ``not >=`` rejects NaN as well
            raise ValueError(f"{name}={given!r} must be zero or more.")
    totals = np.sum(problem.weight, axis=0)
    if not np.allclose(totals, 1.0, rtol=_ERROR_OF_WEIGHTS):
        raise ValueError(
            f"The weights of the rows sum to {np.ravel(totals)[0]:g} and must sum to 1 (in every "
            "output): divide them by their sum."
        )
    loss = problem.loss
    if getattr(loss, "conjugate", None) is None:
        raise TypeError(
            f"{loss!r} has no conjugate, which the proximal engine needs for its gap; "
            "take a loss of mixnorm.losses, or give yours the methods of losses.DualLoss."
        )
    # The best intercept of a scalar loss is found by bisection; a joint one has no such order.
    joint_kink = loss.is_classifier and math.isinf(loss.smoothness)
    if joint_kink and getattr(loss, "best_constant", None) is None:
        raise TypeError(
            f"{loss!r} is a joint loss that is not smooth, and has no best_constant, from which "
            "the proximal engine starts: see losses.DualLoss."
        )
    penalty = problem.radius is None
    needed, other = ("prox", "project") if penalty else ("project", "prox")
    if not has_ability(problem.norm, needed):
        remedy = " Or give a radius." if penalty else " Or leave radius at None and give alpha."
        raise TypeError(
            f"norm={problem.norm!r} has no method {needed!r}, which a "
            f"{'penalty' if penalty else 'ball'} needs. Mixed norms with outer 1 or infinity, "
            "MixedNorm(2, 2), and Schatten norms with q 1, 2 or infinity have it: choose one of "
            "these, or give a norm of yours the method."
            f"{remedy if has_ability(problem.norm, other) else ''}"
        )
    return problem


def _find_start(problem: NormProblem, start: tuple[np.ndarray, np.ndarray]) -> Point:
    """Return the point to start from, projected onto the ball where there is one."""
    weights, intercept = start
    # A ball's gap is a bound for points in the ball only.
    if problem.radius is not None:
        weights = np.asarray(problem.norm.project(weights, problem.radius))
    return problem.start(weights, intercept)


def _build_solver(problem: NormProblem, start: Point | None, tol: float) -> Solver:
    """Return the solver for the loss; those for kinks and in two precisions wrap another."""
    # Smoothed losses are solved in the precision of the data, because their rate, which grows, may
    # be out of the range of single precision.
    if not math.isfinite(problem.loss.smoothness):
        return MultiplierSolver(problem, _build_smooth_solver, start)
    if suits(problem, tol):
        return MixedSolver(problem, _build_smooth_solver, start)
    return _build_smooth_solver(problem, start)


def _build_smooth_solver(
    problem: NormProblem, start: Point | None, double: DoublePrecisionProblem | None = None
) -> Solver:
    """Return the solver for a smooth loss; rows that are zero can be left out of some norms."""
    # In a ball the rows compete for the radius, and none can be minimised by itself.
    rows = problem.radius is None and has_ability(problem.norm, "row_exponent")
    return (RowSolver if rows else MatrixSolver)(problem, start, double)


def _run(
    solver: Solver, tol: float, max_iter: int, on_iteration: Callable[[int, float], None] | None
) -> Solution:
    """Iterate until the gap is small, the effort is spent, or rounding is in the way."""
    settings = solver.problem.settings
    scale, effort = relative_size(solver.problem), solver.problem.effort
    exact = solver.point.scores.dtype == np.float64
    enough = tol * scale * (1.0 if exact else settings.float32_share_of_tol)
    best, least = BestPoint(solver.point, settings.patience), math.inf
    with best.until_interrupted():
        for count in range(max_iter + 1):
            gap = solver.gap()
            # Measured from the last progress, not the last gap: many small falls add up to one.
            progress = gap < settings.progress * least
            least = gap if progress else least
            best.note(solver.point, gap, progress=progress)
            if on_iteration is not None and count > 0:
                on_iteration(count, gap / scale)
            if gap <= enough or count == max_iter or best.given_up or effort.exhausted:
                break
            solver.step(gap, enough)
    return _make_result(solver.problem, best, scale, tol)


def _make_result(
    problem: NormProblem, best: BestPoint[Point], scale: float, tol: float
) -> Solution:
    point, gap, value = best.point, best.gap, best.point.value
    norm_value = float(problem.norm.value(point.weights))
    # Scores in single precision that steps kept up to date have drifted from ``X W + b``. The loss
    # is computed again, and what it is larger by joins the gap, which is then true of the weights.
    if point.scores.dtype != np.float64:
        value = problem.start(point.weights, point.intercept).value
        gap += max(0.0, value - point.value)
    # Empty if the interrupt came before the first gap.
    history = best.history or [math.inf]
    return Solution(
        weights=point.weights,
        intercept=point.intercept,
        alpha=problem.alpha,
        radius=problem.radius,
        value=value,
        norm_value=norm_value,
        objective=value + (problem.alpha or 0.0) * norm_value,
        gap=gap,
        scale=scale,
        relative_gap=gap / scale,
        iterations=len(history) - 1,
        converged=gap <= tol * scale,
        interrupted=best.interrupted,
        history=tuple(history),
        exhausted=problem.effort.exhausted,
    )
