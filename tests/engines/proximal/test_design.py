"""Designs, and their columns, against plain products."""

import numpy as np
import pytest
from scipy import sparse

from mixnorm.engines.proximal.design import SeparateDesign, SharedDesign

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
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("used", [[], [2], [0, 1, 2, 3, 4, 5]])
def test_shared_products(kind, dtype, used):
    X = matrix(dtype=dtype)
    design = SharedDesign(kind(X), 3)
    rng = np.random.default_rng(1)
    weights = np.zeros((6, 3), dtype=dtype)
    weights[used] = rng.standard_normal((len(used), 3))
    theta = np.asfortranarray(rng.standard_normal((12, 3)), dtype=dtype)
    scores = design.scores(weights)
    assert scores.shape == (12, 3)
    assert scores.dtype == design.dtype == dtype
    assert scores.flags.f_contiguous
    np.testing.assert_allclose(scores, X @ weights, atol=1e-5)
    gradient = design.gradient(theta)
    assert gradient.flags.c_contiguous
    assert gradient.dtype == dtype
    np.testing.assert_allclose(gradient, X.T @ theta, atol=1e-5)
    scores += 1.0  # the engine adds the intercept in place
    np.testing.assert_allclose(design.scores(weights), X @ weights, atol=1e-5)


SIZES = (7, 12, 1)


@each_kind
def test_separate_products(kind):
    Xs = [matrix(size, seed=size) for size in SIZES]
    design = SeparateDesign([kind(X) for X in Xs])
    rng = np.random.default_rng(4)
    weights, theta = rng.standard_normal((6, 3)), rng.standard_normal((12, 3))
    assert (design.n_samples, design.n_features, design.n_outputs) == (12, 6, 3)
    assert not design.shared
    for rows, part in ((np.arange(6), design), (ROWS, design.block(ROWS))):
        scores, gradient = part.scores(weights[rows]), part.gradient(theta)
        for task, X in enumerate(Xs):
            own = X[:, rows] @ weights[rows, task]
            np.testing.assert_allclose(scores[: len(X), task], own, atol=1e-12)
            assert np.all(scores[len(X) :, task] == 0.0)
            np.testing.assert_allclose(gradient[:, task], X[:, rows].T @ theta[: len(X), task])


@each_kind
@pytest.mark.parametrize("centred", [True, False])
def test_blocks_of_separate_designs(kind, centred):
    Xs = [matrix(size, seed=size) for size in SIZES]
    whole = SeparateDesign([kind(X) for X in Xs]).block(ROWS)
    curvature = np.random.default_rng(5).uniform(size=(12, 3))
    curvature *= np.arange(12)[:, None] < np.asarray(SIZES)  # rows that a task lacks weigh nothing
    for rows in (np.arange(3), np.asarray([1, 2])):
        block, chosen = whole.part(rows), ROWS[rows]
        means = block.means(curvature)
        gram = block.gram(curvature, means if centred else None)
        assert block.size == len(rows)
        for task, X in enumerate(Xs):
            own = curvature[: len(X), [task]]
            wanted = X[:, chosen].T @ own[:, 0] / own.sum()
            np.testing.assert_allclose(means[:, task], wanted, atol=1e-12)
            slow = slow_gram(X[:, chosen], own, centred)[0]
            np.testing.assert_allclose(gram[task], slow, atol=1e-12)
    assert whole.part(np.arange(3)) is whole
