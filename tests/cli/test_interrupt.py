"""Ctrl-C keeps what there is."""

import os
import re
import select
import sys
import time

import numpy as np
import pytest

import mixnorm as package
from mixnorm.cli import progress
from mixnorm.cli.held_out import TablePathProblem


@pytest.fixture
def interrupt(monkeypatch):
    """Interrupts at the end of the given round of all rounds."""

    def arm(at: int) -> None:
        advance, count = progress.SearchBar._advance, [0]

        def count_rounds(self, *words):
            count[0] += 1
            if count[0] == at:
                raise KeyboardInterrupt
            return advance(self, *words)

        monkeypatch.setattr(progress.SearchBar, "_advance", count_rounds)

    return arm


def test_in_the_first_path(mixnorm, iris, interrupt, tmp_path):
    interrupt(3)
    words = ["fit", iris, "--target", "species", "-k", 4, "--report", "r.html", "--json"]
    told = mixnorm(*words).json
    assert told["chosen"] == 3
    assert (
        "interrupted; the model of 3 features was fitted on 120 of 150 rows"
        in (told["interrupted"])
    )
    assert told["how_measured"].startswith("Errors are measured on 30 of 150 rows")
    assert len(package.load(tmp_path / "iris.mixnorm").needed) == 3
    assert "interrupted" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_in_a_later_fold(mixnorm, iris, interrupt):
    interrupt(10)  # in the third of five paths of four rounds
    told = mixnorm("fit", iris, "--target", "species", "-k", 4, "--json").json
    assert told["chosen"] == 4
    assert "2 of 5 folds" in told["how_measured"]
    assert told["interrupted"]


def test_in_the_last_path(mixnorm, iris, interrupt):
    interrupt(22)
    told = mixnorm("fit", iris, "--target", "species", "-k", 4, "--json").json
    assert told["chosen"] == 4
    assert "with 5 folds" in told["how_measured"]
    assert "120 of 150 rows" in told["interrupted"]


def test_while_the_size_is_searched(mixnorm, iris, interrupt):
    interrupt(6)
    told = mixnorm("fit", iris, "--target", "species", "--json").json
    assert 1 <= told["chosen"] <= 4
    assert told["how_chosen"].startswith("The size with the smallest error on held-out rows")


def test_between_two_paths(mixnorm, iris, monkeypatch):
    fold, count = TablePathProblem.fold, [0]

    def stopped(self, *words):
        count[0] += 1
        if count[0] == 2:
            raise KeyboardInterrupt
        return fold(self, *words)

    monkeypatch.setattr(TablePathProblem, "fold", stopped)
    told = mixnorm("fit", iris, "--target", "species", "-k", 2, "--json").json
    assert told["chosen"] == 2
    assert told["interrupted"]


def test_before_the_first_feature(mixnorm, iris, monkeypatch, tmp_path):
    def stopped(self, *words):
        raise KeyboardInterrupt

    monkeypatch.setattr(TablePathProblem, "fold", stopped)
    found = mixnorm("fit", iris, "--target", "species", "--model", "m.mixnorm")
    assert found.code == 130
    assert "interrupted; there is nothing to keep yet" in found.err
    assert not (tmp_path / "m.mixnorm").exists()


def test_the_path_command(mixnorm, iris, interrupt):
    interrupt(3)
    found = mixnorm("path", iris, "--target", "species")
    assert found.code == 0
    assert "interrupted" in found.out


def test_the_full_model_is_skipped(mixnorm, iris, monkeypatch):
    from mixnorm.cli import commands

    def stopped(data, found):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "fit_all_columns", stopped)
    found = mixnorm("fit", iris, "--target", "species", "-k", 2, "--report", "r.html")
    assert found.code == 0
    assert "the report has no models with all columns" in found.err
    assert "Report written" in found.out


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_real_interrupt_on_a_terminal(tmp_path):
    import pty

    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 120)).astype(np.float32).round(3)
    y = (X[:, :40] @ rng.normal(size=(40, 8))).argmax(axis=1)
    text = "\n".join(
        ",".join([*map(str, row), f"c{label}"]) for row, label in zip(X.tolist(), y, strict=True)
    )
    names = ",".join([*(f"x{column}" for column in range(120)), "y"])
    (tmp_path / "t.csv").write_text(f"{names}\n{text}\n")
    command = [sys.executable, "-m", "mixnorm", "fit", "t.csv", "--target", "y", "-k", "100"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.environ["COLUMNS"] = "140"
        os.execv(sys.executable, command)
    seen, sent, began = b"", False, time.monotonic()
    while time.monotonic() - began < 600:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                part = os.read(terminal, 1 << 16)
            except OSError:
                break
            seen += part
        if not sent and re.search(rb"[3-9]/100 features", seen):
            os.write(terminal, b"\x03")
            sent = True
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    text = seen.decode(errors="replace")
    assert sent, text
    assert code == 0, text
    assert "held-out error" in text
    assert "left" in text
    assert "interrupted" in text
    assert "Traceback" not in text
    assert 1 <= len(package.load(tmp_path / "t.mixnorm").needed) < 100
