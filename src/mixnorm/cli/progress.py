"""Progress of long work: a live line on a terminal, or a plain line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from sklearn.base import BaseEstimator

from mixnorm.cli.screen import Screen, format_error

#: Seconds between two plain lines if there is no terminal.
SECONDS_BETWEEN_LINES = 20.0


class TerminalProgress(Progress):
    """A line of progress at the foot of a terminal within a ``with`` block.

    There is no line if standard error is not a terminal or the screen is quiet.

    Parameters
    ----------
    screen : Screen
        The screen to draw on.
    *columns : rich.progress.ProgressColumn
        The parts of the line.
    **options
        Further options of :class:`rich.progress.Progress`.
    """

    def __init__(self, screen: Screen, *columns: ProgressColumn, **options: Any) -> None:
        super().__init__(
            *columns,
            console=screen.err,
            transient=True,
            disable=screen.quiet or not screen.err.is_terminal,
            **options,
        )
        self._screen = screen


class SearchBar(TerminalProgress):
    """A progress bar for all rounds of all paths, with the latest loss and held-out error.

    Parameters
    ----------
    screen : Screen
        The screen to draw on.
    task : {"classification", "regression"}
        The task, which decides the format of errors.
    rounds : int
        Estimated number of rounds of all paths together.
    word : str
        The word for what a round adds to a model: "feature", "stump", ...
    """

    def __init__(self, screen: Screen, task: str, rounds: int, word: str = "feature") -> None:
        super().__init__(
            screen,
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[size]}"),
            TextColumn("loss {task.fields[loss]}"),
            TextColumn("held-out error {task.fields[error]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[reading]}"),
        )
        self._task, self._word = task, word
        self._last_line = time.monotonic()
        self._done = 0
        self._bar = self.add_task("", total=rounds, size="", loss="-", error="-", reading="")
        self._latest, self._reading = "", ""

    def expect(self, rounds: int) -> None:
        """Set the number of rounds still to come."""
        self.update(self._bar, total=self._done + rounds)

    def stage(
        self, name: str, rounds: int, error: Callable[[BaseEstimator], float | None]
    ) -> RoundCallback:
        """Return a callback for one path; ``error`` returns the held-out error of a model."""
        self.update(self._bar, description=name)
        return RoundCallback(lambda model: self._advance(name, rounds, model, error(model)))

    def _advance(self, name: str, rounds: int, model: BaseEstimator, error: float | None) -> None:
        self._done += 1
        size, loss = len(model.path_["loss"]), float(model.path_["loss"][-1])
        shown = {
            "size": f"{size}/{rounds} {self._word}s",
            "loss": f"{loss:.4g}",
            "error": format_error(error, self._task),
        }
        # The columns of the bar accept any keyword; the signature of rich knows only its own.
        self.update(self._bar, advance=1, description=name, **shown)  # type: ignore[arg-type]
        self._latest = (
            f"{name}: {shown['size']}, loss {shown['loss']}, held-out error {shown['error']}"
        )
        self._print_line()

    def show_reading(self, words: str) -> None:
        """Show how much of a table of blocks is read."""
        self._reading = f", {words}"
        self.update(self._bar, reading=words)
        self._print_line()

    def _print_line(self) -> None:
        """Print a plain line if there is no terminal and the last one is long ago."""
        waited = time.monotonic() - self._last_line
        if self.disable and waited > SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            self._screen.remark(f"{self._latest or 'first round'}{self._reading}")


class RoundCallback:
    """A scikit-learn callback that calls a function after every round.

    Parameters
    ----------
    on_round : callable
        Called with the model at the end of a round.
    """

    def __init__(self, on_round: Callable[[BaseEstimator], None]) -> None:
        self._on_round = on_round

    def setup(self, estimator: BaseEstimator, context: Any) -> None:
        """Do nothing: the protocol requires this method."""

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(
        self, estimator: BaseEstimator, context: Any, *, fitted_estimator: BaseEstimator
    ) -> bool:
        """Call the function at the end of a round; return False to let the fit go on."""
        if context.task_name == "round":
            self._on_round(fitted_estimator)
        return False
