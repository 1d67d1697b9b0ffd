"""``mixnorm stream`` on raw tables: kinds of columns, lines without an end, errors and rises."""

import json
import sys
from itertools import pairwise

import numpy as np
import pytest

import mixnorm as package

from .conftest import state


def cars(rows=400, seed=0):
    """Lines of a table with dates, a category, gaps, an odd entry, a key and names."""
    rng = np.random.default_rng(seed)
    power, fuel = rng.gamma(4.0, 30.0, rows).round(1), rng.choice(["gas", "oil"], rows)
    label = np.where(power + 60 * (fuel == "oil") > 140, "van", "bus")
    lines = ["id;power;fuel;seen;owner;label"]
    for row in range(rows):
        own = "NA" if row % 9 == 4 else f"{power[row]}".replace(".", ",")
        own = "broken" if row == 2 else own
        kind = "" if row % 11 == 5 else fuel[row]
        day = f"{1 + row % 28}.{1 + row % 12}.2023"
        lines.append(f"{row + 1};{own};{kind};{day};Mr. {row};{label[row]}")
    return lines


def kinds(model):
    return {column.name: column.kind for column in model.kinds}


def test_columns_are_those_of_fit(mixnorm, tmp_path):
    (tmp_path / "cars.csv").write_text("\n".join(cars()) + "\n")
    found = mixnorm("stream", "cars.csv", "-t", "label")
    assert found.code == 0, found.err
    model = package.load("cars.mixnorm")
    assert kinds(model) == {
        "id": "left out", "power": "number", "fuel": "category", "seen": "date",
        "owner": "left out",
    }  # fmt: skip
    assert model.first_rows == []
    names = set(model.estimator.vocabulary_)
    assert {"power", "fuel=gas", "fuel=oil", "fuel=(missing)"} <= names
    assert {"seen (days since 2023-01-01)", "seen (time of week, sine)"} <= names
    assert not any("broken" in name or name.startswith(("owner", "id")) for name in names)
    assert "Dates: seen (day first)." in found.err
    assert "power (44, taken at the mean), fuel (36, a level of their own)" in found.err
    assert "Taken as missing in power: 1 unreadable ('broken')." in found.err
    assert "Left out: owner (nearly every text differs, 256 of 256; --category owner" in found.err
    assert "Left out: id (it only numbers the rows; --number id keeps it" in found.err
    assert mixnorm("fit", "cars.csv", "-t", "label", "-k", 1, "-m", "f.mixnorm").code == 0
    fitted = package.load("f.mixnorm").encoder
    used = {name for name, kind in kinds(model).items() if kind != "left out"}
    assert set(fitted.names) == used


def test_dates_of_a_log_do_no_harm(mixnorm, tmp_path):
    rng = np.random.default_rng(0)
    times = np.datetime64("2024-01-01") + np.arange(8000) * np.timedelta64(10, "m")
    x = rng.normal(size=8000).round(3)
    label = np.where(x + rng.normal(0.0, 0.3, 8000) > 0.5, "a", "b")
    lines = [f"{a},{b},{c}" for a, b, c in zip(times, x, label, strict=True)]
    (tmp_path / "log.csv").write_text("\n".join(["time,x,label", *lines]) + "\n")
    found = mixnorm("stream", "log.csv", "-t", "label", "--json").json
    assert found["columns"] == {"time": "date", "x": "number"}
    without = mixnorm(
        "stream", "log.csv", "-t", "label", "-m", "m", "--drop", "time", "--json"
    ).json
    assert found["error"] < without["error"] + 0.01
    assert found["rises"] == []


def test_what_columns_are_can_be_said(mixnorm, tmp_path):
    (tmp_path / "cars.csv").write_text("\n".join(cars(60)) + "\n")
    words = ["--number", "id", "--category", "owner", "--drop", "seen"]
    assert mixnorm("stream", "cars.csv", "-t", "label", *words).code == 0
    model = package.load("cars.mixnorm")
    assert kinds(model) == {
        "id": "number", "power": "number", "fuel": "category", "owner": "category",
    }  # fmt: skip
    found = mixnorm("stream", "cars.csv", "--resume", "--number", "power")
    assert found.code == 2
    assert "cannot be changed" in found.err


@pytest.mark.parametrize(
    ("stops", "options"), [((1, 3, 31, 200), []), ((33,), ["--hash", 64])], ids=str
)
def test_one_state_wherever_it_is_stopped(mixnorm, tmp_path, stdin, stops, options):
    lines = cars(300)
    (tmp_path / "cars.csv").write_text("\n".join(lines) + "\n")
    assert mixnorm("stream", "cars.csv", "-t", "label", *options).code == 0
    whole, learned = package.load("cars.mixnorm"), state("cars.mixnorm")
    for rows in stops:
        (tmp_path / "m.mixnorm").unlink(missing_ok=True)
        (tmp_path / "part.csv").write_text("\n".join(lines[: rows + 1]) + "\n")
        words = ["stream", "part.csv", "-t", "label", "-m", "m.mixnorm", "--checkpoint", rows]
        assert mixnorm(*words, *options).code == (0 if rows > 3 else 1)  # a single class
        part = package.load("m.mixnorm")
        assert len(part.first_rows) == rows
        assert mixnorm("stream", "cars.csv", "-m", "m.mixnorm", "--resume").code == 0
        assert state("m.mixnorm") == learned, rows
        parts = package.load("m.mixnorm")
        assert whole.kinds == parts.kinds
        assert whole.account == parts.account
    stdin(lines)
    assert mixnorm("stream", "-t", "label", "-m", "slow.mixnorm", *options).code == 0
    assert state("slow.mixnorm") == learned
    assert package.load("slow.mixnorm").account == whole.account


def test_predictions_are_of_rows_read_in_the_same_way(mixnorm, tmp_path):
    lines = cars()
    (tmp_path / "cars.csv").write_text("\n".join(lines) + "\n")
    assert mixnorm("stream", "cars.csv", "-t", "label").code == 0
    new = ["seen;fuel;power;id", "1.2.2023;oil;150,5;7", "?;;NA;8", "13.6.2024;12b;-3;9"]
    (tmp_path / "new.csv").write_text("\n".join(new) + "\n")
    found = mixnorm("predict", "cars.mixnorm", "new.csv", "--json")
    assert found.code == 0, found.err
    assert not found.json["notes"]
    model = package.load("cars.mixnorm")
    rows = [
        {"seen": "1.2.2023", "fuel": "oil", "power": 150.5},
        {"fuel": None, "power": np.nan},
        {"seen": "13.6.2024", "fuel": "12b", "power": "-3"},
    ]
    assert model.predict(rows).tolist() == found.json["columns"]["prediction"]
    assert found.json["columns"]["prediction"][0] == "van"


def test_kinds_of_json_lines(mixnorm, tmp_path):
    rng = np.random.default_rng(0)
    size = rng.normal(50.0, 5.0, 300).round(3)
    objects = [
        {
            "at": f"2024-03-{1 + place % 28:02d}T10:{place % 60:02d}:00Z",
            "car": {"size": None if place % 10 == 3 else size[place]},
            "text": f"message {place}",
            "label": "big" if size[place] > 50 else "small",
        }
        for place in range(300)
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, objects)))  # no line break
    assert mixnorm("stream", "log.jsonl", "-t", "label").code == 0
    model = package.load("log.mixnorm")
    assert kinds(model) == {"at": "date", "car.size": "number", "text": "left out"}
    assert model.estimator.n_rounds_ == 300
    assert model.before is None  # half an object would not be one
    assert "at (time of day, sine)" in model.estimator.vocabulary_


@pytest.mark.parametrize("cut", range(1, 28, 3))
def test_a_line_that_was_cut_is_learned_from_once(mixnorm, tmp_path, cut):
    text = "\n".join(cars(40)) + "\n"
    log = tmp_path / "log.csv"
    log.write_text(text)
    assert mixnorm("stream", "log.csv", "-t", "label", "-m", "whole.mixnorm").code == 0
    end = len("\n".join(cars(40)[:31])) + cut  # within line 32, or at its end
    log.write_text(text[:end])
    words = ["--predictions", "p.csv"]
    assert mixnorm("stream", "log.csv", "-t", "label", "-m", "m.mixnorm", *words).code == 0
    again = ["stream", "log.csv", "-m", "m.mixnorm", "--resume", *words]
    assert mixnorm(*again).code == 0  # nothing is new
    log.write_text(text)
    found = mixnorm(*again)
    assert found.code == 0, found.err
    assert "all its lines are new" not in found.err
    model = package.load("m.mixnorm")
    assert model.estimator.n_rounds_ == 40
    assert model.before is None
    assert model.account == package.load("whole.mixnorm").account
    assert state("m.mixnorm") == state("whole.mixnorm")
    assert [int(line.split(",")[0]) for line in (tmp_path / "p.csv").read_text().split()[1:]] == [
        *range(2, 42)
    ]


def test_a_line_that_grows(mixnorm, tmp_path):
    text = "\r\n".join(cars(30)) + "\r\n"
    log = tmp_path / "log.csv"
    log.write_bytes(text.encode())
    assert mixnorm("stream", "log.csv", "-t", "label", "-m", "whole.mixnorm").code == 0
    start = text.index("\n30;")
    log.write_bytes(text[:start].encode())
    assert mixnorm("stream", "log.csv", "-t", "label", "-m", "m.mixnorm").code == 0
    for end in range(start + 1, len(text) + 1, 2):
        log.write_bytes(text[:end].encode())
        assert mixnorm("stream", "log.csv", "-m", "m.mixnorm", "--resume").code == 0
    log.write_bytes(text.encode())
    assert mixnorm("stream", "log.csv", "-m", "m.mixnorm", "--resume").code == 0
    assert state("m.mixnorm") == state("whole.mixnorm")
    assert package.load("m.mixnorm").before is None


def test_a_cut_pipe_goes_on_with_its_file(mixnorm, tmp_path, stdin):
    lines = cars(40)
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    assert mixnorm("stream", "log.csv", "-t", "label", "-m", "whole.mixnorm").code == 0
    stdin(lines[:30])
    sys.stdin.buffer.lines.append(lines[30][:-1])
    sys.stdin.buffer.last = True
    assert mixnorm("stream", "-t", "label", "-m", "m.mixnorm").code == 0
    assert package.load("m.mixnorm").classes.tolist()[-1] in ("va", "bu")
    assert mixnorm("stream", "log.csv", "-m", "m.mixnorm", "--resume").code == 0
    assert state("m.mixnorm") == state("whole.mixnorm")


def test_half_a_row_is_told(mixnorm, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("\n".join(cars(30)) + "\n31;5,5;g")
    found = mixnorm("stream", "log.csv", "-t", "label")
    assert found.code == 0
    assert (
        "Line 32, the last of log.csv, has no line break and is not a whole row (3 entries"
        in found.err
    )
    assert package.load("log.mixnorm").lines == 31
    found = mixnorm("predict", "log.mixnorm", "log.csv", "--json")
    assert found.json["rows"] == 30
    assert "Left out because it is not a whole row: line 32, the last" in found.json["notes"][0]
    found = mixnorm("stream", "log.csv", "-t", "label", "-m", "s.mixnorm", "--strict")
    assert found.code == 1
    assert "log.csv, line 32: 3 entries, but the header has 6" in found.err


def test_a_file_without_a_last_line_break(mixnorm, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("\n".join(cars(30)))
    assert mixnorm("stream", "log.csv", "-t", "label").code == 0
    assert package.load("log.mixnorm").estimator.n_rounds_ == 30
    assert mixnorm("stream", "log.csv", "--resume").code == 0
    log.write_text("\n".join(cars(30)) + "\n")
    found = mixnorm("stream", "log.csv", "--resume")
    assert "skipped 31 lines that an earlier run read." in found.err
    model = package.load("log.mixnorm")
    assert model.estimator.n_rounds_ == 30
    assert model.before is None


def drifting(rows=6000, change=4000):
    rng = np.random.default_rng(0)
    x = rng.normal(size=rows).round(4)
    label = np.where((x > 0) ^ (np.arange(rows) >= change), "a", "b")
    return "x,label\n" + "".join(f"{a},{b}\n" for a, b in zip(x, label, strict=True))


def test_errors_stand_beside_those_of_the_commonest_class(mixnorm, tmp_path):
    (tmp_path / "t.csv").write_text(drifting(3000, 3000))
    found = mixnorm("stream", "t.csv", "-t", "label", "--every", 1000)
    lines = [line.split() for line in found.out.splitlines()]
    assert lines[0][-3:] == ["commonest", "class", "rows/s"]
    labels = [line.split(",")[1] for line in drifting(3000, 3000).split()[1:]]
    wrong = [
        label != max(["a", "b"], key=labels[:place].count)
        for place, label in enumerate(labels)
        if place and labels[:place].count("a") != labels[:place].count("b")
    ]
    told = mixnorm("stream", "t.csv", "-t", "label", "-m", "m", "--every", 1000, "--json").json
    assert told["guess_error"] == pytest.approx(np.mean(wrong), abs=0.01)
    assert len(told["course"]) == 3
    for line, figures in zip(lines[1:4], told["course"], strict=True):
        assert int(line[0]) == figures["rows"]
        assert line[4] == f"{100 * figures['last_error']:.1f}"
        assert line[6] == f"{100 * figures['last_guess_error']:.1f}"
    assert told["rises"] == []
    assert f"Guessing the commonest class so far: {100 * told['guess_error']:.1f} %." in found.out
    assert f"class so far: {100 * told['guess_error']:.1f} %." in mixnorm("show", "t.mixnorm").out


def test_a_rise_of_the_error_is_seen(mixnorm, tmp_path):
    (tmp_path / "t.csv").write_text(drifting())
    found = mixnorm("stream", "t.csv", "-t", "label")
    lines = found.out.splitlines()
    rose = [line for line in lines if line.startswith("Error rate rose from ")]
    assert len(rose) == 2  # when it happens, and at the end
    assert "in rows 4001 to 4500; the data may have changed." in rose[0]
    rows = [int(line.split()[0]) for line in lines if line.strip()[:1].isdigit()][:-2]
    assert rows[:12] == [*(2**power for power in range(11)), 1200]
    assert all(then - now <= now / 4 for now, then in pairwise(rows[10:]))
    told = mixnorm("stream", "t.csv", "-t", "label", "-m", "m", "--json").json
    [rise] = told["rises"]
    assert (rise["first"], rise["last"]) == (4001, 4500)
    assert rise["after"] > 2 * rise["before"]
    whole = package.load("m").account
    (tmp_path / "part.csv").write_text("\n".join(drifting().split()[:4124]) + "\n")
    assert mixnorm("stream", "part.csv", "-t", "label", "-m", "p").code == 0
    assert mixnorm("stream", "t.csv", "-m", "p", "--resume").code == 0
    assert package.load("p").account == whole


def test_numbers_stand_beside_their_mean(mixnorm, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000).round(3)
    y = (3 * x + 5).round(3)
    (tmp_path / "t.csv").write_text(
        "x,y\n" + "".join(f"{a},{b}\n" for a, b in zip(x, y, strict=True))
    )
    found = mixnorm("stream", "t.csv", "-t", "y", "--learner", "regressor")
    assert found.code == 0, found.err
    assert "mean" in found.out.splitlines()[0]
    told = mixnorm("stream", "t.csv", "-t", "y", "--learner", "regressor", "-m", "m", "--json").json
    means = np.concatenate([y[:1], np.cumsum(y)[:-1] / np.arange(1, 2000)])  # the first is free
    assert told["guess_error"] == pytest.approx(np.sqrt(np.mean((y - means) ** 2)))
    assert told["error"] < told["guess_error"]
    assert f"Guessing the mean so far: {told['guess_error']:.4g}." in found.out


def test_a_model_that_is_no_better_says_so(mixnorm, tmp_path):
    rng = np.random.default_rng(0)
    rows = "".join(f"{rng.normal():.3f},{rng.choice(['a', 'a', 'a', 'b'])}\n" for _ in range(300))
    (tmp_path / "t.csv").write_text("x,label\n" + rows)
    assert "The model does no better." in mixnorm("stream", "t.csv", "-t", "label").out


def test_a_model_of_an_older_version_goes_on(mixnorm, tmp_path):
    from dataclasses import replace

    lines = cars(300)
    (tmp_path / "cars.csv").write_text("\n".join(lines[:200]) + "\n")
    assert mixnorm("stream", "cars.csv", "-t", "label").code == 0
    model = package.load("cars.mixnorm")
    old = replace(model, kinds=(), first_rows=[], account={}, numbers=(), before=None)
    package.save(old, "cars.mixnorm")
    (tmp_path / "cars.csv").write_text("\n".join(lines) + "\n")
    found = mixnorm("stream", "cars.csv", "--resume", "--json")
    assert found.code == 0, found.err
    assert found.json["rows"] == 300
    assert found.json["columns"] == {}
    assert 0 < found.json["guess_error"] < 1
    assert mixnorm("predict", "cars.mixnorm", "cars.csv", "--json").json["error"] < 0.5
