"""Learning from the rows of a stream: kinds of columns, errors, and the model file."""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from mixnorm.cli.data import check_values_differ
from mixnorm.cli.screen import describe_command
from mixnorm.cli.signals import Interrupts
from mixnorm.cli.stream.account import StreamAccount, has_started, read_running_cost
from mixnorm.cli.stream.predictions import PredictionFile
from mixnorm.cli.stream.running import Running
from mixnorm.exceptions import TableError
from mixnorm.storage import save
from mixnorm.tables import Features, Row, RowReader, StreamModel, feature_names

# Seconds of learning between two checks for requests to stop.
_SECONDS_PER_CHECK = 0.1
# A target with more labels than this, and more than half the rows, is refused.
_MOST_STREAM_LABELS = 30
# New rows after which a column with mostly unreadable entries is refused.
_ROWS_BEFORE_CHECK = 100
# Rows of JSON lines after which a target that never occurred is refused.
_ROWS_BEFORE_TARGET = 1000


class StreamRun:
    """A run that learns from the rows of a reader, and its state.

    Parameters
    ----------
    model : StreamModel
        The model to start from.
    reader : RowReader
        The rows.
    options, command : Namespace, sequence of str
        The options, and the words of the command line.
    place : Path
        The model file.
    predictions : PredictionFile
        The file of predictions.
    """

    def __init__(
        self,
        model: StreamModel,
        reader: RowReader,
        options: argparse.Namespace,
        command: Sequence[str],
        place: Path,
        predictions: PredictionFile,
    ) -> None:
        self.model, self.reader, self.options, self.command = model, reader, options, command
        self.place, self.predictions, self.estimator = place, predictions, model.estimator
        self.began = time.monotonic()
        self.fresh = not has_started(self.estimator)
        self.account = StreamAccount(self.estimator, model.account)
        self.first, self.unlabelled = self.account.rows, 0
        self.hashed = self.estimator.hash_features is not None
        self.labels = set() if self.fresh else set(getattr(self.estimator, "classes_", ()))
        self.values: set[Any] = set()  # two different targets, if they are numbers
        self.kinds = reader.adapt(model.kinds, reader.first_entries())
        self.encoder = reader.encoder(self.kinds)
        self.before = model.before
        # The rows from which kinds are decided. Files of older versions do not have them.
        self.kept: list[Any] = list(model.first_rows)
        self.deciding = len(self.kept) == self.first < RowReader.decided_at[-1]
        # If columns or the style of numbers have changed, these rows do not fit those to come.
        if self.first and (reader.columns != model.columns or self.kinds != model.kinds):
            self.kept, self.deciding = [], False
        self.checked = self.fresh

    @property
    def rows(self) -> int:
        """Number of rows learned from."""
        return self.account.rows

    def learn(self, running: Running, interrupts: Interrupts) -> bool:
        """Learn from all rows; return whether a request to stop ended this."""
        most, saved = 1, self.rows
        try:
            while not interrupts.requested:
                checkpoint = self.options.checkpoint - (self.rows - saved)
                stops = (running.next, self.account.next, self._next_decision())
                rows = self.reader.take(min(most, checkpoint, min(stops) - self.rows))
                if rows is None:
                    return False
                began = time.monotonic()
                self._learn(rows)
                self._check_readable(_ROWS_BEFORE_CHECK)
                spent = time.monotonic() - began
                most = min(2 * most, int(len(rows) * _SECONDS_PER_CHECK / max(spent, 1e-6)) + 1)
                if self.rows:
                    running.print_due()
                if self.rows - saved >= self.options.checkpoint:
                    self.save()
                    saved = self.rows
        except KeyboardInterrupt:  # raised only while waiting for rows
            pass
        except (BrokenPipeError, TableError):
            if self.rows > saved and (self.reader.stopped or self.predictions.broken):
                self.save()
            raise
        return True

    def _check_readable(self, least: int = 0) -> None:
        """Raise after enough new rows if a column of the resumed model is mostly unreadable."""
        new = self.rows - self.first + self.unlabelled
        if not self.checked and new >= least:
            self.checked = True
            self.encoder.check_readable(new)

    # Kinds of columns.

    def _next_decision(self) -> int:
        """Return the number of rows at the next decision on kinds; a far one if all is decided."""
        if not self.deciding:
            return self.rows + int(self.options.checkpoint)
        return next(rows for rows in RowReader.decided_at if rows > self.rows)

    def _learn(self, rows: list[Row]) -> None:
        """Learn from rows; before the last of them, decide on kinds if that is due."""
        self._note_last()
        if self.deciding:
            self.kept += [[row.entries, row.label] for row in rows if row.label is not None]
            if len(self.kept) > self.rows and len(self.kept) in RowReader.decided_at:
                self._learn_as_decided(rows[:-1])
                self._decide()
                rows = rows[-1:]
        self._learn_as_decided(rows)
        self.predictions.flush()
        if not self.reader.has_target and self.fresh and self.unlabelled >= _ROWS_BEFORE_TARGET:
            self.reader.check_target()

    def _decide(self) -> None:
        """Decide the kinds of columns from all rows so far; if they change, learn anew.

        The state after a row thus depends on the rows up to it, not on how many came at once.
        Earlier errors still count, because the rows were predicted with the earlier kinds.
        """
        entries = [entries for entries, _ in self.kept]
        kinds = self.reader.decide(entries, earlier=self.kinds, keep_keys=self.hashed)
        if kinds != self.kinds:
            from sklearn.base import clone

            self.kinds, self.encoder = kinds, self.reader.encoder(kinds)
            self.estimator = clone(self.estimator)
            again = self.kept[:-1]
            features = self.encoder.encode([entries for entries, _ in again])
            for row, (_, label) in zip(features, again, strict=True):
                self._partial_fit([row], [label])
        if len(self.kept) == RowReader.decided_at[-1]:
            self.kept, self.deciding = [], False

    def _note_last(self) -> None:
        """Keep the state before a last row that may be incomplete."""
        self.before = None
        if self.reader.is_last and has_started(self.estimator):
            lines, digest = self.reader.before_last
            self.before = replace(
                self.make_model(),
                estimator=copy.deepcopy(self.estimator),
                lines=lines,
                digest=digest,
            )

    # Learning.

    def _learn_as_decided(self, rows: list[Row]) -> None:
        """Learn from rows with the current kinds.

        Rows without a new name or class are learned together. A new name or class enlarges the
        weights, which must happen at its own row, so that the state does not depend on blocks.
        """
        alone = self.predictions.wanted
        together: list[tuple[Features, Any]] = []
        encoded = self.encoder.encode([row.entries for row in rows])
        for row, features in zip(rows, encoded, strict=True):
            if alone:
                known = has_started(self.estimator)
                guess = self.estimator.predict([features])[0].item() if known else ""
                self.predictions.write(row, guess)
            if row.label is None:
                self.unlabelled += 1
            elif alone or self._is_news(features, row.label):
                self._fit(together)
                self._fit([(features, row.label)])
                together = []
            else:
                together.append((features, row.label))
        self._fit(together)

    def _is_news(self, features: Features, label: Any) -> bool:
        if self.model.task == "classification" and label not in self.labels:
            return True
        if self.hashed:
            return not self.rows
        known = getattr(self.estimator, "vocabulary_", {})
        return not all(name in known for name in feature_names(features))

    def _fit(self, rows: list[tuple[Features, Any]]) -> None:
        if not rows:
            return
        features, labels = (list(part) for part in zip(*rows, strict=True))
        if self.model.task == "classification":
            self.labels.update(labels)
            self._check_labels(len(rows))
        elif len(self.values) < 2:
            self.values.update(labels[:2])
        cost = read_running_cost(self.estimator)
        self._partial_fit(features, labels)
        self.account.add(labels, read_running_cost(self.estimator) - cost)

    def _partial_fit(self, features: list[Features], labels: list[Any]) -> None:
        if not has_started(self.estimator):
            features[0] = self.encoder.first(features[0])
        self.estimator.partial_fit(features, labels)

    def _check_labels(self, more: int) -> None:
        rows, count = self.rows + more, len(self.labels)
        if count > max(_MOST_STREAM_LABELS, rows // 2):
            raise TableError(
                f"The target {self.model.target!r} has {count} different labels in {rows} rows, "
                "which is too many. Choose another column, or --learner regressor for numbers."
            )

    # The model file.

    def finish(self, *, stopped: bool) -> None:
        """Write the model, or raise an error that explains why there is none."""
        self._check_readable()
        if not self.rows:
            if stopped:
                raise KeyboardInterrupt
            raise TableError(self._why_nothing())
        if self.fresh and not stopped:
            values, model = self.labels or self.values, self.model
            check_values_differ(values, model.target, model.task)
        self.save()

    def _why_nothing(self) -> str:
        reader = self.reader
        reader.check_target()
        if self.unlabelled:
            return f"The target {self.model.target!r} is missing in every row."
        bad = reader.bad[0] if reader.bad else reader.unfinished
        if bad:
            line, reason = bad
            return f"{reader.name} has no row that can be read; line {line} has {reason}."
        return f"{reader.name} has a header but no rows."

    def save(self) -> None:
        """Replace the model file, once the new one is complete."""
        save(replace(self.make_model(), before=self.before), self.place)

    def make_model(self) -> StreamModel:
        """Return the model after the last row."""
        reader, model, options = self.reader, self.model, self.options
        return StreamModel(
            target=reader.target or model.target,
            task=model.task,
            estimator=self.estimator,
            columns=reader.columns or model.columns,
            dropped=tuple(options.drop) or model.dropped,
            categories=tuple(options.category) or model.categories,
            numbers=tuple(options.number) or model.numbers,
            source=reader.name,
            lines=reader.lines.taken,
            digest=reader.lines.digest,
            kinds=self.kinds,
            first_rows=list(self.kept),
            account=self.account.to_dict(),
            facts=self.facts(),
        )

    def facts(self) -> dict[str, Any]:
        """Return facts about the rows and the errors as plain values."""
        estimator, reader, account = self.estimator, self.reader, self.account
        labels = self.model.task == "classification"
        return {
            **describe_command(self.command),
            "table": reader.name,
            "target": reader.target or self.model.target,
            "task": self.model.task,
            "learner": type(estimator).__name__,
            "rows": self.rows,
            "new_rows": self.rows - self.first,
            "lines": reader.lines.taken,
            "mistakes": int(account.cost) if labels else None,
            "error_name": account.word,
            "error": account.error,
            "guess": account.guess_name,
            "guess_error": account.guess_error,
            "rises": [asdict(rise) for rise in account.rises],
            "columns": {column.name: column.kind for column in self.kinds},
            "rows_without_target": self.unlabelled,
            "rows_left_out": reader.n_bad,
            "first_left_out": [list(bad) for bad in reader.bad],
            "unfinished": None if reader.unfinished is None else list(reader.unfinished),
            "features": int(estimator.n_features_in_),
            "classes": len(self.labels) if labels else None,
            "seconds": time.monotonic() - self.began,
        }
