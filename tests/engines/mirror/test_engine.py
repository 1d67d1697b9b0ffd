"""Online learners: against each other, by what they keep, and by what the theory promises."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm.engines.mirror import (
    PERCEPTRON,
    BlockLearner,
    Plan,
    RowLearner,
)
from mixnorm.engines.mirror import layout as layout
from mixnorm.losses import (
    Absolute,
    Hinge,
    Huber,
    Logistic,
    MulticlassHinge,
    MultinomialLogistic,
    Squared,
)
from mixnorm.norms import MixedNorm, SchattenNorm, TraceNorm

from .conftest import (
    GROUP,
    JOINT,
    LASSO,
    NO_LABELS,
    NORMS,
    NUMBERS,
    PLAIN,
    RULES,
    SIGNS,
    assert_alike,
    assert_close,
    each_norm,
    each_rule,
    no_targets,
    pair,
    rows,
    samples,
)

# --- compiled rounds against mirror maps


@each_norm
@each_rule
@pytest.mark.parametrize("origin", [None, "zero", "means"])
def test_rows_are_blocks_of_one(norm, rule, origin):
    rng, turn = np.random.default_rng(1), [*RULES].index(rule) + NORMS.index(norm)
    for place, loss in enumerate([MulticlassHinge(), MultinomialLogistic(), Squared()]):
        intercept = (turn + place) % 2 == 0
        averaged = not intercept
        # Half of the cases have a ball, so that each norm, rule, loss and origin meets one.
        radius = [math.inf, 0.7][(turn // 2 + place + (origin is None)) % 2]
        plan = Plan(
            norm, [loss], rule, RULES[rule], radius, origin is not None, intercept, averaged,
            origin=origin or "zero",
        )  # fmt: skip
        X, labels, targets = samples(loss, count=30)
        one, other = pair(plan, X.shape[1], 3)
        found = one.learn(X, labels, targets, np.ones(len(X)))
        wanted = other.learn(X, labels, targets, np.ones(len(X)))
        assert_close(found[0], wanted[0])
        if origin == "means" and one.mistakes != other.mistakes:
            # Rounding chose between two classes that tie: only the weights are to agree.
            assert np.sum(found[1] != wanted[1]) == 1
            other.numbers[layout.MISTAKES] = one.mistakes
        else:
            assert np.array_equal(found[1], wanted[1])
        assert_alike(one, other, rng)


# Samples of joint losses are the same whether or not each belongs to one task.
EVERY_LOSS = [(loss, False) for loss in [*JOINT, *NUMBERS, *SIGNS]]
EVERY_LOSS += [(loss, True) for loss in [*NUMBERS, *SIGNS]]


@each_norm
@pytest.mark.parametrize(("loss", "tasks"), EVERY_LOSS, ids=str)
def test_every_loss(norm, loss, tasks):
    plan = Plan(norm, [loss], "adaptive", 2.0, 5.0, True, True, True)
    X, labels, targets = samples(loss, count=30, tasks=tasks)
    one, other = pair(plan, X.shape[1], 3)
    weight = np.random.default_rng(1).uniform(size=len(X))
    found = one.learn(sp.csr_matrix(X), labels, targets, weight)
    wanted = other.learn(sp.csr_matrix(X), labels, targets, weight)
    assert_close(found[0], wanted[0])
    assert np.array_equal(found[1], wanted[1])
    assert_alike(one, other, np.random.default_rng(2))


@each_norm
def test_losses_that_differ_by_task(norm):
    losses = [Squared(), Logistic(), Huber(0.5), Hinge()]
    X, _, Y = samples(Squared(), k=4)
    Y[:, [1, 3]] = np.where(np.isnan(Y[:, [1, 3]]), np.nan, np.sign(Y[:, [1, 3]]))
    one, other = pair(Plan(norm, losses, "anytime", 0.5, intercept=True), X.shape[1], 4)
    for learner in (one, other):
        learner.learn(X, NO_LABELS, Y, np.ones(len(X)))
        labels = np.arange(len(X)) % 4
        own = np.where(labels % 2 == 1, 1.0, X[:, 0])[:, None]
        learner.learn(X, labels, own, np.ones(len(X)))
    assert one.mistakes > 0
    assert_alike(one, other, np.random.default_rng(2))


@each_norm
@pytest.mark.parametrize("scaled", [False, True])
def test_perceptrons_up_to_a_factor(norm, scaled):
    plan = Plan(norm, [PERCEPTRON], "none", scaled=scaled, intercept=True)
    X, labels, targets = samples(PERCEPTRON, count=200)
    one, other = pair(plan, X.shape[1], 3)
    for learner in (one, other):
        learner.learn(X, labels, targets, np.ones(len(X)))
    assert one.mistakes == other.mistakes == one.updates == one.loss
    found, wanted = one.weights()[0], other.weights()[0]
    assert_close(found / np.linalg.norm(found), wanted / np.linalg.norm(wanted))
    u = np.random.default_rng(1).normal(size=found.shape)
    if scaled:
        with pytest.raises(TypeError, match="running units"):
            one.mistake_bound(u)
    else:
        assert one.mistake_bound(u) == pytest.approx(other.mistake_bound(u), rel=1e-12)


# --- what a learner is handed, and how


@each_norm
@pytest.mark.parametrize("rule", ["none", *RULES])
def test_parts_and_forms_of_the_samples_do_not_matter(norm, rule):
    loss = PERCEPTRON if rule == "none" else MultinomialLogistic()
    plan = Plan(norm, [loss], rule, RULES.get(rule, 1.0), 3.0, True, True, True)
    X, labels, targets = samples(loss, count=120)
    weight = np.random.default_rng(1).uniform(size=len(X))
    learners = [RowLearner(plan, X.shape[1], 3) for _ in range(3)]
    learners[0].learn(X, labels, targets, weight)
    for part in np.array_split(np.arange(len(X)), 9):
        learners[1].learn(X[part], labels[part], targets[part], weight[part])
    for i in range(len(X)):
        part = slice(i, i + 1)
        learners[2].learn(sp.csr_matrix(X[part]), labels[part], targets[part], weight[part])
    for other in learners[1:]:
        for name in RowLearner.stored:
            assert np.array_equal(getattr(learners[0], name), getattr(other, name)), name


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("block", [1, 4])
def test_parts_of_the_samples_do_not_matter_to_blocks(block, scaled):
    loss = MultinomialLogistic()  # with a hinge rounding may choose between classes that tie
    plan = Plan(TraceNorm(), [loss], "adaptive", 2.0, 3.0, scaled, True, True, block=block)
    X, labels, targets = samples(loss, k=9, count=90)
    one, other = BlockLearner(plan, X.shape[1], 9), BlockLearner(plan, X.shape[1], 9)
    assert one.norm != SchattenNorm(2)
    one.learn(X, labels, targets, np.ones(len(X)))
    for i in range(len(X)):
        part = slice(i, i + 1)
        other.learn(X[part], labels[part], targets[part], np.ones(1))
    for name in BlockLearner.stored:
        if block == 1:
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
        else:  # sums of several rows round by how many there are
            assert_close(getattr(one, name), getattr(other, name), 1e-12)


GROWING = [
    ("feature", PLAIN, RowLearner),
    *itertools.product(
        RULES, [PLAIN, MixedNorm(2, 1.2), MixedNorm(1.3, 1.3)], [RowLearner, BlockLearner]
    ),
]


@pytest.mark.parametrize(("rule", "norm", "kind"), GROWING)
def test_growing_is_having_had_room(rule, norm, kind):
    plan = Plan(norm, [Squared()], rule, RULES.get(rule, 1.0), math.inf, True, True, True)
    # Steps by feature depend on the number of outputs, of which there are as many before.
    few = 4 if rule == "feature" else 2
    X, Y = rows(90, d=150), np.random.default_rng(1).normal(size=(90, 4))
    X[:50, 70:], Y[:50, few:], weight = 0.0, np.nan, np.ones(90)
    one, other = kind(plan, 150, 4), kind(plan, 70, few)
    one.learn(X, NO_LABELS, Y, weight)
    early = np.ascontiguousarray(X[:50, :70]), NO_LABELS, np.ascontiguousarray(Y[:50, :few])
    other.learn(*early, weight[:50])
    other = other.enlarge(150, 4)
    other.learn(X[50:], NO_LABELS, Y[50:], weight[50:])
    # Steps by feature are taken in half the digits.
    close = 1e-6 if rule == "feature" else 1e-10
    assert_alike(other, one, np.random.default_rng(2), close)


@pytest.mark.parametrize("kind", [RowLearner, BlockLearner])
def test_growing_changes_nothing_that_was_learned(kind):
    """Nor the averages, after a last row that touches a single column."""
    X, Y = rows(30), np.random.default_rng(1).normal(size=(30, 2))
    X[-1] = np.eye(12)[5]
    learner = kind(Plan(PLAIN, [Squared()], "fixed", 0.02, averaged=True), 12, 2)
    learner.learn(X, NO_LABELS, Y, np.ones(30))
    before = [learner.weights(averaged)[0] for averaged in (False, True)]
    larger = learner.enlarge(14, 3)
    for averaged, wanted in enumerate(before):
        found = larger.weights(bool(averaged))[0]
        assert_close(found[:2, :12], wanted, 1e-12)
        assert not np.any(found[2:])
        assert not np.any(found[:, 12:])


def test_steps_by_feature_go_on_with_new_outputs():
    """New outputs start from zero, and old ones stay the same function until they learn again."""
    plan = Plan(PLAIN, [Squared()], "feature", scaled=True, intercept=True, origin="means")
    X, Y = rows(90), np.random.default_rng(1).normal(size=(90, 4))

    def scores(learner):
        weights, intercept = learner.weights()
        return X @ weights[:, :12].T + intercept

    learner = RowLearner(plan, 12, 2)
    learner.learn(X, NO_LABELS, np.ascontiguousarray(Y[:, :2]), np.ones(90))
    before = scores(learner)
    learner = learner.enlarge(14, 4)
    assert_close(scores(learner)[:, :2], before, 1e-12)
    assert not np.any(scores(learner)[:, 2:])
    Y[:, :2] = np.nan
    learner.learn(np.pad(X, ((0, 0), (0, 2))), NO_LABELS, Y, np.ones(90))
    assert_close(scores(learner)[:, :2], before, 1e-12)
    assert np.all(np.any(learner.weights()[0][2:] != 0.0, axis=1))
    assert not np.any(learner.weights()[0][:, 12:])


def test_no_features_at_first():
    plan = Plan(MixedNorm(2, 1.2), [MulticlassHinge()], "adaptive", 1.0, intercept=True)
    learner = RowLearner(plan, 0, 2)
    learner.learn(np.empty((3, 0)), np.array([0, 1, 1]), no_targets(3), np.ones(3))
    learner = learner.enlarge(2, 3)
    learner.learn(np.eye(2), np.array([2, 0]), no_targets(2), np.ones(2))
    assert learner.rounds == 5
    assert learner.weights()[0].shape == (3, 2)


# --- weights


WEIGHED = [
    ("feature", PLAIN, "means"), ("feature", PLAIN, "zero"), ("adaptive", GROUP, "means"),
    ("anytime", LASSO, "zero"), ("fixed", PLAIN, None), ("none", GROUP, "means"),
]  # fmt: skip


def weighed(rule, norm, origin, loss):
    return Plan(
        norm, [loss], rule, RULES.get(rule, 1.0), scaled=origin is not None, intercept=True,
        averaged=True, origin=origin or "zero",
    )  # fmt: skip


@pytest.mark.parametrize(("rule", "norm", "origin"), WEIGHED)
@pytest.mark.parametrize("loss", [MultinomialLogistic(), Squared()], ids=str)
def test_a_row_of_weight_two_is_the_row_twice(rule, norm, origin, loss):
    plan = weighed(rule, norm, origin, PERCEPTRON if rule == "none" else loss)
    X, labels, targets = samples(plan.losses[0])
    weight = np.random.default_rng(0).integers(0, 4, size=len(X))
    one, other = (RowLearner(plan, X.shape[1], 3) for _ in range(2))
    one.learn(X, labels, targets, weight.astype(float))
    again = np.repeat(np.arange(len(X)), weight)
    labels = labels[again] if len(labels) else labels
    other.learn(X[again], labels, targets[again], np.ones(len(again)))
    for name in ("theta", "image", "total", "column", "outputs", "tree"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert one.loss == pytest.approx(other.loss, rel=1e-14)
    assert one.rounds == len(X)  # zero weights too: they are predicted
    assert one.numbers[layout.WEIGHT] == np.sum(weight)


@pytest.mark.parametrize(("rule", "norm", "origin"), WEIGHED)
def test_heavy_and_light_rows(rule, norm, origin):
    """A light row does less than a whole one; one of any weight takes no more than 64 steps."""
    loss = PERCEPTRON if rule == "none" else MultinomialLogistic()
    X, labels, targets = samples(loss, count=12)
    learner = RowLearner(weighed(rule, norm, origin, loss), X.shape[1], 3)
    for weight in (0.3, 2.5, 1e9):
        losses, _ = learner.learn(X, labels, targets, np.full(len(X), weight))
        assert np.all(np.isfinite(learner.weights()[0]))
        assert np.all(np.isfinite(losses))
    assert learner.rounds == 36
    assert learner.numbers[layout.WEIGHT] == pytest.approx(12 * (0.3 + 2.5 + 1e9), rel=1e-12)


def test_the_weight_of_a_small_step_scales_it():
    X, labels, targets = samples(MultinomialLogistic(), count=2, seed=3)
    sums = []
    for weight in (1.0, 0.5, 0.0):
        plan = Plan(PLAIN, [MultinomialLogistic()], "fixed", 0.1)
        learner = RowLearner(plan, X.shape[1], 3)
        losses, _ = learner.learn(X[1:], labels[1:], targets[1:], np.array([weight]))
        sums.append(learner.theta)
        assert learner.loss == losses[0] == weight * math.log(3.0)
        assert learner.updates == (weight > 0.0)
    np.testing.assert_allclose(sums[1], 0.5 * sums[0], rtol=1e-14)
    assert not np.any(sums[2])
    assert np.any(sums[0])


@pytest.mark.parametrize("kind", [RowLearner, BlockLearner])
def test_quiet_samples_are_not_learned_from(kind):
    X, labels, targets = samples(MultinomialLogistic(), count=200)
    learner = kind(Plan(PLAIN, [MultinomialLogistic()], "fixed", 0.1, quiet=0.5), X.shape[1], 3)
    before, seen = learner.weights()[0], 0
    for i in range(len(X)):
        part = slice(i, i + 1)
        learner.learn(X[part], labels[part], targets[part], np.ones(1))
        scores = X[i] @ before.T
        wrong = 1.0 - np.exp(scores[labels[i]]) / np.sum(np.exp(scores))
        after = learner.weights()[0]
        moved = np.any(X[i]) and wrong > 0.5
        assert np.any(after != before) == moved
        seen += wrong > 0.5
        before = after
    assert learner.updates == seen < 200


# --- digits


@pytest.mark.parametrize("norm", [MixedNorm(2, 1.02), MixedNorm(1.02, 1.02), GROUP], ids=str)
@pytest.mark.parametrize("unit", [1e-30, 1e-6, 1.0, 1e6, 1e15])
@pytest.mark.parametrize("rule", ["none", "adaptive"])
def test_units_and_large_exponents(norm, unit, rule):
    loss = PERCEPTRON if rule == "none" else MulticlassHinge()
    X, labels, targets = samples(loss, count=100)
    one, other = pair(Plan(norm, [loss], rule, 1.0 / unit, averaged=True), X.shape[1], 3)
    plain = RowLearner(Plan(norm, [loss], rule, 1.0, averaged=True), X.shape[1], 3)
    for learner in (one, other):
        learner.learn(X * unit, labels, targets, np.ones(len(X)))
    plain.learn(X, labels, targets, np.ones(len(X)))
    assert one.mistakes == other.mistakes == plain.mistakes > 0
    for averaged in (False, True):
        found, wanted = one.weights(averaged)[0], plain.weights(averaged)[0]
        assert np.any(found)
        assert_close(found / np.max(found), wanted / np.max(wanted), 1e-9)
    if rule == "adaptive":
        assert_alike(one, other, np.random.default_rng(0))


def test_units_that_grow():
    X, labels, targets = samples(MulticlassHinge(), count=200)
    X = X * np.logspace(-9, 9, 200)[:, None]
    for norm in NORMS:
        one, other = pair(Plan(norm, [MulticlassHinge()], averaged=True), X.shape[1], 3)
        for learner in (one, other):
            learner.learn(X, labels, targets, np.ones(len(X)))
        assert_alike(one, other, np.random.default_rng(0))


@pytest.mark.parametrize("origin", ["zero", "means"])
def test_sums_of_squares_follow_the_unit_of_their_column(origin):
    """As if inputs had been in the new unit from the start."""
    plan = Plan(PLAIN, [PERCEPTRON], "feature", scaled=True, origin=origin)
    learner = RowLearner(plan, 3, 2)
    X, labels, targets = samples(PERCEPTRON, k=2, count=40)
    learner.learn(X[:, :3], labels, targets, np.ones(40))
    top, energy = (learner.column[place].copy() for place in (layout.TOP, layout.ENERGY))
    assert energy[1] > 0.0
    far, steps = np.array([[20.0 * top[1], 0.0, 0.0]]), learner.numbers[layout.UPDATES]
    weights, intercept = learner.weights()
    label = np.argmax(far @ weights.T + intercept, axis=1)
    learner.learn(far, label, targets[:1], np.ones(1))
    assert learner.numbers[layout.UPDATES] == steps  # no mistake, so that nothing is added
    grown = top[1] / learner.column[layout.TOP, 1]
    assert grown < 0.1
    assert learner.column[layout.ENERGY, 1] == pytest.approx(energy[1] * grown**2, rel=1e-12)


@pytest.mark.parametrize("norm", [PLAIN, MixedNorm(2, 1.2), MixedNorm(1.3, 1.3)], ids=str)
def test_averages_keep_their_digits(norm):
    """The scale of the weights falls by powers of ten, and what is averaged late counts as well."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(1500, 12)), 100.0 * rng.normal(size=(1500, 1))
    plan = Plan(norm, [Absolute()], "fixed", 1.0, 1.0, averaged=True)
    one, other = pair(plan, 12, 1)
    for learner in (one, other):
        learner.learn(X * (4.0 + 4.0 * np.arange(1500.0)[:, None]), NO_LABELS, Y, np.ones(1500))
    assert one.numbers[layout.CLOCK] < 0.1  # it began again, as it would be the sum of all scales
    assert_close(one.weights(True)[0], other.weights(True)[0], 1e-9)


@pytest.mark.parametrize("norm", [MixedNorm(2, 1.2), MixedNorm(1.3, 1.3)], ids=str)
def test_many_updates(norm):
    """Derived numbers do not drift: 100,000 updates at fault by one rounding each would show."""
    rng = np.random.default_rng(0)
    n = 100_000
    X, labels = rng.normal(size=(n, 5)), rng.integers(3, size=n)
    learner = RowLearner(Plan(norm, [MultinomialLogistic()], "adaptive", 1.0), 5, 3)
    learner.learn(X, labels, no_targets(n), np.ones(n))
    assert learner.updates == n
    theta = learner.theta / learner.numbers[layout.UNIT]
    power = norm.outer / (norm.outer - 1.0)
    if norm.inner == 2:
        sizes = np.sqrt(np.sum(theta**2, axis=0))
        kept = learner.column[layout.FACTOR]
        np.testing.assert_allclose(kept[1:], sizes[1:] ** (power - 2.0), rtol=1e-12)
    else:
        sizes = np.sum(np.abs(theta) ** power, axis=0) ** (1.0 / power)
        lifted = np.sign(theta) * np.abs(theta) ** (power - 1.0)
        np.testing.assert_allclose(learner.image, lifted, rtol=1e-12)
    np.testing.assert_allclose(learner.tree[:6], sizes**power, rtol=1e-12)
    np.testing.assert_allclose(learner.tree[-1], np.sum(sizes**power), rtol=1e-12)
    found, wanted = learner.weights()[0], norm.mirror(learner.theta.T).T[:, 1:]
    assert_close(found / np.linalg.norm(found), wanted / np.linalg.norm(wanted), 1e-12)


def test_inputs_that_are_too_large_show_in_the_numbers():
    X, labels, targets = samples(Squared(), count=5)
    learner = RowLearner(Plan(PLAIN, [Squared()], "fixed", 1.0), X.shape[1], 3)
    learner.learn(X * 1e200, labels, targets * 1e200, np.ones(5))
    assert not np.all(np.isfinite(learner.numbers))
