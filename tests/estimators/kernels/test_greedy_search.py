"""The number of kernels chosen by cross-validation."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

from mixnorm import (
    GreedyMKLClassifier,
    GreedyMKLClassifierCV,
    GreedyMKLRegressor,
    GreedyMKLRegressorCV,
)
from mixnorm.engines import sparse_kernels
from mixnorm.exceptions import InterruptedFitWarning, NoKernelWarning
from mixnorm.kernels import GaussianKernel, KernelBank, KernelStack

# Absolute widths: those of a fold are then those of all rows.
BANK = KernelBank(
    [GaussianKernel(0.5)] * 6, [[c] for c in range(6)], normalize=None, dtype="float64"
)
ALPHAS = [1e-1, 1e-3]
MAE = make_scorer(mean_absolute_error, greater_is_better=False)


def rows(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 6))
    return X, np.argmax(X[:, :3] + 0.3 * rng.normal(size=(n, 3)), axis=1)


def values(n=80):
    X, _ = rows(n)
    return X, np.sin(2.0 * X[:, 1]) + np.abs(X[:, 4]) + 3.0


def by_params(found):
    """Return the mean score of each candidate of a search, by its parameters."""
    results = found.cv_results_
    keys = [repr(sorted(params.items())) for params in results["params"]]
    return dict(zip(keys, results["mean_test_score"], strict=True))


def assert_like_grid(search, plain, size, data, fit=None):
    """The same scores as of a fit of every size on every fold."""
    X, y = data
    found = search.fit(X, y, **(fit or {}))
    most = search.n_kernels if size == "n_kernels" else search.n_steps
    lists = {"alpha": ALPHAS, size: list(range(1, most + 1))}
    grid = GridSearchCV(plain, lists, cv=search.cv, scoring=search.scoring)
    wanted = by_params(grid.fit(X, y, **(fit or {})))
    scores = by_params(found)
    assert scores == pytest.approx({key: wanted[key] for key in scores}, rel=1e-6)
    best = clone(plain).set_params(**found.best_params_).fit(X, y, **(fit or {}))
    np.testing.assert_array_equal(found.predict(X), best.predict(X))
    assert found.selected_names_ == best.selected_names_
    return found


CLASSIFIERS = [
    ({}, None),
    ({"class_weight": "balanced"}, None),
    ({"class_weight": {0: 1.0, 1: 4.0, 2: 0.5}, "loss": "margin"}, "f1_macro"),
    ({"loss": "logistic"}, "neg_log_loss"),
    ({"loss": "logistic"}, "roc_auc_ovr"),
    ({"algorithm": "l1"}, None),
]


@pytest.mark.parametrize(("params", "scoring"), CLASSIFIERS)
def test_scores_are_those_of_a_grid_search(params, scoring):
    given = {"bank": BANK, "n_kernels": 3, **params}
    folds = StratifiedKFold(2)
    search = GreedyMKLClassifierCV(alphas=ALPHAS, cv=folds, scoring=scoring, **given)
    found = assert_like_grid(search, GreedyMKLClassifier(**given), "n_kernels", rows())
    assert len(found.selected_kernels_) <= found.best_params_["n_kernels"]


@pytest.mark.parametrize(
    ("algorithm", "scoring"),
    [("gomp", "neg_mean_squared_error"), ("gomp", MAE), ("l1", None), ("l1", MAE)],
)
def test_scores_of_regressions_are_those_of_a_grid_search(algorithm, scoring):
    X, y = values()
    given = {"bank": BANK, "n_kernels": 3, "algorithm": algorithm}
    search = GreedyMKLRegressorCV(alphas=ALPHAS, cv=KFold(3), scoring=scoring, **given)
    Y = np.column_stack([y, X[:, 0] * 1e3])
    assert_like_grid(search, GreedyMKLRegressor(**given), "n_kernels", (X, Y))


def test_weights_count_in_fits_and_scores():
    X, y = values()
    fit = {"sample_weight": np.random.default_rng(0).uniform(0.1, 5.0, len(y))}
    search = GreedyMKLRegressorCV(BANK, n_kernels=2, cv=KFold(3)).fit(X, y, **fit)
    train, test = next(KFold(3).split(X))
    plain = GreedyMKLRegressor(BANK, n_kernels=2)
    plain.fit(X[train], y[train], sample_weight=fit["sample_weight"][train])
    score = plain.score(X[test], y[test], sample_weight=fit["sample_weight"][test])
    assert search.cv_results_["split0_test_score"][1] == pytest.approx(score)


def test_steps_are_chosen_where_kernels_come_twice():
    given = {"bank": BANK, "n_kernels": 2, "algorithm": "l2", "n_steps": 6}
    search = GreedyMKLRegressorCV(alphas=ALPHAS, cv=KFold(3), **given)
    found = assert_like_grid(search, GreedyMKLRegressor(**given), "n_steps", values())
    assert set(found.best_params_) == {"n_steps", "alpha"}
    assert len(found.path_["kernel"]) == found.best_params_["n_steps"]


@pytest.mark.parametrize("scan", ["exact", "factors"])
def test_kernels_of_a_fold_are_those_of_all_rows(scan, monkeypatch):
    """No kernel is computed again where they are stored, and stand-ins are those of the fold."""
    X, y = values()
    pools, real = [], sparse_kernels.select

    def select(pool, *args, **options):
        pools.append(pool)
        return real(pool, *args, **options)

    monkeypatch.setattr(sparse_kernels, "select", select)
    GreedyMKLRegressorCV(BANK, n_kernels=2, scan=scan, cv=KFold(4)).fit(X, y)
    whole = pools[-1]
    assert [pool.grams.n_samples for pool in pools] == [60, 60, 60, 60, 80]
    assert all((pool.sketch is None) == (scan == "exact") for pool in pools)
    assert np.array_equal(pools[0].grams.matrices[3], whole.grams.matrices[3][20:, 20:])
    assert all(float(np.sum(pool.weight)) == pytest.approx(1.0) for pool in pools)


BANKS = {
    "factors": KernelBank.per_feature(factors="nystrom", rank=10),
    "little memory": KernelBank.per_feature(memory=60_000),
    "all columns": KernelBank(["linear", "gaussian"]),
}


@pytest.mark.usefixtures("copied_jobs")
@pytest.mark.parametrize(
    ("name", "scan"),
    [("factors", "exact"), ("little memory", "factors"), ("all columns", "factors")],
)
def test_workers_find_the_same(name, scan):
    X, y = rows()
    model = GreedyMKLClassifierCV(BANKS[name], n_kernels=2, scan=scan, alphas=ALPHAS, cv=3)
    one = model.fit(X, y).cv_results_["mean_test_score"]
    two = model.set_params(n_jobs=2).fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(one, two)
    assert one.shape == (4,)


@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
def test_given_matrices(scoring):
    X, y = rows()
    fitted = BANK.fit(X)
    params = {"n_kernels": 3, "cv": 3, "loss": "logistic", "scoring": scoring}
    stack = KernelStack(fitted.grams().matrices)
    given = GreedyMKLClassifierCV(kernel="precomputed", **params).fit(stack, y)
    own = GreedyMKLClassifierCV(BANK, **params).fit(X, y)
    assert by_params(given) == pytest.approx(by_params(own), abs=1e-9)
    new = fitted.between(X[:9])
    np.testing.assert_allclose(given.predict_proba(new), own.predict_proba(X[:9]), atol=1e-6)


def test_tables_and_sparse_rows():
    X, y = rows()
    X[np.abs(X) < 0.5] = 0.0
    params = {"n_kernels": 2, "cv": StratifiedKFold(3)}
    dense = GreedyMKLClassifierCV(BANK, **params).fit(X, y)
    sparse = GreedyMKLClassifierCV(BANK, **params).fit(sp.csr_array(X), y)
    assert by_params(sparse) == pytest.approx(by_params(dense), abs=1e-9)
    table = pd.DataFrame(X, columns=list("abcdef"), index=np.arange(80)[::-1])
    bank = KernelBank.from_columns(None, {name: [name] for name in table.columns})
    named = GreedyMKLClassifierCV(bank, **params).fit(table, y)
    assert named.selected_names_[0][0] in "abc"
    plain = GreedyMKLClassifierCV(**params).fit(table, y)
    assert plain.selected_names_[0][:2] in ("a:", "b:", "c:")


def test_one_standard_error_takes_fewer_kernels():
    X, y = values(200)
    y = y + 0.3 * np.random.default_rng(1).normal(size=200)
    best = GreedyMKLRegressorCV(BANK, n_kernels=6, alphas=ALPHAS).fit(X, y)
    few = clone(best).set_params(one_standard_error=True).fit(X, y)
    assert few.best_params_["n_kernels"] == 2 < best.best_params_["n_kernels"]
    assert few.best_params_["alpha"] == best.best_params_["alpha"]
    results = best.cv_results_
    near = results["mean_test_score"][few.best_index_]
    assert near >= best.best_score_ - results["standard_error"][best.best_index_]


def test_a_penalty_that_leaves_no_kernel():
    X, y = values()
    model = GreedyMKLRegressorCV(BANK, n_kernels=3, algorithm="l1", alphas=[1e3, 1e-3], cv=3)
    model.fit(X, y)
    strong = model.cv_results_["param_alpha"] == 1e3
    assert model.cv_results_["param_n_kernels"][strong].tolist() == [1]
    assert model.best_params_["alpha"] == 1e-3
    with pytest.warns(NoKernelWarning, match="Lower alpha"):
        none = model.set_params(alphas=1e3).fit(X, y)
    assert none.best_score_ < 0.0
    assert np.allclose(none.predict(X), y.mean())


@pytest.mark.parametrize("loss", ["squared", "logistic", "margin"])
def test_a_class_that_a_fold_does_not_have(loss):
    X, y = rows()
    y[y == 2] = 1
    y[:3] = 2
    folds = [(np.arange(10, 80), np.arange(10)), (np.arange(60), np.arange(60, 80))]
    model = GreedyMKLClassifierCV(BANK, n_kernels=2, alpha=1e-2, loss=loss, cv=folds).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert 0.0 < model.best_score_ < 1.0


def interrupt_select(monkeypatch, at):
    calls, real = [], sparse_kernels.select

    def select(*args, **options):
        path = real(*args, **options)
        calls.append(1)
        if len(calls) == at:
            object.__setattr__(path, "interrupted", True)
        return path

    monkeypatch.setattr(sparse_kernels, "select", select)


def test_an_interrupt_in_the_first_fold(monkeypatch):
    X, y = values()
    interrupt_select(monkeypatch, 2)
    with pytest.warns(InterruptedFitWarning, match="during the search over 3 folds"):
        model = GreedyMKLRegressorCV(BANK, n_kernels=3, alphas=ALPHAS, cv=3).fit(X, y)
    assert [params["alpha"] for params in model.cv_results_["params"]] == [ALPHAS[0]] * 3
    assert model.predict(X).shape == y.shape


def test_an_interrupt_in_the_second_fold(monkeypatch):
    X, y = values()
    interrupt_select(monkeypatch, 3)
    with pytest.warns(InterruptedFitWarning, match="Interrupted during the search"):
        model = GreedyMKLRegressorCV(BANK, n_kernels=3, alphas=ALPHAS, cv=3).fit(X, y)
    assert model.n_splits_ == 1
    assert len(model.cv_results_["params"]) == 6


def test_an_interrupt_of_the_first_path_is_passed_on(monkeypatch):
    X, y = values()
    interrupt_select(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        GreedyMKLRegressorCV(BANK, n_kernels=3, cv=3).fit(X, y)


def test_smaller_models_are_read_off_the_path():
    X, y = values()
    model = GreedyMKLRegressorCV(BANK, n_kernels=4, cv=3).fit(X, y)
    assert model.best_params_["n_kernels"] > 1
    smaller = model.truncate(1)
    assert smaller.selected_names_ == model.selected_names_[:1]
    assert smaller.get_params()["n_kernels"] == 4
    plain = GreedyMKLRegressor(BANK, n_kernels=1).fit(X, y)
    np.testing.assert_array_equal(smaller.predict(X), plain.predict(X))


WRONG = [
    ({"alphas": []}, ValueError, "alphas is empty"),
    ({"alphas": [0.1, 0.0]}, ValueError, "0.0, an entry of alphas, must be positive"),
    ({"alphas": "a"}, TypeError, "alphas='a' must be a list of numbers"),
    ({"alpha": 0.0}, ValueError, "alpha=0.0 must be positive"),
    ({"n_kernels": 0}, ValueError, "n_kernels=0 must be at least 1"),
    ({"algorithm": "l3"}, ValueError, "algorithm='l3' is not known"),
    ({"one_standard_error": 1}, TypeError, "one_standard_error=1 must be True or False"),
    ({"scoring": "best"}, ValueError, "best"),
]


@pytest.mark.parametrize(("params", "error", "message"), WRONG)
@pytest.mark.parametrize("kind", [GreedyMKLClassifierCV, GreedyMKLRegressorCV])
def test_wrong_parameters(kind, params, error, message):
    X, y = rows()
    with pytest.raises(error, match=message):
        kind(BANK, cv=3, **params).fit(X, y)
