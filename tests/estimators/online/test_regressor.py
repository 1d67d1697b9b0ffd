"""Targets of online regressors."""

import numpy as np
import pytest

from mixnorm import (
    MirrorDescentRegressor,
)
from mixnorm.engines.mirror import layout as layout

from .conftest import N, rows


def test_targets_of_any_origin():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4)) + 100.0
    y = X[:, 0] - 2.0 * X[:, 1]
    one = MirrorDescentRegressor().partial_fit(X, y)
    other = MirrorDescentRegressor().partial_fit(X, y + 1e5)
    assert other.loss_ == pytest.approx(one.loss_, rel=1e-3)  # the first target costs nothing
    np.testing.assert_allclose(other.predict(X), one.predict(X) + 1e5, rtol=1e-6)
    assert other.score(X, y + 1e5) > 0.9


def test_targets_that_are_not_known():
    X, Y = rows(), rows()[:, :3]
    Y[::2, 1] = np.nan
    model = MirrorDescentRegressor().partial_fit(X, Y)
    assert np.all(np.isfinite(model.predict(X)))
    model.partial_fit(X, np.full((N, 3), np.nan))
    before = model.coef_
    model.learn_one(X[0], np.array([np.nan] * 3))
    assert np.array_equal(model.coef_, before)
    with pytest.raises(ValueError, match="NaN only"):
        MirrorDescentRegressor().fit(X, np.full(N, np.nan))
    for wrong in (Y[:, :2], Y[:, 0]):
        with pytest.raises(ValueError, match="had 3 before"):
            model.partial_fit(X, wrong)
    with pytest.raises(ValueError, match="inf"):
        model.partial_fit(X, np.full((N, 3), np.inf))


@pytest.mark.parametrize("several", [False, True])
def test_single_targets_are_checked(several):
    X, Y = rows(), rows()[:, :3]
    model = MirrorDescentRegressor()
    for i in range(20):
        model.learn_one(X[i], Y[i] if several else Y[i, 0])
    before = model.n_rounds_
    for wrong in (np.inf, "a", np.ones(2), 1.0 if several else np.ones(3)):
        with pytest.raises(ValueError, match="inf|string|had|columns"):
            model.learn_one(X[0], wrong)
    assert model.n_rounds_ == before
    model.learn_one(X[0], [1, 2, 3] if several else 1)
    assert np.all(np.isfinite(model.coef_))


@pytest.mark.parametrize("loss", ["huber", "absolute", "epsilon_insensitive"])
def test_a_huge_target_is_refused_in_words(loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = X[:, 0]
    model = MirrorDescentRegressor("l2,1", loss).partial_fit(X[:30], y[:30])
    with pytest.raises(ValueError, match="sample weights are too large"):
        model.partial_fit(X[30:32], [1.7e308, -1.7e308]).partial_fit(X[31:], y[31:])
