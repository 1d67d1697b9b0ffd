"""Forward greedy selection with a full correction after every choice.

The engine knows nothing of features: a prepared pool scores its atoms for a residual and hands out
an atom's columns, a loss turns scores into a residual, and that is all.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from mixnorm._array import namespace
from mixnorm.engines._corrective import Outcome, Problem, Support
from mixnorm.engines._rules import RULES, choose
from mixnorm.losses import Loss

__all__ = ["Path", "PreparedPool", "Round", "select"]

# Tolerance and floor of a round: the gain left is compared with ``tol`` times the objective, or
# times a share of the empty model's loss once the objective is below that share (separable data).
# Rounds before the last stop earlier: they only have to point at the next column.
_LAST = (1.0, 0.02)
_EARLIER = (20.0, 0.1)


class PreparedPool(Protocol):
    """What the engine asks of a pool bound to its data."""

    def top(
        self,
        residual: Any,
        rule: str,
        m: int,
        exclude: frozenset[Hashable],
        inputs: frozenset[int] | None = None,
    ) -> list[tuple[Any, float]]:
        """Return up to ``m`` atoms with their scores, best first, none of them excluded.

        With ``inputs``, only atoms that read no other columns of the data than these; asked for
        only if the number of inputs is limited.
        """
        ...

    def columns(self, atom: Any) -> Any:
        """Return the columns of ``atom``, one per row: ``(width, n_samples)``."""
        ...


@dataclass(frozen=True)
class Round:
    """The model after one round.

    ``weights`` has one row per column of the atoms in ``support``, in that order.
    """

    atom: Any
    support: tuple[Any, ...]
    weights: Any
    intercept: Any
    loss: float
    objective: float
    gradient: float
    seconds: float
    iterations: int
    gap: float
    converged: bool


@dataclass(frozen=True)
class Path:
    """What :func:`select` returns: the model after each round, and how the run ended."""

    rounds: tuple[Round, ...]
    null_loss: float
    null_intercept: Any
    interrupted: bool = False
    exhausted: bool = False

    @property
    def converged(self) -> bool:
        """Whether every round reached its tolerance."""
        return all(step.converged for step in self.rounds)


def select(
    pool: PreparedPool,
    loss: Loss,
    target: Any,
    *,
    n_atoms: int,
    n_outputs: int,
    weight: Any,
    alpha: float = 0.0,
    rule: str = "l1",
    swaps: int = 0,
    fit_intercept: bool = True,
    tol: float = 1e-4,
    max_iter: int = 1000,
    start: Path | None = None,
    on_round: Callable[[Path], bool] | None = None,
) -> Path:
    r"""Choose atoms one at a time, re-optimising all chosen columns after each.

    Minimises :math:`\sum_i w_i\, \ell(W^\top x_i + b, y_i) + \alpha \|W\|_F^2` over at most
    ``n_atoms`` atoms of the pool.

    Parameters
    ----------
    pool : PreparedPool
        Scores atoms and hands out their columns.
    loss : Loss
        The loss; ``target`` is what its ``encode`` returned.
    n_atoms, n_outputs : int
        Atoms to choose, outputs to fit.
    weight : array of shape (n_samples,)
        Sample weights that sum to one; their namespace, dtype and device rule the computation.
    alpha : float
        Ridge on all weights but the intercept.
    rule : {"l1", "l2", "line", "column", "joint"}
        How the next atom is chosen.
    swaps : int
        Replacement steps after each round: the older atom that costs least to drop gives way to
        the best other one, if that lowers the objective.
    tol : float
        The last round ends when the estimated gain left is below ``tol`` times the objective
        (or 2 % of the empty model's loss, if that is more); earlier rounds at twenty times that (or
        10 %).
    max_iter : int
        Most iterations of one corrective step.
    start : Path, optional
        A path to continue.
    on_round : callable, optional
        Called with the path so far after each round; returning True ends the run.

    Returns
    -------
    Path
        A keyboard interrupt after the first round ends the run and keeps the rounds done.

    Notes
    -----
    A round costs one scan of the pool, and a few products with the chosen columns: an L-BFGS
    method whose starting matrix is the factored per-output curvature of the chosen columns.
    """
    if rule not in RULES:
        raise ValueError(f"rule={rule!r} is not known; choose one of {sorted(RULES)}.")
    problem = Problem(loss, target, weight, n_outputs, float(alpha), max_iter)
    support = Support(problem, fit_intercept, capacity=n_atoms)
    support.correct(min(tol, 1e-6), 0.0)
    path = Path((), support.value, support.intercept())
    if start is not None and start.rounds:
        kept = min(n_atoms, len(start.rounds))
        path = replace(start, rounds=start.rounds[:kept], interrupted=False, exhausted=False)
        _reload(support, pool, path.rounds[-1])
    try:
        while len(path.rounds) < n_atoms:
            last = len(path.rounds) == n_atoms - 1
            looser, floor = _LAST if last else _EARLIER
            step = _round(support, pool, rule, swaps, looser * tol, floor * path.null_loss)
            if step is None:
                path = replace(_polished(path, support, tol), exhausted=True)
                break
            support, made = step
            path = replace(path, rounds=(*path.rounds, made))
            if on_round is not None and on_round(path):
                path = _polished(path, support, tol)
                break
    except KeyboardInterrupt:
        if not path.rounds:
            raise
        path = replace(path, interrupted=True)
    return path


def _round(
    support: Support, pool: PreparedPool, rule: str, swaps: int, tol: float, scale: float
) -> tuple[Support, Round] | None:
    """Add one atom, correct, and try the replacements; None if no atom can lower the loss."""
    began = time.perf_counter()
    choice = choose(support, pool, rule, frozenset(support.blocks))
    if choice is None:
        return None
    support.append(choice.atom, choice.rows, offset=choice.offset)
    drop = support.promised_drop(choice.rows, choice.gradient)
    outcome = support.correct(tol, scale, drop)
    for _ in range(swaps):
        swapped = _swap(support, pool, rule, tol, scale)
        if swapped is None:
            break
        support, outcome = swapped
    return support, _record(support, choice.atom, choice.gradient, outcome, began)


def _polished(path: Path, support: Support, tol: float) -> Path:
    """Return the path with its last round solved to the tolerance of a last round."""
    if not path.rounds:
        return path
    *earlier, last = path.rounds
    began = time.perf_counter()
    outcome = support.correct(_LAST[0] * tol, _LAST[1] * path.null_loss)
    made = _record(support, last.atom, last.gradient, outcome, began)
    made = replace(
        made,
        seconds=made.seconds + last.seconds,
        iterations=made.iterations + last.iterations,
    )
    return replace(path, rounds=(*earlier, made))


def _swap(
    support: Support, pool: PreparedPool, rule: str, tol: float, scale: float
) -> tuple[Support, Outcome] | None:
    """Replace the cheapest atom by a better one; None if that does not lower the objective.

    The newest atom stays: it was the best given the others, which may not be the best given it.
    """
    if len(support.blocks) < 2:
        return None
    costs = support.removal_costs()
    newest = next(reversed(support.blocks))
    cheapest = min((atom for atom in costs if atom != newest), key=costs.__getitem__)
    trial = support.without(cheapest)
    trial.correct(tol, scale)
    choice = choose(trial, pool, rule, frozenset(support.blocks))
    if choice is None:
        return None
    trial.append(choice.atom, choice.rows, offset=choice.offset)
    outcome = trial.correct(tol, scale)
    return (trial, outcome) if trial.objective < support.objective else None


def _reload(support: Support, pool: PreparedPool, done: Round) -> None:
    """Put the atoms and weights of a finished round back into an empty support."""
    row = 0
    for atom in done.support:
        rows, offset = support.centred(pool.columns(atom))
        weights = done.weights[row : row + rows.shape[0], :]
        support.append(atom, rows, weights, offset)
        row += rows.shape[0]
    support.start_from(done.intercept)


def _record(support: Support, atom: Any, gradient: float, outcome: Outcome, began: float) -> Round:
    xp = namespace(support.weights)
    first = int(support.has_intercept)
    return Round(
        atom=atom,
        support=tuple(support.blocks),
        weights=xp.asarray(support.weights[first:, :], copy=True),
        intercept=support.intercept(),
        loss=support.value,
        objective=support.objective,
        gradient=gradient,
        seconds=time.perf_counter() - began,
        iterations=outcome.iterations,
        gap=outcome.gap,
        converged=outcome.converged and math.isfinite(support.value),
    )
