"""The layout of a matrix: names to the left and above, fields in between."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from mixnorm.display.report.html import Html, join, tag
from mixnorm.display.report.text import short, text_width

_WIDEST_NAME = 15.0  # of a label, in font sizes: some 25 letters
_TITLE = 22.0  # pixels for the title of an axis


@dataclass(frozen=True)
class Grid:
    """Where the fields and the names of a matrix are.

    Parameters
    ----------
    rows, columns : sequence of str
        Names; they are cut where they are long.
    width, height : float
        Of a field, in pixels.
    font : float
        Size of the names.
    row_title, column_title : str
        What rows and columns are; empty for none.
    twice : bool
        Whether the names of columns stand below as well, as they do not in sight of all rows.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    width: float
    height: float
    font: float
    row_title: str = ""
    column_title: str = ""
    twice: bool = False

    @cached_property
    def _row_names(self) -> list[str]:
        return [short(name, _WIDEST_NAME) for name in self.rows]

    @cached_property
    def _column_names(self) -> list[str]:
        return [short(name, _WIDEST_NAME) for name in self.columns]

    @cached_property
    def _widest_column(self) -> float:
        return self.font * max(map(text_width, self._column_names), default=0.0)

    @cached_property
    def _angle(self) -> float:
        """Degrees that the names of columns are turned by: as few as keep them apart."""
        if self._widest_column <= self.width - 6:
            return 0.0
        return 45.0 if self.width >= 1.5 * self.font else 90.0

    @cached_property
    def left(self) -> float:
        """Where the fields begin."""
        names = self.font * max(map(text_width, self._row_names), default=0.0)
        return math.ceil(names + 10 + (_TITLE if self.row_title else 0))

    @cached_property
    def top(self) -> float:
        """Where the fields begin."""
        return self._names_height + (_TITLE if self.column_title else 0)

    @cached_property
    def _names_height(self) -> float:
        names = self._widest_column * math.sin(math.radians(self._angle))
        return math.ceil(names + 1.2 * self.font + 8)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the whole picture."""
        right = self.left + len(self.columns) * self.width
        if self._angle == 45:  # the last names lean out to the right
            leaning = (math.sqrt(0.5) * self.font * text_width(name) for name in self._column_names)
            right = max(
                right, *(self.place(0, j)[0] + self.width / 2 + w for j, w in enumerate(leaning))
            )
        below = self._names_height if self.twice else 2
        return right + 2, self.top + len(self.rows) * self.height + below

    def fitted(self, page: float, least: float) -> Grid:
        """Return the grid with narrower fields where it is wider than the page."""
        grid = self
        for _ in range(2):  # narrower fields may turn the names, which then lean out
            over = (grid.size[0] - page) / max(len(self.columns), 1)
            if over > 0:
                grid = replace(grid, width=max(grid.width - over, least))
        return grid

    def place(self, row: int, column: int) -> tuple[float, float]:
        """Return the upper left corner of a field."""
        return self.left + column * self.width, self.top + row * self.height

    def names(self) -> Html:
        """Draw the names of rows and columns, and the titles."""
        rows = (self._row_name(i, name) for i, name in enumerate(self._row_names))
        sides = (False, True) if self.twice else (False,)
        columns = (
            self._column_name(j, name, below)
            for below in sides
            for j, name in enumerate(self._column_names)
        )
        return join([*rows, *columns, *self._titles()], "\n")

    def _row_name(self, i: int, name: str) -> Html:
        y = self.top + (i + 0.5) * self.height + 0.35 * self.font
        return tag("text", name, x=self.left - 7, y=y, class_="label end", font_size=self.font)

    def _column_name(self, j: int, name: str, below: bool) -> Html:
        x, y = self.place(len(self.rows) if below else 0, j)
        x, y = x + self.width / 2, y + 7 if below else y - 7
        anchor = "label end" if below else "label"
        turn = None
        if self._angle:
            # Letters are centred on the column.
            x += 0.35 * self.font * math.sin(math.radians(self._angle))
            turn = f"rotate({-self._angle:g} {x:.6g} {y:.6g})"
        else:
            anchor, y = "label middle", y + self.font * 0.8 * below
        return tag("text", name, x=x, y=y, class_=anchor, font_size=self.font, transform=turn)

    def _titles(self) -> list[Html]:
        drawn = []
        if self.column_title:
            drawn.append(tag("text", self.column_title, x=self.left, y=13, class_="axis"))
        if self.row_title:
            # Upright beside the rows, read from below.
            turn = f"rotate(-90 13 {self.top:.6g})"
            drawn.append(
                tag("text", self.row_title, x=13, y=self.top, class_="axis end", transform=turn)
            )
        return drawn
