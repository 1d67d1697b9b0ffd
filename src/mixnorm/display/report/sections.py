"""The sections of the page that consist of sentences and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mixnorm.display.report import text
from mixnorm.display.report.html import Html, clean, fold, join, name_tag, one_line, table, tag
from mixnorm.display.report.report import Feature, Report

_MOST_LISTED = 40  # further features are folded away


def _find_error(report: Report) -> float | None:
    """Return the held-out error of the model, or None if it was not measured."""
    value = report.features[report.chosen - 1].error if report.chosen else report.null_error
    return value if text.is_known(value) else None


def _find_spread(report: Report) -> float | None:
    if report.standard_error is None or not report.chosen:
        return None
    value = report.standard_error[report.chosen - 1]
    return value if text.is_known(value) else None


def masthead(report: Report) -> Html:
    """Return the title, the result in one sentence, and errors to compare it with."""
    interrupted = None
    if report.interrupted:
        words = tag("strong", "Interrupted. ")
        interrupted = tag("p", words, one_line(report.interrupted), class_="notice", role="note")
    return tag(
        "header",
        tag("p", f"mixnorm report · {report.task}", class_="overline"),
        tag("h1", name_tag(report.title)),
        interrupted,
        tag("p", _make_answer(report), class_="answer"),
        tag("p", _compare_errors(report), class_="comparison"),
    )


def _make_answer(report: Report) -> Html:
    size = tag("strong", _describe_size(report))
    error = _find_error(report)
    if error is None:
        return join(size, "; the error on held-out rows was not measured.")
    value = text.measure(error, report.task)
    if report.task == "classification":
        result = join(tag("strong", f"{value} error"), " on held-out rows")
    else:
        result = join(report.error_name, " ", tag("strong", value), " on held-out rows")
    spread = _find_spread(report)
    doubt = "" if spread is None else f", {text.margin(spread, report.task)} (standard error)"
    return join(size, "; ", result, f"{doubt}.")


def _describe_size(report: Report) -> str:
    """Return the size of the model: ``3 of 8 features``, ``9 stumps of 3 columns (of 8)``."""
    if report.word == "feature":
        return f"{text.count(report.chosen)} of {text.plural(report.columns, 'feature')}"
    return f"{text.plural(report.chosen, report.word)} of {_describe_columns(report)}"


def _describe_columns(report: Report) -> str:
    if report.n_read == report.columns:
        return f"all {text.plural(report.columns, 'column')}"
    return f"{text.plural(report.n_read, 'column')} (of {text.count(report.columns)})"


def _count_inputs(report: Report, amount: int) -> str:
    """Return a number of columns, which are called features unless features are made of them."""
    return text.plural(amount, "feature" if report.word == "feature" else "column")


def _compare_errors(report: Report) -> str | None:
    parts = []
    if text.is_known(report.null_error):
        error = text.measure(report.null_error, report.task)
        parts.append(f"Without any {report.word} it would be {error}")
    if report.full is not None and text.is_known(report.full.error):
        lead = "with" if parts else "With"
        size = _count_inputs(report, report.full.n_features)
        linear = "" if report.word == "feature" else "a linear model of "
        own, ours = report.full.own_error, ""
        if text.is_known(own):
            ours = f" (ShareBoost with all of them: {text.measure(own, report.task)})"
        value = text.measure(report.full.error, report.task)
        parts.append(f"{lead} {linear}all {size} {value}{ours}")
    first = f"{', '.join(parts)}." if parts and _find_error(report) is not None else ""
    return f"{first} {one_line(report.how_chosen) if report.how_chosen else ''}".strip() or None


def tiles(report: Report) -> Html:
    """Return the key figures."""
    spread, error = _find_spread(report), _find_error(report)
    doubt = None if spread is None else f"{text.margin(spread, report.task)} standard error"
    doubt = "not measured" if error is None else doubt
    plain = report.word == "feature"
    offered = f"{text.count(report.columns)} columns" if plain else _describe_columns(report)
    figures = [
        (f"{report.word}s".capitalize(), text.count(report.chosen), f"of {offered}"),
        (f"Held-out {report.error_name}", text.measure(error, report.task), doubt),
        ("Multiply-adds", text.count(report.multiply_adds), "for one prediction"),
        ("Rows", text.count(report.rows), _count_classes(report)),
        ("Fitted in", text.duration(report.fit_seconds), None),
    ]
    if report.full is not None:
        full = text.measure(report.full.error, report.task)
        words = f"{report.error_name}, linear model"
        figures.insert(2, (f"All {_count_inputs(report, report.full.n_features)}", full, words))
    described = (
        (name, join(tag("b", value), tag("span", more) if more else None))
        for name, value, more in figures
    )
    return _make_list(described, "tiles")


def _count_classes(report: Report) -> str:
    words = ("class", "classes") if report.task == "classification" else ("output", "outputs")
    return text.plural(len(report.classes), *words)


def features_section(report: Report) -> Html:
    """Return the path as a table; features beyond the model are folded away."""
    listed = min(report.chosen, _MOST_LISTED)
    many, last = f"{report.word}s", len(report.features)
    parts: list[Html | None] = [
        tag(
            "p",
            "In the order they were chosen. Each lowers the training loss by the amount shown,"
            " given those above it.",
        ),
        tag("p", one_line(report.how_folds)) if report.how_folds else None,
        _list_members(report),
        _make_path_table(report, f"{many.capitalize()} of the model", 0, listed, null=True),
    ]
    if listed < report.chosen:
        words = f"{text.count(report.chosen - listed)} more {many} of the model"
        body = _make_path_table(report, f"Further {many} of the model", listed, report.chosen)
        parts.append(fold(words, body))
    if report.chosen < last:
        beyond = text.plural(last - report.chosen, report.word)
        body = _make_path_table(report, "Beyond the model", report.chosen, last)
        parts.append(fold(f"{beyond} beyond the model, as the curve goes on", body))
    return join(*parts)


def _list_members(report: Report) -> Html | None:
    """Return a sentence with the features of the model, if they are not the path."""
    if report.members is None:
        return None
    words = f"Earlier choices were replaced on the way. The {report.word}s of the model are now: "
    return tag("p", words, join(*(name_tag(name) for name in report.members), between=", "), ".")


def _make_path_table(
    report: Report, caption: str, start: int, stop: int, null: bool = False
) -> Html:
    largest = max((f.gain for f in report.features if text.is_known(f.gain)), default=0.0)
    errors = report.null_error is not None or any(f.error is not None for f in report.features)
    folds = any(feature.folds is not None for feature in report.features)
    spread = report.standard_error or (None,) * len(report.features)
    head = [report.word.capitalize(), "Fall of the loss", "Training loss"]
    head += ["Folds"] if folds else []
    head += [f"Held-out {report.error_name}"] if errors else []
    rows: list[Sequence[str]] = []
    if null:
        none = _add_rank("", tag("span", f"no {report.word}s", class_="muted"))
        error = text.measure(report.null_error, report.task)
        rows.append([none, "", text.number(report.null_loss), *([""] if folds else []), error])
    for i, feature in enumerate(report.features[start:stop], start):
        kind = _describe_kind(feature)
        name = tag("span", name_tag(feature.name), tag("small", kind) if kind else None)
        row = [
            _add_rank(f"{i + 1}", name),
            _draw_gain(feature.gain, largest),
            text.number(feature.loss),
        ]
        row += [_count_folds(feature, report)] if folds else []
        rows.append([*row, _add_margin(feature.error, spread[i], report.task)])
    return table(caption, head, (row[: len(head)] for row in rows), class_="path")


def _count_folds(feature: Feature, report: Report) -> str:
    if feature.folds is None:
        return text.NONE
    whole = "" if report.n_folds is None else f" of {text.count(report.n_folds)}"
    return f"{text.count(feature.folds)}{whole}"


def _add_rank(rank: str, name: Html) -> Html:
    return tag("div", tag("span", rank, class_="rank"), name, class_="ranked")


def _add_margin(error: float | None, spread: float | None, task: str) -> Html:
    """Return an error and its standard error, which is below the error if there is no room."""
    doubt = tag("small", text.margin(spread, task)) if text.is_known(spread) else None
    shown = doubt if text.is_known(error) else None
    return join(text.measure(error, task), " " if doubt else None, shown)


def _describe_kind(feature: Feature) -> str:
    kind = one_line(feature.kind) if feature.kind else ""
    if feature.n_columns > 1:
        kind += f"{', ' if kind else ''}{text.plural(feature.n_columns, 'column')}"
    return kind


def _draw_gain(gain: float, largest: float) -> Html:
    share = gain / largest if text.is_known(gain) and largest > 0 else 0.0
    bar = tag("span", class_="bar", style=f"width:{100 * max(share, 0):.1f}%")
    return tag(
        "span", tag("span", text.number(gain)), tag("span", bar, class_="track"), class_="gain"
    )


def cost_section(report: Report) -> Html:
    """Return the cost of a prediction, beside that of the model over all features."""
    full, error, caption = report.full, _find_error(report), "Cost of a prediction"
    head, name = ["Measure", "This model"], f"Held-out {report.error_name}"
    others = (None,) * 3 if full is None else (full.n_features, full.multiply_adds, full.error)
    rows = [
        ["Columns to measure", *_compare(report.n_read, others[0])],
        ["Multiply-adds for one prediction", *_compare(report.multiply_adds, others[1])],
    ]
    if error is not None:
        own = text.plus_minus(error, _find_spread(report), report.task)
        rows.append([name, own, text.measure(others[2], report.task), ""])
        if full is not None and text.is_known(full.own_error):
            rows.append([f"{name}, ShareBoost", own, text.measure(full.own_error, report.task), ""])
    if report.model_bytes is not None:
        rows.append(["Size of the model file", text.byte_size(report.model_bytes), "", ""])
    if full is not None:
        head += ["All features" if report.word == "feature" else "All columns", "Saved"]
        caption += f", beside the linear model over {head[2].lower()}"
    note = tag("p", one_line(full.note), class_="muted") if full and full.note else None
    cells = (row[: len(head)] for row in rows)
    figures = table(caption, head, cells, class_="figures")
    return join(tag("p", _describe_cost(report)), figures, note)


def _compare(ours: int, theirs: int | None) -> list[str]:
    """Return one number, or two numbers and how many times smaller the first one is."""
    if theirs is None:
        return [text.count(ours)]
    fewer = f"{text.number(theirs / ours, 2)}\u00a0× fewer" if 0 < ours < theirs else ""
    return [text.count(ours), text.count(theirs), fewer]


def _describe_cost(report: Report) -> str:
    words = (
        f"A prediction needs {text.plural(report.n_read, 'column')} of the table and"
        f" {text.plural(report.multiply_adds, 'multiplication')}, each with an addition"
    )
    words += (
        f", and {text.plural(report.comparisons, 'comparison')}." if report.comparisons else "."
    )
    coded = sum(feature.n_columns for feature in report.features[: report.chosen])
    if coded > report.chosen and report.word == "feature":
        words += f" Categories and the like are coded, so these are {coded:,} numbers."
    return words


def data_section(report: Report) -> Html:
    """Return facts about the table, and notes on its treatment."""
    outputs = "Classes" if report.task == "classification" else "Outputs"
    facts = [
        ("Target", name_tag(report.target)),
        ("Rows", text.count(report.rows)),
        ("Columns that could be chosen", text.count(report.columns)),
        (outputs, text.count(len(report.classes))),
    ]
    notes = [tag("li", one_line(note)) for note in report.notes]
    return join(_make_list(facts), tag("ul", *notes, class_="notes") if notes else None)


def origin_section(report: Report) -> Html:
    """Return the command, the version, the date and the time it took."""
    facts = [
        ("Made", one_line(report.created)),
        ("Version", f"mixnorm {one_line(report.version)}"),
        ("Fitted in", text.duration(report.fit_seconds)),
    ]
    # A mark replaces characters that cannot be shown, because the command may be used again.
    command = tag("pre", tag("code", clean(report.command, gap="\ufffd")))
    return join(_make_list(facts), tag("p", "The command that made this report:"), command)


def _make_list(pairs: Iterable[tuple[str, str]], class_: str = "facts") -> Html:
    """Return a list of names and values."""
    boxes = (tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs)
    return tag("dl", *boxes, class_=class_)
