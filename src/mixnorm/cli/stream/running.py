"""Errors of a stream so far: a line now and then, and a live line on a terminal."""

from __future__ import annotations

import time
from typing import Any

from rich.progress import TextColumn, TimeElapsedColumn

from mixnorm.cli.progress import TerminalProgress
from mixnorm.cli.screen import Screen, format_error
from mixnorm.cli.stream.account import Rise, StreamAccount, compute_mean_cost
from mixnorm.tables import pluralize

# The rows between two lines are at most a quarter of all rows, and at most 100,000.
_ROWS_PER_STEP = 4
_MOST_STEP = 100_000
# Number of lines whose figures are kept for JSON.
_MOST_FIGURES = 1000


class Running(TerminalProgress):
    """A printer of errors after 1, 2, 4, 8, ... rows, later more often; or every N rows.

    Parameters
    ----------
    screen : Screen
        The screen to print on.
    account : StreamAccount
        The errors so far.
    every : int or None
        Number of rows between two lines.

    Attributes
    ----------
    next : int
        Number of rows at the next line.
    lines : list of dict
        The figures of the last lines.
    """

    def __init__(self, screen: Screen, account: StreamAccount, every: int | None) -> None:
        super().__init__(
            screen,
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            redirect_stdout=screen.out.is_terminal,
        )
        self._account, self._every = account, every
        self._first, self._titled = account.rows, False
        self._rise = account.rises[-1:]
        self._began = time.monotonic()
        self._mark()
        self.next = self._after(account.rows)
        self.lines: list[dict[str, Any]] = []
        self._live = self.add_task("waiting for rows", total=None)

    def _after(self, rows: int) -> int:
        """Return the number of rows at the next line.

        It is at most a quarter larger, so that a change of the rows can be seen.
        """
        step = self._every
        if step is None:
            if rows < 1 << 10:
                return 1 << rows.bit_length()
            step = min(_round_down(rows // _ROWS_PER_STEP), _MOST_STEP)
        return (rows // step + 1) * step

    def _mark(self) -> None:
        """Remember the state from which the next line is measured."""
        account = self._account
        self._last = (account.rows, account.cost, account.guess_rows, account.guess_cost)

    def print_due(self) -> None:
        """Print a line if it is due."""
        account = self._account
        if account.rows >= self.next:
            self._add_line()
            self.next = self._after(account.rows)
        rise = account.rises[-1:]
        if rise and rise != self._rise and not self._screen.quiet:
            self._screen.say(describe_rise(rise[0], account))
        self._rise = rise
        if not self.disable:
            self.update(
                self._live,
                description=f"{pluralize(account.rows, 'row')}, {account.word} "
                f"{self._text(account.error)}, {self._speed()} rows/s",
            )

    def _add_line(self) -> None:
        account = self._account
        rows, cost, guess_rows, guess_cost = self._last
        word = account.word
        line = {
            "rows": account.rows,
            "error": account.error,
            "last_error": compute_mean_cost(word, account.rows - rows, account.cost - cost),
            "last_guess_error": compute_mean_cost(
                word, account.guess_rows - guess_rows, account.guess_cost - guess_cost
            ),
        }
        self.lines = [*self.lines[-_MOST_FIGURES + 1 :], line]
        if not self._screen.quiet:
            self._print(line)
        self._mark()

    def _print(self, line: dict[str, Any]) -> None:
        account = self._account
        cells, titles = [str(account.rows)], ["rows"]
        if account.task == "classification":
            cells.append(str(int(account.cost)))
            titles.append("mistakes")
        guess = account.guess_name.removesuffix(" so far")
        titles += [f"{account.word} so far", "since last line", guess, "rows/s"]
        cells += [self._text(line[name]) for name in ("error", "last_error", "last_guess_error")]
        cells.append(self._speed())
        widths = [max(10, len(title)) for title in titles]
        rows = [cells] if self._titled else [titles, cells]
        for row in rows:
            cells = (f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
            self._screen.say("  ".join(cells))
        self._titled = True

    def _text(self, error: float) -> str:
        return format_error(error, self._account.task)

    def _speed(self) -> str:
        seconds = time.monotonic() - self._began
        return f"{(self._account.rows - self._first) / seconds:.0f}" if seconds > 0 else "-"


def describe_rise(rise: Rise, account: StreamAccount) -> str:
    """Return a sentence about a rise of the error."""
    before, after = (format_error(error, account.task) for error in (rise.before, rise.after))
    word = account.word if account.word.isupper() else account.word.capitalize()
    return (
        f"{word} rose from {before} to {after} in rows {rise.first} to {rise.last}; the data may "
        "have changed."
    )


def describe_error(facts: dict[str, Any], task: str) -> str:
    """Return a sentence about the error so far, and that of guessing."""
    error = format_error(facts["error"], task)
    text = f"{facts['error_name']} {error}, each row predicted before it was learned from."
    if "guess_error" in facts:  # files of older versions have none
        text += f" Guessing the {facts['guess']}: {format_error(facts['guess_error'], task)}."
    return text


def _round_down(number: int) -> int:
    """Return the largest number up to this one that is 1, 2 or 5 times a power of ten.

    Examples
    --------
    >>> [_round_down(number) for number in (1, 4, 5, 19, 99, 200)]
    [1, 2, 5, 10, 50, 200]
    """
    power = int(10 ** (len(str(number)) - 1))
    return power * next(digit for digit in (5, 2, 1) if digit * power <= number)
