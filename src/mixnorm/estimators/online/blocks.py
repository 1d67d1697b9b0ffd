"""Learning from tables of row blocks: the same weights as from the same rows in memory."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from mixnorm._array import ArrayLike, is_sparse
from mixnorm.data import (
    ALL_COLUMNS,
    Block,
    BlockTable,
    LabelFacts,
    RowError,
    check_labels,
    check_row_weights,
    join_labels,
    label_facts,
)
from mixnorm.engines import mirror
from mixnorm.estimators._common.blocks.tables import check_not_empty, require_target, validate_table
from mixnorm.estimators._common.inputs import (
    apply_class_weights,
    row_weights,
)
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators.online.state import OnlineRows, check_tasks
from mixnorm.exceptions import InterruptedFitWarning

if TYPE_CHECKING:
    from mixnorm.estimators.online.base import OnlineEstimator


class _Survey(NamedTuple):
    """What must be known of all targets before the first row."""

    #: The labels; None for numbers.
    facts: LabelFacts | None
    #: The shape of a target, and whether any number is known.
    shape: tuple[int, ...]
    known: bool
    #: The largest weight.
    weight: float

    @property
    def labels(self) -> np.ndarray | None:
        """The distinct labels, sorted; None for numbers."""
        return None if self.facts is None else self.facts.classes


class _Portion(NamedTuple):
    """Rows to learn from in one call."""

    start: int
    X: Any
    y: np.ndarray
    weight: np.ndarray


def learn_table(
    estimator: OnlineEstimator, table: BlockTable, role: ArrayLike | None, *, whole: bool = False
) -> None:
    """Learn from the rows of a table, in order; forget what was learned before if ``whole``.

    A first pass over the targets finds the labels, as a call with all rows would know them from the
    first row on. After an interrupt the rows learned from are kept.
    """
    name = type(estimator).__name__
    if whole and estimator.shuffle:
        raise ValueError(
            f"{name}.fit shuffles rows (shuffle=True), and a table of blocks is read in order. Set "
            "shuffle=False, or call partial_fit; if rows are sorted, write them in a random order "
            "first."
        )
    if whole or estimator._resume is None:
        estimator._check_parameters()
    require_target(estimator, table)
    check_not_empty(estimator, table)
    survey = _survey_targets(estimator, table)
    if whole and not survey.weight > 0.0:
        raise ValueError("sample_weight is zero for every row; give some row a positive one.")
    class_weight = _find_class_weight(estimator, table, survey, whole=whole)
    if whole:
        estimator._resume = None
    fresh = estimator._resume is None
    estimator._begin()
    if estimator.hash_features is not None or not fresh:
        # Raises for learners that take dicts; an array without rows is as good as any for that.
        estimator._check_no_names()
        _refuse_hashing(estimator)
    validate_table(estimator, table, reset=fresh)
    try:
        tasks = _prepare(estimator, table, survey, role)
        _learn_blocks(estimator, table, tasks, class_weight)
    except BaseException:
        if fresh and estimator._resume is not None and estimator._learner.rounds == 0:
            estimator._resume = None
        raise


def sum_duplicates(X: Any) -> Any:
    """Return rows whose sparse entries are one per column and in order, as the loops need them."""
    # Twice the same column in a row would be two inputs with half the squared size.
    if is_sparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _refuse_hashing(estimator: OnlineEstimator) -> None:
    if estimator.hash_features is not None:
        raise TypeError(
            f"hash_features={estimator.hash_features!r} works only with rows that are dicts; leave "
            "it out for a table of blocks."
        )


# --- the pass over the targets


def _survey_targets(estimator: OnlineEstimator, table: BlockTable) -> _Survey:
    visit = _survey_labels if estimator._target_dtype is None else _survey_numbers
    try:
        found: _Survey = table.sum(visit, target=True, combine=_join_surveys)
    except RowError as error:
        raise error.name_place(table) from None
    return found


def _survey_labels(block: Block) -> _Survey:
    try:
        return _Survey(label_facts(block.y, None), (), True, _largest_weight(block))
    except RowError as error:
        raise error.shift(block.rows.start) from None


def _survey_numbers(block: Block) -> _Survey:
    y = np.asarray(block.y)
    known = y.dtype.kind != "f" or not np.all(np.isnan(y))
    try:
        return _Survey(None, y.shape[1:], known, _largest_weight(block))
    except RowError as error:
        raise error.shift(block.rows.start) from None


def _largest_weight(block: Block) -> float:
    return float(np.max(check_row_weights(block.weight, block.size), initial=0.0))


def _join_surveys(left: _Survey, right: _Survey) -> _Survey:
    facts = left.facts
    if facts is not None and right.facts is not None:
        facts = join_labels(facts, right.facts)
    known, weight = left.known or right.known, max(left.weight, right.weight)
    return _Survey(facts, left.shape, known, weight)


def _find_class_weight(
    estimator: OnlineEstimator, table: BlockTable, survey: _Survey, *, whole: bool
) -> Any:
    """Return the weights of classes as a dictionary, or None."""
    given, labels = estimator.class_weight, survey.labels
    if given is None or labels is None:
        return None
    if not isinstance(given, str) or not whole:
        apply_class_weights(given, labels, None, stream=not whole)  # raises
        return given
    # Added up row by row, as in memory, so that the last bit does not depend on the blocks.
    totals, places = np.zeros(len(labels)), np.arange(len(labels))
    for block in table.iterate(columns=None, target=True):
        own = np.searchsorted(labels, check_labels(block.y))
        weight = row_weights(block.weight, block.size) / (survey.weight or 1.0)
        totals = np.bincount(
            np.concatenate([places, own]), np.concatenate([totals, weight]), len(labels)
        )
    factors = np.sum(totals) / (np.count_nonzero(totals) * np.where(totals, totals, 1.0))
    return dict(zip(labels.tolist(), factors.tolist(), strict=True))


# --- the pass over the rows


def _prepare(
    estimator: OnlineEstimator, table: BlockTable, survey: _Survey, role: ArrayLike | None
) -> np.ndarray | None:
    """Make room for all outputs of the table; return the task of each row, if there are tasks."""
    tasks = None
    if survey.labels is not None:
        # Each label twice: scikit-learn takes labels that are all different for numbers.
        y = estimator._check_targets(np.tile(survey.labels, 2))
    else:
        estimator._check_targets(np.full((1, *survey.shape), 0.0 if survey.known else np.nan))
        y = np.full((1, *survey.shape), np.nan)
        if role is not None:
            tasks = check_tasks(role, table.shape[0])
            role = np.unique(tasks)
            y = np.full((len(role), *survey.shape), np.nan)
    shape = (0, table.shape[1])
    X: Any = sparse.csr_matrix(shape) if table.sparse else np.empty(shape)
    targets = estimator._encode(y, X, role)
    nothing = targets._replace(places=targets.places[:0], values=targets.values[:0])
    estimator._make_room(OnlineRows(X), nothing, {})
    return tasks


def _learn_blocks(
    estimator: OnlineEstimator, table: BlockTable, tasks: np.ndarray | None, class_weight: Any
) -> None:
    before = estimator._learner.rounds
    saved: Any = None
    try:
        for rows in _cut_rows(estimator, table):
            if isinstance(estimator._learner, mirror.BlockLearner):
                # An interrupt may come in the middle of an update of these, unlike of the others.
                saved = copy.deepcopy(estimator._resume)
            _learn_rows(estimator, table, rows, tasks, class_weight)
            saved = None
    except KeyboardInterrupt:
        if saved is not None:
            estimator._resume = saved
        done = estimator._learner.rounds - before
        if done == 0:
            raise
        warn_caller(
            f"Interrupted after {done} of {table.shape[0]} rows, which are kept.",
            InterruptedFitWarning,
        )


def _learn_rows(
    estimator: OnlineEstimator,
    table: BlockTable,
    rows: _Portion,
    tasks: np.ndarray | None,
    class_weight: Any,
) -> None:
    y = estimator._check_targets(rows.y)
    weight = apply_class_weights(class_weight, y, rows.weight, stream=True)
    own = None if tasks is None else tasks[rows.start : rows.start + len(y)]
    targets = estimator._encode(y, rows.X, own)
    estimator._make_room(OnlineRows(rows.X), targets, {})
    try:
        estimator._learn(rows.X, targets, weight, None)
    except mirror.NotFiniteError as error:
        row = rows.start + len(error.losses)
        where = table.source.describe(slice(row, row + 1))
        raise ValueError(
            f"X contains NaN or infinity in row {row} of the table ({where}); the {row} rows "
            "before it were learned from. Fill such values in, or leave the row out."
        ) from None


def _cut_rows(estimator: OnlineEstimator, table: BlockTable) -> Iterator[_Portion]:
    """Yield the rows of a table in parts that end where a block of the learner ends.

    Rows that the learner predicts together then come together, as in one call with all rows.
    """
    learner = estimator._learner
    size = learner.plan.block if isinstance(learner, mirror.BlockLearner) else 1
    missing = size - int(learner.waiting[0]) if isinstance(learner, mirror.BlockLearner) else 1
    rest: _Portion | None = None
    for block in table.iterate(ALL_COLUMNS, target=True):
        weight = row_weights(block.weight, block.size)
        y = check_labels(block.y) if estimator._target_dtype is None else np.asarray(block.y)
        rows = _Portion(block.rows.start, sum_duplicates(block.X), y, weight)
        rest = rows if rest is None else _join(rest, rows)
        count = len(rest.y)
        whole = count if block.number == table.n_blocks - 1 else _count_whole(count, missing, size)
        if whole > 0:
            yield _Portion(rest.start, rest.X[:whole], rest.y[:whole], rest.weight[:whole])
            missing = size
            left = _Portion(rest.start + whole, rest.X[whole:], rest.y[whole:], rest.weight[whole:])
            rest = left if whole < count else None


def _count_whole(count: int, missing: int, size: int) -> int:
    """Return how many of the next rows end a block of ``size``, the first of which lacks some.

    Examples
    --------
    >>> [_count_whole(count, 2, 5) for count in (1, 2, 6, 7, 13)]
    [0, 2, 2, 7, 12]
    """
    return 0 if count < missing else missing + (count - missing) // size * size


def _join(first: _Portion, second: _Portion) -> _Portion:
    join = sparse.vstack if is_sparse(first.X) else np.concatenate
    X = join([first.X, second.X])
    y, weight = (np.concatenate(pair) for pair in zip(first[2:], second[2:], strict=True))
    return _Portion(first.start, X.tocsr() if is_sparse(X) else X, y, weight)
