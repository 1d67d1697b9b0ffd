"""Tables that people have, and the command line run in this process."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the command line reads tables with pandas")
pytest.importorskip("pyarrow", reason="the command line reads tables with pyarrow")

from mixnorm.cli import main  # noqa: E402


@dataclass
class Result:
    """What a command printed, and its exit status."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def heard():
    """Let no signal be ignored, as in background jobs: commands would go on ignoring it."""
    names = ("SIGINT", "SIGHUP", "SIGTERM")
    asked = [getattr(signal, name) for name in names if hasattr(signal, name)]
    ignored = [number for number in asked if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, usual)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture
def mixnorm(capsys, monkeypatch, tmp_path):
    """Runs a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("MIXNORM_DEBUG", raising=False)

    def run(*words) -> Result:
        code = main([str(word) for word in words])
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def server():
    """Starts commands as real processes, which have signals, pipes and closed streams."""
    if not hasattr(os, "fork"):
        pytest.skip("needs processes that copy themselves")
    from .processes import Server

    server = Server()
    yield server
    server.close()


def passengers(rows: int = 160) -> pd.DataFrame:
    """A table like the Titanic's: texts, gaps, dates, a key, constant and repeated columns."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["male", "female"], rows)
    survived = np.where(rng.random(rows) < 0.1, sex == "male", sex == "female").astype(int)
    fare = rng.gamma(2.0, 20.0, rows).round(2)
    return pd.DataFrame(
        {
            "PassengerId": np.arange(1, rows + 1),
            "Survived": survived,
            "Name": [f"Person, Mr. {row}" for row in range(rows)],
            "Sex": sex,
            "Age": np.where(rng.random(rows) < 0.2, np.nan, rng.integers(1, 80, rows)),
            "Fare": fare,
            "Cabin": np.where(rng.random(rows) < 0.7, None, rng.choice(list("ABC"), rows)),
            "Boarded": pd.date_range("1912-04-01", periods=rows, freq="7h").strftime("%Y-%m-%d"),
            "Ship": "Titanic",
            "Price": fare,
            "Remarks": None,
        }
    )


def flowers() -> pd.DataFrame:
    """The irises, with a row number as in the file that everybody downloads."""
    from sklearn.datasets import load_iris

    bunch = load_iris(as_frame=True)
    frame = bunch.frame.rename(columns={"target": "species"})
    frame["species"] = bunch.target_names[frame["species"]]
    frame.insert(0, "Id", np.arange(1, len(frame) + 1))
    return frame


@pytest.fixture
def titanic(tmp_path):
    place = tmp_path / "titanic.csv"
    passengers().to_csv(place, index=False)
    return place


@pytest.fixture
def iris(tmp_path):
    place = tmp_path / "iris.csv"
    flowers().to_csv(place, index=False)
    return place
