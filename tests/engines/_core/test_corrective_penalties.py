"""The corrective step under each penalty, against scikit-learn and scipy."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from sklearn.datasets import load_digits
from sklearn.linear_model import Lasso, LogisticRegression

from mixnorm.engines._core.corrective import CorrectionProblem, Support
from mixnorm.engines.greedy import select
from mixnorm.engines.greedy.rules import Choice, joint_gains, line_gains
from mixnorm.engines.penalties import AbsoluteSum, Ridge, SmoothMaxNorm
from mixnorm.losses import MarginSoftmax, MultinomialLogistic, Squared
from mixnorm.pools import Columns

PENALTIES = [Ridge(), SmoothMaxNorm(), SmoothMaxNorm(50.0), AbsoluteSum()]
LOSSES = [MarginSoftmax(), MultinomialLogistic(), Squared()]
each_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def draw(seed=0, n_samples=150, columns=6, outputs=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, columns))
    X[:, 1] += 0.8 * X[:, 0]  # columns that share what they explain
    scores = X[:, :3] @ rng.standard_normal((3, outputs)) + rng.standard_normal(
        (n_samples, outputs)
    )
    weight = rng.uniform(0.5, 1.5, n_samples)
    return X, scores, weight / weight.sum()


def support(loss, penalty, alpha, fit_intercept=True, dtype="float64", **options):
    X, scores, weight = draw(**options)
    X, weight, k = X.astype(dtype), weight.astype(dtype), scores.shape[1]
    y = scores.argmax(axis=1) if loss.is_classifier else scores
    problem = CorrectionProblem(loss, loss.encode(y, k, weight), weight, k, alpha, 5000, penalty)
    state = Support(problem, fit_intercept, capacity=X.shape[1])
    for column in range(X.shape[1]):
        state.append(column, np.ascontiguousarray(X[:, [column]].T))
    return state


def least(state):
    """The least objective that scipy finds, magnitudes as differences of bounded variables."""
    task, design, first = state.problem, state.design.T, int(state.has_intercept)
    shape, kink = state.weights.shape, state.problem.alpha * state.problem.penalty.kink

    def objective(flat):
        parts = flat.reshape(-1, *shape)
        weights = parts[0] - parts[1] if kink else parts[0]
        value, residual = task.loss.value_and_residual(design @ weights, task.target, task.weight)
        slope = design.T @ residual
        if kink:
            value += kink * parts[:, first:].sum()
            slopes = np.stack([slope, -slope])
            slopes[:, first:] += kink
            return value, slopes.ravel()
        slope[first:] += task.alpha * task.penalty.gradient(weights[first:])
        return value + task.alpha * task.penalty.value(weights[first:]), slope.ravel()

    start = np.zeros((2 if kink else 1) * shape[0] * shape[1])
    bounds = [(0.0, None)] * len(start) if kink else None
    options = {"maxiter": 50_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-10, "maxcor": 50}
    return minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)


@each_penalty
@each_loss
@pytest.mark.parametrize("alpha", [1e-3, 3e-2])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_objective_is_the_least_that_scipy_finds(loss, penalty, alpha, fit_intercept):
    state = support(loss, penalty, alpha, fit_intercept)
    assert state.correct(1e-12, 0.0).converged
    best = least(state).fun
    assert state.objective <= best + 1e-7 * best
    assert state.objective >= best - 1e-5 * best  # scipy itself is about as exact as that
    task = state.problem
    scores = state.design.T @ state.weights
    value, _ = task.loss.value_and_residual(scores, task.target, task.weight)
    whole = value + alpha * penalty.value(state.weights[int(fit_intercept) :])
    assert state.objective == pytest.approx(whole, rel=1e-10)


@each_loss
@pytest.mark.parametrize("alpha", [1e-2, 5e-2])
def test_zeros_are_exact_and_where_they_must_be(loss, alpha):
    """The conditions of a minimum: a gradient of the size of the kink, or below it at zero."""
    state = support(loss, AbsoluteSum(), alpha)
    state.correct(1e-13, 0.0)
    weights, gradient = state.weights[1:], state.gradient()[1:]
    zero = weights == 0.0
    assert zero.any()
    assert not zero.all()
    assert np.all(np.abs(gradient[zero]) <= alpha * (1.0 + 1e-4))
    np.testing.assert_allclose(gradient[~zero], -alpha * np.sign(weights[~zero]), rtol=1e-3)
    assert np.all(np.abs(state.gradient()[0]) < 1e-6)
    assert np.all(np.abs(state.slope()) < 1e-3 * alpha)


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 0.5])
def test_magnitudes_and_squared_loss_are_the_lasso(alpha):
    X, Y, _ = draw()
    weight = np.full(len(X), 1 / len(X))
    loss = Squared()
    problem = CorrectionProblem(
        loss, loss.encode(Y, 4, weight), weight, 4, alpha, 1000, AbsoluteSum()
    )
    state = Support(problem, True, 6)
    for column in range(6):
        rows, offset = state.centre(np.ascontiguousarray(X[:, [column]].T))
        state.append(column, rows, offset=offset)
    state.correct(1e-15, 0.0)
    peer = Lasso(alpha=alpha, tol=1e-12, max_iter=100_000).fit(X, Y)
    np.testing.assert_allclose(state.weights[1:].T, peer.coef_, atol=1e-7)
    np.testing.assert_allclose(state.intercept(), peer.intercept_, atol=1e-7)
    np.testing.assert_array_equal(state.weights[1:].T == 0.0, peer.coef_ == 0.0)


def test_magnitudes_and_logistic_loss_agree_with_scikit_learn():
    X, scores, _ = draw(outputs=3)  # an odd number: else many constants per column cost the least
    y, alpha, n_samples = scores.argmax(axis=1), 0.01, len(X)
    weight, loss = np.full(n_samples, 1 / n_samples), MultinomialLogistic()
    problem = CorrectionProblem(
        loss, loss.encode(y, 3, weight), weight, 3, alpha, 1000, AbsoluteSum()
    )
    state = Support(problem, True, 6)
    for column in range(6):
        state.append(column, np.ascontiguousarray(X[:, [column]].T))
    state.correct(1e-13, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = LogisticRegression(
            l1_ratio=1.0, C=1 / (alpha * n_samples), solver="saga", tol=1e-10, max_iter=50_000
        ).fit(X, y)
    there = X @ peer.coef_.T + peer.intercept_
    value, _ = loss.value_and_residual(there, problem.target, weight)
    assert state.objective == pytest.approx(value + alpha * np.abs(peer.coef_).sum(), rel=1e-7)
    np.testing.assert_allclose(state.weights[1:].T, peer.coef_, atol=2e-3)


@pytest.mark.parametrize("penalty", PENALTIES[1:], ids=repr)
@pytest.mark.parametrize("loss", LOSSES[:2], ids=repr)
def test_constants_that_the_loss_does_not_see_are_the_cheapest(loss, penalty):
    state = support(loss, penalty, 1e-2)
    state.correct(1e-10, 0.0)
    np.testing.assert_allclose(penalty.shift(state.weights[1:]), 0.0, atol=1e-12)


@each_penalty
def test_without_alpha_all_penalties_are_none(penalty):
    state, plain = support(Squared(), penalty, 0.0), support(Squared(), Ridge(), 0.0)
    for each in (state, plain):
        each.correct(1e-14, 0.0)
    np.testing.assert_allclose(state.weights, plain.weights, atol=1e-9)


@each_penalty
@each_loss
def test_single_precision(loss, penalty):
    wide, narrow = support(loss, penalty, 1e-2), support(loss, penalty, 1e-2, dtype="float32")
    wide.correct(1e-10, 0.0)
    assert narrow.correct(1e-6, 0.0).converged
    assert narrow.weights.dtype == np.float32
    assert narrow.residual.dtype == np.float32
    assert narrow.objective == pytest.approx(wide.objective, rel=1e-4)


@each_penalty
def test_separable_classes_with_little_penalty(penalty):
    """Where the loss is flat, a linear penalty has no curvature to steer by."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 8))
    y = np.argmax(X @ rng.standard_normal((8, 4)), axis=1)
    weight, loss = np.full(200, 1 / 200), MarginSoftmax()
    problem = CorrectionProblem(loss, loss.encode(y, 4, weight), weight, 4, 1e-4, 2000, penalty)
    state = Support(problem, True, 8)
    for column in range(8):
        state.append(column, np.ascontiguousarray(X[:, [column]].T))
    outcome = state.correct(1e-4, 0.0)
    assert outcome.converged
    assert outcome.iterations < 200
    assert state.objective <= 1.01 * least(state).fun


def test_a_model_of_what_is_free_solves_the_lasso_in_few_steps():
    """Exact for the squared loss: what is left to find is which weights are zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 20)) + rng.standard_normal((100, 1))
    Y = X[:, :5] @ rng.standard_normal((5, 3)) + rng.standard_normal((100, 3))
    weight, loss = np.full(100, 0.01), Squared()
    problem = CorrectionProblem(
        loss, loss.encode(Y, 3, weight), weight, 3, 0.1, 1000, AbsoluteSum()
    )
    state = Support(problem, True, 20)
    for column in range(20):
        state.append(column, np.ascontiguousarray(X[:, [column]].T))
    assert state.correct(1e-12, 0.0).iterations <= 12
    peer = Lasso(alpha=0.1, tol=1e-12, max_iter=100_000).fit(X, Y)
    np.testing.assert_allclose(state.weights[1:].T, peer.coef_, atol=1e-6)


def test_an_old_curvature_model_is_not_taken_at_its_word():
    """Where the loss is flat and the penalty linear, it would end far from the minimum."""
    X, y = load_digits(return_X_y=True)
    X = X[:600, X[:600].std(axis=0) > 0.0] / 16.0
    X = X[:, np.random.default_rng(0).permutation(X.shape[1])[:40]]
    weight, loss = np.full(600, 1 / 600), MarginSoftmax()
    target = loss.encode(y[:600], 10, weight)
    reached = []
    for tol in (2e-3, 1e-6):
        state = Support(
            CorrectionProblem(loss, target, weight, 10, 1e-4, 5000, AbsoluteSum()), True, 40
        )
        for column in range(40):
            rows, offset = state.centre(np.ascontiguousarray(X[:, [column]].T))
            state.append(column, rows, offset=offset)
        assert state.correct(tol, 0.0).converged
        reached.append(state.objective)
    assert reached[0] <= 1.1 * reached[1]


def test_blocks_and_removal_under_magnitudes():
    state = support(Squared(), AbsoluteSum(), 1e-2)
    state.correct(1e-13, 0.0)
    predicted, truth = state.removal_costs(), {}
    for atom in state.blocks:
        smaller = state.without(atom)
        smaller.correct(1e-13, 0.0)
        truth[atom] = smaller.objective - state.objective
        assert smaller.objective == pytest.approx(least(smaller).fun, rel=1e-6)
    assert min(predicted, key=predicted.get) == min(truth, key=truth.get)


def test_promised_drop_holds_for_each_penalty():
    """One new column after the others: the objective falls as far as was promised."""
    for penalty in PENALTIES:
        for loss in LOSSES:
            state = support(loss, penalty, 1e-2)
            state = state.without(0)
            state.correct(1e-12, 0.0)
            rows = np.ascontiguousarray(draw()[0][:, [0]].T)
            slope = np.abs(state.slope_at_zero(rows)).sum()
            drop, before = state.promised_drop(rows, slope), state.objective
            assert drop > 0.0
            state.append(0, rows)
            state.correct(1e-12, 0.0)
            assert before - state.objective >= drop


@each_penalty
def test_a_goal_is_reached_before_the_tolerance_counts(penalty):
    loose, tight = (support(MarginSoftmax(), penalty, 1e-3) for _ in range(2))
    loose.correct(0.5, 0.0)
    exact = support(MarginSoftmax(), penalty, 1e-3)
    exact.correct(1e-12, 0.0)
    goal = exact.objective + 0.01 * (loose.objective - exact.objective)
    tight.correct(0.5, 0.0, goal)
    assert loose.objective > goal >= tight.objective


@each_penalty
@each_loss
def test_line_gain_is_the_drop_along_the_slope(loss, penalty):
    state = support(loss, penalty, 1e-2).without(2)
    state.correct(1e-13, 0.0)
    task, rows = state.problem, np.ascontiguousarray(draw()[0][:, [2]].T)
    choice = Choice(2, rows, state.slope_at_zero(rows))

    def along(length):
        weights = -length * choice.slope
        scores = state.scores + rows.T @ weights
        value, _ = task.loss.value_and_residual(scores, task.target, task.weight)
        return value + task.alpha * penalty.value(weights)

    best = minimize_scalar(along, bracket=(0.0, 5.0), tol=1e-10)
    (gain,) = line_gains(state, [choice])
    assert gain == pytest.approx(along(0.0) - best.fun, rel=1e-3)
    assert gain > 0.0


@each_penalty
def test_joint_gain_is_exact_for_one_column_and_the_squared_loss(penalty):
    """With kinks too: the quadratic model of one new weight per output has a closed form."""
    state = support(Squared(), penalty, 1e-2)
    for atom in (0, 1, 3, 4, 5):
        state = state.without(atom)
    state = state.without(2)
    state.correct(1e-14, 0.0)
    rows = np.ascontiguousarray(draw()[0][:, [2]].T)
    rows = rows - rows @ state.problem.weight
    choice = Choice(2, rows, state.slope_at_zero(rows))
    (gain,) = joint_gains(state, [choice])
    before = state.objective
    state.append(2, rows)
    state.correct(1e-14, 0.0)
    if isinstance(penalty, SmoothMaxNorm):  # bends less and less along the way
        assert gain < before - state.objective
    else:
        assert gain == pytest.approx(before - state.objective, rel=1e-6)


def path(penalty, alpha, rule="joint", **options):
    X, scores, weight = draw(n_samples=200, columns=12)
    loss, y = MarginSoftmax(), scores.argmax(axis=1)
    pool, target = Columns().prepare(X, weight=weight), loss.encode(y, 4, weight)
    options = {"n_atoms": 6, "n_outputs": 4, "weight": weight, "tol": 1e-8} | options
    return pool, select(pool, loss, target, alpha=alpha, penalty=penalty, rule=rule, **options)


@each_penalty
@pytest.mark.parametrize("rule", ["l1", "l2", "line", "column", "joint", "exact"])
def test_paths_under_each_penalty_and_rule(penalty, rule):
    _, found = path(penalty, 1e-3, rule)
    objectives = [found.null_loss, *(step.objective for step in found.rounds)]
    assert objectives == sorted(objectives, reverse=True)
    assert {0, 2} <= set(found.rounds[-1].support)
    assert found.converged


def test_an_atom_whose_gradient_is_below_the_kink_cannot_help():
    for alpha, rule in ((0.02, "l1"), (0.02, "joint"), (0.05, "l2")):
        pool, found = path("l1", alpha, rule, n_atoms=12)
        assert found.exhausted
        chosen = found.rounds[-1].support
        assert 0 < len(chosen) < 12
        _, scores, weight = draw(n_samples=200, columns=12)
        design = np.concatenate([pool.columns(atom) for atom in chosen])
        loss, last = MarginSoftmax(), found.rounds[-1]
        target = loss.encode(scores.argmax(axis=1), 4, weight)
        _, residual = loss.value_and_residual(
            design.T @ last.weights + last.intercept, target, weight
        )
        for atom in set(range(12)) - set(chosen):
            assert np.abs(pool.columns(atom) @ residual).max() <= alpha * (1.0 + 1e-3)
        assert [step for step in found.rounds if step.gradient <= 0.0] == []


def test_too_much_of_a_kink_leaves_the_empty_model():
    _, found = path("l1", 10.0)
    assert found.exhausted
    assert found.rounds == ()
