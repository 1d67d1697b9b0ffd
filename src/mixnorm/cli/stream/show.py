"""``mixnorm predict`` and ``mixnorm show`` for models that ``mixnorm fit`` did not make."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mixnorm.cli.arguments.parser import STREAM_FORMATS, UsageError
from mixnorm.cli.held_out import compute_error
from mixnorm.cli.screen import Screen, format_error
from mixnorm.cli.stream.running import describe_error
from mixnorm.cli.summary import name_held_out_error, select_plain_parameters
from mixnorm.exceptions import TableError
from mixnorm.tables import RowReader, StreamModel, join_names, pluralize

_ROWS_PER_BLOCK = 10_000
_STRONGEST_SHOWN = 20


@dataclass
class PredictedTable:
    """Columns to write, notes on the table, and the error if the table has its targets."""

    columns: dict[str, Any]
    notes: list[str]
    error: float | None = None
    text: str = ""

    def add_probabilities(self, classes: np.ndarray, chances: np.ndarray) -> None:
        """Add a column for the probabilities of each class."""
        for label, column in zip(classes, chances.T, strict=True):
            self.columns[f"probability {label}"] = column

    def set_error(self, error: float, task: str, rows: int) -> None:
        """Set the error on so many rows, with a sentence about it."""
        shown = f"{name_held_out_error(task)} {format_error(error, task)}"
        self.error = error
        self.text = f"The table has the target: {shown} on {pluralize(rows, 'row')}."


def predict_rows(model: StreamModel, options: argparse.Namespace) -> PredictedTable:
    """Predict for the rows of a file, read as ``mixnorm stream`` reads them."""
    _check_options(model, options)
    with RowReader(
        options.file,
        model.target,
        task=model.task,
        file_format=options.format,
        delimiter=options.delimiter,
        header=options.header,
        drop=model.dropped,
        categories=model.categories,
        numbers=model.numbers,
        known=model.columns,
        needs_target=False,
    ) as reader:
        needed = _list_needed_columns(model)
        _check_columns(reader, model, needed, options.keep)
        encoder = reader.encoder(reader.adapt(model.kinds, reader.first_entries()))
        kept: dict[str, list[Any]] = {name: [] for name in options.keep}
        values, labels, chances = list[Any](), list[Any](), list[np.ndarray]()
        while (rows := reader.take(_ROWS_PER_BLOCK)) is not None:
            if not rows:
                continue
            features = encoder.encode([row.entries for row in rows])
            values += model.estimator.predict(features).tolist()
            labels += [row.label for row in rows]
            for name, entries in kept.items():
                entries += [reader.entry(row, name) for row in rows]
            if options.probabilities:
                chances.append(model.estimator.predict_proba(features))
    encoder.check_readable(len(values))
    found = PredictedTable({**kept, "prediction": values}, _describe_rows(reader, needed))
    if chances and model.classes is not None:
        found.add_probabilities(model.classes, np.concatenate(chances))
    pairs = [pair for pair in zip(values, labels, strict=True) if pair[1] is not None]
    if pairs:
        guess, truth = (np.array(part) for part in zip(*pairs, strict=True))
        found.set_error(compute_error(truth, guess, None, model.task), model.task, len(pairs))
    return found


def _check_options(model: StreamModel, options: argparse.Namespace) -> None:
    """Raise for options that do not apply to a model of ``mixnorm stream``."""
    if options.features is not None:
        raise UsageError(
            "--features does not apply to a model of mixnorm stream, which uses all features"
        )
    if options.probabilities and getattr(model.estimator, "predict_proba", None) is None:
        kind = type(model.estimator).__name__
        raise UsageError(f"--probabilities does not apply to a {kind}, which has none")
    if options.format not in (None, *STREAM_FORMATS):
        raise UsageError(f"--format {options.format} does not apply to a model of mixnorm stream")


def _check_columns(
    reader: RowReader, model: StreamModel, needed: list[str], keep: list[str]
) -> None:
    """Raise if the table lacks a column to keep, or all columns that the model needs."""
    if not reader.columns:
        return
    for name in keep:
        if name not in reader.columns:
            raise TableError(f"{reader.name} has no column {name!r}.")
    if model.columns and not set(reader.columns) & set(needed):
        raise TableError(f"{reader.name} has none of the columns that the model learned from.")


def _list_needed_columns(model: StreamModel) -> list[str]:
    left_out = {model.target, *model.dropped}
    left_out |= {column.name for column in model.kinds if column.kind == "left out"}
    return [name for name in model.columns if name not in left_out]


def _describe_rows(reader: RowReader, needed: list[str]) -> list[str]:
    """Return sentences about columns that are missing and rows that cannot be read."""
    notes = list(reader.notes)
    missing = [repr(name) for name in needed if name not in reader.columns]
    if reader.columns and missing:
        shown = join_names(missing, 5)
        notes.append(f"Not in {reader.name}, so taken as missing in every row: {shown}.")
    notes += reader.describe_bad_rows()
    if reader.unfinished:
        line, reason = reader.unfinished
        notes.append(f"Left out because it is not a whole row: line {line}, the last ({reason}).")
    return notes


def show_stream(model: StreamModel, place: str, size: int, screen: Screen) -> None:
    """Describe a model of ``mixnorm stream``."""
    estimator, facts = model.estimator, {**model.facts, "bytes": size}
    kind = type(estimator).__name__
    classes = None if model.classes is None else [str(label) for label in model.classes]
    screen.say(f"{place}: {kind}, predicts {model.target!r} ({model.task}), learns from streams.")
    if classes is not None:
        screen.say(f"{pluralize(len(classes), 'class', 'classes')}: {join_names(classes, 10)}")
    names = _find_largest(estimator, list(estimator.vocabulary_))
    count = pluralize(int(estimator.n_features_in_), "feature" if names else "column")
    _say_largest(count if names else f"Names are hashed into {count}", names, screen)
    if "error" in facts:
        rows, error = pluralize(estimator.n_rounds_, "row"), describe_error(facts, model.task)
        screen.say(f"{rows}, {error} The file has {size:,} bytes.")
    if "created" in facts:
        screen.say(
            f"Last written {facts['created']} by mixnorm {facts['version']}, after line "
            f"{model.lines} of {model.source}:"
        )
        screen.say(f"  {facts['command']}")
    parameters = estimator.get_params(deep=False)
    about = {"estimator": kind, "parameters": parameters, "classes": classes, "strongest": names}
    screen.print_json({**facts, **about})


def show_other(estimator: BaseEstimator, place: str, size: int, screen: Screen) -> None:
    """Describe an estimator that was saved from Python and has no path."""
    kind, outputs = type(estimator).__name__, {}
    for name in ("tasks", "classes"):
        values = getattr(estimator, f"{name}_", None)
        # A learner of several tasks has a list of classes for each of them.
        if values is not None and "tasks" not in outputs:
            outputs[name] = [str(each) for each in list(values)]
    rounds = getattr(estimator, "n_rounds_", None)
    learns = "" if rounds is None else ", learns from streams"
    screen.say(f"{place}: {kind}, saved from Python{learns}.")
    for name, values in outputs.items():
        screen.say(f"{len(values)} {name}: {join_names(values, 10)}")
    kernels = _list_heaviest_kernels(estimator)
    if kernels:
        screen.say("Kernels with the largest weights: " + ", ".join(kernels))
    n_features = int(estimator.n_features_in_)
    columns = getattr(estimator, "feature_names_in_", range(n_features))
    names = _find_largest(estimator, list(getattr(estimator, "vocabulary_", columns)))
    _say_largest(pluralize(n_features, "feature"), names, screen)
    rows = "The" if rounds is None else f"{pluralize(rounds, 'row')} learned from; the"
    screen.say(f"{rows} file has {size:,} bytes.")
    screen.print_json(
        {
            "estimator": kind,
            **({} if rounds is None else {"rows": rounds}),
            "features": n_features,
            "parameters": select_plain_parameters(estimator),
            **outputs,
            **({"kernels": kernels} if kernels else {}),
            "strongest": names,
            "bytes": size,
        }
    )


def _say_largest(count: str, names: list[str], screen: Screen) -> None:
    """Print the number of features and the names of those with the largest weights."""
    screen.say(f"{count}; those with the largest weights:" if names else f"{count}.")
    if names:
        screen.say("  " + ", ".join(names))


def _list_heaviest_kernels(estimator: BaseEstimator) -> list[str]:
    """Return the names of the kernels with the largest weights, in order of weight."""
    weights = np.asarray(getattr(estimator, "kernel_weights_", []))
    order = np.argsort(-weights, kind="stable")[:_STRONGEST_SHOWN]
    return [estimator.kernel_names_[place] for place in order if weights[place] > 0.0]


def _find_largest(estimator: BaseEstimator, names: list[Any]) -> list[str]:
    """Return the names of the features with the largest weights, in order of weight."""
    weights = getattr(estimator, "coef_", None)
    if not names or weights is None:
        return []
    weights = np.atleast_2d(weights)[:, : len(names)]
    # Only differences between the scores of classes matter.
    if getattr(estimator, "classes_", None) is not None and len(weights) > 1:
        weights = weights - weights.mean(axis=0)
    largest = np.max(np.abs(weights), initial=0.0) or 1.0  # squares might overflow
    sizes = np.linalg.norm(weights / largest, axis=0)
    order = np.argsort(-sizes, kind="stable")[:_STRONGEST_SHOWN]
    return [str(names[place]) for place in order]
