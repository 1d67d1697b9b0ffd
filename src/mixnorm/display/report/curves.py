"""Charts of error and loss against the number of features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mixnorm.display.report.html import Html, join, tag
from mixnorm.display.report.report import Report
from mixnorm.display.report.svg import Axis, draw_grid, picture, tick_text, ticks
from mixnorm.display.report.text import is_known, measure, number, plural, text_width

_WIDE_CHART, _NARROW_CHART = (680, 300), (340, 270)
_MOST_DOTS = 60
# A reference line at more than this many extents of the curve is left out: it would flatten it.
_MOST_EXTENTS_TO_LINE = 4.0

Point = tuple[int, float]


@dataclass(frozen=True)
class PathChart:
    """The data of one chart.

    Parameters
    ----------
    report : Report
        The report, for the chosen number of features and for words.
    ident, name : str
        The start of the ids, and the quantity that the curve shows.
    points : sequence of (int, float)
        Numbers of features and values; only known values.
    text : callable
        Formats a value.
    spread : dict
        Half the width of the band, by number of features.
    lines : dict
        Values of horizontal lines, by their class.
    """

    report: Report
    ident: str
    name: str
    points: Sequence[Point]
    text: Callable[[float], str]
    spread: dict[int, float] = field(default_factory=dict)
    lines: dict[str, float] = field(default_factory=dict)

    @property
    def word(self) -> str:
        """The word for a feature."""
        return self.report.word

    @property
    def mark(self) -> float | None:
        """The value at the chosen number of features."""
        return dict(self.points).get(self.report.chosen)


def curve_figures(report: Report) -> Html:
    """Return the charts of error and loss side by side, or of the loss alone."""
    loss, error = _make_loss_curve(report), _make_error_curve(report)
    if not error.points:
        why = (
            "The error on held-out rows was not measured, so only the training loss is shown. It"
            f" falls with every {report.word} and cannot tell how many are enough."
        )
        return join(tag("p", why), _make_figure(loss, _make_legend(loss)))
    return tag(
        "div",
        _make_figure(error, _make_legend(error)),
        _make_figure(loss, None, sizes=(_NARROW_CHART,)),
        class_="pair",
    )


def _make_error_curve(report: Report) -> PathChart:
    points = enumerate((feature.error for feature in report.features), 1)
    spread = enumerate(report.standard_error or (), 1)
    lines = {"null": report.null_error, "full": report.full.error if report.full else None}
    return PathChart(
        report,
        "error",
        f"Held-out {report.error_name}",
        [(i, value) for i, value in points if is_known(value)],
        lambda value: measure(value, report.task),
        {i: s for i, s in spread if is_known(s) and s >= 0},
        {name: value for name, value in lines.items() if is_known(value)},
    )


def _make_loss_curve(report: Report) -> PathChart:
    values = [report.null_loss, *(feature.loss for feature in report.features)]
    points = [(i, value) for i, value in enumerate(values) if is_known(value)]
    return PathChart(report, "loss", "Training loss", points, number)


def _make_figure(
    curve: PathChart,
    legend: Html | None,
    sizes: tuple[tuple[int, int], ...] = (_WIDE_CHART, _NARROW_CHART),
) -> Html:
    """Return a chart in each of the sizes, because text must not shrink with the screen."""
    if not curve.points:
        return tag("p", f"{curve.name}: no value is known.", class_="muted")
    variants = ("wide", "narrow") if len(sizes) == 2 else ("",)
    drawings = (_draw(curve, size, variant) for size, variant in zip(sizes, variants, strict=True))
    unit = _make_axis(curve, 1.0, 0.0)[2]
    caption = tag("figcaption", curve.name, tag("span", f", {unit}") if unit else None)
    return tag("figure", caption, *drawings, legend, class_="curve")


def _make_axis(
    curve: PathChart, start: float, end: float
) -> tuple[Axis, Callable[[float], str], str]:
    """Return the vertical axis, the function that formats its ticks, and their unit."""
    axis = Axis.around(_list_extent(curve), start, end, most=5)
    return axis, *tick_text(axis.marks, percents="%" in curve.text(0.5))


def _draw(curve: PathChart, size: tuple[int, int], variant: str) -> Html:
    y, write, _ = _make_axis(curve, size[1] - 42.0, 14.0)
    left = 18.0 + 11 * max(text_width(write(mark)) for mark in y.marks)
    right = size[0] - 14.0
    # Half a feature of room on each side, so that a single feature is in the middle.
    last = len(curve.report.features)
    x = Axis(min(curve.points[0][0], 1) - 0.5, last + 0.5, left, right, ())
    return picture(
        f"{curve.ident}-{variant}" if variant else curve.ident,
        size,
        f"{curve.name} against the number of {curve.word}s",
        _describe(curve),
        draw_grid(y, left, right, write),
        _draw_sizes_axis(x, y.start, curve.word),
        _draw_band(curve, x, y),
        _draw_references(curve, y, left, right),
        _draw_line(curve, x, y),
        _draw_mark(curve, x, y),
        class_=f"plot {variant or 'small'}",
    )


def _list_extent(curve: PathChart) -> list[float]:
    """Return the values that the vertical axis must include."""
    values = [value for _, value in curve.points]
    return values + [value for value in curve.lines.values() if _is_in_reach(curve, value)]


def _is_in_reach(curve: PathChart, value: float) -> bool:
    values = [v for _, v in curve.points] + [0.0]
    low, high = min(values), max(values)
    room = _MOST_EXTENTS_TO_LINE * (high - low)
    return low - room <= value <= high + room


def _draw_sizes_axis(x: Axis, base: float, word: str) -> Html:
    last = x.high - 0.5
    most = 10 if x.end - x.start > 400 else 6
    round_sizes = ticks(x.low + 0.5, max(last, x.low + 1.5), most, whole=True)
    marks = [mark for mark in round_sizes if x.low <= mark <= last] or [last]
    labels = (tag("text", f"{m:,.0f}", x=x(m), y=base + 17, class_="tick middle") for m in marks)
    middle = (x.start + x.end) / 2
    name = tag("text", f"number of {word}s", x=middle, y=base + 36, class_="axis middle")
    return join(tag("line", x1=x.start, x2=x.end, y1=base, y2=base, class_="base"), *labels, name)


def _split_runs(curve: PathChart) -> list[list[Point]]:
    """Return the points as runs of consecutive numbers of features."""
    runs: list[list[Point]] = []
    for point in curve.points:
        if runs and runs[-1][-1][0] == point[0] - 1:
            runs[-1].append(point)
        else:
            runs.append([point])
    return runs


def _format_path(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in points)


def _draw_line(curve: PathChart, x: Axis, y: Axis) -> Html:
    runs = _split_runs(curve)
    lines = [
        tag(
            "polyline",
            points=_format_path([(x(i), y(v)) for i, v in run]),
            class_=f"line {curve.ident}",
        )
        for run in runs
        if len(run) > 1
    ]
    dotted = [p for run in runs if len(run) == 1 or len(curve.points) <= _MOST_DOTS for p in run]
    dots = (tag("circle", cx=x(i), cy=y(v), r=2.5, class_=f"dot {curve.ident}") for i, v in dotted)
    return join(*lines, *dots, between="\n")


def _draw_band(curve: PathChart, x: Axis, y: Axis) -> Html:
    """Draw a band of one standard error to both sides, cut at the frame."""
    drawn = []
    for run in _split_runs(curve):
        known_run = [(i, v, curve.spread[i]) for i, v in run if i in curve.spread]
        if len(known_run) > 1:
            upper = [(x(i), y(min(v + s, y.high))) for i, v, s in known_run]
            lower = [(x(i), y(max(v - s, y.low))) for i, v, s in reversed(known_run)]
            drawn.append(tag("polygon", points=_format_path(upper + lower), class_="band"))
        elif known_run:
            i, v, s = known_run[0]
            ends = y(min(v + s, y.high)), y(max(v - s, y.low))
            drawn.append(tag("line", x1=x(i), x2=x(i), y1=ends[0], y2=ends[1], class_="whisker"))
    return join(*drawn)


def _draw_references(curve: PathChart, y: Axis, left: float, right: float) -> Html:
    return join(
        *(
            tag("line", x1=left, x2=right, y1=y(value), y2=y(value), class_=f"reference {name}")
            for name, value in curve.lines.items()
            if _is_in_reach(curve, value)
        )
    )


def _draw_mark(curve: PathChart, x: Axis, y: Axis) -> Html:
    value = curve.mark
    if value is None:
        return Html("")
    at, height = x(curve.report.chosen), y(value)
    words = f"{plural(curve.report.chosen, curve.word)}: {curve.text(value)}"
    half = 0.5 * 12 * text_width(words)
    middle = min(max(at, x.start + half), x.end - half)
    # The words are above the highest part of the curve along their width.
    spots = np.linspace(middle - half, middle + half, 21)
    sizes, values = zip(*curve.points, strict=True)
    highest = np.interp(spots, [x(i) for i in sizes], [y(v) for v in values]).min()
    return join(
        tag("line", x1=at, x2=at, y1=height, y2=y.start, class_=f"drop {curve.ident}"),
        tag("circle", cx=at, cy=height, r=5.5, class_=f"mark {curve.ident}"),
        tag("text", words, class_="callout middle", x=middle, y=max(highest - 13, 11)),
    )


def _describe(curve: PathChart) -> str:
    """Describe the ends of the curve, its lowest point, the choice and the lines."""
    (first, start), (last, end) = curve.points[0], curve.points[-1]
    lowest = min(curve.points, key=lambda point: point[1])
    parts = [
        f"From {curve.text(start)} with {plural(first, curve.word)}",
        f"to {curve.text(end)} with {plural(last, curve.word)};",
        f"lowest {curve.text(lowest[1])} with {plural(lowest[0], curve.word)}.",
    ]
    mark = "; its value is not known" if curve.mark is None else f" and {curve.text(curve.mark)}"
    parts.append(f"The model has {plural(curve.report.chosen, curve.word)}{mark}.")
    all_ = "features" if curve.word == "feature" else "columns"
    names = {"null": f"Without {curve.word}s", "full": f"With all {all_}"}
    parts += [f"{names[name]}: {curve.text(value)}." for name, value in curve.lines.items()]
    if curve.spread:
        parts.append("A band shows one standard error to both sides.")
    return " ".join(parts)


def _make_legend(curve: PathChart) -> Html:
    full = curve.report.full
    keys: list[tuple[str, str]] = []
    if curve.mark is not None:
        keys.append((f"mark {curve.ident}", f"chosen: {plural(curve.report.chosen, curve.word)}"))
    if curve.spread:
        keys.append(("band", "± one standard error"))
    for name, value in curve.lines.items():
        one = "feature" if curve.word == "feature" else "column"
        size = plural(full.n_features, one) if full else ""
        words = f"no {curve.word}s" if name == "null" else f"linear model over all {size}"
        off = "" if _is_in_reach(curve, value) else " (off the scale, not drawn)"
        keys.append((f"reference {name}", f"{words}: {curve.text(value)}{off}"))
    items = (tag("li", tag("span", class_=f"key {key}"), words) for key, words in keys)
    return tag("ul", *items, class_="legend") if keys else Html("")
