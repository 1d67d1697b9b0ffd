"""Choosing a model by held-out scores: one search, below the estimators and commands that use it.

Open ``loop.py`` first: it goes through folds and candidates. ``problem.py`` says what it is given,
``result.py`` what it returns, and ``choice.py`` picks a candidate. The room may import ``engines``,
``models`` and all below them.
"""

from mixnorm.selection.choice import choose, standard_error
from mixnorm.selection.loop import search
from mixnorm.selection.problem import SILENT, Candidate, FixedScores, Progress, SearchProblem
from mixnorm.selection.result import SearchResult

__all__ = [
    "SILENT",
    "Candidate",
    "FixedScores",
    "Progress",
    "SearchProblem",
    "SearchResult",
    "choose",
    "search",
    "standard_error",
]
