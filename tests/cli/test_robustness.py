"""What users met: files at risk, readers that go away, numbers and labels written otherwise."""

import csv
import io
import itertools
import json
import os
import signal

import numpy as np
import pandas as pd
import pytest

import mixnorm as package
from mixnorm.cli import commands
from mixnorm.cli import progress as _progress
from mixnorm.cli.search import TableSearch

from .conftest import flowers


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_path_on_all_rows_shorter_than_those_of_the_folds(mixnorm, tmp_path):
    # Balanced on all rows, so that only A has a gradient there; not so on the folds.
    rows = itertools.product((-1, 1), repeat=3)
    lines = [f"{a},{b},{c},{10 * a + 3 * a * b + 0.5 * a * b * c + 7.25}" for a, b, c in rows] * 12
    (tmp_path / "doe.csv").write_text("A,B,C,y\n" + "\n".join(lines))
    found = mixnorm("fit", "doe.csv", "--target", "y", "--report", "r.html", "--json")
    assert found.code == 0, found.err
    assert found.json["chosen"] == 1
    assert (tmp_path / "r.html").exists()


def test_an_interrupt_beyond_the_chosen_size(mixnorm, iris, monkeypatch, tmp_path):
    monkeypatch.setattr(TableSearch, "_choose", lambda self, measured: 1)
    refit = TableSearch._refit

    def stopped(self, chosen, errors):
        advance = self.bar._advance

        def interrupting(name, rounds, model, error):
            if name == "all rows" and len(model.path_["loss"]) == 3:
                raise KeyboardInterrupt
            advance(name, rounds, model, error)

        self.bar._advance = interrupting
        return refit(self, chosen, errors)

    monkeypatch.setattr(TableSearch, "_refit", stopped)
    found = mixnorm("fit", iris, "--target", "species", "--report", "r.html", "--json")
    assert found.code == 0, found.err
    assert found.json["chosen"] == 1
    assert found.json["interrupted"] == ""
    assert (tmp_path / "r.html").exists()


def test_interrupts_while_files_are_written_wait(mixnorm, iris, monkeypatch, tmp_path):
    interrupted = []

    def interrupt(step):
        inner = getattr(commands, step)

        def run(*words, **options):
            interrupted.append(step)
            os.kill(os.getpid(), signal.SIGINT)
            return inner(*words, **options)

        monkeypatch.setattr(commands, step, run)

    steps = {"collect_facts", "save", "make_report"}
    for step in steps:
        interrupt(step)
    found = mixnorm("fit", iris, "--target", "species", "-k", 2, "--report", "r.html")
    assert found.code == 0
    assert set(interrupted) == steps
    assert (tmp_path / "r.html").exists()
    package.load(tmp_path / "iris.mixnorm")


def test_a_request_to_end_keeps_what_there_is(mixnorm, iris, monkeypatch, tmp_path):
    advance, rounds = _progress.SearchBar._advance, []

    def asked(self, *words):
        rounds.append(words)
        if len(rounds) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return advance(self, *words)

    monkeypatch.setattr(_progress.SearchBar, "_advance", asked)
    found = mixnorm("fit", iris, "--target", "species", "-k", 4)
    assert found.code == 0, found.err
    assert "The search was interrupted" in found.out
    assert "Model written" in found.out
    assert len(rounds) == 3
    package.load(tmp_path / "iris.mixnorm")


@pytest.mark.parametrize("both", [False, True], ids=["errors", "all output"])
def test_files_are_written_though_nobody_listens(server, iris, tmp_path, both):
    reading, writing = (
        os.fdopen(end, mode) for end, mode in zip(os.pipe(), ("rb", "wb"), strict=True)
    )
    words = ("fit", "iris.csv", "--target", "species", "-k", 2, "--model", "m")
    options = {"stdout": writing} if both else {}
    process = server.start(*words, folder=tmp_path, stderr=writing, **options)
    writing.close()
    assert reading.readline()
    reading.close()
    status, _, _ = process.finish()
    assert status == 0
    package.load(tmp_path / "m")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", "t.csv", "--target", "y", "--model", "t.csv"], "would replace the table"),
        (["fit", "t.csv", "--target", "y", "--report", "./t.csv"], "would replace the table"),
        (["fit", "t.csv", "--target", "y", "--model", "z", "--report", "z"], "would replace the"),
        (["predict", "m", "t.csv", "--output", "t.csv"], "would replace the table"),
        (["predict", "m", "t.csv", "--output", "m"], "would replace the model"),
    ],
)
def test_no_file_replaces_another(mixnorm, tmp_path, words, message):
    (tmp_path / "t.csv").write_text("a,y\n" + "1,p\n2,q\n" * 20)
    (tmp_path / "m").write_text("a model")
    found = mixnorm(*words)
    assert found.code == 2
    assert message in found.err
    assert (tmp_path / "t.csv").read_text().startswith("a,y")
    assert (tmp_path / "m").read_text() == "a model"


def test_output_into_a_pipe(mixnorm, server, iris, tmp_path):
    mixnorm("fit", iris, "--target", "species", "-k", 2, "-q")
    words = ("predict", "iris.mixnorm", "iris.csv", "-q", "-o", "/dev/stdout")
    status, out, err = server.start(*words, folder=tmp_path).finish()
    assert status == 0, err
    lines = out.decode().splitlines()
    assert lines[0] == "prediction"
    assert len([line for line in lines if line in ("setosa", "versicolor", "virginica")]) == 150


@pytest.mark.parametrize(
    ("labels", "new"),
    [(["true", "false", "unknown"], "true"), (["01", "02", "x"], "01"), (["1", "2", "2.5"], "1")],
)
def test_labels_are_the_same_however_they_are_read(mixnorm, tmp_path, labels, new):
    lines = "".join(f"{place},{labels[place % 3]}\n" for place in range(3)) * 20
    (tmp_path / "t.csv").write_text("x,y\n" + lines)
    mixnorm("fit", "t.csv", "--target", "y", "-k", 1, "--task", "classification", "--category", "x")
    (tmp_path / "new.csv").write_text(f"x,y\n0,{new}\n0,{new}\n")
    told = mixnorm("predict", "t.mixnorm", "new.csv", "--json").json
    assert told["error"] == 0.0


def test_the_error_of_a_few_rows_and_of_unknown_labels(mixnorm, iris, tmp_path):
    mixnorm("fit", iris, "--target", "species", "-k", 2, "-q")
    frame = flowers().iloc[[0, 60, 120, 1, 2]].copy()
    frame.loc[1, "species"] = "rose"
    frame.to_csv(tmp_path / "few.csv", index=False)
    found = mixnorm("predict", "iris.mixnorm", "few.csv", "--json")
    assert found.json["error"] >= 0.2
    assert "on 5 rows. Labels that training did not have: rose." in found.err


def test_none_can_be_a_class_and_means_nothing_among_numbers(mixnorm, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=150).round(2)
    pain = np.select([x < -0.4, x < 0.4], ["none", "mild"], "severe")
    frame = pd.DataFrame({"x": x.astype(object), "pain": pain})
    frame.loc[::25, "x"] = "-"
    frame.to_csv(tmp_path / "survey.csv", index=False)
    told = mixnorm("fit", "survey.csv", "--target", "pain", "-k", 1, "--json").json
    assert told["rows"] == 150
    assert any("Missing values among 150 rows: x (6" in note for note in told["notes"])
    assert set(mixnorm("show", "survey.mixnorm", "--json").json["classes"]) == set(pain)


def test_kept_columns_are_copied_letter_by_letter(mixnorm, iris, tmp_path):
    mixnorm("fit", iris, "--target", "species", "-k", 2, "-q")
    frame = flowers().head(3).astype(object)
    frame["key"] = ["00012", "9007199254740993", ""]
    frame["day"] = ["2024-01-02", "NA", "2024-01-03"]
    frame["yes"] = ["true", "false", "None"]
    frame.to_csv(tmp_path / "new.csv", index=False)
    words = [word for name in ("key", "day", "yes") for word in ("--keep", name)]
    rows = table(mixnorm("predict", "iris.mixnorm", "new.csv", *words, "-q").out)
    for name in ("key", "day", "yes"):
        assert [row[name] for row in rows] == frame[name].tolist()
    clash = mixnorm("predict", "iris.mixnorm", "new.csv", "--keep", "prediction")
    assert clash.code == 2


def test_decimal_commas_are_read_alike_in_a_new_table(mixnorm, tmp_path):
    rng = np.random.default_rng(0)
    price = rng.uniform(1000, 9000, 80).round(2)
    german = [f"{value:,.2f}".translate(str.maketrans(",.", ".,")) for value in price]
    pd.DataFrame({"price": german, "y": 3.0 * price}).to_csv(
        tmp_path / "t.csv", sep=";", index=False
    )
    mixnorm("fit", "t.csv", "--target", "y", "-k", 1, "-q")
    (tmp_path / "new.csv").write_text("price;z\n1.234;1\n")
    found = table(mixnorm("predict", "t.mixnorm", "new.csv", "-q").out)
    assert float(found[0]["prediction"]) == pytest.approx(3702.0, rel=1e-3)


def test_currencies_and_per_cent(mixnorm, tmp_path):
    rng = np.random.default_rng(0)
    price, rate = rng.uniform(1, 99, 90).round(2), rng.integers(1, 99, 90)
    frame = pd.DataFrame({"p": [f"${x}" for x in price], "r": [f"{x} %" for x in rate]})
    frame["y"] = 2 * price - rate
    frame.to_csv(tmp_path / "t.csv", index=False)
    told = mixnorm("fit", "t.csv", "--target", "y", "-k", 2, "--json", "-q").json
    assert told["error"] < 0.01
    assert [row["kind"] for row in told["path"]] == ["number", "number"]


def test_weighted_errors_agree_everywhere(mixnorm, tmp_path):
    frame = flowers().drop(columns="Id")
    frame["w"] = 1 + 9 * (np.arange(150) % 3 == 0)
    frame.to_csv(tmp_path / "w.csv", index=False)
    words = ["--target", "species", "-k", 1, "--weight", "w", "--report", "r.html", "--json"]
    told = mixnorm("fit", "w.csv", *words).json
    assert "Rows count by their weight." in told["how_measured"]
    lone = frame.assign(w=(np.arange(150) == 3).astype(int))
    lone.to_csv(tmp_path / "lone.csv", index=False)
    found = mixnorm("fit", "lone.csv", "--target", "species", "--weight", "w")
    assert found.code == 1
    assert "positive in too few rows" in found.err


def test_wide_tables_where_there_is_no_terminal(mixnorm, titanic, monkeypatch):
    monkeypatch.delenv("COLUMNS")
    found = mixnorm("path", titanic, "--target", "Survived")
    assert "…" not in found.out
    assert "training loss" in found.out


def test_output_that_is_no_utf8(mixnorm, iris, monkeypatch):
    written = io.BytesIO()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr("sys." + name, io.TextIOWrapper(written, "ascii", write_through=True))
    for words in (
        ["fit", "iris.csv", "--target", "species", "-k", "2", "--folds", "2", "--model", "m"],
        ["show", "m"],
        ["path", "iris.csv", "--target", "species", "--folds", "2"],
    ):
        assert mixnorm(*words).code == 0, written.getvalue()
    assert b"\\xb1" in written.getvalue()  # the sign of plus and minus


def test_names_do_not_steer_the_terminal(mixnorm, tmp_path):
    lines = "".join(f"{row * 7 % 11},{'ab'[row % 2]}\n" for row in range(40))
    (tmp_path / "t.csv").write_text("\x1b]0;title\x07\x1b[31mx,y\n" + lines)
    for words in (["fit", "t.csv", "--target", "y", "--model", "m"], ["show", "m"]):
        found = mixnorm(*words)
        assert found.code == 0, found.err
        assert "\x1b" not in found.out + found.err
        assert "\x07" not in found.out + found.err


def test_json_is_one_object_also_for_usage(mixnorm):
    assert "--features" in mixnorm("fit", "x.csv", "--features", "0", "--json").json["problem"]


def test_a_full_disk_is_told_once(server, iris, tmp_path):
    words = ("path", "iris.csv", "--target", "species", "--json", "-q")
    with open("/dev/full", "wb") as full:
        status, _, err = server.start(*words, folder=tmp_path, stdout=full).finish()
    assert status == 1
    assert b"Traceback" not in err
    assert b"No space left on device" in err


def test_large_indices_of_libsvm_files(mixnorm, tmp_path):
    lines = "".join(f"{row % 2} 7:{row % 5} 2000000000:{row % 2}\n" for row in range(40))
    (tmp_path / "hashed.svm").write_text(lines)
    told = mixnorm("fit", "hashed.svm", "-k", 1, "--json", "-q").json
    assert [row["name"] for row in told["path"]] == ["2000000000"]
    assert json.dumps(told)
