"""The effects of the chosen features on the scores of the classes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixnorm.display.report import text
from mixnorm.display.report.grid import choose_classes, find_largest
from mixnorm.display.report.heat import bars, heat_map
from mixnorm.display.report.html import Html, fold_table, join, legend, name_tag, paragraph, tag
from mixnorm.display.report.report import Report
from mixnorm.display.report.svg import swatch

_MOST_FEATURES = 60


@dataclass(frozen=True)
class Effects:
    """The effects that the page shows, with their text and colour.

    Parameters
    ----------
    values : array of shape (n_classes, n_features)
        The effects; NaN if an effect is not known.
    classes, features : list of str
        Their names.
    signed : list of bool
        For each feature, whether the sign of its effects means anything.
    word : str
        The word for a row, ``"class"`` or ``"output"``.
    feature : str
        The word for a feature.
    """

    values: np.ndarray
    classes: list[str]
    features: list[str]
    signed: list[bool]
    word: str
    feature: str

    @classmethod
    def of(cls, report: Report) -> Effects:
        """Return the effects of a report for which the page has room."""
        rows = choose_classes(report)
        n = min(report.chosen, _MOST_FEATURES)
        values = report.effects[rows, :n]
        return cls(
            values=np.where(np.abs(values) < text.LARGEST_SHOWN, values, np.nan),
            classes=[report.classes[i] for i in rows],
            features=list(report.names[:n]),
            signed=[bool(signed) for signed in report.signed[:n]],
            word="class" if report.task == "classification" else "output",
            feature=report.word,
        )

    @cached_property
    def known_sizes(self) -> np.ndarray:
        """Sizes of the effects that are known."""
        return np.abs(self.values[np.isfinite(self.values)])

    @cached_property
    def limit(self) -> float:
        """The size with full colour; among many effects, the largest 1 % are left out."""
        sizes = self.known_sizes
        largest = float(sizes.max(initial=0.0))
        return float(np.quantile(sizes, 0.99)) or largest if sizes.size > 200 else largest

    def plural(self, amount: int) -> str:
        """Return ``2 classes`` or ``2 outputs``."""
        return text.plural(amount, self.word, "classes" if self.word == "class" else None)

    def value(self, i: int, j: int) -> float:
        """Return an effect, without its sign if the sign has no meaning."""
        value = float(self.values[i, j])
        return value if self.signed[j] else abs(value)

    def hue(self, i: int, j: int) -> str:
        """Return the CSS class of the colour of an effect."""
        value = self.value(i, j)
        if not text.is_known(value):
            return "void"
        return "size" if not self.signed[j] else "lower" if value < 0 else "raise"

    def strength(self, i: int, j: int) -> float:
        """Return the strength of the colour of an effect, from 0 to 1 or more."""
        value = self.value(i, j)
        return abs(value) / self.limit if text.is_known(value) and self.limit else 0.0

    def text(self, i: int, j: int) -> str:
        """Return the effect with its sign."""
        value = self.value(i, j)
        return ("+" if self.signed[j] and value > 0 else "") + text.number(value)

    def brief(self, i: int, j: int) -> str:
        """Return the effect for a field, with the decimals that suit the largest effect."""
        value = self.value(i, j)
        if not text.is_known(value) or not 1e-3 < self.limit < 1e5:
            return self.text(i, j)
        digits = text.format_fixed(value, max(2 - math.floor(math.log10(self.limit)), 0))
        return f"+{digits}" if self.signed[j] and value > 0 and digits.strip("0.") else digits

    def strongest(self, most: int) -> list[tuple[int, int]]:
        """Return the places of the largest effects that are not zero."""
        return find_largest(np.nan_to_num(np.abs(self.values)), most)

    def describe(self) -> str:
        """Describe the chart of the effects."""
        many = len(self.classes) > 1
        shape = f"{self.plural(len(self.classes))} by " if many else ""
        parts = [f"{shape}{text.plural(len(self.features), self.feature)}."]
        found = self.strongest(5)
        parts.append("Strongest effects:" if found else "All effects are zero or not known.")
        for i, j in found:
            target = f" on {text.shorten(self.classes[i], 30)}" if many else ""
            parts.append(f"{text.shorten(self.features[j], 30)}{target}: {self.text(i, j)}.")
        return " ".join(parts)


def effects_section(report: Report) -> Html:
    """Return the chart of effects with its legend and its numbers."""
    if report.chosen == 0:
        return tag("p", f"The model has no {report.word}s.")
    effects = Effects.of(report)
    single = len(report.classes) == 1
    target = "the prediction" if single else f"each {effects.word}"
    title = f"Effect of each chosen {report.word} on {target}"
    return join(
        tag("p", _explain(report, effects)),
        _explain_omissions(report, effects),
        _describe_strongest(effects),
        (bars if single else heat_map)(effects, title),
        legend(_make_legend(effects)),
        _make_table(effects),
    )


def _explain(report: Report, effects: Effects) -> str:
    what = f"the score of each {effects.word}" if effects.word == "class" else "each output"
    words = (
        f"How much each {report.word} moves "
        f"{'the prediction' if len(report.classes) == 1 else what}:"
        " the standard deviation, over the rows, of what it contributes."
    )
    if any(effects.signed) and report.word in ("stump", "condition"):
        words += f" Orange: it is higher where the {report.word} holds; blue: it is lower there."
    elif any(effects.signed):
        words += f" Orange: larger values of the {report.word} raise it; blue: they lower it."
    return words


def _explain_omissions(report: Report, effects: Effects) -> Html | None:
    parts = []
    if len(effects.classes) < len(report.classes):
        why = "with most errors" if report.confusion is not None else "that are moved most"
        all_ = effects.plural(len(report.classes))
        parts.append(f"Shown are the {text.count(len(effects.classes))} of {all_} {why}.")
    if len(effects.features) < report.chosen:
        all_ = text.plural(report.chosen, report.word)
        parts.append(f"Shown are the first {text.count(len(effects.features))} of {all_}.")
    return paragraph(parts)


def _describe_strongest(effects: Effects) -> Html:
    found = effects.strongest(3)
    if not found:
        return tag("p", "All effects are zero or not known.")
    pieces = []
    for i, j in found:
        target = [" on ", name_tag(effects.classes[i], 60)] if len(effects.classes) > 1 else []
        value = f" ({effects.text(i, j)})"
        pieces.append(join(name_tag(effects.features[j], 60), *target, value))
    return tag("p", "Strongest: ", join(*pieces, between=", "), ".")


def _make_legend(effects: Effects) -> list[Html]:
    """Return the items that explain the colours; bars need no scale."""
    together = "several columns together: size without a sign"
    items: list[Html] = []
    if len(effects.classes) == 1:
        if any(effects.signed):
            items += [join(swatch("raise"), "raises"), join(swatch("lower"), "lowers")]
        if not all(effects.signed):
            items.append(join(swatch("size"), together))
    else:
        beyond = " or more" if effects.known_sizes.max(initial=0) > 1.001 * effects.limit else ""
        limit = f"{text.number(effects.limit, 2)}{beyond}"
        steps = (0.25, 0.5, 0.75, 1.0)
        if any(effects.signed):
            down, up = ([swatch(hue, s) for s in steps] for hue in ("lower", "raise"))
            scale = tag("span", *down[::-1], *up, class_="scale")
            items.append(join(f"lowers by {limit}", scale, f"raises by {limit}"))
        if not all(effects.signed):
            scale = tag("span", *(swatch("size", s) for s in steps), class_="scale")
            items.append(join("0", scale, f"{limit}; {together}"))
    if not np.isfinite(effects.values).all():
        items.append(join(swatch("void"), f"{text.NONE} not known"))
    return items


def _make_table(effects: Effects) -> Html:
    """Return the effects as a table, with one row per feature if there is a single output."""
    k, n = effects.values.shape
    features = [name_tag(name) for name in effects.features]
    if k == 1:
        head: list[str] = [effects.feature.capitalize(), "Effect"]
        rows = [[features[j], effects.text(0, j)] for j in range(n)]
    else:
        head = [effects.word.capitalize(), *features]
        rows = [
            [name_tag(effects.classes[i]), *(effects.text(i, j) for j in range(n))]
            for i in range(k)
        ]
    return fold_table("The effects in numbers", "Effects in numbers", head, rows)
