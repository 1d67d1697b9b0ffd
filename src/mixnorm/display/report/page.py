"""The page as a whole."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from mixnorm.display.report import sections
from mixnorm.display.report.confusion import confusion_section
from mixnorm.display.report.curves import curve_figures
from mixnorm.display.report.effects import effects_section
from mixnorm.display.report.html import Html, join, one_line, tag
from mixnorm.display.report.report import Report
from mixnorm.display.report.scatter import scatter_section

# Nothing is loaded and no script runs, whatever is in the page. Styles are part of the page.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:;"
    " base-uri 'none'; form-action 'none'"
)


@cache
def _read_style() -> Html:
    return Html(files(__package__).joinpath("style.css").read_text(encoding="utf-8"))


def page(report: Report) -> str:
    """Return the whole document for a report."""
    names = {"features": f"{report.word}s"}
    top = join(sections.masthead(report), sections.tiles(report))
    parts = _list_sections(report)
    return document(report.title, report.version, report.created, top, parts, names)


def document(
    title: str,
    version: str,
    created: str,
    top: Html,
    parts: list[tuple[str, str, Html]],
    names: dict[str, str] | None = None,
) -> str:
    """Return a page with a heading, a list of contents, and the sections ``parts``."""
    body = tag(
        "body",
        tag("div", top, _make_contents(parts, names or {}), class_="top"),
        tag("main", join(*(_make_section(*part) for part in parts), between="\n")),
        _make_footer(version, created),
    )
    return f"<!DOCTYPE html>\n{tag('html', _make_head(title, version), body, lang='en')}\n"


def _make_head(title: str, version: str) -> Html:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="format-detection", content="telephone=no"),
        tag("meta", name="generator", content=f"mixnorm {one_line(version)}"),
        tag("title", one_line(title)),
        tag("link", rel="icon", href="data:,"),  # otherwise browsers request one
        tag("style", _read_style()),
    )


def _list_sections(report: Report) -> list[tuple[str, str, Html]]:
    """Return id, heading and content of every section that is not empty."""
    regression = report.task == "regression"
    errors = scatter_section(report) if regression else confusion_section(report)
    found: list[tuple[str, str, Html | None]] = [
        ("curves", f"How many {report.word}s are enough", _make_curves(report)),
        ("features", f"The {report.word}s", sections.features_section(report)),
        ("errors", "How far it is off" if regression else "Where it errs", errors),
        ("effects", f"What the {report.word}s do", effects_section(report)),
        ("cost", "What a prediction costs", sections.cost_section(report)),
        ("data", "The data", sections.data_section(report)),
        ("origin", "How it was made", sections.origin_section(report)),
    ]
    return [(ident, name, content) for ident, name, content in found if content is not None]


def _make_curves(report: Report) -> Html:
    measured = one_line(report.how_measured) if report.how_measured else None
    return join(tag("p", measured) if measured else None, curve_figures(report))


def _make_section(ident: str, name: str, content: Html) -> Html:
    heading = tag("h2", name, id=f"{ident}-heading")
    return tag("section", heading, content, id=ident, aria_labelledby=f"{ident}-heading")


def _make_contents(parts: list[tuple[str, str, Html]], names: dict[str, str]) -> Html:
    links = (
        tag("li", tag("a", names.get(ident, ident).capitalize(), href=f"#{ident}"))
        for ident, _, _ in parts
    )
    return tag("nav", tag("ul", *links), aria_label="Contents")


def _make_footer(version: str, created: str) -> Html:
    words = (
        f"mixnorm {one_line(version)} · {one_line(created)} · This page is complete:"
        " it loads nothing and runs no script."
    )
    return tag("footer", tag("p", words))
