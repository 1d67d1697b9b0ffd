"""Tensor kernels against sums of products of their features."""

import math
from itertools import product

import numpy as np
import pytest

from mixnorm.kernels import (
    ExponentialTensorKernel,
    FeatureExpansion,
    PolynomialTensorKernel,
    PowerSeriesTensorKernel,
    TensorKernel,
)


def rows(n=4, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


@pytest.mark.parametrize("q", [2, 4, 6])
@pytest.mark.parametrize(
    "kernel", [PolynomialTensorKernel(s, c) for s in (1, 3) for c in (0.0, 0.7)]
)
def test_kernels_are_sums_over_features(kernel, q):
    X = rows()
    F = kernel.features(X, q)
    assert len(F) == kernel.n_features(3)
    for places in list(product(range(4), repeat=q))[:: 4 ** (q - 2)]:
        found = kernel.between(*(X[[place]] for place in places))
        wanted = np.sum(np.prod([F[:, place] for place in places], axis=0))
        assert found[0] == pytest.approx(wanted, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("q", [2, 4, 6])
def test_exponential_kernels(q):
    """All monomials up to a degree beyond which nothing is left, against the exponential."""
    X, sigma = 0.7 * rows(3, 2), 0.4
    kernel = ExponentialTensorKernel(sigma=sigma, normalized=False)
    same = ExponentialTensorKernel(sigma=sigma)
    for places in [(0, 1, 2, 0, 1, 1)[:q], (2,) * q]:
        parts = [X[[place]] for place in places]
        products = np.prod(np.concatenate(parts), axis=0)
        wanted = sum(
            sigma ** (i + j)
            * products[0] ** i
            * products[1] ** j
            / (math.factorial(i) * math.factorial(j))
            for i in range(25)
            for j in range(25)
        )
        assert kernel.between(*parts)[0] == pytest.approx(wanted, rel=1e-10)
        roots = np.prod([kernel.between(*[part] * q)[0] ** (1.0 / q) for part in parts])
        assert same.between(*parts)[0] == pytest.approx(wanted / roots, rel=1e-10)
    np.testing.assert_allclose(same.between(*[X] * q), 1.0)
    assert same.n_features(2) == math.inf
    assert not same.finite


def test_gaussian():
    X, Z = rows(5, 2), rows(5, 2, seed=1)
    found = ExponentialTensorKernel(sigma=2.0).between(X, Z)
    np.testing.assert_allclose(found, np.exp(-np.sum((X - Z) ** 2, axis=1)), rtol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "error", "words"),
    [
        (PolynomialTensorKernel(0), ValueError, "degree=0"),
        (PolynomialTensorKernel("two"), TypeError, "degree='two'"),
        (PolynomialTensorKernel(2, -1.0), ValueError, "constant=-1.0"),
        (PolynomialTensorKernel(2, math.inf), ValueError, "constant=inf"),
        (ExponentialTensorKernel(0.0), ValueError, "sigma=0.0"),
        (ExponentialTensorKernel(1.0, "yes"), TypeError, "normalized='yes'"),
    ],
)
def test_bad_parameters(kernel, error, words):
    with pytest.raises(error, match=words):
        kernel.between(rows(), rows())


def test_overflow():
    with pytest.raises(ValueError, match="normalized=True"):
        ExponentialTensorKernel(normalized=False).between(*[30.0 * rows()] * 4)
    np.testing.assert_allclose(ExponentialTensorKernel().between(*[30.0 * rows()] * 4), 1.0)


def test_sums_that_are_rounding_are_zero():
    kernel = PolynomialTensorKernel(degree=1, constant=0.0)
    function = FeatureExpansion(kernel, 4, 1.0, np.ones((3, 1)))
    row = np.array([[0.1, 0.2, -0.3]])
    assert (function.features(row).T @ function.weights).item() != 0.0
    assert function.scores(row).item() == 0.0


class WeightedRows(TensorKernel):
    """A kernel of your own: the product of rows and of a weight for each."""

    def shifts(self, X, q):
        return np.log1p(np.abs(X).sum(axis=1))

    def of_products(self, P, shift=0.0):
        return P * np.exp(shift)

    def degrees(self):
        return [(1, 1.0)]


@pytest.mark.parametrize("q", [2, 4])
@pytest.mark.parametrize("kernel", [WeightedRows(), PolynomialTensorKernel(3)])
def test_the_diagonal_is_the_kernel_of_a_row_with_itself(kernel, q):
    X = rows()
    np.testing.assert_allclose(kernel.diagonal(kernel.columns(X), q), kernel.between(*[X] * q))


def test_the_diagonal_is_the_sum_of_powers_of_features():
    X, kernel = rows(), PolynomialTensorKernel(2, 0.5)
    for q in (2.5, 3.0, 4.0):
        wanted = np.sum(np.abs(kernel.features(X, q)) ** q, axis=0)
        np.testing.assert_allclose(kernel.diagonal(kernel.columns(X), q), wanted)


def test_degrees_are_drawn_by_their_share_of_the_kernel():
    kernel, n = PowerSeriesTensorKernel([1.0, 0.0, 2.0, 1.0]), 2000
    rng, totals = np.random.default_rng(0), np.array([0.0, 0.2, 1.5, 1e200])
    drawn = kernel.draw_degrees(np.repeat(totals, n), rng).reshape(4, n)
    # Each frequency is within five standard deviations, which are at most 0.5 / sqrt(n).
    shares = {0: [1.0, 1.0 / 1.088, 1.0 / 8.875, 0.0], 3: [0.0, 0.008 / 1.088, 3.375 / 8.875, 1.0]}
    for degree, wanted in shares.items():
        found = np.mean(drawn == degree, axis=1)
        np.testing.assert_allclose(found, wanted, atol=2.5 / math.sqrt(n))
    assert set(drawn.ravel()) == {0, 2, 3}


def test_columns_are_drawn_by_their_share_of_the_product():
    kernel, n = PolynomialTensorKernel(2, constant=0.0), 2000
    row = np.array([0.3, -0.6, 0.0])
    drawn = kernel.draw(np.tile(row, (n, 1)), 4, np.random.default_rng(0))
    assert np.all(drawn.sum(axis=1) == 2)
    np.testing.assert_allclose(
        drawn.mean(axis=0), [2.0 / 17.0, 32.0 / 17.0, 0.0], atol=5.0 / math.sqrt(n)
    )
    nothing = kernel.draw(np.zeros((3, 2)), 4, np.random.default_rng(0))
    assert not np.any(nothing)
