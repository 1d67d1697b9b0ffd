"""Predictions against the truth, for regression."""

from __future__ import annotations

import numpy as np

from mixnorm.display.report.html import Html, fold_table, join, paragraph, scroll, table, tag
from mixnorm.display.report.report import Report
from mixnorm.display.report.svg import Axis, Cell, cells, draw_grid, picture, swatch, tick_text
from mixnorm.display.report.text import LARGEST_SHOWN, count, number, percent, text_width

_MOST_POINTS = 400  # more points would hide each other, and are counted in squares instead
_SQUARES = 40
_SIDE = 420.0
_QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def scatter_section(report: Report) -> Html | None:
    """Return predictions against the truth, and the residuals in words and numbers."""
    if report.scatter is None:
        return None
    pairs = report.scatter[(np.abs(report.scatter) < LARGEST_SHOWN).all(axis=1)]
    if not len(pairs):
        return tag("p", "No held-out prediction is a number.")
    low, high = _find_frame(pairs)
    inside = pairs[((pairs >= low) & (pairs <= high)).all(axis=1)]
    y = Axis.around((low, high), _SIDE - 42, 12.0, most=5, zero=False)
    amounts = None  # of points in each square, if there are many
    if len(inside) > _MOST_POINTS:
        edges = np.linspace(y.low, y.high, _SQUARES + 1)
        amounts = np.histogram2d(inside[:, 0], inside[:, 1], bins=(edges, edges))[0]
    return join(
        tag("p", _describe_residuals(pairs)),
        _explain_omissions(len(report.scatter), len(pairs), len(inside)),
        tag(
            "div",
            scroll("Predictions against the truth", _draw(inside, y, amounts, pairs)),
            _make_quantile_table(pairs[:, 1] - pairs[:, 0]),
            class_="pair even",
        ),
        _make_legend(amounts) if amounts is not None else None,
        _make_table(pairs),
    )


def _find_frame(pairs: np.ndarray) -> tuple[float, float]:
    """Return the range to draw, without a few remote values that would shrink the rest to a dot."""
    low, high = float(pairs.min()), float(pairs.max())
    inner = np.quantile(pairs, (0.005, 0.995))
    room = 0.5 * (inner[1] - inner[0])
    if room > 0 and high - low > 8 * room:
        low, high = max(low, float(inner[0] - room)), min(high, float(inner[1] + room))
    return low, high


def _explain_omissions(given: int, numbers: int, inside: int) -> Html | None:
    parts = []
    if numbers < given:
        parts.append(f"{count(given - numbers)} of {count(given)} rows are left out: not finite.")
    if inside < numbers:
        parts.append(f"{count(numbers - inside)} of {count(numbers)} rows lie outside the frame.")
    return paragraph(parts)


def _describe_residuals(pairs: np.ndarray) -> str:
    residual = pairs[:, 1] - pairs[:, 0]
    misses = np.abs(residual)
    half, most, worst = np.quantile(misses, (0.5, 0.9, 1.0))
    high = float((residual > 0).mean())
    return (
        f"Half of the {count(len(pairs))} held-out predictions are within {number(half)} of the"
        f" truth, 90\u00a0% within {number(most)}; the largest miss is {number(worst)}."
        f" {percent(high, 0)} of the predictions are too high."
    )


def _draw(inside: np.ndarray, y: Axis, amounts: np.ndarray | None, pairs: np.ndarray) -> Html:
    write, unit = tick_text(y.marks)
    widest = 12 * max(text_width(write(mark)) for mark in y.marks)
    left = 16.0 + widest
    x = Axis(y.low, y.high, left, left + y.start - y.end, y.marks)
    # Only every second value is written where all would overlap.
    every = 1 if widest + 8 < x(x.marks[1]) - x(x.marks[0]) else 2
    values = (
        tag("text", write(mark), x=x(mark), y=y.start + 17, class_="tick middle")
        for mark in x.marks[::every]
    )
    unit = f", {unit}" if unit else ""
    title = "Predicted against true values on held-out rows"
    return picture(
        "scatter",
        (x.end + max(widest / 2, 8), _SIDE),
        title,
        _describe(pairs),
        draw_grid(y, left, x.end, write),
        *values,
        tag("text", f"truth{unit}", x=(x.start + x.end) / 2, y=y.start + 36, class_="axis middle"),
        tag("text", f"prediction{unit}", x=left + 6, y=y.end + 16, class_="axis"),
        _draw_points(inside, x, y) if amounts is None else _draw_squares(amounts, x, y),
        tag("line", x1=x.start, y1=y.start, x2=x.end, y2=y.end, class_="diagonal"),
        class_="fit",
    )


def _draw_points(inside: np.ndarray, x: Axis, y: Axis) -> Html:
    return join(
        *(tag("circle", cx=x(true), cy=y(guess), r=3, class_="point") for true, guess in inside)
    )


def _draw_squares(amounts: np.ndarray, x: Axis, y: Axis) -> Html:
    side = (x.end - x.start) / _SQUARES
    most = np.log1p(amounts.max())
    fields = []
    for i, j in zip(*np.nonzero(amounts), strict=True):
        left, top = x.start + i * side, y.start - (j + 1) * side
        strength, tip = float(np.log1p(amounts[i, j]) / most), f"{count(amounts[i, j])} rows"
        fields.append(Cell(left, top, side - 0.5, side - 0.5, "size", strength, tip))
    return cells(fields)


def _make_legend(amounts: np.ndarray) -> Html:
    scale = tag("span", *(swatch("size", s) for s in (0.25, 0.5, 0.75, 1.0)), class_="scale")
    words = f" {count(amounts.max())} rows in a square (logarithmic)"
    return tag("ul", tag("li", "1 ", scale, words), class_="legend")


def _make_quantile_table(residual: np.ndarray) -> Html:
    values = np.quantile(residual, _QUANTILES)
    rows = (
        [percent(share, 0), number(float(value))]
        for share, value in zip(_QUANTILES, values, strict=True)
    )
    head = ["Share of rows below", "Prediction minus truth"]
    return table("Quantiles of the residuals", head, rows, class_="figures compact")


def _describe(pairs: np.ndarray) -> str:
    true, guess = pairs[:, 0], pairs[:, 1]
    parts = [
        f"{count(len(pairs))} rows. Truth from {number(true.min())} to {number(true.max())},",
        f"predictions from {number(guess.min())} to {number(guess.max())}.",
    ]
    if true.std() > 0 and guess.std() > 0:
        parts.append(f"Their correlation is {number(float(np.corrcoef(true, guess)[0, 1]))}.")
    return " ".join([*parts, "A line marks where both are equal.", _describe_residuals(pairs)])


def _make_table(pairs: np.ndarray) -> Html:
    """Return a table of the predictions by tenths of the truth."""
    order = np.argsort(pairs[:, 0], kind="stable")
    rows = []
    for part in np.array_split(pairs[order], min(10, len(pairs))):
        low, middle, high = np.quantile(part[:, 1], (0.1, 0.5, 0.9))
        span = f"{number(part[0, 0])} to {number(part[-1, 0])}"
        rows.append([span, count(len(part)), number(low), number(middle), number(high)])
    head = ["Truth", "Rows", "Prediction: 10\u00a0% below", "Median", "90\u00a0% below"]
    caption = "Predictions by tenths of the truth"
    return fold_table("The predictions in numbers", caption, head, rows)
