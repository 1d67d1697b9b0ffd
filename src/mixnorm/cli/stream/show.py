"""What ``mixnorm predict`` and ``mixnorm show`` do with a model of ``mixnorm stream``."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixnorm.cli.arguments.parser import STREAM_FORMATS, UsageError
from mixnorm.cli.held_out import mean_error
from mixnorm.cli.screen import Screen, format_error
from mixnorm.exceptions import TableError
from mixnorm.tables import Row, RowReader, StreamModel, pluralize

_BLOCK = 10_000
_MOST_SHOWN = 20


@dataclass
class RowPredictions:
    """What a model says about rows: columns to write, an error if there are targets, remarks."""

    columns: dict[str, Any]
    error: float | None = None
    text: str = ""
    notes: list[str] = field(default_factory=list)


def predict_rows(model: StreamModel, options: argparse.Namespace) -> RowPredictions:
    """Predict for the rows of a file, read as ``mixnorm stream`` reads them."""
    if options.features is not None:
        raise UsageError(
            "--features does not apply to a model of mixnorm stream, which uses them all"
        )
    if options.probabilities and getattr(model.estimator, "predict_proba", None) is None:
        raise UsageError(f"--probabilities: a {type(model.estimator).__name__} knows none")
    if options.format not in (None, *STREAM_FORMATS):
        raise UsageError(f"--format {options.format} is not for a model of mixnorm stream")
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
        found = _Rows(model, reader, options)
        while (rows := reader.take(_BLOCK)) is not None:
            found.add(rows)
    return found.result()


class _Rows:
    """Gathers predictions."""

    def __init__(self, model: StreamModel, reader: RowReader, options: argparse.Namespace) -> None:
        self.model, self.reader = model, reader
        self.encoder = reader.encoder(reader.adapt(model.kinds, reader.first_entries()))
        self.kept: dict[str, list[str]] = {name: [] for name in options.keep}
        self.probable = options.probabilities
        self.values: list[Any] = []
        self.chances: list[np.ndarray] = []
        self.labels: list[Any] = []
        for name in options.keep:
            if name == "prediction" or name.startswith("probability "):
                raise UsageError(f"--keep {name}: the output has a column of that name itself")
            if reader.columns and name not in reader.columns:
                raise TableError(f"{reader.name} has no column {name!r}.")
        if reader.columns and model.columns and not set(reader.columns) & set(self._needed()):
            raise TableError(f"{reader.name} has none of the columns that the model learned from.")

    def _needed(self) -> list[str]:
        left_out = {self.model.target, *self.model.dropped}
        left_out |= {column.name for column in self.model.kinds if column.kind == "left out"}
        return [name for name in self.model.columns if name not in left_out]

    def add(self, rows: list[Row]) -> None:
        """Predict for some rows."""
        if not rows:
            return
        features = self.encoder.encode([row.entries for row in rows])
        self.values += self.model.estimator.predict(features).tolist()
        self.labels += [row.label for row in rows]
        for name, entries in self.kept.items():
            entries += [self.reader.entry(row, name) for row in rows]
        if self.probable:
            self.chances.append(self.model.estimator.predict_proba(features))

    def result(self) -> RowPredictions:
        """Return all that was gathered; raise if most of a column cannot be read."""
        self.encoder.check_readable(len(self.values))
        columns: dict[str, Any] = {**self.kept, "prediction": self.values}
        if self.probable and self.chances and self.model.classes is not None:
            for label, chances in zip(
                self.model.classes, np.concatenate(self.chances).T, strict=True
            ):
                columns[f"probability {label}"] = chances
        error, text = self._measured()
        return RowPredictions(columns, error, text, self._notes())

    def _measured(self) -> tuple[float | None, str]:
        pairs = [
            (value, label)
            for value, label in zip(self.values, self.labels, strict=True)
            if label is not None
        ]
        if not pairs:
            return None, ""
        if self.model.task == "classification":
            error, name = float(np.mean([value != label for value, label in pairs])), "error rate"
        else:
            guess, truth = np.array(pairs, dtype=np.float64).T
            error, name = mean_error(truth, guess, None, "regression"), "RMSE"
        shown = format_error(error, self.model.task)
        return error, f"The table has the target: {name} {shown} on {pluralize(len(pairs), 'row')}."

    def _notes(self) -> list[str]:
        notes, reader = list(self.reader.notes), self.reader
        missing = [name for name in self._needed() if name not in reader.columns]
        if reader.columns and missing:
            shown = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
            notes.append(f"Not in {reader.name}, hence taken as missing in every row: {shown}.")
        if reader.n_bad:
            first = reader.bad[0]
            notes.append(
                f"Left out, as they could not be read: {pluralize(reader.n_bad, 'row')} "
                f"(line {first.line}: {first.reason})."
            )
        if reader.unfinished:
            line, reason = reader.unfinished
            notes.append(f"Left out, as it is not a whole row: line {line}, the last ({reason}).")
        return notes


def show_stream(model: StreamModel, place: str, size: int, screen: Screen) -> None:
    """Say what a model of ``mixnorm stream`` is."""
    estimator, facts = model.estimator, {**model.facts, "bytes": size}
    kind = type(estimator).__name__
    classes = None if model.classes is None else [str(label) for label in model.classes]
    screen.say(f"{place}: {kind}, predicts {model.target!r} ({model.task}), learns from streams.")
    if classes is not None:
        screen.say(f"{pluralize(len(classes), 'class', 'classes')}: {_first(classes)}")
    names = _largest(estimator, list(estimator.vocabulary_))
    count = pluralize(int(estimator.n_features_in_), "feature" if names else "column")
    _say_largest(count if names else f"Names are hashed into {count}", names, screen)
    if "error" in facts:
        guess = ""
        if "guess_error" in facts:
            error = format_error(facts["guess_error"], model.task)
            guess = f" Guessing the {facts['guess']}: {error}."
        screen.say(
            f"{pluralize(estimator.n_rounds_, 'row')}, {facts['error_name']} "
            f"{format_error(facts['error'], model.task)}, each row predicted before it was learned "
            f"from.{guess} The file has {size:,} bytes."
        )
    if "created" in facts:
        screen.say(
            f"Last written {facts['created']} by mixnorm {facts['version']}, after line "
            f"{model.lines} of {model.source}:"
        )
        screen.say(f"  {facts['command']}")
    parameters = estimator.get_params(deep=False)
    about = {"estimator": kind, "parameters": parameters, "classes": classes, "strongest": names}
    screen.print_json({**facts, **about})


def show_other(estimator: Any, place: str, size: int, screen: Screen) -> None:
    """Say what an estimator saved from Python is, which has no path."""
    kind, outputs = type(estimator).__name__, {}
    for name in ("classes", "tasks"):
        values = getattr(estimator, f"{name}_", None)
        if values is not None:
            outputs[name] = [str(each) for each in values.tolist()]
    rounds = getattr(estimator, "n_rounds_", None)
    learns = "" if rounds is None else ", learns from streams"
    screen.say(f"{place}: {kind}, saved from Python{learns}.")
    for name, values in outputs.items():
        screen.say(f"{len(values)} {name}: {_first(values)}")
    kernels = _heaviest_kernels(estimator)
    if kernels:
        screen.say("Kernels with the largest weights: " + ", ".join(kernels))
    n_features = int(estimator.n_features_in_)
    columns = getattr(estimator, "feature_names_in_", range(n_features))
    names = _largest(estimator, list(getattr(estimator, "vocabulary_", columns)))
    _say_largest(pluralize(n_features, "feature"), names, screen)
    rows = "The" if rounds is None else f"{pluralize(rounds, 'row')} learned from; the"
    screen.say(f"{rows} file has {size:,} bytes.")
    plain = (str, int, float, bool, type(None))
    parameters = estimator.get_params(deep=False)
    screen.print_json(
        {
            "estimator": kind,
            **({} if rounds is None else {"rows": rounds}),
            "features": n_features,
            "parameters": {
                key: part for key, part in parameters.items() if isinstance(part, plain)
            },
            **outputs,
            **({"kernels": kernels} if kernels else {}),
            "strongest": names,
            "bytes": size,
        }
    )


def _first(values: list[str]) -> str:
    """Return the first ten values in a line."""
    return ", ".join(values[:10]) + (", ..." if len(values) > 10 else "")


def _say_largest(count: str, names: list[str], screen: Screen) -> None:
    """Say how many features there are, and which have the largest weights."""
    screen.say(f"{count}; those with the largest weights:" if names else f"{count}.")
    if names:
        screen.say("  " + ", ".join(names))


def _heaviest_kernels(estimator: Any) -> list[str]:
    """Return the names of the kernels with the largest weights, in order; none if it has none."""
    weights = np.asarray(getattr(estimator, "kernel_weights_", []))
    order = np.argsort(-weights, kind="stable")[:_MOST_SHOWN]
    return [estimator.kernel_names_[place] for place in order if weights[place] > 0.0]


def _largest(estimator: Any, names: list[Any]) -> list[str]:
    """Return those of the names that have the largest weights, in order."""
    weights = getattr(estimator, "coef_", None)
    if not names or weights is None:
        return []
    weights = np.atleast_2d(weights)[:, : len(names)]
    if (
        getattr(estimator, "classes_", None) is not None and len(weights) > 1
    ):  # scores count relative to others
        weights = weights - weights.mean(axis=0)
    largest = np.max(np.abs(weights), initial=0.0) or 1.0  # whose square may be infinite
    sizes = np.linalg.norm(weights / largest, axis=0)
    order = np.argsort(-sizes, kind="stable")[:_MOST_SHOWN]
    return [str(names[place]) for place in order]
