"""TensorKernelRegressor and TensorKernelClassifier: problems, units, representations, targets."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import ShuffleSplit, cross_val_score

from mixnorm import (
    TensorKernelClassifier,
    TensorKernelRegressor,
)
from mixnorm.kernels import (
    ExponentialTensorKernel,
    PolynomialTensorKernel,
)
from mixnorm.losses import EpsilonInsensitive, Huber

from .conftest import REPRESENTATIONS, each_kernel, labels, table

# --- the problem that is solved


@pytest.mark.parametrize("loss", ["squared", "huber", "epsilon_insensitive", "absolute"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_the_formula_with_raw_gamma(loss, fit_intercept):
    """What is told in raw units is the optimum of the formula in raw units."""
    X, y = table(14)
    model = TensorKernelRegressor(gamma=5.0, loss=loss, fit_intercept=fit_intercept).fit(X, y)
    centre = y.mean() if loss == "squared" else np.sort(y)[6]
    assert model.intercept_ == pytest.approx(centre if fit_intercept else 0.0)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    F = PolynomialTensorKernel(2).features(Z, 4)
    w = cp.Variable(len(F))
    left = F.T @ w - (y - model.intercept_)
    losses = {
        "squared": 0.5 * cp.sum_squares(left),
        "huber": 0.5 * cp.sum(cp.huber(left, 1.0)),
        "epsilon_insensitive": cp.sum(cp.pos(cp.abs(left) - 0.1)),
        "absolute": cp.sum(cp.abs(left)),
    }
    objective = model.gamma_raw_ * losses[loss] + 0.75 * cp.sum(cp.power(cp.abs(w), 4 / 3))
    value = cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    assert model.dual_gap_ <= 1e-8 * model.objective_
    np.testing.assert_allclose(model.predict(X), F.T @ w.value + model.intercept_, atol=2e-3)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge"])
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_two_classes(loss):
    X, y = table(14)
    sides = np.where(y > np.median(y), 1.0, -1.0)
    model = TensorKernelClassifier(gamma=5.0, loss=loss).fit(X, np.where(sides > 0, "b", "a"))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    F = PolynomialTensorKernel(2).features(Z, 4)
    w = cp.Variable(len(F))
    margins = cp.multiply(sides, F.T @ w)
    losses = {
        "logistic": cp.sum(cp.logistic(-margins)),
        "hinge": cp.sum(cp.pos(1.0 - margins)),
        "squared_hinge": cp.sum_squares(cp.pos(1.0 - margins)),
    }
    objective = model.gamma_raw_ * losses[loss] + 0.75 * cp.sum(cp.power(cp.abs(w), 4 / 3))
    value = cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X), F.T @ w.value, atol=2e-3)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_predictions_are_those_of_the_explicit_model(representation, degree):
    """Weights of monomials, made of the dual variables by the formula, predict the same."""
    if representation != "features" and degree == 1:
        pytest.skip("five features for twelve rows are for 'features'")
    X, y = table(12)
    new, _ = table(30, seed=1)
    kernel = PolynomialTensorKernel(degree)
    model = TensorKernelRegressor(
        kernel, gamma=10.0, representation=representation, n_components=78, random_state=0
    ).fit(X, y)
    assert model.representation_ == representation
    mean, spread = X.mean(axis=0), X.std(axis=0)
    u = kernel.features((X - mean) / spread, 4) @ model.dual_coef_
    wanted = kernel.features((new - mean) / spread, 4).T @ u**3 + model.intercept_
    np.testing.assert_allclose(model.predict(new), wanted, rtol=1e-8, atol=1e-8)


@each_kernel
def test_the_formula_of_predictions(kernel):
    X, y = table(6)
    model = TensorKernelRegressor(kernel, representation="tensor").fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for row in range(2):
        total = 0.0
        for places in np.ndindex(6, 6, 6):
            K = kernel.between(*(Z[[place]] for place in places), Z[[row]])[0]
            total += K * np.prod(model.dual_coef_[list(places)])
        assert model.predict(X[[row]])[0] == pytest.approx(total + model.intercept_, rel=1e-8)


# --- units


@each_kernel
@pytest.mark.parametrize("factor", [1e-8, 1e8])
def test_units_of_columns_and_targets(kernel, factor):
    X, y = table()
    one = TensorKernelRegressor(kernel, random_state=0).fit(X, y)
    other = TensorKernelRegressor(kernel, random_state=0).fit(factor * X + factor, factor * y)
    np.testing.assert_allclose(
        other.predict(factor * X + factor) / factor, one.predict(X), rtol=1e-6
    )


@pytest.mark.parametrize("factor", [1e-100, 1e100])
def test_huge_and_tiny(factor):
    X, y = table()
    one = TensorKernelRegressor().fit(X, y)
    other = TensorKernelRegressor().fit(factor * X, factor * y)
    np.testing.assert_allclose(other.predict(factor * X) / factor, one.predict(X), rtol=1e-6)


def test_parameters_of_losses_are_in_units_of_targets():
    X, y = table()
    one = TensorKernelRegressor(loss=Huber(0.5)).fit(X, y)
    other = TensorKernelRegressor(loss=Huber(50.0)).fit(X, 100.0 * y)
    np.testing.assert_allclose(other.predict(X), 100.0 * one.predict(X), rtol=1e-6)
    wide = TensorKernelRegressor(loss=EpsilonInsensitive(1e3), gamma=1e3).fit(X, y)
    np.testing.assert_allclose(wide.predict(X), wide.intercept_, rtol=1e-9)


@pytest.mark.parametrize("degree", [1, 2, 4])
def test_gamma_means_the_same_for_all_degrees(degree):
    X, y = table(30, 8)
    scores = [
        TensorKernelRegressor(PolynomialTensorKernel(degree), gamma=gamma).fit(X, y).score(X, y)
        for gamma in (1e-2, 1.0, 1e4)
    ]
    assert scores[0] < 0.1
    assert 0.1 < scores[1] < 0.95
    assert scores[2] > (0.4 if degree == 1 else 0.99)  # lines alone do not fit these targets


def test_raw_columns():
    X, y = table()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    one = TensorKernelRegressor().fit(X, y).predict(X)
    np.testing.assert_allclose(TensorKernelRegressor(standardize=False).fit(Z, y).predict(Z), one)


def test_one_with_few_features():
    """The larger q, the fewer features have weight."""
    X, y = table(60, 6)
    shares = []
    for q in (2.2, 3.0, 4.0, 8.0, 16.0):
        model = TensorKernelRegressor(
            PolynomialTensorKernel(3), q=q, gamma=100.0, representation="features"
        ).fit(X, y)
        weights = np.abs(model.model_.expansion.weights[:, 0])
        shares.append(np.mean(weights > 0.01 * weights.max()))
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 0.25 * shares[0]


# --- representations


def test_representation_says_which():
    X, y = table(150, 3)
    names = {
        "features": TensorKernelRegressor(),
        "sampled": TensorKernelRegressor(ExponentialTensorKernel(), random_state=0),
    }
    for name, model in names.items():
        assert model.fit(X, y).representation_ == name
    assert names["features"].kernel_error_ == 0.0
    assert 0.0 < names["sampled"].kernel_error_ < 0.5
    assert 0.99 < names["sampled"].kernel_mass_ < 1.0
    few = TensorKernelRegressor(ExponentialTensorKernel()).fit(X[:20], y[:20])
    assert few.representation_ == "tensor"


def test_sampled_is_near_the_tensor():
    X, y = table(40)
    new, _ = table(200, seed=1)
    exact = TensorKernelRegressor(ExponentialTensorKernel(), representation="tensor").fit(X, y)
    drawn = clone(exact).set_params(representation="sampled", random_state=0).fit(X, y)
    factored = clone(exact).set_params(representation="low-rank").fit(X, y)
    spread = exact.predict(new).std()
    assert np.mean((drawn.predict(new) - exact.predict(new)) ** 2) < (0.05 * spread) ** 2
    np.testing.assert_allclose(factored.predict(new), exact.predict(new), atol=1e-4)
    assert factored.kernel_error_ < 1e-9


def test_random_state():
    X, y = table(150)
    model = TensorKernelRegressor(ExponentialTensorKernel(), n_components=30, random_state=3)
    one, other = (clone(model).fit(X, y).predict(X) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    with_state = model.set_params(random_state=np.random.RandomState(0)).fit(X, y)
    assert not np.array_equal(with_state.predict(X), one)


# --- targets and weights


def test_several_outputs():
    X, y = table()
    Y = np.stack([y, 1e6 * X[:, 0], np.full(len(y), 3.0)], axis=1)
    model = TensorKernelRegressor().fit(X, Y)
    for place in range(2):
        alone = TensorKernelRegressor().fit(X, Y[:, place])
        np.testing.assert_allclose(model.predict(X)[:, place], alone.predict(X), rtol=1e-9)
        assert model.gamma_raw_[place] == pytest.approx(alone.gamma_raw_)
    np.testing.assert_allclose(model.predict(X)[:, 2], 3.0, rtol=1e-9)
    assert model.dual_coef_.shape == (40, 3)


@pytest.mark.parametrize("model", [TensorKernelRegressor(), TensorKernelClassifier()])
def test_weights_are_repeated_rows(model):
    X, y = labels() if is_classifier(model) else table(60)
    times = np.random.default_rng(0).integers(0, 3, size=60)
    weighted = clone(model).fit(X, y, sample_weight=times)
    rows = np.repeat(np.arange(60), times)
    repeated = clone(model).fit(X[rows], y[rows])
    for name in ("predict", "decision_function"):
        if hasattr(model, name):
            one, other = getattr(weighted, name)(X), getattr(repeated, name)(X)
            if one.dtype.kind == "f":
                np.testing.assert_allclose(one, other, atol=2e-3)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    assert np.all(weighted.dual_coef_[times == 0] == 0.0)


def test_classes():
    X, y = load_iris(return_X_y=True)
    model = TensorKernelClassifier(gamma=1000.0).fit(X, y)
    assert model.score(X, y) > 0.97
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert np.mean(proba.argmax(axis=1) == model.predict(X)) == 1.0
    assert not hasattr(TensorKernelClassifier(loss="hinge"), "predict_proba")
    assert model.decision_function(X).shape == (150, 3)


def test_breast_cancer():
    """As accurate as a tuned linear model, with few features."""
    X, y = load_breast_cancer(return_X_y=True)
    model = TensorKernelClassifier(gamma=100.0)
    scores = cross_val_score(model, X, y, cv=ShuffleSplit(3, train_size=200, random_state=0))
    assert scores.mean() > 0.95


def test_class_weight():
    X, y = table(60)
    rare = y > np.quantile(y, 0.85)
    plain = TensorKernelClassifier(gamma=3.0).fit(X, rare)
    even = TensorKernelClassifier(gamma=3.0, class_weight="balanced").fit(X, rare)
    assert even.predict(X).sum() > plain.predict(X).sum()
