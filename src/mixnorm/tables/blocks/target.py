"""The target and the weights of a table that does not fit into memory, from one pass over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixnorm.data import Block
from mixnorm.exceptions import TableError
from mixnorm.tables.blocks.arrow import apply_to_rows, as_series
from mixnorm.tables.blocks.encoded import TargetReader
from mixnorm.tables.blocks.files import FileRows
from mixnorm.tables.blocks.plan import MakeTable
from mixnorm.tables.blocks.summary import MOST_COUNTED, Tally, is_number
from mixnorm.tables.marks import detect_column_mark
from mixnorm.tables.target import (
    MOST_LABELS,
    ROWS_PER_LABEL,
    Task,
    check_label_count,
    explain_rows_left_out,
    explain_task,
    refuse_dates,
    refuse_texts,
)
from mixnorm.tables.values import BLANKS, as_numbers, as_texts, detect_number_style

# What the entry of a row is.
_PRESENT, _BLANK_WORD, _ABSENT = 0, 1, 2


@dataclass(frozen=True, eq=False)
class TargetPlan:
    """How to read the target, and which rows have one.

    Attributes
    ----------
    reader : TargetReader
        Reads the targets.
    weight : TargetReader or None
        Reads the weights.
    rows : FileRows
        The rows that have a target, with all columns of the files.
    values : list
        The different labels, or numbers; up to 65,536 of them.
    notes : list of str
        Decisions and rows left out.
    """

    reader: TargetReader
    weight: TargetReader | None
    rows: FileRows
    values: list[Any]
    notes: list[str] = field(default_factory=list)

    @property
    def task(self) -> Task:
        """Whether targets are labels or numbers."""
        return self.reader.task


def plan_target(
    files: FileRows, make_table: MakeTable, name: str, task: Task | None, weight: str | None
) -> TargetPlan:
    """Decide from one pass over the target how to read it, and leave out rows without one."""
    names = [name] if weight is None else [name, weight]
    table = make_table(files.select(names))
    function = ReadTargets(is_number(_value_type(files.types[name])))
    found: _TargetFacts = table.sum(function, columns=slice(None), combine=_TargetFacts.join)
    chosen, reader = _decide(files.types[name], name, found, task)
    absent = found.marks == _ABSENT if chosen == "classification" else found.marks != _PRESENT
    notes, rows = [], files
    if absent.any():
        notes.append(explain_rows_left_out(name, int(absent.sum()), len(absent)))
        rows = files.leave_out(absent)
    values = found.values(reader)
    if task is None:
        texts = chosen == "classification" and not reader.whole
        notes.append(explain_task(chosen, name, len(values), texts=texts))
    weights = None
    if weight is not None:
        weights = _plan_weights(weight, found, files)
    return TargetPlan(reader, weights, rows, values, notes)


def _value_type(kind: Any) -> Any:
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


@dataclass(frozen=True, eq=False)
class _TargetFacts:
    """What the targets of some rows are."""

    #: Whether each row has a target.
    marks: np.ndarray
    #: The texts of targets that are no numbers.
    tally: Tally | None
    #: The different numbers, at most ``MOST_COUNTED``, and whether there are more.
    numbers: np.ndarray
    more: bool
    infinite: int
    whole: bool
    weights: Tally | None
    #: The sum of the weights, and the first row with a bad one.
    total_weight: float
    bad_row: int

    def join(self, other: _TargetFacts) -> _TargetFacts:
        numbers = np.unique(np.concatenate([self.numbers, other.numbers]))
        pairs = (self.tally, other.tally), (self.weights, other.weights)
        tallies = [one if one is None or two is None else one.join(two) for one, two in pairs]
        return _TargetFacts(
            np.concatenate([self.marks, other.marks]),
            tallies[0],
            numbers[:MOST_COUNTED],
            self.more or other.more or len(numbers) > MOST_COUNTED,
            self.infinite + other.infinite,
            self.whole and other.whole,
            tallies[1],
            self.total_weight + other.total_weight,
            self.bad_row if self.bad_row >= 0 else other.bad_row,
        )

    def values(self, reader: TargetReader) -> list[Any]:
        """Return the different targets."""
        if self.tally is None:
            return list(self.numbers.tolist())
        texts = list(self.tally.counts)
        if reader.task == "classification":
            return texts
        return sorted({*as_numbers(self.tally.series, reader.style).tolist()})


@dataclass(frozen=True, eq=False)
class ReadTargets:
    """Finds the facts about the targets and weights of a block."""

    numeric: bool

    def __call__(self, block: Block) -> _TargetFacts:
        """Return the facts."""
        table = block.X
        name, *others = table.column_names
        column = table.column(name)
        tally, numbers, infinite, whole = None, np.empty(0), 0, True
        if self.numeric:
            values = as_numbers(as_series(column, name))
            marks = np.where(np.isnan(values), _ABSENT, _PRESENT)
            infinite = int(np.count_nonzero(np.isinf(values)))
            numbers = np.unique(values[np.isfinite(values)])
            whole = bool(np.all(numbers == np.rint(numbers)) and np.all(np.abs(numbers) < 2**53))
        else:
            tally = Tally.of(column, name)
            marks = apply_to_rows(column, name, _mark_texts)
        weights, total, bad = None, 0.0, -1
        for other in others:
            own = table.column(other)
            if is_number(own.type):
                given = as_numbers(as_series(own, other))
                wrong = ~(np.isfinite(given) & (given >= 0))
                bad = block.rows.start + int(np.argmax(wrong)) if wrong.any() else -1
                total = float(given[~wrong & (marks == _PRESENT)].sum())
            else:
                weights = Tally.of(own, other)
        return _TargetFacts(
            marks.astype(np.uint8), tally, numbers[:MOST_COUNTED], len(numbers) > MOST_COUNTED,
            infinite, whole, weights, total, bad,
        )  # fmt: skip


def _mark_texts(values: Any) -> np.ndarray:
    return np.array(
        [_ABSENT if text is None else int(text in BLANKS) for text in as_texts(values)],
        dtype=np.uint8,
    )


def _decide(
    kind: Any, name: str, found: _TargetFacts, task: Task | None
) -> tuple[Task, TargetReader]:
    """Return the task and the reader of a target."""
    import pyarrow as pa

    present = int(np.count_nonzero(found.marks != _ABSENT))
    if not present:
        raise TableError(f"The target {name!r} is missing in every row.")
    dates = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    tally = found.tally
    if tally is None:
        return _decide_numbers(name, found, task, present)
    if tally.strange:
        raise TableError(
            f"The target {name!r} holds {kind}; targets are numbers, texts or truth values."
        )
    words = np.array(sorted(set(tally.counts) - BLANKS), dtype=object)
    mark = detect_column_mark(list(tally.counts)[:1000])
    chosen: Task | None = task
    if chosen is None:
        many = len(words) > MOST_LABELS and detect_number_style(words, 1.0) is not None
        chosen = "regression" if dates or many else "classification"
    if chosen == "classification":
        if tally.cut:
            check_label_count(name, tally.n_distinct, 0, 0)
        check_label_count(name, len(tally.counts), present, 2)
        return chosen, TargetReader(name, chosen)
    if dates:
        refuse_dates(name)
    style = detect_number_style(words, 0.0, mark) or "plain"
    numbers = as_numbers(tally.series, style)
    wrong = [place for place in np.flatnonzero(~np.isfinite(numbers))
             if tally.texts[place] not in BLANKS]  # fmt: skip
    if wrong:
        refuse_texts(name, int(tally.often[wrong].sum()), str(tally.texts[wrong[0]]))
    if not np.isfinite(numbers).any():
        raise TableError(f"The target {name!r} is missing in every row.")
    return chosen, TargetReader(name, chosen, style=style)


def _decide_numbers(
    name: str, found: _TargetFacts, task: Task | None, present: int
) -> tuple[Task, TargetReader]:
    """Return the task and the reader of a target that is a number."""
    count = len(found.numbers)
    chosen: Task | None = task
    if chosen is None:
        few = count <= 2 or (
            found.whole and count <= MOST_LABELS and present >= ROWS_PER_LABEL * count
        )
        labels = few and not found.infinite and not found.more
        chosen = "classification" if labels else "regression"
    if chosen == "regression":
        if found.infinite:
            refuse_texts(name, found.infinite, "inf")
        return chosen, TargetReader(name, chosen)
    whole = found.whole and not found.infinite
    count += found.infinite > 0
    check_label_count(name, count, 0 if found.more else present, MOST_LABELS if whole else 2)
    return chosen, TargetReader(name, chosen, whole=whole)


def _plan_weights(name: str, found: _TargetFacts, files: FileRows) -> TargetReader:
    """Return the reader of weights; raise for bad ones."""
    style, total = "plain", found.total_weight
    if found.weights is not None:
        words = np.array(sorted(set(found.weights.counts) - BLANKS), dtype=object)
        style = detect_number_style(words, 0.0) or "plain"
        numbers = as_numbers(found.weights.series, style)
        if found.weights.missing or not np.all(np.isfinite(numbers) & (numbers >= 0)):
            raise TableError(
                f"The weights {name!r} must be numbers of at least 0 in every row; write them as "
                "numbers, not as texts."
            )
        total = float(numbers @ found.weights.often)
    if found.bad_row >= 0:
        place = files.describe(slice(found.bad_row, found.bad_row + 1))
        raise TableError(
            f"The weights {name!r} must be numbers of at least 0 in every row; the weight in row "
            f"{found.bad_row + 1} is not ({place})."
        )
    if not total:
        raise TableError(f"The weights {name!r} are zero in every row.")
    return TargetReader(name, style=style)
