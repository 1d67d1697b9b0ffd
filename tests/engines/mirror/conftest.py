"""Norms, losses and samples for online learners, and what makes two of them alike."""

import numpy as np
import pytest

from mixnorm.engines.mirror import (
    PERCEPTRON,
    BlockLearner,
    RowLearner,
)
from mixnorm.engines.mirror import layout as layout
from mixnorm.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    MarginSoftmax,
    MulticlassHinge,
    MultinomialLogistic,
    Squared,
    SquaredHinge,
)
from mixnorm.norms import MixedNorm

GROUP, LASSO, PLAIN = MixedNorm(2, 1), MixedNorm(1, 1), MixedNorm(2, 2)
NORMS = [GROUP, LASSO, PLAIN, MixedNorm(2, 1.2), MixedNorm(1.3, 1.3)]
JOINT = [MulticlassHinge(), MultinomialLogistic(), MarginSoftmax(0.5)]
NUMBERS = [Squared(), Absolute(), Huber(0.5), EpsilonInsensitive(0.3)]
SIGNS = [Hinge(), SquaredHinge(), Logistic()]
RULES = {"fixed": 0.02, "anytime": 0.1, "adaptive": 1.0}
each_norm = pytest.mark.parametrize("norm", NORMS, ids=str)
each_rule = pytest.mark.parametrize("rule", RULES)
NO_LABELS = np.empty(0, dtype=np.int64)


def no_targets(count):
    return np.empty((count, 0))


def rows(count=50, d=12, seed=0):
    """Rows with zeros, a column of zeros, and one that grows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, d)) * (rng.uniform(size=(count, d)) < 0.6)
    X[:, 1] = 0.0
    X[:, 3] *= np.linspace(0.1, 3.0, count)
    X[::3] *= rng.uniform(size=d) < 0.1  # some with few entries
    return X


def samples(loss, k=3, count=50, seed=0, tasks=False):
    """Rows, and labels and targets as a learner takes them."""
    rng = np.random.default_rng(seed)
    X = rows(count, seed=seed)
    if loss == PERCEPTRON or loss.is_classifier:
        return X, rng.integers(k, size=count), no_targets(count)
    targets = np.where(rng.uniform(size=(count, k)) < 0.5, 1.0, -1.0)
    if not loss.is_binary:
        targets = X[:, :k] + rng.normal(size=(count, k))
    if tasks:
        return X, rng.integers(k, size=count), np.ascontiguousarray(targets[:, :1])
    targets[rng.uniform(size=(count, k)) < 0.2] = np.nan
    return X, NO_LABELS, targets


def pair(plan, d, k):
    return RowLearner(plan, d, k), BlockLearner(plan, d, k)


def assert_close(one, other, close=1e-10):
    unit = max(float(np.max(np.abs(other), initial=0.0)), 1e-300)
    np.testing.assert_allclose(np.asarray(one) / unit, np.asarray(other) / unit, rtol=0, atol=close)


def assert_alike(one, other, rng, close=1e-10):
    """Weights, averages and the account of two learners agree."""
    averages = [False, True] if one.plan.averaged else [False]
    for averaged in averages:
        for found, wanted in zip(one.weights(averaged), other.weights(averaged), strict=True):
            assert_close(found, wanted, close)
    assert (one.rounds, one.mistakes, one.updates) == (other.rounds, other.mistakes, other.updates)
    assert one.loss == pytest.approx(other.loss, rel=close)
    if one.plan.rule == "none" or one.plan.scaled:
        return
    u = rng.normal(size=(one.n_outputs, one.n_features))
    assert one.regret(u) == pytest.approx(other.regret(u), rel=close, abs=close)
    assert one.regret_bound(u) == pytest.approx(other.regret_bound(u), rel=close)
