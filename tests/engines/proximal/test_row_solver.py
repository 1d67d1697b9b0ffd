"""The solver for sums of row norms: working sets, and the ways through it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from mixnorm import losses
from mixnorm.engines import proximal
from mixnorm.engines.proximal import ProximalSettings, row_solver
from mixnorm.engines.proximal.design import SharedDesign
from mixnorm.engines.proximal.manifold import Step, newton_step
from mixnorm.engines.proximal.matrix_solver import MatrixSolver
from mixnorm.engines.proximal.problem import NormProblem
from mixnorm.engines.proximal.row_solver import RowSolver
from mixnorm.norms import as_norm

NORMS = ["l1,1", "l2,1", "linf,1"]
LOSSES = [losses.Squared(), losses.Logistic(), losses.SquaredHinge(), losses.MarginSoftmax()]
each_norm = pytest.mark.parametrize("norm", NORMS)
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def posed(loss, norm, *, shape=(30, 150), n_outputs=3, fraction=0.1, columns=False, **options):
    """A problem with more features than a first working set; ``columns``: weights per output."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape)
    X[:, 1:] += 0.6 * X[:, :-1]  # neighbours look alike
    truth = np.zeros((shape[1], n_outputs))
    truth[::20] = rng.standard_normal((len(truth[::20]), n_outputs))
    scores = X @ truth + 0.3 * rng.standard_normal((shape[0], n_outputs))
    y = scores
    if loss.is_classifier:
        y = scores.argmax(axis=1)
    elif loss.is_binary:
        y = np.where(scores > 0.0, 1.0, -1.0)
    weight = rng.uniform(0.5, 1.5, (shape[0], n_outputs) if columns else shape[0])
    weight /= weight.sum(axis=0)
    norm, design = as_norm(norm), SharedDesign(X, n_outputs)
    target = loss.encode(y, n_outputs, weight)
    limit = proximal.alpha_max(design, loss, target, norm, weight=weight, **options)
    return NormProblem(design, loss, target, weight, norm, alpha=fraction * limit, **options)


def run(solver, tol=1e-7, most=200):
    """Iterate to a relative gap; return the objective and the gap."""
    wanted = tol * solver.problem.null().value
    for _ in range(most):
        gap = solver.gap()
        if gap <= wanted:
            break
        solver.step(gap, wanted)
    point = solver.point
    return point.value + solver.problem.penalty(point.weights), gap


@each_norm
@each_loss
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_rows_and_matrices_meet(norm, loss, fit_intercept):
    """Two solvers that have little in common find the same."""
    problem = posed(loss, norm, fit_intercept=fit_intercept)
    rows, matrix = run(RowSolver(problem)), run(MatrixSolver(problem))
    limit = 1e-7 * problem.null().value
    assert rows[1] <= limit
    assert matrix[1] <= limit
    assert abs(rows[0] - matrix[0]) <= limit


@each_norm
@pytest.mark.parametrize("shape", [(200, 40), (20, 150)], ids=str)
@pytest.mark.parametrize("columns", [True, False])
def test_least_squares_of_any_shape(norm, shape, columns):
    """More rows than columns, and less, and weights that differ from output to output."""
    problem = posed(losses.Squared(), norm, shape=shape, columns=columns)
    rows, matrix = run(RowSolver(problem)), run(MatrixSolver(problem))
    limit = 1e-7 * problem.null().value
    assert rows[1] <= limit
    assert abs(rows[0] - matrix[0]) <= limit


@each_norm
@each_loss
def test_what_is_left_out_should_be_zero(norm, loss):
    problem = posed(loss, norm, shape=(40, 400))
    solver = RowSolver(problem)
    run(solver)
    duals = problem.norm.row_duals(solver.gradient)
    used = np.any(solver.point.weights != 0.0, axis=1)
    assert 0 < used.sum() < 100
    # Complementary slackness, as far as the gap tells.
    assert np.all(duals <= problem.alpha * (1.0 + 1e-2))
    np.testing.assert_allclose(duals[used], problem.alpha, rtol=2e-2)


@each_norm
@each_loss
def test_scores_go_with_the_weights(norm, loss):
    """They are moved along and not computed anew, so must not drift."""
    solver = RowSolver(posed(loss, norm))
    run(solver)
    point, problem = solver.point, solver.problem
    there = problem.start(point.weights, point.intercept)
    np.testing.assert_allclose(point.scores, there.scores, atol=1e-10)
    assert point.value == pytest.approx(there.value, rel=1e-10)


@each_norm
@pytest.mark.parametrize("loss", [losses.Logistic(), losses.MarginSoftmax()], ids=repr)
def test_many_outputs_share_one_model(norm, loss):
    """Where Gram matrices of all outputs would be too large, one stands for them."""
    problem = posed(loss, norm, shape=(40, 30), n_outputs=6)
    plain = run(RowSolver(problem))
    found = run(RowSolver(replace(problem, settings=ProximalSettings(few_entries=10.0))))
    limit = 1e-7 * problem.null().value
    assert found[1] <= limit
    assert abs(found[0] - plain[0]) <= limit


@each_norm
@each_loss
def test_another_alpha_goes_on_from_here(norm, loss):
    problem = posed(loss, norm)
    solver = RowSolver(problem)
    run(solver)
    for factor in (0.5, 3.0, 1.0):
        other = replace(problem, alpha=factor * problem.alpha)
        solver.pose(other)
        found, fresh = run(solver), run(RowSolver(other))
        assert abs(found[0] - fresh[0]) <= 1e-7 * problem.null().value


@each_norm
def test_a_start_has_its_rows_worked_on(norm):
    """Rows of the start that should be zero become so."""
    problem = posed(losses.Logistic(), norm)
    weights = np.full((150, 3), 0.5)
    solver = RowSolver(problem, problem.start(weights, np.zeros(3)))
    fresh = run(RowSolver(problem))
    found = run(solver)
    assert abs(found[0] - fresh[0]) <= 1e-7 * problem.null().value
    assert np.sum(np.any(solver.point.weights != 0.0, axis=1)) < 100


def test_a_newton_step_that_raises_the_objective_a_little_is_halved(monkeypatch):
    """Steps are made so long that the objective ends above where it was, by next to nothing."""
    problem = posed(losses.Logistic(), "l2,1", shape=(60, 20), fit_intercept=False)
    solver, heights = RowSolver(problem), []

    def too_long(problem, block, factor, point, weights, smooth):
        found = newton_step(problem, block, factor, point, weights, smooth)
        used = np.any(point.weights != 0.0, axis=1)

        def height(length):
            full = point.weights.copy()
            full[used] += length * found.weights
            return problem.objective(problem.start(full, point.intercept))

        def excess(length):
            return height(length) - height(0.0) + 5e-5 * length * found.slope

        length = brentq(excess, 1.0, 1e3)
        heights.append((height(0.0), height(length)))
        parts = (found.weights, found.intercept, found.scores, found.slope)
        return Step(*(length * part for part in parts))

    monkeypatch.setattr(row_solver, "newton_step", too_long)
    while not heights:
        solver.step(solver.gap(), 1e-3)
    assert heights[0][1] > heights[0][0]
    assert problem.objective(solver.point) < heights[0][0]
