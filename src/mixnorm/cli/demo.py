"""``mixnorm demo``: fit and predict on the digits of scikit-learn with a few pixels."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mixnorm.cli.screen import Screen

_NUMBER_OF_PIXELS = 20


def demo(options: argparse.Namespace, screen: Screen, command: Sequence[str]) -> None:
    """Write scikit-learn's digits as a table, then run the commands a user would."""
    from mixnorm.cli import commands as _commands
    from mixnorm.cli.arguments.parser import build_parser, check_options
    from mixnorm.storage import load

    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    places = {name: str(folder / name) for name in _FILES}
    training, new = _write_digits(places["digits.csv"], places["new.csv"])
    screen.say(
        f"{training} images of digits, 8 x 8 pixels each, are in {places['digits.csv']}; "
        f"{new} more are in {places['new.csv']}."
    )
    parser, inner = build_parser(), _Gathering(json=options.json, quiet=options.quiet)
    for words in _list_commands(places):
        screen.say("", "$ mixnorm " + " ".join(words))
        chosen = parser.parse_args(words)
        check_options(chosen)
        getattr(_commands, chosen.command)(chosen, inner, words)
    model = load(places["digits.mixnorm"])
    screen.say("\nThe pixels, in the order in which they were chosen:\n")
    screen.say(_draw_pixels(model.needed))
    screen.say(f"\nOpen {places['report.html']} in a browser for the report.")
    fit, predict = inner.gathered
    screen.print_json({"folder": str(folder), "files": places, "fit": fit, "predict": predict})


class _Gathering(Screen):
    """A screen that keeps the JSON results of commands, to print them as one object."""

    def __init__(self, *, json: bool, quiet: bool) -> None:
        super().__init__(json=json, quiet=quiet)
        self.gathered: list[dict[str, Any]] = []

    def print_json(self, content: dict[str, Any]) -> None:
        """Keep the result of a command."""
        self.gathered.append(content)


_FILES = ("digits.csv", "new.csv", "report.html", "digits.mixnorm", "predictions.csv")


def _list_commands(places: dict[str, str]) -> list[list[str]]:
    fit = ["fit", places["digits.csv"], "--target", "digit", "--features", str(_NUMBER_OF_PIXELS)]
    fit += ["--report", places["report.html"], "--model", places["digits.mixnorm"]]
    predict = ["predict", places["digits.mixnorm"], places["new.csv"]]
    return [fit, [*predict, "--output", places["predictions.csv"]]]


def _write_digits(training: str, new: str) -> tuple[int, int]:
    """Write the digits as two tables, and return their numbers of rows."""
    import pandas as pd
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    names = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]
    table = pd.DataFrame(X.astype(int), columns=names).assign(digit=y)
    parts = train_test_split(table, test_size=0.3, random_state=0, stratify=y)
    for place, part in zip((training, new), parts, strict=True):
        part.to_csv(place, index=False, lineterminator="\r\n")
    return len(parts[0]), len(parts[1])


def _draw_pixels(pixels: list[str]) -> str:
    """Draw the 8 x 8 grid with the chosen pixels numbered."""
    rank = {name: order for order, name in enumerate(pixels, start=1)}
    rows = ([rank.get(f"pixel_{row}_{column}") for column in range(8)] for row in range(8))
    return "\n".join(
        "  " + " ".join(f"{order:2d}" if order else " ·" for order in row) for row in rows
    )
