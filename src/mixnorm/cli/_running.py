"""Mistakes as they run up: lines now and then, and a live one on a terminal."""

from __future__ import annotations

import math
import time
from types import TracebackType
from typing import Any, Self

from rich.progress import Progress, TextColumn, TimeElapsedColumn

from mixnorm.cli._screen import Screen, counted, error_text


def is_begun(estimator: Any) -> bool:
    """Whether an online estimator has learned from anything."""
    return bool(estimator.__sklearn_is_fitted__())


def task_of(estimator: Any) -> str:
    """Return whether an online estimator learns labels or numbers."""
    from sklearn.base import is_classifier

    return "classification" if is_classifier(estimator) else "regression"


def error_word(estimator: Any) -> str:
    """Return what is measured before each row is learned from."""
    if task_of(estimator) == "classification":
        return "error rate"
    return "RMSE" if estimator.loss == "squared" else f"mean {estimator.loss} loss"


def running_cost(estimator: Any) -> float:
    """Return the mistakes of a classifier, or the loss of a regressor, so far."""
    if not is_begun(estimator):
        return 0.0
    labels = task_of(estimator) == "classification"
    return float(estimator.mistakes_ if labels else estimator.loss_)


def mean_cost(word: str, rows: int, cost: float) -> float:
    """Return the error over so many rows that cost so much."""
    if not rows:
        return math.nan
    return math.sqrt(2.0 * cost / rows) if word == "RMSE" else cost / rows  # half the square


class Running:
    """Prints the mistakes after 1, 2, 4, 8, ... rows, or every so many.

    Parameters
    ----------
    screen : Screen
        Where to print.
    estimator : estimator
        What learns.
    every : int or None
        Rows between two lines.

    Attributes
    ----------
    next : int
        Rows after which there is something to print.
    """

    def __init__(self, screen: Screen, estimator: Any, every: int | None) -> None:
        self._screen, self._estimator, self._every = screen, estimator, every
        self._word, self._task = error_word(estimator), task_of(estimator)
        self._first = self._last = estimator.n_rounds_ if is_begun(estimator) else 0
        self._cost, self._titled = running_cost(estimator), False
        self._began = time.monotonic()
        self.next = self._after(self._last)
        self._progress = Progress(
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=screen.err,
            transient=True,
            redirect_stdout=screen.out.is_terminal,
            disable=screen.quiet or not screen.err.is_terminal,
        )
        self._live = self._progress.add_task("waiting for rows", total=None)

    def __enter__(self) -> Self:
        self._progress.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.__exit__(kind, error, trace)

    def _after(self, rows: int) -> int:
        """Return the number of rows of the next line."""
        if self._every is not None:
            return (rows // self._every + 1) * self._every
        return 1 << rows.bit_length()

    def update(self, rows: int) -> None:
        """Print, if it is time to."""
        if rows >= self.next:
            self._print(rows)
            self.next = self._after(rows)
        if not self._progress.disable:
            error = mean_cost(self._word, rows, running_cost(self._estimator))
            self._progress.update(
                self._live,
                description=f"{counted(rows, 'row')}, {self._word} {self._text(error)}, "
                f"{self._speed(rows)} rows/s",
            )

    def _print(self, rows: int) -> None:
        if self._screen.quiet:
            return
        cost = running_cost(self._estimator)
        since = mean_cost(self._word, rows - self._last, cost - self._cost)
        cells = [str(rows)]
        titles = ["rows"]
        if self._task == "classification":
            cells.append(str(int(cost)))
            titles.append("mistakes")
        cells += [self._text(mean_cost(self._word, rows, cost)), self._text(since)]
        titles += [f"{self._word} so far", "since last line", "rows/s"]
        cells.append(self._speed(rows))
        if not self._titled:
            self._screen.say("  ".join(f"{title:>10}" for title in titles))
            self._titled = True
        self._screen.say(
            "  ".join(
                f"{cell:>{max(10, len(title))}}" for cell, title in zip(cells, titles, strict=True)
            )
        )
        self._last, self._cost = rows, cost

    def _text(self, error: float) -> str:
        return error_text(error, self._task)

    def _speed(self, rows: int) -> str:
        seconds = time.monotonic() - self._began
        return f"{(rows - self._first) / seconds:.0f}" if seconds > 0 else "-"
