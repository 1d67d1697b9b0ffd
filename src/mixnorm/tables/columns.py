"""Plans for columns of a table: each encodes numbers, categories or dates as matrix columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from mixnorm.tables.names import ColumnName, DayName, LevelName, NumberName
from mixnorm.tables.values import (
    DATE_FORMATS,
    SECONDS_PER_DAY,
    Style,
    as_numbers,
    as_seconds,
    as_texts,
    is_missing,
    normalise_level,
)

if TYPE_CHECKING:
    import pandas as pd

_DAYS_PER_YEAR = 365.2425
Cycle = Literal["year", "week", "day"]
MISSING_LEVEL = "(missing)"
OTHER_LEVEL = "(other)"


@dataclass
class Gaps:
    """Counts of the entries of a column that are missing, unreadable, infinite or new."""

    missing: int = 0
    strange: int = 0
    infinite: int = 0
    unseen: int = 0
    examples: tuple[str, ...] = ()
    filled: bool = True

    def __add__(self, other: Gaps) -> Gaps:
        examples = tuple(dict.fromkeys(self.examples + other.examples))[:3]
        return Gaps(
            self.missing + other.missing,
            self.strange + other.strange,
            self.infinite + other.infinite,
            self.unseen + other.unseen,
            examples,
            self.filled and other.filled,
        )

    def note_strange(self, value: Any) -> None:
        """Count an entry that cannot be read, and keep the first few as examples."""
        self.strange += 1
        self.examples = tuple(dict.fromkeys((*self.examples, str(value)[:40])))[:3]


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers.

    Parameters
    ----------
    name : str
        The column's name.
    fill : float
        The value of missing entries: the median.
    centre : float
        Value to subtract from a column that varies little relative to its size.
    style : {"plain", "thousands", "comma"}
        How texts are written as numbers: ``1234.5``, ``1,234.5`` or ``1.234,5``.
    scale : float
        Divisor that puts columns on one scale.
    """

    name: str
    fill: float
    centre: float = 0.0
    style: Style = "plain"
    scale: float = 1.0

    width: ClassVar[int] = 1
    kind: ClassVar[str] = "number"

    def _check_stored(self) -> None:
        _check_numbers(self.name, self.scale, self.fill, self.centre)

    @property
    def column_names(self) -> tuple[ColumnName, ...]:
        """Names of the matrix columns."""
        return (NumberName(self.name, self.centre, self.scale),)

    @property
    def example(self) -> str:
        """An entry that can be read."""
        return f"{self.fill:.6g}"

    def encode(self, values: pd.Series[Any]) -> tuple[np.ndarray, Gaps]:
        """Return the matrix columns of a column's entries, and what was missing."""
        numbers = as_numbers(values, self.style)
        gaps = _count_gaps(values, np.isnan(numbers))
        gaps.infinite = int(np.count_nonzero(np.isinf(numbers)))
        numbers = np.where(np.isfinite(numbers), numbers, self.fill)
        numbers = numbers - self.centre if self.centre else numbers
        return (numbers / self.scale if self.scale != 1 else numbers)[:, None], gaps

    def standardise(self, matrix: np.ndarray) -> NumberColumn:
        """Return a plan with mean 0 and deviation 1; ``matrix`` is what this plan gives."""
        mean, deviation = _measure_spread(matrix[:, 0])
        return replace(self, centre=self.centre + mean, scale=deviation)


@dataclass(frozen=True)
class CategoryColumn:
    """A column of categories: one indicator per level, all of them one feature.

    An entry that belongs to no indicator has all of them zero.

    Parameters
    ----------
    name : str
        The column's name.
    levels : tuple of str
        The levels, the most frequent first.
    missing : bool
        Whether missing entries have an indicator.
    other : bool
        Whether rare levels share an indicator, together with levels that training did not have.
    """

    name: str
    levels: tuple[str, ...]
    missing: bool = False
    other: bool = False

    def _check_stored(self) -> None:
        if len(set(self.levels)) != len(self.levels) or not self.width:
            raise ValueError(f"the levels of {self.name!r} must differ, and there must be some")

    @property
    def width(self) -> int:
        """Number of indicators."""
        return len(self.levels) + self.missing + self.other

    @property
    def kind(self) -> str:
        """The kind in words."""
        return f"category ({self.width} levels)"

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the indicators."""
        return (
            *self.levels,
            *((MISSING_LEVEL,) if self.missing else ()),
            *((OTHER_LEVEL,) if self.other else ()),
        )

    @property
    def column_names(self) -> tuple[ColumnName, ...]:
        """Names of the matrix columns."""
        return tuple(LevelName(self.name, label) for label in self.labels)

    def encode(self, values: pd.Series[Any]) -> tuple[np.ndarray, Gaps]:
        """Return the matrix columns of a column's entries, and what was missing or new."""
        import pandas as pd

        codes, texts = pd.factorize(as_texts(values), use_na_sentinel=True)
        found = [normalise_level(text) for text in texts]
        place = {normalise_level(level): index for index, level in enumerate(self.levels)}
        gap = len(self.levels) if self.missing else -1
        other = len(self.levels) + self.missing if self.other else -1
        # A missing entry has the code -1, which picks the last of these.
        columns = np.array([place.get(text, other) for text in found] + [gap], dtype=np.intp)
        known = np.array([text in place for text in found] + [True])
        index = columns[codes]
        matrix = np.zeros((len(values), self.width))
        rows = np.flatnonzero(index >= 0)
        matrix[rows, index[rows]] = 1.0
        new = ~known[codes]
        gaps = Gaps(
            missing=int(np.count_nonzero(codes < 0)),
            unseen=int(np.count_nonzero(new)),
            examples=_pick_examples(values, new),
            filled=self.missing or not np.any(codes < 0),
        )
        return matrix, gaps

    def standardise(self, matrix: np.ndarray) -> CategoryColumn:
        """Return the plan itself.

        Two rows of different levels are as far apart as two numbers of deviation 1 on average.
        """
        return self


@dataclass(frozen=True)
class DateColumn:
    """A column of dates: days since the first, and the time of year, week and day, as one feature.

    Parameters
    ----------
    name : str
        The column's name.
    pattern : str
        The format of dates written as text.
    origin, fill : float
        The first date and the value of missing dates, in seconds since 1970.
    cycles : tuple of {"year", "week", "day"}
        Cycles to encode, each as a sine and a cosine.
    scale : float
        Divisor of the days that puts columns on one scale.
    """

    name: str
    pattern: str
    origin: float
    fill: float
    cycles: tuple[Cycle, ...] = ()
    scale: float = 1.0

    kind: ClassVar[str] = "date"

    def _check_stored(self) -> None:
        _check_numbers(self.name, self.scale, self.origin, self.fill)
        if self.pattern not in DATE_FORMATS or len(set(self.cycles)) != len(self.cycles):
            raise ValueError(f"the format or the cycles of the date {self.name!r} are not known")

    @property
    def width(self) -> int:
        """Number of matrix columns."""
        return 1 + 2 * len(self.cycles)

    @property
    def column_names(self) -> tuple[ColumnName, ...]:
        """Names of the matrix columns."""
        days = DayName(self.name, self.origin, self.scale, timed="day" in self.cycles)
        waves = (
            ColumnName(f"{self.name} (time of {cycle}, {wave})")
            for cycle in self.cycles
            for wave in ("sine", "cosine")
        )
        return (days, *waves)

    @property
    def example(self) -> str:
        """An entry that can be read."""
        pattern = "%Y-%m-%d" if self.pattern == "ISO8601" else self.pattern
        moment = np.datetime64(int(self.fill), "s").item()
        return str(moment.strftime(pattern))

    def encode(self, values: pd.Series[Any]) -> tuple[np.ndarray, Gaps]:
        """Return the matrix columns of a column's entries, and what was missing."""
        seconds = as_seconds(values, self.pattern)
        lost = np.isnan(seconds)
        return self.encode_seconds(np.where(lost, self.fill, seconds)), _count_gaps(values, lost)

    def encode_seconds(self, seconds: np.ndarray) -> np.ndarray:
        """Return the matrix columns of dates in seconds since 1970."""
        days = seconds / SECONDS_PER_DAY
        columns = [(days - self.origin / SECONDS_PER_DAY) / self.scale]
        lengths = {"year": _DAYS_PER_YEAR, "week": 7.0, "day": 1.0}
        for cycle in self.cycles:
            angle = 2 * np.pi * np.mod(days, lengths[cycle]) / lengths[cycle]
            columns += [np.sin(angle), np.cos(angle)]
        return np.column_stack(columns)

    def standardise(self, matrix: np.ndarray) -> DateColumn:
        """Return a plan whose days have deviation 1; cycles are on that scale already."""
        return replace(self, scale=_measure_spread(matrix[:, 0])[1])


def _measure_spread(values: np.ndarray) -> tuple[float, float]:
    """Return mean and standard deviation; squares do not overflow."""
    largest = float(np.max(np.abs(values)))
    reduced = values / largest
    return largest * float(np.mean(reduced)), largest * float(np.std(reduced))


def _check_numbers(name: str, scale: float, *numbers: float) -> None:
    if not all(abs(number) < np.inf for number in numbers):
        raise ValueError(f"the column {name!r} has a fill or a centre that is not finite")
    if not 0 < scale < np.inf:
        raise ValueError(f"the column {name!r} has a scale that is not positive and finite")


ColumnPlan = NumberColumn | CategoryColumn | DateColumn


def _count_gaps(values: pd.Series[Any], lost: np.ndarray) -> Gaps:
    """Count how many of the lost entries are missing, and how many cannot be read."""
    if not lost.any():
        return Gaps()
    strange = lost & ~is_missing(values)
    missing = int(np.count_nonzero(lost & ~strange))
    return Gaps(missing, int(np.count_nonzero(strange)), examples=_pick_examples(values, strange))


def _pick_examples(values: pd.Series[Any], where: np.ndarray, most: int = 3) -> tuple[str, ...]:
    """Return a few distinct entries for a message."""
    places = np.flatnonzero(where)[:1000]
    texts = [str(value) for value in values.iloc[places].tolist()]
    return tuple(dict.fromkeys(texts))[:most]
