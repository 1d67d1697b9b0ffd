"""Steps that keep signs: directions, landing at zero, and what may move."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixnorm._array import to_numpy
from mixnorm.engines._core.orthant import Orthant, shrink


def example():
    """Weights of either sign and zero, under gradients below and above the kink of 1."""
    weights = np.array([[2.0, -2.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.0, -1.0, 0.0]])
    gradient = np.array([[0.5, 0.5, 0.5, 3.0, -3.0], [5.0, 0.2, -4.0, 0.0, 0.0]])
    kinks = np.array([[1.0], [0.0]])
    return weights, gradient, kinks


def test_slopes_are_one_sided_derivatives():
    weights, gradient, kinks = example()
    orthant = Orthant(weights, gradient, kinks)
    np.testing.assert_array_equal(orthant.slope[0], [1.5, -0.5, 0.0, 2.0, -2.0])
    np.testing.assert_array_equal(orthant.slope[1], gradient[1])  # no kinks: the gradient
    np.testing.assert_array_equal(orthant.free[0], [True, True, False, True, True])
    assert orthant.free[1].all()


@given(seed=st.integers(0, 500), kink=st.sampled_from([0.1, 1.0]))
def test_slopes_by_differences(seed, kink):
    """Of a linear function plus magnitudes, in the direction that each weight would take."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((3, 4)) * rng.integers(0, 2, (3, 4))
    gradient = rng.standard_normal((3, 4))
    slope = Orthant(weights, gradient, np.full((3, 1), kink)).slope
    for place in np.ndindex(3, 4):
        w, g = weights[place], gradient[place]

        def rise(move, w=w, g=g):
            return (g * move + kink * (abs(w + move) - abs(w))) / 1e-6

        if w:
            assert slope[place] == pytest.approx(rise(1e-6), abs=1e-6)
        elif slope[place]:
            assert abs(slope[place]) == pytest.approx(-rise(-np.sign(slope[place]) * 1e-6))
        else:
            assert rise(1e-6) >= 0.0
            assert rise(-1e-6) >= 0.0


def test_steps_leave_zero_downhill_only():
    weights, gradient, kinks = example()
    orthant = Orthant(weights, gradient, kinks)
    step = np.array([[-9.0, 9.0, 9.0, -9.0, -9.0], [9.0, 9.0, 9.0, 9.0, 9.0]])
    got = orthant.align(step)
    np.testing.assert_array_equal(got[0], [-9.0, 9.0, 0.0, 0.0, -9.0])
    np.testing.assert_array_equal(got[1], step[1])


def test_weights_land_at_zero_where_they_would_change_sign():
    weights, gradient, kinks = example()
    orthant = Orthant(weights, gradient, kinks)
    moved = np.array([[-1.0, -0.5, 0.3, -2.0, -2.0], [-3.0, 1.0, -1.0, 1.0, 0.0]])
    got = orthant.land(moved)
    np.testing.assert_array_equal(got[0], [0.0, -0.5, 0.0, -2.0, 0.0])
    np.testing.assert_array_equal(got[1], moved[1])


def test_the_same_weights_may_move():
    weights, gradient, kinks = example()
    orthant = Orthant(weights, gradient, kinks)
    assert orthant.same_as(Orthant(2.0 * weights, gradient, kinks))
    assert not orthant.same_as(Orthant(weights, 0.1 * gradient, kinks))
    assert not orthant.same_as(None)


def test_soft_thresholding():
    np.testing.assert_array_equal(shrink(np.array([-3.0, -1.0, 0.5, 1.5]), 1.0), [-2, 0, 0, 0.5])


def test_namespaces_agree(xp):
    parts = example()
    here, there = Orthant(*parts), Orthant(*(xp.asarray(part) for part in parts))
    step = np.random.default_rng(0).standard_normal((2, 5))
    np.testing.assert_array_equal(to_numpy(there.slope), here.slope)
    np.testing.assert_array_equal(to_numpy(there.free), here.free)
    np.testing.assert_array_equal(to_numpy(there.align(xp.asarray(step))), here.align(step))
    np.testing.assert_array_equal(to_numpy(there.land(xp.asarray(step))), here.land(step))
    assert there.same_as(there)
