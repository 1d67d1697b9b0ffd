"""Landmarks and random features, against the kernels they stand for."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem

from mixnorm.kernels import (
    FunctionKernel,
    GaussianKernel,
    KernelBank,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    gaussian_bank,
)
from mixnorm.kernels.grams.base import Grams
from mixnorm.kernels.grams.factors import FactorGrams

KERNELS = [GaussianKernel(1.0), LaplacianKernel(2.0), PolynomialKernel(2, 0.1), LinearKernel()]
WEIGHTS = [1.0, 0.5, 0.0, 2.0]


def bank(factors="nystrom", kernels=KERNELS, **other):
    return KernelBank(kernels, factors=factors, dtype=other.pop("dtype", "float64"), **other)


@pytest.mark.parametrize("normalize", [None, "trace", "unit", "tail"])
def test_all_rows_as_landmarks(X, new, normalize):
    whole = KernelBank(KERNELS, dtype="float64", normalize=normalize, tail=2).fit(X)
    fitted = bank(rank=60, normalize=normalize, tail=2).fit(X)
    grams, exact = fitted.grams(), whole.grams()
    assert isinstance(grams, FactorGrams)
    assert isinstance(grams, Grams)
    A = np.random.default_rng(0).standard_normal((60, 3))
    for m in range(4):
        unit = np.eye(4)[m]
        tolerance = 1e-6 * exact.diagonals()[m].max()
        np.testing.assert_allclose(grams.combine(unit), exact.combine(unit), atol=tolerance)
    np.testing.assert_allclose(grams.products(A), exact.products(A), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(grams.energies(A), exact.energies(A), rtol=1e-4)
    np.testing.assert_allclose(grams.diagonals(), exact.diagonals(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(grams.tail_sums([1, 3]), exact.tail_sums([1, 3]), atol=1e-4)
    np.testing.assert_allclose(grams.tail_sums(3), exact.tail_sums(3), atol=1e-4)
    # New rows: the projection on the span of the training rows.
    index, weights = [3, 8], [1.0, 0.5, 0.2, 2.0]
    assert np.all(fitted.combine(new, weights).shape == (13, 60))
    own = fitted.combine(X, weights, index)
    np.testing.assert_allclose(own, exact.combine(weights, None, index), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rank", [1, 7, 30])
def test_landmarks(X, new, rank):
    fitted = bank(rank=rank, normalize=None).fit(X)
    chosen = fitted.landmarks[0]
    assert chosen.shape == (rank, 5)
    grams = fitted.grams()
    for m, kernel in enumerate(KERNELS):
        K = kernel.between(chosen)
        left, right = kernel.between(X, chosen), kernel.between(new, chosen)
        expected = left @ np.linalg.pinv(K, rcond=1e-11, hermitian=True) @ left.T
        found = grams.combine(np.eye(4)[m])
        np.testing.assert_allclose(found, expected, atol=1e-5 * max(1.0, expected.max()))
        expected = right @ np.linalg.pinv(K, rcond=1e-11, hermitian=True) @ left.T
        found = fitted.combine(new, np.eye(4)[m])
        np.testing.assert_allclose(found, expected, atol=1e-4 * max(1.0, np.abs(expected).max()))
        stack = fitted.between(new)
        np.testing.assert_allclose(stack.matrices[m], found, atol=1e-9 * np.abs(found).max())
        if isinstance(kernel, LinearKernel):  # directions that are nothing are dropped
            assert grams.factors[m].shape == (60, min(rank, 5))


def test_as_scikit_learn(X):
    fitted = bank(kernels=[GaussianKernel(0.5)], rank=25).fit(X)
    (chosen,) = fitted.landmarks
    other = Nystroem(gamma=1.0, n_components=25).fit(chosen)
    expected = other.transform(X) @ other.transform(X).T
    np.testing.assert_allclose(fitted.grams().combine([1.0]), expected, atol=1e-6)


def test_more_landmarks_are_better(X):
    exact = GaussianKernel(1.0).between(X)
    errors = []
    for rank in (2, 10, 40, 60):
        found = bank(kernels=[GaussianKernel(1.0)], rank=rank).fit(X).grams().combine([1.0])
        errors.append(np.abs(found - exact).max())
        assert np.linalg.eigvalsh(exact - found)[0] > -1e-8  # never more than the kernel
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-8


@pytest.mark.parametrize("kernel", [GaussianKernel(1.5), LaplacianKernel(4.0)])
def test_random_features_converge(X, new, kernel):
    exact, between = kernel.between(X), kernel.between(new, X)
    errors = []
    for rank in (64, 1024, 16384):
        fitted = bank("random", [kernel], rank=rank).fit(X)
        grams = fitted.grams()
        assert grams.factors[0].shape == (60, rank)
        np.testing.assert_allclose(grams.diagonals(), 1.0, rtol=1e-12)
        errors.append(np.sqrt(np.mean((grams.combine([1.0]) - exact) ** 2)))
        found = np.sqrt(np.mean((fitted.combine(new, [1.0]) - between) ** 2))
        assert found < 3.0 / np.sqrt(rank)
    # An average of as many independent terms: the error is the root of one over their number.
    for error, rank in zip(errors, (64, 1024, 16384), strict=True):
        assert error < 1.5 / np.sqrt(rank)


def test_random_features_are_shared_and_scaled(X):
    kernels = [GaussianKernel(1.0), GaussianKernel(9.0), LaplacianKernel(1.0), GaussianKernel(4.0)]
    columns = [None, None, None, [0, 1]]
    fitted = bank("random", kernels, columns=columns, rank=10, normalize="trace").fit(X)
    assert fitted.map_of == [0, 0, 1, 2]
    assert [part.shape for part in fitted.maps] == [(5, 5), (5, 5), (2, 5)]
    features = fitted.features(3.0 * X, [1])[0]
    np.testing.assert_allclose(features, fitted.features(X, [0])[0], atol=1e-12)


@pytest.mark.parametrize("factors", ["nystrom", "random"])
def test_feature_products(X, new, factors):
    bank = KernelBank(["gaussian", "laplacian"], factors=factors, rank=10).fit(X)
    rng = np.random.default_rng(0)
    for which in ([0, 1], [1]):
        features = np.concatenate(bank.features(new, which, dtype="float64"), axis=1)
        table = rng.standard_normal((features.shape[1], 3))
        found = bank.feature_products(new, which, table)
        np.testing.assert_allclose(found[:, :3], features @ table, rtol=1e-8, atol=1e-9)
        assert np.all(found[:, 3] >= np.abs(found[:, :3]).max(axis=1))


def test_feature_products_show_terms_that_cancel():
    """The features of a kernel far from zero are differences of its large values."""
    X = np.array([[0.1, 9999.4], [-0.5, 9999.7]])
    bank = KernelBank(["linear"], factors="nystrom", normalize=None, dtype="float64").fit(X)
    found = bank.feature_products(X, [0], np.array([[1.0], [0.0]]))
    assert np.all(found[:, 1] > 1e7 * np.abs(found[:, 0]))


@pytest.mark.parametrize("factors", ["nystrom", "random"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_features(X, new, factors, dtype):
    kernels = [GaussianKernel(1.0), LaplacianKernel(3.0), GaussianKernel(0.5, relative=True)]
    fitted = bank(factors, kernels, rank=12, dtype=dtype, normalize="trace").fit(X)
    grams = fitted.grams()
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    features = fitted.features(X)
    assert len(features) == 3
    for mine, own in zip(features, grams.factors, strict=True):
        assert mine.dtype == dtype
        np.testing.assert_allclose(mine, own, atol=1e3 * tolerance)
    some = fitted.features(new, [2, 0, 2])
    assert [part.shape[0] for part in some] == [13] * 3
    assert np.array_equal(some[0], some[2])
    assert fitted.features(new, []) == []
    weights = [0.0, 1.0, 2.0]
    expected = sum(
        weight * phi @ psi.T
        for weight, phi, psi in zip(weights, fitted.features(new), grams.factors, strict=True)
    )
    np.testing.assert_allclose(fitted.combine(new, weights), expected, atol=1e3 * tolerance)
    part = fitted.combine(new, weights, [5, 50])
    np.testing.assert_allclose(part, expected[:, [5, 50]], atol=1e3 * tolerance)
    assert np.array_equal(fitted.combine(new, np.zeros(3)), np.zeros((13, 60)))
    small = fitted.take([5, 50])
    np.testing.assert_allclose(small.combine(new, weights), part, atol=1e3 * tolerance)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.combine(new, weights), fitted.combine(new, weights))


def test_factor_grams(X):
    grams = bank(rank=9).fit(X).grams()
    columns, kernel_of = grams.columns()
    assert columns.shape == (60, len(kernel_of))
    for m, factor in enumerate(grams.factors):
        assert np.array_equal(columns[:, kernel_of == m], factor)
        assert np.shares_memory(columns, factor)
    assert (grams.n_kernels, grams.n_samples, grams.shape) == (4, 60, (60, 60))
    assert repr(grams) == "FactorGrams(n_kernels=4, rank=9, shape=(60, 60), dtype=float64)"
    rows = [7, 3]
    whole = grams.combine(WEIGHTS)
    np.testing.assert_allclose(grams.combine(WEIGHTS, rows, [1]), whole[rows][:, [1]], rtol=1e-10)
    np.testing.assert_allclose(grams.take(rows).combine(WEIGHTS), whole[np.ix_(rows, rows)])
    assert grams.combine(WEIGHTS, dtype="float32").dtype == np.float32
    np.testing.assert_allclose(np.diag(whole), WEIGHTS @ grams.diagonals())


@pytest.mark.parametrize("factors", ["nystrom", "random"])
def test_sparse_rows(counts, factors):
    kernels = [GaussianKernel(2.0), LaplacianKernel(9.0)]
    dense = counts.toarray()
    one = bank(factors, kernels, rank=20).fit(counts)
    two = bank(factors, kernels, rank=20).fit(dense)
    np.testing.assert_allclose(
        one.grams().combine([1.0, 1.0]), two.grams().combine([1.0, 1.0]), atol=1e-8
    )
    found = one.combine(sparse.csr_array(dense[:5]), [1.0, 1.0])
    np.testing.assert_allclose(found, two.combine(dense[:5], [1.0, 1.0]), atol=1e-8)


@pytest.mark.parametrize("factors", ["nystrom", "random"])
def test_rows_far_from_the_origin(X, factors):
    near = gaussian_bank([1.0], factors=factors, rank=30, dtype="float64").fit(X)
    far = gaussian_bank([1.0], factors=factors, rank=30, dtype="float64").fit(X + 1e6)
    if factors == "nystrom":
        found, expected = far.grams().combine([1.0]), near.grams().combine([1.0])
        np.testing.assert_allclose(found, expected, atol=1e-5)
    else:  # moved, and so other waves; but kernels still
        assert np.all(np.diag(far.grams().combine([1.0])) > 1.0 - 1e-9)


def test_seeds(X):
    for factors in ("nystrom", "random"):
        first = gaussian_bank([1.0], factors=factors, rank=6)
        same = first.fit(X).grams().combine([1.0])
        assert np.array_equal(clone(first).fit(X).grams().combine([1.0]), same)
        other = clone(first).set_params(random_state=1).fit(X).grams().combine([1.0])
        assert not np.array_equal(other, same)
        for seed in (None, np.random.default_rng(0), np.random.RandomState(0), np.int64(3)):
            clone(first).set_params(random_state=seed).fit(X)


def test_ranks(X):
    assert bank().fit(X).landmarks[0].shape == (50, 5)  # ten of the 60 rows are there twice
    assert bank(rank=100).fit(X).landmarks[0].shape == (50, 5)
    many = np.repeat(X, 6, axis=0) + 0.01 * np.arange(360)[:, None]
    assert bank().fit(many).landmarks[0].shape == (256, 5)
    column = 8 * 360 * 4
    assert bank(memory=column * 10 + 5).fit(many).landmarks[0].shape == (10, 5)
    gaussians = [GaussianKernel(1.0)] * 4
    random = bank("random", gaussians, memory=column * 11).fit(many)
    assert random.grams().factors[0].shape == (360, 10)  # in pairs
    assert bank("random", gaussians, rank=300).fit(X).grams().factors[0].shape == (60, 300)


def test_memory_is_enough_or_said_to_be_too_little(X):
    with pytest.raises(
        ValueError, match=r"factors of rank 1 of 4 kernels on 60 rows need 1.88 KiB"
    ):
        bank(memory=1000).fit(X)
    with pytest.raises(ValueError, match="factors of rank 2 .*, use fewer kernels"):
        bank("random", [GaussianKernel()], memory=900).fit(X)
    with pytest.raises(ValueError, match=r"factors of rank 20 .* more than memory=9.77 KiB.*lower"):
        bank(rank=20, memory=10_000).fit(X)


@pytest.mark.parametrize("kernel", [LinearKernel(), FunctionKernel(lambda X, Y: X @ Y.T)])
def test_random_features_of_other_kernels(X, kernel):
    with pytest.raises(ValueError, match=r"needs Gaussian or Lap.*factors='nystrom'"):
        bank("random", [kernel]).fit(X)


def test_functions_have_landmarks(X):
    fitted = bank(kernels=[lambda X, Y: X @ Y.T], rank=20, normalize=None).fit(X)
    np.testing.assert_allclose(fitted.grams().combine([1.0]), X @ X.T, atol=1e-8)


def test_kernels_that_are_zero():
    fitted = bank(kernels=["linear", "gaussian"], rank=3, normalize="tail").fit(np.zeros((6, 2)))
    grams = fitted.grams()
    assert np.array_equal(grams.combine([1.0, 0.0]), np.zeros((6, 6)))
    assert np.all(np.isfinite(grams.combine([1.0, 1.0])))


def test_costs(X):
    fitted = bank(rank=10).fit(X)
    cost = fitted.cost([1.0, 0.0, 0.0, 0.0], 40)
    assert cost["kernels"] == 1
    assert cost["support"] == 0
    rank = fitted.maps[0].shape[1]
    assert cost["floats"] == 10 * 5 + 10 * rank + 1
    assert cost["multiplications"] == 10 * (5 + 2) + 10 * rank
    waves = bank("random", KERNELS[:2], rank=8).fit(X)
    assert waves.cost([1.0, 0.0], 40)["floats"] == 5 * 4 + 1
