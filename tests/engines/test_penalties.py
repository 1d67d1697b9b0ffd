"""Penalties: derivatives by differences, bounds, and numbers that do not overflow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.base import clone

from mixnorm._array import to_numpy
from mixnorm.engines.penalties import (
    PENALTIES,
    AbsoluteSum,
    Penalty,
    Ridge,
    SmoothMaxNorm,
    as_penalty,
)

ALL = [Ridge(), SmoothMaxNorm(1.0), SmoothMaxNorm(), SmoothMaxNorm(30.0), AbsoluteSum()]
each = pytest.mark.parametrize("penalty", ALL, ids=repr)
shapes = {"rows": st.integers(1, 4), "outputs": st.integers(1, 6), "seed": st.integers(0, 1000)}


def draw(rows=3, outputs=4, seed=0, size=2.0):
    return size * np.random.default_rng(seed).standard_normal((rows, outputs))


def differences(function, weights, step=1e-5):
    """First and second differences of a function of the weights, entry by entry."""
    first, second = np.empty_like(weights), np.empty_like(weights)
    for place in np.ndindex(weights.shape):
        move = np.zeros_like(weights)
        move[place] = step
        ends = function(weights + move), function(weights - move)
        first[place] = (ends[0] - ends[1]) / (2.0 * step)
        second[place] = (ends[0] + ends[1] - 2.0 * function(weights)) / step**2
    return first, second


@each
@given(**shapes)
def test_gradient_by_differences(penalty, rows, outputs, seed):
    weights = draw(rows, outputs, seed)
    weights += np.sign(weights) * 1e-3  # away from kinks
    first, _ = differences(penalty.value, weights)
    got = penalty.gradient(weights) + penalty.kink * np.sign(weights)
    np.testing.assert_allclose(got, first, atol=1e-6)


@each
@given(**shapes)
def test_curvature_by_differences(penalty, rows, outputs, seed):
    """The second derivative, and for penalties of first degree at most ``1 / (1 + |w|)`` more."""
    weights = draw(rows, outputs, seed, size=0.3)
    weights += np.sign(weights) * 1e-2
    _, second = differences(penalty.value, weights, step=1e-4)
    more = penalty.curvature(weights) - second
    assert np.all(more >= -1e-4)
    if penalty.degree == 2:
        assert np.all(more <= 1e-4)
    else:
        assert np.all(more > 0.0)
        assert np.all(more <= 1.0 / (1.0 + np.abs(weights)) + 1e-4)


@pytest.mark.parametrize("penalty", [part for part in ALL if not part.kink], ids=repr)
@pytest.mark.parametrize("outputs", [1, 2, 7])
def test_curvature_at_zero(penalty, outputs):
    _, second = differences(penalty.value, np.zeros((2, outputs)), step=1e-4)
    assert second == pytest.approx(penalty.curvature_at_zero(outputs), rel=1e-4)


@each
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zero_weights_cost_nothing(penalty, dtype):
    for outputs in (1, 2, 3, 10, 37):
        zero = np.zeros((5, outputs), dtype=dtype)
        assert penalty.value(zero) == 0.0
        assert not penalty.gradient(zero).any()


@each
@given(**shapes)
def test_smoothness_in_the_maximum_norm(penalty, rows, outputs, seed):
    weights = draw(rows, outputs, seed)
    smooth = penalty.value(weights) - penalty.kink * np.abs(weights).sum()
    bound = penalty.max_norm_smoothness(outputs) * (np.abs(weights).max(axis=1) ** 2).sum()
    assert -1e-9 <= smooth <= bound + 1e-9


@pytest.mark.parametrize("penalty", [Ridge(), SmoothMaxNorm(3.0)], ids=repr)
def test_smoothness_in_the_maximum_norm_is_tight(penalty):
    weights = np.full((1, 4), 1e-3)
    bound = penalty.max_norm_smoothness(4) * 1e-6
    assert penalty.value(weights) == pytest.approx(bound, rel=1e-5)


@each
@given(**shapes)
def test_the_shift_costs_least(penalty, rows, outputs, seed):
    weights = draw(rows, outputs, seed)
    shift = penalty.shift(weights)
    assert shift.shape == (rows, 1)
    for row, constant in zip(weights, shift, strict=True):

        def cost(c, row=row):
            return penalty.value((row - c)[None, :])

        best = minimize_scalar(cost, bounds=(row.min() - 1.0, row.max() + 1.0), method="bounded")
        assert cost(constant[0]) <= best.fun + 1e-9


@each
@pytest.mark.parametrize("factor", [2.0, 5.0])
def test_degree(penalty, factor):
    weights = 1e3 * draw()
    growth = penalty.value(factor * weights) / penalty.value(weights)
    assert growth == pytest.approx(factor**penalty.degree, rel=1e-2)


@given(beta=st.sampled_from([0.5, 1.0, 10.0, 1000.0]), **shapes)
def test_the_smooth_maximum_lies_below_the_maximum(beta, rows, outputs, seed):
    weights = draw(rows, outputs, seed)
    largest = np.abs(weights).max(axis=1).sum()
    gap = rows * np.log(2 * outputs) / beta
    assert largest - gap - 1e-9 <= SmoothMaxNorm(beta).value(weights) <= largest + 1e-9


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1e-20, 1.0, 1e6, 1e30])
def test_no_size_overflows(dtype, size):
    weights = (size * draw()).astype(dtype)
    penalty = SmoothMaxNorm(100.0)
    assert np.isfinite(penalty.value(weights))
    for part in (penalty.gradient(weights), penalty.curvature(weights), penalty.shift(weights)):
        assert part.dtype == dtype
        assert np.all(np.isfinite(part))
    assert np.all(np.abs(penalty.gradient(weights)).sum(axis=1) <= 1.0 + 1e-6)
    assert np.all(penalty.curvature(weights) >= 0.0)


@each
def test_namespaces_agree(penalty, xp):
    weights = draw()
    there = xp.asarray(weights)
    assert penalty.value(there) == pytest.approx(penalty.value(weights), rel=1e-12)
    for name in ("gradient", "curvature", "shift"):
        got = getattr(penalty, name)(there)
        assert type(got) is type(there)
        np.testing.assert_allclose(to_numpy(got), getattr(penalty, name)(weights), atol=1e-12)


@each
def test_objects_are_parameters(penalty):
    assert isinstance(penalty, Penalty)
    assert clone(penalty) == penalty
    assert as_penalty(penalty) is penalty


def test_names():
    assert {name: as_penalty(name) for name in PENALTIES} == {
        "ridge": Ridge(),
        "linf,1": SmoothMaxNorm(),
        "l1": AbsoluteSum(),
    }


@pytest.mark.parametrize("penalty", ["l2", None, Ridge, 3.0, ["l1"], object()])
def test_what_is_no_penalty(penalty):
    with pytest.raises(ValueError, match=r"'l1', 'linf,1', 'ridge'"):
        as_penalty(penalty)


@pytest.mark.parametrize("beta", [0.0, -1.0, np.inf, np.nan, "10"])
def test_a_beta_out_of_range(beta):
    with pytest.raises(ValueError, match="beta="):
        as_penalty(SmoothMaxNorm(beta))
