"""The base class of the results of engines with a duality gap."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Result:
    """How a solver ended; a subclass adds the solution.

    Attributes
    ----------
    objective : float
        The value of the objective at the solution.
    gap : float
        Duality gap: an upper bound on the distance of the objective from its optimum.
    iterations : int
        Number of iterations.
    converged : bool
        Whether the gap meets the tolerance.
    interrupted : bool
        Whether a keyboard interrupt ended the run.
    history : tuple of float
        The gap after each iteration.
    """

    objective: float
    gap: float
    iterations: int
    converged: bool
    interrupted: bool = False
    history: tuple[float, ...] = ()
