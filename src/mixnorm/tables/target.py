"""The target column: whether it holds labels or numbers, and its values."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from mixnorm.exceptions import TableError
from mixnorm.tables.values import (
    as_numbers,
    as_texts,
    detect_number_style,
    find_distinct_texts,
    is_date_type,
    is_missing,
    is_number_type,
    normalise_level,
)
from mixnorm.tables.words import join_names, pluralize

if TYPE_CHECKING:
    import pandas as pd

Task = Literal["classification", "regression"]
#: Whole numbers are labels if there are at most this many of them, each this often on average.
MOST_LABELS = 30
ROWS_PER_LABEL = 5


@dataclass
class Target:
    """The targets of a table.

    Parameters
    ----------
    name : str
        The column's name.
    task : {"classification", "regression"}
        Whether they are labels or numbers.
    values : ndarray of shape (n_kept,)
        Labels (texts or whole numbers) or floats.
    rows : ndarray of shape (n_kept,)
        Positions of the rows that have a target.
    notes : list of str
        Decisions and rows left out, one sentence each.
    """

    name: str
    task: Task
    values: np.ndarray
    rows: np.ndarray
    notes: list[str] = field(default_factory=list)


def find_column(frame: pd.DataFrame, name: str, table: str, repeated: Collection[str] = ()) -> str:
    """Return the name of a column, or raise an error that suggests similar names.

    Parameters
    ----------
    frame : DataFrame
        The table.
    name : str
        The name to look for, in upper or lower case.
    table : str
        The name of the table in messages.
    repeated : collection of str
        Names that several columns of the file share, which are ambiguous.
    """
    return find_name([str(column) for column in frame.columns], name, table, repeated)


def find_name(names: Sequence[str], name: str, table: str, repeated: Collection[str] = ()) -> str:
    """Return a name as the table spells it, or raise an error that suggests similar names."""
    folded = [column for column in names if column.casefold() == name.strip().casefold()]
    found = name if name in names else folded[0] if len(folded) == 1 else None
    if found is not None and found in repeated:
        raise TableError(
            f"{table} has more than one column {found!r}; rename them, so that the name is clear."
        )
    if found is not None:
        return found
    close = difflib.get_close_matches(name, names, n=3)
    hint = f"It has {join_names(list(map(repr, names)), 8)}."
    if close:
        hint = f"Did you mean {' or '.join(map(repr, close))}?"
    raise TableError(f"{table} has no column {name!r}. {hint}")


def read_target(values: pd.Series[Any], task: Task | None = None, mark: str = "") -> Target:
    """Return the targets in a column.

    Rows without a target are left out. Texts and truth values are labels, and so are a few distinct
    whole numbers that occur often. Other numbers are targets of regression.

    Parameters
    ----------
    values : Series
        The column.
    task : {"classification", "regression"}, optional
        The task that the user names; None detects it.
    mark : {"", ".", ","}
        The decimal mark of the table, if known.
    """
    name = str(values.name)
    present = ~is_missing(values, words=True)
    if not present.any():
        raise TableError(f"The target {name!r} is missing in every row.")
    chosen = task or _detect_task(values[present])
    regression = chosen == "regression"
    if regression:
        present = ~is_missing(values)
    notes = []
    if not present.all():
        lost = int(np.count_nonzero(~present))
        notes.append(explain_rows_left_out(name, lost, len(values)))
        values = values[present]
    found = _as_numbers(values, name, mark) if regression else _as_labels(values, name)
    if task is None:
        count = 0 if regression else len(np.unique(found))
        notes.append(explain_task(chosen, name, count, texts=found.dtype.kind == "U"))
    return Target(name, chosen, found, np.flatnonzero(present), notes)


def _detect_task(values: pd.Series[Any]) -> Task:
    if is_date_type(values):
        return "regression"
    if not is_number_type(values):
        distinct = find_distinct_texts(as_texts(values), words=False)
        # Prices in a text column, say: "1,50".
        numeric = len(distinct) > MOST_LABELS and detect_number_style(distinct, 1.0) is not None
        return "regression" if numeric else "classification"
    if values.dtype.kind == "b":
        return "classification"
    distinct = np.unique(as_numbers(values))
    if not np.all(np.isfinite(distinct)):
        return "regression"
    if len(distinct) <= 2:
        return "classification"
    whole = bool(np.all(distinct == np.rint(distinct)))
    few = len(distinct) <= MOST_LABELS and len(values) >= ROWS_PER_LABEL * len(distinct)
    return "classification" if whole and few else "regression"


def explain_rows_left_out(name: str, lost: int, rows: int) -> str:
    """Return a sentence about rows without a target."""
    verbs = ("has", "is") if lost == 1 else ("have", "are")
    return f"{lost} of {rows} rows {verbs[0]} no target {name!r} and {verbs[1]} left out."


def explain_task(task: str, name: str, n_classes: int, *, texts: bool) -> str:
    """Return a sentence about the task that was detected."""
    if task == "regression":
        return f"{name!r} holds numbers: regression (--task classification overrides this)."
    count = pluralize(n_classes, "class", "classes")
    override = "" if texts else " (--task regression overrides this)"
    return f"{name!r} holds {count}: classification{override}."


def check_label_count(name: str, count: int, rows: int, few: int) -> None:
    """Raise if there are too many different labels."""
    if count > max(few, rows // 2):
        raise TableError(
            f"The target {name!r} has {count} different labels in {rows} rows, which is too "
            "many to learn. Choose another column, or --task regression for numbers."
        )


def refuse_dates(name: str) -> NoReturn:
    """Raise the error of a target that holds dates."""
    raise TableError(f"The target {name!r} holds dates; convert them to numbers, such as days.")


def refuse_texts(name: str, wrong: int, first: str) -> NoReturn:
    """Raise the error of a target that is not a number in some rows."""
    raise TableError(
        f"The target {name!r} is not a number in {pluralize(wrong, 'row')} "
        f"({first!r}, for example); correct them, or use --task classification."
    )


def _as_labels(values: pd.Series[Any], name: str) -> np.ndarray:
    """Return labels as whole numbers if all of them are, else as texts."""
    texts = as_texts(values)
    labels, few = texts, 2
    if is_number_type(values) and values.dtype.kind not in "bm":
        numbers = as_numbers(values)
        if np.all(np.abs(numbers) < 2**53) and np.all(numbers == np.rint(numbers)):
            labels, few = numbers.astype(np.int64), MOST_LABELS
    check_label_count(name, len(find_distinct_texts(texts)), len(texts), few)
    return labels if labels.dtype.kind == "i" else labels.astype(str)


def as_target_numbers(values: pd.Series[Any], mark: str = "") -> np.ndarray:
    """Return a target as numbers, in any style; NaN where an entry is not a number.

    ``mark`` decides how to read texts that fit both decimal commas and decimal points.
    """
    style = "plain"
    if not is_number_type(values):
        distinct = find_distinct_texts(as_texts(values), words=False)
        style = detect_number_style(distinct, 0.0, mark) or "plain"
    return as_numbers(values, style)


def compare_labels(
    values: pd.Series[Any], found: np.ndarray, known: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Compare predicted labels with those of a new table, which may be spelled differently.

    Parameters
    ----------
    values : Series
        The target of the new table; rows without a target are skipped.
    found : ndarray of shape (n_rows,)
        The predicted labels.
    known : ndarray
        All labels of the training table.

    Returns
    -------
    rows, wrong : ndarray
        Positions of the rows that have a target, and a mask of the wrong predictions among them.
    unknown : list of str
        Labels that do not occur in training.
    """
    texts = as_texts(values)
    rows = np.flatnonzero(texts != None)  # noqa: E711
    levels = {str(label): normalise_level(str(label)) for label in np.unique(known)}
    truth = [normalise_level(text) for text in texts[rows]]
    guess = [levels[str(label)] for label in found[rows]]
    wrong = np.array([one != other for one, other in zip(truth, guess, strict=True)], dtype=bool)
    unknown = sorted(set(truth) - set(levels.values()))
    return rows, wrong, unknown


def _as_numbers(values: pd.Series[Any], name: str, mark: str) -> np.ndarray:
    if is_date_type(values):
        refuse_dates(name)
    numbers = as_target_numbers(values, mark)
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        refuse_texts(name, int(wrong.sum()), str(values.iloc[int(np.argmax(wrong))]))
    return numbers
