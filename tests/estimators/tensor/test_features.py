"""The features of a fitted learner, and kernels of the user's own."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

from mixnorm import (
    TensorKernelClassifier,
    TensorKernelRegressor,
)
from mixnorm.kernels import (
    ExponentialTensorKernel,
    FeatureTensorKernel,
    PolynomialTensorKernel,
    PowerSeriesTensorKernel,
    TensorKernel,
)

from .conftest import Unlisted, labels, table


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
