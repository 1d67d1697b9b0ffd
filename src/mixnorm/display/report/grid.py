"""The layout of a matrix, with names to the left and above, and the classes that it shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mixnorm.display.report.html import Html, join, tag
from mixnorm.display.report.report import Report
from mixnorm.display.report.text import shorten, text_width

_WIDEST_NAME = 15.0  # in font sizes: about 25 letters
_TITLE = 22.0  # pixels for the title of an axis
_PAGE_WIDTH = 1044.0  # pixels: wider pictures scroll
_MOST_CLASSES = 120  # with more classes, only the _WORST_CLASSES are shown
_WORST_CLASSES = 50


def choose_classes(report: Report) -> np.ndarray:
    """Return the indices of the classes that matrices show, in order.

    If there are very many, these are the classes with most errors or, if errors were not counted,
    those with the largest effects.
    """
    k = len(report.classes)
    if k <= _MOST_CLASSES:
        return np.arange(k)
    if report.confusion is not None:
        badness = report.confusion.sum(1) + report.confusion.sum(0) - 2 * np.diag(report.confusion)
    else:
        badness = np.nan_to_num(np.abs(report.effects), posinf=0.0).sum(axis=1)
    return np.sort(np.argsort(-badness, kind="stable")[:_WORST_CLASSES])


def find_largest(values: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Return the places of the largest entries above zero, the largest first."""
    order = np.argsort(-values, axis=None, kind="stable")[:most]
    places = (divmod(int(place), values.shape[1]) for place in order)
    return [(i, j) for i, j in places if values[i, j] > 0]


@dataclass(frozen=True)
class Grid:
    """The places of the fields and names of a matrix.

    Parameters
    ----------
    rows, columns : sequence of str
        Names of the rows and columns; long names are shortened.
    width, height : float
        Size of a field, in pixels.
    font : float
        Font size of the names.
    row_title, column_title : str
        Titles of the rows and of the columns; empty for none.
    twice : bool
        Whether the names of columns are also below the matrix, for a matrix taller than a screen.
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
        return [shorten(name, _WIDEST_NAME) for name in self.rows]

    @cached_property
    def _column_names(self) -> list[str]:
        return [shorten(name, _WIDEST_NAME) for name in self.columns]

    @cached_property
    def _widest_column(self) -> float:
        return self.font * max(map(text_width, self._column_names), default=0.0)

    @cached_property
    def _angle(self) -> float:
        """The angle of the names of columns in degrees, the smallest that keeps them apart."""
        if self._widest_column <= self.width - 6:
            return 0.0
        return 45.0 if self.width >= 1.5 * self.font else 90.0

    @cached_property
    def left(self) -> float:
        """The left edge of the fields."""
        names = self.font * max(map(text_width, self._row_names), default=0.0)
        return math.ceil(names + 10 + (_TITLE if self.row_title else 0))

    @cached_property
    def top(self) -> float:
        """The upper edge of the fields."""
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

    def fit_page(self, least: float) -> Grid:
        """Return the grid, with fields as narrow as ``least`` if it is wider than the page."""
        grid = self
        for _ in range(2):  # narrower fields may turn the names, which then need room to the right
            over = (grid.size[0] - _PAGE_WIDTH) / max(len(self.columns), 1)
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
        return join(*rows, *columns, *self._titles(), between="\n")

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
