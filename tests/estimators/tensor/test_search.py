"""TensorKernelRegressorCV and TensorKernelClassifierCV."""

import math

import numpy as np
import pytest
from joblib import parallel_config
from sklearn import config_context
from sklearn.datasets import load_iris
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneOut, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mixnorm import (
    TensorKernelClassifier,
    TensorKernelClassifierCV,
    TensorKernelRegressor,
    TensorKernelRegressorCV,
)
from mixnorm.engines import dual
from mixnorm.exceptions import InterruptedFitWarning, NotConvergedWarning

from .conftest import each_kernel, labels, table


@each_kernel
def test_folds_are_fits_of_their_rows(kernel):
    """Scores along the path are those of models that are fitted on the rows of the fold alone."""
    X, y = table(30)
    cv = KFold(3, shuffle=True, random_state=0)
    gammas = [0.1, 10.0, 1000.0]
    search = TensorKernelRegressorCV(
        kernel, gammas=gammas, cv=cv, random_state=0, representation="tensor"
    ).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for place, gamma in enumerate(gammas):
        for fold, (train, test) in enumerate(cv.split(X)):
            one = TensorKernelRegressor(
                kernel, gamma=gamma, standardize=False, representation="tensor"
            ).fit(Z[train], y[train])
            wanted = one.score(Z[test], y[test])
            found = search.search_.scores().T[place, fold]
            assert found == pytest.approx(wanted, abs=1e-4)
    best = TensorKernelRegressor(kernel, gamma=search.gamma_, representation="tensor").fit(X, y)
    np.testing.assert_allclose(search.predict(X), best.predict(X), rtol=1e-7)


def test_rows_that_are_in_a_fold_twice():
    X, y = table(30)
    rng = np.random.default_rng(0)
    cv = [(rng.integers(0, 30, 30), np.arange(30)) for _ in range(2)]
    search = TensorKernelRegressorCV(gammas=[10.0], cv=cv).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for fold, (train, test) in enumerate(cv):
        one = TensorKernelRegressor(gamma=10.0, standardize=False).fit(Z[train], y[train])
        found = search.search_.scores().T[0, fold]
        assert found == pytest.approx(one.score(Z[test], y[test]), abs=1e-4)


def test_folds_of_one_row():
    X, y = table(30)
    model = TensorKernelRegressorCV(gammas=10, cv=LeaveOneOut()).fit(X, y)
    assert model.gamma_ > 0.1
    assert 0.5 < model.best_score_ < 1.0
    with pytest.raises(ValueError, match="gives no folds"):
        TensorKernelRegressorCV(cv=[]).fit(X, y)


@pytest.mark.filterwarnings("ignore:Stopped after")
def test_folds_that_do_not_converge():
    X, y = table(30)
    with pytest.warns(NotConvergedWarning, match="fits of 3 folds did not reach tol=1e-08"):
        TensorKernelRegressorCV(gammas=[100.0], cv=3, max_iter=2).fit(X, y)


def test_search_of_classes():
    X, y = labels()
    model = TensorKernelClassifierCV(gammas=8, cv=3).fit(X, y)
    assert model.gammas_.shape == (8,)
    assert model.gammas_[0] == pytest.approx(1e-2)
    assert model.gammas_[-1] == pytest.approx(1e4)
    assert model.gamma_ in model.gammas_
    assert model.best_score_ == model.cv_results_["mean_test_score"].max()
    assert model.score(X, y) > 0.8


def test_better_than_a_line():
    X, y = table(60)
    new, truth = table(400, seed=1)
    model = TensorKernelRegressorCV(gammas=20, cv=3).fit(X, y)
    line = make_pipeline(StandardScaler(), RidgeCV()).fit(X, y)
    assert model.score(new, truth) > 0.8 > line.score(new, truth)


@pytest.mark.parametrize("gammas", [0, -3, [], [1.0, -1.0], "many", [1.0, math.nan], True])
def test_bad_gammas(gammas):
    X, y = table()
    with pytest.raises((TypeError, ValueError), match="gammas"):
        TensorKernelRegressorCV(gammas=gammas).fit(X, y)


@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc_ovr"])
def test_other_scores_are_those_of_a_grid_search(scoring):
    X, y = load_iris(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[::2], y[::2]
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    gammas = {"gamma": [1.0, 10.0, 100.0]}
    plain = TensorKernelClassifier(standardize=False)
    grid = GridSearchCV(plain, gammas, scoring=scoring, cv=cv).fit(X, y)
    model = TensorKernelClassifierCV(
        gammas=gammas["gamma"], cv=cv, scoring=scoring, standardize=False
    ).fit(X, y)
    # Both are within 1e-8 of the same optimum.
    for fold in range(3):
        name = f"split{fold}_test_score"
        np.testing.assert_allclose(model.cv_results_[name], grid.cv_results_[name], atol=1e-3)
    assert model.best_params_ == grid.best_params_


def test_squared_errors_are_those_of_a_grid_search():
    X, y = table()
    Y, cv = np.stack([y, -(y**2)], axis=1), KFold(3)
    options = {"cv": cv, "scoring": "neg_mean_squared_error"}
    plain = TensorKernelRegressor(standardize=False)
    grid = GridSearchCV(plain, {"gamma": [1.0, 100.0]}, **options).fit(X, Y)
    model = TensorKernelRegressorCV(gammas=[100.0, 1.0], standardize=False, **options).fit(X, Y)
    assert model.best_params_ == grid.best_params_
    for name in ("mean_test_score", "std_test_score"):
        np.testing.assert_allclose(model.cv_results_[name], grid.cv_results_[name], rtol=1e-3)


def test_workers_groups_and_routing():
    X, y = table(60)
    groups = np.arange(60) % 6
    one = TensorKernelRegressorCV(gammas=4, cv=GroupKFold(3)).fit(X, y, groups=groups)
    with parallel_config(backend="threading"):  # processes take seconds to start
        two = TensorKernelRegressorCV(gammas=4, cv=GroupKFold(3), n_jobs=2).fit(X, y, groups=groups)
    splits = list(GroupKFold(3).split(X, y, groups))
    same = TensorKernelRegressorCV(gammas=4, cv=splits).fit(X, y)
    with config_context(enable_metadata_routing=True):
        search = TensorKernelRegressorCV(gammas=4, cv=GroupKFold(3))
        pipe = make_pipeline("passthrough", search).fit(X, y, groups=groups)
    for other in (two, same, pipe[-1]):
        found = other.search_.scores().T
        np.testing.assert_array_equal(found, one.search_.scores().T)


def test_one_standard_error_takes_the_smallest_gamma_within_it():
    X, y = labels()
    model = TensorKernelClassifierCV(gammas=12, one_standard_error=True).fit(X, y)
    mean, error = model.cv_results_["mean_test_score"], model.cv_results_["standard_error"]
    best = int(np.argmax(mean))
    assert model.best_index_ == int(np.argmax(mean >= mean[best] - error[best]))
    assert model.gamma_ < model.gammas_[best]


@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
def test_rows_of_weight_zero_are_not_there(scoring):
    X, y = labels(60)
    weight = np.random.default_rng(0).integers(0, 2, 60).astype(float)
    kept = np.flatnonzero(weight)
    model = TensorKernelClassifierCV(gammas=[1.0, 100.0], cv=3, scoring=scoring)
    found = model.fit(X, y, sample_weight=weight).search_.scores().T
    wanted = model.fit(X[kept], y[kept]).search_.scores().T
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def tiring(monkeypatch, n_calls):
    """Let the kernel be interrupted after some evaluations of the dual."""
    calls, matrix = [], dual.FeatureContraction.matrix

    def tired(self, alpha):
        calls.append(1)
        if len(calls) == n_calls:
            raise KeyboardInterrupt
        return matrix(self, alpha)

    monkeypatch.setattr(dual.FeatureContraction, "matrix", tired)
    return calls


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_an_interrupt_in_the_first_fold_keeps_its_candidates(monkeypatch, n_outputs):
    X, y = table()
    Y = np.stack([y, y**2][:n_outputs], axis=1)
    calls = tiring(monkeypatch, -1)
    whole = TensorKernelRegressorCV(gammas=5, cv=3).fit(X, Y).cv_results_["split0_test_score"]
    tiring(monkeypatch, len(calls) // 6)
    with pytest.warns(InterruptedFitWarning, match="Interrupted during the search"):
        model = TensorKernelRegressorCV(gammas=5, cv=3).fit(X, Y)
    found = model.cv_results_["split0_test_score"]
    assert 0 < len(found) < 5
    np.testing.assert_allclose(found, whole[: len(found)], rtol=1e-12)
    assert model.n_splits_ == 1
    assert model.gamma_ in model.gammas_


def test_an_interrupt_later_keeps_whole_folds(monkeypatch):
    X, y = table()
    calls = tiring(monkeypatch, -1)
    whole = TensorKernelRegressorCV(gammas=5, cv=3).fit(X, y).search_.scores().T
    tiring(monkeypatch, len(calls) // 2)
    with pytest.warns(InterruptedFitWarning, match="Interrupted during the search"):
        model = TensorKernelRegressorCV(gammas=5, cv=3).fit(X, y)
    np.testing.assert_array_equal(model.search_.scores().T, whole[:, :1])
    assert model.score(X, y) > 0.5
