"""The result of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from mixnorm.selection.choice import mean_scores, spread, standard_error


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The scores of all candidates, and the chosen one.

    Parameters
    ----------
    cv_results : dict
        A row per candidate under scikit-learn's names: ``params``, the score of every fold, their
        mean, spread and rank.
    chains : ndarray of int
        The chain of each candidate; within a chain candidates go from simple to complex.
    facts : dict of ndarray of shape (n_folds, n_candidates)
        Further numbers about each fit.
    n_splits : int
        The number of folds with scores.
    interrupted : bool
        Whether the search was interrupted.
    best_index : int
        The row of the chosen candidate; -1 before the choice.
    predictions : tuple of tuple of ndarray
        By candidate and fold, the predictions for the held-out rows, if they were kept.
    """

    cv_results: dict[str, Any]
    chains: np.ndarray
    facts: dict[str, np.ndarray]
    n_splits: int
    interrupted: bool = False
    best_index: int = -1
    predictions: tuple[Any, ...] = field(default=(), repr=False)

    @classmethod
    def of(
        cls,
        params: Sequence[Mapping[str, Any]],
        scores: Mapping[str, np.ndarray],
        chains: np.ndarray,
        facts: dict[str, np.ndarray],
        **others: Any,
    ) -> Self:
        """Return the result whose ``scores`` are, by metric, of shape ``(n_folds, n_candidates)``.

        Examples
        --------
        >>> import numpy as np
        >>> scores = {"score": np.array([[0.5, 0.75], [0.5, 0.25]])}
        >>> found = SearchResult.of([{"C": 1.0}, {"C": 2.0}], scores, np.zeros(2, np.intp), {})
        >>> found.cv_results["mean_test_score"], found.cv_results["rank_test_score"]
        (array([0.5, 0.5]), array([1, 1], dtype=int32))
        """
        # Candidates of different chains may have different parameters; a column has None where one
        # lacks it.
        names = list(dict.fromkeys(name for row in params for name in row))
        columns: dict[str, Any] = {"params": [dict(row) for row in params]}
        columns |= {f"param_{name}": _column([row.get(name) for row in params]) for name in names}
        for metric, table in scores.items():
            columns |= _columns_of(metric, table)
        n_splits = len(next(iter(scores.values())))
        return cls(columns, chains, facts, n_splits, **others)

    def scores(self, metric: str = "score") -> np.ndarray:
        """Return the scores of all folds, of shape ``(n_folds, n_candidates)``."""
        return np.stack([self.cv_results[f"split{k}_test_{metric}"] for k in range(self.n_splits)])

    @property
    def best_params(self) -> dict[str, Any]:
        """Parameters of the chosen candidate."""
        return self.cv_results["params"][self.best_index]

    @property
    def best_score(self) -> float:
        """Mean held-out score of the chosen candidate."""
        return float(self.cv_results["mean_test_score"][self.best_index])

    def _check_stored(self) -> None:
        """Raise unless every column has an entry for each candidate, and one is chosen."""
        results, params = self.cv_results, self.cv_results.get("params")
        # The result may come from a file: whatever a property below reads is checked here.
        needed = {"mean_test_score", *(f"split{k}_test_score" for k in range(self.n_splits))}
        if not isinstance(params, list) or not needed <= results.keys():
            raise ValueError("cv_results_ must have the columns params and mean_test_score")
        columns = [column for column in results.values() if isinstance(column, (list, np.ndarray))]
        sizes = {len(column) for column in columns} | {len(self.chains)}
        if len(columns) < len(results) or len(sizes) != 1:
            raise ValueError("cv_results_ must have an entry for every candidate in each column")
        if not 0 <= self.best_index < len(params):
            raise ValueError("best_index_ must be the row of a candidate in cv_results_")
        if not isinstance(self.best_params, dict):
            raise ValueError("params in cv_results_ must be dictionaries")


def _columns_of(metric: str, table: np.ndarray) -> dict[str, np.ndarray]:
    """Return the columns of one metric, from scores of shape ``(n_folds, n_candidates)``."""
    from scipy.stats import rankdata

    mean = mean_scores(table)
    # Candidates without a score come last, as in scikit-learn.
    rank = np.asarray(rankdata(np.nan_to_num(-mean, nan=np.inf), method="min"), dtype=np.int32)
    known = np.isfinite(mean)
    deviation = np.full(len(mean), np.nan)
    deviation[known] = spread(table[:, known])
    error = "standard_error" if metric == "score" else f"standard_error_{metric}"
    return {
        **{f"split{fold}_test_{metric}": row for fold, row in enumerate(table)},
        f"mean_test_{metric}": mean,
        f"std_test_{metric}": deviation,
        f"rank_test_{metric}": rank,
        error: standard_error(table),
    }


def _column(values: list[Any]) -> np.ndarray:
    """Return the values of a parameter: numbers as such, others as objects."""
    column = np.asarray(values) if all(isinstance(v, (int, float)) for v in values) else None
    if column is None:
        # Filled in place: numpy.asarray would turn a list of tuples into a table.
        column = np.empty(len(values), dtype=object)
        column[:] = values
    return column
