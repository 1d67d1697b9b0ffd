"""Where sums of row norms are smooth: tangents, derivatives, and Newton steps along them."""

import math

import numpy as np
import pytest

from mixnorm import losses
from mixnorm.engines.proximal.descent import row_norms
from mixnorm.engines.proximal.design import SharedDesign
from mixnorm.engines.proximal.loss_model import Model
from mixnorm.engines.proximal.manifold import SmoothPart, newton_step
from mixnorm.engines.proximal.preconditioner import precondition
from mixnorm.engines.proximal.problem import NormProblem, SecondOrder
from mixnorm.norms import MixedNorm

EXPONENTS = [1.0, 2.0, math.inf]
each_exponent = pytest.mark.parametrize("exponent", EXPONENTS)


def drawn(exponent, seed=0, n_rows=4, n_outputs=5):
    """Weights without zero rows, with zeros or ties as the norm makes them."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((n_rows, n_outputs))
    if exponent == 1.0:
        W[rng.uniform(size=W.shape) < 0.3] = 0.0
        W[:, 0] = 1.0
    elif math.isinf(exponent):
        level = np.sort(np.abs(W), axis=1)[:, [-3]]
        W = np.clip(W, -level, level)
    return W


@each_exponent
def test_derivatives_along_tangents(exponent):
    W, rng, small = drawn(exponent), np.random.default_rng(1), 1e-5
    smooth = SmoothPart(W, exponent)
    for _ in range(5):
        step = smooth.tangent(rng.standard_normal(W.shape))
        np.testing.assert_allclose(smooth.tangent(step), step, atol=1e-15)
        up, here, down = (
            np.sum(row_norms(W + part * step, exponent)) for part in (small, 0.0, -small)
        )
        slope = np.sum(smooth.gradient * step)
        assert slope == pytest.approx((up - down) / (2.0 * small), abs=1e-8)
        bent = smooth.bend(step)
        wanted = (up - 2.0 * here + down) / small**2
        found = 0.0 if bent is None else np.sum(step * bent)
        assert found == pytest.approx(wanted, abs=1e-4)


@each_exponent
def test_tangents_are_orthogonal_projections(exponent):
    smooth, rng = SmoothPart(drawn(exponent), exponent), np.random.default_rng(2)
    for _ in range(5):
        a, b = rng.standard_normal((2, 4, 5))
        assert np.sum(smooth.tangent(a) * b) == pytest.approx(np.sum(a * smooth.tangent(b)))


@each_exponent
def test_a_retraction_stays_where_the_norm_is_smooth(exponent):
    W, rng = drawn(exponent), np.random.default_rng(3)
    smooth = SmoothPart(W, exponent)
    step = smooth.tangent(rng.standard_normal(W.shape))
    near, far = smooth.retract(W + 1e-6 * step), smooth.retract(W + 10.0 * step)
    np.testing.assert_allclose(near, W + 1e-6 * step, atol=1e-15)
    if exponent == 1.0:
        assert np.all(far[W == 0.0] == 0.0)
        assert np.all(far * np.sign(W) >= 0.0)
    elif math.isinf(exponent):
        tied = np.abs(W) == row_norms(W, exponent)[:, None]
        level = row_norms(far, exponent)[:, None]
        assert np.all((np.abs(far) == level) | ~tied | (level == 0.0))
        assert np.all(far * np.where(tied, np.sign(W), 0.0) >= 0.0)
    else:
        np.testing.assert_array_equal(far, W + 10.0 * step)


@each_exponent
def test_unknowns_span_the_tangent_space(exponent):
    W = drawn(exponent)
    smooth = SmoothPart(W, exponent)
    unknowns = smooth.unknowns()
    if exponent == 2.0:
        assert unknowns is None
        np.testing.assert_allclose(smooth.ridge(), 1.0 / row_norms(W, 2.0))
        return
    assert smooth.ridge() is None
    rows, directions = unknowns
    span = np.zeros((len(rows), *W.shape))
    span[np.arange(len(rows)), rows] = directions
    for direction in span:
        np.testing.assert_allclose(smooth.tangent(direction), direction)
    basis = np.linalg.qr(span.reshape(len(rows), -1).T)[0]
    step = np.random.default_rng(4).standard_normal(W.shape)
    projected = basis @ (basis.T @ step.ravel())
    np.testing.assert_allclose(projected.reshape(W.shape), smooth.tangent(step), atol=1e-12)


@each_exponent
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", [losses.Logistic(), losses.MarginSoftmax()], ids=repr)
def test_a_newton_step_falls_and_knows_its_scores(exponent, fit_intercept, loss):
    rng = np.random.default_rng(5)
    X, W = rng.standard_normal((60, 4)), drawn(exponent)
    scores = X @ rng.standard_normal((4, 5))
    y = scores.argmax(axis=1) if loss.is_classifier else np.where(scores > 0.0, 1.0, -1.0)
    weight, alpha = np.full(60, 1.0 / 60.0), 0.02
    design = SharedDesign(X, 5)
    problem = NormProblem(
        design,
        loss,
        loss.encode(y, 5, weight),
        weight,
        MixedNorm(exponent, 1),
        fit_intercept=fit_intercept,
        alpha=alpha,
    )
    point, block = problem.start(W, np.zeros(5)), design.block(np.arange(4))
    smooth = SmoothPart(W, exponent)
    curvature = SecondOrder(problem, point).diagonal().max(axis=1, keepdims=True)
    model = Model(block, curvature, fit_intercept=fit_intercept, exact=True)
    outputs = SecondOrder(problem, point).outputs(model.totals)
    factor = precondition(model, outputs, smooth.ridge(), smooth.unknowns())
    found = newton_step(problem, block, factor, point, W, smooth)
    assert found.slope < 0.0
    assert np.any(found.weights != 0.0)
    np.testing.assert_allclose(smooth.tangent(found.weights), found.weights, atol=1e-12)
    # Soft-max losses do not see a shift of a row, so that some steps are very long.
    length = max(1.0, float(np.max(np.abs(found.weights))))
    wanted = X @ found.weights + found.intercept
    np.testing.assert_allclose(found.scores, wanted, atol=1e-10 * length)
    assert fit_intercept or np.all(found.intercept == 0.0)
    small = 1e-6 / length

    def objective(part):
        there = problem.start(W + part * found.weights, part * found.intercept)
        return there.value + problem.penalty(there.weights)

    slope = (objective(small) - objective(-small)) / (2.0 * small)
    assert found.slope == pytest.approx(slope, rel=1e-4)
    assert objective(0.1 / length) < objective(0.0)
