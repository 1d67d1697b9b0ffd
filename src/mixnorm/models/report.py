"""The report of an engine about a fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, eq=False)
class FitReport:
    """How good a fit is and how it ended, which is no part of the model.

    Parameters
    ----------
    objective : float
        The value of the minimised objective.
    gap : float
        Bound on how far the objective is above its optimum.
    iterations : int
        Iterations of the engine.
    converged, interrupted : bool
        Whether the gap reached the tolerance, and whether the fit was interrupted.
    norm_value : float, optional
        The norm of the weights.
    facts : dict
        Further figures of some estimators, by name.
    """

    objective: float
    gap: float
    iterations: int
    converged: bool
    interrupted: bool
    norm_value: float | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Any, norm_value: float | None = None, **facts: Any) -> Self:
        """Return the report about the result of an engine."""
        return cls(
            float(found.objective),
            float(found.gap),
            int(found.iterations),
            bool(found.converged),
            bool(found.interrupted),
            norm_value,
            facts,
        )
