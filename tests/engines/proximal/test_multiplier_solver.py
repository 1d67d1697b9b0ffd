"""Losses with kinks made smooth around a dual point, and their best intercepts."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mixnorm import losses
from mixnorm.engines.proximal import LossMixture
from mixnorm.engines.proximal.design import SharedDesign
from mixnorm.engines.proximal.multiplier_solver import Smoothed, best_intercept
from mixnorm.engines.proximal.problem import NormProblem
from mixnorm.norms import as_norm

SCALAR = [losses.Absolute(), losses.EpsilonInsensitive(0.2), losses.Hinge()]
JOINT = [losses.MulticlassHinge(), losses.MulticlassSquaredHinge()]
each_loss = pytest.mark.parametrize("loss", SCALAR + JOINT, ids=repr)


def drawn(loss, n_samples=20, n_outputs=3, empty=0):
    rng = np.random.default_rng(0)
    scores = 2.0 * rng.standard_normal((n_samples, n_outputs))
    y = rng.standard_normal((n_samples, n_outputs))
    if loss.is_classifier:
        y = rng.integers(n_outputs, size=n_samples)
    elif loss.is_binary:
        y = np.sign(y)
    weight = rng.uniform(0.5, 1.5, n_samples)
    weight[:empty] = 0.0
    weight /= weight.sum()
    return np.asfortranarray(scores), loss.encode(y, n_outputs, weight), weight


def smoothed(loss, rate=3.0, **options):
    """A smooth loss around the residual at other scores, which is a dual point."""
    scores, target, weight = drawn(loss, **options)
    centre = loss.value_and_residual(scores[::-1].copy(), target, weight)[1]
    return Smoothed(loss, np.asfortranarray(centre), rate, weight), scores, target, weight


@each_loss
def test_the_derivative_is_one(loss):
    smooth, scores, target, weight = smoothed(loss)
    rng, small = np.random.default_rng(1), 1e-6
    residual = smooth.value_and_residual(scores, target, weight)[1]
    for direction in rng.standard_normal((5, *scores.shape)):
        up, down = (
            smooth.value_and_residual(scores + part * direction, target, weight)[0]
            for part in (small, -small)
        )
        assert np.sum(residual * direction) == pytest.approx((up - down) / (2 * small), abs=1e-7)


@each_loss
@pytest.mark.parametrize("rate", [0.1, 3.0, 1e4])
def test_it_is_below_the_loss_and_near_it(loss, rate):
    smooth, scores, target, weight = smoothed(loss, rate)
    value = smooth.value_and_residual(scores, target, weight)[0]
    above, theta = loss.value_and_residual(scores, target, weight)
    assert value <= above + 1e-12
    # By no more than the distance of the loss's own dual point from the centre.
    centre = loss.value_and_residual(scores[::-1].copy(), target, weight)[1]
    distance = np.sum((theta - centre) ** 2 / (2.0 * rate * weight[:, None]))
    assert value >= above - distance - 1e-12
    assert smooth.smoothness == rate


@each_loss
def test_centred_at_the_solution_it_costs_nothing(loss):
    scores, target, weight = drawn(loss)
    value, theta = loss.value_and_residual(scores, target, weight)
    smooth = Smoothed(loss, np.asfortranarray(theta), 2.0, weight)
    found, residual = smooth.value_and_residual(scores, target, weight)
    assert found == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(residual, theta, atol=1e-10)


@each_loss
def test_its_conjugate_is_one(loss):
    smooth, scores, target, weight = smoothed(loss)
    value, theta = smooth.value_and_residual(scores, target, weight)
    conjugate = smooth.conjugate(theta, target, weight)
    assert value + conjugate == pytest.approx(np.sum(theta * scores), abs=1e-10)
    other = smooth.value_and_residual(scores + 0.7, target, weight)[1]
    bound = np.sum(other * scores) - value
    assert smooth.conjugate(other, target, weight) >= bound - 1e-10
    np.testing.assert_allclose(
        smooth.balance(theta, target, weight), loss.balance(theta, target, weight)
    )


@each_loss
def test_the_gradient_is_lipschitz(loss):
    rate = 3.0
    smooth, scores, target, weight = smoothed(loss, rate)
    rng = np.random.default_rng(2)
    spread = weight[:, None]
    here = smooth.value_and_residual(scores, target, weight)[1]
    for direction in rng.standard_normal((5, *scores.shape)):
        there = smooth.value_and_residual(scores + direction, target, weight)[1]
        apart = np.sum((there - here) ** 2 / (rate * spread))
        assert apart <= np.sum((there - here) * direction) + 1e-10


@each_loss
def test_second_derivatives(loss):
    smooth, scores, target, weight = smoothed(loss)
    residual = smooth.value_and_residual(scores, target, weight)[1]
    product = smooth.hessian_operator(scores, residual, target, weight)
    curvature = smooth.curvature_at(scores, residual, target, weight)
    assert np.all(curvature >= 0.0)
    assert np.all(curvature <= 3.0 * weight[:, None] * (1.0 + 1e-12))
    for direction in np.random.default_rng(3).standard_normal((5, *scores.shape)):
        direction = np.asfortranarray(direction)
        bent = np.sum(direction * product(direction))
        assert -1e-6 <= bent <= np.sum(curvature * direction**2) + 1e-6
        np.testing.assert_allclose(product(2.0 * direction), 2.0 * product(direction), atol=1e-5)
    assert np.all(product(np.zeros_like(scores)) == 0.0)


@each_loss
def test_rows_at_a_corner_of_the_dual_have_no_curvature(loss):
    """There no small change of the scores moves the derivative."""
    smooth, scores, target, weight = smoothed(loss)
    residual = smooth.value_and_residual(scores, target, weight)[1]
    curvature = smooth.curvature_at(scores, residual, target, weight)
    moves = np.zeros(scores.shape, dtype=bool)
    for direction in 1e-6 * np.random.default_rng(4).standard_normal((5, *scores.shape)):
        there = smooth.value_and_residual(scores + direction, target, weight)[1]
        moves |= np.abs(there - residual) > 1e-12
    if loss.is_classifier:
        moves = np.any(moves, axis=1, keepdims=True)
    assert np.any(moves)
    np.testing.assert_allclose(curvature, np.where(moves, 3.0 * weight[:, None], 0.0))


@each_loss
def test_rows_of_weight_zero_do_nothing(loss):
    smooth, scores, target, weight = smoothed(loss, empty=4)
    value, residual = smooth.value_and_residual(scores, target, weight)
    assert np.all(residual[:4] == 0.0)
    moved = scores.copy(order="F")
    moved[:4] += 100.0
    assert smooth.value_and_residual(moved, target, weight)[0] == pytest.approx(value, rel=1e-12)


def posed(loss, n_outputs=3, **options):
    scores, target, weight = drawn(loss, n_outputs=n_outputs, **options)
    design = SharedDesign(np.zeros((len(scores), 1)), n_outputs)
    return NormProblem(design, loss, target, weight, as_norm("l2,1"), alpha=1.0)


@each_loss
def test_the_best_intercept_has_no_gap(loss):
    problem = posed(loss)
    zero = problem.start(np.zeros((1, 3)), np.zeros(3))
    point, theta = best_intercept(problem, zero)
    np.testing.assert_allclose(theta.sum(axis=0), 0.0, atol=1e-12)
    gap = point.value + loss.conjugate(theta, problem.target, problem.weight)
    assert -1e-12 <= gap <= 1e-12 * point.value
    np.testing.assert_allclose(point.scores, np.broadcast_to(point.intercept, (20, 3)))
    assert point.value <= zero.value + 1e-12


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
def test_the_best_intercept_of_one_output_is_scipy_s(loss):
    problem = posed(loss, n_outputs=1)

    def value(shift):
        return problem.start(np.zeros((1, 1)), np.asarray([shift])).value

    grid = np.linspace(-4.0, 4.0, 401)
    start = grid[np.argmin([value(shift) for shift in grid])]
    best = minimize_scalar(value, bounds=(start - 0.05, start + 0.05), method="bounded").fun
    point, _ = best_intercept(problem, problem.start(np.zeros((1, 1)), np.zeros(1)))
    assert point.value <= best * (1.0 + 1e-6)


def test_a_mixture_with_kinks_is_made_smooth_too():
    loss = LossMixture([losses.Hinge(), losses.Squared(), losses.Absolute()])
    rng = np.random.default_rng(4)
    scores = np.asfortranarray(rng.standard_normal((15, 3)))
    y = rng.standard_normal((15, 3))
    y[:, 0] = np.sign(y[:, 0])
    weight = np.full((15, 3), 1.0 / 15.0)
    target = loss.encode(y, 3, weight)
    centre = loss.value_and_residual(scores + 1.0, target, weight)[1]
    smooth = Smoothed(loss, centre, 2.0, weight)
    value, residual = smooth.value_and_residual(scores, target, weight)
    assert value <= loss.value_and_residual(scores, target, weight)[0] + 1e-12
    conjugate = smooth.conjugate(residual, target, weight)
    assert value + conjugate == pytest.approx(np.sum(residual * scores), abs=1e-10)


@pytest.mark.parametrize("loss", JOINT, ids=repr)
@pytest.mark.parametrize(
    "counts", [(7, 2, 1), (5, 5, 0), (4, 3, 3), (10, 0, 0), (1, 0, 1)], ids=str
)
def test_the_best_constant_of_a_joint_loss_is_certified(loss, counts):
    y = np.repeat(np.arange(3), counts)
    weight = np.full(len(y), 1.0 / len(y))
    target = loss.encode(y, 3, weight)
    constant, theta = loss.best_constant(target, weight)
    value = loss.value_and_residual(np.tile(constant, (len(y), 1)), target, weight)[0]
    np.testing.assert_allclose(theta.sum(axis=0), 0.0, atol=1e-15)
    assert value + loss.conjugate(theta, target, weight) == pytest.approx(0.0, abs=1e-14)
