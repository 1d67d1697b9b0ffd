"""Tables with decimal commas, and new ones with points; columns that cannot be read any more."""

import csv
import io

import numpy as np
import pytest

import mixnorm as package
from mixnorm.exceptions import TableError


def table(delimiter, mark, rows=80, start=0, digits=3):
    """Lines of numbers whose sum is the target, ``dense`` all of three decimals and above one."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=200).round(digits), (1.2 + rng.random(200)).round(3)
    lines = [delimiter.join(["a", "dense", "y"])]
    for place in range(start, start + rows):
        values = (f"{a[place]:.{digits}f}", f"{b[place]:.3f}", f"{10 * a[place] - b[place]:.3f}")
        lines.append(delimiter.join(values).replace(".", mark))
    return "\n".join(lines) + "\n"


STYLES = {"commas": (";", ","), "points": (",", "."), "semicolons": (";", "."), "tabs": ("\t", ".")}


@pytest.fixture
def files(tmp_path):
    for name, (delimiter, mark) in STYLES.items():
        (tmp_path / f"{name}.csv").write_text(table(delimiter, mark))
    return STYLES


def values(text):
    return [float(row["prediction"]) for row in csv.DictReader(io.StringIO(text))]


@pytest.mark.parametrize("style", ["commas", "points"])
def test_predictions_do_not_depend_on_the_decimal_mark(mixnorm, files, style):
    assert mixnorm("fit", f"{style}.csv", "-t", "y", "-k", 2, "-m", "m.mixnorm", "-q").code == 0
    assert package.load("m.mixnorm").encoder.columns[1].fill < 3  # not 1,700 for 1.7
    for name in files:
        found = mixnorm("predict", "m.mixnorm", f"{name}.csv")
        assert found.code == 0, found.err
        truth = [float(line.split(",")[-1]) for line in table(",", ".").splitlines()[1:]]
        np.testing.assert_allclose(values(found.out), truth, atol=1e-2)
        assert "unreadable" not in found.err
        rmse = float(found.err.split("RMSE ")[1].split(" ")[0])
        assert rmse < 1e-2


@pytest.mark.parametrize("style", ["commas", "points", "tabs"])
def test_a_stream_learns_the_same_of_all_marks(mixnorm, files, style):
    learner = ("--learner", "regressor", "-q")
    for name in ("points", style):
        model = f"{name}.mixnorm"
        found = mixnorm("stream", f"{name}.csv", "-t", "y", "-m", model, *learner)
        assert found.code == 0, found.err
    plain, other = (package.load(f"{name}.mixnorm").estimator for name in ("points", style))
    np.testing.assert_allclose(other.coef_, plain.coef_)
    found = [mixnorm("predict", f"{style}.mixnorm", f"{name}.csv") for name in files]
    assert [result.code for result in found] == [0] * len(files)
    for result in found:
        np.testing.assert_allclose(values(result.out), values(found[0].out))


def test_a_stream_goes_on_with_another_mark(mixnorm, tmp_path):
    learner = ("--learner", "regressor", "-q", "-t", "y")
    again = ("-q", "--resume")
    for name, (delimiter, mark) in {"same": (";", ","), "other": (",", ".")}.items():
        (tmp_path / "first.csv").write_text(table(";", ",", 60))
        (tmp_path / f"{name}.csv").write_text(table(delimiter, mark, 60, start=60))
        model = ("-m", f"{name}.mixnorm")
        assert mixnorm("stream", "first.csv", *learner, *model).code == 0
        found = mixnorm("stream", f"{name}.csv", *again, *model)
        assert found.code == 0, found.err
    same, other = (package.load(f"{name}.mixnorm") for name in ("same", "other"))
    assert same.estimator.n_rounds_ == other.estimator.n_rounds_ == 120
    frame = [{"a": 0.5, "dense": 1.5}]
    np.testing.assert_allclose(other.predict(frame), same.predict(frame))


BROKEN = "a,dense,y\n" + "?,1.5,\n" * 5 + "one,1.5,\n" * 4 + "two,1.5,\n" + "0.5,1.5,\n" * 4


@pytest.mark.parametrize("command", ["fit", "stream"])
def test_most_of_a_column_unreadable_is_an_error(mixnorm, files, tmp_path, command):
    how = ("-k", 2) if command == "fit" else ("--learner", "regressor")
    done = mixnorm(command, "points.csv", "-t", "y", "-m", "m.mixnorm", "-q", *how)
    assert done.code == 0, done.err
    (tmp_path / "broken.csv").write_text(BROKEN)
    found = mixnorm("predict", "m.mixnorm", "broken.csv", "-o", "out.csv")
    assert found.code == 1
    assert "a is unreadable in 5 of the 9 rows that have it ('one', 'two')" in found.err
    assert "Write it the same way in the new table" in found.err
    assert not (tmp_path / "out.csv").exists()
    (tmp_path / "half.csv").write_text(BROKEN + "0.25,1.5,\n")
    found = mixnorm("predict", "m.mixnorm", "half.csv")
    assert found.code == 0
    assert len(values(found.out)) == 15


def test_a_stream_does_not_go_on_with_what_it_cannot_read(mixnorm, files, tmp_path):
    learner = ("--learner", "regressor", "-q", "-t", "y")
    again = ("-q", "--resume")
    assert mixnorm("stream", "points.csv", *learner, "-m", "m.mixnorm").code == 0
    before = (tmp_path / "m.mixnorm").read_bytes()
    (tmp_path / "broken.csv").write_text("a,dense,y\n" + "one,1.5,2\n" * 150)
    found = mixnorm("stream", "broken.csv", *again, "-m", "m.mixnorm")
    assert found.code == 1
    assert "a is unreadable in " in found.err
    assert (tmp_path / "m.mixnorm").read_bytes() == before


def test_models_in_python_read_and_refuse_alike(mixnorm, files):
    import pandas as pd

    assert mixnorm("fit", "points.csv", "-t", "y", "-k", 2, "-m", "f.mixnorm", "-q").code == 0
    learner = ("--learner", "regressor", "-q")
    assert mixnorm("stream", "points.csv", "-t", "y", "-m", "s.mixnorm", *learner).code == 0
    for model in (package.load("f.mixnorm"), package.load("s.mixnorm")):
        commas = pd.DataFrame({"a": ["0,5", "-1,25"], "dense": ["1,517", "1,250"]})
        points = pd.DataFrame({"a": [0.5, -1.25], "dense": [1.517, 1.25]})
        np.testing.assert_allclose(model.predict(commas), model.predict(points))
        with pytest.raises(TableError, match="a is unreadable in 2 of the 2 rows"):
            model.predict(commas.assign(a="van"))
        assert len(model.predict(points.assign(a=None))) == 2


def test_dates_written_otherwise_are_an_error(mixnorm, tmp_path):
    days = np.datetime64("2023-01-01") + np.arange(60)
    rows = [f"{day},{number / 60}" for number, day in enumerate(days)]
    (tmp_path / "days.csv").write_text("day,y\n" + "\n".join(rows) + "\n")
    assert mixnorm("fit", "days.csv", "-t", "y", "-k", 1, "-q").code == 0
    (tmp_path / "new.csv").write_text("day\n31/01/23 Tue\n30/01/23 Mon\n")
    found = mixnorm("predict", "days.mixnorm", "new.csv")
    assert found.code == 1
    assert "day is unreadable in 2 of the 2 rows" in found.err
    assert "it was a date in training, such as 2023-01-31" in found.err


def test_weights_may_have_decimal_commas(mixnorm, tmp_path):
    lines = table(";", ",").splitlines()
    text = "\n".join([lines[0] + ";w", *(line + ";0,5" for line in lines[1:])])
    (tmp_path / "weighted.csv").write_text(text + "\n")
    found = mixnorm("fit", "weighted.csv", "-t", "y", "--weight", "w", "-k", 2, "-q")
    assert found.code == 0, found.err
