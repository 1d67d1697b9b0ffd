"""HTML markup, in which any name of a column is safe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape as _escape

# Characters that XML 1.0 forbids or HTML calls an error: controls, half surrogates (they occur in
# file names that are not UTF-8) and non-characters. Bidirectional embeddings, overrides and
# isolates are legal, but one that is never closed reverses the rest of a line.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufeff\ufff9-\ufffb"
    + "".join(
        f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
    )
    + "]"
)

# Elements without content. They are closed as in XML, which HTML allows.
_VOID = frozenset({"br", "circle", "line", "link", "meta", "path", "polygon", "polyline"})


class Html(str):
    """Markup, which is not escaped again."""

    __slots__ = ()


def clean(text: str, gap: str = "") -> str:
    """Return text with ``gap`` in place of every character that a page must not contain."""
    return _UNFIT.sub(gap, text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str) -> str:
    """Return a name as one line, which is never empty."""
    return " ".join(clean(text).split()) or "(no name)"


def join(*parts: str | None, between: str = "") -> Html:
    """Join pieces; plain text is escaped."""
    return Html(between.join(_escape_part(part) for part in parts if part is not None))


def _escape_part(part: str) -> str:
    return part if isinstance(part, Html) else _escape(clean(part), quote=False)


def tag(element: str, *content: str | None, **attributes: str | float | bool | None) -> Html:
    """Return one element.

    Parameters
    ----------
    element : str
        The name of the element.
    *content : str or None
        Its content, in order. Plain text is escaped, ``None`` is left out.
    **attributes : str, float, bool or None
        Underscores become hyphens, and one at the end is dropped (``class_``). Numbers are written
        with at most two decimals; ``None`` and ``False`` leave the attribute out.

    Returns
    -------
    Html
        The element, well-formed for HTML and for XML.
    """
    opening = element + "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_format_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if element in _VOID or (element == "rect" and not content):
        return Html(f"<{opening}/>")
    return Html(f"<{opening}>{join(*content)}</{element}>")


def _format_attribute(value: str | float | bool) -> str:
    if value is True:
        return ""
    if isinstance(value, str):
        return _escape(clean(value), quote=True)
    return f"{value:.2f}".rstrip("0").rstrip(".")


def name_tag(name: str, most: int = 500) -> Html:
    """Return a name of the user, isolated from the text around it if it runs right to left."""
    line = one_line(name)
    return tag("bdi", line if len(line) <= most else line[: most - 1] + "…", class_="name")


def scroll(label: str, *content: str | None) -> Html:
    """Return a box that scrolls sideways, for the keyboard and for screen readers too."""
    return tag("div", *content, class_="scroll", tabindex="0", role="region", aria_label=label)


def fold(summary: str, body: Html) -> Html:
    """Return content that a click on its summary shows."""
    return tag("details", tag("summary", summary), body)


def fold_table(summary: str, caption: str, head: Iterable[str], rows: list[list[str]]) -> Html:
    """Return a table of figures that a click on its summary shows."""
    return fold(summary, table(caption, head, rows, class_="figures"))


def paragraph(sentences: Sequence[str]) -> Html | None:
    """Return sentences as a muted paragraph, or None if there are none."""
    return tag("p", " ".join(sentences), class_="muted") if sentences else None


def legend(items: Iterable[str]) -> Html:
    """Return the list that explains colours and lines."""
    return tag("ul", *(tag("li", item) for item in items), class_="legend")


def table(
    caption: str, head: Iterable[str], rows: Iterable[Iterable[str]], *, class_: str | None = None
) -> Html:
    """Return a table whose first cell of each row is a heading, in a box that scrolls."""
    body = (
        tag("tr", *(tag("td" if i else "th", cell, scope=None if i else "row")
                    for i, cell in enumerate(row)))
        for row in rows
    )  # fmt: skip
    return scroll(
        caption,
        tag(
            "table",
            tag("caption", caption),
            tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head))),
            tag("tbody", join(*body, between="\n")),
            class_=class_,
        ),
    )
