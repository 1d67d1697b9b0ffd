"""Schatten norms, against vectors of singular values."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from mixnorm.norms import MixedNorm, SchattenNorm, TraceNorm
from mixnorm.norms.base import conjugate

INF = math.inf
EXPONENTS = [1.0, 1.2, 2.0, 3.0, INF]


def matrix(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@st.composite
def matrices(draw):
    shape = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    W = matrix(shape, draw(st.integers(0, 10_000)))
    return np.round(W) if draw(st.booleans()) else W


@given(matrices(), st.sampled_from(EXPONENTS))
def test_values(W, q):
    values = np.linalg.svd(W, compute_uv=False)
    norm = SchattenNorm(q)
    assert norm.value(W) == pytest.approx(np.linalg.norm(values, q), rel=1e-12)
    assert norm.dual(W) == pytest.approx(np.linalg.norm(values, conjugate(q)), rel=1e-12)


@given(matrices(), st.sampled_from(EXPONENTS))
def test_lmo(W, q):
    norm = SchattenNorm(q)
    point = norm.lmo(W)
    assert norm.value(point) <= 1.0 + 1e-12
    assert np.sum(point * W) == pytest.approx(-norm.dual(W), rel=1e-12, abs=1e-300)
    if q == 1.0 and np.any(W):
        assert np.linalg.matrix_rank(point) == 1


@given(matrices(), st.floats(0.0, 1.25, width=16))
def test_prox_is_that_of_the_singular_values(W, share):
    left, values, right = np.linalg.svd(W, full_matrices=False)
    for q, vector in ((1.0, MixedNorm(1, 1)), (2.0, MixedNorm(2, 2)), (INF, MixedNorm(INF, INF))):
        norm = SchattenNorm(q)
        tau, radius = share * norm.dual(W), share * norm.value(W)
        wanted = (left * vector.prox(values[:, None], tau)[:, 0]) @ right
        np.testing.assert_allclose(norm.prox(W, tau), wanted, atol=1e-12)
        wanted = (left * vector.project(values[:, None], radius)[:, 0]) @ right
        found = norm.project(W, radius)
        np.testing.assert_allclose(found, wanted, atol=1e-12)
        assert norm.value(found) <= radius * (1.0 + 1e-12)
        np.testing.assert_allclose(norm.project(found, radius), found, atol=1e-13)


@pytest.mark.parametrize("shape", [(300, 200), (180, 260)])
def test_large(shape):
    rng = np.random.default_rng(0)
    W = rng.standard_normal((shape[0], 4)) @ rng.standard_normal((4, shape[1]))
    W = W + 0.1 * matrix(shape)
    norm = TraceNorm()
    left, values, right = np.linalg.svd(W, full_matrices=False)
    tau = 0.1 * values[0]
    wanted = (left * np.maximum(values - tau, 0.0)) @ right
    np.testing.assert_allclose(norm.prox(W, tau), wanted, atol=1e-10 * values[0])
    radius = 0.3 * norm.value(W)
    found = norm.project(W, radius)
    assert norm.value(found) == pytest.approx(radius, rel=1e-12)
    gap = radius * norm.dual(W - found) - np.sum((W - found) * found)
    assert abs(gap) <= 1e-10 * radius * values[0]
    np.testing.assert_allclose(norm.project(found, radius), found, atol=1e-12 * radius)
    np.testing.assert_array_equal(norm.project(W, 2.0 * norm.value(W)), W)


def test_prox_factors():
    W = matrix((8, 5))
    norm = TraceNorm()
    tau = 0.5 * norm.dual(W)
    left, values, right = norm.prox_factors(W, tau)
    wanted = np.linalg.svd(W, compute_uv=False) - tau
    np.testing.assert_allclose(values, wanted[wanted > 0.0], rtol=1e-12)
    np.testing.assert_allclose((left * values) @ right, norm.prox(W, tau), atol=1e-14)
    again = norm.prox_factors(W, tau, start=right.T)
    np.testing.assert_allclose(again[1], values, rtol=1e-12)
    for share in (1.0 + 1e-9, 1e300, INF):
        left, values, right = norm.prox_factors(W, share * norm.dual(W))
        assert (left.shape, values.shape, right.shape) == ((8, 0), (0,), (0, 5))
    left, values, right = norm.prox_factors(np.zeros((8, 5)), 0.0)
    assert (left.shape, values.shape, right.shape) == ((8, 0), (0,), (0, 5))


@pytest.mark.parametrize("start", [np.ones((8, 2)), np.ones(5), "ones"])
def test_bad_start(start):
    with pytest.raises(ValueError, match="start must have one column per guess and 5 rows"):
        TraceNorm().prox_factors(matrix((8, 5)), 0.1, start=start)


@given(matrices(), st.sampled_from([1.1, 1.5, 2.0]))
def test_mirror_formula(W, q):
    norm, p = SchattenNorm(q), conjugate(q)
    left, values, right = np.linalg.svd(W, full_matrices=False)
    size = np.linalg.norm(values, p)
    wanted = (left * values ** (p - 1)) @ right / (size ** (p - 2) if size else 1.0)
    np.testing.assert_allclose(norm.mirror(W), wanted, atol=1e-11)
    assert norm.value(norm.mirror(W)) == pytest.approx(norm.dual(W), rel=1e-11)


@pytest.mark.parametrize("q", [1.1, 1.5, 2.0])
def test_round_trip(q):
    W, norm = matrix((6, 4)), SchattenNorm(q)
    np.testing.assert_allclose(norm.link(norm.mirror(W)), W, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(norm.mirror(norm.link(W)), W, rtol=1e-8, atol=1e-10)


@given(matrices(), st.integers(0, 99), st.sampled_from([1.1, 1.5, 2.0]))
def test_strong_convexity(u, seed, q):
    norm, v = SchattenNorm(q), u + matrix(u.shape, seed)
    gap = 0.5 * norm.value(v) ** 2 - 0.5 * norm.value(u) ** 2 - np.sum(norm.link(u) * (v - u))
    assert gap >= 0.5 * norm.strong_convexity() * norm.value(v - u) ** 2 - 1e-11
    assert norm.strong_convexity() == q - 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("q", [1.01, 1.0 + 1e-6, 1.0 + 3e-16])
def test_mirror_maps_near_the_trace_norm(q, dtype):
    W, norm = matrix((6, 4)).astype(dtype), SchattenNorm(q)
    left, values, right = np.linalg.svd(W, full_matrices=False)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        image, back = norm.mirror(W), norm.link(W)
    size = norm.dual(W)
    wanted = size * (left * (values / values[0]) ** min(conjugate(q) - 1.0, 1e30)) @ right
    np.testing.assert_allclose(image, wanted, rtol=1e-4, atol=1e-4 * size)
    wanted = norm.value(W) * (left * (values / norm.value(W)) ** (q - 1.0)) @ right
    np.testing.assert_allclose(back, wanted, rtol=1e-4, atol=1e-4 * norm.value(W))


def test_large_exponents():
    W = np.diag([3.0, 3.0, 1.0])
    for q in (1e3, 1e10, 1e300):
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            for dtype in (np.float32, np.float64):
                norm = SchattenNorm(q)
                assert norm.value(W.astype(dtype)) == pytest.approx(3.0, rel=1e-3)
                assert norm.dual(W.astype(dtype)) == pytest.approx(7.0, rel=1e-2)
                assert norm.value(norm.lmo(W.astype(dtype))) == pytest.approx(1.0, rel=1e-6)


def test_twin():
    norm = TraceNorm()
    p = math.log(50)
    assert norm.surrogate((50, 400)) == SchattenNorm(pytest.approx(p / (p - 1.0)))
    assert norm.surrogate((400, 3)) == SchattenNorm(2.0)
    assert SchattenNorm(1).surrogate((1, 3)) == SchattenNorm(2.0)
    W = matrix((50, 60))
    twin = norm.surrogate(W.shape)
    assert twin.value(W) <= norm.value(W) <= math.e * twin.value(W)


@pytest.mark.parametrize(
    ("name", "exponents"),
    [
        ("prox", {1.0, 2.0, INF}),
        ("project", {1.0, 2.0, INF}),
        ("prox_factors", {1.0}),
        ("surrogate", {1.0}),
        ("mirror", {1.2, 2.0}),
        ("link", {1.2, 2.0}),
        ("strong_convexity", {1.2, 2.0}),
        ("lmo", set(EXPONENTS)),
        ("dual_norm", set(EXPONENTS)),
        ("row_duals", set()),
        ("row_exponent", set()),
    ],
)
def test_abilities(name, exponents):
    for q in EXPONENTS:
        assert hasattr(SchattenNorm(q), name) == (q in exponents)
    assert hasattr(TraceNorm(), name) == (1.0 in exponents)


def test_what_is_missing_is_said():
    with pytest.raises(AttributeError, match=r"SchattenNorm\(q=1.5\) has no prox; Schatten norms"):
        SchattenNorm(1.5).prox(np.ones((2, 2)), 1.0)
    with pytest.raises(AttributeError, match="has no mirror; Schatten norms with 1 < q <= 2"):
        TraceNorm().mirror(np.ones((2, 2)))


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e-30, 1e30, 1e150, 1e300])
@pytest.mark.parametrize("q", EXPONENTS)
def test_scales(q, scale):
    W, norm = matrix((5, 3)), SchattenNorm(q)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert norm.value(scale * W) == pytest.approx(scale * norm.value(W), rel=1e-12)
        np.testing.assert_allclose(norm.lmo(scale * W), norm.lmo(W), atol=1e-12)
        if hasattr(norm, "prox"):
            tau, radius = 0.4 * norm.dual(W), 0.4 * norm.value(W)
            found = norm.prox(scale * W, scale * tau) / scale
            np.testing.assert_allclose(found, norm.prox(W, tau), atol=1e-12)
            found = norm.project(scale * W, scale * radius) / scale
            np.testing.assert_allclose(found, norm.project(W, radius), atol=1e-12)
        if hasattr(norm, "mirror"):
            np.testing.assert_allclose(norm.mirror(scale * W) / scale, norm.mirror(W), atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 2), (1, 1), (0, 3), (3, 0)])
@pytest.mark.parametrize("q", EXPONENTS)
def test_zeros(q, shape):
    zero, norm = np.zeros(shape), SchattenNorm(q)
    assert norm.value(zero) == norm.dual(zero) == 0.0
    assert norm.lmo(zero).shape == shape
    assert not np.any(norm.lmo(zero))
    for name in ("prox", "project"):
        if hasattr(norm, name):
            for level in (0.0, 1.0):
                assert getattr(norm, name)(zero, level).shape == shape
                assert not np.any(getattr(norm, name)(zero, level))
    for name in ("mirror", "link"):
        if hasattr(norm, name):
            assert not np.any(getattr(norm, name)(zero))


def test_duals():
    assert TraceNorm().dual_norm() == SchattenNorm(INF)
    assert SchattenNorm(INF).dual_norm() == SchattenNorm(1.0)
    assert SchattenNorm(1.5).dual_norm() == SchattenNorm(3.0)


def test_copies():
    for norm in (TraceNorm(), SchattenNorm(1.5)):
        for copy in (clone(norm), pickle.loads(pickle.dumps(norm))):
            assert copy == norm
    assert TraceNorm().get_params() == {}
    assert repr(TraceNorm()) == "TraceNorm()"
    assert TraceNorm() != SchattenNorm(1.0)
    assert SchattenNorm().set_params(q=3.0) == SchattenNorm(3.0)


@pytest.mark.parametrize(
    ("q", "error"), [(0.5, ValueError), (math.nan, ValueError), ("1", TypeError), (None, TypeError)]
)
def test_bad_exponents(q, error):
    for call in (SchattenNorm(q).check, lambda: SchattenNorm(q).dual(np.ones((2, 2)))):
        with pytest.raises(error, match=r"SchattenNorm\(q="):
            call()


def test_points_whose_norm_overflows():
    W = np.array([[1.0, -0.9], [-0.5, 0.8], [0.7, 0.6]])
    for tau in (0.0, 0.1, 1.0):
        found = TraceNorm().prox(1.7e308 * W, 1.7e308 * tau) / 1.7e308
        np.testing.assert_allclose(found, TraceNorm().prox(W, tau), atol=1e-15)
    found = SchattenNorm(1.5).mirror(1.7e308 * W) / 1.7e308
    np.testing.assert_allclose(found, SchattenNorm(1.5).mirror(W))
