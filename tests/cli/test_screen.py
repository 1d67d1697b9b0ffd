"""What the screen shows, and where; live displays on it."""

import io
import json

import numpy as np
import pytest
from rich.console import Console
from rich.progress import TextColumn

from mixnorm.cli.progress import TerminalProgress
from mixnorm.cli.screen import (
    Screen,
    convert_to_plain,
    escape_text,
    format_error,
)
from mixnorm.tables import pluralize


def test_json_knows_no_arrays_and_no_infinities():
    content = {1: np.array([1.5, np.nan]), "b": (np.int64(3), [np.inf, None]), "c": "x"}
    assert convert_to_plain(content) == {"1": [1.5, None], "b": [3, [None, None]], "c": "x"}
    json.dumps(convert_to_plain(content), allow_nan=False)


def test_numbers_for_people():
    assert format_error(0.0526, "classification") == "5.3 %"
    assert format_error(0.25, "classification") == "25.0 %"
    assert format_error(12345.678, "regression") == "1.235e+04"
    assert format_error(None, "regression") == format_error(float("nan"), "classification") == "-"
    assert [pluralize(number, "row") for number in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]


def test_texts_steer_nothing():
    assert escape_text("a\x1b[31m\x07b") == "a�[31m�b"
    assert escape_text("naïve 名 [bold]") == "naïve 名 \\[bold]"


@pytest.mark.parametrize("as_json", [False, True])
def test_where_things_go(capsys, as_json):
    screen = Screen(json=as_json)
    screen.say("result")
    screen.remark("remark")
    screen.print_json({"x": 1})
    out, err = capsys.readouterr()
    assert out == ('{\n  "x": 1\n}\n' if as_json else "result\n")
    assert err == "remark\n"


def test_quiet(capsys):
    screen = Screen(quiet=True)
    screen.remark("remark")
    with screen.status("at it"):
        screen.say("result")
    assert capsys.readouterr() == ("result\n", "")


@pytest.mark.parametrize(("terminal", "quiet"), [(True, False), (True, True), (False, False)])
def test_drawn_on_terminals_alone(terminal, quiet):
    screen = Screen(quiet=quiet)
    screen.err = Console(file=io.StringIO(), force_terminal=terminal)
    live = TerminalProgress(screen, TextColumn("{task.description}"))
    live.add_task("fold 1 of 5")
    with live:
        live.refresh()
    assert ("fold 1 of 5" in screen.err.file.getvalue()) == (terminal and not quiet)
