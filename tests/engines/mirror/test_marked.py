"""Columns that rows may lack: their origin is the mean of the rows that have them."""

import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm.engines.mirror import Plan, RowLearner
from mixnorm.losses import MultinomialLogistic, Squared

from .conftest import GROUP, PLAIN, RULES, assert_alike, assert_close, samples


def stored(X):
    """All entries as a CSR matrix, zeros too; NaN stands for unknown values."""
    count, d = X.shape
    indices, ends = np.tile(np.arange(d), count), np.arange(count + 1) * d
    return sp.csr_matrix((X.ravel(), indices, ends), shape=X.shape)


def plan(rule, norm, loss, origin):
    rate = RULES.get(rule, 1.0)
    return Plan(norm, [loss], rule, rate, scaled=True, intercept=True, averaged=True, origin=origin)


CASES = [("adaptive", GROUP), ("anytime", PLAIN), ("feature", PLAIN)]


@pytest.mark.parametrize(("rule", "norm"), CASES)
@pytest.mark.parametrize("loss", [MultinomialLogistic(), Squared()], ids=repr)
def test_marked_columns_that_all_rows_have_are_centred_columns(rule, norm, loss):
    X, labels, targets = samples(loss)
    X += np.arange(12.0)  # far from zero
    one, other = (RowLearner(plan(rule, norm, loss, kind), 12, 3) for kind in ("marked", "means"))
    one.mark(range(12))
    for learner, rows in ((one, stored(X)), (other, X)):
        learner.learn(rows, labels, targets, np.ones(len(X)))
    assert_alike(one, other, np.random.default_rng(0), 1e-6 if rule == "feature" else 1e-9)
    np.testing.assert_allclose(one.means_of_marked(), X.mean(axis=0), atol=1e-9)


@pytest.mark.parametrize(("rule", "norm"), CASES)
def test_unknown_values_are_means(rule, norm):
    """They move no weights of their column, and its mean is that of the known values."""
    X, labels, targets = samples(Squared())
    X += 5.0
    X[::3, 4] = np.nan
    learner = RowLearner(plan(rule, norm, Squared(), "marked"), 12, 3)
    learner.mark(range(12))
    learner.learn(stored(X), labels, targets, np.ones(len(X)))
    means = learner.means_of_marked()
    np.testing.assert_allclose(means, np.nanmean(X, axis=0))
    lacking = X[:1].copy()
    before, intercept = learner.weights()
    losses, _ = learner.learn(stored(lacking), labels, targets[:1], np.ones(1))
    filled = np.where(np.isnan(lacking), means, lacking)
    scores, known = (filled @ before.T + intercept)[0], ~np.isnan(targets[0])
    assert losses[0] == pytest.approx(0.5 * np.sum((scores - targets[0])[known] ** 2), rel=1e-6)
    assert_close(learner.means_of_marked()[4], means[4])


@pytest.mark.parametrize(("rule", "norm"), CASES)
def test_rare_columns_lose_their_mark(rule, norm):
    """With steps by feature the model stays the same function; others shrink a weight a little."""
    X, labels, targets = samples(Squared(), count=40)
    X += 3.0
    learner = RowLearner(plan(rule, norm, Squared(), "marked"), 12, 3)
    learner.mark(range(12))
    few = sp.csr_matrix(stored(X)[:, :11])
    few.resize(40, 12)  # the last column turns up in the first rows only
    learner.learn(stored(X[:8]), labels, targets[:8], np.ones(8))
    learner.learn(few[8:], labels, targets[8:], np.ones(32))
    assert learner.means_of_marked()[11] != 0.0
    before, intercept = learner.weights()
    wanted = X[0] @ before.T + intercept
    losses, _ = learner.learn(stored(X[:1]), labels, np.full((1, 3), 0.0), np.ones(1))
    assert losses[0] == pytest.approx(
        0.5 * np.sum(wanted**2), rel=1e-6 if rule == "feature" else 1e-2
    )
    means = learner.means_of_marked()
    assert means[11] == 0.0
    assert np.all(means[:11] != 0.0)
