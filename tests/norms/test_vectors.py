"""Norms of rows and vectors, against NumPy's."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mixnorm.norms.base import conjugate
from mixnorm.norms.vectors import (
    clip,
    divide_or_zero,
    dual_vector,
    max_magnitude,
    power_of_two_below,
    row_maxima,
    row_norms,
    sign_largest,
    soft_threshold,
    vector_norm,
)

NUMBERS = st.floats(-100.0, 100.0, width=32)
EXPONENTS = st.one_of(st.sampled_from([1.0, 2.0, math.inf]), st.floats(1.01, 40.0))


@pytest.mark.parametrize("shape", [(4, 3), (3, 1), (1, 5), (2, 100)])
@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_row_norms(shape, p):
    A = np.random.default_rng(0).standard_normal(shape)
    wanted = np.linalg.norm(A, p, axis=1)
    np.testing.assert_allclose(row_norms(A, p), wanted, rtol=1e-14)
    np.testing.assert_allclose(row_norms(np.asfortranarray(A), p), wanted, rtol=1e-14)


def test_empty():
    np.testing.assert_array_equal(row_maxima(np.ones((3, 0))), np.zeros(3))
    assert max_magnitude(np.ones((0, 3))) == 0.0
    assert vector_norm(np.ones(0), 2.0) == 0.0


def test_peak():
    assert max_magnitude(np.asarray([[1.0, -3.0]])) == 3.0
    assert max_magnitude(np.asarray([[1.0, 2.0]])) == 2.0
    assert math.isnan(max_magnitude(np.asarray([[1.0, math.nan]])))
    assert max_magnitude(np.asarray([[1.0, -math.inf]])) == math.inf


@pytest.mark.parametrize("size", [1e-320, 1e-300, 0.3, 1.0, 1.9, 1e300])
def test_power_of_two(size):
    unit = power_of_two_below(size)
    assert math.frexp(unit)[0] == 0.5
    if 1e-300 < size < 1e300:
        assert unit <= size < 2.0 * unit


@given(arrays(np.float64, st.integers(1, 8), elements=st.floats(0.0, 100.0)), EXPONENTS)
def test_vector_norm(v, p):
    assert vector_norm(v, p) == pytest.approx(np.linalg.norm(v / 100, p) * 100, rel=1e-12)


@given(arrays(np.float64, st.integers(1, 8), elements=st.floats(1e-3, 100.0)), EXPONENTS)
def test_aligned_vector(v, p):
    q = conjugate(p)
    t = dual_vector(v, p, q)
    assert vector_norm(t, p) == pytest.approx(1.0, rel=1e-9)
    assert t @ v == pytest.approx(vector_norm(v, q), rel=1e-9)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, math.inf])
def test_aligned_with_zero(p):
    np.testing.assert_array_equal(dual_vector(np.zeros(3), p, conjugate(p)), np.zeros(3))
    assert dual_vector(np.array([2.0, 0.0, 1.0]), p, conjugate(p))[1] == 0.0


def test_large_exponents_do_not_overflow():
    v = np.asarray([1e30, 2e30, 1e-30], np.float32)
    with np.errstate(over="raise", invalid="raise"):
        for p in (20.0, 1e3, 1e6):
            assert vector_norm(v, p) == pytest.approx(2e30, rel=1e-5)
            t = dual_vector(v, conjugate(p), p)
            assert np.all(np.isfinite(t))
            assert t[1] == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("q", [1e3, 1e8, 1e15, 1e39, 1e300])
def test_ties_under_large_exponents(q, dtype):
    v = np.asarray([3.0, 3.0, 1.0], dtype)
    with np.errstate(over="raise", invalid="raise"):
        assert vector_norm(v, q) == pytest.approx(3.0 * 2.0 ** (1.0 / q))
        t = dual_vector(v, 1.0 + 1.0 / (q - 1.0) if q < 1e15 else 1.0 + 1e-15, q)
    # The norm is that of one of them to rounding: its powers are not.
    np.testing.assert_allclose(t, [0.5, 0.5, 0.0], rtol=1e-2)


def test_first_signs():
    A = np.asarray([[1.0, -3.0, 3.0], [0.0, 0.0, 0.0], [0.5, 0.1, 0.2]])
    wanted = [[0.0, -1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    np.testing.assert_array_equal(sign_largest(A), wanted)


def test_over():
    np.testing.assert_array_equal(divide_or_zero(2.0, np.asarray([4.0, 0.0])), [0.5, 0.0])
    np.testing.assert_array_equal(divide_or_zero(math.inf, np.asarray([4.0, 0.0])), [math.inf, 0.0])
    np.testing.assert_array_equal(divide_or_zero(1e300, np.asarray([1e-300])), [math.inf])
    np.testing.assert_array_equal(
        divide_or_zero(np.zeros(2), np.asarray([1e-310, 0.0])), [0.0, 0.0]
    )


@given(arrays(np.float64, (3, 2), elements=NUMBERS), st.floats(0.0, 50.0))
def test_soften(W, bound):
    wanted = np.sign(W) * np.maximum(np.abs(W) - bound, 0.0)
    np.testing.assert_allclose(soft_threshold(W, bound), wanted, atol=1e-13)
    np.testing.assert_array_equal(clip(W, bound), np.clip(W, -bound, bound))
    bounds = np.asarray([[bound], [1.0], [0.0]])
    np.testing.assert_array_equal(clip(W, bounds), np.clip(W, -bounds, bounds))
