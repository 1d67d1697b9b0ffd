"""The proximal engine against itself, where two ways to say a problem must meet."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mixnorm import losses
from mixnorm.engines.proximal import LossMixture
from mixnorm.norms import as_norm

from .reference import KINKED, LOSSES, NORMS, SLACK, SMOOTH, Reference, agrees, draw, pairs, size_of


@pairs(["squared", "logistic", "huber"], crossed=["squared"])
def test_separate_designs_that_are_equal_are_a_shared_one(name, norm):
    shared, norm = draw(LOSSES[name]), as_norm(norm)
    weight = np.repeat(shared.weight[:, None], 3, axis=1)
    separate = replace(shared, X=[shared.X.copy() for _ in range(3)], weight=weight)
    alpha = 0.1 * shared.alpha_max(norm)
    assert separate.alpha_max(norm) == pytest.approx(shared.alpha_max(norm), rel=1e-9)
    meet(shared, separate, norm, alpha=alpha)
    mixed = replace(separate, loss=LossMixture([shared.loss] * 3))
    meet(shared, mixed, norm, alpha=alpha)
    meet(shared, mixed, norm, radius=1.0)


def meet(one, other, norm, tol=1e-7, **form):
    """Check that two ways to say a problem have one optimum, to their gaps."""
    first = one.solve(norm, tol=tol, **form)
    second = other.solve(norm, tol=tol, **form)
    assert first.converged
    assert second.converged
    assert second.scale == pytest.approx(first.scale, rel=1e-9)
    assert abs(first.objective - second.objective) <= max(first.gap, second.gap) + 1e-12
    np.testing.assert_allclose(first.weights, second.weights, atol=2e-3, rtol=0.0)
    return first, second


@pairs(["squared", "logistic"], crossed=["squared"])
def test_weight_zero_is_no_label(name, norm):
    rng, norm, shared = np.random.default_rng(0), as_norm(norm), draw(LOSSES[name], seed=5)
    known = rng.uniform(size=shared.y.shape) < 0.7
    weight = np.where(known, shared.weight[:, None], 0.0)
    weight /= weight.sum(axis=0)
    y = np.where(known, shared.y, -1.0)
    masked = replace(shared, y=y, weight=weight)
    rows = [np.flatnonzero(column) for column in known.T]
    most = max(map(len, rows))
    own_y, own_weight = np.ones((most, 3)), np.zeros((most, 3))
    for task, kept in enumerate(rows):
        own_y[: len(kept), task] = shared.y[kept, task]
        own_weight[: len(kept), task] = weight[kept, task]
    dropped = replace(shared, X=[shared.X[kept] for kept in rows], y=own_y, weight=own_weight)
    first, _ = meet(masked, dropped, norm, alpha=0.1 * masked.alpha_max(norm))
    meet(masked, dropped, norm, radius=0.5 * first.norm_value)
    other = replace(masked, y=np.where(known, y, 1.0))
    again = other.solve(norm, alpha=first.alpha, tol=1e-7)
    np.testing.assert_allclose(again.weights, first.weights, atol=1e-12)
    agrees(masked, norm, alpha=first.alpha)


def test_a_row_of_weight_zero_is_no_row():
    case, norm = draw(losses.MultinomialLogistic()), as_norm("l2,1")
    weight = case.weight.copy()
    weight[5:9] = 0.0
    weight /= weight.sum()
    X = case.X.copy()
    X[5:9] = 1e3
    kept = weight > 0.0
    fewer = replace(case, X=X[kept], y=case.y[kept], weight=weight[kept])
    meet(replace(case, X=X, weight=weight), fewer, norm, alpha=0.1 * fewer.alpha_max(norm))


@pytest.mark.parametrize(
    ("norm", "kind"),
    [(norm, sparse.csr_array) for norm in NORMS]
    + [("l2,1", sparse.csc_matrix), ("l2,1", sparse.coo_array)],
)
def test_sparse_is_dense(norm, kind):
    dense, norm = draw(losses.MarginSoftmax(), n_samples=40, n_features=15), as_norm(norm)
    X = np.where(np.random.default_rng(1).uniform(size=dense.X.shape) < 0.4, dense.X, 0.0)
    dense = replace(dense, X=X)
    first, _ = meet(dense, replace(dense, X=kind(X)), norm, alpha=0.1 * dense.alpha_max(norm))
    meet(dense, replace(dense, X=kind(X)), norm, radius=0.5 * first.norm_value)
    squared = replace(draw(losses.Squared(), n_samples=40), X=X)
    meet(squared, replace(squared, X=kind(X)), norm, alpha=0.1 * squared.alpha_max(norm))
    separate = replace(squared, weight=np.repeat(squared.weight[:, None], 3, axis=1))
    meet(squared, replace(separate, X=[kind(X)] * 3), norm, alpha=0.1 * squared.alpha_max(norm))


@pairs([*SMOOTH, "hinge"], crossed=["joint margin"])
def test_single_precision_is_near_double(name, norm):
    double, norm = draw(LOSSES[name], **size_of(name)), as_norm(norm)
    single = replace(double, X=double.X.astype("f4"), weight=double.weight.astype("f4"))
    alpha = 0.1 * double.alpha_max(norm)
    assert single.alpha_max(norm) == pytest.approx(10.0 * alpha, rel=1e-4)
    for form in ({"alpha": alpha}, {"radius": 1.0}):
        found = single.solve(norm, tol=1e-4, max_iter=5000, **form)  # hinges take effort
        truth = double.solve(norm, tol=1e-6, **form)
        assert found.weights.dtype == found.intercept.dtype == np.float32
        assert found.converged
        # 1e-5 for what single precision loses in sums of the loss.
        assert found.objective - truth.objective <= found.gap + 1e-5 * truth.scale
        assert found.objective >= truth.objective - truth.gap - 1e-5 * truth.scale


# Two forms, one solution; and gaps that promise what they say.

any_smooth = st.sampled_from(SMOOTH)
any_norm = st.sampled_from(NORMS)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    name=any_smooth,
    norm=any_norm,
    shape=st.tuples(st.integers(4, 30), st.integers(1, 12), st.integers(2, 5)),
    fraction=st.floats(0.02, 0.9),
    fit_intercept=st.booleans(),
)
def test_penalty_and_ball_meet(seed, name, norm, shape, fraction, fit_intercept):
    sizes = dict(zip(("n_samples", "n_features", "n_outputs"), shape, strict=True))
    case = draw(LOSSES[name], seed=seed, fit_intercept=fit_intercept, **sizes)
    two_forms_meet(case, as_norm(norm), fraction, tol=1e-7)


@pairs(KINKED, crossed=["absolute"])
def test_penalty_and_ball_meet_for_kinks(name, norm):
    case = draw(LOSSES[name], seed=6, n_samples=10, n_features=4)
    two_forms_meet(case, as_norm(norm), 0.3, tol=1e-4)


def two_forms_meet(case, norm, fraction, tol):
    """The loss of the best point in the ball of the penalised one is that one's loss."""
    alpha = fraction * case.alpha_max(norm)
    penalised = case.solve(norm, alpha=alpha, tol=tol)
    ball = case.solve(norm, radius=penalised.norm_value, tol=tol)
    assert penalised.converged
    assert ball.converged
    assert ball.norm_value <= penalised.norm_value * (1.0 + 1e-10)
    # The penalised point is in the ball, and the ball's is as good under the penalty.
    rounding = 1e-12 * ball.scale
    assert ball.value - penalised.value <= ball.gap + rounding
    mine = ball.value + alpha * ball.norm_value
    assert penalised.objective - mine <= penalised.gap + rounding
    assert abs(ball.value - penalised.value) <= 2.0 * tol * ball.scale + rounding


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    name=any_smooth,
    norm=any_norm,
    max_iter=st.integers(0, 3),
    ball=st.booleans(),
)
def test_an_early_stop_has_a_true_gap(seed, name, norm, max_iter, ball):
    case = draw(LOSSES[name], seed=seed, n_samples=5 + seed % 20)
    early_gap_holds(case, as_norm(norm), max_iter, ball)


@pytest.mark.parametrize("ball", [True, False])
@pytest.mark.parametrize("max_iter", [1, 3])
@pairs(KINKED, crossed=["absolute"], norms=["trace"])
def test_an_early_stop_has_a_true_gap_for_kinks(name, norm, max_iter, ball):
    early_gap_holds(draw(LOSSES[name], n_samples=10, n_features=4), as_norm(norm), max_iter, ball)


def early_gap_holds(case, norm, max_iter, ball):
    form = {"radius": 1.5} if ball else {"alpha": 0.05 * case.alpha_max(norm)}
    early = case.solve(norm, tol=0.0, max_iter=max_iter, **form)
    assert early.iterations <= max_iter
    assert len(early.history) == early.iterations + 1
    assert early.gap == min(early.history) >= 0.0  # the best point is kept
    reference = Reference(case, norm, **form)
    assert reference.at(early) == pytest.approx(early.objective, rel=1e-9)
    assert early.objective - reference.optimum() <= early.gap + SLACK * early.scale
