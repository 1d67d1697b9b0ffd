"""Steps with a size for each feature against a plain loop (:eq:`feature-steps`)."""

import numpy as np
import pytest

from mixnorm.engines.mirror import Plan, RowLearner
from mixnorm.losses import Absolute, Hinge, Huber, Squared

from .conftest import NO_LABELS, PLAIN, assert_close, rows


def slow_weights(loss, X, Y, weight, rate):
    W, energy = np.zeros((Y.shape[1], X.shape[1])), np.full(X.shape[1], 1e-300)
    steepest, farthest, seen, inputs = np.zeros(Y.shape[1]), np.zeros(Y.shape[1]), 0.0, 0.0
    for x, y, w in zip(X, Y, weight, strict=True):
        _, residual = loss.value_and_residual((W @ x)[None], y[None], np.ones(1))
        g = residual[0]
        seen, inputs = seen + w, inputs + w * np.sum(np.abs(x))
        if not np.any(g):
            continue
        steepest, farthest = np.maximum(steepest, np.abs(g)), np.maximum(farthest, np.abs(y))
        if not np.any(x):
            continue
        unit, size = (1.0, 1.0) if loss.is_binary else (steepest, farthest)
        g = g / unit
        energy += w * np.mean(g**2) * x**2
        W -= rate * seen / inputs * np.outer(w * g * size, x / np.sqrt(energy))
    return W


@pytest.mark.parametrize("loss", [Squared(), Absolute(), Huber(0.5), Hinge()], ids=repr)
@pytest.mark.parametrize("sparse_rows", [False, True])
def test_steps_by_feature(loss, sparse_rows):
    """Targets grow, and so do derivatives."""
    rng = np.random.default_rng(0)
    X = rows(40) if sparse_rows else rng.standard_normal((40, 5))
    Y = rng.standard_normal((40, 3)) * np.linspace(0.5, 3.0, 40)[:, None] + X[:, :1]
    Y = np.sign(Y) if loss.is_binary else Y
    weight = rng.uniform(0.2, 1.0, 40)
    learner = RowLearner(Plan(PLAIN, [loss], "feature", 0.7), X.shape[1], 3)
    learner.learn(X, NO_LABELS, Y, weight)
    assert_close(learner.weights()[0], slow_weights(loss, X, Y, weight, 0.7), 1e-10)
