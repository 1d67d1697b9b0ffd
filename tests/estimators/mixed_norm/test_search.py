"""The penalty chosen by cross-validation."""

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

import mixnorm
from mixnorm import (
    MixedNormClassifier,
    MixedNormClassifierCV,
    MixedNormRegressor,
    MixedNormRegressorCV,
)
from mixnorm.norms import MixedNorm


@pytest.fixture(scope="module")
def data():
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.hstack([X, np.random.default_rng(0).normal(size=(150, 6))]), y


@pytest.fixture(scope="module")
def regression():
    """Three outputs that share three of thirty features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 30))
    return X, X[:, :3] @ rng.normal(size=(3, 3)) + 0.5 * rng.normal(size=(100, 3)) + 2.0


def test_a_sensible_penalty(regression):
    X, Y = regression
    model = MixedNormRegressorCV("l2,1").fit(X, Y)
    assert len(model.alphas_) == 50
    assert model.alphas_[0] == model.alpha_max_
    assert 0.02 * model.alpha_max_ < model.alpha_ < 0.5 * model.alpha_max_
    assert model.support_.tolist() == [0, 1, 2]
    oracle = MixedNormRegressor(alpha=1e-3).fit(X[:, :3], Y).score(X[:, :3], Y)
    assert model.best_score_ > oracle - 0.1


@pytest.mark.parametrize("kind", [MixedNormClassifierCV, MixedNormRegressorCV])
def test_one_standard_error_prefers_the_larger_penalty(data, kind):
    rule = kind(alphas=15, cv=4).fit(*data)
    best = kind(alphas=15, cv=4, one_standard_error=False).fit(*data)
    mean, error = rule.cv_results_["mean_test_score"], rule.cv_results_["standard_error"]
    top = int(np.argmax(mean))
    assert best.alpha_ == best.alphas_[top]
    assert best.best_score_ == mean.max()
    assert rule.alpha_ >= best.alpha_
    within = mean >= mean[top] - error[top]
    assert rule.alpha_ == rule.alphas_[np.flatnonzero(within)[0]]


def test_results_are_those_of_separate_fits(data):
    X, y = data
    folds = StratifiedKFold(3)
    model = MixedNormClassifierCV(alphas=4, cv=folds, tol=1e-6).fit(X, y)
    results = model.cv_results_
    assert list(pd.DataFrame(results).columns) == [
        "params", "param_alpha", "split0_test_score", "split1_test_score", "split2_test_score",
        "mean_test_score", "std_test_score", "rank_test_score", "standard_error", "alpha",
    ]  # fmt: skip
    for fold, (train, test) in enumerate(folds.split(X, y)):
        for position, alpha in enumerate(model.alphas_):
            plain = MixedNormClassifier(alpha=alpha, tol=1e-6).fit(X[train], y[train])
            score = plain.score(X[test], y[test])
            assert results[f"split{fold}_test_score"][position] == pytest.approx(score, abs=0.021)
    final = MixedNormClassifier(alpha=model.alpha_, tol=1e-6).fit(X, y)
    assert np.array_equal(model.coef_, final.coef_)
    assert model.dual_gap_ == final.dual_gap_


def test_the_grid_may_be_given(regression):
    X, Y = regression
    model = MixedNormRegressorCV(alphas=[1.0, 0.1, 0.01], cv=KFold(3)).fit(X, Y)
    assert model.alphas_.tolist() == [1.0, 0.1, 0.01]
    assert model.alpha_ in model.alphas_


def test_scoring(regression):
    X, Y = regression
    model = MixedNormRegressorCV(alphas=5, cv=3, scoring="neg_mean_squared_error").fit(X, Y)
    assert model.best_score_ < 0
    flat = MixedNormRegressorCV(alphas=5, cv=3, scoring=lambda est, X, y: 1.0).fit(X, Y)
    assert flat.alpha_ == flat.alpha_max_  # of equals, the one with fewest features


def test_groups_weights_and_jobs(regression):
    X, Y = regression
    groups = np.arange(100) // 10
    weight = np.random.default_rng(0).uniform(size=100)
    model = MixedNormRegressorCV(alphas=5, cv=GroupKFold(5))
    one = clone(model).fit(X, Y, sample_weight=weight, groups=groups)
    with joblib.parallel_config("threading"):
        two = clone(model).set_params(n_jobs=2).fit(X, Y, sample_weight=weight, groups=groups)
    assert one.alpha_ == two.alpha_
    assert np.array_equal(one.coef_, two.coef_)
    other = clone(model).fit(X, Y, groups=groups)
    assert np.any(other.coef_ != one.coef_)


def test_sparse(regression):
    X, Y = regression
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    dense = MixedNormRegressorCV(alphas=5, cv=3, tol=1e-7).fit(X, Y)
    for make in (sp.csc_array, sp.csr_matrix):
        sparse = MixedNormRegressorCV(alphas=5, cv=3, tol=1e-7).fit(make(X), Y)
        assert sparse.alpha_ == pytest.approx(dense.alpha_)
        assert sparse.coef_ == pytest.approx(dense.coef_, abs=1e-3)


def test_norms_and_losses(data):
    for norm in ("trace", MixedNorm(np.inf, 1)):
        model = MixedNormClassifierCV(norm, alphas=[0.1, 0.03], cv=2, loss="margin").fit(*data)
        assert model.best_score_ > 0.85
    hinge = MixedNormClassifierCV(alphas=[0.1, 0.03], cv=2, loss="hinge").fit(*data)
    assert hinge.best_score_ > 0.85
    assert not hasattr(hinge, "predict_proba")


def test_two_classes_and_strings(data):
    X, y = data
    model = MixedNormClassifierCV(alphas=5, cv=3).fit(X, np.array(["a", "b"])[np.minimum(y, 1)])
    assert model.coef_.shape == (1, 10)
    assert model.best_score_ > 0.95


def test_class_weights(data):
    X, y = data
    X, y = X[:120], y[:120]
    given = {0: 1.0, 1: 4.0, 2: 0.5}
    model = MixedNormClassifierCV(alphas=[0.1, 0.03], cv=3, class_weight=given).fit(X, y)
    plain = MixedNormClassifier(alpha=model.alpha_, class_weight=given).fit(X, y)
    assert np.array_equal(model.coef_, plain.coef_)
    train, test = next(StratifiedKFold(3).split(X, y))
    fold = MixedNormClassifier(alpha=0.03, class_weight=given).fit(X[train], y[train])
    found = model.cv_results_["split0_test_score"][1]
    assert found == pytest.approx(fold.score(X[test], y[test]), abs=0.05)
    balanced = MixedNormClassifierCV(alphas=3, cv=3, class_weight="balanced").fit(X, y)
    assert balanced.best_score_ > 0.8


def _no_score(*args, **options):
    return np.nan


def test_wrong_parameters(data):
    for params, error, message in [
        (dict(alphas=0), ValueError, "alphas=0 must be at least 1"),
        (dict(alphas=[0.1, 0.2]), ValueError, "alphas must fall"),
        (dict(alpha_ratio=2), ValueError, "alpha_ratio=2 must be above 0"),
        (dict(norm="no"), ValueError, "norm='no' is not known"),
        (dict(one_standard_error="yes"), TypeError, "one_standard_error='yes' must be True or"),
        (dict(cv=[]), ValueError, "gives no folds"),
        (dict(norm=MixedNorm(2, 1.5)), TypeError, "which a penalty needs. Mixed norms with outer"),
        (dict(alphas=2, cv=2, scoring=_no_score), ValueError, "No candidate has a held-out score"),
        (dict(tol=-1), ValueError, "tol=-1"),
    ]:
        model = MixedNormClassifierCV(**params)
        with pytest.raises(error, match=message):
            model.fit(*data)
        assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("kind", [MixedNormClassifierCV, MixedNormRegressorCV])
def test_storage(tmp_path, data, kind):
    X, _ = data
    model = kind(alphas=[0.1, 0.01], cv=StratifiedKFold(3), n_jobs=1).fit(*data)
    mixnorm.save(model, tmp_path / "model.mixnorm")
    loaded = mixnorm.load(tmp_path / "model.mixnorm")
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert loaded.alpha_ == model.alpha_
    assert np.array_equal(loaded.cv_results_["alpha"], [0.1, 0.01])
