"""``mixnorm stream``: learn from rows as they come, and be ready to stop at any of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mixnorm.cli.arguments.parser import UsageError
from mixnorm.cli.commands import choose_model_path
from mixnorm.cli.screen import Screen, format_error
from mixnorm.cli.signals import Interrupts
from mixnorm.cli.stream.predictions import PredictionFile
from mixnorm.cli.stream.run import StreamRun
from mixnorm.cli.stream.running import Running, describe_rise
from mixnorm.exceptions import ModelFileError
from mixnorm.storage import load
from mixnorm.tables import RowReader, StreamModel, Task, pluralize

# Rises of the error that the last lines repeat.
_MOST_RISES = 3


def stream(options: argparse.Namespace, screen: Screen, command: Sequence[str]) -> None:
    """Learn from a file or a pipe, a row at a time."""
    place = _model_to_resume(options) if options.resume else choose_model_path(options)
    model = _resumed(place, options) if options.resume else _fresh(options)
    interrupts = Interrupts()
    with interrupts.record():
        model, reader, skipped = _open(model, options, interrupts)
        with reader, PredictionFile(options, skipped) as predictions:
            for note in _opening_notes(model, reader, options, skipped):
                screen.remark(note)
            run = StreamRun(model, reader, options, command, place, predictions)
            with Running(screen, run.account, options.every) as running:
                stopped = run.learn(running, interrupts)
            run.finish(stopped=stopped)
    _print(run, running, screen, stopped)


def _opening_notes(
    model: StreamModel, reader: RowReader, options: argparse.Namespace, skipped: int
) -> list[str]:
    """Return what is to be said about the rows before they are read."""
    if not options.resume:
        return reader.notes
    if skipped:
        verb = "was" if skipped == 1 else "were"
        return [f"{reader.name}: {pluralize(skipped, 'line')} {verb} learned from before."]
    if model.lines and reader.lines.regular:
        return [f"{reader.name} is not what was learned from before: all is new."]
    return []


def _model_to_resume(options: argparse.Namespace) -> Path:
    place = Path(options.model or f"{Path(options.file).name.split('.')[0] or 'model'}.mixnorm")
    if not place.exists():
        raise UsageError(f"there is no {place} to go on with; leave --resume out to begin")
    return place


def _resumed(place: Path, options: argparse.Namespace) -> StreamModel:
    model = load(place)
    if not isinstance(model, StreamModel):
        raise ModelFileError(
            f"{place} holds a {type(model).__name__}, which mixnorm stream cannot go on with; "
            "--resume takes what mixnorm stream wrote."
        )
    if options.target is not None and options.target != model.target:
        raise UsageError(f"--target {options.target}: the model {place} predicts {model.target!r}")
    return model


def _fresh(options: argparse.Namespace) -> StreamModel:
    """Return a model that has learned nothing."""
    from mixnorm import estimators

    learner = options.learner or "mirror"
    given = {
        "norm": options.norm,
        "loss": options.loss,
        "learning_rate": options.learning_rate,
        "eta0": options.eta0,
        "radius": options.radius,
        "hash_features": options.hash,
    }
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


def _open(
    model: StreamModel, options: argparse.Namespace, interrupts: Interrupts
) -> tuple[StreamModel, RowReader, int]:
    """Return the model, the reader of the rows that are new, and the number of lines before them.

    Where the last line has changed since it was learned from, the model is the one before that
    line, which was half a row.
    """

    def opened() -> RowReader:
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

    reader = opened()
    if not model.target:
        names = ", ".join(reader.columns[:12])
        reader.close()
        raise UsageError(
            "--target is needed" + (f"; {reader.name} has the columns {names}" * bool(names))
        )
    if not options.resume or not model.lines or not reader.lines.regular:
        return model, reader, 0
    for known in (model, model.before):
        if known is None:
            continue
        lines = reader.lines
        if lines.taken <= known.lines and lines.skip(known.lines, known.digest):
            if not (lines.unfinished and not lines.ahead):  # the last line is a whole one by now
                known = replace(known, before=None)
            return known, reader, known.lines
        reader.close()
        reader = opened()
    return model, reader, 0


def _print(run: StreamRun, running: Running, screen: Screen, stopped: bool) -> None:
    """Print what was learned, and what was left out."""
    told = run.facts()
    for note in _notes(run):
        screen.remark(note)
    screen.say(_summary(run, told))
    for rise in run.account.rises[-_MOST_RISES:]:
        screen.say(describe_rise(rise, run.account))
    kinds = "" if told["classes"] is None else f", {pluralize(told['classes'], 'class', 'classes')}"
    screen.say(f"{pluralize(told['features'], 'feature')}{kinds}.")
    if run.predictions.wanted:
        screen.say(f"Predictions written to {run.options.predictions}.")
    screen.say(f"Model written to {run.place}.")
    if stopped:
        screen.say(f"Ended after line {told['lines']}; --resume goes on from there.")
    written = {"model": str(run.place), "predictions": run.options.predictions}
    screen.print_json({**told, **written, "course": running.lines, "interrupted": stopped})


def _summary(run: StreamRun, told: dict[str, Any]) -> str:
    """Return the error in a sentence, beside that of guessing without features."""
    rows, task = pluralize(told["rows"], "row"), told["task"]
    if run.first:
        rows += f" ({told['new_rows']} of them now)"
    wrong = f"{pluralize(told['mistakes'], 'mistake')}, " if task == "classification" else ""
    error, guess = (format_error(told[name], task) for name in ("error", "guess_error"))
    said = (
        f"{rows}: {wrong}{told['error_name']} {error}, each row predicted before it was learned "
        f"from. Guessing the {told['guess']}: {guess}."
    )
    if told["guess_error"] <= told["error"]:
        said += " The model does no better."
    return said


def _notes(run: StreamRun) -> list[str]:
    notes, reader = run.encoder.remarks(), run.reader
    if run.unlabelled:
        rows = pluralize(run.unlabelled, "row")
        notes.append(f"Without a target, hence predicted but not learned from: {rows}.")
    if reader.n_bad:
        shown = ", ".join(str(bad.line) for bad in reader.bad)
        more = ", ..." if reader.n_bad > len(reader.bad) else ""
        lines = f"lines {shown}{more}; " if reader.n_bad > 1 else ""
        notes.append(
            f"Left out, as they could not be read: {pluralize(reader.n_bad, 'row')} ({lines}"
            f"line {reader.bad[0].line}: {reader.bad[0].reason})."
        )
    if reader.unfinished:
        line, reason = reader.unfinished
        notes.append(
            f"Line {line}, the last of {reader.name}, has no line break and is not a whole row "
            f"({reason}). It is not learned from; --resume reads it again."
        )
    return notes
