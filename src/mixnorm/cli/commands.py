"""The commands: each reads its options, does one thing, and reports it."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table as RichTable
from sklearn.base import BaseEstimator

from mixnorm.cli.advise import collect_advice_facts, compare_norms, write_advice_page
from mixnorm.cli.arguments.parser import UsageError, build_parser
from mixnorm.cli.blocks.data import LargeTable, describe_reading, load_large_table
from mixnorm.cli.blocks.files import find_block_files, name_model, names_many
from mixnorm.cli.blocks.output import open_writer
from mixnorm.cli.blocks.predict import predict_files
from mixnorm.cli.blocks.search import LargeSearch
from mixnorm.cli.data import TrainingTable, load_training_data
from mixnorm.cli.demo import demo as demo
from mixnorm.cli.full import fit_all_columns
from mixnorm.cli.held_out import compute_error
from mixnorm.cli.screen import Screen, escape_text, format_error, write_output
from mixnorm.cli.search import SearchOutcome, TableSearch
from mixnorm.cli.signals import ignore_interrupts
from mixnorm.cli.stream.show import PredictedTable, predict_rows, show_other, show_stream
from mixnorm.cli.summary import (
    collect_facts,
    describe_cost,
    describe_size,
    list_path_rows,
    make_report,
    select_plain_parameters,
)
from mixnorm.display import FullModel
from mixnorm.exceptions import ModelFileError, TableError
from mixnorm.models import PathModel
from mixnorm.storage import load, save
from mixnorm.tables import (
    SparseEncoder,
    SparseTable,
    StreamModel,
    Table,
    TableModel,
    as_target_numbers,
    compare_labels,
    detect_decimal_mark,
    find_column,
    join_names,
    pluralize,
    read_table,
)

# Rows of a path and names of columns that are printed.
_MOST_ROWS_SHOWN = 40
# Facts of a search that ``mixnorm path`` prints as JSON.
_SEARCHED = (
    "table", "target", "task", "rows", "columns", "pool", "error_name", "null_error", "folds",
    "nested", "how_chosen", "how_measured", "how_folds", "notes",
)  # fmt: skip


def fit(options: argparse.Namespace, screen: Screen, command: Sequence[str]) -> None:
    """``mixnorm fit``: search, write the model and the report, and print the result."""
    place = choose_model_path(options)
    paths = find_block_files(options)
    data = _read_table(options, screen, paths)
    found = _search(data, options, screen)
    full = _fit_all_columns(data, found, options, screen)
    written = {"model": str(place)}
    with ignore_interrupts():
        facts = collect_facts(data, found, command, full)
        save(TableModel(data.target, data.task, data.encoder, found.model, facts), place)
        if options.report is not None:
            size = place.stat().st_size if place.is_file() else 0
            make_report(data, found, facts, full, size).write(options.report)
            written["report"] = options.report
    _print_fit(facts, found, screen, full)
    screen.say(*(f"{what.capitalize()} written to {where}." for what, where in written.items()))
    screen.print_json({**facts, **written})


def choose_model_path(options: argparse.Namespace, *, resume: bool = False) -> Path:
    """Return the path of the model file; without ``resume`` a default name replaces no file."""
    stem = name_model(options.files) if options.command == "fit" else Path(options.file).stem
    stem = stem.split(".")[0] or "model"
    place = Path(options.model or f"{stem}.mixnorm")
    if resume and not place.exists():
        raise UsageError(f"--resume: there is no model {place}; leave --resume out to start one")
    checkpoint = getattr(options, "checkpoint", None)
    if options.command == "fit" and checkpoint is not None:  # the model of a fit that goes on
        resume = Path(checkpoint).exists()
    if options.model is None and place.exists() and not resume:
        raise UsageError(f"{place} exists; give --model {place} to replace it, or another name")
    return place


def _search(data: TrainingTable, options: argparse.Namespace, screen: Screen) -> SearchOutcome:
    """Search for a model; a table of blocks is fitted block by block."""
    if not isinstance(data, LargeTable):
        return TableSearch(data, options, screen, whole=options.report is not None).run()
    found = LargeSearch(data, options, screen).run()
    screen.remark(describe_reading(data))
    return found


def _read_table(
    options: argparse.Namespace, screen: Screen, paths: Sequence[str] | None = None
) -> TrainingTable:
    """Read the table, or plan its columns where it is read by blocks; print notes about it."""
    data: TrainingTable
    if paths is None:
        with screen.status(f"reading {options.file}"):
            data = load_training_data(options)
    else:
        data = load_large_table(options, paths, screen)
    columns = len(data.encoder.names)
    screen.remark(
        f"{data.name}: {pluralize(data.n_rows, 'row')}, {pluralize(columns, 'column')} to choose "
        "from."
    )
    screen.remark(*data.notes)
    return data


def _fit_all_columns(
    data: TrainingTable, found: SearchOutcome, options: argparse.Namespace, screen: Screen
) -> FullModel | None:
    """Fit models with all columns for the report, unless interrupted."""
    if options.report is None or found.interrupted:
        return None
    try:
        with screen.status("fitting models with all columns, for comparison"):
            return fit_all_columns(data, found)
    except KeyboardInterrupt:
        screen.remark("Interrupted: the report has no models with all columns.")
        return None


def _print_fit(
    facts: dict[str, Any], found: SearchOutcome, screen: Screen, full: FullModel | None
) -> None:
    task = facts["task"]
    screen.remark(*found.notes)
    if found.interrupted:
        screen.say(found.interrupted)
    word = facts["word"]
    screen.show(_make_path_table(facts["path"], task, None, word))
    _print_replaced(facts, screen)
    screen.say(f"{describe_size(facts)}: {_describe_error(facts, task)}")
    if full is not None:
        all_ = pluralize(full.n_features, word if word == "feature" else "column")
        screen.say(f"All {all_}: {format_error(full.error, task)} ({full.note}).")
        if full.own_error is not None:
            screen.say(f"ShareBoost with all {all_}: {format_error(full.own_error, task)}.")
    _print_settings(facts, screen)


def _describe_error(facts: dict[str, Any], task: str) -> str:
    """Return the held-out error of a model in words."""
    spread, word = format_error(facts["standard_error"], task), facts.get("word", "feature")
    text = (
        f"{facts['error_name']} {format_error(facts['error'], task)} ± {spread} on held-out rows, "
        f"{format_error(facts['null_error'], task)} without {word}s."
    )
    if facts["error"] >= facts["null_error"]:
        text += f" The model does no better than one without {word}s."
    return text


def _print_settings(facts: dict[str, Any], screen: Screen) -> None:
    """Print how size and errors were found; files of older versions lack some of it."""
    keys = ("how_chosen", "how_measured", "how_folds")
    screen.say(*(facts[key] for key in keys if facts.get(key)))


def _print_replaced(facts: dict[str, Any], screen: Screen) -> None:
    """Print the features of a model if replacement steps changed earlier choices."""
    names = facts.get("replaced")
    if names:
        shown = join_names(names, _MOST_ROWS_SHOWN)
        screen.say(f"Earlier choices were replaced; the {facts['word']}s are now: {shown}")


def path(options: argparse.Namespace, screen: Screen, command: Sequence[str]) -> None:
    """``mixnorm path``: print the curve and the size it suggests."""
    data = _read_table(options, screen)
    found = TableSearch(data, options, screen, whole=True).run()
    rows, facts = list_path_rows(data, found), collect_facts(data, found, command, None)
    screen.show(_make_path_table(rows, data.task, found.chosen, data.word))
    if found.interrupted:
        screen.say("The search was interrupted; these are its results so far.")
    screen.say(
        f"Suggested: {pluralize(found.chosen, data.word)}, {_describe_error(facts, data.task)}"
    )
    _print_settings(facts, screen)
    document = {name: facts[name] for name in _SEARCHED}
    document |= {"suggested": found.chosen, "path": rows, "interrupted": bool(found.interrupted)}
    screen.print_json(document)


def _make_path_table(
    rows: list[dict[str, Any]], task: str, marked: int | None, word: str = "feature"
) -> RichTable:
    """Return the path as a table for the terminal."""
    table = RichTable(box=None, pad_edge=False)
    widest = 40 if word == "feature" else 60
    table.add_column(f"{word}s", justify="right", no_wrap=True, min_width=8)
    table.add_column("added", no_wrap=True, overflow="ellipsis", max_width=widest)
    counts = any(row.get("folds") is not None for row in rows)  # files of older versions have none
    if counts:
        table.add_column("folds", justify="right", no_wrap=True)
    table.add_column("training loss", justify="right", no_wrap=True)
    table.add_column("held-out error", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    shown = rows if len(rows) <= _MOST_ROWS_SHOWN else rows[: _MOST_ROWS_SHOWN - 1] + rows[-1:]
    largest = max((row["error"] or 0.0 for row in rows), default=0.0) or 1.0
    for row in shown:
        name, error = row["name"], format_error(row["error"], task)
        if row["standard_error"] is not None:
            error += f" ± {format_error(row['standard_error'], task)}"
        bar = "█" * max(1, round(12 * (row["error"] or 0.0) / largest))
        hint = " ← suggested" if row["features"] == marked else ""
        table.add_row(
            str(row["features"]),
            escape_text(name if row["kind"] in ("number", word) else f"{name}, {row['kind']}"),
            *([str(row["folds"])] if counts else []),
            format_error(row["loss"], "regression"),
            error,
            bar + hint,
        )
    return table


def predict(options: argparse.Namespace, screen: Screen, command: Sequence[str]) -> None:
    """``mixnorm predict``: apply a model to a new table."""
    words = (
        "saved from Python, which cannot read tables; use mixnorm.load in Python, or mixnorm fit"
    )
    model = load_model(options.model, (TableModel, StreamModel), words)
    if isinstance(model, StreamModel):
        if names_many(options.files):
            raise UsageError("a model of mixnorm stream reads one file; predict file by file")
        found = predict_rows(model, options)
    else:
        model = _prepare_model(model, options)
        paths = find_block_files(options)
        if paths is not None:
            _print_predicted(*predict_files(model, options, paths, screen), options, screen)
            return
        found = _predict_table(model, options)
    count = len(found.columns["prediction"])
    if options.output is not None or not screen.json:
        with open_writer(options.output) as writer:
            writer.write(found.columns)
    _print_predicted(found, count, options, screen)


def _print_predicted(
    found: PredictedTable, count: int, options: argparse.Namespace, screen: Screen
) -> None:
    """Print notes on predictions that are written, or the predictions as JSON."""
    screen.remark(*filter(None, [*found.notes, found.text]))
    document: dict[str, Any] = {"rows": count, "notes": found.notes}
    if found.error is not None:
        document["error"] = found.error
    if options.output is not None:
        screen.say(f"{pluralize(count, 'prediction')} written to {options.output}.")
        document["output"] = options.output
    else:
        document["columns"] = found.columns
    screen.print_json(document)


def _prepare_model(model: TableModel, options: argparse.Namespace) -> TableModel:
    """Return the model of the size that the options name; raise for options that do not fit it."""
    if options.format == "jsonl":
        raise UsageError("--format jsonl applies only to models of mixnorm stream")
    if options.features is not None:
        model = _truncate(model, options.features)
    if options.probabilities and model.classes is None:
        raise UsageError("--probabilities needs a classifier, but the model predicts numbers")
    return model


def _predict_table(model: TableModel, options: argparse.Namespace) -> PredictedTable:
    """Predict for a table with a model of ``mixnorm fit``."""
    zero_based = model.encoder.zero_based if isinstance(model.encoder, SparseEncoder) else None
    table = read_table(
        options.file,
        file_format=options.format or (None if zero_based is None else "libsvm"),
        delimiter=options.delimiter,
        header=options.header,
        expect=model.needed,
        zero_based=zero_based,
        texts=model.texts,
        keep=options.keep,
    )
    applied = model.apply(table)
    columns = _copy_columns(table, options.keep)
    columns["prediction"] = applied.values
    found = PredictedTable(columns, [*table.notes, *applied.notes])
    if options.probabilities and model.classes is not None and applied.probabilities is not None:
        found.add_probabilities(model.classes, applied.probabilities)
    _measure(model, table, found)
    return found


def load_model(place: str | Path, kinds: tuple[type[Any], ...], words: str) -> Any:
    """Return a model of one of the kinds; the words end the error for other models."""
    model = load(place)
    if not isinstance(model, kinds):
        raise ModelFileError(f"{place} holds a {type(model).__name__} {words}.")
    return model


def _truncate(model: TableModel, size: int) -> TableModel:
    if size > model.size:
        word = model.facts.get("word", "feature")
        raise TableError(f"The model has only {pluralize(model.size, word)}, not {size}.")
    return model.truncate(size)


def _copy_columns(table: Table | SparseTable, names: list[str]) -> dict[str, Any]:
    """Return the columns of the table to write beside the predictions."""
    if isinstance(table, SparseTable):
        if names:
            raise UsageError("--keep needs column names, which a LIBSVM file does not have")
        return {}
    for name in names:
        find_column(table.frame, name, table.name, table.repeated)
    return {name: table.kept[name] for name in names if name in table.kept}


def _measure(model: TableModel, table: Table | SparseTable, found: PredictedTable) -> None:
    """Add the error to predictions for a table that has its targets."""
    import pandas as pd

    if isinstance(table, SparseTable):
        values, mark = pd.Series(table.labels, name=model.target), ""
    elif model.target in table.frame.columns and model.target not in table.repeated:
        values, mark = table.frame[model.target], detect_decimal_mark(table.frame)
    else:
        return
    guess, unknown = found.columns["prediction"], list[str]()
    if model.classes is not None:
        rows, wrong, unknown = compare_labels(values, guess, model.classes)
        error = float(np.mean(wrong)) if len(rows) else math.nan
    else:
        truth = as_target_numbers(values, mark)
        rows = np.flatnonzero(np.isfinite(truth))
        error = compute_error(truth[rows], guess[rows], None, model.task) if len(rows) else math.nan
    if not len(rows):
        return
    found.set_error(error, model.task, len(rows))
    if unknown:
        found.text += f" Labels that training did not have: {join_names(unknown, 5)}."


def show(options: argparse.Namespace, screen: Screen, command: Sequence[str]) -> None:
    """``mixnorm show``: describe a model."""
    model = load(options.model)
    size = Path(options.model).stat().st_size
    if isinstance(model, StreamModel):
        show_stream(model, options.model, size, screen)
        return
    if not isinstance(model, TableModel):
        _show_estimator(model, options.model, size, screen)
        return
    kind = type(model.estimator).__name__
    classes = None if model.classes is None else [str(label) for label in model.classes]
    screen.say(f"{options.model}: {kind}, predicts {model.target!r} ({model.task}).")
    if classes is not None:
        screen.say(f"{len(classes)} classes: {join_names(classes, 10)}")
    facts = {**model.facts, "bytes": size}
    _print_facts(model, facts, screen)
    document = {"estimator": kind, "parameters": select_plain_parameters(model.estimator)}
    screen.print_json({**facts, **document, "classes": classes, "needed": model.needed})


def _print_facts(model: TableModel, facts: dict[str, Any], screen: Screen) -> None:
    """Print errors, the needs of a prediction, and how the model was made."""
    word, needed = facts.get("word", "feature"), model.needed
    screen.show(_make_path_table(facts.get("path", []), model.task, None, word))
    _print_replaced(facts, screen)
    if facts.get("interrupted"):
        screen.say(facts["interrupted"])
    if "error" in facts:
        measured = _describe_error(facts, model.task)
        screen.say(measured[0].upper() + measured[1:])
    _print_settings(facts, screen)
    screen.say(
        f"A prediction needs {pluralize(len(needed), 'column')} of the table and "
        f"{describe_cost(model.estimator)}; the file has {facts['bytes']:,} bytes."
    )
    if word != "feature":  # names of features are not names of columns
        screen.say(f"Columns: {join_names(needed, _MOST_ROWS_SHOWN)}")
    if "created" in facts:
        screen.say(
            f"Made {facts['created']} with mixnorm {facts['version']} from {facts['table']} "
            f"({pluralize(facts['rows'], 'row')}, {pluralize(facts['columns'], 'column')}):"
        )
        screen.say(f"  {facts['command']}")


def _show_estimator(model: BaseEstimator, place: str, size: int, screen: Screen) -> None:
    """Describe an estimator that was saved from Python."""
    if any(getattr(model, name, None) is None for name in ("selected_", "cost_")):
        show_other(model, place, size, screen)
        return
    names = getattr(model, "feature_names_in_", None)
    chosen = [int(index) for index in model.selected_]
    shown = chosen if names is None else [str(names[index]) for index in chosen]
    made = _describe_atoms(model, names)
    facts = {
        "estimator": type(model).__name__,
        "features": shown,
        "columns": int(model.n_features_in_),
        "multiply_adds": model.cost_.multiply_adds,
        "comparisons": model.cost_.comparisons,
        "bytes": size,
        **({"made_of_them": made} if made else {}),
    }
    screen.say(f"{place}: {facts['estimator']}, saved from Python.")
    screen.say(f"{len(chosen)} of {facts['columns']} columns, in the order of choice:")
    screen.say("  " + ", ".join(map(str, shown)))
    if made:
        screen.say(f"{pluralize(len(made), 'feature')} made of these columns, in the same order:")
        screen.say("  " + ", ".join(made))
    screen.say(f"A prediction needs {describe_cost(model)}; the file has {size:,} bytes.")
    screen.print_json(facts)


def _describe_atoms(model: BaseEstimator, names: Sequence[str] | None) -> list[str]:
    """Return the atoms of an estimator in words, unless they are columns."""
    found = getattr(model, "model_", None)
    if not isinstance(found, PathModel) or not found.size or found.pool.plain:
        return []
    if names is None:
        names = [f"column {column}" for column in range(found.inputs.n_features)]
    return [str(found.pool.describe(atom, names)) for atom in found.support]


def advise(options: argparse.Namespace, screen: Screen, command: Sequence[str]) -> None:
    """``mixnorm advise``: compare norms, print the table, and write the report."""
    data = _read_table(options, screen)
    found = compare_norms(data, options, screen)
    facts = collect_advice_facts(found, data, command)
    screen.say(*str(found).splitlines())
    if options.report is not None:
        with ignore_interrupts():
            write_advice_page(found, facts, options.report)
        screen.say(f"Report written to {options.report}.")
        facts["report"] = options.report
    screen.print_json(facts)


def completion(options: argparse.Namespace, screen: Screen, command: Sequence[str]) -> None:
    """``mixnorm completion``: print the completion script of a shell."""
    import shtab

    write_output(shtab.complete(build_parser(), shell=options.shell) + "\n")
