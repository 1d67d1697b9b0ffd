"""Starts and single steps of the ways down the dual."""

import numpy as np
import pytest

from mixnorm.engines import dual
from mixnorm.engines.dual.gradient import DualGradientDescent, ForwardBackward
from mixnorm.engines.dual.newton import DualNewton
from mixnorm.engines.dual.problem import DualProblem
from mixnorm.engines.dual.squares import SquaresNewton
from mixnorm.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Squared

LOSSES = [Squared(), Huber(0.5), EpsilonInsensitive(0.1), Logistic(), Hinge()]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
each_gamma = pytest.mark.parametrize("gamma", [1e-3, 1.0, 100.0])


def posed(loss, gamma, n=12, q=4.0):
    rng = np.random.default_rng(0)
    F, y = rng.standard_normal((9, n)), rng.standard_normal(n)
    y = np.sign(y) if loss.is_binary else y
    target = loss.encode(y[:, None], 1, np.zeros((n, 1)))
    return DualProblem(dual.FeatureContraction(F, q), loss, target, np.full(n, gamma))


@each_loss
@each_gamma
def test_the_start_is_the_best_of_the_residual_and_its_halves(loss, gamma):
    problem = posed(loss, gamma)
    _, residual = loss.value_and_residual(np.zeros((12, 1)), problem.target, problem.weight)
    values = [problem.evaluate(-residual[:, 0] * 0.5**k).value for k in range(40)]
    assert problem.start().value == pytest.approx(min(values))


@each_gamma
@pytest.mark.parametrize("q", [2.2, 4.0, 7.0])
def test_the_start_for_squares_is_the_best_multiple_of_the_targets(gamma, q):
    """The derivative of the dual along the ray is zero there."""
    problem = posed(Squared(), gamma, q=q)
    squares = SquaresNewton(problem.contraction, problem.target[:, 0], problem.weight)
    start = squares.start()
    slope = start.alpha @ squares.gradient(start.alpha, start.scores)
    assert slope == pytest.approx(0.0, abs=1e-9 * abs(start.value))
    np.testing.assert_allclose(start.alpha / start.alpha[0], squares.y / squares.y[0])
    np.testing.assert_allclose(start.V, problem.contraction.matrix(start.alpha), rtol=1e-9)


@pytest.mark.parametrize("loss", [EpsilonInsensitive(0.1), Hinge(), Huber(0.5)], ids=repr)
def test_newton_directions_solve_the_linearised_fixed_point_equation(loss):
    """With slopes ``S`` of the proximal map: ``(I - S (I - step H)) d = -(alpha - prox)``."""
    problem, free = posed(loss, 0.3), []
    state, steps = problem.start(), DualNewton(problem)
    for _ in range(4):
        H = problem.contraction.hessian(state.alpha, state.V)
        step = 1.0 / float(np.max(np.diagonal(H)))
        z = state.alpha - step * state.scores
        left = state.alpha - problem.prox(z, step)
        slopes = steps._differentiate_prox(z, step)
        d = steps._solve_direction(H.copy(), left, slopes, step, 0.0)
        jacobian = np.eye(12) - slopes[:, None] * (np.eye(12) - step * H)
        np.testing.assert_allclose(jacobian @ d, -left, atol=1e-7 * np.max(np.abs(d)))
        free.append(np.sum(slopes > 1e-9))
        state, _ = steps.step(state)
    assert any(0 < count < 12 for count in free)


@pytest.mark.parametrize("gamma", [1e-6, 1.0, 1e6])
def test_slopes_of_the_proximal_map_of_a_hinge(gamma):
    """One between the bounds, where the map is a shift, and zero at a bound."""
    problem = posed(Hinge(), gamma)
    z = gamma * np.random.default_rng(1).uniform(-1.0, 2.0, 12) * problem.target[:, 0]
    near, slopes = problem.prox(z, gamma), DualNewton(problem)._differentiate_prox(z, gamma)
    inside = (np.abs(near) > 0.0) & (np.abs(near) < gamma)
    assert 0 < np.sum(inside) < 12
    np.testing.assert_allclose(slopes, inside, atol=1e-6)


class WithoutDirection(DualNewton):
    """Newton's method where no direction helps."""

    def _solve_direction(self, H, left, slopes, step, damping):
        return np.zeros_like(left)


@pytest.mark.parametrize("loss", [Huber(0.5), Hinge()], ids=repr)
def test_proximal_steps_are_taken_where_newton_directions_do_not_help(loss):
    problem = posed(loss, 1.0)
    least = -dual.solve(problem.contraction, loss, problem.target, 1.0).objective
    state = start = problem.start()
    for _ in range(15):
        moved, evaluations = WithoutDirection(problem).step(state)
        assert evaluations < 100
        assert moved.value <= state.value
        state = moved
    assert state.value - least < 0.5 * (start.value - least)


@each_loss
@pytest.mark.parametrize("length", [0.0, 1e3])
def test_a_forward_backward_step_is_as_short_as_its_bound_demands(loss, length):
    """The norm's part lies below its tangent plus ``|step|^2 / (2 length)``."""
    problem = posed(loss, 1.0)
    steps, state = ForwardBackward(problem), problem.start()
    steps.length = length
    for _ in range(5):
        moved, _ = steps.step(state)
        move = moved.alpha - state.alpha
        above = (moved.norm - state.norm) / problem.q - state.scores @ move
        assert above <= 0.5 / steps.length * (move @ move) + 1e-12
        assert np.any(move != 0.0)
        state = moved


@pytest.mark.parametrize("gamma", [0.1, 10.0])
def test_a_gradient_step_gains_half_of_what_its_slope_promises(gamma):
    problem = posed(Squared(), gamma)
    steps, state = DualGradientDescent(problem), problem.start()
    for _ in range(5):
        g = state.scores - problem.target[:, 0] + state.alpha / problem.weight
        moved, _ = steps.step(state)
        assert moved.value <= state.value - 0.5 * steps.length * (g @ g) + 1e-12
        np.testing.assert_allclose(moved.alpha, state.alpha - steps.length * g)
        state = moved


@pytest.mark.parametrize("q", [3.0, 4.0])
def test_newton_steps_on_squares_converge_quadratically_and_to_rounding(q):
    """Near the optimum, where the value is rounding, steps still lower the gap."""
    problem = posed(Squared(), 2.0, q=q)
    squares = SquaresNewton(problem.contraction, problem.target[:, 0], problem.weight)
    state, evaluations = squares.start(), 0
    for _ in range(12):
        moved, taken = squares.step(state)
        evaluations += taken
        state = moved
        if state.gap <= 1e-26 * state.primal:
            break
    assert state.gap <= 1e-26 * state.primal
    assert evaluations <= 15
