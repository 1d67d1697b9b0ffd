"""Weights and parameters, checked once."""

import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm import ShareBoostClassifier
from mixnorm._checks import check_array
from mixnorm.estimators._common.inputs import check_loss, check_weights
from mixnorm.estimators._common.validation import check_classification_targets, validate_data
from mixnorm.losses import MarginSoftmax, Squared


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weight", [None, 2.0, [1, 2, 3], [1e-300, 0, 1e-300], [1e300, 1e300, 0]])
def test_weights_sum_to_one(weight, dtype):
    found = check_weights(weight, 3, dtype)
    assert found.dtype == dtype
    assert found.sum() == pytest.approx(1.0)
    if isinstance(weight, list):
        assert np.array_equal(found > 0, np.asarray(weight) > 0)


@pytest.mark.parametrize("weight", [["a", "b", "c"], sp.csr_array(np.ones((3, 1))), {"a": 1}])
def test_weights_that_are_no_numbers(weight):
    with pytest.raises(TypeError, match="is not an array of numbers; give one number per row of X"):
        check_weights(weight, 3, np.float64)


def test_losses_by_name_and_object():
    known = {"margin": MarginSoftmax}
    assert check_loss("margin", known, classifier=True) == MarginSoftmax()
    mine = MarginSoftmax(margin=2.0)
    assert check_loss(mine, known, classifier=True) is mine
    with pytest.raises(ValueError, match="not a classification loss"):
        check_loss(Squared(), known, classifier=True)
    with pytest.raises(ValueError, match="not known"):
        check_loss(3, known, classifier=True)


HUGE = np.array([[1.7e308, 0.0], [1.7e308, 1.0], [-1.7e308, 2.0], [-1.7e308, 3.0]] * 8)


def test_huge_numbers_are_finite():
    """Their sum, by which scikit-learn looks for infinities, is not."""
    assert np.array_equal(check_array(HUGE), HUGE)
    with pytest.raises(ValueError, match="infinity"):
        check_array(np.where(HUGE == 0.0, np.inf, HUGE))
    model = ShareBoostClassifier(1)
    assert np.array_equal(validate_data(model, HUGE), HUGE)


def test_labels_that_are_huge_numbers():
    with pytest.raises(ValueError, match="Unknown label type"):
        check_classification_targets(HUGE[:, 0])
