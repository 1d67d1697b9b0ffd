"""The solver for any norm: its proximal maps, and problems too wide for a model."""

from dataclasses import replace

import numpy as np
import pytest

from mixnorm import losses
from mixnorm.engines import proximal
from mixnorm.engines.proximal import ProximalSettings
from mixnorm.engines.proximal.design import SeparateDesign, SharedDesign
from mixnorm.engines.proximal.matrix_solver import DataSteps, MatrixSolver, Proximal
from mixnorm.engines.proximal.problem import NormProblem
from mixnorm.norms import TraceNorm, as_norm

NORMS = ["l1,1", "l2,1", "linf,1", "l2,2", "trace"]
LOSSES = [losses.Squared(), losses.Huber(), losses.MarginSoftmax(), losses.MultinomialLogistic()]
FORMS = [{"alpha": 0.02}, {"radius": 0.7}]
# With these any problem is too wide for a Gram matrix.
WIDE = ProximalSettings(largest_model=2)
each_norm = pytest.mark.parametrize("norm", NORMS)
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
# Every loss under the trace norm, and every norm with one of the losses: they meet in two methods.
each_pair = pytest.mark.parametrize(
    ("loss", "norm"),
    [(loss, "trace") for loss in LOSSES] + [(losses.MarginSoftmax(), norm) for norm in NORMS[:-1]],
    ids=str,
)
each_form = pytest.mark.parametrize("form", FORMS, ids=str)


def posed(loss, norm, fit_intercept=True, n_features=6, separate=False, zero=False, **form):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((25, n_features)) * (not zero)
    scores = X[:, :2] @ rng.standard_normal((2, 3)) + 0.3 * rng.standard_normal((25, 3)) + 0.5
    y = scores.argmax(axis=1) if loss.is_classifier else scores
    weight = rng.uniform(0.5, 1.5, 25)
    weight /= weight.sum()
    design = SharedDesign(X, 3)
    if separate:
        design, weight = SeparateDesign([X] * 3), np.repeat(weight[:, None], 3, axis=1)
    target = loss.encode(y, 3, weight)
    return NormProblem(
        design, loss, target, weight, as_norm(norm), fit_intercept=fit_intercept, **form
    )


def solve(problem, **options):
    return proximal.solve(
        problem.design,
        problem.loss,
        problem.target,
        problem.norm,
        weight=problem.weight,
        fit_intercept=problem.fit_intercept,
        alpha=problem.alpha,
        radius=problem.radius,
        **options,
    )


@each_norm
def test_the_map_is_the_norm_s(norm):
    W = np.random.default_rng(1).standard_normal((6, 3))
    penalised = Proximal(posed(losses.Squared(), norm, alpha=0.5))
    norm = as_norm(norm)
    for _ in range(3):  # remembering a basis changes nothing
        np.testing.assert_allclose(penalised(W, 0.4), norm.prox(W, 0.2), atol=1e-10)
    assert penalised.problem.penalty(W) == pytest.approx(0.5 * norm.value(W))
    ball = Proximal(posed(losses.Squared(), "l2,1", radius=0.5), norm)
    np.testing.assert_allclose(ball(W, 0.4), norm.project(W, 0.5), atol=1e-10)
    assert ball.problem.penalty(W) == 0.0


def test_a_map_that_leaves_nothing_can_be_asked_again():
    proximal_map = Proximal(posed(losses.Squared(), "trace", alpha=1.0))
    W = np.random.default_rng(2).standard_normal((6, 3))
    assert np.all(proximal_map(W, 100.0) == 0.0)
    np.testing.assert_allclose(proximal_map(W, 0.1), TraceNorm().prox(W, 0.1), atol=1e-10)


@each_norm
@each_form
def test_the_gap_of_a_quadratic_is_a_bound(norm, form):
    problem = posed(losses.Squared(), norm, fit_intercept=False, **form)
    best, check = solve(problem, tol=1e-9).objective, Proximal(problem)
    for size in (0.0, 0.1, 1.0):
        W = size * np.random.default_rng(3).standard_normal((6, 3))
        W = W if problem.radius is None else problem.norm.project(W, problem.radius)
        point = problem.start(W, np.zeros(3))
        gap = check.model_gap(W, problem.design.gradient(point.residual), point.value)
        assert point.value + problem.penalty(W) - best <= gap + 1e-12


@each_pair
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_too_wide_for_a_model(loss, norm, fit_intercept):
    """Steps on the data end where steps on a model do."""
    problems = [posed(loss, norm, fit_intercept, **form) for form in FORMS]
    truths = [solve(problem, tol=1e-7) for problem in problems]
    for problem, truth in zip(problems, truths, strict=True):
        found = solve(problem, tol=1e-6, settings=WIDE)
        assert found.converged
        assert abs(found.objective - truth.objective) <= max(found.gap, truth.gap)
        assert fit_intercept or np.all(found.intercept == 0.0)


@pytest.mark.parametrize("separate", [False, True])
def test_gram_matrices_are_kept_up_to_their_limit(separate):
    """One matrix of 6 x 6 serves three outputs; tasks with rows of their own need one each."""
    entries = 3 * 36 if separate else 36
    loss = losses.Huber()
    for limit, fits in ((entries, True), (entries - 1, False)):
        problem = posed(loss, "trace", separate=separate, alpha=0.02)
        solver = MatrixSolver(replace(problem, settings=ProximalSettings(largest_grams=limit)))
        solver.step(solver.gap(), 1e-3)
        assert (solver._data_steps is None) == fits


@each_norm
@each_form
def test_too_wide_with_tasks_of_their_own(norm, form):
    problem = posed(losses.Huber(), norm, separate=True, **form)
    truth = solve(problem, tol=1e-7)
    found = solve(problem, tol=1e-6, settings=ProximalSettings(largest_grams=10.0))
    assert found.converged
    assert abs(found.objective - truth.objective) <= max(found.gap, truth.gap)


@each_form
@pytest.mark.parametrize("norm", ["l2,2", "trace"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_too_wide_and_nothing_in_it(norm, form, fit_intercept):
    found = solve(posed(losses.Squared(), norm, fit_intercept, zero=True, **form), settings=WIDE)
    assert found.converged
    assert found.norm_value == 0.0


def test_a_path_too_wide_for_a_model():
    problem = posed(losses.MarginSoftmax(), "trace", alpha=0.0)
    arguments = (problem.design, problem.loss, problem.target, problem.norm)
    limit = proximal.alpha_max(*arguments, weight=problem.weight)
    alphas = limit * np.asarray([0.5, 0.1, 0.3])
    truth = [solve(replace(problem, alpha=alpha), tol=1e-7) for alpha in alphas]
    found = proximal.path(*arguments, weight=problem.weight, alphas=alphas, tol=1e-6, settings=WIDE)
    for one, other in zip(found, truth, strict=True):
        assert one.converged
        assert abs(one.objective - other.objective) <= max(one.gap, other.gap)


@each_loss
@each_form
def test_more_rows_than_a_first_working_set(loss, form):
    """The ball works on some rows first; those it leaves out are looked at again."""
    problem = posed(loss, "l2,1", n_features=200, **form)
    found = solve(problem, tol=1e-6)
    assert found.converged
    exact = solve(problem, tol=1e-8)
    theta = problem.dual_point(problem.start(exact.weights, exact.intercept))
    bound = problem.bound(theta, problem.design.gradient(theta))
    assert bound <= found.objective <= bound + 1.1e-6 * found.scale


@each_pair
@each_form
def test_steps_do_not_climb(loss, norm, form):
    problem = posed(loss, norm, **form)
    solver = MatrixSolver(problem)
    height = solver.point.value + problem.penalty(solver.point.weights)
    for _ in range(5):
        solver.step(solver.gap(), 1e-8)
        after = solver.point.value + problem.penalty(solver.point.weights)
        assert after <= height + 1e-12
        height = after
        if problem.radius is not None:
            assert problem.norm.value(solver.point.weights) <= problem.radius * (1.0 + 1e-10)


@each_norm
@each_form
def test_a_model_is_minimised_no_longer_than_needed(norm, form):
    """A model of six features takes some dozens of proximal maps, of the 2000 allowed."""
    problem = posed(losses.Squared(), norm, **form)
    solver = MatrixSolver(problem)
    before = problem.effort.spent
    solver.step(solver.gap(), 1e-6)
    assert solver.gap() <= 1e-6
    assert problem.effort.spent - before < 100 * problem.settings.prox_effort


@each_norm
def test_a_model_at_its_minimum_is_left_at_once(norm):
    """Zero weights are the minimum exactly, which no step can lower."""
    problem = posed(losses.Squared(), norm, alpha=1e3)
    solver = MatrixSolver(problem)
    before = problem.effort.spent
    solver.step(0.0, 0.0)
    assert not np.any(solver.point.weights)
    assert problem.effort.spent - before < 20 * problem.settings.prox_effort


@each_norm
def test_far_from_the_solution_models_are_minimised_as_far_as_the_gap_is_worth(norm):
    """With a gap of one, to a tenth of it; to rounding takes more than twice the effort."""
    efforts = []
    for gap in (1.0, 0.0):
        problem = posed(losses.Huber(), norm, alpha=0.02)
        solver = MatrixSolver(problem)
        before = problem.effort.spent
        solver.step(gap, 1e-9)
        efforts.append(problem.effort.spent - before)
    assert efforts[0] < 0.5 * efforts[1]


def test_a_step_on_the_data_is_along_the_gradient_of_centred_columns():
    """Also where the intercept is far from its best; there is next to no penalty."""
    problem = posed(losses.Huber(), "l2,2", alpha=1e-12)
    X = np.random.default_rng(0).standard_normal((25, 6))  # that of the problem
    point = problem.start(0.1 * np.ones((6, 3)), np.full(3, 2.0))
    moved = DataSteps(problem).run(problem, point, 1)
    slope = (X - problem.weight @ X).T @ point.residual
    move = point.weights - moved.weights
    assert np.sum(move * slope) == pytest.approx(np.linalg.norm(move) * np.linalg.norm(slope))
