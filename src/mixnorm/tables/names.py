"""Names of matrix columns that describe values in the units of the table."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from mixnorm.tables.values import SECONDS_PER_DAY


class ColumnName(str):
    """The name of a matrix column, with phrases about its values for the names of atoms.

    Subclasses override ``_column`` and ``_format``, the texts of the column and of a value.
    """

    @property
    def _column(self) -> str:
        return str(self)

    def _format(self, value: float, digits: int) -> str:
        """Return a value in the units of the table, with the given number of digits."""
        return f"{value:.{digits}g}"

    def below(self, threshold: float) -> str:
        """Return the phrase "the column is at most the threshold"."""
        return f"{self._column} ≤ {self._format(threshold, 6)}"

    def above(self, threshold: float) -> str:
        """Return the phrase "the column is larger than the threshold"."""
        return f"{self._column} > {self._format(threshold, 6)}"

    def at(self, value: float) -> str:
        """Return the phrase "the column is about this value"."""
        return f"{self._column} {self._format(value, 3)}"

    @property
    def factor(self) -> str:
        """The column as a factor of a product."""
        return str(self)


class NumberName(ColumnName):
    """The name of a number column from which ``centre`` is subtracted before division by ``scale``.

    Phrases about its values are in the units of the table.
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
        """The column as a factor of a product, with its centre subtracted."""
        if not self.centre:
            return str(self)
        sign = "−" if self.centre > 0 else "+"
        size = abs(self.centre)
        return f"({self} {sign} {format_number(size, size)})"

    def _format(self, value: float, digits: int) -> str:
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
        """Return the phrase "the indicator is zero"."""
        if not 0 <= threshold < 1:
            return super().below(threshold)
        return f"{self.column} is not {self.level}"

    def above(self, threshold: float) -> str:
        """Return the phrase "the indicator is one"."""
        return str(self) if 0 <= threshold < 1 else super().above(threshold)

    def at(self, value: float) -> str:
        """Return the phrase "this share of rows has the level"."""
        if value == 1:
            return str(self)
        return f"{self.column} ≠ {self.level}" if value == 0 else f"{self} {value:.0%}"

    @property
    def factor(self) -> str:
        """The indicator as a factor of a product."""
        return f"({self})"


class DayName(ColumnName):
    """The name of a date column in days since its first date, divided by ``scale``."""

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

    def _format(self, value: float, digits: int) -> str:
        return format_date(self.origin + self.scale * value * SECONDS_PER_DAY, timed=self.timed)


def format_date(seconds: float, *, timed: bool) -> str:
    """Return seconds since 1970 as a date, with the time of day if ``timed``.

    The moment is rounded down: among whole days, those up to noon are those up to that day.
    """
    moment = np.datetime64(math.floor(seconds), "s")
    return str(moment.astype("datetime64[m]" if timed else "datetime64[D]")).replace("T", " ")


def format_number(value: float, change: float, digits: int = 6) -> str:
    """Return a number with ``digits`` digits of ``change``, which may be much smaller."""
    size = math.floor(math.log10(abs(change))) if change else 0
    if change == value and not -4 <= size < 15:
        return f"{value:.{digits}g}"
    text = f"{value:.{min(max(1, digits - 1 - size), 17)}f}"
    return text.rstrip("0").rstrip(".")
