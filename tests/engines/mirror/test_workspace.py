"""Single rows through the arrays of a workspace: the same rounds as a call with many rows."""

import numpy as np
import pytest

from mixnorm.engines.mirror import Plan, RowLearner
from mixnorm.engines.mirror.row_learner import RowWorkspace
from mixnorm.losses import MultinomialLogistic, Squared

from .conftest import GROUP, NO_LABELS, assert_close, samples


@pytest.mark.parametrize("loss", [MultinomialLogistic(), Squared()], ids=repr)
def test_rows_one_by_one_are_rows_together(loss):
    X, labels, targets = samples(loss, count=30)
    plan = Plan(GROUP, [loss], "adaptive", 1.0, scaled=True, intercept=True, origin="means")
    together, single = RowLearner(plan, 12, 3), RowLearner(plan, 12, 3)
    for learner in (together, single):  # the first rows tell what samples have
        learner.learn(X[:2], labels[:2], targets[:2], np.ones(2))
    together.learn(X[2:], labels[2:], targets[2:], np.ones(28))
    work = RowWorkspace(single, targets.shape[1])
    for i in range(2, 30):
        work.row[:], work.target[0] = X[i], targets[i]
        assert work.learn(int(labels[i]) if len(labels) else 0) == i + 1
        weights, intercept = single.weights()
        assert_close(work.scores(), weights @ X[i] + intercept)
    for name in RowLearner.stored:
        assert np.array_equal(getattr(together, name), getattr(single, name)), name


def test_a_row_that_is_not_finite_and_a_loss_that_overflows():
    learner = RowLearner(Plan(GROUP, [Squared()], "fixed", 1.0), 12, 3)
    learner.learn(np.empty((0, 12)), NO_LABELS, np.empty((0, 3)), np.ones(0))  # targets, no labels
    work = RowWorkspace(learner, 3)
    work.row[:], work.row[4] = 1.0, np.nan
    assert work.learn(0) == -1
    assert learner.rounds == 0
    work.row[:], work.target[:] = 1.0, 1e200
    assert work.learn(0) == -2
