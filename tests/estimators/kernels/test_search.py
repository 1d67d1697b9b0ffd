"""Parameters of kernel learners chosen by cross-validation."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, StratifiedKFold

from mixnorm import (
    ConvMKLClassifier,
    ConvMKLClassifierCV,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    SMSDMKLClassifier,
    SMSDMKLClassifierCV,
    UFOMKLClassifier,
    UFOMKLClassifierCV,
)
from mixnorm.estimators.kernels.base import WeightedKernelLearner
from mixnorm.exceptions import InterruptedFitWarning
from mixnorm.kernels import KernelBank, KernelStack, gaussian_bank

BANK = gaussian_bank([0.125, 0.5, 2.0], dtype="float64")
CS = [0.01, 1.0, 100.0]
SEARCHES = {
    "MKL": (MKLClassifierCV(BANK, Cs=CS, ps=[1.2, 2.0]), MKLClassifier(BANK), {"p": [1.2, 2.0]}),
    "Conv": (
        ConvMKLClassifierCV(BANK, Cs=CS, ps=[1.2], tails=[1, 4]),
        ConvMKLClassifier(BANK),
        {"p": [1.2], "tail": [1, 4]},
    ),
    "SMSD": (
        SMSDMKLClassifierCV(BANK, Cs=CS, betas=[0.0, 0.1], tails=[4]),
        SMSDMKLClassifier(BANK),
        {"beta": [0.0, 0.1], "tail": [4]},
    ),
    "UFO": (
        UFOMKLClassifierCV(BANK, Cs=CS, betas=[0.0, 0.02]),
        UFOMKLClassifier(BANK),
        {"beta": [0.0, 0.02]},
    ),
}
each_search = pytest.mark.parametrize("name", SEARCHES)


def rows(n=75, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 4))
    return X, np.argmax(X[:, :3] + 0.3 * rng.normal(size=(n, 3)), axis=1)


@each_search
def test_scores_are_those_of_a_grid_search(name):
    """Kernels are computed once and fits start from one another; tight, that changes nothing."""
    X, y = rows()
    search, plain, lists = SEARCHES[name]
    tight, folds = {"tol": 1e-5, "max_iter": 1000}, StratifiedKFold(2)
    found = clone(search).set_params(cv=folds, **tight).fit(X, y)
    wanted = GridSearchCV(clone(plain).set_params(**tight), lists | {"C": CS}, cv=folds).fit(X, y)
    scores = dict(
        zip(map(repr, map(sorted_items, wanted.cv_results_["params"])),
            wanted.cv_results_["mean_test_score"], strict=True)
    )  # fmt: skip
    for params, mean in zip(
        found.cv_results_["params"], found.cv_results_["mean_test_score"], strict=True
    ):
        assert mean == pytest.approx(scores[repr(sorted_items(params))], abs=1e-9), params
    assert found.best_score_ == pytest.approx(wanted.best_score_)
    best = clone(plain).set_params(**tight, **found.best_params_).fit(X, y)
    np.testing.assert_allclose(found.decision_function(X), best.decision_function(X), atol=1e-9)
    assert found.objective_ == pytest.approx(best.objective_)


def sorted_items(params):
    return sorted((name, float(value)) for name, value in params.items())


@each_search
def test_what_is_kept_of_a_search(name):
    X, y = rows()
    search, plain, lists = SEARCHES[name]
    found = clone(search).set_params(cv=3).fit(X, y)
    count = 3 * int(np.prod([len(values) for values in lists.values()]))
    results = found.cv_results_
    assert len(results["params"]) == count
    assert found.search_.scores().T.shape == (count, 3)
    np.testing.assert_allclose(results["mean_test_score"], found.search_.scores().T.mean(axis=1))
    np.testing.assert_allclose(results["std_test_score"], found.search_.scores().T.std(axis=1))
    assert found.best_score_ == np.max(results["mean_test_score"])
    assert set(found.best_params_) == {*lists, "C"}
    assert np.all(found.kernel_weights_ >= 0.0)
    own = {name for name in vars(clone(plain).fit(X, y)) if name.endswith("_")}
    assert own <= vars(found).keys()
    assert found.get_params()["Cs"] is not None
    assert not hasattr(clone(found), "best_params_")


def test_order_of_Cs_does_not_matter():
    X, y = rows()
    one = MKLClassifierCV(BANK, Cs=CS, ps=[1.2], cv=3).fit(X, y)
    other = MKLClassifierCV(BANK, Cs=np.array(CS[::-1]), ps=(1.2,), cv=3).fit(X, y)
    assert one.best_params_ == other.best_params_
    assert np.array_equal(one.decision_function(X), other.decision_function(X))
    single = MKLClassifierCV(BANK, Cs=one.best_params_["C"], ps=1.2, cv=3).fit(X, y)
    assert single.best_params_ == one.best_params_


def test_kinds_of_folds():
    X, y = rows()
    halves = [(np.arange(40), np.arange(40, 75)), (np.arange(35, 75), np.arange(35))]
    for cv in (2, StratifiedKFold(2), ShuffleSplit(2, random_state=0), halves, KFold(2)):
        model = MKLClassifierCV(BANK, Cs=[1.0], ps=[1.2], cv=cv).fit(X, y)
        assert model.search_.scores().T.shape == (1, 2)


def test_weights_count_in_fits_and_scores():
    X, y = rows()
    rng = np.random.default_rng(0)
    weight = np.where(np.arange(75) % 3 == 0, 0.0, 1.0)
    half = np.flatnonzero(weight > 0.0)
    folds = [(np.arange(0, 75, 2), np.arange(1, 75, 2)), (np.arange(1, 75, 2), np.arange(0, 75, 2))]
    places = {row: place for place, row in enumerate(half)}
    own = [
        tuple(np.array([places[row] for row in part if row in places]) for part in fold)
        for fold in folds
    ]
    weighted = MKLClassifierCV(BANK, Cs=CS, ps=[1.2], cv=folds).fit(X, y, sample_weight=weight)
    without = MKLClassifierCV(BANK, Cs=CS, ps=[1.2], cv=own).fit(X[half], y[half])
    np.testing.assert_allclose(weighted.search_.scores().T, without.search_.scores().T)
    np.testing.assert_allclose(weighted.decision_function(X), without.decision_function(X))
    uneven = MKLClassifierCV(BANK, Cs=CS, ps=[1.2], cv=folds)
    uneven.fit(X, y, sample_weight=rng.uniform(0.1, 9.0, size=75))
    assert not np.allclose(uneven.decision_function(X), weighted.decision_function(X))


@pytest.mark.parametrize("search", [MKLClassifierCV, MKLRegressorCV])
def test_a_fold_of_weight_zero_has_no_say(search):
    X, y = rows()
    y = y if search is MKLClassifierCV else X[:, 0]
    weight = np.where(np.arange(75) < 25, 0.0, 1.0)
    folds = [(np.delete(np.arange(75), part), part) for part in np.split(np.arange(75), 3)]
    model = search(BANK, Cs=CS, ps=[1.2], cv=folds).fit(X, y, sample_weight=weight)
    honest = search(BANK, Cs=CS, ps=[1.2], cv=folds[1:]).fit(X, y, sample_weight=weight)
    found, expected = model.cv_results_, honest.cv_results_
    assert np.isnan(found["split0_test_score"]).all()
    for old, new in (("split1", "split0"), ("split2", "split1"), ("mean", "mean")):
        np.testing.assert_array_equal(found[f"{old}_test_score"], expected[f"{new}_test_score"])
    assert model.best_params_ == honest.best_params_
    assert model.best_score_ == honest.best_score_ == np.max(expected["mean_test_score"])


def test_regression_scores_are_those_of_a_grid_search():
    X, _ = rows(30)
    y = np.sin(3.0 * X[:, 0]) + X[:, 1]
    params = {"tol": 1e-6, "max_iter": 1000}
    folds = KFold(3)
    y[:10] += 1.0  # so that the folds differ in their means
    found = MKLRegressorCV(BANK, Cs=[0.01, 1.0], ps=[1.2], cv=folds, **params).fit(X, y)
    grid = GridSearchCV(MKLRegressor(BANK, p=1.2, **params), {"C": [0.01, 1.0]}, cv=folds).fit(X, y)
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"], atol=1e-3
    )


def test_a_class_that_a_fold_does_not_have():
    X, y = rows()
    y[y == 2] = 1
    y[:3] = 2
    folds = [(np.arange(10, 75), np.arange(10)), (np.arange(60), np.arange(60, 75))]
    model = MKLClassifierCV(BANK, Cs=[1.0], ps=[1.2], cv=folds).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert 0.0 < model.best_score_ < 1.0


class Interrupt:
    """A callback as a user who presses Ctrl-C in some fold."""

    def __init__(self, when):
        self.when, self.folds = when, 0

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        if context.task_name == "fold":
            self.folds += 1
            if self.folds == self.when:
                raise KeyboardInterrupt

    def on_fit_task_end(self, estimator, context):
        pass


def test_an_interrupt_between_folds_keeps_those_done():
    X, y = rows()
    model = MKLClassifierCV(BANK, Cs=CS, ps=[1.2], cv=4)
    model.set_callbacks(Interrupt(3))
    with pytest.warns(InterruptedFitWarning, match="Interrupted during the search"):
        model.fit(X, y)
    assert model.search_.scores().T.shape == (3, 2)
    assert model.predict(X).shape == (75,)


def test_an_interrupt_in_the_first_fold_is_passed_on():
    X, y = rows()
    model = MKLClassifierCV(BANK, Cs=CS, ps=[1.2], cv=4)
    model.set_callbacks(Interrupt(1))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not hasattr(model, "classes_")


def interrupt_solve(monkeypatch, at):
    """Interrupt a fit of the search as Ctrl-C does: the engine keeps what it has."""
    calls, real = [], WeightedKernelLearner._solve

    def solved(self, *args, **options):
        found, facts = real(self, *args, **options)
        calls.append(1)
        if len(calls) == at:
            object.__setattr__(found, "interrupted", True)
        return found, facts

    monkeypatch.setattr(WeightedKernelLearner, "_solve", solved)


def test_an_interrupt_in_the_first_fold_keeps_its_candidates(monkeypatch):
    X, y = rows()
    interrupt_solve(monkeypatch, 3)
    with pytest.warns(InterruptedFitWarning, match="Interrupted during the search"):
        model = MKLClassifierCV(BANK, Cs=CS, ps=[1.2, 2.0], cv=4).fit(X, y)
    assert model.cv_results_["params"] == [{"p": 1.2, "C": cost} for cost in CS[:2]]
    assert model.n_splits_ == 1
    assert model.best_params_ in model.cv_results_["params"]


def test_an_interrupt_in_the_second_fold_keeps_the_first(monkeypatch):
    X, y = rows()
    interrupt_solve(monkeypatch, 5)
    with pytest.warns(InterruptedFitWarning, match="Interrupted during the search"):
        model = MKLClassifierCV(BANK, Cs=CS, ps=[1.2], cv=4).fit(X, y)
    assert model.n_splits_ == 1
    assert model.search_.scores().T.shape == (3, 1)


def by_params(found):
    """Return the mean score of each candidate of a search, by its parameters."""
    results = found.cv_results_
    keys = [repr(sorted_items(params)) for params in results["params"]]
    return dict(zip(keys, results["mean_test_score"], strict=True))


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 3.0, 2: 0.5}])
@pytest.mark.parametrize("scoring", [None, "accuracy"])
def test_class_weights_are_those_of_each_fold(class_weight, scoring):
    X, y = rows(90)
    X, y = X[(y != 2) | (np.arange(90) % 3 == 0)], y[(y != 2) | (np.arange(90) % 3 == 0)]
    folds = ShuffleSplit(3, random_state=0)  # whose parts have classes in unlike shares
    params = {"class_weight": class_weight, "tol": 1e-6, "max_iter": 1000}
    found = MKLClassifierCV(BANK, Cs=CS, ps=[1.2], cv=folds, scoring=scoring, **params).fit(X, y)
    plain = MKLClassifier(BANK, p=1.2, **params)
    grid = GridSearchCV(plain, {"C": CS, "p": [1.2]}, cv=folds, scoring=scoring).fit(X, y)
    assert by_params(found) == pytest.approx(by_params(grid), abs=1e-9)


def test_two_classes_may_be_ranked():
    X, y = rows()
    kinds, folds = np.where(y == 0, "a", "b"), StratifiedKFold(3)
    params = {"tol": 1e-6, "max_iter": 1000}
    search = UFOMKLClassifierCV(BANK, Cs=CS, betas=[0.0], cv=folds, scoring="roc_auc", **params)
    plain = UFOMKLClassifier(BANK, **params)
    grid = GridSearchCV(plain, {"C": CS, "beta": [0.0]}, cv=folds, scoring="roc_auc")
    found, wanted = by_params(search.fit(X, kinds)), by_params(grid.fit(X, kinds))
    assert found == pytest.approx(wanted, abs=1e-6)


def test_squared_errors_are_in_the_units_of_the_targets():
    X, _ = rows(60)
    Y = np.column_stack([1e3 * np.sin(3.0 * X[:, 0]) + 5e3, 1e3 * X[:, 1]])
    params, folds = {"tol": 1e-8, "max_iter": 1000}, KFold(3)
    scoring = "neg_mean_squared_error"
    search = MKLRegressorCV(BANK, Cs=CS, ps=[1.2], cv=folds, scoring=scoring, **params)
    grid = GridSearchCV(
        MKLRegressor(BANK, **params), {"C": CS, "p": [1.2]}, cv=folds, scoring=scoring
    )
    assert by_params(search.fit(X, Y)) == pytest.approx(by_params(grid.fit(X, Y)), rel=1e-4)


def test_a_scorer_is_given_the_rows_of_a_table():
    X, y = rows()
    table = pd.DataFrame(X, columns=list("abcd"), index=np.arange(75)[::-1])
    bank = KernelBank.from_columns(None, {"first": ["a", "b"], "rest": ["c", "d"]})
    seen = []

    def scorer(model, X, y):
        seen.append(X)
        return accuracy_score(y, model.predict(X))

    folds = KFold(3)
    model = MKLClassifierCV(bank, Cs=[1.0], ps=[1.2], cv=folds, scoring=scorer).fit(table, y)
    plain = MKLClassifierCV(bank, Cs=[1.0], ps=[1.2], cv=folds).fit(table, y)
    assert model.best_score_ == pytest.approx(plain.best_score_)
    assert all(
        part.equals(table.iloc[test]) for part, (_, test) in zip(seen, folds.split(X), strict=True)
    )


@pytest.mark.parametrize("scoring", [None, "balanced_accuracy"])
def test_a_fold_of_weight_zero_has_no_score(scoring):
    X, y = rows()
    weight = np.where(np.arange(75) < 25, 0.0, 1.0)
    folds = [(np.delete(np.arange(75), part), part) for part in np.split(np.arange(75), 3)]
    model = MKLClassifierCV(BANK, Cs=CS, ps=[1.2], cv=folds, scoring=scoring)
    model.fit(X, y, sample_weight=weight)
    assert np.isnan(model.cv_results_["split0_test_score"]).all()
    assert np.isfinite(model.best_score_)


def own_kernel(A, B):
    return A @ B.T + 1.0


# Matrices that are stored, computed at use in part, given, factors, and a function of the user's.
PLACES = {
    "stored": BANK,
    "lazy": gaussian_bank(memory=350_000),
    "factors": gaussian_bank([0.5, 2.0], factors="nystrom", rank=20),
    "function": KernelBank([own_kernel, "linear"]),
    "given": None,
}


@pytest.mark.usefixtures("copied_jobs")
@pytest.mark.parametrize("place", PLACES)
def test_workers_find_the_same(place):
    X, y = rows()
    params = {"Cs": CS, "tails": [2, 4], "cv": 3}
    model = ConvMKLClassifierCV(PLACES[place], **params)
    if place == "given":
        model.set_params(kernel="precomputed")
        X = KernelStack(BANK.fit(X).grams().matrices)
    one = model.fit(X, y).cv_results_["mean_test_score"]
    two = model.set_params(n_jobs=2).fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(one, two)


@each_search
def test_factors(name):
    X, y = rows()
    search = clone(SEARCHES[name][0]).set_params(
        bank=gaussian_bank([0.5, 2.0], factors="nystrom", rank=20), cv=3
    )
    model = search.fit(X, y)
    assert is_classifier(model)
    assert model.best_score_ > 0.5
    assert model.predict(X).shape == (75,)


WRONG = [
    (MKLClassifierCV(Cs=[]), ValueError, "Cs is empty; give at least one number to try"),
    (MKLClassifierCV(Cs=[1.0, -1.0]), ValueError, "-1.0, an entry of Cs, must be positive"),
    (MKLClassifierCV(Cs=[1.0, np.inf]), ValueError, "must be positive and finite"),
    (MKLClassifierCV(Cs=[np.nan]), ValueError, "C"),
    (MKLClassifierCV(Cs="many"), TypeError, "Cs='many' must be a list of numbers to try"),
    (MKLClassifierCV(Cs=None), TypeError, "Cs=None must be a list of numbers"),
    (MKLClassifierCV(Cs=["a"]), TypeError, "'a'"),
    (MKLClassifierCV(Cs=[[1.0]]), TypeError, "1.0"),
    (MKLClassifierCV(ps=[]), ValueError, "ps is empty"),
    (MKLClassifierCV(ps=[0.5]), ValueError, "0.5, an entry of ps, must be at least 1"),
    (MKLClassifierCV(ps=["a"]), TypeError, "ps=.*must be a list of numbers to try, got 'a'"),
    (ConvMKLClassifierCV(tails=[]), ValueError, "tails is empty"),
    (ConvMKLClassifierCV(tails=[-1]), ValueError, "-1, an entry of tails, must be at least 0"),
    (ConvMKLClassifierCV(tails=[1.5]), TypeError, "1.5, an entry of tails, must be a whole number"),
    (ConvMKLClassifierCV(floor=0.0), ValueError, "floor=0.0 must be positive"),
    (SMSDMKLClassifierCV(betas=[-1.0]), ValueError, "-1.0, an entry of betas, must be at least 0"),
    (SMSDMKLClassifierCV(q=1.0), ValueError, "q=1.0 must be at least 2"),
    (UFOMKLClassifierCV(betas={}), TypeError, "betas={} must be a list"),
    (UFOMKLClassifierCV(tol="small"), TypeError, "tol='small' must be a number"),
    (MKLRegressorCV(max_iter=0), ValueError, "max_iter=0 must be at least 1"),
    (MKLRegressorCV(kernel="rbf"), ValueError, "kernel='rbf' is not known"),
    (MKLRegressorCV(bank=[1]), TypeError, "not a KernelBank"),
    (MKLClassifierCV(loss="log"), ValueError, "loss='log' is not known"),
    (MKLClassifierCV(cv=1), ValueError, "1"),
]


@pytest.mark.parametrize(("model", "error", "said"), WRONG, ids=[str(case[0]) for case in WRONG])
def test_wrong_parameters(model, error, said):
    X, y = rows()
    with pytest.raises(error, match=said):
        clone(model).fit(X, y)
