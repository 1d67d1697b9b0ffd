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

#: Returns how good a candidate is on its held-out rows; NaN if these are too few to tell.
HeldOutScore = Callable[[Candidate], float]


@dataclass(frozen=True, eq=False)
class _Scored:
    """The scores of a candidate; it keeps the candidate itself only if folds are scored jointly."""

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

    Nothing is chosen (see :func:`choose`) and nothing is refitted. After an interrupt the finished
    folds count, or the finished candidates of the first fold.

    Parameters
    ----------
    problem : SearchProblem
        The rows and the candidates.
    splits : sequence of (train, test)
        The training and test rows of each fold, as the problem takes them.
    scoring : dict of callable
        Functions by name that return the score of a candidate; larger is better.
    n_jobs : int, optional
        Chains of folds that are fitted at the same time; None means 1, -1 all processors.
    progress : Progress, optional
        Shows a task per fold, and below it one per candidate if ``n_jobs`` is None or 1.
    keep_predictions : bool, default=False
        Whether to keep the predictions of every candidate for the held-out rows.

    Returns
    -------
    SearchResult
        Without a choice.
    """
    evaluate = partial(_evaluate, scoring, keep_predictions)
    run = _one_by_one if n_jobs in (None, 1) else partial(_side_by_side, n_jobs)
    folds: list[_Chains] = []
    interrupted = False
    try:
        # ``extend`` takes one fold at a time from the generator, so that those before an interrupt
        # are kept; a list comprehension would lose them.
        folds.extend(run(problem, splits, evaluate, progress))  # keeps what came before an error
    except KeyboardInterrupt:
        if not any(chain for fold in folds for chain in fold):
            raise
        interrupted = True
    return _table(folds, scoring, interrupted)


def _evaluate(
    scoring: Mapping[str, HeldOutScore], keep_predictions: bool, candidate: Candidate
) -> _Scored:
    values = {name: float(score(candidate)) for name, score in scoring.items()}
    found = candidate.model.outputs.labels(candidate.scores) if keep_predictions else None
    # Only rows that are positions can be joined over folds; the problems of some learners have
    # others.
    rows_known = isinstance(candidate.rows, np.ndarray)
    nothing = all(math.isnan(value) for value in values.values())
    # A candidate holds a model and all its scores. It is kept only for the rare case that no fold
    # can be scored alone; otherwise memory would grow with the number of candidates.
    unscored = candidate if nothing and rows_known else None
    return _Scored(candidate.params, values, candidate.facts, found, unscored)


def _one_by_one(
    problem: SearchProblem,
    splits: Sequence[tuple[Any, Any]],
    evaluate: Callable[[Candidate], _Scored],
    progress: Progress,
) -> Iterator[_Chains]:
    """Yield the folds one after the other; of the first also a part, if it is interrupted."""
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
            # A part of a later fold is dropped: candidates must be compared on the same folds.
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
    """Yield the folds, with several chains fitted at the same time."""
    from sklearn.utils.parallel import Parallel, delayed

    # A generator: joblib takes jobs as workers become free. One job is a whole chain, because its
    # candidates start from one another.
    jobs = (
        delayed(_one_chain)(problem, train, test, number, evaluate)
        for train, test in splits
        for number in range(len(problem.chains))
    )
    # In the order of the jobs, so that folds are complete one after the other.
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
    train: object,
    test: object,
    number: int,
    evaluate: Callable[[Candidate], _Scored],
) -> tuple[list[_Scored], bool]:
    """Return a chain, and whether it was interrupted, which workers cannot raise."""
    try:
        return [evaluate(candidate) for candidate in problem.fold(train, test)(number)], False
    # joblib would report an interrupt in a worker as an error of its own.
    except KeyboardInterrupt:
        return [], True


# --- the table


def _table(
    folds: list[_Chains], scoring: Mapping[str, HeldOutScore], interrupted: bool
) -> SearchResult:
    """Return a row per candidate; a chain that ended early in a fold repeats its last one."""
    params: list[dict[str, Any]] = []
    chains: list[int] = []
    columns: list[list[_Scored | None]] = []
    for number in range(max(len(fold) for fold in folds)):
        parts = [fold[number] if number < len(fold) else [] for fold in folds]
        # A path may end early on some folds, for example when nothing is left to gain. Its last
        # model is then also the best one for all later sizes.
        longest = max(parts, key=len)
        params += [one.params for one in longest]
        chains += [number] * len(longest)
        columns += [
            [part[min(place, len(part) - 1)] if part else None for part in parts]
            for place in range(len(longest))
        ]
    scores = {name: _numbers(columns, len(folds), "values", name) for name in scoring}
    unscored = [one for column in columns for one in column if one and one.unscored]
    # Joint scores replace those of the folds only if no fold has any: a mean over some folds is the
    # usual score and is not mixed with another kind.
    if unscored and all(np.all(np.isnan(table)) for table in scores.values()):
        scores = _score_jointly(columns, scoring)
    # A dictionary keeps the order of the first appearance, a set would not.
    names = {name: None for column in columns for one in column if one for name in one.facts}
    return SearchResult.of(
        params,
        scores,
        np.asarray(chains, dtype=np.intp),
        {name: _numbers(columns, len(folds), "facts", name) for name in names},
        predictions=tuple(
            tuple(None if one is None else one.prediction for one in column) for column in columns
        ),
        interrupted=interrupted,
    )


def _numbers(columns: list[list[_Scored | None]], n_folds: int, kind: str, name: str) -> np.ndarray:
    """Return a table ``(n_folds, n_candidates)``, with NaN for a candidate that a fold lacks."""
    table = np.full((n_folds, len(columns)), np.nan)
    for place, column in enumerate(columns):
        for fold, one in enumerate(column):
            if one is not None:
                table[fold, place] = getattr(one, kind).get(name, math.nan)
    return table


def _score_jointly(
    columns: list[list[_Scored | None]], scoring: Mapping[str, HeldOutScore]
) -> dict[str, np.ndarray]:
    """Score the held-out rows of all folds together, for folds too small to have scores.

    With one row left out, for example, no fold has a share of variance explained.
    """
    parts = [[one.unscored for one in column if one and one.unscored] for column in columns]
    joined = [_join(part) if part else None for part in parts]
    return {
        name: np.array([[math.nan if one is None else score(one) for one in joined]])
        for name, score in scoring.items()
    }


def _join(parts: Sequence[Candidate]) -> Candidate:
    scores = np.concatenate([part.scores for part in parts])
    rows = np.concatenate([part.rows for part in parts])
    return Candidate(parts[0].params, rows, scores, FixedScores(scores, parts[0].model.outputs))
