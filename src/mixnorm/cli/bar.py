"""Progress of a search: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mixnorm.cli.screen import Screen, error_text

# Seconds between two lines where there is no terminal to draw a bar on.
_PAUSE = 20.0


class Live:
    """Draws ``_progress`` while it is entered."""

    _progress: Progress

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


class SearchBar(Live):
    """One bar for all rounds of all paths, with the loss and the held-out error of the last.

    Parameters
    ----------
    screen : Screen
        Where to draw.
    task : str
        Says how errors are written.
    rounds : int
        Number of rounds of all paths together, as far as is known.
    word : str
        What a round adds.
    """

    def __init__(self, screen: Screen, task: str, rounds: int, word: str = "feature") -> None:
        self._screen, self._task, self._word = screen, task, word
        self._last = time.monotonic()
        self._done = 0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[size]}"),
            TextColumn("loss {task.fields[loss]}"),
            TextColumn("held-out error {task.fields[error]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=screen.err,
            transient=True,
            disable=screen.quiet or not screen.err.is_terminal,
        )
        self._bar = self._progress.add_task("", total=rounds, size="", loss="-", error="-")

    def expect(self, rounds: int) -> None:
        """Set how many rounds there will be from now on."""
        self._progress.update(self._bar, total=self._done + rounds)

    def stage(self, name: str, rounds: int, error: Callable[[Any], float | None]) -> RoundCallback:
        """Return a callback for one path; ``error`` gives the held-out error of its models."""
        self._progress.update(self._bar, description=name)
        return RoundCallback(lambda model: self._advance(name, rounds, model, error(model)))

    def _advance(self, name: str, rounds: int, model: Any, error: float | None) -> None:
        self._done += 1
        size, loss = len(model.path_["loss"]), float(model.path_["loss"][-1])
        shown = {
            "size": f"{size}/{rounds} {self._word}s",
            "loss": f"{loss:.4g}",
            "error": error_text(error, self._task),
        }
        # The columns of the bar take any keyword; the signature knows only its own.
        self._progress.update(self._bar, advance=1, description=name, **shown)  # type: ignore[arg-type]
        if self._progress.disable and time.monotonic() - self._last > _PAUSE:
            self._last = time.monotonic()
            self._screen.remark(
                f"{name}: {shown['size']}, loss {shown['loss']}, held-out error {shown['error']}"
            )


class RoundCallback:
    """A scikit-learn callback that tells of every round.

    Parameters
    ----------
    on_round : callable
        Called with the model as of the end of the round.
    """

    def __init__(self, on_round: Callable[[Any], None]) -> None:
        self._on_round = on_round

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing: required by the protocol."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing: required by the protocol."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing: required by the protocol."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any) -> bool:
        """Tell of a round that has ended; never ask to stop."""
        if context.task_name == "round":
            self._on_round(fitted_estimator)
        return False
