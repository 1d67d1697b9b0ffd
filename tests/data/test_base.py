"""What all kinds of matrices have in common: products with some of the columns."""

import numpy as np
import pytest
from scipy import sparse

from mixnorm.data import as_matrix

ROWS = np.asarray([0, 3, 4])


def matrix(n_samples=12, n_features=6, seed=0, dtype="float64"):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    return np.where(rng.uniform(size=X.shape) < 0.6, X, 0.0).astype(dtype)


KINDS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "matrix": sparse.csr_matrix,
}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def slow_gram(X, curvature, centred):
    means = curvature.T @ X / np.where(curvature.sum(axis=0) > 0, curvature.sum(axis=0), 1)[:, None]
    parts = [X - means[r] * centred for r in range(curvature.shape[1])]
    return np.stack([(part.T * curvature[:, r]) @ part for r, part in enumerate(parts)])


@each_kind
@pytest.mark.parametrize("n_factors", [1, 3])
@pytest.mark.parametrize("centred", [True, False])
def test_products_of_columns(kind, n_factors, centred):
    X, rng = matrix(), np.random.default_rng(2)
    columns = as_matrix(kind(X), np.dtype("float64")).columns(ROWS)
    curvature = rng.uniform(0.0, 1.0, (12, n_factors))
    check_columns(columns, X[:, ROWS], curvature, centred)
    inner = np.asarray([2, 0])
    check_columns(columns.part(inner), X[:, ROWS[inner]], curvature, centred)
    assert columns.part(np.arange(3)) is columns


def check_columns(columns, X, curvature, centred):
    rng = np.random.default_rng(3)
    weights, theta = rng.standard_normal((X.shape[1], 3)), rng.standard_normal((len(X), 3))
    assert columns.size == X.shape[1]
    np.testing.assert_allclose(columns.scores(weights), X @ weights, atol=1e-12)
    np.testing.assert_allclose(columns.gradient(theta), X.T @ theta, atol=1e-12)
    means = columns.means(curvature)
    np.testing.assert_allclose(means, X.T @ curvature / curvature.sum(axis=0), atol=1e-12)
    gram = columns.gram(curvature, means if centred else None)
    np.testing.assert_allclose(gram, slow_gram(X, curvature, centred), atol=1e-12)


def test_every_other_row_can_stand_for_all():
    """Rows come in equal pairs, so that half of them know everything."""
    X = np.repeat(matrix(), 2, axis=0)
    curvature = np.repeat(np.random.default_rng(0).uniform(size=(12, 2)), 2, axis=0)
    columns = as_matrix(X, np.dtype("float64")).columns(ROWS)
    means = columns.means(curvature)
    np.testing.assert_allclose(columns.gram(curvature, means, 2), columns.gram(curvature, means))


def test_rooted_columns_have_the_gram_matrix():
    X, weight = matrix(), np.random.default_rng(0).uniform(size=12)
    columns = as_matrix(X, np.dtype("float64")).columns(ROWS)
    for means in (None, columns.means(weight[:, None])):
        root = columns.scale_rows(weight, means)
        np.testing.assert_allclose(root @ root.T, columns.gram(weight[:, None], means)[0])


@each_kind
def test_curvature_zero_has_means_zero(kind):
    columns = as_matrix(kind(matrix()), np.dtype("float64")).columns(ROWS)
    nothing = np.zeros((12, 2))
    assert np.all(columns.means(nothing) == 0.0)
    assert np.all(columns.gram(nothing, columns.means(nothing)) == 0.0)


@each_kind
@pytest.mark.parametrize("used", [[], [2], [0, 1, 2, 3, 4, 5]])
def test_scores_read_the_columns_with_weights(kind, used):
    X = matrix()
    weights = np.zeros((6, 3))
    weights[used] = np.random.default_rng(1).standard_normal((len(used), 3))
    scores = as_matrix(kind(X), X.dtype).scores(weights)
    assert scores.flags.f_contiguous
    np.testing.assert_allclose(scores, X @ weights, atol=1e-12)
