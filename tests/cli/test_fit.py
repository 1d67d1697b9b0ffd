"""``mixnorm fit``: what it writes and what it says."""

import html
import json
import re
import shlex
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixnorm as package
from mixnorm import ShareBoostClassifier, ShareBoostRegressor
from mixnorm.cli import search
from mixnorm.pools import Columns
from mixnorm.tables import TableEncoder, TableModel

from .conftest import flowers, passengers


def test_model_report_and_summary(mixnorm, titanic, tmp_path):
    words = ["fit", titanic, "--target", "Survived", "--features", 3]
    words += ["--report", "report.html", "--model", "out.mixnorm"]
    found = mixnorm(*words)
    assert found.code == 0
    model = package.load(tmp_path / "out.mixnorm")
    assert isinstance(model, TableModel)
    assert len(model.needed) == 3
    assert model.needed[0] == "Sex"
    assert "Model written to out.mixnorm." in found.out
    assert "Report written to report.html." in found.out
    assert f"3 of 5 features: error rate {100 * model.facts['error']:.1f} %" in found.out
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    command = shlex.join(["mixnorm", *map(str, words)])
    assert command in page
    assert model.facts["command"] == command


def test_json_says_it_all(mixnorm, titanic):
    told = mixnorm("fit", titanic, "--target", "Survived", "--features", 2, "--json").json
    assert told["model"] == "titanic.mixnorm"
    assert told["task"] == "classification"
    assert told["rows"] == 160
    assert told["chosen"] == 2
    assert [row["features"] for row in told["path"]] == [1, 2]
    assert {"name", "kind", "loss", "gain", "error", "standard_error"} <= set(told["path"][0])
    assert told["path"][0]["kind"] == "category (2 levels)"
    assert told["interrupted"] == ""
    assert told["error"] == told["path"][1]["error"]
    frame = passengers()
    y = frame["Survived"].to_numpy()
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(y, y)
    encoder = TableEncoder.plan(frame.drop(columns="Survived"))
    X, _ = encoder.encode(frame)
    errors = []
    for train, test in folds:
        model = ShareBoostClassifier(2, pool=Columns(groups=encoder.groups)).fit(X[train], y[train])
        commonest = np.bincount(y[train]).argmax()
        errors.append([np.mean(model.predict(X[test]) != y[test]), np.mean(y[test] != commonest)])
    assert [told["error"], told["null_error"]] == pytest.approx(np.mean(errors, axis=0))


def test_nothing_but_json_on_standard_output(mixnorm, titanic):
    found = mixnorm("fit", titanic, "--target", "Survived", "--features", 1, "--json")
    json.loads(found.out)
    assert "rows" in found.err  # remarks are beside it
    quiet = mixnorm(
        "fit", titanic, "--target", "Survived", "--features", 1, "--json", "-q", "--model", "m"
    )
    assert quiet.err == ""


def test_the_size_is_chosen_by_cross_validation(mixnorm, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12)).round(3)
    frame = pd.DataFrame(X, columns=list("abcdefghijkl"))
    noise = rng.normal(scale=0.3, size=300)
    frame["y"] = np.where(X[:, 1] + X[:, 5] - X[:, 8] + noise > 0, "up", "down")
    frame.to_csv(tmp_path / "t.csv", index=False)
    told = mixnorm("fit", "t.csv", "--target", "y", "--json", "-q", "--report", "r.html").json
    assert {row["name"] for row in told["path"]} == {"b", "f", "i"}
    assert "one standard error" in told["how_chosen"]
    limited = mixnorm(
        "fit", "t.csv", "--target", "y", "--max-features", 2, "--json", "-q", "--model", "m"
    ).json
    assert limited["chosen"] == 2


def test_held_out_errors_are_those_of_models_that_did_not_see_the_rows(mixnorm, tmp_path):
    frame = flowers().drop(columns="Id")
    frame.to_csv(tmp_path / "iris.csv", index=False)
    told = mixnorm("fit", "iris.csv", "--target", "species", "--features", 2, "--json", "-q").json
    X, y = frame.drop(columns="species").to_numpy(), frame["species"].to_numpy(str)
    errors = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        model = ShareBoostClassifier(2).fit(X[train], y[train])
        errors.append([np.mean(found != y[test]) for found in model.staged_predict(X[test])])
    assert [row["error"] for row in told["path"]] == pytest.approx(np.mean(errors, axis=0))
    spread = np.std(errors, axis=0, ddof=1) / np.sqrt(5)
    assert [row["standard_error"] for row in told["path"]] == pytest.approx(spread)


def test_many_rows_are_measured_on_one_part(mixnorm, iris, monkeypatch):
    monkeypatch.setattr(search, "_ROWS_FOR_ONE_FOLD", 100)
    told = mixnorm("fit", iris, "--target", "species", "--features", 2, "--json", "-q").json
    assert told["how_measured"].startswith("Errors are measured on 30 of 150 rows")
    error = told["error"]
    assert told["standard_error"] == pytest.approx(np.sqrt(error * (1 - error) / 30))
    folds = mixnorm(
        "fit", iris, "--target", "species", "--features", 2, "--json", "--folds", 3, "--model", "m"
    ).json
    assert "with 3 folds" in folds["how_measured"]


def test_regression(mixnorm, tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(200, 4)).round(3), columns=list("abcd"))
    frame["price"] = 100 + 10 * frame["b"] - 5 * frame["d"] + rng.normal(size=200)
    frame.to_parquet(tmp_path / "p.parquet")
    told = mixnorm(
        "fit", "p.parquet", "--target", "price", "--json", "-q", "--report", "r.html"
    ).json
    assert told["task"] == "regression"
    assert told["error_name"] == "RMSE"
    assert {row["name"] for row in told["path"]} == {"b", "d"}
    X, y = frame[list("abcd")].to_numpy(), frame["price"].to_numpy()
    errors = []
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        inner = GridSearchCV(
            make_pipeline(StandardScaler(), Ridge()),
            {"ridge__alpha": np.logspace(-4, 5, 10)},
            cv=KFold(5, shuffle=True, random_state=0),
            scoring="neg_mean_squared_error",
        )
        path = ShareBoostRegressor(4).fit(X[train], y[train])
        found = [list(path.staged_predict(X[test]))[1]]
        found += [m.fit(X[train], y[train]).predict(X[test]) for m in (inner, DummyRegressor())]
        errors.append([np.sqrt(np.mean((y[test] - guess) ** 2)) for guess in found])
    expected = np.mean(errors, axis=0)
    assert told["error"] == pytest.approx(expected[0])
    # Inner folds are scaled as a whole, so that another penalty may win by little.
    assert told["full_error"] == pytest.approx(expected[1], rel=1e-3)
    assert told["null_error"] == pytest.approx(expected[2])


def test_the_task_can_be_overruled(mixnorm, iris, tmp_path):
    frame = passengers()
    frame.to_csv(tmp_path / "p.csv", index=False)
    told = mixnorm(
        "fit", "p.csv", "--target", "Survived", "--task", "regression", "-k", 1, "--json", "-q"
    ).json
    assert told["task"] == "regression"
    wrong = mixnorm("fit", iris, "--target", "species", "--task", "regression")
    assert wrong.code == 1
    assert "is not a number in 150 rows" in wrong.err


def test_a_category_counts_as_one_feature(mixnorm, tmp_path):
    rng = np.random.default_rng(2)
    town = rng.choice(list("stuvw"), 300)
    frame = pd.DataFrame({"town": town, "x": rng.normal(size=300).round(3)})
    frame["rent"] = pd.Series(town).map(dict(zip("stuvw", [9, 1, 7, 3, 5], strict=True))) + 0.0
    frame.loc[:, "rent"] += rng.normal(scale=0.1, size=300)
    frame.to_csv(tmp_path / "rents.csv", index=False)
    told = mixnorm("fit", "rents.csv", "--target", "rent", "-k", 1, "--json", "-q").json
    assert told["path"][0]["name"] == "town"
    assert told["multiply_adds"] == 5
    assert told["error"] < 0.15


def test_columns_whose_kind_is_named(mixnorm, tmp_path):
    rng = np.random.default_rng(3)
    code = rng.integers(0, 6, 200)
    frame = pd.DataFrame({"code": code, "y": np.where(np.isin(code, [1, 4]), "odd", "even")})
    frame["noise"] = rng.normal(size=200).round(2)
    frame.to_csv(tmp_path / "c.csv", index=False)
    as_number = mixnorm("fit", "c.csv", "--target", "y", "-k", 1, "--json", "-q").json
    as_category = mixnorm(
        "fit", "c.csv", "--target", "y", "-k", 1, "--category", "code", "--json", "--model", "m"
    ).json
    assert as_category["error"] == 0.0 < as_number["error"]


def test_dropped_columns_and_weights(mixnorm, tmp_path):
    rng = np.random.default_rng(4)
    x = rng.normal(size=400).round(3)
    frame = pd.DataFrame({"x": x, "cheat": np.sign(x), "w": (x > -0.5).astype(int)})
    frame["y"] = np.where(x > 0, "p", "q")
    frame.to_csv(tmp_path / "w.csv", index=False)
    told = mixnorm(
        "fit", "w.csv", "--target", "y", "-k", 2, "--drop", "cheat", "--weight", "w", "--json"
    ).json
    assert [row["name"] for row in told["path"]] == ["x"]
    bad = mixnorm("fit", "w.csv", "--target", "y", "--weight", "x", "--model", "m")
    assert bad.code == 1
    assert "must be numbers of at least 0" in bad.err


def test_weights_count_as_repeated_rows(mixnorm, tmp_path):
    frame = flowers().drop(columns="Id").iloc[::3].reset_index(drop=True)
    frame["times"] = 1 + (np.arange(len(frame)) % 2)
    frame.to_csv(tmp_path / "weighted.csv", index=False)
    frame.loc[frame.index.repeat(frame["times"])].to_csv(tmp_path / "repeated.csv", index=False)
    words = ["--target", "species", "-k", 2, "--json", "-q", "--model", "m"]
    weighted = mixnorm("fit", "weighted.csv", "--weight", "times", *words).json
    repeated = mixnorm("fit", "repeated.csv", "--drop", "times", *words).json
    assert [row["name"] for row in weighted["path"]] == [row["name"] for row in repeated["path"]]
    for one, other in zip(weighted["path"], repeated["path"], strict=True):
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-2)


def test_more_features_than_there_are(mixnorm, iris):
    told = mixnorm("fit", iris, "--target", "species", "-k", 9, "--json", "-q").json
    assert told["chosen"] == 4
    assert "Of 9 requested features, only 4 exist." in told["notes"]


def test_nothing_to_find(mixnorm, tmp_path):
    # Both classes have the same rows: on all of them, no column lowers the loss.
    frame = pd.DataFrame({"x": np.repeat([1.0, 2.0, 3.0], 20), "y": list("pq") * 30})
    frame.to_csv(tmp_path / "n.csv", index=False)
    found = mixnorm("fit", "n.csv", "--target", "y", "--model", "m.mixnorm", "-q")
    assert found.code == 1
    assert "No column of n.csv helps to predict 'y'" in found.err
    assert not (tmp_path / "m.mixnorm").exists()


def test_standard_input(mixnorm, titanic, monkeypatch):
    with titanic.open("rb") as stream:
        monkeypatch.setattr(sys, "stdin", type("Stream", (), {"buffer": stream}))
        told = mixnorm("fit", "-", "--target", "Survived", "-k", 1, "--json", "--model", "m").json
    assert told["table"] == "standard input"
    assert told["path"][0]["name"] == "Sex"


def test_a_made_up_name_replaces_no_file(mixnorm, titanic, tmp_path):
    (tmp_path / "titanic.mixnorm").write_text("precious")
    found = mixnorm("fit", titanic, "--target", "Survived", "-k", 1)
    assert found.code == 2
    assert "titanic.mixnorm exists; give --model" in found.err
    assert (tmp_path / "titanic.mixnorm").read_text() == "precious"
    words = ["--target", "Survived", "-k", 1, "--model", "titanic.mixnorm"]
    assert mixnorm("fit", titanic, *words).code == 0
    package.load(tmp_path / "titanic.mixnorm")


def test_no_full_model_is_fitted_without_a_report(mixnorm, titanic, monkeypatch):
    from mixnorm.cli import commands

    monkeypatch.setattr(commands, "fit_all_columns", None)  # calling it would fail
    assert mixnorm("fit", titanic, "--target", "Survived", "-k", 1).code == 0


def test_the_report_shows_the_whole_curve(mixnorm, tmp_path):
    frame = flowers()
    frame.to_csv(tmp_path / "iris.csv", index=False)
    words = ["--target", "species", "--report", "r.html", "--max-features", 3]
    told = mixnorm("fit", "iris.csv", *words, "--json", "-q").json
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page)).replace("\u00a0", " ")
    assert f"{told['chosen']} of 4 features" in text
    assert "logistic regression on standardised columns" in page
    assert re.search(r"ShareBoost with all of them: [\d.]+ %", text)
    assert told["how_folds"] in html.unescape(text)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", "t.csv"], "--target is missing; t.csv has the columns"),
        (["fit", "-", "--target", "a"], "standard input has no file name; give --model"),
        (["fit", "t.csv", "--target", "y", "--loss", "squared"], "--loss squared is not for"),
        (["fit", "t.csv", "--target", "y", "--drop", "y"], "--drop names the target"),
        (["fit", "t.csv", "--target", "y", "--model", "no/m"], "there is no folder"),
        (["fit", "t.csv", "--target", "y", "--report", "."], "is a folder; name a file"),
        (["fit", "t.csv", "--target", "y", "--features", "0"], "not a whole number of at least 1"),
        (["fit", "t.csv", "--target", "y", "--features", "many"], "not a whole number"),
        (["fit", "t.csv", "--target", "y", "--folds", "1"], "not a whole number of at least 2"),
        (["fit", "t.csv", "--target", "y", "--alpha", "-1"], "neither 'auto' nor a finite number"),
        (["fit", "t.csv", "--target", "y", "--alpha", "nan"], "neither 'auto' nor a finite number"),
        (["fit", "t.csv", "--target", "y", "--delimiter", "ab"], "is not a delimiter"),
        (["fit", "t.csv", "--target", "y", "--nothing"], "unrecognized arguments"),
        (
            ["fit", "t.csv", "--target", "y", "--number", "a", "--category", "a"],
            "--category and --number both name 'a'",
        ),
        (["predict", "m"], "required: FILE"),
        (["dance"], "invalid choice"),
        ([], "required: COMMAND"),
    ],
)
def test_wrong_usage(mixnorm, tmp_path, words, message):
    (tmp_path / "t.csv").write_text("a,y\n" + "1,p\n2,q\n" * 20)
    found = mixnorm(*words)
    assert found.code == 2
    assert message in found.err
    assert "Traceback" not in found.err
