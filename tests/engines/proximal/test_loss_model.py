"""The quadratic model of a loss against dense matrices."""

import numpy as np
import pytest
from scipy import sparse

from mixnorm.engines.proximal.design import SeparateDesign, SharedDesign
from mixnorm.engines.proximal.loss_model import Model

ROWS = np.asarray([0, 2, 3, 5])


def drawn(n_factors=3, n_samples=20, n_outputs=3):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, 7)) + 1.0
    return X, rng.uniform(0.1, 1.0, (n_samples, n_factors)), rng.standard_normal((4, n_outputs))


def bend(X, curvature, step, shift):
    """The second derivative of the loss along a step of weights and intercept."""
    return np.sum(curvature * (X[:, ROWS] @ step + shift) ** 2)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_factors", [1, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_model_is_the_best_over_the_intercept(kind, n_factors, fit_intercept):
    X, curvature, step = drawn(n_factors)
    block = SharedDesign(kind(X), 3).block(ROWS)
    model = Model(block, curvature, fit_intercept=fit_intercept, exact=True)
    shift = model.follow(block.scores(step))
    found = np.sum(step * model.product(step))
    assert found == pytest.approx(bend(X, curvature, step, shift))
    if not fit_intercept:
        assert np.all(shift == 0.0)
        return
    for other in 1e-3 * np.random.default_rng(1).standard_normal((5, 3)):
        assert bend(X, curvature, step, shift + other) > found


@pytest.mark.parametrize("n_factors", [1, 3])
def test_a_newton_step_with_the_intercept_is_two_steps(n_factors):
    """Weights that the intercept follows and the intercept's own step solve the whole system."""
    X, curvature, _ = drawn(n_factors)
    rng = np.random.default_rng(2)
    theta = rng.standard_normal((20, 3))
    block = SharedDesign(X, 3).block(ROWS)
    model = Model(block, curvature, fit_intercept=True, exact=True)
    bias = theta.sum(axis=0)
    gradient, own = model.centre(block.gradient(theta), bias)
    for output in range(3):
        gram = model.gram[output if n_factors == 3 else 0]
        step = -np.linalg.solve(gram, gradient[:, output])
        full = np.concatenate([X[:, ROWS], np.ones((20, 1))], axis=1)
        c = curvature[:, output if n_factors == 3 else 0]
        slow = -np.linalg.solve((full.T * c) @ full, full.T @ theta[:, output])
        np.testing.assert_allclose(step, slow[:-1])
        scores = np.zeros((20, 3))
        scores[:, output] = X[:, ROWS] @ step
        assert model.follow(scores)[output] - own[output] == pytest.approx(slow[-1])
    assert np.sum(model.totals * own**2) == pytest.approx(
        np.sum(curvature * own**2 * np.ones((20, 3)))
    )


def test_without_intercept_gradients_stay():
    X, curvature, step = drawn()
    model = Model(SharedDesign(X, 3).block(ROWS), curvature, fit_intercept=False, exact=True)
    gradient, own = model.centre(step, np.ones(3))
    np.testing.assert_array_equal(gradient, step)
    assert np.all(own == 0.0)


def test_one_matrix_per_task():
    rng = np.random.default_rng(3)
    Xs = [rng.standard_normal((size, 7)) for size in (5, 9, 4)]
    curvature = rng.uniform(0.1, 1.0, (9, 3))
    for task, X in enumerate(Xs):
        curvature[len(X) :, task] = 0.0
    block = SeparateDesign(Xs).block(ROWS)
    model = Model(block, curvature, fit_intercept=True, exact=True)
    step = rng.standard_normal((4, 3))
    product, shift = model.product(step), model.follow(block.scores(step))
    for task, X in enumerate(Xs):
        own = Model(
            SharedDesign(X, 1).block(ROWS),
            curvature[: len(X), [task]],
            fit_intercept=True,
            exact=True,
        )
        np.testing.assert_allclose(product[:, [task]], own.product(step[:, [task]]))
        scores = X[:, ROWS] @ step[:, [task]]
        np.testing.assert_allclose(shift[task], own.follow(scores)[0])


@pytest.mark.parametrize("n_factors", [1, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_part_is_the_model_of_those_columns(n_factors, fit_intercept):
    X, curvature, _ = drawn(n_factors)
    design, inner = SharedDesign(X, 3), np.asarray([3, 1])
    options = {"fit_intercept": fit_intercept, "exact": True}
    whole = Model(design.block(ROWS), curvature, **options)
    part, direct = whole.part(inner), Model(design.block(ROWS[inner]), curvature, **options)
    np.testing.assert_allclose(part.gram, direct.gram)
    np.testing.assert_allclose(part.diagonal, direct.diagonal)
    if fit_intercept:
        np.testing.assert_allclose(part.means, direct.means)
    assert whole.part(np.arange(4)) is whole
    assert whole.gram.shape == (n_factors, 4, 4)


def test_the_diagonal_is_the_largest_of_all_matrices():
    X, curvature, _ = drawn()
    model = Model(SharedDesign(X, 3).block(ROWS), curvature, fit_intercept=True, exact=True)
    np.testing.assert_allclose(model.diagonal, model.gram.diagonal(0, 1, 2).max(axis=0))


@pytest.mark.parametrize("n_factors", [1, 3])
def test_the_largest_eigenvalue_is_not_underestimated(n_factors):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((30, 6)) * np.geomspace(1.0, 10.0 ** -(seed % 4), 6)
        curvature = rng.uniform(size=(30, n_factors))
        block = SharedDesign(X, 3).block(np.arange(6))
        model = Model(block, curvature, fit_intercept=True, exact=True)
        truth = np.max(np.linalg.eigvalsh(model.gram))
        assert 0.99 * truth <= model.largest_eigenvalue() <= 1.03 * truth


def test_nothing_has_no_eigenvalue():
    design = SharedDesign(np.zeros((5, 2)), 1)
    model = Model(design.block(np.arange(2)), np.ones((5, 1)), fit_intercept=True, exact=True)
    assert model.largest_eigenvalue() == 0.0


def test_some_rows_shape_a_step():
    """Where the model need not be exact, a part of the rows gives about the same."""
    rng = np.random.default_rng(0)
    X, curvature = rng.standard_normal((20_000, 3)), rng.uniform(0.5, 1.0, (20_000, 1))
    block = SharedDesign(X, 2).block(np.arange(3))
    exact = Model(block, curvature, fit_intercept=True, exact=True)
    rough = Model(block, curvature, fit_intercept=True, exact=False)
    size = np.max(np.abs(exact.gram))
    assert np.max(np.abs(rough.gram - exact.gram)) < 0.1 * size
    assert np.any(rough.gram != exact.gram)
    np.testing.assert_array_equal(rough.totals, exact.totals)
