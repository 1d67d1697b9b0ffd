"""What the screen shows, and where; live displays on it."""

import io
import json

import numpy as np
import pytest
from rich.console import Console
from rich.progress import TextColumn

from mixnorm.cli.live import Live
from mixnorm.cli.screen import Screen, error_text, percent, plain, safe
from mixnorm.tables import counted


def test_json_knows_no_arrays_and_no_infinities():
    content = {1: np.array([1.5, np.nan]), "b": (np.int64(3), [np.inf, None]), "c": "x"}
    assert plain(content) == {"1": [1.5, None], "b": [3, [None, None]], "c": "x"}
    json.dumps(plain(content), allow_nan=False)


def test_numbers_for_people():
    assert percent(0.0526) == "5.3 %"
    assert error_text(0.25, "classification") == "25.0 %"
    assert error_text(12345.678, "regression") == "1.235e+04"
    assert error_text(None, "regression") == error_text(float("nan"), "classification") == "-"
    assert [counted(number, "row") for number in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]


def test_texts_steer_nothing():
    assert safe("a\x1b[31m\x07b") == "a�[31m�b"
    assert safe("naïve 名 [bold]") == "naïve 名 \\[bold]"


@pytest.mark.parametrize("as_json", [False, True])
def test_where_things_go(capsys, as_json):
    screen = Screen(json=as_json)
    screen.say("result")
    screen.remark("remark")
    screen.document({"x": 1})
    out, err = capsys.readouterr()
    assert out == ('{\n  "x": 1\n}\n' if as_json else "result\n")
    assert err == "remark\n"


def test_quiet(capsys):
    screen = Screen(quiet=True)
    screen.remark("remark")
    with screen.working("at it"):
        screen.say("result")
    assert capsys.readouterr() == ("result\n", "")


@pytest.mark.parametrize(("terminal", "quiet"), [(True, False), (True, True), (False, False)])
def test_drawn_on_terminals_alone(terminal, quiet):
    screen = Screen(quiet=quiet)
    screen.err = Console(file=io.StringIO(), force_terminal=terminal)
    live = Live(screen, TextColumn("{task.description}"))
    live._progress.add_task("fold 1 of 5")
    with live:
        live._progress.refresh()
    assert ("fold 1 of 5" in screen.err.file.getvalue()) == (terminal and not quiet)
