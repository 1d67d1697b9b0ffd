"""What is said about errors: whose they are, what choosing does to them, and nested folds."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import StratifiedKFold

import mixnorm as package
from mixnorm import ShareBoostClassifier
from mixnorm.cli import held_out, search
from mixnorm.selection import SearchResult, choose

from .conftest import flowers
from .test_interrupt import interrupt  # noqa: F401


@pytest.fixture
def table(tmp_path):
    """Two columns that matter, one a little, and five of noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 8)).round(3)
    score = 2 * X[:, 0] - 2 * X[:, 1] + 0.5 * X[:, 2] + rng.normal(size=120)
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    frame["y"] = np.where(score > 0, "up", "down")
    frame["w"] = 1 + np.arange(120) % 3
    frame.to_csv(tmp_path / "t.csv", index=False)
    return frame


WORDS = ["t.csv", "--target", "y", "--folds", 3, "--max-features", 4, "--json", "-q"]


def test_nested_sizes_and_errors(mixnorm, table):
    told = mixnorm("fit", *WORDS, "--drop", "w", "--nested").json
    X, y = table[list("abcdefgh")].to_numpy(), table["y"].to_numpy(str)

    def scores(rows, held):
        model = ShareBoostClassifier(4).fit(X[rows], y[rows])
        return [np.mean(found == y[held]) for found in model.staged_predict(X[held])]

    splitter = StratifiedKFold(3, shuffle=True, random_state=0)
    sizes, errors = [], []
    for train, test in splitter.split(X, y):
        inner = [scores(train[a], train[b]) for a, b in splitter.split(train, y[train])]
        found = SearchResult.of([{}] * 4, {"score": np.array(inner)}, np.zeros(4), {})
        sizes.append(choose(found, one_standard_error=True) + 1)
        errors.append(1 - scores(train, test)[sizes[-1] - 1])
    assert told["nested"]["sizes"] == sizes
    assert told["nested"]["errors"] == pytest.approx(errors)
    assert told["nested"]["error"] == pytest.approx(np.mean(errors))
    assert told["nested"]["standard_error"] == pytest.approx(np.std(errors, ddof=1) / np.sqrt(3))
    shown = f"{100 * np.mean(errors):.1f} % ± {100 * np.std(errors, ddof=1) / np.sqrt(3):.1f} %"
    assert f"the error rate is {shown}; sizes: {', '.join(map(str, sizes))}." in told["how_chosen"]


def test_the_inner_search_never_sees_the_outer_rows(mixnorm, table, monkeypatch):
    path, weights, held = held_out.TablePathProblem.path, [], []

    def noted(self, learner, weight, test):
        weights.append(weight)
        held.append(test)
        return path(self, learner, weight, test)

    monkeypatch.setattr(held_out.TablePathProblem, "path", noted)
    mixnorm("fit", *WORDS, "--weight", "w", "--nested")
    outer = held[:3]
    assert sorted(np.concatenate(outer)) == list(range(120))
    for number, (weight, test) in enumerate(zip(weights, held, strict=True)):
        assert not weight[test].any()
        if number >= 3:
            away = outer[(number - 3) // 3]
            assert not weight[away].any()
            assert not set(test) & set(away)
            seen = np.setdiff1d(np.arange(120), np.concatenate([test, away]))
            np.testing.assert_array_equal(weight[seen], table["w"][seen])


def test_nested_interrupted(mixnorm, table, interrupt):  # noqa: F811
    interrupt(3 * 4 + 4 + 3 * 4 + 2)  # in the second outer fold, after folds and all rows
    told = mixnorm("fit", *WORDS, "--drop", "w", "--nested").json
    assert told["interrupted"] == ""  # the model itself is whole
    assert len(told["nested"]["sizes"]) == 1
    assert told["nested"]["standard_error"] is None
    assert "interrupted after 1 of 3 folds" in told["how_chosen"]


def test_nested_without_a_choice(mixnorm, table):
    found = mixnorm("fit", "t.csv", "--target", "y", "-k", 2, "--nested")
    assert found.code == 2
    assert "--features fixes the size" in found.err
    told = mixnorm("path", "t.csv", "--target", "y", "-k", 2, "--folds", 2, "--nested", "--json")
    assert len(told.json["nested"]["sizes"]) == 2


def test_a_chosen_size_is_said_to_be_optimistic(mixnorm, table):
    words = [*WORDS[:3], "--folds", 3]
    for text in (
        mixnorm("fit", *words, "--max-features", 2).out,
        mixnorm("path", *words, "-k", 2).out,
    ):
        assert "The same held-out rows chose the size, so its error tends to be too low" in text
        assert "--nested measures the error on rows that do not affect the choice" in text
    given = mixnorm("fit", *WORDS[:3], "-k", 2, "--model", "m")
    assert "too low" not in given.out


def test_a_model_that_is_no_better_than_none(mixnorm, table):
    rng = np.random.default_rng(1)
    pd.DataFrame(rng.normal(size=(40, 4)), columns=["a", "b", "c", "y"]).to_csv("n.csv")
    words = ["--target", "y", "-k", 2, "--folds", 3, "--model", "m"]
    assert "does no better than one without features" in mixnorm("fit", "n.csv", *words).out
    assert "does no better" not in mixnorm("fit", *WORDS[:3], "-k", 2, "--model", "m").out


def test_plus_minus_is_explained(mixnorm, table, monkeypatch):
    words = ["fit", *WORDS[:3], "-k", 2, "--model", "m"]
    assert "± is the standard error of the mean over the folds." in mixnorm(*words).out
    assert "± is the standard error of the mean over the folds." in mixnorm("show", "m").out
    monkeypatch.setattr(search, "_ROWS_FOR_ONE_FOLD", 100)
    assert "± is the standard error over these rows." in mixnorm(*words).out


def test_features_are_counted_in_folds(mixnorm, table):
    told = mixnorm("fit", *WORDS[:3], "--drop", "w", "--folds", 3, "-k", 4, "--json").json
    X, y = table[list("abcdefgh")].to_numpy(), table["y"].to_numpy(str)
    counts = dict.fromkeys("abcdefgh", 0)
    for train, _ in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        for column in ShareBoostClassifier(4).fit(X[train], y[train]).selected_:
            counts["abcdefgh"[column]] += 1
    assert told["folds"] == 3
    assert [row["folds"] for row in told["path"]] == [counts[r["name"]] for r in told["path"]]
    assert told["path"][0]["folds"] == 3
    assert min(row["folds"] for row in told["path"]) < 3  # noise comes fourth
    assert "Each fold chooses its own features" in told["how_folds"]
    shown = mixnorm("show", "t.mixnorm").out
    assert "folds" in shown.splitlines()[2]
    assert told["how_folds"] in shown.replace("\n", " ")


@pytest.mark.parametrize("pool", ["stumps", "pieces"])
def test_features_made_of_columns_are_counted_by_them(mixnorm, table, pool):
    words = [
        "fit",
        *WORDS[:3],
        "--drop",
        "w",
        "--folds",
        3,
        "-k",
        3,
        "--json",
        "--pool",
        pool,
    ]
    told = mixnorm(*words).json
    if pool == "pieces":  # each reads all columns
        assert [row["folds"] for row in told["path"]] == [None] * 3
        assert '"folds"' not in told["how_folds"]
    else:
        assert told["path"][0]["folds"] == 3
        assert "use a stump of the same columns" in told["how_folds"]


def test_a_smaller_size_that_is_as_good_is_named(mixnorm, table):
    told = mixnorm("fit", *WORDS[:3], "--drop", "w", "--folds", 5, "-k", 8, "--json").json
    errors = np.array([row["error"] for row in told["path"]])
    best = errors.argmin()
    limit = errors[best] + told["path"][best]["standard_error"]
    smallest = int(np.argmax(errors <= limit)) + 1
    assert smallest < 8
    assert told["smaller"] == smallest
    assert f"--features {smallest} gives the smaller model." in told["how_chosen"]
    one = mixnorm("fit", *WORDS[:3], "-k", 1, "--json", "--model", "m").json
    assert one["smaller"] is None


def test_columns_are_standardised_and_the_penalty_is_found(mixnorm, tmp_path):
    """Units do not matter: a column in nanometres far from zero is as good as before."""
    frame = flowers().drop(columns="Id")
    frame.to_csv(tmp_path / "one.csv", index=False)
    moved = frame.copy()
    moved["petal length (cm)"] = 1e7 * moved["petal length (cm)"] + 1e9
    moved.to_csv(tmp_path / "two.csv", index=False)
    words = ["--target", "species", "-k", 3, "--json", "-q", "--folds", 2]
    one, two = (mixnorm("fit", f"{name}.csv", *words).json for name in ("one", "two"))
    assert [row["name"] for row in one["path"]] == [row["name"] for row in two["path"]]
    for first, second in zip(one["path"], two["path"], strict=True):
        assert second["loss"] == pytest.approx(first["loss"], rel=1e-4)
        assert second["error"] == first["error"]
    estimator = package.load(tmp_path / "one.mixnorm").estimator
    assert (estimator.options_.scale, estimator.alpha) == ("std", "auto")
    fixed = mixnorm("fit", "one.csv", *words, "--alpha", 0.5, "--model", "m").json
    assert fixed["path"][0]["loss"] > one["path"][0]["loss"]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_error_without_features_counts_rows_by_their_weight(mixnorm, table, tmp_path, task):
    score = table["a"] - table["b"]
    weight = np.where(score > 0.5, 9.0, 1.0)  # rare and heavy: another class, another mean
    target = np.where(score > 0.5, "up", "down") if task == "classification" else score
    table.assign(y=target, w=weight).to_csv(tmp_path / "t.csv", index=False)
    told = mixnorm("fit", *WORDS, "--weight", "w").json
    y, errors = np.asarray(target), []
    for train, test in held_out.split_rows(y, task, 3, seed=0):
        if task == "classification":
            counts = {label: weight[train][y[train] == label].sum() for label in ("down", "up")}
            wrong = y[test] != max(counts, key=counts.get)
            errors.append(weight[test] @ wrong / weight[test].sum())
        else:
            mean = weight[train] @ y[train] / weight[train].sum()
            errors.append(np.sqrt(weight[test] @ (y[test] - mean) ** 2 / weight[test].sum()))
    assert told["null_error"] == pytest.approx(np.mean(errors))
    plain = mixnorm("fit", *WORDS, "--drop", "w", "-m", "plain").json
    assert abs(plain["null_error"] - told["null_error"]) > 0.05


def test_the_standard_error_of_an_error_is_that_of_a_bootstrap():
    rng = np.random.default_rng(0)
    truth, found = np.zeros(500), rng.normal(1.0, 2.0, 500)
    weight = rng.uniform(0.5, 2.0, 500)
    drawn = rng.integers(0, 500, (2000, 500))
    for task in ("regression", "classification"):
        guess = found if task == "regression" else found.round()
        for given in (None, weight):
            shares = np.ones(500) if given is None else given
            errors = [
                held_out.compute_error(truth[rows], guess[rows], shares[rows], task)
                for rows in drawn
            ]
            # 2000 draws know a deviation to about 2 %.
            expected = pytest.approx(np.std(errors), rel=0.06)
            assert held_out.estimate_standard_error(truth, guess, given, task) == expected
    assert held_out.estimate_standard_error(truth, truth, None, "regression") == 0.0
