"""What an engine said of the fit that found a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, eq=False)
class FitReport:
    """How good a fit is, and how it ended; a model knows nothing of this.

    Parameters
    ----------
    objective : float
        What was minimised.
    gap : float
        The objective is at most this much above its optimum.
    iterations : int
        Iterations of the engine.
    converged, interrupted : bool
        Whether the gap reached the tolerance, and whether somebody stopped the fit.
    norm_value : float, optional
        The norm of the weights.
    facts : dict
        What only some estimators report, by name.
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
        """Return the report of what an engine returned."""
        return cls(
            float(found.objective),
            float(found.gap),
            int(found.iterations),
            bool(found.converged),
            bool(found.interrupted),
            norm_value,
            facts,
        )
