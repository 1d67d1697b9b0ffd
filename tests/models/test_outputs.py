"""What scores mean: labels, decisions and numbers, and what is refused."""

import numpy as np
import pytest

from mixnorm.losses import MarginSoftmax, Squared
from mixnorm.models import ClassOutputs, NumberOutputs

NAMES = np.array(["a", "b", "c"])


def test_one_column_is_positive_for_the_second_class():
    outputs, scores = ClassOutputs(NAMES[:2]), np.array([[-1.0], [0.0], [2.0]])
    assert outputs.labels(scores).tolist() == ["a", "a", "b"]
    assert outputs.decisions(scores).tolist() == [-1.0, 0.0, 2.0]


def test_two_columns_agree_with_their_difference():
    outputs, scores = ClassOutputs(NAMES[:2]), np.array([[1.0, 3.0], [2.0, -1.0]])
    assert outputs.labels(scores).tolist() == ["b", "a"]
    assert outputs.decisions(scores).tolist() == [2.0, -3.0]


def test_of_equal_scores_the_first_wins():
    scores = np.array([[1.0, 1.0 + 1e-15, 0.0], [0.0, 2.0, 2.0]])
    for loss in (None, MarginSoftmax()):
        assert ClassOutputs(NAMES, loss).labels(scores).tolist() == ["a", "b"]


def test_probabilities_are_those_of_the_loss():
    scores = np.array([[0.3, -0.2, 1.0]])
    found = ClassOutputs(NAMES, MarginSoftmax()).probabilities(scores)
    np.testing.assert_array_equal(found, MarginSoftmax().proba(scores))
    with pytest.raises(AttributeError, match="no probabilities"):
        ClassOutputs(NAMES).probabilities(scores)


def test_labels_must_fit_the_scores():
    with pytest.raises(ValueError, match="classes_"):
        ClassOutputs(NAMES[:2]).check(3)
    with pytest.raises(ValueError, match="loss for labels"):
        ClassOutputs(NAMES, Squared()).check(3)


def test_numbers_keep_the_shape_of_the_targets():
    scores = np.array([[1.0], [2.0]])
    assert NumberOutputs(True, 1.0, np.zeros(1), Squared()).labels(scores).shape == (2,)
    assert NumberOutputs(False, 1.0, np.zeros(1), Squared()).labels(scores).shape == (2, 1)


@pytest.mark.parametrize("unit", [0.0, -1.0, np.inf, 1])
def test_units_are_positive_numbers(unit):
    with pytest.raises(ValueError, match="unit"):
        NumberOutputs(True, unit, np.zeros(1), Squared()).check(1)
