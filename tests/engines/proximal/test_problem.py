"""The objective, its derivatives and its gap; and problems at the edge of what makes sense."""

import math
from dataclasses import replace

import numpy as np
import pytest

from mixnorm import losses
from mixnorm.engines import proximal
from mixnorm.engines.proximal.design import SeparateDesign, SharedDesign
from mixnorm.engines.proximal.problem import NormProblem, SecondOrder, relative_size
from mixnorm.losses import JOINT, SCALAR
from mixnorm.norms import MixedNorm, as_norm

NORMS = ["l1,1", "l2,1", "linf,1", "l2,2", "trace"]
LOSSES = [cls() for cls in (*SCALAR.values(), *JOINT.values())]
SMOOTH = [loss for loss in LOSSES if math.isfinite(loss.smoothness)]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
each_smooth = pytest.mark.parametrize("loss", SMOOTH, ids=repr)
each_norm = pytest.mark.parametrize("norm", NORMS)
each_form = pytest.mark.parametrize("form", [{"alpha": 0.02}, {"radius": 0.7}], ids=str)
BOTH = ({"alpha": 0.02}, {"radius": 0.7})
# One smooth and quadratic, one smooth and joint, one with kinks.
THREE = [losses.Squared(), losses.MarginSoftmax(), losses.Hinge()]


def pairs(all_of, crossed):
    """Parametrise with every loss under one norm, and every norm with one of the losses."""
    found = [(loss, "l2,1") for loss in all_of] + [
        (crossed, norm) for norm in NORMS[:1] + NORMS[2:]
    ]
    return pytest.mark.parametrize(("loss", "norm"), found, ids=str)


each_pair = pairs(THREE, losses.MarginSoftmax())


def targets(loss, X, n_outputs=3, seed=0):
    rng = np.random.default_rng(seed)
    scores = X @ rng.standard_normal((X.shape[1], n_outputs))
    scores = scores / max(float(np.max(np.abs(scores), initial=0.0)), 1e-30)
    scores += 0.2 * rng.standard_normal(scores.shape)
    if loss.is_classifier:
        return scores.argmax(axis=1)
    return np.where(scores > 0.0, 1.0, -1.0) if loss.is_binary else scores


def posed(loss, X=None, *, y=None, norm="l2,1", n_outputs=3, fit_intercept=True, **form):
    if X is None:
        X = np.random.default_rng(0).standard_normal((20, 4))
    weight = np.full(len(X), 1.0 / len(X))
    y = targets(loss, X, n_outputs) if y is None else y
    target = loss.encode(y, n_outputs, weight)
    return NormProblem(
        SharedDesign(X, n_outputs),
        loss,
        target,
        weight,
        as_norm(norm),
        fit_intercept=fit_intercept,
        **form,
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


# The objective.


@each_loss
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_null_model(loss, fit_intercept):
    problem = posed(loss, fit_intercept=fit_intercept, alpha=1.0)
    null, theta = problem.null(), problem.null_dual()
    assert problem.null() is null
    assert np.all(null.weights == 0.0)
    assert relative_size(problem) == null.value
    if not fit_intercept:
        assert np.all(null.intercept == 0.0)
        return
    np.testing.assert_allclose(theta.sum(axis=0), 0.0, atol=1e-12)
    # Its own gap, weights being forbidden, is nothing.
    conjugate = loss.conjugate(theta, problem.target, problem.weight)
    assert null.value + conjugate == pytest.approx(0.0, abs=1e-6 * null.value)
    zero = np.zeros((4, 3))
    for step in 0.05 * np.random.default_rng(1).standard_normal((20, 3)):
        assert problem.start(zero, null.intercept + step).value >= null.value * (1.0 - 1e-9)


@each_smooth
def test_the_best_intercept(loss):
    problem = posed(loss, alpha=1.0)
    weights = np.random.default_rng(2).standard_normal((4, 3))
    found = problem.best_intercept(problem.start(weights, np.full(3, 4.0)))
    np.testing.assert_allclose(found.residual.sum(axis=0), 0.0, atol=1e-9)
    np.testing.assert_array_equal(found.weights, weights)
    np.testing.assert_allclose(found.scores, problem.start(weights, found.intercept).scores)


@each_smooth
def test_second_derivatives(loss):
    problem, rng = posed(loss, alpha=1.0), np.random.default_rng(3)
    point = problem.start(rng.standard_normal((4, 3)), rng.standard_normal(3))
    second = SecondOrder(problem, point)
    direction, small = rng.standard_normal((20, 3)), 1e-6

    def residual(part):
        scores = point.scores + part * direction
        return loss.value_and_residual(scores, problem.target, problem.weight)[1]

    slow = (residual(small) - residual(-small)) / (2.0 * small)
    product = second.product()(np.asfortranarray(direction))
    np.testing.assert_allclose(product, slow, atol=1e-7)
    # The diagonal is an upper model.
    assert np.sum(second.diagonal() * direction**2) >= np.sum(direction * product) - 1e-12
    hessian = second.intercept_hessian()
    columns = np.stack(
        [second.product()(np.asfortranarray(np.eye(3)[[r] * 20])).sum(axis=0) for r in range(3)]
    )
    wanted = columns if loss.is_classifier else np.diagonal(columns)
    np.testing.assert_allclose(hessian, wanted, atol=1e-10)
    mean = second.outputs(np.asarray([2.0]))
    if loss.is_classifier:
        np.testing.assert_allclose(mean, hessian / 2.0)
    else:
        assert mean is None


@pytest.mark.parametrize(
    ("loss", "fit_intercept"),
    [(loss, True) for loss in LOSSES] + [(loss, False) for loss in THREE],
    ids=str,
)
@each_form
def test_the_gap_is_a_bound_at_any_point(loss, form, fit_intercept):
    rng = np.random.default_rng(4)
    problem = posed(loss, rng.standard_normal((16, 2)), fit_intercept=fit_intercept, **form)
    best = solve(problem, tol=1e-5)
    assert best.converged
    for size in (0.0, 0.1, 1.0, 10.0):
        weights = size * rng.standard_normal((2, 3))
        if problem.radius is not None:
            weights = problem.norm.project(weights, problem.radius)
        point = problem.start(weights, size * rng.standard_normal(3) * fit_intercept)
        theta = problem.dual_point(point)
        gap = problem.gap(point, theta, problem.design.gradient(theta))
        apart = point.value + problem.penalty(weights) - best.objective
        assert gap >= apart - 1e-12
        assert math.isfinite(gap)


def test_problems_share_what_does_not_depend_on_alpha():
    problem = posed(losses.Logistic(), alpha=1.0)
    null, other = problem.null(), replace(problem, alpha=0.3)
    assert (other.alpha, other.radius) == (0.3, None)
    assert other.null() is null
    assert posed(losses.Squared(), radius=2.0).penalty(np.ones((4, 3))) == 0.0
    assert problem.penalty(np.ones((4, 3))) == pytest.approx(4.0 * math.sqrt(3.0))


# The edge of what makes sense.


def sound(problem, tol=1e-5, **options):
    """Solve, and check that all numbers are numbers and the gap is reached."""
    found = solve(problem, tol=tol, **options)
    assert np.all(np.isfinite(found.weights))
    assert np.all(np.isfinite(found.intercept))
    assert math.isfinite(found.objective)
    assert found.objective <= found.scale * (1.0 + 1e-9) or found.scale == 1.0
    assert found.converged
    if problem.radius is not None:
        assert found.norm_value <= problem.radius * (1.0 + 1e-10)
    return found


@each_pair
@pytest.mark.parametrize("shape", [(20, 1), (1, 5), (1, 1), (2, 3)], ids=str)
def test_small_shapes(loss, norm, shape):
    X = np.random.default_rng(1).standard_normal(shape)
    y = np.arange(len(X)) % 3 if loss.is_classifier else None
    for form in BOTH:
        for fit_intercept in (True, False):
            if loss.is_classifier and fit_intercept and len(X) == 1:
                continue  # see the next test
            sound(posed(loss, X, y=y, norm=norm, fit_intercept=fit_intercept, **form))


@each_norm
@pytest.mark.parametrize("loss", [losses.MarginSoftmax(), losses.MulticlassHinge()], ids=repr)
def test_one_class_only(loss, norm):
    """The intercept does it all: there is nothing for weights to do."""
    X = np.random.default_rng(1).standard_normal((5, 2))
    for form in BOTH:
        found = sound(posed(loss, X, y=np.ones(5, dtype=int), norm=norm, **form))
        assert found.norm_value <= 1e-6
        assert found.objective <= 1e-6


@pairs([losses.Squared(), losses.Logistic(), losses.Hinge()], losses.Hinge())
def test_one_output(loss, norm):
    X = np.random.default_rng(2).standard_normal((12, 3))
    for form in BOTH:
        sound(posed(loss, X, norm=norm, n_outputs=1, **form))


@pytest.mark.parametrize("form", BOTH, ids=str)
def test_one_output_has_one_norm(form):
    """With one output, rows are entries: three norms are one, and so are the other two."""
    X = np.random.default_rng(2).standard_normal((20, 4))
    for norms in (("l1,1", "l2,1", "linf,1"), ("l2,2", "trace")):
        found = [sound(posed(losses.Logistic(), X, norm=n, n_outputs=1, **form)) for n in norms]
        for one in found[1:]:
            assert one.objective == pytest.approx(found[0].objective, abs=2e-5 * one.scale)


@each_pair
def test_constant_equal_and_empty_columns(loss, norm):
    X = np.random.default_rng(3).standard_normal((12, 5))
    X[:, 1], X[:, 2], X[:, 3] = 1.0, X[:, 0], 0.0
    for form in BOTH:
        for fit_intercept in (True, False):
            found = sound(posed(loss, X, norm=norm, fit_intercept=fit_intercept, **form))
            assert np.all(np.abs(found.weights[3]) <= 1e-12)


@each_pair
def test_nothing_to_learn_from(loss, norm):
    X = np.zeros((20, 3))
    y = targets(loss, np.random.default_rng(4).standard_normal((20, 3)))
    for form in BOTH:
        for fit_intercept in (True, False):
            problem = posed(loss, X, y=y, norm=norm, fit_intercept=fit_intercept, **form)
            found = sound(problem)
            assert found.norm_value == 0.0
            alpha = proximal.alpha_max(
                problem.design,
                loss,
                problem.target,
                problem.norm,
                weight=problem.weight,
                fit_intercept=fit_intercept,
            )
            assert alpha == 0.0


@pairs(
    [losses.Squared(), losses.Huber(), losses.Absolute(), losses.EpsilonInsensitive()],
    losses.Squared(),
)
def test_targets_of_zero(loss, norm):
    for y in (np.zeros((20, 3)), np.full((20, 3), 2.5)):
        for form in BOTH:
            found = sound(posed(loss, y=y, norm=norm, **form))
            assert found.norm_value <= 1e-8
            assert found.objective <= 1e-8


@each_norm
@pytest.mark.parametrize("loss", [losses.MarginSoftmax(), losses.MulticlassHinge()], ids=repr)
def test_a_class_that_nobody_has(loss, norm):
    X = np.random.default_rng(5).standard_normal((20, 2))
    y = targets(loss, X, 2)
    for form in BOTH:
        sound(posed(loss, X, y=y, norm=norm, fit_intercept=False, **form))


@pairs([losses.Squared(), losses.MarginSoftmax()], losses.MarginSoftmax())
def test_scales_of_data(loss, norm):
    """Data a hundred million times as large have weights as many times smaller."""
    X = np.random.default_rng(6).standard_normal((20, 2))
    y = targets(loss, X)
    plain = sound(posed(loss, X, y=y, norm=norm, alpha=0.02), tol=1e-6)
    radius = 0.5 * plain.norm_value
    inside = sound(posed(loss, X, y=y, norm=norm, radius=radius), tol=1e-6)
    for scale in (1e-8, 1e8):
        found = sound(posed(loss, scale * X, y=y, norm=norm, alpha=0.02 * scale), tol=1e-6)
        assert found.objective == pytest.approx(plain.objective, abs=2e-6 * plain.scale)
        np.testing.assert_allclose(found.weights * scale, plain.weights, atol=5e-2)
        found = sound(posed(loss, scale * X, y=y, norm=norm, radius=radius / scale), tol=1e-6)
        assert found.objective == pytest.approx(inside.objective, abs=2e-6 * inside.scale)


@pairs([losses.Squared(), losses.Absolute()], losses.Squared())
def test_scales_of_targets(loss, norm):
    X = np.random.default_rng(6).standard_normal((12, 3))
    y = targets(loss, X)
    plain = sound(posed(loss, X, y=y, norm=norm, alpha=0.02), tol=1e-4)
    wanted = pytest.approx(plain.objective / plain.scale, abs=2e-4)
    for scale in (1e-8, 1e8):
        size = scale if isinstance(loss, losses.Squared) else 1.0  # of residuals, and so of alpha
        found = sound(posed(loss, X, y=scale * y, norm=norm, alpha=0.02 * size), tol=1e-4)
        assert found.objective / found.scale == wanted


@each_norm
def test_columns_of_unequal_scales(norm):
    X = np.random.default_rng(7).standard_normal((40, 5)) * np.geomspace(1e-3, 1e3, 5)
    for loss in (losses.Squared(), losses.Logistic()):
        problem = posed(loss, X, norm=norm, alpha=0.0)
        limit = proximal.alpha_max(
            problem.design, loss, problem.target, problem.norm, weight=problem.weight
        )
        found = sound(posed(loss, X, norm=norm, alpha=0.01 * limit), max_iter=5000)
        assert found.norm_value > 0.0


@each_pair
def test_a_ball_of_radius_zero(loss, norm):
    found = sound(posed(loss, norm=norm, radius=0.0))
    assert np.all(found.weights == 0.0)
    assert found.value == pytest.approx(found.scale, rel=1e-6)


@each_norm
@pytest.mark.parametrize("loss", [losses.Squared(), losses.Logistic()], ids=repr)
def test_a_ball_that_holds_everything(loss, norm):
    """Classes overlap here, so that a best point exists without a norm."""
    rng = np.random.default_rng(10)
    X, y = rng.standard_normal((60, 3)), rng.choice([-1.0, 1.0], (60, 3))
    free = sound(posed(loss, X, y=y, norm=norm, alpha=1e-4), tol=1e-4)
    found = sound(posed(loss, X, y=y, norm=norm, radius=10.0 * (1.0 + free.norm_value)))
    assert found.objective <= free.objective + 1e-4 * found.scale
    assert found.norm_value < 0.9 * found.radius


@each_norm
def test_no_penalty_is_least_squares(norm):
    """With nothing to scale a dual point with, the gap is no use; the weights are right."""
    problem = posed(losses.Squared(), norm=norm, alpha=0.0)
    found = solve(problem, max_iter=3)
    X = problem.design.block(np.arange(4)).scores(np.eye(4))
    full = np.concatenate([X, np.ones((20, 1))], axis=1)
    slow = np.linalg.lstsq(full, np.asarray(problem.target), rcond=None)[0]
    np.testing.assert_allclose(found.weights, slow[:-1], atol=1e-3)
    np.testing.assert_allclose(found.intercept, slow[-1], atol=1e-3)
    best = 0.5 * np.sum((full @ slow - problem.target) ** 2) / 20.0
    assert found.objective - best <= found.gap


@pytest.mark.parametrize("fit_intercept", [True, False])
@pairs([losses.Squared(), losses.Logistic(), losses.Absolute()], losses.Logistic())
def test_a_task_with_one_row(loss, norm, fit_intercept):
    rng = np.random.default_rng(8)
    Xs = [rng.standard_normal((size, 3)) for size in (10, 1, 6)]
    y, weight = np.ones((10, 3)), np.zeros((10, 3))
    for task, X in enumerate(Xs):
        y[: len(X), [task]] = targets(loss, X, 1, seed=task)
        weight[: len(X), task] = 1.0 / len(X)
    target = loss.encode(y, 3, weight)
    for form in BOTH:
        problem = NormProblem(
            SeparateDesign(Xs),
            loss,
            target,
            weight,
            as_norm(norm),
            fit_intercept=fit_intercept,
            **form,
        )
        found = sound(problem)
        if fit_intercept and not loss.is_binary:
            # The intercept alone fits the one row.
            assert np.abs(found.weights[:, 1]).max() <= 1e-2


@each_form
def test_more_columns_than_rows(form):
    X = np.random.default_rng(9).standard_normal((10, 100))
    for norm in NORMS:
        for loss in (losses.Squared(), losses.MultinomialLogistic()):
            sound(posed(loss, X, norm=norm, **form))


@each_form
def test_blocks_of_one_size_or_another(form):
    X = np.random.default_rng(9).standard_normal((15, 5))
    problem = posed(losses.Squared(), X, **form)
    groups = np.asarray([7, 7, 7, 7, 0])
    for inner_exponent in (1, 2, np.inf):
        norm = MixedNorm(inner_exponent, 1, groups=groups)
        found = proximal.solve(
            problem.design, problem.loss, problem.target, norm, weight=problem.weight, **form
        )
        assert found.converged
