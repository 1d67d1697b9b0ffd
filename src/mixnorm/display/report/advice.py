"""Advice on norms as one HTML page that can be sent by mail, read offline and printed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mixnorm.display.report.html import Html, join, one_line, table, tag
from mixnorm.display.report.page import document

_VERDICTS = {
    "clear": "One norm is better than the others.",
    "tie": "Several norms are as good as each other.",
    "nothing": "No norm helps on these data.",
    "alone": "No other norm was compared.",
}


def advice_page(
    advice: Any,
    *,
    title: str = "Which norm to use",
    version: str = "",
    created: str = "",
    made: Sequence[str] = (),
) -> str:
    """Return a page with advice on norms.

    Parameters
    ----------
    advice : mixnorm.advice.Advice
        The advice.
    title : str
        The heading.
    version, created : str
        The version of mixnorm, and the date and time.
    made : list of str
        Paragraphs on how the advice was made.
    """
    more = advice.describe_more_rows() or "The theory has no bound for this norm here."
    sections = [
        ("norms", "The norms", _make_norms_table(advice)),
        ("bounds", "Bounds of the theory", _make_bounds_table(advice)),
        ("more", "With more data", tag("p", more)),
        ("words", "What the columns mean", _make_legend(advice)),
    ]
    if made:
        sections.append(("origin", "How it was made", join(*(tag("p", one_line(m)) for m in made))))
    head = join(
        tag("h1", one_line(title)),
        tag("p", tag("strong", f"{advice.best_norm_}. {_VERDICTS[advice.verdict]}")),
        tag("p", advice.why),
    )
    return document(title, version, created, head, sections)


def _make_norms_table(advice: Any) -> Html:
    rows = [
        (
            row["norm"],
            f"{row['held-out error']:.4g} ± {row['standard error']:.2g}",
            f"{row['columns']:.0f} of {advice.n_features}",
            f"{row['rank']:.1f}",
            f"{row['alpha']:.3g}",
            f"{row['seconds']:.2f}",
        )
        for row in advice.rows()
    ]
    head = ("norm", "held-out error", "columns with weight", "rank", "penalty", "seconds")
    caption = (
        f"Errors are {advice.what}; without any feature {advice.null_error:.4g}. "
        f"{advice.n_used:,} of {advice.n_samples:,} rows were used to compare."
    )
    return table(caption, head, rows)


def _make_bounds_table(advice: Any) -> Html:
    rows = []
    for row in advice.rows():
        radius = "" if math.isnan(row["data radius"]) else f"{row['data radius']:.3g}"
        place = row["bound's place"]
        bound = "none known" if row["bound"] is None else f"{row['bound']:.3g}"
        rows.append((row["norm"], radius, f"{row['comparator']:.3g}", bound, str(place or "")))
    head = ("norm", "largest example", "size of the weights", "excess risk at most", "place")
    caption = "Bounds order norms; their values are far above the measured ones."
    return table(caption, head, rows)


def _make_legend(advice: Any) -> Html:
    words = {
        "held-out error": "the mean over folds at the best penalty, with its standard error",
        "rank": "directions of the weights that are not negligible, on average",
        "largest example": "the largest dual norm of an example, for the norm of the proofs",
        "size of the weights": "the norm of the first weights along the path whose held-out loss "
        "is the level that all norms reach",
        "excess risk at most": "a bound on the loss of the empirical minimiser in a ball of that "
        "size, above that of the best weights in the ball",
    }
    return tag("dl", *(join(tag("dt", name), tag("dd", text)) for name, text in words.items()))
