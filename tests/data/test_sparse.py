"""Sparse matrices: products, statistics and columns, none of them made dense."""

import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm.data import SparseMatrix, as_matrix


def data(n_samples=40, n_features=6, n_outputs=3, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(10 * rng.standard_normal((n_samples, n_features)))
    return X, rng.standard_normal((n_samples, n_outputs))


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix])
def test_sparse(form):
    X, residual = data()
    X[np.abs(X) < 8] = 0.0
    X[:, 3] = np.abs(X[:, 3]) + 1.0  # no zeros
    X[:, 5] = 0.0
    matrix = as_matrix(form(X), np.dtype("float64"))
    assert isinstance(matrix, SparseMatrix)
    np.testing.assert_allclose(matrix.gradient(residual), X.T @ residual, atol=1e-11)
    for j in range(6):
        np.testing.assert_array_equal(matrix.column_rows([j])[0, :], X[:, j])
    weight = np.ones(40)
    weight[::3] = 0.0
    for used in (np.ones(40), weight):
        low, high = matrix.ranges(used)
        np.testing.assert_array_equal(low, X[used > 0].min(axis=0))
        np.testing.assert_array_equal(high, X[used > 0].max(axis=0))


def test_sparse_is_not_made_dense():
    """A matrix of 10^10 entries: any dense copy would fail."""
    X = sp.csr_array((np.ones(4), ([0, 5, 99_999, 7], [3, 0, 99_999, 3])), shape=(100_000, 100_000))
    matrix = as_matrix(X, np.dtype("float32"))
    gradient = matrix.gradient(np.ones((100_000, 2), dtype=np.float32))
    assert gradient.dtype == np.float32
    np.testing.assert_array_equal(gradient[[0, 3, 99_999]], [[1, 1], [2, 2], [1, 1]])
    low, high = matrix.ranges(np.ones(100_000))
    assert high.sum() == (high > low).sum() == 3


def test_entries_in_parts_are_added_up():
    X = sp.coo_array(([1.0, 2.0, 4.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    matrix = as_matrix(sp.csc_matrix(X), np.dtype("float64"))
    np.testing.assert_array_equal(matrix.column_rows([0, 1]), [[0.0, 4.0], [3.0, 0.0]])
