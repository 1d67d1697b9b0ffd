import numpy as np
import pytest

from mixnorm._numbers import check_count, check_number


def test_numbers_pass():
    assert check_count("n", np.int64(2)) == 2
    assert type(check_count("n", np.int64(2))) is int
    for value in (0, -1.5, np.float32(2), float("nan")):
        check_number("x", value)


@pytest.mark.parametrize("value", [True, 2.0, "2", None])
def test_counts_are_whole(value):
    with pytest.raises(TypeError, match="n=.* must be a whole number"):
        check_count("n", value)


def test_counts_are_positive():
    with pytest.raises(ValueError, match="n=0 must be at least 1"):
        check_count("n", 0)


@pytest.mark.parametrize("value", [True, np.bool_(True), "2", None, 1j])
def test_other_types_are_no_numbers(value):
    with pytest.raises(TypeError, match="x=.* must be a number, got"):
        check_number("x", value)
