"""TensorKernelRegressor and TensorKernelClassifier: what users do with them."""

import math
import pickle
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GridSearchCV, ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixnorm
from mixnorm import (
    TensorKernelClassifier,
    TensorKernelClassifierCV,
    TensorKernelRegressor,
    TensorKernelRegressorCV,
)
from mixnorm.exceptions import (
    CoarseKernelWarning,
    InterruptedFitWarning,
    ModelFileError,
    NotConvergedWarning,
)
from mixnorm.kernels import (
    ExponentialTensorKernel,
    FeatureTensorKernel,
    PolynomialTensorKernel,
    PowerSeriesTensorKernel,
    TensorKernel,
)
from mixnorm.losses import EpsilonInsensitive, Huber, MulticlassHinge

KERNELS = [
    PolynomialTensorKernel(3),
    PowerSeriesTensorKernel((1.0, 1.0, 0.5)),
    ExponentialTensorKernel(),
]
REPRESENTATIONS = ["features", "tensor", "sampled", "low-rank"]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def table(n=40, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = 3.0 + 2.0 * rng.standard_normal((n, d))
    Z = (X - 3.0) / 2.0
    y = 7.0 + Z[:, 0] * Z[:, 1] + np.sin(Z[:, 2]) + 0.1 * rng.standard_normal(n)
    return X, y


def labels(n=60, seed=0):
    X, y = table(n, seed=seed)
    return X, np.array(["low", "mid", "top"])[np.digitize(y, np.quantile(y, [0.33, 0.67]))]


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


# --- features


def test_features_of_a_polynomial():
    X, y = table(60)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = TensorKernelRegressor(PolynomialTensorKernel(3), gamma=100.0).fit(frame, y)
    found = model.features(top=35)
    assert {feature.name for feature in found[:2]} == {"a b", "c"}
    assert {"a": 1, "b": 1} in [feature.exponents for feature in found[:2]]
    assert len(found) == 35
    assert sum(feature.share for feature in found) == pytest.approx(1.0)
    # All of them are the model.
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    total = np.full(60, model.intercept_)
    for feature in found:
        powers = [feature.exponents.get(name, 0) for name in frame]
        total += feature.coefficient * np.prod(Z**powers, axis=1)
    np.testing.assert_allclose(total, model.predict(frame), rtol=1e-9)
    # The norm of the weights is that of the objective.
    p, left = 4 / 3, 0.5 * model.gamma_raw_ * np.sum((y - model.predict(frame)) ** 2)
    norm = sum(abs(feature.weight) ** p for feature in found) / p
    assert norm + left == pytest.approx(model.objective_, rel=1e-9)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("representation", ["tensor", "sampled", "low-rank"])
def test_features_without_end(normalized, representation):
    X, y = table(40)
    kernel = ExponentialTensorKernel(normalized=normalized)
    model = TensorKernelRegressor(
        kernel, gamma=100.0, representation=representation, random_state=0
    ).fit(X, y)
    found = model.features(top=1000)
    assert {"x0 x1", "x2"} <= {feature.name for feature in found[:4]}
    assert 0.9 < sum(feature.share for feature in found) <= 1.0 + 1e-6
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    total = np.zeros(40)
    for feature in found:
        powers = [feature.exponents.get(f"x{j}", 0) for j in range(4)]
        total += feature.coefficient * np.prod(Z**powers, axis=1)
    factor = np.exp(-0.025 / 4 * (Z**4).sum(axis=1)) if normalized else 1.0
    np.testing.assert_allclose(factor * total + model.intercept_, model.predict(X), atol=0.15)


def test_features_of_classes_and_of_your_own():
    X, y = labels()
    model = TensorKernelClassifier().fit(X, y)
    best = model.features(top=3)
    assert all(feature.weight.shape == (3,) for feature in best)
    shares = [feature.share for feature in best]
    assert shares == sorted(shares, reverse=True)
    own = TensorKernelClassifier(FeatureTensorKernel(np.tanh)).fit(X, y == "low")
    assert {feature.name for feature in own.features()} == {f"feature {k}" for k in range(4)}


@pytest.mark.parametrize("top", [0, -1, 2.5, True])
def test_bad_top(top):
    X, y = table()
    with pytest.raises((TypeError, ValueError), match="top="):
        TensorKernelRegressor().fit(X, y).features(top=top)


@dataclass
class Cubes(TensorKernel):
    """A kernel of one's own: the constant and cubes."""

    share: float = 0.5

    def of_products(self, P, shift=0.0):
        return 1.0 + self.share * P**3

    def degrees(self):
        return [(0, 1.0), (3, self.share)]


@dataclass
class Unlisted(TensorKernel):
    """One that tells nothing of its features."""

    finite = False

    def of_products(self, P, shift=0.0):
        return np.cosh(0.01 * P)


@dataclass
class Unfinished(TensorKernel):
    """One that does not say that there is no end of its features."""

    def of_products(self, P, shift=0.0):
        return np.cosh(0.01 * P)


def test_a_kernel_of_your_own():
    X, y = table()
    kernel = Cubes(share=0.3)
    same = PowerSeriesTensorKernel((1.0, 0.0, 0.0, 0.3))
    for representation in ("features", "tensor", "sampled"):
        options = {"representation": representation, "random_state": 0}
        one = TensorKernelRegressor(kernel, **options).fit(X, y)
        other = TensorKernelRegressor(same, **options).fit(X, y)
        np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-9)
    search = GridSearchCV(TensorKernelRegressor(kernel), {"kernel__share": [0.1, 1.0]}, cv=3)
    assert search.fit(X, y).best_params_["kernel__share"] in (0.1, 1.0)
    model = TensorKernelRegressor(Unlisted()).fit(X, y)
    assert model.representation_ == "tensor"
    assert model.score(X, y) > 0.3
    with pytest.raises(ValueError, match="cannot draw its features"):
        model.features()
    with pytest.raises(ValueError, match="draws features, which"):
        TensorKernelRegressor(Unlisted(), representation="sampled").fit(X, y)
    with pytest.raises(NotImplementedError, match=r"degrees\(\).*finite=False"):
        TensorKernelRegressor(Unfinished()).fit(X, y)


def test_shares_where_dual_variables_are_huge():
    X, y = table(60)
    model = TensorKernelRegressor(PolynomialTensorKernel(1), gamma=1e8).fit(X, y)
    assert sum(feature.share for feature in model.features()) == pytest.approx(1.0)


def test_outliers():
    X, y = table(80)
    new, truth = table(200, seed=1)
    y[::10] += 50.0
    robust = TensorKernelRegressor(loss="absolute").fit(X, y)
    plain = TensorKernelRegressor().fit(X, y)
    assert robust.score(new, truth) > 0.7 > plain.score(new, truth)


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


# --- bad input


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        ({"kernel": "poly"}, TypeError, "no TensorKernel; give a tensor kernel"),
        ({"kernel": PolynomialTensorKernel}, TypeError, "no TensorKernel"),
        ({"kernel": PolynomialTensorKernel(0)}, ValueError, "degree=0"),
        ({"gamma": 0.0}, ValueError, "gamma=0.0 must be positive"),
        ({"gamma": "auto"}, TypeError, "gamma='auto'"),
        ({"gamma": math.inf}, ValueError, "gamma=inf"),
        ({"q": 2}, ValueError, "q=2 must be above 2 and at most 100"),
        ({"q": "four"}, TypeError, "q='four'"),
        ({"q": 1e3}, ValueError, "at most 100"),
        ({"q": 20, "representation": "tensor"}, ValueError, "even q up to 8"),
        ({"loss": EpsilonInsensitive(math.nan)}, ValueError, "epsilon=nan"),
        ({"loss": Huber(-1)}, ValueError, "delta=-1 must"),
        ({"loss": "log"}, ValueError, "loss='log' is not known"),
        ({"loss": "hinge"}, ValueError, "loss='hinge' is not known"),
        ({"loss": MulticlassHinge()}, ValueError, "all scores"),
        ({"standardize": "yes"}, TypeError, "standardize='yes'"),
        ({"fit_intercept": 1.0}, TypeError, "fit_intercept=1.0"),
        ({"representation": "dense"}, ValueError, "representation='dense' is not known"),
        ({"representation": "tensor", "q": 5}, ValueError, "even q"),
        ({"n_components": 0}, ValueError, "n_components=0"),
        ({"solver": "lbfgs"}, ValueError, "solver='lbfgs'"),
        ({"solver": "gradient", "loss": "huber"}, ValueError, "forward-backward"),
        ({"tol": -1.0}, ValueError, "tol=-1.0"),
        ({"max_iter": 0}, ValueError, "max_iter=0"),
        ({"random_state": "x"}, ValueError, "is no seed"),
    ],
)
def test_bad_parameters(params, error, words):
    X, y = table()
    with pytest.raises(error, match=words):
        TensorKernelRegressor(**params).fit(X, y)


class Plain(TensorKernel):
    """No dataclass."""

    def of_products(self, P, shift=0.0):
        return P


@dataclass
class Negative(TensorKernel):
    """No tensor kernel, having a negative coefficient."""

    def of_products(self, P, shift=0.0):
        return 1.0 - P

    def degrees(self):
        return [(0, 1.0), (1, -1.0)]


def test_bad_kernels():
    X, y = table()
    with pytest.raises(TypeError, match="@dataclass"):
        TensorKernelRegressor(Plain()).fit(X, y)
    with pytest.raises(ValueError, match="coefficient -1.0"):
        TensorKernelRegressor(Negative()).fit(X, y)
    with pytest.raises(ValueError, match="must be drawn, which the kernel cannot do"):
        TensorKernelRegressor(Unlisted(), q=6).fit(*table(60))
    with pytest.raises(ValueError, match="lower sigma or q"):
        TensorKernelRegressor(ExponentialTensorKernel(), q=40).fit(X, y)
    with pytest.raises(ValueError, match="standardize=True"):
        TensorKernelRegressor(PowerSeriesTensorKernel(), standardize=False).fit(1e150 * X, y)
    with pytest.raises(ValueError, match="low-rank"):
        TensorKernelRegressor(representation="low-rank", n_components=10**6).fit(
            np.random.default_rng(0).standard_normal((3000, 2)), np.zeros(3000)
        )


@pytest.mark.parametrize("seed", range(4))
def test_targets_that_no_feature_sees(seed):
    """All that is left of them is rounding, which must not become the unit of gamma."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    for kernel, rows in (
        (PolynomialTensorKernel(2), 1e-150 * X),
        (PolynomialTensorKernel(2), np.ones((30, 3))),
        (PowerSeriesTensorKernel([1.0]), X),
    ):
        for representation in ("features", "tensor"):
            model = TensorKernelRegressor(
                kernel, standardize=False, representation=representation
            ).fit(rows, y)
            np.testing.assert_allclose(model.predict(rows), y.mean(), atol=1e-6)
    twice, sides = np.concatenate([X, X]), np.repeat([0, 1], 30)
    for loss in ("logistic", "hinge"):
        both = TensorKernelClassifier(PolynomialTensorKernel(3), loss=loss).fit(twice, sides)
        np.testing.assert_allclose(both.decision_function(twice), 0.0, atol=1e-6)


def test_little_of_the_kernel():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 200))
    with pytest.warns(CoarseKernelWarning, match="Raise n_components"):
        TensorKernelRegressor(
            PolynomialTensorKernel(3), representation="sampled", n_components=50, random_state=0
        ).fit(X, X[:, 0])


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_sizes_of_weights(size):
    X, y = table()
    one = TensorKernelRegressor().fit(X, y)
    other = TensorKernelRegressor().fit(X, y, sample_weight=np.full(40, size))
    np.testing.assert_allclose(other.predict(X), one.predict(X), rtol=1e-9)
    assert other.gamma_raw_ * size == pytest.approx(one.gamma_raw_)


def test_rows_out_of_range():
    X, y = table()
    model = TensorKernelRegressor(PolynomialTensorKernel(3)).fit(X, y)
    with pytest.raises(ValueError, match="Row 1 of X is so far"):
        model.predict(np.array([X[0], np.full(4, 1e200)]))


def test_parameters_after_a_fit():
    X, y = table()
    model = TensorKernelRegressor().fit(X, y)
    before = model.features(3)
    assert model.set_params(q=8).features(3) == before


def test_losses_of_the_other_kind():
    X, y = table()
    with pytest.raises(ValueError, match="TensorKernelClassifier"):
        TensorKernelRegressor(loss=mixnorm.losses.Hinge()).fit(X, y)
    with pytest.raises(ValueError, match="TensorKernelRegressor"):
        TensorKernelClassifier(loss=mixnorm.losses.Squared()).fit(X, y > 7)


def test_one_class():
    X, _ = table()
    with pytest.raises(ValueError, match="only one class"):
        TensorKernelClassifier().fit(X, np.zeros(40))


@pytest.mark.filterwarnings("ignore::mixnorm.exceptions.NotConvergedWarning")
@pytest.mark.parametrize("gamma", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("model", [TensorKernelRegressor(), TensorKernelClassifier()])
@pytest.mark.parametrize("case", ["two", "same", "constant", "wide", "duplicates", "zeros"])
def test_extreme_data(model, gamma, case):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 3)), np.arange(12) % 2
    X, y = {
        "two": (X[:2], y[:2]),
        "same": (np.repeat(X[:1], 12, axis=0), y),
        "constant": (np.concatenate([X, np.full((12, 2), 1e9)], axis=1), y),
        "wide": (X * [1e8, 1.0, 1e-8], y),
        "duplicates": (np.repeat(X[:4], 3, axis=0), y),
        "zeros": (np.zeros((12, 2)), y),
    }[case]
    found = clone(model).set_params(gamma=gamma).fit(X, y)
    assert np.all(np.isfinite(found.predict(X)))
    assert 0.0 <= found.dual_gap_ <= found.objective_
    if case in ("same", "zeros") and not is_classifier(model):
        np.testing.assert_allclose(found.predict(X), 0.5, atol=1e-6)


def test_constant_targets():
    X, _ = table()
    model = TensorKernelRegressor().fit(X, np.full(40, 46.9))
    np.testing.assert_allclose(model.predict(X), 46.9, rtol=1e-12)


def test_not_converged():
    X, y = table()
    with pytest.warns(NotConvergedWarning, match="Raise max_iter or tol"):
        TensorKernelRegressor(gamma=1e4, max_iter=2).fit(X, y)
    with pytest.warns(NotConvergedWarning, match="Rounding"):
        TensorKernelRegressor(gamma=1e3, tol=0.0).fit(X, y)


# --- habits


def test_pipelines_pickles_and_files(tmp_path):
    X, y = table(20)
    models = [
        TensorKernelRegressor(PolynomialTensorKernel(3)),
        TensorKernelRegressor(ExponentialTensorKernel(), representation="tensor"),
        TensorKernelRegressor(ExponentialTensorKernel(), representation="sampled", random_state=0),
        TensorKernelRegressor(ExponentialTensorKernel(), representation="low-rank"),
        TensorKernelClassifier(PowerSeriesTensorKernel(np.array([1.0, 1.0]))),
        TensorKernelRegressorCV(gammas=5, cv=3),
        TensorKernelClassifierCV(gammas=[1.0, 10.0], cv=3),
    ]
    for place, model in enumerate(models):
        target = np.digitize(y, [6.0, 8.0]) if is_classifier(model) else y
        model.fit(X, target)
        mixnorm.save(model, tmp_path / f"{place}.mixnorm")
        for other in (
            pickle.loads(pickle.dumps(model)),
            mixnorm.load(tmp_path / f"{place}.mixnorm"),
        ):
            np.testing.assert_array_equal(other.predict(X), model.predict(X))
            names = [[feature.name for feature in one.features(3)] for one in (model, other)]
            assert names[0] == names[1]
    pipe = make_pipeline(StandardScaler(), TensorKernelRegressor(standardize=False)).fit(X, y)
    np.testing.assert_allclose(pipe.predict(X), TensorKernelRegressor().fit(X, y).predict(X))


def test_a_function_cannot_be_stored(tmp_path):
    X, y = table()
    model = TensorKernelRegressor(FeatureTensorKernel(np.tanh)).fit(X, y)
    with pytest.raises(ModelFileError):
        mixnorm.save(model, tmp_path / "model.mixnorm")


def test_an_interruption(monkeypatch):
    from mixnorm.engines import dual

    X, y = table()
    model = TensorKernelRegressor(gamma=1e4).fit(X, y)
    calls = []
    matrix = dual.FeatureContraction.matrix

    def tiring(self, alpha):
        calls.append(1)
        if len(calls) > 4:
            raise KeyboardInterrupt
        return matrix(self, alpha)

    monkeypatch.setattr(dual.FeatureContraction, "matrix", tiring)
    with pytest.warns(InterruptedFitWarning, match="so far is kept"):
        model.fit(X, y)
    assert np.all(np.isfinite(model.predict(X)))
    # With several outputs there is nothing to keep but the fit before.
    calls.clear()
    model = TensorKernelRegressor(gamma=1e4)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, np.stack([y, y], axis=1))
    assert not hasattr(model, "dual_coef_")


@pytest.mark.parametrize("representation", ["tensor", "low-rank"])
def test_scores_of_a_row_do_not_depend_on_its_company(representation):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    kernel = ExponentialTensorKernel()
    model = TensorKernelRegressor(kernel, gamma=100.0, representation=representation).fit(X, y)
    rows = [model.predict(X[i : i + 1])[0] for i in range(len(X))]
    assert np.array_equal(rows, model.predict(X))


def test_kernels_that_vanish_are_refused():
    X = 1e-200 * np.arange(1.0, 13.0)[:, None]
    model = TensorKernelClassifier(
        PolynomialTensorKernel(degree=2, constant=0.0), q=2.5, standardize=False
    )
    with pytest.raises(ValueError, match="columns of X by their size"):
        model.fit(X, np.arange(12) % 2)
