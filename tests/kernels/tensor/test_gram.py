"""Gram tensors, drawn features and factors of pairs against all entries of small tensors."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from mixnorm.kernels import (
    ExponentialTensorKernel,
    FeatureExpansion,
    FeatureTensorKernel,
    PairExpansion,
    PolynomialTensorKernel,
    PowerSeriesTensorKernel,
    TensorExpansion,
)
from mixnorm.kernels.tensor import multiplicities, multisets
from mixnorm.kernels.tensor.gram import draw_features, pair_factor, tensor_gram

KERNELS = [
    PolynomialTensorKernel(3),
    PolynomialTensorKernel(2, constant=0.0),
    PowerSeriesTensorKernel([0.5, 0.0, 1.0, 0.2]),
    ExponentialTensorKernel(0.3),
    ExponentialTensorKernel(0.2, normalized=False),
]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def rows(n=5, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


@pytest.mark.parametrize(("n", "size"), [(1, 2), (4, 2), (3, 3), (5, 1), (2, 4)])
def test_multisets(n, size):
    sets = multisets(n, size)
    assert [*map(tuple, sets.T)] == [*combinations_with_replacement(range(n), size)]
    # Every sequence is some multiset in some order.
    assert multiplicities(sets).sum() == n**size


@each_kernel
@pytest.mark.parametrize("half", [2, 3])
def test_gram(kernel, half):
    X = rows(4)
    gram = tensor_gram(kernel, kernel.columns(X), half)
    sets = multisets(4, half)
    for one, other in product(range(sets.shape[1]), repeat=2):
        if other <= one:
            places = [*sets[:, one], *sets[:, other]]
            wanted = kernel.between(*(X[[place]] for place in places))[0]
            assert gram[one, other] == pytest.approx(wanted, rel=1e-11)


@each_kernel
@pytest.mark.parametrize("q", [4, 6])
def test_drawn_features(kernel, q):
    """Their products are the kernel, but for what the mass says is missing at most."""
    X = rows(6)
    columns = kernel.columns(X)
    made = draw_features(kernel, columns, q, 300, np.random.default_rng(0))
    assert len(np.unique(made.exponents, axis=0)) == len(made.exponents) <= 300
    assert np.all((made.mass > 0.9) & (made.mass <= 1.0))
    whole = kernel.between(*[X] * q)
    rng = np.random.default_rng(1)
    for _ in range(200):
        places = rng.integers(6, size=q)
        true = kernel.between(*(X[[place]] for place in places))[0]
        found = np.prod(made.features[:, places], axis=1).sum()
        allowed = np.prod(((1.0 - made.mass) * whole)[places] ** (1.0 / q))
        assert abs(true - found) <= allowed + 1e-9 * abs(true)


def test_few_drawn_features():
    """With room for few, those are kept that hold most."""
    kernel, X = ExponentialTensorKernel(0.3), rows(8)
    few = draw_features(kernel, X, 4, 5, np.random.default_rng(0))
    many = draw_features(kernel, X, 4, 200, np.random.default_rng(0))
    assert len(few.exponents) == 5
    assert few.mass.mean() < many.mass.mean()
    held = np.sort((many.features**4).sum(axis=1))[::-1]
    assert few.mass.sum() >= 0.9 * held[:5].sum()


def test_zeros_and_signs():
    X = np.array([[0.0, -2.0], [1.0, 0.0], [0.0, 0.0]])
    kernel = PowerSeriesTensorKernel([1.0, 1.0, 1.0])
    exponents = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [0, 2]])
    found = kernel.features_with(X, exponents, 4)
    wanted = np.array([[1, 1, 1], [0, 1, 0], [-2, 0, 0], [0, 0, 0], [4, 0, 0]], float)
    wanted[3] *= 2.0**0.25
    np.testing.assert_allclose(found, wanted, atol=1e-14)


@each_kernel
def test_pair_factor(kernel):
    columns = kernel.columns(rows(6))
    gram = tensor_gram(kernel, columns, 2)
    whole = np.tril(gram) + np.tril(gram, -1).T
    made = pair_factor(kernel, columns, 21, enough=1e-13)
    np.testing.assert_allclose(made.factor @ made.factor.T, whole, atol=1e-9 * whole.max())
    part = pair_factor(kernel, columns, 4)
    left = np.abs(part.factor @ part.factor.T - whole).max()
    assert left <= part.error * whole.max() * (1.0 + 1e-9)
    assert part.factor.shape == (21, 4)
    triangle = part.factor[part.pivots]
    np.testing.assert_allclose(triangle, np.tril(triangle), atol=1e-9 * np.sqrt(whole.max()))


@each_kernel
def test_expansions_are_sums_over_rows(kernel):
    X, new = rows(4), rows(3, seed=1)
    alpha = np.random.default_rng(2).standard_normal((4, 2))
    wanted = np.zeros((3, 2))
    for places in product(range(4), repeat=3):
        K = kernel.between(*(np.repeat(X[[place]], 3, axis=0) for place in places), new)
        wanted += K[:, None] * np.prod(alpha[list(places)], axis=0)
    found = TensorExpansion(kernel, 4.0, 1.0, kernel.columns(X), alpha).scores(new)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10 * np.abs(wanted).max())


def test_expansions_by_features_and_by_pairs():
    kernel, X, new = PolynomialTensorKernel(2), rows(5), rows(3, seed=1)
    alpha = np.random.default_rng(2).standard_normal((5, 1))
    u = kernel.features(X, 4) @ alpha
    by_features = FeatureExpansion(kernel, 4.0, 1.0, u**3).scores(new)
    by_rows = TensorExpansion(kernel, 4.0, 1.0, kernel.columns(X), alpha).scores(new)
    np.testing.assert_allclose(by_features, by_rows, rtol=1e-11)
    # With all pairs as they are, coefficients are products of dual variables.
    pairs = multisets(5, 2)
    coef = multiplicities(pairs)[:, None] * np.prod(alpha[pairs], axis=0)
    by_pairs = PairExpansion(kernel, 1.0, kernel.columns(X), alpha, pairs, coef).scores(new)
    np.testing.assert_allclose(by_pairs, by_rows, rtol=1e-11)


def test_costs_of_expansions():
    """Two rows of two columns and a constant, one output; counted by hand."""
    kernel, X, ones = PolynomialTensorKernel(2), rows(2, 2), np.ones((6, 1))
    # Each of all six features is one product more than another, and has a weight. Those that are
    # given by exponents are products of as many columns as their degree.
    made = FeatureExpansion(kernel, 4.0, 1.0, ones)
    assert made.cost() == {"floats": 6, "multiplications": 12}
    made = FeatureExpansion(kernel, 4.0, 1.0, ones[:2], np.array([[2, 0, 0], [0, 1, 0]]))
    assert made.cost() == {"floats": 2, "multiplications": 5}
    # Four multisets of three rows: for each a product with the new row, and one with alpha.
    columns = kernel.columns(X)
    made = TensorExpansion(kernel, 4.0, 1.0, columns, ones[:2])
    assert made.cost() == {"floats": 8, "multiplications": 4 * (3 + 1)}
    # Three pairs: each times the new row, then with both rows and alpha, then its coefficient.
    made = PairExpansion(kernel, 1.0, columns, ones[:2], multisets(2, 2), ones[:3])
    assert made.cost() == {"floats": 11, "multiplications": 3 * (3 + 2 * (3 + 1) + 1)}


def test_features_of_your_own():
    kernel = FeatureTensorKernel(lambda X: np.concatenate([np.sin(X), np.cos(X)], axis=1))
    X = rows(4)
    F = kernel.features(X, 4)
    assert F.shape == (6, 4)
    assert kernel.n_features(3) == 6
    found = kernel.between(X, X, X[::-1], X)
    np.testing.assert_allclose(found, (F**3 * F[:, ::-1]).sum(axis=0))
    with pytest.raises(TypeError, match="cannot be called"):
        FeatureTensorKernel(3).between(X, X)
    with pytest.raises(ValueError, match=r"must return one of shape \(4, n_features\)"):
        FeatureTensorKernel(lambda X: X.T).between(X, X)


@pytest.mark.parametrize(
    ("coefficients", "error"),
    [((1.0, -1.0), ValueError), ((0.0, 0.0), ValueError), ([], ValueError), ("ab", TypeError)],
)
def test_bad_power_series(coefficients, error):
    with pytest.raises(error, match="coefficients"):
        PowerSeriesTensorKernel(coefficients).between(rows(), rows())


def test_overflow():
    X = 1e60 * rows()
    with pytest.raises(ValueError, match="out of the range of floats"):
        tensor_gram(PowerSeriesTensorKernel((1.0, 0.0, 1.0)), X, 2)
    with pytest.raises(ValueError, match="degree"):
        draw_features(ExponentialTensorKernel(1.0), 1e3 * rows(), 4, 10, np.random.default_rng(0))


def test_settled_factor():
    kernel = ExponentialTensorKernel()
    assert kernel.resolve(np.zeros((2, 5))).sigma == pytest.approx(0.02)
    assert kernel.sigma is None
    with pytest.raises(ValueError, match="resolve"):
        kernel.of_products(np.ones(1))
