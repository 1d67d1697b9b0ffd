"""Rates along a path of kernels: what the theory says, and what is measured."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from mixnorm import GreedyMKLClassifier, GreedyMKLRegressor
from mixnorm.display import KernelRatesDisplay
from mixnorm.kernels import KernelBank, KernelStack


def additive(n):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 8))
    return X, np.sin(2.0 * X[:, 0]) + np.abs(X[:, 2]) + np.cos(X[:, 3]) + 0.1 * rng.normal(size=n)


def test_rates_of_kernels_that_are_apart():
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.standard_normal((200, 5)))[0] * np.sqrt(200)
    y = X @ np.array([1.0, -0.8, 0.6, 0.4, -0.2])
    bank = KernelBank.per_feature("linear", normalize="trace")
    model = GreedyMKLRegressor(bank, n_kernels=5, n_steps=25, algorithm="l2").fit(X, y)
    rates = model.rates(X, y)
    assert rates.correlation < 0.1
    assert rates.gamma[0] <= rates.gamma[1] < 3.0
    assert rates.measured <= rates.predicted < 1.0
    assert np.all(rates.excess <= rates.bound + 1e-12)
    np.testing.assert_allclose(rates.loss[1:], model.path_["loss"], rtol=1e-6, atol=1e-12)
    assert rates.smallest > 0.5
    display = KernelRatesDisplay.from_estimator(model, X, y, name="mine")
    assert display.ax_.get_legend().get_title().get_text() == "mine"
    assert display.bound_line_ is not None
    again = KernelRatesDisplay(excess=[1.0, 0.1]).plot()
    assert again.bound_line_ is None


def test_rates_of_large_kernels():
    X = 3.0 * np.random.default_rng(0).standard_normal((100, 4))
    y = X @ np.array([1.0, -2.0, 0.5, 1.0])
    bank = KernelBank.per_feature("linear")
    rates = GreedyMKLRegressor(bank, n_kernels=4, n_steps=20, algorithm="l2").fit(X, y).rates(X, y)
    assert 0.8 < rates.predicted < 1.0
    assert np.all(rates.excess <= rates.bound * (1.0 + 1e-9) + 1e-12)


def test_rates_of_gaussian_kernels_are_nothing():
    X, y = additive(80)
    model = GreedyMKLRegressor(n_kernels=4).fit(X, y)
    rates = model.rates(X, y)
    assert rates.predicted > 1.0 - 1e-6
    K = KernelStack(KernelBank.per_feature(dtype="float64").fit(X).grams().matrices)
    given = GreedyMKLRegressor(n_kernels=4, kernel="precomputed").fit(K, y)
    assert given.rates(K, y).measured == pytest.approx(rates.measured, rel=1e-3)
    labels = (y > 1.0).astype(int)
    classes = GreedyMKLClassifier(n_kernels=3).fit(X, labels)
    assert classes.rates(X, labels).measured < 1.0
    with pytest.raises(ValueError, match="labels beside"):
        classes.rates(X, labels + 1)
    with pytest.raises(ValueError, match="squared losses"):
        GreedyMKLClassifier(n_kernels=2, loss="logistic").fit(X, labels).rates(X, labels)
    with pytest.raises(TypeError, match="has no rates"):
        KernelRatesDisplay.from_estimator(StandardScaler(), X, y)


def test_rates_check_targets():
    X, y = additive(60)
    model = GreedyMKLRegressor(n_kernels=3).fit(X, y)
    for wrong in (np.stack([y, y], axis=1), y[:-1]):
        with pytest.raises(ValueError, match="y has"):
            model.rates(X, wrong)
    K = np.stack([np.eye(60), np.exp(-((X[:, :1] - X[:, 0]) ** 2))])
    given = GreedyMKLRegressor(n_kernels=1, kernel="precomputed").fit(K, y)
    with pytest.raises(ValueError, match="between all pairs"):
        given.rates(K[:, :10], y[:10])
