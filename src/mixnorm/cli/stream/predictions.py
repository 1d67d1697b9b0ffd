"""The file of predictions that ``mixnorm stream`` makes before it learns from each row."""

from __future__ import annotations

import argparse
import csv
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from mixnorm.tables import Row


class PredictionFile(AbstractContextManager["PredictionFile"]):
    """A CSV file of predictions made before learning; without ``--predictions`` there is none."""

    _NAMES = ("line", "prediction", "target")

    def __init__(self, options: argparse.Namespace, skipped: int) -> None:
        self.wanted, self.broken = options.predictions is not None, False
        if not self.wanted:
            return
        place = Path(options.predictions)
        again = options.resume and place.is_file() and place.stat().st_size > 0
        if again and skipped:
            _truncate_file(place, skipped)
        self._file = place.open("a" if again else "w", newline="", encoding="utf-8")
        self._writer = csv.writer(self._file, lineterminator="\n")
        if not again:
            self._writer.writerow(self._NAMES)

    def __exit__(self, *error: object) -> None:
        if self.wanted:
            self._file.close()

    def write(self, row: Row, predicted: Any) -> None:
        """Add a row."""
        self._writer.writerow((row.line, predicted, "" if row.label is None else row.label))

    def flush(self) -> None:
        """Flush the file, so that readers see the new rows."""
        if self.wanted:
            try:
                self._file.flush()
            except BrokenPipeError:
                self.broken = True
                raise


def _truncate_file(place: Path, lines: int) -> None:
    """Remove the predictions for lines after ``lines``, which will be predicted again."""
    with place.open("r+b") as file:
        end = len(file.readline())
        for row in file:
            number = row.split(b",", 1)[0]
            if number.isdigit() and int(number) > lines:
                break
            end += len(row)
        file.truncate(end)
