"""What online learners lose and miss is never more than the theory promises, on any samples."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from mixnorm import GroupPerceptron
from mixnorm.engines.mirror import PERCEPTRON, Plan, RowLearner, build
from mixnorm.losses import (
    Absolute,
    Hinge,
    Huber,
    Logistic,
    MarginSoftmax,
    MulticlassHinge,
    MultinomialLogistic,
    Squared,
)
from mixnorm.norms import MixedNorm, TraceNorm, as_norm

D, K, T = 10, 9, 150
# Norms and the samples that share weights.
LEARNERS = {
    "l2,1": (MixedNorm(2, 1), 1),
    "l1,1": (MixedNorm(1, 1), 1),
    "l2,2": (MixedNorm(2, 2), 1),
    "trace": (TraceNorm(), 1),
    "trace, blocks": (TraceNorm(), 4),  # T is no multiple: the last block is not full
}
RULES = {"fixed": 0.1, "anytime": 0.5, "adaptive": 2.0}
LOSSES = [MulticlassHinge(), MultinomialLogistic(), MarginSoftmax(), Hinge(), Logistic(),
          Squared(), Absolute(), Huber()]  # fmt: skip
KINDS = ["random", "separable", "sorted", "alternating", "contrary", "drifting"]
NO_LABELS = np.empty(0, dtype=np.int64)


def scored(X, seed, drift=0.0):
    """Scores of classes that two features and a little noise make."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(K, D)) * (np.arange(D) < 3)
    other = rng.normal(size=(K, D))
    part = drift * np.linspace(0.0, 1.0, len(X))[:, None]
    return (1.0 - part) * (X @ W.T) + part * (X @ other.T)


def stream(kind, seed=0):
    """Inputs and classes; those of a contrary stream follow from what is predicted."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, D)) * rng.choice([0.3, 3.0], size=(T, 1))
    y = np.argmax(scored(X, seed, drift=1.0 if kind == "drifting" else 0.0), axis=1)
    if kind == "random":
        y = rng.integers(K, size=T)
    if kind == "sorted":
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    if kind == "alternating":
        X[1::2], y = X[::2], np.arange(T) % 2  # the same input is of one class and of the other
    return X, y


def targets_of(loss, X, y):
    """Targets of scalar losses, for all outputs."""
    signs = np.where(y[:, None] == np.arange(K), 1.0, -1.0)
    return signs if loss.is_binary else signs + X[:, :1]


def play(learner, loss, kind, seed=0):
    """Let a learner learn from a stream; return the stream, and what each round lost."""
    X, y = stream(kind, seed)
    targets = np.empty((T, 0)) if learner.plan.joint else targets_of(loss, X, y)
    labels = y if learner.plan.joint else NO_LABELS
    if kind != "contrary":
        return X, y, targets, learner.learn(X, labels, targets, np.ones(T))[0]
    losses = np.empty(T)
    for t in range(T):
        scores = X[t] @ learner.weights()[0].T
        y[t] = np.argmin(scores)
        if not learner.plan.joint:
            targets[t] = np.where(scores > 0.0, -1.0, 1.0)
        part = slice(t, t + 1)
        losses[part] = learner.learn(X[part], labels[part], targets[part], np.ones(1))[0]
    return X, y, targets, losses


def total_loss(loss, X, y, targets, W):
    """The loss of fixed weights and its gradient, by the classes of mixnorm.losses."""
    given = y if targets.shape[1] == 0 else targets
    scores = X @ W.T
    weight = np.full(len(X), 1.0 / len(X))
    encoded = loss.encode(given, K, scores)
    value, residual = loss.value_and_residual(scores, encoded, weight)
    return len(X) * value, len(X) * (residual.T @ X)


def best_comparator(learner, loss, data, steps):
    """Weights for which the loss, plus what the bound has of them, is least or nearly so."""
    norm, rate = learner.norm, float(learner.numbers[10])
    rate = rate if rate > 0.0 else 1.0

    def objective(flat):
        W = flat.reshape(K, D)
        value, slope = total_loss(loss, *data, W)
        size = norm.value(W.T) if np.any(W) else 0.0
        link = norm.link(W.T).T if np.any(W) else np.zeros_like(W)
        return value + 0.5 * size * size / rate, (slope + link / rate).ravel()

    start = np.random.default_rng(0).normal(size=K * D) * 1e-3
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": steps})
    return found.x.reshape(K, D)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", LEARNERS)
def test_regret(name, rule, kind):
    norm, block = LEARNERS[name]
    rng = np.random.default_rng(0)
    for place, loss in enumerate(LOSSES):
        if (place + [*LEARNERS].index(name) + [*RULES].index(rule)) % 2:
            continue  # half of the losses: each is tried with all norms, rules, streams and radii
        radius = [math.inf, 2.0][(place // 2 + KINDS.index(kind)) % 2]
        learner = build(Plan(norm, [loss], rule, RULES[rule], radius, block=block), D, K)
        *data, losses = play(learner, loss, kind)
        assert learner.loss == pytest.approx(np.sum(losses), rel=1e-12)
        good = best_comparator(learner, loss, data, 12)
        for u in (np.zeros((K, D)), rng.normal(size=(K, D)), good, 0.3 * good, 3.0 * good):
            size = learner.norm.value(u.T)
            u = u * min(1.0, radius / size) if size > 0.0 else u
            measured = np.sum(losses) - total_loss(loss, *data, u)[0]
            regret, bound = learner.regret(u), learner.regret_bound(u)
            assert measured <= regret + 1e-9 * (abs(regret) + np.sum(losses))
            assert regret <= bound * (1 + 1e-12)


def test_bounds_are_not_idle():
    """Against contrary labels what is measured comes near to what is promised."""
    plan = Plan(MixedNorm(2, 2), [MulticlassHinge()], "adaptive", 2.0, 2.0)
    learner = build(plan, D, K)
    *data, losses = play(learner, plan.losses[0], "contrary")
    good = best_comparator(learner, plan.losses[0], data, 50)
    good *= 2.0 / learner.norm.value(good.T)
    measured = np.sum(losses) - total_loss(plan.losses[0], *data, good)[0]
    assert 0.1 * learner.regret_bound(good) < measured


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", [MixedNorm(2, 1), MixedNorm(1, 1), MixedNorm(2, 2)], ids=str)
def test_the_rate_of_theorem_5(norm, kind):
    """Known rounds, radius and gradients give the rate, and regret V sqrt(2 f T / beta)."""
    X, _ = stream(kind)
    radius, loss = 2.0, MulticlassHinge()
    smooth = norm.surrogate((D, K)) if hasattr(norm, "surrogate") else norm
    beta = smooth.strong_convexity()
    examples = np.zeros((T, D, K))
    examples[:, :, 0], examples[:, :, 1] = X, -X
    V = max(smooth.dual(example) for example in examples)
    f = 0.5 * radius**2
    rate = math.sqrt(2.0 * beta * f / (V**2 * T))
    learner = build(Plan(norm, [loss], "fixed", rate, radius), D, K)
    *data, losses = play(learner, loss, kind)
    promised = V * math.sqrt(2.0 * f * T / beta)
    good = best_comparator(learner, loss, data, 25)
    for u in (good, -good, np.random.default_rng(0).normal(size=(K, D))):
        u = u * radius / learner.norm.value(u.T)
        measured = np.sum(losses) - total_loss(loss, *data, u)[0]
        assert measured <= learner.regret_bound(u) <= promised * (1 + 1e-12)


def test_before_anything_was_learned():
    learner = build(Plan(MixedNorm(2, 1), [MulticlassHinge()]), D, K)
    assert learner.regret(np.ones((K, D))) == learner.regret_bound(np.ones((K, D))) == 0.0
    perceptron = build(Plan(MixedNorm(2, 1), [PERCEPTRON], "none"), D, K)
    assert perceptron.mistake_bound(np.ones((K, D))) == 0.0


# --- mistakes


def textbook(norm, X, y, W):
    """The bound from all examples: their loss, and the largest of them."""
    loss = MulticlassHinge()
    lost = total_loss(loss, X, y, np.empty((len(X), 0)), W)[0]
    smooth = norm.surrogate((D, K)) if hasattr(norm, "surrogate") else norm
    p = smooth.outer / (smooth.outer - 1.0)
    two = 2.0 ** (1.0 / p) if norm.inner == 1 else math.sqrt(2.0)
    largest = two * np.max(np.sum(np.abs(X) ** p, axis=1) ** (1.0 / p))
    a = smooth.value(W.T) * largest * math.sqrt(p - 1.0)
    return lost + a * math.sqrt(lost) + a * a


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", [MixedNorm(2, 1), MixedNorm(1, 1), MixedNorm(2, 2)], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_mistakes(norm, kind, seed):
    learner = RowLearner(Plan(norm, [PERCEPTRON], "none"), D, K)
    X, y, nothing, losses = play(learner, None, kind, seed)
    assert learner.mistakes == np.sum(losses)
    plan = Plan(norm, [MulticlassHinge()], "fixed", 1.0)
    compared = build(plan, D, K)
    compared.numbers[10] = 1.0  # the rate that weighs the norm
    good = best_comparator(compared, MulticlassHinge(), (X, y, nothing), 40)
    rng = np.random.default_rng(seed)
    given = [np.zeros((K, D)), rng.normal(size=(K, D)), *(s * good for s in (0.1, 1.0, 3.0, 10.0))]
    for W in given:
        bound = learner.mistake_bound(W)
        assert learner.mistakes <= bound * (1 + 1e-12)
        assert bound <= 1.05**2 * textbook(norm, X, y, W)


def test_experts():
    """The example of the paper: the label is the binary number of the first four features."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], size=(6000, 1000))
    y = (X[:, :4] > 0) @ (1 << np.arange(4))
    group, plain = GroupPerceptron("l2,1").fit(X, y), GroupPerceptron("l2,2").fit(X, y)
    assert 10 * group.mistakes_ <= plain.mistakes_
    W = np.zeros((16, 1000))
    W[:, :4] = np.where((np.arange(16)[:, None] >> np.arange(4)) & 1, 1.0, -1.0)
    assert group.mistakes_ <= group.mistake_bound(W)
    assert plain.mistakes_ <= plain.mistake_bound(W)
    assert group.mistake_bound(W) < plain.mistake_bound(W)


@pytest.mark.parametrize("norm", ["l2,1", "l1,1"])
def test_mistakes_stay_within_the_bound_while_features_and_classes_turn_up(norm):
    """The exponent grows with them, from that of the plain perceptron."""
    rng = np.random.default_rng(5)
    X = rng.choice([-1.0, 1.0], size=(1500, 400))
    y = (X[:, :3] > 0) @ np.asarray([1, 2, 4])
    learner = RowLearner(Plan(as_norm(norm), [PERCEPTRON], rule="none"), 3, 1)
    powers = []
    for i in range(len(X)):
        width = min(400, 3 + i)
        if width > learner.n_features or y[i] >= learner.n_outputs:
            learner = learner.enlarge(width, max(learner.n_outputs, int(y[i]) + 1))
        row = X[i : i + 1, : learner.n_features]
        learner.learn(row, y[i : i + 1], np.empty((1, 0)), np.ones(1))
        powers.append(float(learner.constants[0]))
    assert powers[0] < 3.0
    assert np.all(np.diff(powers) >= 0.0)
    assert powers[-1] == pytest.approx(max(2.0, np.log(400 if norm == "l2,1" else 3200)))
    W = np.zeros((8, 400))
    W[:, :3] = np.arange(8)[:, None] >> np.arange(3) & 1
    for good in (W - 0.5, 2.0 * W - 1.0, rng.standard_normal((8, 400))):
        assert learner.mistakes <= learner.mistake_bound(good)
