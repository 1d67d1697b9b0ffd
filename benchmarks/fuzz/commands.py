"""Inputs for the command line: drawn tables are written, fitted and predicted in this process."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.fuzz.tables import (
    draw_chance,
    draw_columns,
    draw_labels,
    draw_targets,
    pick,
    scale_columns,
)
from benchmarks.fuzz.verdict import Failure, Outcome, judge, require
from mixnorm.cli import main


def draw(rng: np.random.Generator) -> Outcome:
    """Write a drawn table, run ``fit`` or ``stream`` on it, then ``predict`` and ``show``."""
    text, notes = _draw_table(rng)
    online = draw_chance(rng, 0.3)

    def work() -> None:
        with tempfile.TemporaryDirectory(prefix="mixnorm-fuzz-") as folder:
            path, model = Path(folder) / "table.csv", Path(folder) / "model.mixnorm"
            path.write_bytes(text)
            learn = ["stream"] if online else ["fit", "--max-features", "3", "--folds", "2"]
            given = [*learn, str(path), "--target", "target", "--model", str(model), "--quiet"]
            if not online and draw_chance(rng, 0.2):
                given += ["--pool", pick(rng, ("stumps", "products", "boxes"))]
            if _run(given) == 0:
                output = Path(folder) / "out.csv"
                if _run(["predict", str(model), str(path), "--output", str(output)]) == 0:
                    _check_predictions(output)
                _run(["show", str(model), "--json"], expected=(0,))

    return judge("command line", work, names=("target", "table"), notes=notes)


def _run(arguments: list[str], expected: tuple[int, ...] = (0, 1, 2)) -> int:
    """Run a command and return its status; it must report any problem in its own words."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(arguments)
    text = out.getvalue() + err.getvalue()
    command = arguments[0]
    for sign in ("Traceback", "unexpected ", "RuntimeWarning", "cannot convert float"):
        if sign in text:
            raise Failure(f"{command} printed: {text[text.index(sign) :][:300]}")
    require(status in expected, f"{command} ended with {status}: {text[:300]}")
    require(status == 0 or err.getvalue().strip(), f"{command} ended with {status}, no message")
    if status == 0 and "--json" in arguments:
        json.loads(out.getvalue())
    return status


def _check_predictions(path: Path) -> None:
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    require(len(rows) > 1, "no predictions")
    for row in rows[1:]:
        require(row[0].strip().lower() not in ("nan", "inf", "-inf"), "a prediction is not finite")


def _draw_table(rng: np.random.Generator) -> tuple[bytes, list[str]]:
    """Return the bytes of a table, and notes on what is special about it."""
    rows, columns = int(rng.integers(2, 60)), int(rng.integers(1, 6))
    X, note = scale_columns(rng, draw_columns(rng, rows, columns))
    y = draw_labels(rng, X) if draw_chance(rng, 0.6) else draw_targets(rng, X)
    delimiter, decimal = pick(rng, ((",", "."), (";", ","), ("\t", "."), (";", ".")))
    cells = [[_format_number(value, decimal) for value in row] for row in X]
    names = [f"c{j}" for j in range(columns)]
    for i in range(rows):
        for j in range(columns):
            if draw_chance(rng, 0.03):
                cells[i][j] = pick(
                    rng, ("", "NA", "nan", "?", "inf", "1e400", "text", "2020-01-31")
                )
    if draw_chance(rng, 0.3):
        names.append("colour")
        cells = [[*row, pick(rng, ("red", "green", ""))] for row in cells]
    targets = [_format_number(value, decimal) if y.dtype.kind == "f" else str(value) for value in y]
    names.append("target")
    lines = [delimiter.join(names)]
    lines += [delimiter.join([*row, str(t)]) for row, t in zip(cells, targets, strict=True)]
    notes = [f"{rows} x {columns}", note, f"delimiter {delimiter!r}", f"decimal {decimal!r}"]
    text = "\n".join(lines) + "\n"
    damage = rng.random()
    if damage < 0.03:
        text, damaged = text[: int(rng.integers(len(text)))], "cut"
    elif damage < 0.06:
        text, damaged = text.replace("\n", "\r\n"), "CRLF"
    elif damage < 0.09:
        place = int(rng.integers(len(text)))
        text, damaged = (
            text[:place] + pick(rng, ('"', "\0", "\n", delimiter)) + text[place:],
            "a stray sign",
        )
    else:
        damaged = ""
    data = text.encode("utf-8")
    if draw_chance(rng, 0.03):
        data, damaged = b"\xef\xbb\xbf" + data, "BOM"
    return data, [note for note in [*notes, damaged] if note]


def _format_number(value: float, decimal: str) -> str:
    return repr(float(value)).replace(".", decimal)
