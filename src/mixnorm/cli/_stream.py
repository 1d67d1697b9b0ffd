"""``mixnorm stream``: learn from rows as they come, and be ready to stop at any of them."""

from __future__ import annotations

import argparse
import csv
import shlex
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mixnorm import __version__
from mixnorm.cli._commands import model_place
from mixnorm.cli._parser import Usage
from mixnorm.cli._running import Running, error_word, is_begun, mean_cost, running_cost
from mixnorm.cli._screen import Screen, counted, error_text
from mixnorm.cli._signals import Interrupts
from mixnorm.exceptions import ModelFileError, TableError
from mixnorm.storage import load, save
from mixnorm.tables import Row, RowReader, StreamModel, Task

# Seconds of learning after which requests to end are looked at.
_PAUSE = 0.1
# More classes than this, and than half of the rows, are no classes.
_MOST_LABELS = 30
# Rows of JSON lines of which one must have the target.
_PATIENCE = 1000


def stream(options: argparse.Namespace, screen: Screen, command: Sequence[str]) -> None:
    """Learn from a file or a pipe, a row at a time."""
    place = _model_to_resume(options) if options.resume else model_place(options)
    model = _resumed(place, options) if options.resume else _fresh(options)
    interrupts = Interrupts()
    with interrupts.noted():
        reader, skipped = _open(model, options, interrupts)
        with reader, _Predictions(options, skipped) as predictions:
            if not options.resume:
                for note in reader.notes:
                    screen.remark(note)
            elif skipped:
                screen.remark(
                    f"{reader.name}: {counted(skipped, 'line')} were learned from before."
                )
            elif model.lines and reader.lines.regular:
                screen.remark(f"{reader.name} is not what was learned from before: all is new.")
            run = _Run(model, reader, options, command, place, predictions)
            with Running(screen, model.estimator, options.every) as running:
                stopped = run.learn(running, interrupts)
            run.finish(stopped=stopped)
    _print(run, screen, stopped)


def _model_to_resume(options: argparse.Namespace) -> Path:
    place = Path(options.model or f"{Path(options.file).name.split('.')[0] or 'model'}.mixnorm")
    if not place.exists():
        raise Usage(f"there is no {place} to go on with; leave --resume out to begin")
    return place


def _resumed(place: Path, options: argparse.Namespace) -> StreamModel:
    model = load(place)
    if not isinstance(model, StreamModel):
        raise ModelFileError(
            f"{place} holds a {type(model).__name__}, which mixnorm stream cannot go on with; "
            "--resume takes what mixnorm stream wrote."
        )
    if options.target is not None and options.target != model.target:
        raise Usage(f"--target {options.target}: the model {place} predicts {model.target!r}")
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
) -> tuple[RowReader, int]:
    """Return the reader of the rows that are new, and the number of lines before them."""

    def opened() -> RowReader:
        return RowReader(
            options.file,
            model.target or None,
            task=model.task,
            file_format=options.format,
            delimiter=options.delimiter,
            drop=options.drop or model.dropped,
            categories=options.category or model.categories,
            known=model.columns if options.resume else None,
            strict=options.strict,
            waiting=interrupts.waiting,
        )

    reader = opened()
    if not model.target:
        names = ", ".join(reader.columns[:12])
        reader.close()
        raise Usage(
            "--target is needed" + (f"; {reader.name} has the columns {names}" * bool(names))
        )
    if not options.resume or not model.lines or not reader.lines.regular:
        return reader, 0
    if reader.lines.taken <= model.lines and reader.lines.skip(model.lines, model.digest):
        return reader, model.lines
    reader.close()
    return opened(), 0


class _Run:
    """Learns from the rows of a reader, and keeps the state."""

    def __init__(
        self,
        model: StreamModel,
        reader: RowReader,
        options: argparse.Namespace,
        command: Sequence[str],
        place: Path,
        predictions: _Predictions,
    ) -> None:
        self.model, self.reader, self.options, self.command = model, reader, options, command
        self.place, self.predictions, self.estimator = place, predictions, model.estimator
        self.began = time.monotonic()
        self.fresh = not is_begun(self.estimator)
        self.first = 0 if self.fresh else self.estimator.n_rounds_
        self.rows, self.unlabelled = self.first, 0
        self.hashed = self.estimator.hash_features is not None
        self.labels = set() if self.fresh else set(getattr(self.estimator, "classes_", ()))
        self.values: set[Any] = set()  # two of the targets, where they are numbers

    def learn(self, running: Running, interrupts: Interrupts) -> bool:
        """Learn from all rows, and return whether that was ended by a request."""
        most, saved = 1, self.rows
        try:
            while not interrupts.came:
                checkpoint = self.options.checkpoint - (self.rows - saved)
                rows = self.reader.take(min(most, checkpoint, running.next - self.rows))
                if rows is None:
                    return False
                began = time.monotonic()
                self._learn(rows)
                spent = time.monotonic() - began
                most = max(1, min(2 * most, int(len(rows) * _PAUSE / max(spent, 1e-6)) + 1))
                if self.rows:
                    running.update(self.rows)
                if self.rows - saved >= self.options.checkpoint:
                    self.save()
                    saved = self.rows
        except KeyboardInterrupt:  # while it waited for rows
            pass
        except (BrokenPipeError, TableError):
            if self.rows > saved and (self.reader.stopped or self.predictions.broken):
                self.save()
            raise
        return True

    def _learn(self, rows: list[Row]) -> None:
        """Learn from rows.

        All those at once that bring nothing new: a new name or class makes the weights larger,
        and that must happen at its row, however many rows there are with it.
        """
        alone = self.predictions.wanted
        together: list[Row] = []
        for row in rows:
            if alone:
                self.predictions.write(row, self._predicted(row))
            if row.label is None:
                self.unlabelled += 1
            elif alone or self._is_news(row):
                self._fit(together)
                self._fit([row])
                together = []
            else:
                together.append(row)
        self._fit(together)
        self.predictions.flush()
        if not self.reader.has_target and self.fresh and self.unlabelled >= _PATIENCE:
            self.reader.check_target()

    def _is_news(self, row: Row) -> bool:
        if self.model.task == "classification" and row.label not in self.labels:
            return True
        if self.hashed:
            return not self.rows
        return not row.features.keys() <= getattr(self.estimator, "vocabulary_", {}).keys()

    def _fit(self, rows: list[Row]) -> None:
        if not rows:
            return
        labels = [row.label for row in rows]
        if self.model.task == "classification":
            self.labels.update(labels)
            self._check_labels(len(rows))
        elif len(self.values) < 2:
            self.values.update(labels[:2])
        self.estimator.partial_fit([row.features for row in rows], labels)
        self.rows += len(rows)

    def _check_labels(self, more: int) -> None:
        rows, count = self.rows + more, len(self.labels)
        if count > max(_MOST_LABELS, rows // 2):
            raise TableError(
                f"The target {self.model.target!r} has {count} different labels in {rows} rows, "
                "too many to learn. Choose another column, or --learner regressor for numbers."
            )

    def _predicted(self, row: Row) -> Any:
        if not is_begun(self.estimator):
            return ""
        return self.estimator.predict([row.features])[0].item()

    def finish(self, *, stopped: bool) -> None:
        """Keep what was learned, or say why there is nothing."""
        if not self.rows:
            if stopped:
                raise KeyboardInterrupt
            raise TableError(self._why_nothing())
        if self.fresh and not stopped:
            values = self.labels or self.values
            if len(values) < 2:
                kind = "class" if self.model.task == "classification" else "value"
                raise TableError(
                    f"The target {self.model.target!r} has only one {kind}, {next(iter(values))}: "
                    "there is nothing to tell apart."
                )
        self.save()

    def _why_nothing(self) -> str:
        reader = self.reader
        self.reader.check_target()
        if self.unlabelled:
            return f"The target {self.model.target!r} is missing in every row."
        if reader.bad:
            line, reason = reader.bad[0]
            return f"{reader.name} has no row that can be read; line {line} has {reason}."
        return f"{reader.name} has a header but no rows."

    def save(self) -> None:
        """Write the model file; the old one is there until the new one is whole."""
        reader, model = self.reader, self.model
        save(
            StreamModel(
                reader.target or model.target,
                model.task,
                self.estimator,
                reader.columns or model.columns,
                tuple(self.options.drop) or model.dropped,
                tuple(self.options.category) or model.categories,
                reader.name,
                reader.lines.taken,
                reader.lines.digest,
                self.facts(),
            ),
            self.place,
        )

    def facts(self) -> dict[str, Any]:
        """Return what was learned from and what was measured, as plain values."""
        estimator, reader = self.estimator, self.reader
        labels = self.model.task == "classification"
        return {
            "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "command": shlex.join(["mixnorm", *self.command]),
            "version": __version__,
            "table": reader.name,
            "target": reader.target or self.model.target,
            "task": self.model.task,
            "learner": type(estimator).__name__,
            "rows": self.rows,
            "new_rows": self.rows - self.first,
            "lines": reader.lines.taken,
            "mistakes": estimator.mistakes_ if labels else None,
            "error_name": error_word(estimator),
            "error": mean_cost(error_word(estimator), self.rows, running_cost(estimator)),
            "rows_without_target": self.unlabelled,
            "rows_left_out": reader.n_bad,
            "first_left_out": [list(bad) for bad in reader.bad],
            "features": int(estimator.n_features_in_),
            "classes": len(self.labels) if labels else None,
            "seconds": time.monotonic() - self.began,
        }


class _Predictions:
    """The table of what was predicted before each row was learned from, if it is wanted."""

    _NAMES = ("line", "prediction", "target")

    def __init__(self, options: argparse.Namespace, skipped: int) -> None:
        self.wanted, self.broken = options.predictions is not None, False
        if not self.wanted:
            return
        place = Path(options.predictions)
        again = options.resume and place.is_file() and place.stat().st_size > 0
        if again and skipped:
            _cut(place, skipped)
        self._file = place.open("a" if again else "w", newline="", encoding="utf-8")
        self._writer = csv.writer(self._file, lineterminator="\n")
        if not again:
            self._writer.writerow(self._NAMES)

    def __enter__(self) -> _Predictions:
        return self

    def __exit__(self, *error: object) -> None:
        if self.wanted:
            self._file.close()

    def write(self, row: Row, predicted: Any) -> None:
        """Add a row."""
        self._writer.writerow((row.line, predicted, "" if row.label is None else row.label))

    def flush(self) -> None:
        """Let readers see what was added."""
        if self.wanted:
            try:
                self._file.flush()
            except BrokenPipeError:
                self.broken = True
                raise


def _cut(place: Path, lines: int) -> None:
    """Take from a table of predictions those of lines that will be learned from again."""
    with place.open("r+b") as file:
        end = len(file.readline())
        for row in file:
            number = row.split(b",", 1)[0]
            if number.isdigit() and int(number) > lines:
                break
            end += len(row)
        file.truncate(end)


def _print(run: _Run, screen: Screen, stopped: bool) -> None:
    """Print what was learned, and what was left out."""
    told = run.facts()
    task = told["task"]
    for note in _notes(run):
        screen.remark(note)
    rows, error = counted(told["rows"], "row"), error_text(told["error"], task)
    if run.first:
        rows += f" ({told['new_rows']} of them now)"
    if task == "classification":
        screen.say(
            f"{rows}: {counted(told['mistakes'], 'mistake')}, error rate {error}, each row "
            "predicted before it was learned from."
        )
    else:
        screen.say(
            f"{rows}: {told['error_name']} {error}, each row predicted before it was learned from."
        )
    kinds = "" if told["classes"] is None else f", {counted(told['classes'], 'class', 'classes')}"
    screen.say(f"{counted(told['features'], 'feature')}{kinds}.")
    if run.predictions.wanted:
        screen.say(f"Predictions written to {run.options.predictions}.")
    screen.say(f"Model written to {run.place}.")
    if stopped:
        screen.say(f"Ended after line {told['lines']}; --resume goes on from there.")
    written = {"model": str(run.place), "predictions": run.options.predictions}
    screen.document({**told, **written, "interrupted": stopped})


def _notes(run: _Run) -> list[str]:
    notes, reader = [], run.reader
    if run.unlabelled:
        rows = counted(run.unlabelled, "row")
        notes.append(f"Without a target, hence predicted but not learned from: {rows}.")
    if reader.n_bad:
        lines = ", ".join(str(bad.line) for bad in reader.bad)
        more = ", ..." if reader.n_bad > len(reader.bad) else ""
        notes.append(
            f"Left out, as they could not be read: {counted(reader.n_bad, 'row')} (lines {lines}"
            f"{more}; line {reader.bad[0].line}: {reader.bad[0].reason})."
        )
    return notes
