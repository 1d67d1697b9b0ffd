"""What a search by cross-validation found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The scores of all candidates, and the chosen one.

    Parameters
    ----------
    cv_results : dict
        A row per candidate: its parameters, the score of every fold, their mean and spread.
    best_params : dict
        Parameters of the chosen candidate.
    best_score : float
        Its mean held-out score.
    """

    cv_results: dict[str, Any]
    best_params: dict[str, Any]
    best_score: float
