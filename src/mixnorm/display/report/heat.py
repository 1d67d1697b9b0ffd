"""Charts of effects: a heat map for several classes, bars for one output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mixnorm.display.report.grid import Grid
from mixnorm.display.report.html import Html, join, scroll, tag
from mixnorm.display.report.svg import Axis, Cell, cells, picture
from mixnorm.display.report.text import is_known, shorten, text_width

if TYPE_CHECKING:
    from mixnorm.display.report.effects import Effects


_FONT = 12


def heat_map(effects: Effects, title: str) -> Html:
    """Draw a coloured field for each class and feature, with numbers if there are few."""
    k, n = effects.values.shape
    roomy = k <= 20 and n <= 16
    texts = [[effects.brief(i, j) for j in range(n)] for i in range(k)] if roomy else []
    widest = max((text_width(text) for line in texts for text in line), default=0.0)
    grid = Grid(
        rows=effects.classes,
        columns=effects.features,
        width=max(64, _FONT * widest + 6) if roomy else 40,
        height=28 if roomy else 18 if k <= 30 else 13,
        font=12 if k <= 30 else 10,
        twice=k > 40,
    ).fit_page(least=max(18, _FONT * widest + 6))
    tips = [[shorten(name, 18) for name in names] for names in (effects.classes, effects.features)]
    fields, words = [], []
    for i in range(k):
        for j in range(n):
            x, y = grid.place(i, j)
            tip = f"{tips[0][i]} · {tips[1][j]}: {effects.text(i, j)}"
            hue, strength = effects.hue(i, j), effects.strength(i, j)
            fields.append(Cell(x, y, grid.width - 1, grid.height - 1, hue, strength, tip))
            if roomy or hue == "void":
                middle = {"x": x + grid.width / 2, "y": y + grid.height / 2 + 4}
                words.append(tag("text", effects.brief(i, j), class_="value middle", **middle))
    content = cells(fields), join(*words), grid.names()
    chart = picture("effects", grid.size, title, effects.describe(), *content)
    return scroll(title, chart)


def bars(effects: Effects, title: str) -> Html:
    """Draw the effects on a single output, as a bar to the left or right for each feature."""
    values = [effects.value(0, j) for j in range(len(effects.features))]
    texts = [effects.text(0, j) for j in range(len(values))]
    widest = 12 if effects.feature == "feature" else 18  # names of derived features are longer
    names = [shorten(name, widest) for name in effects.features]
    left = 12 + _FONT * max(map(text_width, names))
    room = 6 + _FONT * max(map(text_width, texts))
    x = Axis.around(
        [0.0, *filter(is_known, values)], left + room, max(left + room + 160, 470 - room), most=20
    )
    parts = []
    for j, value in enumerate(values):
        y = 8.0 + 24 * j
        start, end = sorted((x(0), x(value if is_known(value) else 0.0)))
        lowers = effects.hue(0, j) == "lower"
        beside = {"x": start - 5 if lowers else end + 5, "y": y + 12}
        parts += [
            tag("text", names[j], x=left - 8, y=y + 12, class_="label end"),
            tag("rect", x=start, y=y, width=end - start, height=16, class_=effects.hue(0, j)),
            tag("text", texts[j], class_="value end" if lowers else "value", **beside),
        ]
    parts.append(tag("line", x1=x(0), x2=x(0), y1=2, y2=24 * len(values) + 6, class_="base"))
    size = (x.end + room, 24 * len(values) + 8)
    chart = picture("effects", size, title, effects.describe(), *parts, class_="fit")
    return scroll(title, chart)
