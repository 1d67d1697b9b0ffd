"""Regression with several kernels: units of the targets, several outputs, several labels."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge

from mixnorm import GreedyMKLRegressor, MKLRegressor, MKLRegressorCV
from mixnorm.kernels import GaussianKernel, KernelBank, gaussian_bank

BANK = gaussian_bank([0.125, 0.5, 2.0], dtype="float64")


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 3))
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)


def test_one_kernel_is_kernel_ridge():
    X, y = rows()
    bank = KernelBank([GaussianKernel(tau=0.5)], dtype="float64")
    found = MKLRegressor(bank, C=4.0).fit(X, y)
    wanted = KernelRidge(alpha=0.25, kernel="rbf", gamma=1.0).fit(X, y - y.mean())
    np.testing.assert_allclose(found.predict(X), wanted.predict(X) + y.mean(), atol=1e-9)
    assert found.intercept_ == pytest.approx(y.mean())
    np.testing.assert_allclose(found.kernel_weights_, [1.0])
    assert found.dual_gap_ <= 1e-9 * found.objective_


@pytest.mark.parametrize("p", [1.2, 2.0, np.inf])
@pytest.mark.parametrize("unit", [1e6, 1e-6])
@pytest.mark.parametrize("shift", [0.0, -3e3])
def test_units_and_shifts_of_the_targets(unit, shift, p):
    X, y = rows()
    plain = MKLRegressor(BANK, p=p).fit(X, y)
    other = MKLRegressor(BANK, p=p).fit(X, unit * (y + shift))
    # A shift of 3000 leaves 12 digits of targets near 1.
    np.testing.assert_allclose(other.kernel_weights_, plain.kernel_weights_, atol=1e-6)
    np.testing.assert_allclose(other.predict(X) / unit, plain.predict(X) + shift, atol=1e-6)
    assert other.objective_ / unit**2 == pytest.approx(plain.objective_, rel=1e-6)
    assert other.dual_gap_ / unit**2 == pytest.approx(plain.dual_gap_, rel=1e-3, abs=1e-9)
    assert other.n_iter_ == plain.n_iter_


@pytest.mark.parametrize("unit", [1e6, 1e-6])
def test_units_and_few_kernels(unit):
    """For p=1 rounding decides which of many equally good weights a loose fit ends at."""
    X, y = rows()
    plain = MKLRegressor(BANK, p=1.0, tol=1e-4).fit(X, y)
    other = MKLRegressor(BANK, p=1.0, tol=1e-4).fit(X, unit * (y - 5.0))
    assert other.objective_ / unit**2 == pytest.approx(plain.objective_, rel=2e-4)
    np.testing.assert_allclose(other.predict(X) / unit, plain.predict(X) - 5.0, atol=0.02)


@pytest.mark.filterwarnings("ignore:No kernel is left")
@pytest.mark.parametrize("value", [0.0, 3.3, -1e9])
def test_constant_targets(value):
    X, _ = rows()
    for y in (np.full(60, value), np.full((60, 2), value)):
        model = MKLRegressor(BANK).fit(X, y)
        np.testing.assert_allclose(model.predict(X), y, rtol=1e-12)
        assert np.all(np.isfinite(model.kernel_weights_))
        assert model.objective_ == pytest.approx(0.0, abs=1e-12 * max(1.0, value**2))


def test_several_outputs_share_the_weights():
    X, y = rows()
    Y = np.column_stack([y, X[:, 1] ** 2, np.ones(60)])
    model = MKLRegressor(BANK, tol=1e-6, max_iter=500).fit(X, Y)
    assert model.predict(X).shape == (60, 3)
    assert model.intercept_.shape == (3,)
    assert model.kernel_weights_.shape == (3,)
    np.testing.assert_allclose(model.predict(X)[:, 2], 1.0)
    alone = MKLRegressor(BANK, tol=1e-6, max_iter=500).fit(X, y)
    assert not np.allclose(alone.kernel_weights_, model.kernel_weights_, atol=1e-3)
    one = MKLRegressor(BANK).fit(X, y[:, None])
    assert one.predict(X).shape == (60, 1)
    np.testing.assert_allclose(one.predict(X)[:, 0], MKLRegressor(BANK).fit(X, y).predict(X))


def test_several_labels_as_columns_of_zeros_and_ones():
    X, _ = rows(120)
    labels = np.column_stack([X[:, 0] > 0.0, X[:, 1] * X[:, 2] > 0.0, X[:, 0] > X[:, 1]])
    model = MKLRegressor(BANK, C=10.0).fit(X[:80], labels[:80].astype(int))
    assert np.mean((model.predict(X[80:]) > 0.5) == labels[80:]) > 0.85
    same = MKLRegressor(BANK, C=10.0).fit(X[:80], labels[:80])
    np.testing.assert_allclose(same.predict(X), model.predict(X))


def test_far_outputs_do_not_drown_the_others_in_rounding():
    """Outputs are in one unit, as the penalty is; the small one is fitted as if alone."""
    X, y = rows()
    Y = np.column_stack([1e8 * y, y])
    model = MKLRegressor(BANK).fit(X, Y)
    np.testing.assert_allclose(model.predict(X)[:, 0] / 1e8, model.predict(X)[:, 1], atol=1e-6)


def test_weights_of_rows():
    X, y = rows()
    weight = np.random.default_rng(1).uniform(0.1, 4.0, size=60)
    model = MKLRegressor(BANK, p=np.inf, C=2.0).fit(X, y, sample_weight=weight)
    squares = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    K = sum(np.exp(-squares / (2.0 * tau)) for tau in (0.125, 0.5, 2.0))
    centre = np.average(y, weights=weight)
    A = np.linalg.solve(K + np.diag(1.0 / (2.0 * weight)), y - centre)
    np.testing.assert_allclose(model.predict(X), K @ A + centre, atol=1e-9)
    assert model.intercept_ == pytest.approx(centre)


def test_more_rows_than_features_of_factors():
    """The system has as many unknowns as there are columns of factors."""
    X, y = rows(150)
    bank = gaussian_bank([0.5, 2.0], factors="nystrom", rank=10, dtype="float64")
    model = MKLRegressor(bank, tol=1e-6, max_iter=500).fit(X, y)
    K = np.stack([phi @ phi.T for phi in bank.fit(X).grams().factors])
    given = MKLRegressor(kernel="precomputed", tol=1e-6, max_iter=500).fit(K, y)
    np.testing.assert_allclose(model.predict(X), given.predict(K), atol=1e-4)


def test_targets_that_cannot_be():
    X, y = rows()
    with pytest.raises(TypeError, match="y is a sparse matrix"):
        MKLRegressor(BANK).fit(X, sp.csr_matrix(y[:, None]))
    with pytest.raises(ValueError, match="y contains NaN"):
        MKLRegressor(BANK).fit(X, np.where(y > 1.0, np.nan, y))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        MKLRegressor(BANK).fit(X, y[:-1])
    with pytest.raises(ValueError, match="y holds .a., which is not a number"):
        MKLRegressor(BANK).fit(X, np.full(60, "a"))
    with pytest.raises(ValueError, match="dim|axes|shape"):
        MKLRegressor(BANK).fit(X, np.ones((60, 2, 2)))
    with pytest.raises(ValueError, match="requires y to be passed"):
        MKLRegressor(BANK).fit(X, None)


def test_huge_targets():
    X, y = rows()
    model = MKLRegressor(BANK).fit(X, 1e150 * y)
    np.testing.assert_allclose(model.predict(X) / 1e150, MKLRegressor(BANK).fit(X, y).predict(X))


def test_the_search_scores_by_the_share_of_variance():
    X, y = rows(90)
    params = {"Cs": [0.01, 10.0], "ps": [1.2, 2.0], "cv": 3}
    model = MKLRegressorCV(BANK, **params).fit(X, y)
    assert model.best_params_["C"] == 10.0
    assert 0.5 < model.best_score_ <= 1.0
    again = MKLRegressor(BANK, **model.best_params_).fit(X, y)
    np.testing.assert_allclose(model.predict(X), again.predict(X))
    scaled = MKLRegressorCV(BANK, **params).fit(X, 1e5 * y - 7.0)
    np.testing.assert_allclose(scaled.search_.scores().T, model.search_.scores().T)
    several = clone(MKLRegressorCV(BANK, **params)).fit(X, np.column_stack([y, X[:, 0]]))
    assert several.predict(X).shape == (90, 2)


@pytest.mark.parametrize("model", [MKLRegressor(BANK), GreedyMKLRegressor(BANK)], ids=str)
def test_targets_whose_weighted_mean_overflows(model):
    X, y = rows()
    with pytest.raises(ValueError, match="y differs from its mean by up to .*e.307"):
        model.fit(X, np.sign(y) * 5e307, sample_weight=np.full(len(X), 1e3))


def test_equal_targets_whose_squares_overflow():
    X, _ = rows()
    with pytest.raises(ValueError, match=r"y has the size 4.15e.180, and its deviations"):
        GreedyMKLRegressor(BANK).fit(X, np.full(len(X), 2.0**600))
