"""Names of matrix columns that can tell what their values mean in the table."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

_DAY = 86400.0


class ColumnName(str):
    """The name of a matrix column, with words for its values; pools ask for these.

    Subclasses say in ``_column`` and ``_text`` how the column and a value are written.
    """

    @property
    def _column(self) -> str:
        return str(self)

    def _text(self, value: float, digits: int) -> str:
        """Return a value with so many digits, in the units of the table."""
        return f"{value:.{digits}g}"

    def below(self, threshold: float) -> str:
        """Return in words that the column is at most so large."""
        return f"{self._column} ≤ {self._text(threshold, 6)}"

    def above(self, threshold: float) -> str:
        """Return in words that the column is larger."""
        return f"{self._column} > {self._text(threshold, 6)}"

    def at(self, value: float) -> str:
        """Return in words that the column is about so large."""
        return f"{self._column} {self._text(value, 3)}"

    @property
    def factor(self) -> str:
        """How to write the column in a product."""
        return str(self)


class NumberName(ColumnName):
    """The name of a number, of which ``centre`` was subtracted and that was divided by ``scale``.

    Words about its values are in the units of the table.
    """

    centre: float
    scale: float

    def __new__(cls, name: str, centre: float = 0.0, scale: float = 1.0) -> Self:
        """Make a name that knows its units."""
        made = super().__new__(cls, name)
        made.centre, made.scale = centre, scale
        return made

    @property
    def factor(self) -> str:
        """How to write the column in a product: with what was subtracted."""
        if not self.centre:
            return str(self)
        sign = "−" if self.centre > 0 else "+"
        size = abs(self.centre)
        return f"({self} {sign} {format_number(size, size)})"

    def _text(self, value: float, digits: int) -> str:
        """Return a value in the units of the table, with so many digits of what varies."""
        return format_number(self.centre + self.scale * value, self.scale * value, digits)


class LevelName(ColumnName):
    """The name of the indicator of a level: ``colour = red``."""

    column: str
    level: str

    def __new__(cls, column: str, level: str) -> Self:
        """Make the name of one level of a column."""
        made = super().__new__(cls, f"{column} = {level}")
        made.column, made.level = column, level
        return made

    def below(self, threshold: float) -> str:
        """Return in words that the indicator is zero."""
        if not 0 <= threshold < 1:
            return super().below(threshold)
        return f"{self.column} is not {self.level}"

    def above(self, threshold: float) -> str:
        """Return in words that the indicator is one."""
        return str(self) if 0 <= threshold < 1 else super().above(threshold)

    def at(self, value: float) -> str:
        """Return in words what share of some rows has the level."""
        if value == 1:
            return str(self)
        return f"{self.column} ≠ {self.level}" if value == 0 else f"{self} {value:.0%}"

    @property
    def factor(self) -> str:
        """How to write the indicator in a product."""
        return f"({self})"


class DayName(ColumnName):
    """The name of a date as days since the first, divided by ``scale``."""

    column: str
    origin: float
    scale: float
    timed: bool

    def __new__(cls, column: str, origin: float, scale: float = 1.0, *, timed: bool) -> Self:
        """Make the name of a date in days."""
        made = super().__new__(cls, f"{column} (days since {format_date(origin, timed=False)})")
        made.column, made.origin, made.scale, made.timed = column, origin, scale, timed
        return made

    @property
    def _column(self) -> str:
        return self.column

    def _text(self, value: float, digits: int) -> str:
        return format_date(self.origin + self.scale * value * _DAY, timed=self.timed)


def format_date(seconds: float, *, timed: bool) -> str:
    """Return seconds since 1970 as a date, with the time of day if that matters.

    Both are rounded down: what is no later than noon, of whole days, is no later than that day.
    """
    moment = np.datetime64(math.floor(seconds), "s")
    return str(moment.astype("datetime64[m]" if timed else "datetime64[D]")).replace("T", " ")


def format_number(value: float, change: float, digits: int = 6) -> str:
    """Return a number with so many digits of ``change``, which may be small beside it."""
    size = math.floor(math.log10(abs(change))) if change else 0
    if change == value and not -4 <= size < 15:
        return f"{value:.{digits}g}"
    text = f"{value:.{min(max(1, digits - 1 - size), 17)}f}"
    return text.rstrip("0").rstrip(".")
