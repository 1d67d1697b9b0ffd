"""Decimal marks: whether the numbers of a table are written with points or with commas."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from mixnorm.tables.values import (
    BLANKS,
    MOSTLY_NUMBERS,
    Style,
    as_texts,
    detect_number_style,
    find_styles,
    is_date_type,
    is_number_type,
    space_evenly,
)

if TYPE_CHECKING:
    import pandas as pd

    from mixnorm.tables.columns import NumberColumn
    from mixnorm.tables.rows.columns import RowColumn

Mark = Literal["", ".", ","]
# Entries of each column that are examined.
_ENTRIES_PER_COLUMN = 1000


_C = TypeVar("_C", "NumberColumn", "RowColumn")


def detect_text_mark(text: str) -> Mark:
    """Return the decimal mark of a number; empty if it is whole or could have either mark.

    Examples
    --------
    >>> [detect_text_mark(text) for text in ("1.5", "1,5", "1.234.567", "1,234", "7", "van")]
    ['.', ',', ',', '', '', '']
    """
    if "." not in text and "," not in text:
        return ""
    found = find_styles(text)
    if "comma" in found:
        return "" if len(found) > 1 else ","
    return "." if found else ""


def detect_column_mark(texts: Iterable[str | None]) -> Mark:
    """Return the commonest decimal mark of the texts that show theirs."""
    found = [detect_text_mark(text) for text in texts if text is not None]
    points, commas = found.count("."), found.count(",")
    if points == commas:
        return ""
    return "." if points > commas else ","


def detect_common_mark(columns: Iterable[Sequence[str | None]]) -> Mark:
    """Return the decimal mark of columns of texts; empty if they disagree or show none.

    Only columns that consist mostly of numbers count.
    """
    marks: set[Mark] = set()
    for texts in columns:
        mark = detect_column_mark(texts)
        if mark:
            distinct = {text for text in texts if text is not None} - BLANKS
            if detect_number_style(np.array(sorted(distinct), dtype=object), MOSTLY_NUMBERS):
                marks.add(mark)
    return marks.pop() if len(marks) == 1 else ""


def detect_decimal_mark(frame: pd.DataFrame) -> Mark:
    """Return the decimal mark of a table's text columns; see :func:`detect_common_mark`."""
    columns = (frame.iloc[:, place] for place in range(frame.shape[1]))
    return detect_common_mark([_sample(values) for values in columns if _may_be_texts(values)])


def restyle_columns(columns: Sequence[_C], texts: Mapping[str, Sequence[str | None]]) -> list[_C]:
    """Return number columns in the style of a new table, which may differ from training.

    A column that shows its decimal mark gets that mark. Any other column keeps the mark it had in
    training, unless most columns that show their mark have changed: then it changes too.

    Parameters
    ----------
    columns : sequence of columns
        Columns of numbers, with ``name`` and ``style``.
    texts : mapping of str to sequence of str
        Entries of the new table, by name of those columns whose entries are texts.
    """
    known = [column for column in columns if column.name in texts]
    proved = {column.name: detect_column_mark(texts[column.name]) for column in known}
    earlier = {column.name: "," if column.style == "comma" else "." for column in known}
    changes = sum(1 if mark != earlier[name] else -1 for name, mark in proved.items() if mark)
    found = []
    for column in columns:
        mark = proved.get(column.name, "")
        if not mark and column.name in texts and changes > 0:
            mark = "." if earlier[column.name] == "," else ","
        style: Style = column.style if not mark else "comma" if mark == "," else "thousands"
        found.append(column if style == column.style else replace(column, style=style))
    return found


def sample_texts(frame: pd.DataFrame, names: Collection[str]) -> dict[str, list[str | None]]:
    """Return a sample of the entries of each named column that is stored as texts."""
    wanted = [place for place, name in enumerate(frame.columns) if str(name) in names]
    columns = [frame.iloc[:, place] for place in wanted]
    return {str(each.name): _sample(each) for each in columns if _may_be_texts(each)}


def _may_be_texts(values: pd.Series[Any]) -> bool:
    return not is_number_type(values) and not is_date_type(values)


def _sample(values: pd.Series[Any]) -> list[str | None]:
    """Return evenly spaced entries of a column as texts."""
    return list(as_texts(values.iloc[space_evenly(len(values), _ENTRIES_PER_COLUMN)]))
