import numpy as np
import pytest

from mixnorm.engines._core.line_search import backtrack, room


def test_the_first_step_that_helps_is_taken():
    lengths = []

    def trial(length):
        lengths.append(length)
        return "found" if length < 0.2 else None

    assert backtrack(trial, least=0.01) == ("found", 4)
    assert lengths == [1.0, 0.5, 0.25, 0.125]


@pytest.mark.parametrize(("shrink", "tries"), [(0.5, 7), (0.25, 4)])
def test_steps_end_above_the_least_length(shrink, tries):
    assert backtrack(lambda length: None, shrink=shrink, least=0.01) == (None, tries)


def test_what_is_false_may_still_be_found():
    assert backtrack(lambda length: 0.0, least=0.5) == (0.0, 1)


def test_room_is_the_smallest_ratio_of_what_falls():
    distance, move = np.array([3.0, 1.0, np.inf, 2.0]), np.array([-1.0, -0.25, -5.0, 9.0])
    assert room(distance, move) == 3.0
    assert room(distance, np.abs(move)) == np.inf
