"""The confusion matrix, and the most frequent confusions in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mixnorm.display.report.grid import Grid, choose_classes, find_largest
from mixnorm.display.report.html import Html, fold_table, join, legend, name_tag, scroll, tag
from mixnorm.display.report.report import Report
from mixnorm.display.report.svg import Cell, cells, picture, swatch
from mixnorm.display.report.text import NONE, count, percent, plural, shorten, text_width

_MOST_CONFUSIONS = 8  # in each list
_CLASSES_WITH_SHARES = 12  # up to this many, fields have room for counts and shares
_CLASSES_WITH_COUNTS = 30  # up to this many, fields have room for counts
# Largest numbers of classes for each side of a field, in pixels.
_SIDES = ((3, 84.0), (_CLASSES_WITH_SHARES, 58.0), (_CLASSES_WITH_COUNTS, 48.0), (math.inf, 24.0))


@dataclass(frozen=True)
class Confusion:
    """Counts of true and predicted classes, with sums, shares and the largest errors.

    Parameters
    ----------
    counts : array of shape (n_classes, n_classes)
        Rows are true classes, columns predicted ones.
    names : sequence of str
        The names of the classes.
    """

    counts: np.ndarray
    names: tuple[str, ...]

    @cached_property
    def wrong(self) -> np.ndarray:
        """The counts without the diagonal."""
        return self.counts * (1 - np.eye(len(self.counts)))

    @cached_property
    def sums(self) -> np.ndarray:
        """Held-out rows of each class."""
        return np.asarray(self.counts.sum(axis=1))

    def shares(self, counts: np.ndarray) -> np.ndarray:
        """Return counts as shares of their class; zeros for a class without rows."""
        return np.asarray(counts / np.where(self.sums > 0, self.sums, 1.0)[:, None])

    def describe(self) -> str:
        """Describe the matrix in words."""
        total, right = self.counts.sum(), np.trace(self.counts)
        parts = [f"{plural(len(self.counts), 'class', 'classes')}, {_format_rows(total)}."]
        parts.append(f"{count(right)} on the diagonal, {percent(right / total)}.")
        for i, j in find_largest(self.wrong, 3):
            true, guess = shorten(self.names[i], 30), shorten(self.names[j], 30)
            parts.append(f"{true} taken for {guess}: {_format_times(self.counts[i, j])}.")
        return " ".join(parts)


def confusion_section(report: Report) -> Html | None:
    """Return the matrix, the worst classes and the most frequent confusions in words."""
    if report.confusion is None:
        return None
    confusion = Confusion(report.confusion, tuple(report.classes))
    total = confusion.counts.sum()
    if total == 0:
        return tag("p", "No held-out row was counted.")
    shown = choose_classes(report)
    lead = (
        f"{count(confusion.wrong.sum())} of {count(total)} held-out rows got the wrong class. Rows"
        " are the true classes, columns what was predicted; teal is right, red is wrong."
    )
    return join(
        tag("p", lead),
        _explain_omissions(len(shown), len(confusion.names)),
        tag("div", _list_confusions(confusion), _list_missed_classes(confusion), class_="lists"),
        scroll("Confusion matrix", _draw_matrix(confusion, shown)),
        _make_legend(confusion, shown),
        _make_table(confusion, shown),
    )


def _format_rows(amount: float) -> str:
    """Return a count of rows, which is a fraction if rows have weights."""
    return "1\u00a0row" if amount == 1 else f"{count(amount)}\u00a0rows"


def _format_times(amount: float) -> str:
    return "once" if amount == 1 else "twice" if amount == 2 else f"{count(amount)} times"


def _explain_omissions(shown: int, classes: int) -> Html | None:
    if shown == classes:
        return None
    words = (
        f"The matrix shows the {shown} of {count(classes)} classes with most errors, and their"
        " confusions among each other; the lists are about all classes."
    )
    return tag("p", words, class_="muted")


def _list_confusions(confusion: Confusion) -> Html:
    shares = confusion.shares(confusion.counts)
    items = []
    for i, j in find_largest(confusion.wrong, _MOST_CONFUSIONS):
        true, guess = name_tag(confusion.names[i], 80), name_tag(confusion.names[j], 80)
        times, share = tag("b", _format_times(confusion.counts[i, j])), percent(shares[i, j])
        items.append(tag("li", true, " taken for ", guess, ": ", times, f", {share} of its rows"))
    body = tag("ol", *items) if items else tag("p", "No class was taken for another.")
    return tag("div", tag("h3", "Most frequent confusions"), body)


def _list_missed_classes(confusion: Confusion) -> Html | None:
    """Return the classes with the largest shares of errors, if there are more than two classes."""
    wrong = confusion.wrong.sum(axis=1)
    shares = confusion.shares(wrong[:, None])[:, 0]
    order = [i for i in np.lexsort((-wrong, -shares))[:_MOST_CONFUSIONS] if wrong[i] > 0]
    if not order or len(confusion.names) == 2:
        return None
    items = []
    for i in order:
        name, share = name_tag(confusion.names[i], 80), tag("b", percent(shares[i]))
        counts = f" wrong, {count(wrong[i])} of {_format_rows(confusion.sums[i])}"
        items.append(tag("li", name, ": ", share, counts))
    return tag("div", tag("h3", "Classes that are missed most"), tag("ol", *items))


def _make_grid(names: list[str], most: float) -> Grid:
    """Return fields as large as the page allows, but no smaller than their text."""
    k = len(names)
    side = next(side for most_classes, side in _SIDES if k <= most_classes)
    if k <= _CLASSES_WITH_SHARES:
        side = max(side, 13 * text_width(count(most)) + 8)
    font = 12 if k <= 40 else 11 if k <= 60 else 9
    grid = Grid(
        names,
        names,
        width=side,
        height=44 if k <= _CLASSES_WITH_SHARES else 30,
        font=font,
        row_title="truth",
        column_title="predicted",
        twice=k > 40,
    ).fit_page(least=side if k <= _CLASSES_WITH_SHARES else 1.08 * font)
    return replace(grid, height=min(grid.width, grid.height))


def _draw_matrix(confusion: Confusion, shown: np.ndarray) -> Html:
    counts = confusion.counts[np.ix_(shown, shown)]
    shares = confusion.shares(confusion.counts)[np.ix_(shown, shown)]
    names = [confusion.names[i] for i in shown]
    tips = [shorten(name, 18) for name in names]
    grid = _make_grid(names, counts.max(initial=0.0))
    most = _find_largest_share(confusion, shown)
    fields, words = [], []
    for i, j in zip(*np.nonzero(counts), strict=True):
        x, y = grid.place(i, j)
        amount, share = float(counts[i, j]), float(shares[i, j])
        # The root keeps rare confusions visible beside frequent ones.
        hue, strength = ("right", share) if i == j else ("wrong", (share / most) ** 0.5)
        tip = f"{tips[i]} → {tips[j]}: {count(amount)}, {percent(share)}"
        fields.append(Cell(x, y, grid.width - 1, grid.height - 1, hue, strength, tip))
        words.append(_write_in_cell(grid, x, y, amount, share))
    title = "Confusion matrix of the held-out rows"
    content = _draw_guides(grid), cells(fields), join(*words), grid.names()
    return picture("confusion", grid.size, title, confusion.describe(), *content)


def _find_largest_share(confusion: Confusion, shown: np.ndarray) -> float:
    """Return the largest share off the diagonal, which has full colour."""
    return float(confusion.shares(confusion.wrong)[np.ix_(shown, shown)].max(initial=0.0))


def _draw_guides(grid: Grid) -> Html:
    """Draw the frame and, with many classes, lines that lead to the names."""
    k = len(grid.rows)
    (left, top), (right, bottom) = grid.place(0, 0), grid.place(k, k)
    size = {"width": right - left + 1, "height": bottom - top + 1}
    lines = [tag("rect", x=left - 1, y=top - 1, class_="frame", **size)]
    for i in range(5, k if k > _CLASSES_WITH_SHARES else 0, 5):
        x, y = (place - 0.5 for place in grid.place(i, i))
        lines.append(tag("line", x1=left, x2=right, y1=y, y2=y, class_="grid"))
        lines.append(tag("line", x1=x, x2=x, y1=top, y2=bottom, class_="grid"))
    return join(*lines)


def _write_in_cell(grid: Grid, x: float, y: float, amount: float, share: float) -> Html | None:
    """Return the count and, with few classes, the share in a field."""
    x, y = x + grid.width / 2, y + grid.height / 2
    text = count(amount)
    if len(grid.rows) <= _CLASSES_WITH_SHARES:
        return join(
            tag("text", text, x=x, y=y - 1, class_="value strong middle"),
            tag("text", _format_share(share), x=x, y=y + 13, class_="value small middle"),
        )
    if len(grid.rows) <= _CLASSES_WITH_COUNTS and 10.5 * text_width(text) < grid.width:
        return tag("text", text, x=x, y=y + 4, class_="value small middle")
    return None


def _format_share(share: float) -> str:
    """Return a share with one decimal, without rounding it to 0 or 100 %."""
    if 0 < share < 0.0005:
        return f"<\u00a0{percent(0.0005, 2)}"
    if 0.9995 <= share < 1:
        return f">\u00a0{percent(0.9995, 2)}"
    return percent(share, 0 if share == 1 else 1)


def _make_legend(confusion: Confusion, shown: np.ndarray) -> Html:
    steps = (0.0, 0.25, 0.5, 0.75, 1.0)
    most = _find_largest_share(confusion, shown)
    right, wrong = (
        tag("span", *(swatch(hue, s) for s in steps), class_="scale") for hue in ("right", "wrong")
    )
    items = [join("right, 0", right, "100\u00a0% of the row")]
    if most > 0:
        items.append(join("wrong, 0", wrong, f"{percent(most)} of the row"))
    if (confusion.sums[shown] == 0).any():
        items.append(Html("an empty row: no held-out row of this class"))
    return legend(items)


def _make_table(confusion: Confusion, shown: np.ndarray) -> Html:
    names = [name_tag(confusion.names[i]) for i in shown]
    rows = []
    for name, i in zip(names, shown, strict=True):
        line = (count(amount) if amount else "" for amount in confusion.counts[i, shown])
        total, right = confusion.sums[i], confusion.counts[i, i]
        rows.append([name, *line, count(total), percent(right / total) if total else NONE])
    head = ["True class", *names, "All rows", "Right"]
    caption = "Counts: rows are true classes, columns predicted"
    return fold_table("The counts in numbers", caption, head, rows)
