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

    def _check_stored(self) -> None:
        """Raise unless every column has an entry for each candidate."""
        if len({len(column) for column in self.cv_results.values()}) != 1:
            raise ValueError("cv_results_ must have an entry for every candidate in each column")
