"""Approximate inverse Hessians are inverses where the Hessian is as they take it to be."""

import numpy as np
import pytest

from mixnorm.engines.proximal import ProximalSettings
from mixnorm.engines.proximal.design import SharedDesign
from mixnorm.engines.proximal.loss_model import Model
from mixnorm.engines.proximal.preconditioner import (
    OutputwisePreconditioner,
    ReducedPreconditioner,
    precondition,
)

N_ROWS, N_OUTPUTS = 4, 3


def drawn(n_factors, fit_intercept, dtype="float64"):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((30, N_ROWS)) + 0.5).astype(dtype)
    curvature = rng.uniform(0.1, 1.0, (30, n_factors)).astype(dtype)
    block = SharedDesign(X, N_OUTPUTS).block(np.arange(N_ROWS))
    return X, curvature, Model(block, curvature, fit_intercept=fit_intercept, exact=True)


def hessian(X, curvature, outputs, ridge, weights, intercept):
    """The Hessian that the inverse stands for, times weights and intercept."""
    bent = curvature * (X @ weights + intercept)
    if outputs is not None:
        bent = bent @ outputs
    # The ridge is on the weights, whose intercept follows.
    return X.T @ bent + ridge[:, None] * weights, bent.sum(axis=0)


MEAN = np.asarray([[2.0, -0.5, 0.1], [-0.5, 1.0, 0.2], [0.1, 0.2, 0.7]])


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["shared", "separate", "joint"])
def test_outputwise_is_the_inverse(kind, fit_intercept):
    X, curvature, model = drawn(3 if kind == "separate" else 1, fit_intercept)
    outputs = MEAN if kind == "joint" else None
    ridge = np.asarray([0.1, 0.0, 0.5, 1.0])
    inverse = OutputwisePreconditioner(model, outputs, ridge)
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((N_ROWS, N_OUTPUTS))
    intercept = rng.standard_normal(N_OUTPUTS) * fit_intercept
    right, bias = hessian(X, curvature, outputs, ridge, weights, intercept)
    found, shift = inverse.solve(right, bias)
    np.testing.assert_allclose(found, weights, atol=1e-8)
    np.testing.assert_allclose(shift, intercept, atol=1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["shared", "separate", "joint"])
def test_reduced_is_the_inverse_on_its_directions(kind, fit_intercept):
    X, curvature, model = drawn(3 if kind == "separate" else 1, fit_intercept)
    outputs = MEAN if kind == "joint" else None
    rows = np.asarray([0, 1, 2, 3, 0])
    directions = np.asarray(
        [[1.0, -1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]
    )
    inverse = ReducedPreconditioner(model, outputs, rows, directions)
    rng = np.random.default_rng(2)
    weights = np.zeros((N_ROWS, N_OUTPUTS))
    np.add.at(weights, rows, directions * rng.standard_normal((5, 1)))
    intercept = rng.standard_normal(N_OUTPUTS) * fit_intercept
    right, bias = hessian(X, curvature, outputs, np.zeros(N_ROWS), weights, intercept)
    found, shift = inverse.solve(right, bias)
    # It has a ridge of 1e-5 of the largest diagonal entry.
    np.testing.assert_allclose(found, weights, atol=2e-3)
    np.testing.assert_allclose(shift, intercept, atol=2e-3)


@pytest.mark.parametrize("kind", ["shared", "separate", "joint"])
@pytest.mark.parametrize("reduced", [True, False])
def test_inverses_are_symmetric_and_positive(kind, reduced):
    """Conjugate gradients ask for that."""
    _, _, model = drawn(3 if kind == "separate" else 1, True)
    outputs = MEAN - MEAN.mean(axis=0) - MEAN.mean(axis=1)[:, None] + MEAN.mean()
    outputs = 0.5 * (outputs + outputs.T) if kind == "joint" else None
    rows = np.repeat(np.arange(N_ROWS), N_OUTPUTS)
    unknowns = (rows, np.tile(np.eye(N_OUTPUTS), (N_ROWS, 1))) if reduced else None
    inverse = precondition(model, outputs, None, unknowns)
    rng = np.random.default_rng(3)
    for _ in range(5):
        a, b = rng.standard_normal((2, N_ROWS, N_OUTPUTS))
        c, d = rng.standard_normal((2, N_OUTPUTS))
        one, other = inverse.solve(a, c), inverse.solve(b, d)
        left = np.sum(one[0] * b) + np.sum(one[1] * d)
        assert left == pytest.approx(np.sum(other[0] * a) + np.sum(other[1] * c), rel=1e-6)
        assert np.sum(one[0] * a) + np.sum(one[1] * c) > 0.0


def test_many_unknowns_are_not_solved_together():
    _, _, model = drawn(1, True)
    unknowns = np.arange(N_ROWS), np.ones((N_ROWS, N_OUTPUTS))
    assert isinstance(precondition(model, None, None, unknowns), ReducedPreconditioner)
    few = ProximalSettings(largest_reduced_system=3)
    assert isinstance(precondition(model, None, None, unknowns, few), OutputwisePreconditioner)
    assert isinstance(precondition(model, None, np.ones(N_ROWS), None), OutputwisePreconditioner)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [0.0, 1e-8, 1.0, 1e8])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_equal_columns_do_not_break_it(dtype, scale, fit_intercept):
    rng = np.random.default_rng(4)
    X = np.repeat(rng.standard_normal((20, 1)) * scale, 3, axis=1).astype(dtype)
    curvature = np.full((20, 1), 0.05, dtype=dtype)
    block = SharedDesign(X, 2).block(np.arange(3))
    model = Model(block, curvature, fit_intercept=fit_intercept, exact=True)
    inverse = precondition(model, None, None, None)
    theta = rng.standard_normal((20, 2)).astype(dtype)
    found, shift = inverse.solve(X.T @ theta, theta.sum(axis=0))
    assert np.all(np.isfinite(found))
    assert np.all(np.isfinite(shift))
    assert found.dtype == dtype
