"""Steps in single precision with points and gaps in double."""

from dataclasses import replace

import numpy as np
import pytest

from mixnorm import losses
from mixnorm.engines import proximal
from mixnorm.engines.proximal import ProximalSettings
from mixnorm.engines.proximal.mixed_precision import MixedSolver, suits
from mixnorm.engines.proximal.problem import NormProblem
from mixnorm.norms import as_norm

LOSSES = [losses.MultinomialLogistic(), losses.MarginSoftmax(), losses.Logistic()]
NORMS = ["l2,1", "linf,1", "l1,1", "trace"]
each_norm = pytest.mark.parametrize("norm", NORMS)
# Every loss under one norm, and every norm with one of the losses.
each_pair = pytest.mark.parametrize(
    ("loss", "norm"),
    [(loss, "l2,1") for loss in LOSSES] + [(losses.MarginSoftmax(), norm) for norm in NORMS[1:]],
    ids=str,
)


def posed(loss, norm="l2,1", n_samples=700, n_features=100, offset=0.0, **form):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_features)) + offset
    scores = (X - offset)[:, :6] @ rng.standard_normal((6, 4)) + rng.standard_normal((n_samples, 4))
    y = np.argmax(scores, axis=1) if loss.is_classifier else np.sign(scores)
    weight = rng.uniform(0.5, 1.5, n_samples)
    weight /= weight.sum()
    design = proximal.SharedDesign(X, 4)
    form = form or {"alpha": 0.02}
    return NormProblem(design, loss, loss.encode(y, 4, weight), weight, as_norm(norm), **form)


def solve(problem, **options):
    return proximal.solve(
        problem.design,
        problem.loss,
        problem.target,
        problem.norm,
        weight=problem.weight,
        alpha=problem.alpha,
        radius=problem.radius,
        **options,
    )


@each_pair
@pytest.mark.parametrize("form", [{"alpha": 0.02}, {"radius": 2.0}], ids=str)
def test_the_gap_is_that_of_double_precision(loss, norm, form):
    problem = posed(loss, norm, **form)
    assert suits(problem, 1e-4)
    found, exact = solve(problem, tol=1e-4), solve(problem, tol=1e-7)
    assert found.converged
    assert found.weights.dtype == found.intercept.dtype == np.float64
    assert -1e-12 <= found.objective - exact.objective + exact.gap <= found.gap + exact.gap
    if problem.radius is not None:
        assert found.norm_value <= problem.radius * (1.0 + 1e-12)
    again = problem.start(found.weights, found.intercept)
    assert again.value == pytest.approx(found.value, rel=1e-12)


@each_norm
def test_a_path_is_its_solutions_one_by_one(norm):
    problem = posed(LOSSES[0], norm)
    arguments = (problem.design, problem.loss, problem.target, problem.norm)
    alphas = [0.05, 0.03, 0.02, 0.01]
    path = proximal.path(*arguments, weight=problem.weight, alphas=alphas, tol=1e-3)
    for alpha, found in zip(alphas, path, strict=True):
        assert found.converged
        alone = solve(replace(problem, alpha=alpha), tol=1e-7)
        assert abs(found.objective - alone.objective) <= found.gap + alone.gap


def test_what_single_precision_cannot_do_is_done_in_double():
    """Offsets of ten million leave no digits for what the columns tell apart."""
    problem = posed(LOSSES[0], offset=1e7)
    solver = MixedSolver(problem, proximal.engine._build_smooth_solver)
    gap = solver.gap()
    for _ in range(40):
        if gap <= 1e-4:
            break
        solver.step(gap, 1e-4)
        gap = solver.gap()
    assert gap <= 1e-4
    assert solver._double is None
    plain = solve(problem, tol=1e-5, settings=ProximalSettings(single_tol=1.0))
    assert problem.objective(solver.point) <= plain.objective + gap


@pytest.mark.parametrize(
    "change",
    [
        {"tol": 1e-5},
        {"loss": losses.Squared()},
        {"loss": losses.Hinge()},
        {"n_samples": 50},
        {"offset": 1e20},
    ],
    ids=str,
)
def test_where_it_is_not_tried(change):
    tol = change.pop("tol", 1e-4)
    loss = change.pop("loss", LOSSES[0])
    assert not suits(posed(loss, **change), tol)


def test_a_start_is_taken_over():
    problem = posed(LOSSES[0])
    first = solve(problem, tol=1e-4)
    again = solve(problem, tol=1e-4, start=(first.weights, first.intercept))
    assert again.iterations <= 1
