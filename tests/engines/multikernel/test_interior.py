"""The interior-point method of joint machines: what it says it costs."""

import math

import pytest

from mixnorm.engines.multikernel.interior import estimate_interior_seconds


@pytest.mark.parametrize("n_samples", [1, 1000])
def test_the_cost_of_a_step_grows_with_the_rows_and_the_square_or_cube_of_the_unknowns(n_samples):
    """A product of columns and a Cholesky factor; a fixed part only makes ratios smaller."""
    few = estimate_interior_seconds(n_samples, 100, 3)
    assert few < estimate_interior_seconds(2 * n_samples, 100, 3) <= 2.0 * few
    assert 2.0 * few < estimate_interior_seconds(n_samples, 200, 3) <= 8.0 * few
    assert estimate_interior_seconds(n_samples, 200, 2) == pytest.approx(few)  # as many unknowns
    assert math.isinf(estimate_interior_seconds(n_samples, 1000, 3))
