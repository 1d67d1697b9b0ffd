"""``mixnorm predict`` and ``mixnorm show``."""

import csv
import io

import numpy as np
import pytest

import mixnorm as package
from mixnorm import ShareBoostClassifier

from .conftest import flowers, passengers


@pytest.fixture
def model(mixnorm, titanic):
    assert mixnorm("fit", titanic, "--target", "Survived", "-k", 3, "-q").code == 0
    return "titanic.mixnorm"


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_predictions_are_those_of_the_model(mixnorm, model, titanic, tmp_path):
    found = mixnorm("predict", model, titanic, "--probabilities", "--keep", "Name", "-q")
    table = rows(found.out)
    frame = passengers()
    loaded = package.load(tmp_path / model)
    told = loaded.apply(frame)
    assert [row["prediction"] for row in table] == told.values.astype(str).tolist()
    assert [row["Name"] for row in table] == frame["Name"].tolist()
    chances = np.array([[float(row[f"probability {k}"]) for k in (0, 1)] for row in table])
    np.testing.assert_allclose(chances, told.probabilities)
    np.testing.assert_array_equal(chances.argmax(axis=1), told.values)


def test_the_error_is_told_where_the_table_has_the_target(mixnorm, model, titanic):
    found = mixnorm("predict", model, titanic, "-o", "p.csv", "--json")
    table = passengers()
    guess = package.load(model).predict(table)
    assert found.json["error"] == pytest.approx(np.mean(guess != table["Survived"]))


def test_only_the_chosen_columns_are_needed(mixnorm, model, tmp_path):
    needed = package.load(tmp_path / model).needed
    frame = passengers()
    frame[needed[::-1]].to_csv(tmp_path / "few.csv", index=False)
    found = mixnorm("predict", model, "few.csv")
    assert [int(row["prediction"]) for row in rows(found.out)] == list(
        package.load(tmp_path / model).predict(frame)
    )


def test_missing_columns_are_named(mixnorm, model, tmp_path):
    passengers().rename(columns={"Sex": "sexe"}).to_csv(tmp_path / "new.csv", index=False)
    found = mixnorm("predict", model, "new.csv", "-o", "p.csv")
    assert found.code == 1
    assert "lacks the column 'Sex'" in found.err
    assert not (tmp_path / "p.csv").exists()


def test_extra_columns_are_ignored_and_told(mixnorm, model, titanic, tmp_path):
    frame = passengers()
    frame["Extra"] = 1
    frame.to_csv(tmp_path / "new.csv", index=False)
    found = mixnorm("predict", model, "new.csv")
    assert "Ignored columns that training did not have: Extra." in found.err
    assert found.out == mixnorm("predict", model, titanic).out


def test_unseen_levels_and_gaps_are_told(mixnorm, model, tmp_path):
    frame = passengers()
    frame.loc[:4, "Sex"] = "other"
    frame.loc[5, "Sex"] = None
    frame.to_csv(tmp_path / "new.csv", index=False)
    found = mixnorm("predict", model, "new.csv")
    assert "Sex has levels that training did not have: 'other' (5 rows)." in found.err
    assert "Sex is missing in 1 of 160 rows; taken as none of its levels." in found.err
    assert len(rows(found.out)) == 160


@pytest.mark.parametrize("count", [0, 1])
def test_few_rows(mixnorm, model, tmp_path, count):
    passengers().head(count).to_csv(tmp_path / "new.csv", index=False)
    found = mixnorm("predict", model, "new.csv", "--probabilities", "-q")
    assert found.code == 0
    assert len(rows(found.out)) == count
    assert found.out.splitlines()[0] == "prediction,probability 0,probability 1"


def test_a_smaller_model(mixnorm, model, titanic):
    one = mixnorm("predict", model, titanic, "--features", 1, "-q")
    sexes = passengers()["Sex"]
    assert [row["prediction"] for row in rows(one.out)] == [str(int(s == "female")) for s in sexes]
    more = mixnorm("predict", model, titanic, "--features", 4)
    assert more.code == 1
    assert "has only 3 features, not 4" in more.err


def test_output_goes_to_a_file(mixnorm, model, titanic, tmp_path):
    found = mixnorm("predict", model, titanic, "--output", "p.csv", "--json")
    assert found.json["output"] == "p.csv"
    assert found.json["rows"] == 160
    assert len(rows((tmp_path / "p.csv").read_text())) == 160


def test_predictions_as_json(mixnorm, model, titanic):
    told = mixnorm("predict", model, titanic, "--json", "-q").json
    assert len(told["columns"]["prediction"]) == 160


def test_texts_with_commas_survive(mixnorm, tmp_path):
    frame = flowers()
    frame["species"] = frame["species"] + ', "so-called"'
    frame.to_csv(tmp_path / "f.csv", index=False)
    mixnorm("fit", "f.csv", "--target", "species", "-k", 2, "-q")
    found = mixnorm("predict", "f.mixnorm", "f.csv", "-q")
    assert {row["prediction"] for row in rows(found.out)} == set(frame["species"])


def test_regression_has_no_probabilities(mixnorm, titanic):
    mixnorm("fit", titanic, "--target", "Fare", "-k", 1, "--drop", "Price", "-q")
    found = mixnorm("predict", "titanic.mixnorm", titanic, "--probabilities")
    assert found.code == 2
    plain = mixnorm("predict", "titanic.mixnorm", titanic, "-q")
    assert all(np.isfinite(float(row["prediction"])) for row in rows(plain.out))


@pytest.mark.parametrize("command", ["predict", "show"])
def test_what_is_no_model(mixnorm, titanic, tmp_path, command):
    words = [titanic] if command == "predict" else []
    found = mixnorm(command, titanic, *words)
    assert found.code == 1
    assert "not a mixnorm model" in found.err
    missing = mixnorm(command, "nothing.mixnorm", *words)
    assert missing.code == 1
    assert "nothing.mixnorm: No such file" in missing.err
    assert "Traceback" not in found.err + missing.err


def test_an_estimator_saved_from_python(mixnorm, titanic, tmp_path):
    frame = flowers().drop(columns=["Id", "species"])
    estimator = ShareBoostClassifier(2).fit(frame, flowers()["species"])
    package.save(estimator, tmp_path / "e.mixnorm")
    told = mixnorm("show", "e.mixnorm", "--json").json
    assert told["features"] == [frame.columns[column] for column in estimator.selected_]
    assert "saved from Python" in mixnorm("show", "e.mixnorm").out
    found = mixnorm("predict", "e.mixnorm", titanic)
    assert found.code == 1
    assert "saved from Python" in found.err


def test_show(mixnorm, model, titanic):
    text = mixnorm("show", model).out
    told = mixnorm("show", model, "--json").json
    assert "predicts 'Survived' (classification)" in text
    assert f"A prediction needs 3 columns of the table and {told['multiply_adds']}" in text
    assert "mixnorm fit" in text
    assert told["needed"][0] == "Sex"
    assert told["classes"] == ["0", "1"]
    assert told["estimator"] == "ShareBoostClassifier"
    assert told["rows"] == 160


def test_the_path_command(mixnorm, iris):
    told = mixnorm("path", iris, "--target", "species", "--json", "-q").json
    assert [row["features"] for row in told["path"]] == [1, 2, 3, 4]
    text = mixnorm("path", iris, "--target", "species", "-q").out
    assert f"Suggested: {told['suggested']} features" in text
    assert "← suggested" in text
