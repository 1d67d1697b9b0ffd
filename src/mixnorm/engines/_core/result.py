"""The result that engines with a duality gap have in common."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Result:
    """How far a solver came; a subclass adds what it found.

    Attributes
    ----------
    objective : float
        The value that was minimised.
    gap : float
        Duality gap: the objective is at most this much above the optimum.
    iterations : int
        Iterations done.
    converged : bool
        Whether the gap meets the tolerance.
    interrupted : bool
        Whether a keyboard interrupt ended the work.
    history : tuple of float
        The gap after each iteration.
    """

    objective: float
    gap: float
    iterations: int
    converged: bool
    interrupted: bool = False
    history: tuple[float, ...] = ()
