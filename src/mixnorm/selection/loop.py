"""The loop over folds and candidates: every search of the package goes through it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mixnorm.selection.problem import SILENT, Candidate, FixedScores, Progress, SearchProblem
from mixnorm.selection.result import SearchResult

#: Returns how good a candidate is on its held-out rows; NaN where they do not say.
HeldOutScore = Callable[[Candidate], float]


@dataclass(frozen=True, eq=False)
class _Scored:
    """What is kept of a candidate: no model, and its scores of rows only where they are needed."""

    params: dict[str, Any]
    values: dict[str, float]
    facts: dict[str, float]
    prediction: np.ndarray | None
    unscored: Candidate | None


# The candidates of a fold, by chain.
_Chains = list[list[_Scored]]


def search(
    problem: SearchProblem,
    splits: Sequence[tuple[Any, Any]],
    *,
    scoring: Mapping[str, HeldOutScore],
    n_jobs: int | None = None,
    progress: Progress = SILENT,
    keep_predictions: bool = False,
) -> SearchResult:
    """Score all candidates of a problem on held-out rows.

    Nothing is chosen and nothing is refitted: see :func:`choose`. An interrupt keeps the folds that
    are done, or what is done of the first.

    Parameters
    ----------
    problem : SearchProblem
        The rows and the candidates.
    splits : sequence of (train, test)
        The folds, as the problem takes them.
    scoring : dict of callable
        By name, what returns the score of a candidate, larger being better.
    n_jobs : int, optional
        Chains of folds that are fitted at the same time; None means 1, -1 all processors.
    progress : Progress, optional
        Shows a task per fold, and below it one per candidate if ``n_jobs`` is None or 1.
    keep_predictions : bool, default=False
        Whether to keep what every candidate predicts for the held-out rows.

    Returns
    -------
    SearchResult
        Without a choice.
    """
    evaluate = partial(_evaluated, scoring, keep_predictions)
    run = _one_by_one if n_jobs in (None, 1) else partial(_side_by_side, n_jobs)
    folds: list[_Chains] = []
    interrupted = False
    try:
        folds.extend(run(problem, splits, evaluate, progress))  # keeps what came before an error
    except KeyboardInterrupt:
        if not any(chain for fold in folds for chain in fold):
            raise
        interrupted = True
    return _table(folds, scoring, interrupted)


def _evaluated(
    scoring: Mapping[str, HeldOutScore], keep_predictions: bool, candidate: Candidate
) -> _Scored:
    values = {name: float(score(candidate)) for name, score in scoring.items()}
    found = candidate.model.outputs.labels(candidate.scores) if keep_predictions else None
    rows_known = isinstance(candidate.rows, np.ndarray)
    nothing = all(math.isnan(value) for value in values.values())
    unscored = candidate if nothing and rows_known else None
    return _Scored(candidate.params, values, candidate.facts, found, unscored)


def _one_by_one(
    problem: SearchProblem,
    splits: Sequence[tuple[Any, Any]],
    evaluate: Callable[[Candidate], _Scored],
    progress: Progress,
) -> Iterator[_Chains]:
    """Yield the folds one after the other; what is done of the first, if it is interrupted."""
    for place, (train, test) in enumerate(splits):
        task = progress.task("fold", sum(problem.chains))
        fold: _Chains = []
        try:
            chain_of = problem.fold(train, test)
            for number in range(len(problem.chains)):
                fold.append([])
                for candidate in chain_of(number):
                    step = task.task("candidate")
                    fold[-1].append(evaluate(candidate))
                    step.end()
        except KeyboardInterrupt:
            if place == 0:
                yield fold
            raise
        task.end()
        yield fold


def _side_by_side(
    n_jobs: int,
    problem: SearchProblem,
    splits: Sequence[tuple[Any, Any]],
    evaluate: Callable[[Candidate], _Scored],
    progress: Progress,
) -> Iterator[_Chains]:
    """Yield the folds, whose chains are fitted at the same time."""
    from sklearn.utils.parallel import Parallel, delayed

    jobs = (
        delayed(_one_chain)(problem, train, test, number, evaluate)
        for train, test in splits
        for number in range(len(problem.chains))
    )
    chains = iter(Parallel(n_jobs=n_jobs, return_as="generator")(jobs))
    for _ in splits:
        task = progress.task("fold", sum(problem.chains))
        fold = []
        for _ in problem.chains:
            chain, interrupted = next(chains)
            if interrupted:
                raise KeyboardInterrupt
            fold.append(chain)
        task.end()
        yield fold


def _one_chain(
    problem: SearchProblem,
    train: Any,
    test: Any,
    number: int,
    evaluate: Callable[[Candidate], _Scored],
) -> tuple[list[_Scored], bool]:
    """Return a chain, and whether it was interrupted: workers cannot raise that."""
    try:
        return [evaluate(candidate) for candidate in problem.fold(train, test)(number)], False
    except KeyboardInterrupt:
        return [], True


# --- the table


def _table(
    folds: list[_Chains], scoring: Mapping[str, HeldOutScore], interrupted: bool
) -> SearchResult:
    """Return a row per candidate; where a chain ended early in a fold, its last one counts on."""
    params: list[dict[str, Any]] = []
    chains: list[int] = []
    columns: list[list[_Scored | None]] = []
    for number in range(max(len(fold) for fold in folds)):
        parts = [fold[number] if number < len(fold) else [] for fold in folds]
        longest = max(parts, key=len)
        params += [one.params for one in longest]
        chains += [number] * len(longest)
        columns += [
            [part[min(place, len(part) - 1)] if part else None for part in parts]
            for place in range(len(longest))
        ]
    scores = {name: _numbers(columns, len(folds), _value(name)) for name in scoring}
    unscored = [one for column in columns for one in column if one and one.unscored]
    if unscored and all(np.all(np.isnan(table)) for table in scores.values()):
        scores = _joined_scores(columns, scoring)
    names = {name: None for column in columns for one in column if one for name in one.facts}
    return SearchResult.of(
        params,
        scores,
        np.asarray(chains, dtype=np.intp),
        {name: _numbers(columns, len(folds), _fact(name)) for name in names},
        predictions=tuple(
            tuple(None if one is None else one.prediction for one in column) for column in columns
        ),
        interrupted=interrupted,
    )


def _numbers(
    columns: list[list[_Scored | None]], n_folds: int, pick: Callable[[_Scored], float]
) -> np.ndarray:
    """Return a table ``(n_folds, n_candidates)``, with NaN for a candidate that a fold lacks."""
    table = np.full((n_folds, len(columns)), np.nan)
    for place, column in enumerate(columns):
        for fold, one in enumerate(column):
            if one is not None:
                table[fold, place] = pick(one)
    return table


def _value(name: str) -> Callable[[_Scored], float]:
    return lambda one: one.values[name]


def _fact(name: str) -> Callable[[_Scored], float]:
    return lambda one: one.facts.get(name, math.nan)


def _joined_scores(
    columns: list[list[_Scored | None]], scoring: Mapping[str, HeldOutScore]
) -> dict[str, np.ndarray]:
    """Score the held-out rows of all folds together, where no fold can be scored by itself.

    Leaving one row out does that to the share of variance explained.
    """
    tables = {name: np.full((1, len(columns)), np.nan) for name in scoring}
    for place, column in enumerate(columns):
        parts = [one.unscored for one in column if one and one.unscored]
        for name, score in scoring.items():
            if parts:
                tables[name][0, place] = score(_joined(parts))
    return tables


def _joined(parts: Sequence[Candidate]) -> Candidate:
    scores = np.concatenate([part.scores for part in parts])
    rows = np.concatenate([part.rows for part in parts])
    return Candidate(parts[0].params, rows, scores, FixedScores(scores, parts[0].model.outputs))
