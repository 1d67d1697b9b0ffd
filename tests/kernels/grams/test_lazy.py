"""Matrices that are computed at every use, against those that are stored."""

import numpy as np
import pytest

from mixnorm.kernels import GaussianKernel, KernelBank, LaplacianKernel, LinearKernel
from mixnorm.kernels.grams.lazy import LazyGrams

KERNELS = [LinearKernel(), GaussianKernel(1.0), LaplacianKernel(2.0), GaussianKernel(3.0)]
MATRIX = 60 * 60 * 8  # bytes


@pytest.fixture
def stored(X):
    return KernelBank(KERNELS, dtype="float64").fit(X).grams()


# Room for no matrix; for two, of which one is the Laplacian, the slowest to compute.
@pytest.fixture(params=[(MATRIX, []), (3 * MATRIX, [0, 2])], ids=["none", "two"])
def lazy(X, request):
    memory, kept = request.param
    grams = KernelBank(KERNELS, dtype="float64", memory=memory).fit(X).grams()
    assert isinstance(grams, LazyGrams)
    assert grams.kept == kept
    return grams


def test_sums(stored, lazy):
    weights = [0.5, 1.0, 2.0, 0.0]
    for rows, columns in [(None, None), ([3, 1], slice(10, 20)), (slice(0, 60, 7), [5, 5])]:
        found = lazy.combine(weights, rows, columns)
        np.testing.assert_allclose(found, stored.combine(weights, rows, columns), atol=1e-12)
    single = lazy.combine(weights, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, stored.combine(weights), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("support", [60, 11, 0])
def test_products_and_energies(stored, lazy, support):
    A = np.random.default_rng(0).standard_normal((60, 3))
    A[support:] = 0.0
    np.testing.assert_allclose(lazy.products(A), stored.products(A), atol=1e-11)
    np.testing.assert_allclose(lazy.products(A, [3, 2]), stored.products(A, [3, 2]), atol=1e-11)
    np.testing.assert_allclose(lazy.energies(A), stored.energies(A), atol=1e-10)


def test_diagonals_and_tails(stored, lazy):
    np.testing.assert_allclose(lazy.diagonals(), stored.diagonals())
    weight = np.arange(1.0, 61.0)
    for weights in (None, weight):
        found, wanted = (grams.tail_sums([2, 5], weights) for grams in (lazy, stored))
        np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_rows_that_fit_are_stored(stored, lazy):
    rows = [3, 4, 50, 3]
    part = lazy.take(rows)
    assert not isinstance(part, LazyGrams)
    np.testing.assert_allclose(part.matrices, stored.take(rows).matrices, atol=1e-12)
