"""Learners by blocks: inputs for each output, groups of features, and losses of any kind."""

import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm.engines.mirror import (
    BlockLearner,
    NotFiniteError,
    Plan,
    RowLearner,
    block_learner,
    build,
    by_blocks,
)
from mixnorm.engines.mirror import layout as layout
from mixnorm.losses import (
    Hinge,
    Huber,
    MarginSoftmax,
    MulticlassHinge,
    MulticlassSquaredHinge,
    Squared,
)
from mixnorm.norms import MixedNorm, SchattenNorm, TraceNorm

from .conftest import (
    GROUP,
    LASSO,
    NO_LABELS,
    PLAIN,
    RULES,
    assert_alike,
    assert_close,
    each_rule,
    no_targets,
    samples,
)

# --- an input for each output


@pytest.mark.parametrize("norm", [GROUP, LASSO, PLAIN, TraceNorm()], ids=str)
@pytest.mark.parametrize("block", [1, 4])
@pytest.mark.parametrize("scaled", [False, True])
def test_equal_inputs_for_all_outputs(norm, block, scaled):
    X, labels, Y = samples(Squared(), k=9)
    Y[:, 0] = 1.0  # some output always speaks, so that scales are known at the same time
    plan = Plan(norm, [Squared()], "adaptive", 1.0, 3.0, scaled, True, True, block=block)
    one, other = BlockLearner(plan, X.shape[1], 9), BlockLearner(plan, X.shape[1], 9)
    found = one.learn(np.repeat(X[:, None], 9, axis=1), NO_LABELS, Y, np.ones(len(X)))
    wanted = other.learn(X, labels, Y, np.ones(len(X)))
    assert_close(found[0], wanted[0])
    assert_alike(one, other, np.random.default_rng(0))


@pytest.mark.parametrize("norm", [GROUP, LASSO, PLAIN], ids=str)
@each_rule
def test_going_on_by_blocks(norm, rule):
    X, labels, Y = samples(Squared())
    plan = Plan(norm, [Squared()], rule, RULES[rule], 3.0, True, True, True)
    one = RowLearner(plan, X.shape[1], 3)
    one.learn(X, labels, Y, np.ones(len(X)))
    other = by_blocks(one)
    for learner in (one, other):
        learner.learn(2.0 * X, labels, Y, np.ones(len(X)))
    assert_alike(one, other, np.random.default_rng(0))


def test_inputs_of_outputs_without_a_target_do_not_count():
    X, Y = np.random.default_rng(0).normal(size=(20, 2, 3)), np.ones((20, 2))
    Y[::2, 1] = np.nan
    plan = Plan(GROUP, [Squared()], scaled=True)
    one, other = BlockLearner(plan, 3, 2), BlockLearner(plan, 3, 2)
    one.learn(X, NO_LABELS, Y, np.ones(20))
    X[::2, 1] = np.nan
    other.learn(X, NO_LABELS, Y, np.ones(20))
    assert np.array_equal(one.theta, other.theta)
    X[3, 1, 0] = np.nan
    with pytest.raises(NotFiniteError, match="Row 3 "):
        other.learn(X, NO_LABELS, Y, np.ones(20))


def test_a_gradient_of_any_kind():
    plan = Plan(TraceNorm(), [Squared()], "fixed", 0.5)
    learner = BlockLearner(plan, 4, 3)
    gradient = np.random.default_rng(0).normal(size=(3, 5))
    learner.pending += gradient
    learner._step()
    assert_close(learner.weights()[0], -0.5 * gradient[:, 1:])  # so few outputs are Euclidean


# --- blocks of features


@pytest.mark.parametrize("intercept", [False, True])
def test_features_in_groups(intercept):
    groups = [5, 5, 2, 2, 7, 7, 7, 9, 9, 9, 1, 1]
    norm = MixedNorm(2, 1, groups)
    X, labels, targets = samples(MulticlassHinge(), count=100)
    learner = build(Plan(norm, [MulticlassHinge()], "adaptive", 1.0, 5.0, False, intercept), 12, 3)
    assert isinstance(learner, BlockLearner)
    learner.learn(X, labels, targets, np.ones(100))
    u = np.random.default_rng(0).normal(size=(3, 12))
    size = norm.surrogate((12, 3)).value(u.T)
    u *= 5.0 / size
    assert learner.regret(u) <= learner.regret_bound(u)
    assert learner._comparator(u).shape == (13, 3)
    assert learner.norm.value(learner._comparator(u)) == pytest.approx(5.0)
    with pytest.raises(ValueError, match="in the first call"):
        learner.enlarge(13, 3)
    assert learner.enlarge(12, 4).theta.shape == (4, 13)


def test_groups_of_outputs():
    learner = build(Plan(MixedNorm(2, 1, "outputs"), [Squared()], "adaptive", 1.0), 4, 9)
    X = np.random.default_rng(0).normal(size=(30, 4))
    learner.learn(X, NO_LABELS, np.tile(X, (1, 3))[:, :9], np.ones(30))
    learner = learner.enlarge(5, 10)
    learner.learn(np.ones((1, 5)), NO_LABELS, np.ones((1, 10)), np.ones(1))
    assert learner.rounds == 31


# --- refusals


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("norm", [PLAIN, GROUP, TraceNorm()], ids=str)
@pytest.mark.parametrize("block", [1, 4])
def test_rows_before_a_bad_one_are_learned_from(bad, form, norm, block):
    X, labels, targets = samples(MulticlassHinge(), count=20)
    plan = Plan(norm, [MulticlassHinge()], scaled=True, block=block)
    one, other = build(plan, 12, 3), build(plan, 12, 3)
    one.learn(X[:14], labels[:14], targets[:14], np.ones(14))
    X[14, 5] = bad
    with pytest.raises(NotFiniteError, match="Row 14 of X .* the 14 rows before it"):
        other.learn(form(X), labels, targets, np.ones(20))
    assert other.rounds == 14
    for name in one.stored:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_what_cannot_be():
    with pytest.raises(TypeError, match="no mirror map and no strongly convex surrogate"):
        build(Plan(MixedNorm(np.inf, 1), [Squared()]), 3, 2)
    with pytest.raises(ValueError, match="goes with the norm 'l2,2' only"):
        build(Plan(GROUP, [Squared()], "feature"), 1000, 2)
    with pytest.raises(ValueError, match="goes with the norm 'l2,2' only"):
        build(Plan(TraceNorm(), [Squared()], "feature"), 3, 2)
    with pytest.raises(ValueError, match="has no ball"):
        build(Plan(PLAIN, [Squared()], "feature", radius=1.0), 3, 2)
    with pytest.raises(ValueError, match="choose 'adaptive'"):
        by_blocks(RowLearner(Plan(PLAIN, [Squared()], "feature"), 3, 2))
    learner = build(Plan(PLAIN, [Squared()], "feature"), 3, 2)
    with pytest.raises(TypeError, match="no regret bound here"):
        learner.regret(np.zeros((2, 3)))
    with pytest.raises(TypeError, match="no regret bound here"):
        learner.regret_bound(np.zeros((2, 3)))
    with pytest.raises(TypeError, match="Only perceptrons"):
        learner.mistake_bound(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="no average was kept"):
        learner.weights(averaged=True)


class DoubleLoss(MarginSoftmax):
    def value_and_residual(self, scores, target, weight):
        return super().value_and_residual(scores, target, 2.0 * weight)


class SlowSoftmax(MarginSoftmax):
    row_code = None


class SlowHuber(Huber):
    row_code = None


class SlowHinge(Hinge):
    row_code = None


def test_a_loss_of_ones_own_is_not_taken_for_another():
    assert DoubleLoss().row_code is None
    assert isinstance(build(Plan(PLAIN, [MulticlassSquaredHinge()]), 3, 2), BlockLearner)
    assert isinstance(build(Plan(PLAIN, [DoubleLoss()]), 3, 2), BlockLearner)


@pytest.mark.parametrize(
    ("known", "own"),
    [
        (MarginSoftmax(0.5), SlowSoftmax(0.5)),
        (Huber(0.5), SlowHuber(0.5)),
        (Hinge(), SlowHinge()),
    ],
    ids=repr,
)
def test_losses_without_compiled_code(known, own):
    rng = np.random.default_rng(0)
    X, importance = rng.standard_normal((30, 4)), rng.uniform(size=30)
    labels = rng.integers(3, size=30) if known.is_classifier else NO_LABELS
    targets = no_targets(30)
    if not known.is_classifier:
        targets = rng.standard_normal((30, 3))
        targets = np.sign(targets) if known.is_binary else targets
    learners = [
        BlockLearner(Plan(GROUP, [loss], "adaptive", scaled=True, intercept=True), 4, 3)
        for loss in (known, own)
    ]
    found = [learner.learn(X, labels, targets, importance) for learner in learners]
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(learners[0].weights()[0], learners[1].weights()[0], atol=1e-9)


@pytest.mark.parametrize("unit", [2.0**600, 2.0**-600])
def test_spectral_maps_in_units_whose_squares_overflow_or_vanish(unit):
    norm, theta = SchattenNorm(1.5), np.random.default_rng(0).standard_normal((3, 7))
    np.testing.assert_allclose(
        block_learner._mirror(norm, unit * theta) / unit, block_learner._mirror(norm, theta)
    )
    assert block_learner._dual_norm(norm, unit * theta) / unit == pytest.approx(
        block_learner._dual_norm(norm, theta)
    )
