"""The corrective step: solutions, weights, removal, and numerically awkward columns."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from mixnorm.engines._core import correction
from mixnorm.engines._core.corrective import CorrectionProblem, Support
from mixnorm.engines.penalties import as_penalty
from mixnorm.losses import MarginSoftmax, MultinomialLogistic, Squared


def support(X, y, weight=None, alpha=1e-3, loss=None, fit_intercept=True):
    weight = np.full(len(X), 1 / len(X), dtype=X.dtype) if weight is None else weight
    loss = loss or MultinomialLogistic()
    k = int(y.max()) + 1 if loss.is_classifier else y.shape[1]
    problem = CorrectionProblem(loss, loss.encode(y, k, weight), weight, k, alpha, 500)
    state = Support(problem, fit_intercept, capacity=X.shape[1])
    for column in range(X.shape[1]):
        state.append(column, np.ascontiguousarray(X[:, [column]].T))
    return state


@pytest.fixture
def classes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 6))
    y = np.argmax(X @ rng.standard_normal((6, 4)) + rng.standard_normal((200, 4)), axis=1)
    return X, y


def test_agrees_with_scikit_learn(classes):
    X, y = classes
    state = support(X, y, alpha=1e-3)
    outcome = state.correct(1e-12, 0.0)
    # scikit-learn: C * sum of losses + 1/2 ||W||^2
    peer = LogisticRegression(C=1 / (2e-3 * len(X)), tol=1e-10, max_iter=10000).fit(X, y)
    assert outcome.converged
    assert pytest.approx(peer.coef_, abs=1e-4) == state.weights[1:].T
    assert state.weights.sum(axis=1) == pytest.approx(0.0, abs=1e-10)


def test_integer_weights_equal_repeated_rows(classes):
    X, y = classes
    counts = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = support(X, y, counts / counts.sum())
    repeated = support(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    for state in (weighted, repeated):
        state.correct(1e-13, 0.0)
    assert weighted.weights == pytest.approx(repeated.weights, abs=1e-5)
    assert weighted.objective == pytest.approx(repeated.objective, abs=1e-12)


def test_without_is_the_model_on_the_other_columns(classes):
    X, y = classes
    state = support(X, y)
    state.correct(1e-13, 0.0)
    before = state.weights.copy()
    smaller = state.without(2)
    smaller.correct(1e-13, 0.0)
    direct = support(np.delete(X, 2, axis=1), y)
    direct.correct(1e-13, 0.0)
    assert smaller.weights == pytest.approx(direct.weights, abs=1e-5)
    assert list(smaller.blocks) == [0, 1, 3, 4, 5]
    assert np.array_equal(state.weights, before)


def test_removal_costs_rank_as_the_truth_does(classes):
    X, y = classes
    state = support(X, y)
    state.correct(1e-12, 0.0)
    predicted = state.removal_costs()
    truth = {}
    for column in range(X.shape[1]):
        smaller = state.without(column)
        smaller.correct(1e-12, 0.0)
        truth[column] = smaller.objective - state.objective
    assert min(predicted, key=predicted.get) == min(truth, key=truth.get)


def test_blocks_of_different_width_can_be_removed():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((50, 5)), rng.standard_normal((50, 2))
    state = support(X[:, :1], Y, loss=Squared(), alpha=0.0)
    state.append("wide", np.ascontiguousarray(X[:, 1:4].T))
    state.append("last", np.ascontiguousarray(X[:, 4:].T))
    state.correct(1e-14, 0.0)
    smaller = state.without("wide")
    smaller.correct(1e-14, 0.0)
    B = np.column_stack([np.ones(50), X[:, [0, 4]]])
    assert smaller.weights == pytest.approx(np.linalg.lstsq(B, Y, rcond=None)[0], abs=1e-8)
    assert set(state.removal_costs()) == {0, "wide", "last"}


def test_duplicate_columns_are_solved(classes):
    X, y = classes
    twice = np.column_stack([X, X[:, 0]])
    state, single = support(twice, y, alpha=0.0), support(X, y, alpha=0.0)
    for each in (state, single):
        assert each.correct(1e-10, 0.0).converged
    assert state.objective == pytest.approx(single.objective, abs=1e-8)


def test_an_intercept_alone_gives_the_class_shares():
    y = np.repeat([0, 1, 2], [10, 30, 60])
    state = support(np.zeros((100, 0)), y)
    state.correct(1e-14, 0.0)
    odds = np.exp(state.weights[0])
    assert odds / odds.sum() == pytest.approx([0.1, 0.3, 0.6], abs=1e-6)


def test_no_columns_at_all():
    state = support(np.zeros((4, 0)), np.array([0, 1, 0, 1]), fit_intercept=False)
    assert state.correct(1e-6, 0.0).converged
    assert state.value == pytest.approx(np.log(2))


def test_an_unattainable_tolerance_ends_at_rounding(classes):
    X, y = classes
    outcome = support(X.astype(np.float32), y).correct(0.0, 0.0)
    assert outcome.converged
    assert outcome.iterations < 100


def test_too_few_iterations_are_reported(classes):
    X, y = classes
    state = support(X, y, alpha=0.0)
    state.problem = CorrectionProblem(**{**state.problem.__dict__, "max_iter": 1})
    assert not state.correct(1e-12, 0.0).converged


@pytest.mark.parametrize("own_room", [False, True])
def test_a_branch_leaves_the_support_as_it_is(classes, own_room):
    X, y = classes
    state = support(X[:, :4], y)
    state.correct(1e-10, 0.0)
    before = dict(vars(state)), state.design.copy(), state.gradient()
    for column in (4, 5):
        other = state.branch(own_room=own_room)
        other.append(column, np.ascontiguousarray(X[:, [column]].T))
        other.correct(1e-12, 0.0)
        direct = support(X[:, [0, 1, 2, 3, column]], y)
        direct.correct(1e-12, 0.0)
        assert other.objective == pytest.approx(direct.objective, rel=1e-9)
    assert np.array_equal(state.design, before[1])
    assert np.array_equal(state.gradient(), before[2])
    for name in ("weights", "scores", "residual", "value", "size", "blocks"):
        assert vars(state)[name] is before[0][name]
    assert list(state.blocks) == [0, 1, 2, 3]


def test_a_branch_with_its_own_room_may_grow_beside_its_parent(classes):
    X, y = classes
    state = support(X, y)  # with room for all columns
    for column in (5, 4, 3, 2):
        state = state.without(column)
    other = state.branch(own_room=True)
    rows = np.ascontiguousarray(X.T)
    other.append(2, rows[2:3])
    state.append(3, rows[3:4])
    assert np.array_equal(other.design[3], rows[2])
    assert np.array_equal(state.design[3], rows[3])


@pytest.mark.parametrize("penalty", ["ridge", "linf,1", "l1"])
def test_many_columns_share_a_curvature_model(penalty, monkeypatch):
    """Beyond a width, all outputs take one model of it: the same solution, of another cost."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 12))
    y = (X[:, :3] @ rng.standard_normal((3, 4)) + rng.standard_normal((400, 4))).argmax(axis=1)
    found = {}
    for wide in (5, 512):
        monkeypatch.setattr(correction, "_COLUMNS_FOR_SHARED_MODEL", wide)
        weight = np.full(400, 1 / 400)
        loss = MarginSoftmax()
        problem = CorrectionProblem(
            loss, loss.encode(y, 4, weight), weight, 4, 1e-3, 1000, as_penalty(penalty)
        )
        made = Support(problem, True, 12)
        for first in range(0, 12, 4):  # blocks, so that one of them crosses the width
            made.append(first, X.T[first : first + 4])
            assert made.correct(1e-9, 0.0).converged
        found[wide] = made
    factors = {wide: made.curvature()._inverse.shape[0] for wide, made in found.items()}
    assert factors == {5: 1, 512: 4}
    assert found[5].objective == pytest.approx(found[512].objective, rel=1e-7)
    scores = [made.scores - made.scores.mean(axis=1, keepdims=True) for made in found.values()]
    np.testing.assert_allclose(*scores, atol=2e-3)
    costs = found[5].removal_costs()
    assert min(costs, key=costs.get) in (4, 8)


def test_a_perfect_fit_takes_no_iterations():
    """Targets of zero: objective, gradient and gap are zero exactly."""
    X = np.random.default_rng(0).standard_normal((20, 3))
    outcome = support(X, np.zeros((20, 2)), loss=Squared()).correct(0.0, 0.0)
    assert (outcome.iterations, outcome.gap, outcome.converged) == (0, 0.0, True)
