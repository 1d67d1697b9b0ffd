"""Block coordinate descent on quadratics, against long plain proximal gradient descents."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixnorm.data import DenseColumns
from mixnorm.engines.proximal.descent import (
    GramQuadratic,
    ResidualQuadratic,
    _extrapolate,
    descend,
    gap_of,
    kind_of,
    row_norms,
)
from mixnorm.engines.proximal.design import SharedDesign
from mixnorm.engines.proximal.loss_model import Model
from mixnorm.norms import MixedNorm, conjugate

EXPONENTS = [1.0, 2.0, math.inf]
each_exponent = pytest.mark.parametrize("exponent", EXPONENTS)
each_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])


def drawn(n_samples=30, n_features=6, n_outputs=3, seed=0, dtype="float64", separate=False):
    """Columns, weights of rows, the model, and the point, value and gradient it starts from."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)).astype(dtype)
    weight = rng.uniform(0.5, 1.5, (n_samples, n_outputs if separate else 1))
    weight = (weight / weight.sum(axis=0)).astype(dtype)
    y = (X[:, :2] @ rng.standard_normal((2, n_outputs)) + rng.standard_normal((1, 1))).astype(dtype)
    y += 0.3 * rng.standard_normal(y.shape).astype(dtype)
    start = np.zeros((n_features, n_outputs), dtype=dtype)
    start[0] = 1.0
    model = Model(
        SharedDesign(X, n_outputs).block(np.arange(n_features)),
        weight,
        fit_intercept=False,
        exact=True,
    )
    residual = X @ start - y
    value = 0.5 * float(np.sum(weight * residual**2))
    return X, y, weight, model, start, value, X.T @ (weight * residual)


def objective(X, y, weight, alpha, exponent, W):
    value = 0.5 * np.sum(weight * (X @ W - y) ** 2)
    return value + alpha * np.sum(row_norms(W, exponent))


def slow_optimum(X, y, weight, alpha, exponent):
    """The optimum by many accelerated proximal gradient steps."""
    norm, W = MixedNorm(exponent, 1), np.zeros((X.shape[1], y.shape[1]))
    step = 1.0 / max(np.linalg.eigvalsh((X.T * w) @ X)[-1] for w in weight.T)
    ahead, momentum = W, 1.0
    for _ in range(2_000):
        moved = norm.prox(ahead - step * X.T @ (weight * (X @ ahead - y)), step * alpha)
        if np.sum((ahead - moved) * (moved - W)) > 0.0:
            momentum = 1.0
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
        ahead = moved + (momentum - 1.0) / following * (moved - W)
        W, momentum = moved, following
    return objective(X, y, weight, alpha, exponent, W)


def quadratics(case):
    X, y, weight, model, start, value, gradient = case
    yield GramQuadratic(model, 1.0, start, value, gradient)
    if weight.shape[1] == 1:
        root = np.sqrt(weight)
        yield ResidualQuadratic((X * root).T, start, root * (X @ start - y))


@given(
    W=st.lists(st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3), min_size=1, max_size=5),
    exponent=st.sampled_from(EXPONENTS),
)
def test_row_norms(W, exponent):
    W = np.asarray(W)
    np.testing.assert_allclose(row_norms(W, exponent), np.linalg.norm(W, exponent, axis=1))


def test_names_of_exponents():
    assert [kind_of(exponent) for exponent in EXPONENTS] == [1, 2, 0]


def test_no_rows_have_no_norms():
    for exponent in EXPONENTS:
        assert row_norms(np.zeros((0, 3)), exponent).shape == (0,)


@each_dtype
@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 3, 11])
def test_quadratics_are_the_loss(dtype, separate, n_outputs):
    case = drawn(dtype=dtype, separate=separate, n_outputs=n_outputs)
    X, y, weight = case[:3]
    close = 1e-5 if dtype == "float32" else 1e-12
    W = np.random.default_rng(1).standard_normal((6, n_outputs)).astype(dtype)
    residual = X @ W - y
    for quadratic in quadratics(case):
        assert quadratic.value() == pytest.approx(case[5], rel=close)
        quadratic.move(W)
        assert quadratic.weights.dtype == dtype
        slow = 0.5 * np.sum(weight * residual**2)
        assert quadratic.value() == pytest.approx(slow, rel=100 * close)
        wanted = X.T @ (weight * residual)
        np.testing.assert_allclose(quadratic.gradient(), wanted, atol=10 * close)


def test_kappa_scales_the_curvature():
    _, _, _, model, start, value, gradient = drawn()
    quadratic = GramQuadratic(model, 2.5, start, value, gradient)
    step = np.random.default_rng(1).standard_normal(start.shape)
    quadratic.move(start + step)
    wanted = value + np.sum(gradient * step) + 1.25 * np.sum(step * model.product(step))
    assert quadratic.value() == pytest.approx(wanted)
    np.testing.assert_allclose(quadratic.gradient(), gradient + 2.5 * model.product(step))


@each_exponent
@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 3, 11])
def test_epochs_lower_the_objective_and_keep_the_gradient(exponent, separate, n_outputs):
    case = drawn(separate=separate, n_outputs=n_outputs)
    X, y, weight, _, start = case[:5]
    for quadratic in quadratics(case):
        before = objective(X, y, weight, 0.05, exponent, start)
        for _ in range(4):
            quadratic.epochs(0.05, exponent, 2)
            after = objective(X, y, weight, 0.05, exponent, quadratic.weights)
            assert after <= before + 1e-14
            before = after
        wanted = X.T @ (weight * (X @ quadratic.weights - y))
        np.testing.assert_allclose(quadratic.gradient(), wanted, atol=1e-12)
        assert np.any(quadratic.weights != start)


@each_exponent
@pytest.mark.parametrize("shape", [(30, 6), (8, 12)])
@pytest.mark.parametrize("separate", [False, True])
def test_descent_finds_the_optimum(exponent, shape, separate):
    n_samples, n_features = shape
    case = drawn(n_samples, n_features, separate=separate)
    X, y, weight = case[:3]
    alpha = 0.05
    best = slow_optimum(X, y, weight, alpha, exponent)
    for quadratic in quadratics(case):
        epochs = descend(quadratic, alpha, exponent, tol=1e-9, max_epochs=5000)
        found = objective(X, y, weight, alpha, exponent, quadratic.weights)
        gap = gap_of(quadratic, alpha, exponent)
        assert 0 < epochs < 5000
        assert gap <= 1e-9
        assert -1e-12 <= found - best + 1e-12 <= gap + 2e-12


@each_exponent
def test_the_gap_is_a_bound_at_every_point(exponent):
    case = drawn()
    X, y, weight = case[:3]
    best = slow_optimum(X, y, weight, 0.05, exponent)
    for quadratic in quadratics(case):
        for seed in range(5):
            W = np.random.default_rng(seed).standard_normal((6, 3)) * (0.3 * seed)
            quadratic.move(W)
            apart = objective(X, y, weight, 0.05, exponent, W) - best
            assert apart <= gap_of(quadratic, 0.05, exponent) + 1e-12


@each_exponent
@pytest.mark.parametrize("alpha", [0.01, 5.0])
def test_the_gap_is_the_objective_less_the_dual_value(exponent, alpha):
    """The dual point is the residual, shortened where its gradient exceeds ``alpha``."""
    case = drawn()
    X, y, weight = case[:3]
    for quadratic in quadratics(case):
        for size in (0.1, 1.0):  # losses below and above one
            W = np.linalg.lstsq(X, y)[0] + size * np.random.default_rng(1).standard_normal((6, 3))
            quadratic.move(W)
            theta = weight * (X @ W - y)
            largest = np.max(row_norms(X.T @ theta, conjugate(exponent)))
            theta *= min(1.0, alpha / largest)
            dual_value = -np.sum(theta * y) - 0.5 * np.sum(theta**2 / weight)
            wanted = objective(X, y, weight, alpha, exponent, W) - dual_value
            assert gap_of(quadratic, alpha, exponent) == pytest.approx(wanted, rel=1e-9)


@each_exponent
def test_epochs_end_in_time(exponent):
    for quadratic in quadratics(drawn()):
        assert descend(quadratic, 0.05, exponent, tol=-1.0, max_epochs=7) == 7


@each_exponent
@each_dtype
def test_columns_of_zeros_stay(exponent, dtype):
    X = np.zeros((10, 3), dtype=dtype)
    block = SharedDesign(X, 2).block(np.arange(3))
    weight = np.full((10, 1), 0.1, dtype=dtype)
    model = Model(block, weight, fit_intercept=False, exact=True)
    start = np.zeros((3, 2), dtype=dtype)
    quadratic = GramQuadratic(model, 1.0, start, 1.0, start)
    assert descend(quadratic, 0.1, exponent, tol=0.0, max_epochs=10) < 10  # the gap is zero exactly
    assert np.all(quadratic.weights == 0.0)


@pytest.mark.parametrize("by_residual", [True, False])
def test_columns_whose_squares_nearly_vanish_are_left_alone(by_residual):
    columns = np.array([[1e-156, -1e-156], [1.0, -1.0]])
    residual = np.array([[1.0, 2.0], [-1.0, -2.0]])
    start = np.zeros((2, 2))
    if by_residual:
        quadratic = ResidualQuadratic(columns, start, residual)
    else:
        model = Model(DenseColumns(columns), np.ones((2, 1)), fit_intercept=False, exact=True)
        quadratic = GramQuadratic(model, 1.0, start, 5.0, columns @ residual)
    quadratic.epochs(1e-160, 2.0, 3)
    np.testing.assert_allclose(quadratic.weights, [[0.0, 0.0], [-1.0, -2.0]])


def test_changes_that_nearly_vanish_are_not_extrapolated():
    quadratic = ResidualQuadratic(np.eye(2), np.full((2, 1), 1e-160), np.zeros((2, 1)))
    steps = [np.full((2, 1), size * 1e-160) for size in (1.0, 2.0, 3.0)]
    _extrapolate(quadratic, steps, 0.1, 2.0)
    assert np.all(quadratic.weights == 1e-160)
