"""The problem that a search solves, its candidates, and the display of progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True, eq=False)
class FixedScores:
    """A model whose scores are already known, for certain rows.

    Kernel learners use it, so that scoring a candidate computes no kernel again.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_scores)
        The scores.
    outputs : ClassOutputs or NumberOutputs
        What the scores mean.
    """

    values: np.ndarray
    outputs: Any

    def scores(self, X: object) -> np.ndarray:
        """Return the scores, which are those of the rows ``X``."""
        return self.values


@dataclass(frozen=True, eq=False)
class Candidate:
    """A fit on the training rows of a fold, and its scores of the held-out rows.

    Parameters
    ----------
    params : dict
        The parameters of the fit.
    rows : any
        The held-out rows, as the split gives them.
    scores : ndarray of shape (n_rows, n_scores)
        The scores of these rows.
    model : model
        The model, or :class:`FixedScores`.
    facts : dict
        Numbers to keep beside the scores, such as whether the engine converged.
    """

    params: dict[str, Any]
    rows: Any
    scores: np.ndarray
    model: Any
    facts: dict[str, float] = field(default_factory=dict)


class Progress(Protocol):
    """A display of progress, as a tree of tasks."""

    def task(self, name: str, n_tasks: int = 0) -> Progress:
        """Begin a task below this one, of at most ``n_tasks`` parts."""

    def end(self) -> Any:
        """End the task."""


class _Silent:
    """Shows nothing."""

    def task(self, name: str, n_tasks: int = 0) -> Progress:
        """Return itself."""
        return self

    def end(self) -> None:
        """Do nothing."""


SILENT: Progress = _Silent()


class SearchProblem(Protocol):
    """The rows of a search, and whatever is computed once from all of them.

    Candidates come in *chains*, from simple to complex, whose fits share work: truncations of one
    path, or fits that each start from the one before.
    """

    #: The largest number of candidates of each chain.
    chains: Sequence[int]

    def fold(self, train: Any, test: Any) -> Callable[[int], Iterator[Candidate]]:
        """Return a function that yields the candidates of a chain, fitted on the rows ``train``.

        The chains of a fold may share what is computed here. The iterator raises
        KeyboardInterrupt if an engine was interrupted.
        """
