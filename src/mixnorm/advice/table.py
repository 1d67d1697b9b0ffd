"""Advice as text and as HTML."""

from __future__ import annotations

import html
import math
import textwrap
from typing import Any

from mixnorm.advice.advice import Advice

_HEADS = ("norm", "held-out error", "data radius", "comparator", "bound", "columns", "rank", "s")


def _format_cells(row: dict[str, Any]) -> list[str]:
    place = row["bound's place"]
    bound = "none" if row["bound"] is None else f"{row['bound']:.3g} ({place})"
    return [
        row["norm"],
        f"{row['held-out error']:.4g} ± {row['standard error']:.2g}",
        "" if math.isnan(row["data radius"]) else f"{row['data radius']:.3g}",
        f"{row['comparator']:.3g}",
        bound,
        f"{row['columns']:.0f}",
        f"{row['rank']:.1f}",
        f"{row['seconds']:.2f}",
    ]


def format_text(advice: Advice, width: int = 100) -> str:
    """Return the table and the reasons, for a terminal."""
    table = [list(_HEADS), *(_format_cells(row) for row in advice.rows())]
    widths = [max(len(line[place]) for line in table) for place in range(len(_HEADS))]
    lines = [
        "  ".join(
            cell.ljust(size) if place == 0 else cell.rjust(size)
            for place, (cell, size) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    ]
    lines.insert(1, "-" * len(lines[0]))
    head = (
        f"{advice.n_samples} rows, {advice.n_features} columns, {advice.n_outputs} outputs; errors "
        f"are {advice.what}; without features {advice.null_error:.4g}"
    )
    words = f"{advice.why} {advice.describe_more_rows()}".strip()
    return "\n".join([head, "", *lines, "", *textwrap.wrap(words, width)])


def format_html(advice: Advice) -> str:
    """Return the table and the reasons, for a notebook."""
    heads = "".join(f"<th>{html.escape(head)}</th>" for head in _HEADS)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _format_cells(row)) + "</tr>"
        for row in advice.rows()
    )
    return (
        f"<p>{html.escape(advice.why)}</p><table><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )
