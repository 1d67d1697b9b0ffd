"""``mixnorm stream``: learn from rows as they arrive, ready to stop after any of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mixnorm.cli.arguments.parser import UsageError
from mixnorm.cli.commands import choose_model_path, load_model
from mixnorm.cli.screen import Screen
from mixnorm.cli.signals import Interrupts
from mixnorm.cli.stream.predictions import PredictionFile
from mixnorm.cli.stream.run import StreamRun
from mixnorm.cli.stream.running import Running, describe_error, describe_rise
from mixnorm.tables import RowReader, StreamModel, Task, join_names, pluralize

# Number of rises of the error that the last lines repeat.
_RISES_REPEATED = 3


def stream(options: argparse.Namespace, screen: Screen, command: Sequence[str]) -> None:
    """Learn from a file or a pipe, a row at a time."""
    place = choose_model_path(options, resume=options.resume)
    model = _load_model(place, options) if options.resume else _make_model(options)
    interrupts = Interrupts()
    with interrupts.record():
        model, reader, skipped = _open_reader(model, options, interrupts)
        with reader, PredictionFile(options, skipped) as predictions:
            screen.remark(*_describe_start(model, reader, options, skipped))
            run = StreamRun(model, reader, options, command, place, predictions)
            with Running(screen, run.account, options.every) as running:
                stopped = run.learn(running, interrupts)
            run.finish(stopped=stopped)
    _print_result(run, running, screen, stopped)


def _describe_start(
    model: StreamModel, reader: RowReader, options: argparse.Namespace, skipped: int
) -> list[str]:
    """Return notes about the source before its rows are read."""
    if not options.resume:
        return reader.notes
    if skipped:
        return [f"{reader.name}: skipped {pluralize(skipped, 'line')} that an earlier run read."]
    if model.lines and reader.lines.regular:
        return [f"{reader.name} differs from the earlier file, so all its lines are new."]
    return []


def _load_model(place: Path, options: argparse.Namespace) -> StreamModel:
    words = "that mixnorm stream cannot resume; --resume needs a model of mixnorm stream"
    model: StreamModel = load_model(place, (StreamModel,), words)
    if options.target is not None and options.target != model.target:
        raise UsageError(f"--target {options.target}: the model {place} predicts {model.target!r}")
    return model


def _make_model(options: argparse.Namespace) -> StreamModel:
    """Return a model without any training."""
    from mixnorm import estimators

    learner = options.learner or "mirror"
    names = ("norm", "loss", "learning_rate", "eta0", "radius")
    given = {name: getattr(options, name) for name in names} | {"hash_features": options.hash}
    kinds: dict[str, Any] = {
        "mirror": estimators.MirrorDescentClassifier,
        "perceptron": estimators.GroupPerceptron,
        "regressor": estimators.MirrorDescentRegressor,
    }
    estimator = kinds[learner](
        **{name: value for name, value in given.items() if value is not None},
        fit_intercept=True,
        scale=not options.no_scale,
        average=options.average,
    )
    task: Task = "regression" if learner == "regressor" else "classification"
    return StreamModel(options.target or "", task, estimator)


def _open_reader(
    model: StreamModel, options: argparse.Namespace, interrupts: Interrupts
) -> tuple[StreamModel, RowReader, int]:
    """Return the model, a reader of the new rows, and the number of lines before them.

    If the last line was half a row and is longer now, the model is the one before that line.
    """

    def open_source() -> RowReader:
        return RowReader(
            options.file,
            model.target or None,
            task=model.task,
            file_format=options.format,
            delimiter=options.delimiter,
            drop=options.drop or model.dropped,
            categories=options.category or model.categories,
            numbers=options.number or model.numbers,
            known=model.columns if options.resume else None,
            strict=options.strict,
            waiting=interrupts.raise_at_once,
        )

    reader = open_source()
    if not model.target:
        reader.close()
        names = join_names(reader.columns, 12)
        has = f"; {reader.name} has the columns {names}" if names else ""
        raise UsageError(f"--target is missing{has}")
    if not options.resume or not model.lines or not reader.lines.regular:
        return model, reader, 0
    for known in (model, model.before):
        if known is None:
            continue
        lines = reader.lines
        if lines.taken <= known.lines and lines.skip(known.lines, known.digest):
            if not (lines.unfinished and not lines.ahead):  # the last line is complete by now
                known = replace(known, before=None)
            return known, reader, known.lines
        reader.close()
        reader = open_source()
    return model, reader, 0


def _print_result(run: StreamRun, running: Running, screen: Screen, stopped: bool) -> None:
    """Print the error, the notes, and the files."""
    facts = run.facts()
    screen.remark(*_describe_rows(run))
    rises = run.account.rises[-_RISES_REPEATED:]
    screen.say(
        _describe_learning(run, facts), *(describe_rise(rise, run.account) for rise in rises)
    )
    kinds = (
        "" if facts["classes"] is None else f", {pluralize(facts['classes'], 'class', 'classes')}"
    )
    screen.say(f"{pluralize(facts['features'], 'feature')}{kinds}.")
    if run.predictions.wanted:
        screen.say(f"Predictions written to {run.options.predictions}.")
    screen.say(f"Model written to {run.place}.")
    if stopped:
        screen.say(f"Stopped after line {facts['lines']}; --resume continues from there.")
    written = {"model": str(run.place), "predictions": run.options.predictions}
    screen.print_json({**facts, **written, "course": running.lines, "interrupted": stopped})


def _describe_learning(run: StreamRun, facts: dict[str, Any]) -> str:
    """Return the error in a sentence, beside that of guessing without features."""
    rows, task = pluralize(facts["rows"], "row"), facts["task"]
    if run.first:
        rows += f" ({facts['new_rows']} of them new)"
    wrong = f"{pluralize(facts['mistakes'], 'mistake')}, " if task == "classification" else ""
    text = f"{rows}: {wrong}{describe_error(facts, task)}"
    if facts["guess_error"] <= facts["error"]:
        text += " The model does no better."
    return text


def _describe_rows(run: StreamRun) -> list[str]:
    notes, reader = run.encoder.remarks(), run.reader
    if run.unlabelled:
        rows = pluralize(run.unlabelled, "row")
        notes.append(f"Predicted but not learned from, without a target: {rows}.")
    notes += reader.describe_bad_rows()
    if reader.unfinished:
        line, reason = reader.unfinished
        notes.append(
            f"Line {line}, the last of {reader.name}, has no line break and is not a whole row "
            f"({reason}), so it was skipped; --resume reads it again."
        )
    return notes
