"""scikit-learn's array checks: every error names its argument, and huge numbers are silent."""

import numpy as np
import pytest

from mixnorm._checks import check_array


@pytest.mark.parametrize("X", ["table", [["a", 1.0]], np.array([[1 + 1j]])])
def test_errors_name_the_argument(X):
    with pytest.raises(ValueError, match=r"\bX\b|array"):
        check_array(X, dtype=np.float64)
    with pytest.raises(ValueError, match=r"targets has entries|array"):
        check_array(X, dtype=np.float64, input_name="targets")


def test_text_is_named_with_a_remedy():
    with pytest.raises(
        ValueError, match="X has entries that are not real numbers.*'a'.*Encode text"
    ):
        check_array([["a", 1.0]], dtype=np.float64)


def test_finite_numbers_whose_sum_overflows_pass():
    X = np.full((3, 3), 1.7e308)
    assert np.array_equal(check_array(X), X)
