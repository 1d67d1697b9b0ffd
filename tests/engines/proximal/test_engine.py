"""The calls of the proximal engine, and two ways to say a problem, which must meet."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mixnorm import losses
from mixnorm.engines import proximal
from mixnorm.engines.proximal import LossMixture
from mixnorm.norms import MixedNorm, SchattenNorm, as_norm

from .reference import KINKED, LOSSES, NORMS, SLACK, SMOOTH, Reference, agrees, draw, pairs, size_of

# Two ways to say a problem.


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
    dense, norm = draw(losses.MarginSoftmax(), n_features=6), as_norm(norm)
    X = np.where(np.random.default_rng(1).uniform(size=dense.X.shape) < 0.4, dense.X, 0.0)
    dense = replace(dense, X=X)
    first, _ = meet(dense, replace(dense, X=kind(X)), norm, alpha=0.1 * dense.alpha_max(norm))
    meet(dense, replace(dense, X=kind(X)), norm, radius=0.5 * first.norm_value)
    squared = replace(draw(losses.Squared()), X=X)
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


@settings(max_examples=15)
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
    case = draw(LOSSES[name], seed=6, **size_of(name))
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


@settings(max_examples=20)
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
    early_gap_holds(draw(LOSSES[name], **size_of(name)), as_norm(norm), max_iter, ball)


def early_gap_holds(case, norm, max_iter, ball):
    form = {"radius": 1.5} if ball else {"alpha": 0.05 * case.alpha_max(norm)}
    early = case.solve(norm, tol=0.0, max_iter=max_iter, **form)
    assert early.iterations <= max_iter
    assert len(early.history) == early.iterations + 1
    assert early.gap == min(early.history) >= 0.0  # the best point is kept
    reference = Reference(case, norm, **form)
    assert reference.at(early) == pytest.approx(early.objective, rel=1e-9)
    assert early.objective - reference.optimum() <= early.gap + SLACK * early.scale


# The largest penalty.


@pytest.mark.parametrize("fit_intercept", [True, False])
@pairs(SMOOTH, crossed=["squared", "joint margin"])
def test_alpha_max_is_where_weights_begin(name, norm, fit_intercept):
    case, norm = draw(LOSSES[name], fit_intercept=fit_intercept), as_norm(norm)
    limit = case.alpha_max(norm)
    above = case.solve(norm, alpha=1.0001 * limit, tol=1e-12)
    assert above.norm_value == 0.0
    assert above.value == above.scale
    below = case.solve(norm, alpha=0.999 * limit, tol=1e-12)
    assert below.norm_value > 0.0


@pairs(KINKED, crossed=["hinge"])
def test_above_alpha_max_all_weights_may_be_zero(name, norm):
    case, norm = draw(LOSSES[name], **size_of(name)), as_norm(norm)
    found = case.solve(norm, alpha=1.001 * case.alpha_max(norm), tol=1e-6)
    assert found.converged
    assert found.objective == pytest.approx(found.scale, rel=2e-6)


# Paths and starts.


@pairs(SMOOTH, crossed=["squared", "joint margin"])
def test_a_path_is_its_solutions_one_by_one(name, norm):
    bare = (list(LOSSES).index(name) + NORMS.index(norm)) % 2 == 1
    case, norm = draw(LOSSES[name], seed=7, fit_intercept=not bare), as_norm(norm)
    falling = case.alpha_max(norm) * np.geomspace(1.0, 0.02, 4)
    check_paths(case, norm, falling, falling[::-1], falling[[2, 0, 3, 3, 1]])


@pairs(KINKED, crossed=["absolute"], norms=["trace"])
def test_a_path_with_kinks_is_its_solutions_one_by_one(name, norm):
    case, norm = draw(LOSSES[name], **size_of(name)), as_norm(norm)
    alphas = case.alpha_max(norm) * np.asarray([0.4, 0.1, 0.3])
    check_paths(case, norm, alphas, tol=1e-4, max_iter=25)


def check_paths(case, norm, *paths, tol=1e-6, max_iter=200):
    """Check each path of alphas against the solutions of its alphas, which are computed once."""
    options = {"tol": tol, "max_iter": max_iter}
    each = {alpha: case.solve(norm, alpha=alpha, **options) for alpha in np.unique(paths[0])}
    for alphas in paths:
        found = case.path(norm, alphas=alphas, **options)
        assert [solution.alpha for solution in found] == list(alphas)
        for solution in found:
            alone = each[solution.alpha]
            assert solution.converged
            assert alone.converged
            assert solution.scale == pytest.approx(alone.scale, rel=1e-12)
            apart = abs(solution.objective - alone.objective)
            assert apart <= max(solution.gap, alone.gap) + 1e-13 * alone.scale


def test_a_path_does_nothing_before_it_is_asked():
    case, norm = draw(losses.Squared()), as_norm("l2,1")
    asked = []

    def alphas():
        for alpha in (0.5, 0.25):
            asked.append(alpha)
            yield alpha

    found = proximal.path(*case.arguments, norm, **case.options, alphas=alphas())
    assert next(found).alpha == 0.5
    assert asked == [0.5]
    assert [solution.alpha for solution in found] == [0.25]


@pytest.mark.parametrize("form", [{"alpha": 0.02}, {"radius": 1.5}])
@pairs(["squared", "joint margin", "hinge"], crossed=["squared", "joint margin"])
def test_a_start_at_the_solution_ends_at_once(name, norm, form):
    case, norm = draw(LOSSES[name], **size_of(name)), as_norm(norm)
    tol = 1e-4 if name in KINKED else 1e-7
    first = case.solve(norm, tol=tol, **form)
    start = (first.weights, first.intercept)
    kept = first.weights.copy()
    again = case.solve(norm, tol=2.0 * tol, start=start, **form)
    assert again.converged
    # With kinks the dual point of the start has to be found anew.
    assert again.iterations == 0 or name in KINKED
    assert again.objective <= first.objective + 2.0 * tol * first.scale
    np.testing.assert_array_equal(first.weights, kept)


@pairs(["squared", "joint logistic", "absolute"], crossed=["squared", "joint logistic"])
def test_a_bad_start_does_no_harm(name, norm):
    case, norm = draw(LOSSES[name], n_samples=12, n_features=4), as_norm(norm)
    tol = 1e-4 if name in KINKED else 1e-7
    start = (np.full((4, 3), 20.0), np.full(3, -50.0))
    for form in ({"alpha": 0.1 * case.alpha_max(norm)}, {"radius": 0.8}):
        plain = case.solve(norm, tol=tol, **form)
        found = case.solve(norm, tol=tol, start=start, **form)
        assert found.converged
        assert abs(found.objective - plain.objective) <= max(found.gap, plain.gap)
    assert np.all(start[0] == 20.0)


# What is asked, and what is answered.


def test_one_of_alpha_and_radius_is_needed():
    case = draw(losses.Squared())
    for form in ({}, {"alpha": 1.0, "radius": 1.0}):
        with pytest.raises(ValueError, match="alpha .* or radius .* not both"):
            case.solve(as_norm("l2,1"), **form)


@pytest.mark.parametrize(
    ("form", "missing"), [({"alpha": 0.1}, "prox"), ({"radius": 1.0}, "project")]
)
@pytest.mark.parametrize("norm", [SchattenNorm(1.5), MixedNorm(2, 1.5)], ids=repr)
def test_a_norm_without_its_map_is_an_error(norm, form, missing):
    case = draw(losses.Squared())
    with pytest.raises(TypeError, match=f"(?s)no method '{missing}'.*Mixed norms.*Schatten norms"):
        case.solve(norm, **form)
    if missing == "prox":
        with pytest.raises(TypeError, match="no method 'prox'"):
            case.path(norm, alphas=[0.1])


class WithoutConjugate(losses.Squared):
    """A loss that only has derivatives."""

    @property
    def conjugate(self):
        raise AttributeError("conjugate")


def test_a_loss_without_conjugate_is_an_error():
    case, norm = draw(WithoutConjugate()), as_norm("l2,1")
    with pytest.raises(TypeError, match="no conjugate.*losses.DualLoss"):
        case.solve(norm, alpha=0.1)
    with pytest.raises(TypeError, match="no conjugate"):
        case.path(norm, alphas=[0.1])


@pytest.mark.parametrize("form", [{"alpha": 0.01}, {"radius": 2.0}])
@pytest.mark.parametrize("name", ["squared", "joint margin", "hinge"])
def test_what_a_solution_says_is_so(name, form):
    case, norm, told = draw(LOSSES[name], n_samples=15, n_features=5), as_norm("l2,1"), []
    found = case.solve(norm, tol=1e-5, on_iteration=lambda *news: told.append(news), **form)
    assert (found.alpha, found.radius) == (form.get("alpha"), form.get("radius"))
    assert found.norm_value == norm.value(found.weights)
    value, _ = case.loss.value_and_residual(
        case.X @ found.weights + found.intercept, case.arguments[2], case.weight
    )
    assert found.value == pytest.approx(value, rel=1e-12)
    assert found.objective == found.value + (found.alpha or 0.0) * found.norm_value
    assert found.converged
    assert not found.interrupted
    assert found.gap == found.history[-1] <= 1e-5 * found.scale
    assert [count for count, _ in told] == list(range(1, found.iterations + 1))
    relative = [gap / found.scale for gap in found.history[1:]]
    assert [gap for _, gap in told] == pytest.approx(relative, rel=1e-12)


def test_without_intercept_it_is_zero():
    case = draw(losses.Logistic(), fit_intercept=False)
    assert np.all(case.solve(as_norm("trace"), alpha=0.01).intercept == 0.0)


def test_it_says_when_it_did_not_converge():
    case = draw(losses.MarginSoftmax())
    found = case.solve(as_norm("l2,1"), alpha=1e-3, tol=1e-12, max_iter=1)
    assert not found.converged
    assert found.iterations == 1
    none = case.solve(as_norm("l2,1"), alpha=1e-3, max_iter=0)
    assert (none.iterations, none.norm_value, none.value) == (0, 0.0, none.scale)


def test_rounding_ends_it_in_time():
    """No gap reaches zero: it stops where nothing gets better, and says so."""
    case = draw(losses.MarginSoftmax())
    found = case.solve(as_norm("l2,1"), alpha=1e-3, tol=0.0, max_iter=100_000)
    assert found.iterations < 1000
    assert found.gap < 1e-10 * found.scale


# Interrupts.


class Interrupting(losses.MarginSoftmax):
    """A loss during whose second derivatives the user has had enough."""

    left = 10**9

    def hessian_operator(self, *arguments):
        self.count()
        return super().hessian_operator(*arguments)

    def curvature(self, *arguments):
        self.count()
        return super().curvature(*arguments)

    def count(self):
        type(self).left -= 1
        if type(self).left <= 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("norm", ["l2,1", "trace"])
def test_an_interrupt_keeps_the_iterate(norm, monkeypatch):
    case, norm = draw(Interrupting(), n_samples=60, n_features=30), as_norm(norm)
    alpha = 0.01 * case.alpha_max(norm)
    counts = []
    monkeypatch.setattr(Interrupting, "left", 10**9)
    case.solve(
        norm, alpha=alpha, tol=1e-9, on_iteration=lambda *_: counts.append(Interrupting.left)
    )
    used = [10**9 - left for left in counts]
    enough = next(count for count in used if count > used[1]) if len(used) > 2 else used[-1]
    monkeypatch.setattr(Interrupting, "left", enough)
    found = case.solve(norm, alpha=alpha, tol=1e-9)
    assert found.interrupted
    assert not found.converged
    assert found.norm_value > 0
    truth = replace(case, loss=losses.MarginSoftmax())
    assert Reference(truth, norm, alpha=alpha).at(found) == pytest.approx(found.objective)
    best = truth.solve(norm, alpha=alpha, tol=1e-9)
    assert found.objective - best.objective <= found.gap
    assert found.objective < found.scale


@pytest.mark.parametrize("norm", ["l2,1", "trace"])
def test_an_interrupt_between_iterations_keeps_the_iterate(norm):
    case, norm = draw(losses.MarginSoftmax()), as_norm(norm)

    def stop(count, _):
        if count == 2:
            raise KeyboardInterrupt

    found = case.solve(norm, alpha=1e-3, tol=1e-12, on_iteration=stop)
    assert found.interrupted
    assert found.iterations == 2
    assert found.norm_value > 0.0


def test_an_interrupt_ends_a_path():
    case, norm, seen = draw(losses.MarginSoftmax()), as_norm("l2,1"), []

    def stop(count, _):
        seen.append(count)
        if len(seen) == 3:
            raise KeyboardInterrupt

    alphas = case.alpha_max(norm) * np.geomspace(0.5, 0.001, 20)
    found = case.path(norm, alphas=alphas, tol=1e-10, on_iteration=stop)
    assert [solution.interrupted for solution in found] == [False] * (len(found) - 1) + [True]
    assert len(found) < len(alphas)


def test_effort_is_limited_if_iterations_are_expensive():
    case, norm = draw(losses.Absolute(), n_samples=20, n_features=12), as_norm("l2,1")
    strict = proximal.ProximalSettings(few_iterations=1)
    options = {"tol": 1e-12, "max_iter": 5, "settings": strict}
    found = case.solve(norm, alpha=1e-3, **options)
    assert found.exhausted
    assert not found.converged
    assert found.iterations < 5  # each is a smooth problem of its own
    path = case.path(norm, alphas=np.geomspace(0.1, 1e-3, 30), **options)
    assert len(path) == 30
    assert path[-1].exhausted
    assert sum(solution.iterations for solution in path) < 60
    easy = draw(losses.Squared()).path(
        norm, alphas=np.geomspace(0.1, 1e-3, 30), max_iter=5, settings=strict
    )
    assert not any(solution.exhausted for solution in easy)
