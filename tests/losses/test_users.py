"""Which losses the greedy estimators take, and what they say of the others."""

import numpy as np
import pytest

from mixnorm import losses
from mixnorm.estimators import ShareBoostClassifier, ShareBoostRegressor
from mixnorm.estimators._common.inputs import check_loss


@pytest.mark.parametrize("loss", [losses.MulticlassHinge(), losses.MulticlassSquaredHinge()])
def test_the_greedy_engine_needs_a_smooth_loss(loss):
    X, y = np.eye(6), [0, 1, 2, 0, 1, 2]
    with pytest.raises(ValueError, match="the greedy engine needs a smooth loss"):
        ShareBoostClassifier(loss=loss).fit(X, y)


@pytest.mark.parametrize("loss", [losses.Absolute(), losses.EpsilonInsensitive()])
def test_the_greedy_engine_needs_a_smooth_loss_of_numbers(loss):
    with pytest.raises(ValueError, match="the greedy engine needs a smooth loss"):
        ShareBoostRegressor(loss=loss).fit(np.eye(6), np.arange(6.0))


@pytest.mark.parametrize("loss", [losses.Hinge(), losses.SquaredHinge(), losses.Logistic()])
def test_losses_of_signs(loss):
    X, y = np.eye(6), [-1, 1, 1, -1, 1, -1]
    for estimator in (ShareBoostClassifier(loss=loss), ShareBoostRegressor(loss=loss)):
        with pytest.raises(ValueError, match=r"takes targets -1 and \+1"):
            estimator.fit(X, y)


def test_losses_that_know_the_unit_of_the_targets():
    """The regressor divides its targets by a unit, and a loss with a threshold is not the same."""
    with pytest.raises(ValueError, match="depends on the unit of the targets"):
        ShareBoostRegressor(loss=losses.Huber()).fit(np.eye(6), np.arange(6.0))


def test_losses_of_the_wrong_kind():
    with pytest.raises(ValueError, match="not a regression loss"):
        check_loss(losses.MarginSoftmax(), {}, classifier=False)
    with pytest.raises(ValueError, match="not a classification loss"):
        check_loss(losses.Absolute(), {}, classifier=True)
