"""The benchmark of the command line: both sides do the same work on the clock."""

import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

pytest.importorskip("resource", reason="CPU seconds need a POSIX system")

from benchmarks.cli import command
from mixnorm.cli import main


@pytest.fixture
def places(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, size=(300, 5, 6))
    X[:, 0, 0] = 0  # a pixel that never varies
    y = (X[:, 1, 1] > 127) + (X[:, 2, 2] > 127)
    bunch = SimpleNamespace(X=X[:200], y=y[:200], X_test=X[200:], y_test=y[200:])
    monkeypatch.setattr("mixnorm.datasets.load", lambda name: bunch)
    return command.write_csv(tmp_path)


def python(code):
    return [sys.executable, "-c", code]


def run_here(commands, capsys):
    """Return the error that a line of ours prints, without the processes of ``measure``."""
    for words in commands:
        assert words[:3] == [sys.executable, "-m", "mixnorm"]
        capsys.readouterr()
        assert main(words[3:]) == 0
    return command.find_error(capsys.readouterr().out)


class TestLines:
    def test_both_sides_read_fit_write_and_score(self, places):
        found = dict(command.list_lines(places, only_ours=False))
        fit, predict = found[command.WHOLE]
        assert fit[fit.index("fit") + 1] == places["train"]
        assert predict[predict.index("predict") + 1 :][:2] == [places["model"], places["test"]]
        assert places["predictions"] in predict
        for name in command.SCRIPTS:
            (script,) = found[name]
            for role in ("train", "test", "predictions", "script_model"):
                assert places[role] in script[-1]
        assert all(
            name.startswith("mixnorm") for name, _ in command.list_lines(places, only_ours=True)
        )

    @pytest.mark.parametrize("name", ["pandas + SelectKBest", "pandas + RFE"])
    def test_script(self, places, name, monkeypatch):
        monkeypatch.setattr(command, "SIZE", 3)
        row = command.measure(name, dict(command.list_lines(places, only_ours=False))[name], 1, 120)
        test = pd.read_csv(places["test"])["label"]
        guess = pd.read_csv(places["predictions"])["prediction"]
        assert row["error"] == pytest.approx(100 * float((guess != test).mean()))
        assert 0 < row["error"] < 50

    def test_our_line(self, places, monkeypatch, capsys):
        monkeypatch.setattr(command, "SIZE", 3)
        row = run_here(dict(command.list_lines(places, only_ours=True))[command.WHOLE], capsys)
        test = pd.read_csv(places["test"])["label"]
        guess = pd.read_csv(places["predictions"]).iloc[:, 0]
        assert row["error"] == pytest.approx(100 * float((guess != test).mean()))

    def test_stream(self, places, capsys):
        row = run_here(dict(command.list_lines(places, only_ours=True))["mixnorm stream"], capsys)
        assert 0 < row["error"] < 100


class TestMeasure:
    def test_processes_add_up(self):
        row = command.measure("both", [python("print(1)"), python("print(0.25)")], 2, 60)
        assert row["error"] == 25.0
        assert len(row["runs"]) == 2
        assert row["seconds"] == min(row["runs"])
        assert row["cpu"] > 0

    def test_failure_says_why(self):
        row = command.measure("bad", [python("raise ValueError('no luck')")], 1, 60)
        assert row["failed"] == ["ValueError: no luck"]
        assert "no luck" in command.describe(row)

    def test_limit(self):
        row = command.measure("slow", [python("import time; time.sleep(60)")], 1, 0.2)
        assert row == {"name": "slow", "limit": 0.2}
        assert command.describe(row) == "> 0.2 s"

    def test_error_in(self):
        assert command.find_error(json.dumps({"error": 0.1})) == {"error": 10.0}
        assert command.find_error("no number") == command.find_error("{}") == {}


def test_table():
    figures = {"cpu": 4.0, "gib": 0.5, "runs": [2.0]}
    rows = [
        {"name": "mixnorm reads", "seconds": 1.0} | figures,
        {"name": "pandas reads", "seconds": 3.0} | figures,
        {"name": command.WHOLE, "seconds": 2.0, "error": 20.0} | figures,
        {"name": "pandas + abess", "seconds": 5.0, "error": 21.0} | figures,
        {"name": "pandas + RFE", "limit": 300.0},
        {"name": "pandas + SelectKBest", "failed": ["no"]},
    ]
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(command.make_table(rows, {row["name"]: row for row in rows}))
    text = console.export_text()
    assert "3.0 x" in text
    assert "2.5 x" in text
    assert "> 150.0 x" in text
    assert "failed: no" in text
