"""The greedy estimators on numbers of extreme size."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_regression

from mixnorm import (
    OneVsRestGreedy,
    ShareBoostClassifier,
    ShareBoostRegressor,
    ShareBoostRegressorCV,
)
from mixnorm.estimators._common.regressor import r2
from mixnorm.pools import Columns, Pieces, Products, Stumps, Union


@pytest.mark.parametrize("factor", [1e-310, 1e-200, 1e-100, 1e100, 1e200, 1e300])
def test_targets_of_any_size(factor):
    """Units are taken out before anything is squared."""
    X, y = make_regression(60, 5, n_informative=3, random_state=0)
    y = y / np.max(np.abs(y))
    plain, scaled = (ShareBoostRegressor(3).fit(X, part) for part in (y, factor * y))
    rounding = 1e-12 if factor > 1e-300 else 1e-6
    np.testing.assert_allclose(scaled.predict(X) / factor, plain.predict(X), atol=rounding)
    assert np.all(np.isfinite(scaled.path_["loss"]))
    assert np.isfinite(scaled.null_loss_)
    assert scaled.score(X, factor * y) == pytest.approx(plain.score(X, y))
    search = ShareBoostRegressorCV(3, cv=3).fit(X, factor * y)
    assert search.score(X, factor * y) > 0.9


def test_targets_that_cannot_be_predicted():
    X, y = make_regression(60, 5, n_informative=3, random_state=0)
    for wrong, words in (
        (np.sign(y) * 1.7e308, "The targets, of size 2e.308, are too large for float64"),
        (np.sign(y) * 5e-324, "The targets, of size 5e-324, are too small"),
        (np.stack([y, 1e-200 * y], axis=1), "column 1 of y vary by"),
    ):
        with pytest.raises(ValueError, match=words):
            ShareBoostRegressor(3).fit(X, wrong)
    with pytest.raises(ValueError, match="give X as float64"):
        ShareBoostRegressor(3).fit(X.astype(np.float32), 1e100 * y)
    with pytest.raises(ValueError, match="X has columns that are so small beside targets"):
        ShareBoostRegressor(3).fit(1e-200 * X, 1e200 * y)


@pytest.mark.parametrize("pool", [None, Products(), Union([Columns(), Stumps()]), Pieces(5, 3)])
def test_rows_that_are_too_large_for_a_model(pool):
    X, y = make_regression(60, 5, n_informative=3, random_state=0)
    model = ShareBoostRegressor(3, pool=pool, random_state=0).fit(1e-100 * X, 1e100 * y)
    if isinstance(pool, Pieces):  # whose balls it lies outside of
        assert np.isfinite(model.predict(np.full((1, 5), 1e300))).all()
        return
    with pytest.raises(ValueError, match="for this model: the scores of row 1"):
        model.predict(np.array([np.zeros(5), np.full(5, 1e300)]))
    with pytest.raises(ValueError, match="X is too large or too small for this model"):
        list(model.staged_predict(np.full((1, 5), 1e300)))


@pytest.mark.parametrize("pool", [None, Products(squares=False), Columns(groups=[0, 0, 1, 2, 3])])
def test_rows_alone_and_together_far_from_zero(pool):
    """Sums of terms of 1e12 that cancel are added up in one order, for any number of rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)) + 1e12
    y = X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(60)
    model = ShareBoostRegressor(3, pool=pool).fit(X, y)
    alone = np.concatenate([model.predict(X[i : i + 1]) for i in range(60)])
    assert np.array_equal(alone, model.predict(X))
    assert np.array_equal(model.predictor()(X), alone)
    *_, last = model.staged_predict(X)
    assert np.array_equal(last, alone)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("pool", [None, Products(), Stumps(), Union([Columns(), Stumps()])])
def test_rows_of_no_weight_hold_anything(pool, make):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = X[:, 0] + X[:, 1] * X[:, 2]
    weight = np.ones(60)
    weight[:2] = 0.0
    other, targets = X.copy(), y.copy()
    other[0], targets[0] = [1e300, -1.7e308, 1e200, 1.7e308], 1.7e308
    model = ShareBoostRegressor(3, pool=pool).fit(make(X), y, weight)
    found = ShareBoostRegressor(3, pool=pool).fit(make(other), targets, weight)
    np.testing.assert_allclose(found.predict(X), model.predict(X), rtol=1e-10)


@pytest.mark.parametrize("kind", [ShareBoostClassifier, OneVsRestGreedy])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_columns_of_any_size(kind, make):
    """Also where differences overflow, and beside columns that are huge and constant."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (60, 3))
    y = np.argmax(X, axis=1)
    factors = np.array([1.7e308, 1e-200, 1.0])
    X, scaled = (np.column_stack([part, np.full(60, 1e300)]) for part in (X, factors * X))
    plain, model = kind(3).fit(make(X), y), kind(3).fit(make(scaled), y)
    assert set(np.ravel(plain.selected_)) == set(np.ravel(model.selected_))
    np.testing.assert_allclose(
        model.decision_function(scaled), plain.decision_function(X), rtol=1e-6, atol=1e-9
    )


def test_scores_of_wild_predictions():
    true = np.array([1.0, 2.0, 3.0])
    assert r2(true, np.array([1.0, 2.0, 4.0])) == 0.5
    assert -1e160 < r2(true, np.array([1e308, 0.0, 0.0])) < -1e50
    assert r2(1e-310 * true, 1e-310 * np.array([1.0, 2.0, 4.0])) == pytest.approx(0.5)
    assert r2(5e307 * true, 5e307 * np.array([1.0, 2.0, -3.0])) == pytest.approx(-17.0)
