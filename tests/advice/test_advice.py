"""Advice on norms: what it says of designs whose answer is known, and what users do with it."""

import inspect
import json
import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine

import mixnorm
from benchmarks.advise.data import DESIGNS
from mixnorm import advise
from mixnorm.advice import Advice, compare
from mixnorm.cli import main
from mixnorm.display import BoundDisplay, advice_page
from mixnorm.norms import MixedNorm

NORMS = ["l1,1", "l2,1", "l2,2", "trace"]
one_cut = pytest.mark.usefixtures("_one_cut")


@pytest.fixture
def _one_cut(monkeypatch):
    """Cut few rows into folds once, where the reliability of the choice is not the point."""
    monkeypatch.setattr(compare, "_COMPARISON", compare.ComparisonSettings(most_cuts=1))


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return advise(X, y, n_alphas=4)


def design(name, seed=0):
    return DESIGNS[name](np.random.default_rng(seed))


@one_cut
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("experts", {"l1,1", "l2,1"}),
        ("low-rank-tasks", {"trace"}),
        ("entries", {"l1,1"}),
        ("shared-support", {"l2,1"}),
        ("blocks", {"groups"}),
    ],
)
def test_designs(name, wanted):
    given = design(name)
    advice = advise(given.X, given.y, groups=given.groups, n_alphas=6, cv=3)
    assert advice.best_norm_ in wanted
    assert advice.verdict in ("clear", "tie")
    assert advice.best_norm_ in advice.why


def test_ties_and_noise():
    plenty = design("plenty")
    advice = advise(plenty.X, plenty.y, max_rows=1000, n_alphas=5, cv=3)
    assert advice.verdict == "tie"
    assert "as good" in advice.why
    assert advice.n_used == 1000
    assert advice.n_samples == 6000
    nothing = design("noise")
    advice = advise(nothing.X, nothing.y, n_alphas=6)
    assert advice.verdict == "nothing"
    assert advice.why.startswith("Nothing helps")


def test_what_is_told(iris):
    assert isinstance(iris, Advice)
    assert {one.name for one in iris.norms} == set(NORMS)
    errors = [one.error for one in iris.norms]
    assert errors == sorted(errors)
    assert iris.best_norm_ == iris.norms[0].name
    assert sorted(iris.bound_order().values()) == [1, 2, 3, 4]
    row = iris.rows()[0]
    assert row["norm"] == iris.best_norm_
    assert row["held-out error"] == iris[iris.best_norm_].error < 0.1
    assert iris["l2,1"].bound.value > 0.0
    assert "Corollary 8" in iris["l2,1"].bound.theorem
    with pytest.raises(KeyError, match="linf"):
        iris["linf,1"]


def test_shown(iris):
    text = str(iris)
    assert all(name in text for name in NORMS)
    assert "150 rows, 4 columns, 3 outputs" in text
    assert iris._repr_html_().count("<tr>") == 5
    page = advice_page(iris, title="Iris <b>", version="1", created="now", made=["by hand"])
    assert page.startswith("<!DOCTYPE html>")
    assert "Iris &lt;b&gt;" in page
    assert "<script" not in page
    assert "ten times" in page


def test_the_model(iris):
    X, y = load_iris(return_X_y=True)
    model = iris.best_estimator_
    assert model.score(X, y) > 0.9
    assert clone(model).fit(X, y).score(X, y) > 0.9
    again = pickle.loads(pickle.dumps(iris))
    np.testing.assert_array_equal(again.best_estimator_.predict(X), model.predict(X))


@one_cut
def test_labels_of_any_kind():
    X, y = load_wine(return_X_y=True)
    numbers = advise(X, y, n_alphas=3, cv=2)
    names = np.array(["red", "rose", "white"])[y]
    texts = advise(X, names, n_alphas=3, cv=2)
    assert [one.error for one in numbers.norms] == [one.error for one in texts.norms]
    assert set(texts.best_estimator_.predict(X)) <= set(names)
    two = advise(X, y == 0, norms="l2,1", n_alphas=4, cv=3)
    assert two.n_outputs == 2
    assert two.norms[0].error < 0.1


@one_cut
def test_a_rare_class():
    X, y = load_iris(return_X_y=True)
    y = np.where(np.arange(150) == 3, 7, y)  # one row of a class of its own
    advice = advise(X, y, norms=["l2,1", "trace"], n_alphas=4, cv=3)
    assert advice.n_outputs == 4
    assert advice.norms[0].error < 0.2


@one_cut
def test_outputs_and_tasks():
    given = design("low-rank-tasks")
    X, Y = given.X, given.y[:, :4]
    outputs = advise(X, Y, n_alphas=5, cv=3)
    assert outputs.what.startswith("squared errors")
    assert outputs.best_estimator_.predict(X).shape == Y.shape
    tasks = advise([X[:40], X[20:]], [Y[:40, 0], Y[20:, 1]], n_alphas=5, cv=3)
    assert tasks.n_outputs == 2
    assert tasks.n_samples == 80
    assert "22" in tasks["l2,1"].bound.theorem
    single = advise(X, Y[:, 0], norms="l2,1", n_alphas=5, cv=3)
    assert single.n_outputs == 1


@one_cut
def test_sparse_rows():
    given = design("text")
    options = {"norms": ["l2,1", "l2,2"], "n_alphas": 4, "cv": 2, "standardize": False}
    dense = advise(given.X, given.y, **options)
    sparse = advise(sp.csr_matrix(given.X), given.y, **options)
    assert sparse.best_norm_ == dense.best_norm_
    for one in dense.norms:
        assert sparse[one.name].error == pytest.approx(one.error, abs=0.02)
    scaled = advise(sp.csr_matrix(given.X), given.y, norms=["l2,2", "trace"], n_alphas=3, cv=2)
    assert scaled.best_estimator_.predict(sp.csr_matrix(given.X)).shape == given.y.shape
    assert "not zero" in scaled.why


def uneven(n=60):
    """Columns of different sizes and origins, with many zeros, and three classes."""
    rng = np.random.default_rng(0)
    Z = np.where(rng.random((n, 6)) < 0.4, 0.0, rng.normal(size=(n, 6)) + 1.0)
    return Z, Z * [1e3, 1.0, 1e-3, 1.0, 30.0, 1.0], np.argmax(Z[:, :3], axis=1)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_units_do_not_matter(make):
    Z, X, y = uneven()
    options = dict(n_alphas=3, cv=2, norms="l2,1", tol=1e-6)
    plain = advise(Z, y, **options)
    found = advise(make(X), y, **options)
    assert found.norms[0].error == pytest.approx(plain.norms[0].error, abs=1e-9)
    assert np.allclose(found.norms[0].curve.norms, plain.norms[0].curve.norms, rtol=1e-3)
    scores = found.best_estimator_.decision_function(make(X))
    assert np.allclose(scores, plain.best_estimator_.decision_function(Z), atol=1e-2)
    raw = advise(X, y, standardize=False, **options)
    assert raw.norms[0].error > 2.0 * plain.norms[0].error


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_units_of_tasks_do_not_matter(make):
    Z, X, _ = uneven()
    parts, targets = (slice(0, 30), slice(30, 60)), [Z[:30, 0], Z[30:, 1]]
    options = dict(n_alphas=3, cv=2, norms="l2,1", tol=1e-6)
    plain = advise([Z[part] for part in parts], targets, **options)
    found = advise([make(X[part]) for part in parts], targets, **options)
    assert found.norms[0].error == pytest.approx(plain.norms[0].error, rel=1e-3)
    assert found.best_estimator_.standardize is True


@one_cut
def test_norms_of_your_own():
    X, y = load_iris(return_X_y=True)
    advice = advise(X, y, norms={"plain": MixedNorm(2, 2), "sup": "linf,1"}, n_alphas=4, cv=3)
    assert {one.name for one in advice.norms} == {"plain", "sup"}
    assert advice["sup"].bound is None
    assert np.isnan(advice["sup"].data_radius)
    assert "none" in str(advice)
    alone = advise(X, y, norms="l2,1", n_alphas=4, cv=3)
    assert alone.verdict == "alone"
    assert "no other norm was compared" in alone.why


@one_cut
def test_progress_and_seeds():
    X, y = load_wine(return_X_y=True)
    seen = []
    first = advise(X, y, n_alphas=2, cv=2, progress=seen.append)
    assert seen == NORMS
    same = advise(X, y, n_alphas=2, cv=2)
    assert [a.error for a in first.norms] == [b.error for b in same.norms]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cv": 1}, "cv=1"),
        ({"n_alphas": 1}, "n_alphas=1"),
        ({"max_rows": 3}, "max_rows=3"),
        ({"norms": []}, "empty"),
        ({"norms": ["l3"]}, "not known"),
        ({"groups": [[0, 1]]}, "groups"),
        ({"y": None}, "y is missing"),
        ({"y": np.zeros(150)}, "one class"),
        ({"y": np.zeros(3)}, "inconsistent"),
        ({"y": np.full(150, np.nan)}, "NaN"),
        ({"y": np.arange(150)}, "task='regression'"),
        ({"task": "ranking"}, "task='ranking'"),
        ({"random_state": -1}, "random_state"),
        ({"groups": [0, 1]}, "each of 4"),
        ({"X": np.full((150, 2), np.nan)}, "NaN"),
        ({"cv": 80}, "too few"),
    ],
)
def test_bad_inputs(options, words):
    X, y = load_iris(return_X_y=True)
    given = {"X": X, "y": y} | options
    with pytest.raises(ValueError, match=words):
        advise(given.pop("X"), given.pop("y"), **given)


def test_bad_tasks():
    X = np.random.default_rng(0).standard_normal((20, 3))
    with pytest.raises(ValueError, match="as many arrays"):
        advise([X, X], [np.ones(20)])
    with pytest.raises(ValueError, match="different numbers of columns"):
        advise([X, X[:, :2]], [np.ones(20), np.ones(20)])
    with pytest.raises(ValueError, match="not numbers"):
        advise([X], [np.array(["a"] * 20)])
    with pytest.raises(ValueError, match="task 1"):
        advise([X, X], [np.ones(20), np.full(20, np.nan)])
    with pytest.raises(ValueError, match="smallest task has 3 rows"):
        advise([X, X[:3]], [np.arange(20.0), np.arange(3.0)])
    with pytest.raises(TypeError, match="random_state=None must be a whole number"):
        advise(X, np.arange(20.0), random_state=None)
    with pytest.raises(TypeError, match="norms=None"):
        advise(X, np.arange(20.0), norms=None)
    with pytest.raises(TypeError, match="standardize"):
        advise(X, np.arange(20.0), standardize="no")


@one_cut
def test_numbers_that_are_whole():
    """Counts are numbers, where they are floats of many values or said to be."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    y = np.round(100.0 * X @ [1.0, -1.0, 0.0, 0.5])
    for given, options in ((y, {}), (y.astype(int), {"task": "regression"})):
        advice = advise(X, given, norms="l2,1", n_alphas=6, cv=3, **options)
        assert advice.n_outputs == 1
        assert advice.norms[0].error < 0.05
    few = advise(X, (y > 0).astype(float), norms="l2,1", n_alphas=4, cv=3)
    assert few.what == "wrong labels"


@one_cut
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_models_of_tasks_take_rows_as_they_are(make):
    rng = np.random.default_rng(0)
    rows = [rng.standard_normal((n, 6)) for n in (50, 60)]
    Xs = [make(x * 1e-3 if make is sp.csr_array else 100.0 * x + 500.0) for x in rows]
    ys = [x[:, 0] - 2.0 * x[:, 1] + 0.1 * rng.standard_normal(len(x)) for x in rows]
    advice = advise(Xs, ys, n_alphas=8, cv=3)
    assert advice.norms[0].error < 0.1
    assert advice.n_used == 110
    for y, given in zip(ys, advice.best_estimator_.predict(Xs), strict=True):
        assert np.mean((y - given) ** 2) < 0.1 * np.var(y)
    assert advice["l2,1"].bound.kind == "rate"


@one_cut
@pytest.mark.filterwarnings("ignore:Stopped after")  # of the last fit, in other units
def test_targets_of_any_size():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    Y = X[:, :2] + 0.1 * rng.standard_normal((60, 2))
    options = {"norms": ["l2,1", "trace"], "n_alphas": 6, "cv": 3}
    one = advise(X, Y, **options)
    for size in (1e-200, 1e200):
        other = advise(X, size * Y, **options)
        assert other.norms[0].error == pytest.approx(one.norms[0].error, rel=0.05)


def test_words_and_table_agree(iris):
    order = iris.bound_order()
    first = min(order, key=order.get)
    if order[iris.best_norm_] == 1:
        assert "The bounds agree" in iris.why
    else:
        assert f"put {first} first" in iris.why


# --- the command and the display


@one_cut
def test_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("mixnorm.advice.advise", partial(advise, n_alphas=5, cv=3))
    frame = load_iris(as_frame=True)
    table = frame.data.assign(kind=[f"kind {label}" for label in frame.target])
    place = tmp_path / "iris.csv"
    table.to_csv(place, index=False)
    report = tmp_path / "advice.html"
    rows = ["--rows", "40"]
    assert main(["advise", str(place), "--target", "kind", *rows, "--report", str(report)]) == 0
    said = capsys.readouterr().out
    assert "l2,1" in said
    assert "Report written" in said
    assert "Which norm to use for kind in iris.csv" in report.read_text()
    assert main(["advise", str(place), "--target", "kind", "--json", *rows]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["best_norm"] in NORMS
    assert len(told["norms"]) == 4
    assert told["norms"][0]["bound"]["theorem"]
    assert main(["advise", str(place), "--target", "nothing"]) == 1
    assert main(["advise", str(place), "--target", "kind", "--report", str(place)]) == 2
    assert main(["advise", str(place), "--target", "kind", "--rows", "5"]) == 2
    weighted = ["--weight", "sepal width (cm)"]
    assert main(["advise", str(place), "--target", "kind", *weighted]) == 2
    capsys.readouterr()
    counts = frame.data.round().assign(count=(10 * frame.data.iloc[:, 0]).round().astype(int))
    counts.to_csv(place, index=False)
    options = ["--target", "count", "--task", "regression", "--json", *rows]
    assert main(["advise", str(place), *options]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"] == 1


def test_command_standardizes(tmp_path, monkeypatch):
    real, taken = inspect.signature(mixnorm.advice.advise), {}
    assert real.parameters["standardize"].default is True

    def asked(*data, **options):
        taken.update(options)
        raise ValueError("enough")

    monkeypatch.setattr("mixnorm.advice.advise", asked)
    place = tmp_path / "iris.csv"
    load_iris(as_frame=True).frame.to_csv(place, index=False)
    assert main(["advise", str(place), "--target", "target"]) == 1
    assert taken["max_rows"] == 2000
    assert taken.get("standardize", True) is True


def test_display():
    pytest.importorskip("matplotlib")
    X, y = load_wine(return_X_y=True)
    shown = BoundDisplay.from_norm("l2,1", X, radius=1.0, n_outputs=3, n_draws=20)
    low, high = shown.measured_line_.get_ydata(), shown.bound_line_.get_ydata()
    assert np.all(low <= high)
    model = mixnorm.ShareBoostClassifier(
        5, alpha=0.0, loss="margin", options=mixnorm.GreedyOptions(rule="l1")
    ).fit(X, y)
    rounds = BoundDisplay.from_shareboost(model, X, y)
    assert np.all(rounds.measured_line_.get_ydata() <= rounds.bound_line_.get_ydata())
    assert rounds.ax_.get_xlabel() == "rounds"
    bare = BoundDisplay(x=[1, 2], bound=[2.0, 1.0]).plot()
    assert bare.measured_line_ is None


def test_the_penalty_falls_with_the_root_of_the_number_of_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = X[:, 0] + rng.normal(size=400)
    advice = advise(X, y, norms=["l2,1"], n_alphas=4, max_rows=100, cv=2)
    chosen = advice.norms[0].alpha
    assert advice.best_estimator_.alpha == pytest.approx(chosen * np.sqrt(100 / 400))
