"""``--pool`` and ``--max-inputs``: what is fitted, said, stored and applied."""

import html
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import mixnorm as package
from mixnorm import ShareBoostClassifier, ShareBoostRegressor
from mixnorm.cli import pools, progress, search
from mixnorm.pools import Boxes, Pieces, Products, Stumps

from .conftest import flowers

POOLS = {"stumps": Stumps, "boxes": Boxes, "products": Products, "pieces": Pieces}


def rents(rows: int = 240) -> pd.DataFrame:
    """Numbers (one far from zero), a category, a date and gaps; the rent is a sum of stumps."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "size": rng.integers(30, 200, rows),
            "town": rng.choice(["Ulm", "Bonn", "Jena"], rows),
            "built": pd.date_range("2001-01-01", periods=rows, freq="9D").strftime("%Y-%m-%d"),
            "level": (1e6 + rng.normal(size=rows)).round(3),
            "gap": np.where(rng.random(rows) < 0.2, np.nan, rng.normal(size=rows).round(3)),
        }
    )
    stairs = np.where(frame["size"] > 90, 900, 400) + 300 * (frame["town"] == "Ulm")
    frame["rent"] = stairs + 80 * (frame["level"] > 1e6) + rng.normal(size=rows).round(2)
    return frame


@pytest.fixture
def rent(tmp_path):
    place = tmp_path / "rent.csv"
    rents().to_csv(place, index=False)
    return place


@pytest.fixture
def libsvm(tmp_path):
    """A sparse file of 20 columns, of which the third and the eighth decide."""
    from sklearn.datasets import dump_svmlight_file

    X = sp.random(200, 20, density=0.3, random_state=0, format="csr")
    X.data = X.data.round(2) * 10
    dense = X.toarray()
    y = ((dense[:, 2] > 3) ^ (dense[:, 7] > 0)).astype(int)
    dump_svmlight_file(X, y, str(tmp_path / "s.svm"), zero_based=False)
    return tmp_path / "s.svm"


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("pool", POOLS)
def test_all_commands(mixnorm, rent, tmp_path, pool, task):
    frame = rents()
    if task == "classification":
        frame["rent"] = np.where(frame["rent"] > 900, "dear", "cheap")
        frame.to_csv(rent, index=False)
    words = ["fit", rent, "--target", "rent", "--pool", pool, "-k", 3, "--folds", 3]
    told = mixnorm(*words, "--report", "r.html", "--json", "-q").json
    assert (told["task"], told["pool"], told["chosen"]) == (task, pool, 3)
    assert told["error"] < told["null_error"]
    shown = mixnorm("show", "rent.mixnorm")
    for row in told["path"]:
        assert row["name"] in shown.out
        assert row["kind"] == pools.FEATURE_WORDS[pool]
    asked = mixnorm("show", "rent.mixnorm", "--json").json
    assert len(asked["needed"]) == told["columns_read"]
    assert "Columns: " + ", ".join(asked["needed"]) in shown.out
    frame[asked["needed"]].to_csv(tmp_path / "new.csv", index=False)
    assert mixnorm("predict", "rent.mixnorm", "new.csv", "-o", "out.csv").code == 0
    model = package.load(tmp_path / "rent.mixnorm")
    found = pd.read_csv(tmp_path / "out.csv")["prediction"].to_numpy()
    if task == "classification":
        np.testing.assert_array_equal(found, model.predict(frame))
    else:
        np.testing.assert_allclose(found, model.predict(frame), rtol=1e-9)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page)).replace("\u00a0", " ")
    assert f"How many {pools.FEATURE_WORDS[pool]}s are enough" in text
    assert told["path"][0]["name"] in html.unescape(text)
    assert f"number of {pools.FEATURE_WORDS[pool]}s" in text


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("target", ["species", "petal width (cm)"])
def test_the_model_is_the_estimators(mixnorm, tmp_path, pool, target):
    frame = flowers().drop(columns="Id")
    frame = frame if target == "species" else frame.drop(columns="species")
    frame.to_csv(tmp_path / "t.csv", index=False)
    mixnorm("fit", "t.csv", "--target", target, "--pool", pool, "-k", 4, "--model", "m", "-q")
    stored = package.load(tmp_path / "m")
    X = frame.drop(columns=target).to_numpy()
    if pool == "pieces":  # columns on one scale first
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    kind = ShareBoostClassifier if target == "species" else ShareBoostRegressor
    y = frame[target].to_numpy(str if target == "species" else float)
    model = kind(4, pool=POOLS[pool](), random_state=0).fit(X, y)
    np.testing.assert_allclose(stored.estimator.path_["loss"], model.path_["loss"], rtol=1e-6)
    if target == "species":
        np.testing.assert_array_equal(stored.predict(frame), model.predict(X))
    else:
        np.testing.assert_allclose(stored.predict(frame), model.predict(X), rtol=1e-6)


def test_stumps_are_told_in_the_units_of_the_table(mixnorm, rent):
    found = mixnorm("fit", rent, "--target", "rent", "--pool", "stumps", "-k", 3)
    assert re.search(r"size ≤ 9\d\.5", found.out)
    assert "town is not Ulm" in found.out
    assert re.search(r"level ≤ (999999\.99\d*|1000000\.00\d*)", found.out)
    assert re.search(r"3 stumps of 3 columns \(of 5\): RMSE [\d.]+ ± [\d.]+ on held-out", found.out)
    assert "without stumps." in found.out
    assert "Categories, each level one column: town (3 levels)." in found.err
    assert "Dates, as days and cycles: built." in found.err


def test_more_stumps_than_columns(mixnorm, iris):
    told = mixnorm("fit", iris, "--target", "species", "--pool", "stumps", "-k", 12, "--json").json
    assert told["chosen"] == 12
    assert told["columns"] == 4
    searched = mixnorm(
        "path", iris, "--target", "species", "--pool", "stumps", "-k", 9, "--json", "-q"
    ).json
    assert len(searched["path"]) == 9
    assert searched["pool"] == "stumps"


def test_few_inputs(mixnorm, rent, iris, tmp_path):
    words = ["--pool", "stumps", "-k", 10, "--max-inputs", 2, "--model", "m"]
    found = mixnorm("fit", rent, "--target", "rent", *words)
    assert "10 stumps of 2 columns (of 5)" in found.out
    assert sorted(package.load(tmp_path / "m").needed) == ["size", "town"]
    columns = mixnorm("fit", iris, "--target", "species", "-k", 4, "--max-inputs", 2, "--json").json
    assert columns["chosen"] == 2
    assert (
        "Of 4 requested features, only 2 lower the loss within --max-inputs 2."
        in (columns["notes"])
    )


def test_fewer_stumps_than_asked_for(mixnorm, tmp_path):
    frame = pd.DataFrame({"x": [1, 2, 3, 4] * 20, "y": [1.0, 5.0, 2.0, 9.0] * 20})
    frame.to_csv(tmp_path / "f.csv", index=False)
    told = mixnorm(
        "fit", "f.csv", "--target", "y", "--task", "regression", "--pool", "stumps", "-k", 9,
        "--json", "-q",
    ).json  # fmt: skip
    assert told["chosen"] == 3
    assert "Of 9 requested stumps, only 3 lower the loss." in told["notes"]


def test_smaller_models(mixnorm, rent, tmp_path):
    mixnorm("fit", rent, "--target", "rent", "--pool", "stumps", "-k", 3, "-q", "--model", "m")
    assert mixnorm("predict", "m", rent, "--features", 1, "-o", "o.csv").code == 0
    assert pd.read_csv(tmp_path / "o.csv")["prediction"].nunique() == 2
    found = mixnorm("predict", "m", rent, "--features", 4)
    assert found.code == 1
    assert "The model has only 3 stumps, not 4." in found.err


@pytest.mark.parametrize("pool", POOLS)
def test_interrupted(mixnorm, iris, monkeypatch, tmp_path, pool):
    advance, count = progress.SearchBar._advance, [0]

    def count_rounds(self, *words):
        count[0] += 1
        if count[0] == 3:
            raise KeyboardInterrupt
        return advance(self, *words)

    monkeypatch.setattr(progress.SearchBar, "_advance", count_rounds)
    words = ["--target", "species", "--pool", pool, "-k", 5, "--report", "r.html", "--json"]
    told = mixnorm("fit", iris, *words).json
    assert told["chosen"] == 3
    assert (
        f"the model of 3 {pools.FEATURE_WORDS[pool]}s was fitted on 120 of 150 rows"
        in told["interrupted"]
    )
    assert told["how_chosen"].startswith(f"The search was for 5 {pools.FEATURE_WORDS[pool]}s.")
    assert package.load(tmp_path / "iris.mixnorm").size == 3


@pytest.mark.parametrize("pool", POOLS)
def test_libsvm(mixnorm, libsvm, pool):
    told = mixnorm("fit", libsvm, "--pool", pool, "-k", 4, "--json", "-q", "--report", "r").json
    assert told["columns_read"] == (20 if pool == "pieces" else told["columns_read"]) <= 20
    assert "column " in told["path"][0]["name"]
    if pool == "stumps":
        assert {row["name"].split(" ≤ ")[0] for row in told["path"]} >= {"column 3", "column 8"}
    found = mixnorm("predict", "s.mixnorm", libsvm, "--json").json
    assert len(found["columns"]["prediction"]) == 200
    assert found["error"] < told["null_error"]


@pytest.mark.parametrize(
    ("pool", "limit", "message"),
    [
        ("pieces", "_PIECES_COLUMNS", "--pool pieces accepts at most 10 columns"),
        ("products", "_PRODUCTS_COLUMNS", "--pool products accepts at most 10 columns"),
        ("stumps", "_STUMPS_ENTRIES", "a byte for each of 200 × 20 entries"),
    ],
)
def test_tables_that_are_too_large_for_a_pool(mixnorm, libsvm, monkeypatch, pool, limit, message):
    monkeypatch.setattr(pools, limit, 10)
    found = mixnorm("fit", libsvm, "--pool", pool)
    assert found.code == 1
    assert message in found.err
    assert "choose another pool" in found.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--pool", "trees"], "invalid choice"),
        (["--max-inputs", "0"], "not a whole number of at least 1"),
        (
            ["--pool", "pieces", "--max-inputs", "3"],
            "--max-inputs cannot limit --pool pieces",
        ),
    ],
)
def test_wrong_usage(mixnorm, iris, words, message):
    found = mixnorm("fit", iris, "--target", "species", *words)
    assert found.code == 2
    assert message in found.err


def test_replaced_choices_are_told(mixnorm, iris, tmp_path):
    words = ["--target", "species", "--pool", "stumps", "-k", 6, "--swaps", 2]
    found = mixnorm("fit", iris, *words, "--report", "r.html")
    model = package.load(tmp_path / "iris.mixnorm")
    names = [model.describe(atom) for atom in model.estimator.model_.path.rounds[-1].support]
    assert names != [row["name"] for row in model.facts["path"]]
    said = f"Earlier choices were replaced; the stumps are now: {', '.join(names)}"
    assert said in found.out
    assert said in mixnorm("show", "iris.mixnorm").out
    assert "Earlier choices were replaced" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_the_same_pieces_for_the_same_seed(mixnorm, iris, monkeypatch):
    monkeypatch.setattr(search, "make_pool", lambda name, groups: Pieces(10, 5))
    words = ["--target", "species", "--pool", "pieces", "-k", 2, "--json", "-q", "--model", "m"]
    paths = [mixnorm("fit", iris, *words, "--seed", seed).json["path"] for seed in (1, 1, 2)]
    assert paths[0] == paths[1] != paths[2]


def test_completion_knows_the_pools(mixnorm):
    pytest.importorskip("shtab")
    script = mixnorm("completion", "bash").out
    assert "fit___pool_choices=(columns stumps boxes products pieces)" in script
    assert "--max-inputs" in script


def test_an_estimator_saved_from_python(mixnorm, tmp_path):
    frame = flowers().drop(columns="Id")
    model = ShareBoostClassifier(3, pool=Stumps())
    package.save(model.fit(frame.drop(columns="species"), frame["species"]), tmp_path / "m")
    found = mixnorm("show", "m")
    assert "3 features made of these columns" in found.out
    assert "petal length (cm) ≤ 2.45" in found.out
    assert "3 comparisons" in found.out
    assert len(mixnorm("show", "m", "--json").json["made_of_them"]) == 3
