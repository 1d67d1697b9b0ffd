"""Parts of charts: the picture with its description, axes and coloured cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mixnorm.display.report.html import Html, join, tag
from mixnorm.display.report.text import format_fixed, percent, power_of_ten

# The tips of more cells would make up most of the file.
_MOST_TIPS = 3000
_LEVELS = 20


def picture(
    ident: str,
    size: tuple[float, float],
    title: str,
    text: str,
    *content: str | None,
    class_: str = "",
) -> Html:
    """Return an SVG with a title and a description for readers who cannot see it.

    Parameters
    ----------
    ident : str
        The start of its ids, unique in the page.
    size : (float, float)
        Width and height in pixels.
    title, text : str
        The name of the chart and its description.
    *content : str or None
        The drawing.
    class_ : str
        Further classes.
    """
    width, height = math.ceil(size[0]), math.ceil(size[1])
    return tag(
        "svg",
        tag("title", title, id=f"{ident}-title"),
        tag("desc", text, id=f"{ident}-desc"),
        join(*content, between="\n"),
        role="img",
        aria_labelledby=f"{ident}-title {ident}-desc",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        class_=class_ or None,
    )


def ticks(low: float, high: float, most: int, *, whole: bool = False) -> list[float]:
    """Return round values that enclose an interval, in steps of 1, 2 or 5 times a power of ten."""
    span = high - low
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(f * power for f in (1, 2, 5, 10, 20) if span <= f * power * most)
    if whole:
        step = max(1.0, step)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [i * step for i in range(first, last + 1)]


def tick_text(
    marks: Sequence[float], *, percents: bool = False
) -> tuple[Callable[[float], str], str]:
    """Return a function that formats the ticks, and their unit.

    The decimals suit the step. The unit of very large and very small values is a power of ten.
    """
    step = marks[1] - marks[0]
    if percents:
        decimals = max(0, math.ceil(-math.log10(step) - 2 - 1e-9))
        return (lambda value: percent(value, decimals)), ""
    largest = math.log10(max(map(abs, marks)))
    power = 0 if -3 <= largest < 6 else 3 * math.floor(largest / 3)
    decimals = max(0, math.ceil(power - math.log10(step) - 1e-9))
    return (lambda value: format_fixed(value / 10.0**power, decimals)), (
        f"×\u00a0{power_of_ten(power)}" if power else ""
    )


@dataclass(frozen=True)
class Axis:
    """A scale from data to pixels, with its ticks.

    Parameters
    ----------
    low, high : float
        Ends in the data.
    start, end : float
        Ends in pixels.
    marks : tuple of float
        The values at the ticks.
    """

    low: float
    high: float
    start: float
    end: float
    marks: tuple[float, ...]

    @classmethod
    def around(
        cls, values: Iterable[float], start: float, end: float, most: int = 5, zero: bool = True
    ) -> Axis:
        """Return an axis that includes all values, and zero unless they are far from it."""
        given = list(values) or [0.0, 1.0]
        low, high = min(given), max(given)
        if zero and 0 <= low < 0.6 * high:
            low = 0.0
        # A constant curve needs some height. So do values that differ only by rounding, and values
        # that are so small that their ticks would underflow.
        if high - low <= max(1e-9 * max(abs(low), abs(high)), 1e-200):
            room = abs(high) / 2 if abs(high) > 1e-200 else 0.5
            low, high = (0.0 if zero and low >= 0 else low - room), high + room
        marks = ticks(low, high, most)
        return cls(marks[0], marks[-1], start, end, tuple(marks))

    def __call__(self, value: float) -> float:
        """Return the pixel of a value."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


@dataclass(frozen=True)
class Cell:
    """A coloured field: place, size, hue, strength (0 to 1), and the tip for the pointer."""

    x: float
    y: float
    width: float
    height: float
    hue: str
    strength: float
    tip: str


def opacity(strength: float) -> float:
    """Return the opacity of a field, which is never invisible."""
    return 0.08 + 0.92 * min(max(strength, 0.0), 1.0)


def cells(fields: Sequence[Cell]) -> Html:
    """Draw fields, with tips if they are few, else as one path for each hue and level."""
    if len(fields) <= _MOST_TIPS:
        drawn = []
        for f in fields:
            place = {"x": f.x, "y": f.y, "width": f.width, "height": f.height}
            tip, strength = tag("title", f.tip), opacity(f.strength)
            drawn.append(tag("rect", tip, **place, class_=f.hue, fill_opacity=strength))
        return join(*drawn, between="\n")
    paths: dict[tuple[str, int], list[str]] = {}
    for f in fields:
        box = f"M{f.x:.5g} {f.y:.5g}h{f.width:.4g}v{f.height:.4g}h-{f.width:.4g}z"
        paths.setdefault((f.hue, round(_LEVELS * f.strength)), []).append(box)
    return join(
        *(
            tag("path", class_=hue, fill_opacity=opacity(level / _LEVELS), d="".join(boxes))
            for (hue, level), boxes in sorted(paths.items())
        )
    )


def swatch(hue: str, strength: float = 1.0) -> Html:
    """Return a field for a legend, in the colour of a cell."""
    return tag("span", class_=f"swatch {hue}", style=f"opacity:{opacity(strength):.2f}")


def draw_grid(axis: Axis, left: float, right: float, text: Callable[[float], str]) -> Html:
    """Return horizontal grid lines, with their values to the left."""
    drawn = []
    for mark in axis.marks:
        y = axis(mark)
        drawn.append(tag("line", x1=left, x2=right, y1=y, y2=y, class_="grid"))
        drawn.append(tag("text", text(mark), x=left - 8, y=y + 4, class_="tick end"))
    return join(*drawn)
