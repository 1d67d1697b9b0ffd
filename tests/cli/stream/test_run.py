"""``mixnorm stream``: the same state however rows come, also after it was stopped; awkward rows."""

import bz2
import csv
import gzip
import json
import lzma
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris

import mixnorm as package
from mixnorm.cli.arguments.parser import STREAM_FORMATS as PARSED
from mixnorm.tables import StreamModel
from mixnorm.tables.rows import records as _rows

from .conftest import state

NUMBERS = 5


def table(rows=600, seed=0, gaps=True):
    """Rows of numbers and a category, some of them missing; a class comes late."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, NUMBERS)).round(4)
    y = np.array(["a", "b", "c"])[(X[:, :3] * [1, 1, 1 + (np.arange(rows)[-1] > 0)]).argmax(1)]
    y[: rows // 2][y[: rows // 2] == "c"] = "a"
    levels = rng.choice(["red", "green", "blue, dark", 'so "called"'], rows)
    lines = []
    for row in range(rows):
        cells = [repr(value) for value in X[row].tolist()]
        if gaps and row % 7 == 3:
            cells[row % NUMBERS] = "NA"
        level = '"' + levels[row].replace('"', '""') + '"' if row % 2 else "red"
        lines.append(",".join([*cells, level, y[row]]))
    return [",".join([*(f"x{place}" for place in range(NUMBERS)), "colour", "label"]), *lines]


@pytest.fixture
def rows(tmp_path):
    place = tmp_path / "rows.csv"
    place.write_text("\n".join(table()) + "\n")
    return place


LEARNERS = [
    [],
    ["--learner", "perceptron"],
    ["--norm", "l2,1", "--loss", "margin", "--average"],
    ["--hash", 16, "--no-scale"],
    ["--norm", "trace", "--radius", 5, "--loss", "hinge"],
]


@pytest.mark.parametrize("options", LEARNERS, ids=str)
def test_one_state_however_rows_come(mixnorm, tmp_path, stdin, options):
    lines = table(360)  # more than those from which the kinds of columns are decided
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    assert mixnorm("stream", "rows.csv", "--target", "label", *options).code == 0
    stdin(lines)
    found = mixnorm("stream", "--target", "label", "--model", "slow.mixnorm", *options)
    assert found.code == 0, found.err
    words = ["stream", "-", "--target", "label", "--model", "parts.mixnorm"]
    stdin(lines[:100])
    assert mixnorm(*words, *options).code == 0
    stdin([lines[0], *lines[100:]])
    assert mixnorm("stream", "-", "--model", "parts.mixnorm", "--resume").code == 0
    once = state("rows.mixnorm")
    assert state("slow.mixnorm") == once
    assert state("parts.mixnorm") == once
    told = package.load("slow.mixnorm")
    assert isinstance(told, StreamModel)
    assert told.lines == 361
    assert told.estimator.n_rounds_ == 360
    assert told.estimator.mistakes_ < 180


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_request_to_end_and_going_on(mixnorm, rows, stdin, number):
    assert mixnorm("stream", rows, "-t", "label", "-m", "whole.mixnorm").code == 0
    stdin(table()[:301], getattr(signal, number))
    found = mixnorm("stream", "-t", "label", "-m", "m.mixnorm")
    assert found.code == 0, found.err
    assert "300 rows" in found.out
    assert "Stopped after line 301; --resume continues from there." in found.out
    assert package.load("m.mixnorm").lines == 301
    found = mixnorm("stream", rows, "-m", "m.mixnorm", "--resume")
    assert found.code == 0, found.err
    assert "skipped 301 lines" in found.err
    assert "600 rows (300 of them new)" in found.out
    assert state("m.mixnorm") == state("whole.mixnorm")


def test_a_request_to_end_before_the_first_row(mixnorm, stdin, tmp_path):
    stdin(table()[:1], signal.SIGINT)
    found = mixnorm("stream", "-t", "label", "-m", "m.mixnorm")
    assert found.code == 130
    assert "interrupted; there is nothing to keep yet" in found.err
    assert not (tmp_path / "m.mixnorm").exists()


def start(server, folder, *words):
    return server.start("stream", "-t", "label", "-m", "m.mixnorm", *words, folder=folder)


def wait_for(holds, seconds=60):
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < seconds
        time.sleep(0.02)


@pytest.mark.parametrize("number", ["SIGKILL", "SIGTERM"])
def test_a_process_that_is_killed(mixnorm, server, rows, tmp_path, number):
    lines = [line.encode() + b"\n" for line in table()]
    words = ["stream", rows, "-t", "label", "-m", "whole.mixnorm", "--predictions", "whole.csv"]
    assert mixnorm(*words).code == 0
    process = start(server, tmp_path, "--checkpoint", "50", "--predictions", "p.csv")
    process.stdin.writelines(lines[:180])
    process.stdin.flush()
    wait_for(lambda: (tmp_path / "p.csv").exists())
    wait_for(lambda: (tmp_path / "p.csv").read_bytes().count(b"\n") == 180)
    process.send_signal(getattr(signal, number))
    status, _, err = process.finish()
    assert status == (-9 if number == "SIGKILL" else 0), err
    assert package.load(tmp_path / "m.mixnorm").lines == (151 if number == "SIGKILL" else 180)
    words = ["stream", rows, "-m", "m.mixnorm", "--resume", "--predictions", "p.csv"]
    assert mixnorm(*words).code == 0
    assert state("m.mixnorm") == state("whole.mixnorm")
    assert (tmp_path / "p.csv").read_text() == (tmp_path / "whole.csv").read_text()


def test_a_slow_pipe_is_followed(server, tmp_path):
    process = start(server, tmp_path, "--every", "1")
    try:
        lines = table()[:6]
        process.stdin.write((lines[0] + "\n").encode())
        for place, line in enumerate(lines[1:], start=1):
            process.stdin.write((line + "\n").encode())
            process.stdin.flush()
            if place == 1:
                assert b"mistakes" in process.stdout.readline()
            assert process.stdout.readline().split()[0] == str(place).encode()
    finally:
        status, out, err = process.finish()
    assert status == 0, err
    assert b"5 rows: " in out


def test_a_reader_that_goes_away(server, rows, tmp_path):
    process = start(server, tmp_path, rows, "--every", "1")
    assert process.stdout.readline()
    process.stdout.close()
    status, _, err = process.finish()
    assert status == 0, err
    assert b"Traceback" not in err
    assert package.load(tmp_path / "m.mixnorm").estimator.n_rounds_ == 600


def test_other_files_and_files_that_grow(mixnorm, rows, tmp_path):
    words = ["stream", rows, "-t", "label", "-m", "m.mixnorm"]
    assert mixnorm(*words).code == 0
    again = ["stream", rows, "-m", "m.mixnorm", "--resume"]
    assert mixnorm(*again).code == 0  # nothing is new
    assert package.load("m.mixnorm").estimator.n_rounds_ == 600
    with rows.open("a") as file:
        file.write("\n".join(table(20, seed=1)[1:]))  # the last line has no end
    assert mixnorm(*again).code == 0
    with rows.open("a") as file:
        file.write("\n" + "\n".join(table(10, seed=2)[1:]))
    assert mixnorm(*again).code == 0
    assert package.load("m.mixnorm").estimator.n_rounds_ == 630
    (tmp_path / "other.csv").write_text("\n".join(table(50, seed=3)))
    found = mixnorm("stream", "other.csv", "-m", "m.mixnorm", "--resume")
    assert "all its lines are new" in found.err
    assert package.load("m.mixnorm").estimator.n_rounds_ == 680


def test_going_on_without_a_header(mixnorm, rows, stdin):
    assert mixnorm("stream", rows, "-t", "label", "-m", "m.mixnorm").code == 0
    stdin(table(40, seed=4)[1:])
    found = mixnorm("stream", "-m", "m.mixnorm", "--resume", "--json")
    assert found.code == 0, found.err
    assert found.json["rows"] == 640
    assert found.json["new_rows"] == 40


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_packed_files(mixnorm, rows, tmp_path, pack):
    (tmp_path / "packed").write_bytes(
        pack(rows.read_bytes()[:5000]) + pack(rows.read_bytes()[5000:])
    )
    assert mixnorm("stream", rows, "-t", "label").code == 0
    assert mixnorm("stream", "packed", "-t", "label").code == 0
    assert state("packed.mixnorm") == state("rows.mixnorm")
    (tmp_path / "cut").write_bytes(pack(rows.read_bytes())[:-20])
    found = mixnorm("stream", "cut", "-t", "label")
    assert found.code == 1
    assert "damaged" in found.err


def test_utf16_and_marks(mixnorm, tmp_path):
    text = "größe;label\n" + "1,5;ä\n2,5;b\n" * 10
    for name, coding in (("a", "utf-8"), ("b", "utf-8-sig"), ("c", "utf-16"), ("d", "cp1252")):
        (tmp_path / f"{name}.csv").write_bytes(text.encode(coding))
        assert mixnorm("stream", f"{name}.csv", "-t", "label").code == 0
        assert state(f"{name}.mixnorm") == state("a.mixnorm")
    model = package.load("a.mixnorm")
    assert list(model.estimator.vocabulary_) == ["größe"]
    assert model.classes.tolist() == ["ä", "b"]


def test_json_lines(mixnorm, tmp_path, stdin):
    objects = [
        {"n": place, "word": "ab"[place % 2], "gone": None, "label": "uv"[place % 2]}
        for place in range(1, 41)
    ]
    objects[3] = {"late": True, "tags": ["x", "y"], "in": {"side": 2}, "label": "v"}
    objects[4] = {"n": float("inf"), "word": "NA", "label": "u"}
    objects[5]["label"] = None
    del objects[6]["label"]
    lines = [json.dumps(row) for row in objects]
    lines.insert(8, "{broken")
    lines.insert(9, "[1, 2]")
    lines.insert(10, "")
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    found = mixnorm("stream", "t.jsonl", "-t", "label", "--json")
    assert found.code == 0, found.err
    told = found.json
    assert (told["rows"], told["rows_without_target"], told["rows_left_out"]) == (38, 2, 2)
    assert [line for line, _ in told["first_left_out"]] == [9, 10]
    names = ["n", "word=b", "word=a", "late", "tags=x", "tags=y", "in.side", "word=(missing)"]
    assert list(package.load("t.mixnorm").estimator.vocabulary_) == names
    stdin(lines)
    assert mixnorm("stream", "-t", "label", "-m", "m.mixnorm").code == 0  # told by its content
    assert state("m.mixnorm") == state("t.mixnorm")
    found = mixnorm("predict", "t.mixnorm", "t.jsonl", "--keep", "word", "--json")
    assert found.code == 0, found.err
    assert found.json["rows"] == 40
    assert found.json["columns"]["word"][:4] == ["b", "a", "b", ""]
    assert found.json["error"] < 0.2


def test_a_target_that_json_lines_lack(mixnorm, tmp_path):
    (tmp_path / "t.jsonl").write_text('{"a": 1, "Label": "x"}\n' * 2000)
    found = mixnorm("stream", "t.jsonl", "-t", "kind")
    assert found.code == 1
    assert found.err.strip() == "mixnorm: t.jsonl has no column 'kind'. It has 'a', 'Label'."


def test_awkward_rows(mixnorm, tmp_path):
    text = (
        "sep=;\n"
        "n;money;word;on;label\n"
        "1;1,50;red;true;a\n"
        "\n"
        "2;$ 3;none;FALSE;b\n"
        "3;4\n"
        "1_000;1.234,5;12b;true;a\n"
        'inf;1e999;"two\nlines";false;b\n'
        "NaN;?;;N/A;a\n"
        '"never closed;1;2;3;a\n'
        "5;5;red;true;\n"
        "6;6;red;true;01\n"
        "6;6;red;true;1.0\n"
    )
    (tmp_path / "t.csv").write_text(text)
    found = mixnorm("stream", "t.csv", "-t", "Label", "--drop", "ON", "--predictions", "p.csv")
    assert found.code == 0, found.err
    assert "Unreadable and left out: 2 rows (lines 6, 11; line 6: 2 entries" in found.err
    assert "Predicted but not learned from, without a target: 1 row." in found.err
    model = package.load("t.mixnorm")
    assert model.target == "label"
    assert model.classes.tolist() == ["a", "b", "1"]
    assert {column.name: column.kind for column in model.kinds} == {
        "n": "category", "money": "number", "word": "category",
    }  # fmt: skip
    assert set(model.estimator.vocabulary_) == {
        "n=1", "n=2", "n=1_000", "n=inf", "n=(missing)", "n=6", "money", "word=red", "word=none",
        "word=12b", "word=two\nlines", "word=(missing)",
    }  # fmt: skip
    with (tmp_path / "p.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["line"] for row in written] == ["3", "5", "7", "9", "10", "12", "13", "14"]
    assert [row["target"] for row in written] == ["a", "b", "a", "b", "a", "", "1", "1"]
    assert written[0]["prediction"] == ""
    assert written[1]["prediction"] == "a"


def test_strict(mixnorm, tmp_path):
    lines = [*table(100), "1,2"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    found = mixnorm("stream", "t.csv", "-t", "label", "--strict")
    assert found.code == 1
    assert "t.csv, line 102: 2 entries, but the header has 7 (delimiter ',')." in found.err
    model = package.load("t.mixnorm")
    assert (model.lines, model.estimator.n_rounds_) == (101, 100)
    (tmp_path / "t.csv").write_text("\n".join(table(120)))  # mended
    again = mixnorm("stream", "t.csv", "-m", "t.mixnorm", "--resume", "--strict", "--json")
    assert again.code == 0, again.err


def test_categories(mixnorm, tmp_path):
    (tmp_path / "t.csv").write_text("code,label\n" + "01,a\n1.0,a\n2,b\n" * 5)
    assert mixnorm("stream", "t.csv", "-t", "label", "--category", "code").code == 0
    assert list(package.load("t.mixnorm").estimator.vocabulary_) == ["code=1", "code=2"]
    found = mixnorm("predict", "t.mixnorm", "t.csv", "--json")
    assert found.json["error"] == 0


def test_hashed_names(mixnorm, rows):
    assert mixnorm("stream", rows, "-t", "label", "--hash", 32).code == 0
    estimator = package.load("rows.mixnorm").estimator
    assert estimator.n_features_in_ == 32
    assert estimator.vocabulary_ == {}
    assert "hashed into 32 columns" in mixnorm("show", "rows.mixnorm").out
    assert mixnorm("predict", "rows.mixnorm", rows, "--json").json["error"] < 0.5


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_numbers(mixnorm, tmp_path, loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3)).round(3)
    y = (3 * X[:, 0] - X[:, 1] + 5).round(3)
    lines = [",".join(map(str, [*row, value])) for row, value in zip(X.tolist(), y, strict=True)]
    lines.insert(7, "1,2,3,none")
    (tmp_path / "t.csv").write_text("a,b,c,y\n" + "\n".join(lines))
    words = ["stream", "t.csv", "-t", "y", "--learner", "regressor", "--loss", loss]
    found = mixnorm(*words)
    assert found.code == 0, found.err
    assert ("RMSE" if loss == "squared" else "mean absolute loss") in found.out
    assert "line 9: a target that is not a number, 'none'" in found.err
    model = package.load("t.mixnorm")
    assert model.task == "regression"
    assert mixnorm("predict", "t.mixnorm", "t.csv", "--json").json["error"] < 1.0
    (tmp_path / "same.csv").write_text("a,y\n" + "1,2\n" * 9)
    found = mixnorm("stream", "same.csv", "-t", "y", "--learner", "regressor")
    assert "has only one value, 2.0" in found.err


def test_running_lines(mixnorm, rows, tmp_path):
    lines = mixnorm("stream", rows, "-t", "label", "-m", "m").out.splitlines()
    assert lines[0].split()[:2] == ["rows", "mistakes"]
    assert [int(line.split()[0]) for line in lines[1:11]] == [2**power for power in range(10)]
    lines = mixnorm("stream", rows, "-t", "label", "-m", "m", "--every", 250).out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["250", "500"]
    first, second = (int(line.split()[1]) for line in lines[1:3])
    assert lines[2].split()[4] == f"{100 * (second - first) / 250:.1f}"
    found = mixnorm("stream", rows, "-t", "label", "-m", "m", "--json")
    assert found.json["mistakes"] == package.load("m").estimator.mistakes_
    assert found.json["error"] == pytest.approx(found.json["mistakes"] / 600)
    assert len(mixnorm("stream", rows, "-t", "label", "-m", "m", "-q").out.splitlines()) == 3


def test_predict_and_show(mixnorm, rows, tmp_path):
    assert mixnorm("stream", rows, "-t", "label").code == 0
    (tmp_path / "new.csv").write_text("colour\tx1\nred\t3\n?\t-3\n")
    found = mixnorm("predict", "rows.mixnorm", "new.csv", "--probabilities", "--keep", "x1")
    assert found.code == 0, found.err
    written = list(csv.DictReader(found.out.splitlines()))
    assert [row["x1"] for row in written] == ["3", "-3"]
    assert written[0]["prediction"] == "b"
    assert sum(float(written[0][f"probability {label}"]) for label in "abc") == pytest.approx(1)
    assert "taken as missing in every row: 'x0', 'x2', 'x3', 'x4'" in found.err
    python = package.load("rows.mixnorm").predict([{"colour": "red", "x1": 3}, {"x1": -3}])
    assert python.tolist() == [row["prediction"] for row in written]
    assert "600 rows, error rate" in mixnorm("show", "rows.mixnorm").out
    assert mixnorm("show", "rows.mixnorm", "--json").json["parameters"]["norm"] == "l2,2"
    (tmp_path / "strange.csv").write_text("p,q\n1,2\n")
    assert "none of the columns" in mixnorm("predict", "rows.mixnorm", "strange.csv").err
    assert mixnorm("predict", "rows.mixnorm", "new.csv", "-k", 1).code == 2
    assert mixnorm("predict", "rows.mixnorm", "new.csv", "--format", "parquet").code == 2
    assert mixnorm("predict", "rows.mixnorm", "new.csv", "--keep", "z").code == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.csv is empty; give a table with a header and rows."),
        ("\n\n", "t.csv is empty; give a table with a header and rows."),
        ("x,y\n", "t.csv has a header but no rows."),
        ("x,z\n1,2\n", "t.csv has no column 'y'. It has 'x', 'z'."),
        ("x,y\n1,\n2,NA\n", "The target 'y' is missing in every row."),
        (
            "x,y\n1,a\n2,a\n",
            "The target 'y' has only one class, a; learning needs two.",
        ),
        ("x,y\n1\n2\n", "t.csv has no row that can be read; line 2 has 1 entry, but the header"),
        ('x,"y\n1,2\n', "t.csv is not a table: in line 1, a quote is never closed."),
        ("<html><body>", "t.csv is not a table but looks like HTML or XML; write it as CSV."),
        ("1 1:2\n0 1:3\n", "t.csv is libsvm, which cannot be read line by line"),
        ("x,y\n" + "".join(f"1,{n}\n" for n in range(99)), "which is too many"),
    ],
)
def test_what_cannot_be_learned_from(mixnorm, tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    found = mixnorm("stream", "t.csv", "-t", "y")
    assert found.code == 1
    assert message in found.err
    assert found.err.count("\n") == 1
    assert not (tmp_path / "t.mixnorm").exists()


def test_what_cannot_be_asked_for(mixnorm, rows, tmp_path, monkeypatch):
    def refused(*words):
        found = mixnorm("stream", *words)
        assert found.code == 2, found.err
        return found.err

    assert "--target is missing; rows.csv has the columns x0, x1" in refused(rows)
    assert "there is no model rows.mixnorm" in refused(rows, "--resume")
    assert "no folder" in refused(rows, "-t", "label", "-m", "gone/m.mixnorm")
    assert "would replace the table" in refused(rows, "-t", "label", "-m", rows)
    assert "would replace" in refused(rows, "-t", "label", "-m", "m", "--predictions", "m")
    assert "has no file name" in refused("-", "-t", "label")
    assert "perceptron" in refused(rows, "-t", "y", "--learner", "perceptron", "--eta0", 1)
    assert "does not go with --learner mirror" in refused(rows, "-t", "label", "--loss", "huber")
    assert "names the target" in refused(rows, "-t", "label", "--drop", "label")
    assert mixnorm("stream", rows, "-t", "label").code == 0
    assert "rows.mixnorm exists" in refused(rows, "-t", "label")
    assert "cannot be changed" in refused(rows, "--resume", "--norm", "l2,1")
    assert "predicts 'label'" in refused(rows, "--resume", "-t", "x1")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    assert "name a FILE" in refused("-t", "label", "-m", "m")
    assert mixnorm("stream", "gone.csv", "-t", "label").code == 1
    monkeypatch.setattr("mixnorm.cli.arguments.parser.os.access", lambda place, mode: False)
    assert "no permission" in refused(rows, "-t", "label", "-m", "m.mixnorm")


def test_a_model_of_another_kind(mixnorm, iris):
    assert mixnorm("fit", iris, "--target", "species", "-k", 1, "-m", "iris.mixnorm").code == 0
    found = mixnorm("stream", iris, "-m", "iris.mixnorm", "--resume")
    assert found.code == 1
    assert "cannot resume" in found.err
    assert mixnorm("predict", "iris.mixnorm", iris, "--format", "jsonl").code == 2


def test_a_disk_that_is_full(mixnorm, rows, monkeypatch):
    from mixnorm.cli.stream import run

    def full(model, place):
        raise OSError(28, "No space left on device", str(place))

    monkeypatch.setattr(run, "save", full)
    found = mixnorm("stream", rows, "-t", "label", "-m", "m", "--checkpoint", 100, "-q")
    assert found.code == 1
    assert found.err.strip() == "mixnorm: m: No space left on device"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_reader_of_predictions_that_goes_away(server, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    process = start(server, tmp_path, "--predictions", "pipe")
    process.stdin.write("\n".join(table()[:50]).encode() + b"\n")
    process.stdin.flush()
    with (tmp_path / "pipe").open("rb") as reader:
        assert reader.readline() == b"line,prediction,target\n"
        for _ in range(49):
            reader.readline()
    status, _, err = process.finish(("\n".join(table()[50:]) + "\n").encode())
    assert status == 0, err
    assert b"Traceback" not in err
    assert package.load(tmp_path / "m.mixnorm").estimator.n_rounds_ >= 49


def test_help(mixnorm):
    found = subprocess.run(
        [sys.executable, "-m", "mixnorm", "stream", "--help"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0
    for word in ("examples:", "--resume", "--checkpoint", "--hash", "JSON lines", "Ctrl-C"):
        assert word in found.stdout
    assert PARSED == _rows.STREAM_FORMATS


def test_losses_are_those_of_the_estimators():
    from mixnorm.cli.arguments.parser import LOSSES
    from mixnorm.estimators.online.regressor import REGRESSION
    from mixnorm.losses import JOINT

    assert set(LOSSES["mirror"]) == set(JOINT) - {"squared_hinge"}
    assert set(LOSSES["regressor"]) == set(REGRESSION)


def test_many_rows(mixnorm, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 20)).round(4)
    label = np.where(X[:, 0] > X[:, 1], "a", "b")
    lines = [
        ",".join(map(str, row)) + f",{own}" for row, own in zip(X.tolist(), label, strict=True)
    ]
    names = ",".join([*(f"x{place}" for place in range(20)), "y"])
    (tmp_path / "t.csv").write_text("\n".join([names, *lines]))
    found = mixnorm("stream", "t.csv", "-t", "y", "-m", "m", "--json")
    assert found.json["rows"] == 10_000
    assert found.json["error"] < 0.1


def test_show_takes_online_models_from_python(mixnorm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = np.eye(4), np.arange(4.0)
    dicts = [{"size": 1.0, "colour": "red"}, {"size": -1.0}]
    for model, words in (
        (package.MirrorDescentClassifier().fit(X, y.astype(int)), "4 classes: 0, 1, 2, 3"),
        (package.GroupPerceptron().fit(dicts, ["u", "v"]), "size"),
        (package.MirrorDescentRegressor(hash_features=8).fit(dicts, [1.0, 2.0]), "8 features."),
        (package.OnlineMultiTaskLearner().fit(X, y, task=list("abab")), "2 tasks: a, b"),
    ):
        package.save(model, "online.mixnorm")
        shown = mixnorm("show", "online.mixnorm")
        assert words in shown.out
        assert "learns from streams" in shown.out
        told = mixnorm("show", "online.mixnorm", "--json").json
        assert told["estimator"] == type(model).__name__
        assert told["rows"] == model.n_rounds_


def test_show_takes_learners_of_tasks_from_python(mixnorm, tmp_path):
    X, targets = np.eye(4), {"price": [1.0, 2.0, 3.0, 4.0], "sold": ["no", "yes", "no", "yes"]}
    losses = {"price": "squared", "sold": "logistic"}
    model = package.MultiTaskLearner(losses=losses).fit(X, targets)
    package.save(model, tmp_path / "tasks.mixnorm")
    shown = mixnorm("show", tmp_path / "tasks.mixnorm")
    assert "2 tasks: price, sold" in shown.out
    assert "classes" not in shown.out


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (package.MKLClassifier(), "Kernels with the largest weights: gaussian"),
        (package.LinearMulticlassSVC(), "those with the largest weights:"),
        (package.MixedNormClassifier(), "those with the largest weights:"),
    ],
    ids=str,
)
def test_show_takes_other_models_from_python(mixnorm, tmp_path, monkeypatch, model, told):
    monkeypatch.chdir(tmp_path)
    X, y = load_iris(return_X_y=True)
    package.save(model.fit(X, y), "m.mixnorm")
    out = mixnorm("show", "m.mixnorm").out
    assert f"{type(model).__name__}, saved from Python.\n" in out
    assert "3 classes: 0, 1, 2" in out
    assert told in out
