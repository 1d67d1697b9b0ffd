"""The penalty that follows the evidence, against scikit-learn's and against dense matrices."""

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

from mixnorm import GreedyOptions, ShareBoostClassifier, ShareBoostRegressor
from mixnorm.engines import greedy
from mixnorm.exceptions import MixnormWarning


def table(seed=0, n=200, noise=2.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6)) * [1.0, 5.0, 0.1, 1.0, 30.0, 1.0] + [
        0.0,
        9.0,
        0.0,
        1e3,
        0.0,
        0.0,
    ]
    weights = [1.0, 0.2, 10.0, 0.0, 0.01, 0.5]
    return X, X @ weights + noise * rng.standard_normal(n)


@pytest.mark.parametrize("noise", [0.1, 2.0, 20.0])
@pytest.mark.parametrize("unit", [1.0, 1e4])
def test_the_penalty_of_a_regression_is_that_of_bayesian_ridge(monkeypatch, noise, unit):
    """Its two precisions give the same penalty, once both went on to the end."""
    exact = greedy.GreedySettings(alpha_ratio=1.0 + 1e-6, alpha_changes=500)
    follow = greedy.engine.follow_evidence
    monkeypatch.setattr(
        greedy.engine, "follow_evidence", lambda *args: follow(*args[:-1], settings=exact)
    )
    X, y = table(noise=noise)
    Z, n = (X - X.mean(axis=0)) / X.std(axis=0), len(X)
    model = ShareBoostRegressor(6, options=GreedyOptions(tol=1e-12)).fit(X, unit * y)
    flat = {"alpha_1": 0.0, "alpha_2": 0.0, "lambda_1": 0.0, "lambda_2": 0.0}
    peer = BayesianRidge(max_iter=10_000, tol=1e-12, **flat).fit(Z, y)
    # Theirs: (alpha |y - Z w|^2 + lambda |w|^2) / 2. Ours: |y - Z w|^2 / 2n + alpha |w|^2.
    assert model.alpha_[-1] == pytest.approx(peer.lambda_ / (2 * n * peer.alpha_), rel=1e-3)
    np.testing.assert_allclose(model.coef_ * X.std(axis=0), unit * peer.coef_, rtol=1e-4)


def test_small_samples_get_a_larger_penalty_than_large_ones():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((4000, 8))
    y = (X[:, 0] + X[:, 1] + 2.0 * rng.logistic(size=4000) > 0).astype(int)
    few = ShareBoostClassifier(6).fit(X[:100], y[:100])
    many = ShareBoostClassifier(6).fit(X, y)
    assert few.alpha_[-1] > 5.0 * many.alpha_[-1]
    assert few.alpha_.shape == (6,)


def test_noise_alone_is_held_by_the_largest_penalty():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 5))
    model = ShareBoostRegressor(3).fit(X, rng.standard_normal(60))
    spread = np.std(model.predict(X))
    assert spread < 0.5
    assert model.alpha_[-1] > 0.01


def test_a_number_stays_what_it_is():
    X, y = table()
    model = ShareBoostRegressor(3, alpha=0.25).fit(X, y)
    np.testing.assert_array_equal(model.alpha_, 0.25)


@pytest.mark.parametrize("penalty", ["ridge", "l1", "linf,1"])
def test_penalties_of_any_degree_follow_the_unit_of_the_targets(penalty):
    X, y = table()
    one = ShareBoostRegressor(3, options=GreedyOptions(penalty=penalty)).fit(X, y)
    other = ShareBoostRegressor(3, options=GreedyOptions(penalty=penalty)).fit(X, 1000.0 * y)
    np.testing.assert_allclose(other.coef_, 1000.0 * one.coef_, rtol=1e-6)
    power = 0 if penalty == "ridge" else 1
    np.testing.assert_allclose(other.alpha_, 1000.0**power * one.alpha_, rtol=1e-6)


def test_the_smallest_weights_of_rows_have_a_penalty():
    """The number of rows times the penalty underflows to zero."""
    X, y = np.eye(7)[:, [5]], np.eye(7, dtype=int)[4]
    model = ShareBoostClassifier(fit_intercept=False, options=GreedyOptions(max_iter=1))
    with pytest.warns(MixnormWarning):  # light rows, few iterations
        model.fit(X, y, sample_weight=np.full(7, 5e-324))
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.filterwarnings("ignore::mixnorm.exceptions.FewerFeaturesWarning")
@pytest.mark.parametrize("penalty", ["l1", "linf,1"])
def test_targets_whose_inverse_overflows(penalty):
    X = np.random.default_rng(0).standard_normal((30, 3))
    y = 1e-312 * X[:, 0]
    assert np.allclose(
        ShareBoostRegressor(2, options=GreedyOptions(penalty=penalty)).fit(X, y).predict(X),
        y,
        atol=1e-317,
    )
    held = ShareBoostRegressor(2, alpha=0.1, options=GreedyOptions(penalty=penalty)).fit(X, y)
    assert np.ptp(held.predict(X)) == 0.0
