"""The penalty of blocks: its conjugate, its weights, and what they promise each other."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mixnorm.engines.multikernel import KernelPenalty

N = 4
QS = [2.0, 2.5, 5.0, 40.0, math.inf]
sizes_ = arrays(float, N, elements=st.floats(0.0, 10.0).map(lambda value: round(value, 2)))
penalties = st.builds(
    KernelPenalty,
    st.sampled_from(QS),
    arrays(float, N, elements=st.sampled_from([0.1, 1.0, 3.0])),
    arrays(float, N, elements=st.sampled_from([0.0, 0.5, 4.0])),
)


def written_out(penalty, sizes):
    s = 1.0 if math.isinf(penalty.q) else penalty.q / (penalty.q - 1.0)
    return 0.5 * np.linalg.norm(sizes, s) ** 2 + penalty.offsets @ sizes


@given(penalty=penalties, weights=sizes_, roots=sizes_)
def test_value(penalty, weights, roots):
    """Sizes are of w_m = weights_m theta_m, times the root of the scale."""
    sizes = penalty.sizes(weights, roots**2)
    np.testing.assert_allclose(sizes, weights * roots * np.sqrt(penalty.scales))
    assert penalty.value(sizes) == pytest.approx(written_out(penalty, sizes), rel=1e-12)


@given(penalty=penalties, sizes=sizes_, roots=sizes_)
def test_the_conjugate_bounds_inner_products(penalty, sizes, roots):
    """<w, theta> <= penalty(w) + conjugate(theta); v_m are scaled sizes of blocks."""
    inner = np.sum(sizes / np.sqrt(penalty.scales) * roots)
    bound = penalty.value(sizes) + penalty.conjugate(roots**2)
    assert inner <= bound * (1.0 + 1e-9) + 1e-9


@given(penalty=penalties, roots=sizes_)
def test_the_link_attains_the_conjugate(penalty, roots):
    weights = penalty.link(roots**2)
    assert np.all(weights >= 0.0)
    inner = np.sum(weights * roots**2)
    value = penalty.value(penalty.sizes(weights, roots**2))
    assert inner - value == pytest.approx(penalty.conjugate(roots**2), rel=1e-6, abs=1e-9)


@given(penalty=penalties, sizes=sizes_, others=sizes_)
def test_quadratic_penalties_touch_from_above(penalty, sizes, others):
    """sum |w_m|^2 / (2 weights_m), up to a constant, is nowhere below the penalty."""
    if not np.any(sizes > 0.0):
        assert not np.any(penalty.weights(sizes))
        return
    sizes, others = np.maximum(sizes, 0.01), np.maximum(others, 0.0)
    weights = penalty.weights(sizes) * penalty.scales  # of scaled sizes

    def quadratic(values):
        return 0.5 * np.sum(values**2 / weights)

    constant = penalty.value(sizes) - quadratic(sizes)
    assert quadratic(others) + constant >= penalty.value(others) * (1.0 - 1e-9) - 1e-9


@pytest.mark.parametrize("p", [1.0, 1.2, 2.0, 7.0, math.inf])
def test_weights_of_a_norm(p):
    """min over |rho mu|_p <= 1 of sum |w_m|^2 / (2 mu_m), by brute force over many mu."""
    rng = np.random.default_rng(0)
    scales, norms = rng.uniform(0.3, 3.0, size=N), rng.uniform(0.1, 2.0, size=N)
    penalty = KernelPenalty.of_weights(p, scales)
    sizes = np.sqrt(scales) * norms
    best = penalty.value(sizes)
    weights = penalty.weights(sizes)
    assert np.linalg.norm(scales * weights, p) == pytest.approx(1.0)
    assert 0.5 * np.sum(norms**2 / weights) == pytest.approx(best)
    draws = rng.dirichlet(np.ones(N), size=5000) + 1e-12
    draws /= np.linalg.norm(scales * draws, p, axis=1)[:, None]
    assert np.all(0.5 * np.sum(norms**2 / draws, axis=1) >= best * (1.0 - 1e-12))
    np.testing.assert_allclose(penalty.normalize(5.0 * weights), weights)


def test_what_kind_of_penalty_it_is():
    ones = np.ones(N)
    assert KernelPenalty.of_weights(math.inf, ones).fixed
    assert not KernelPenalty.of_weights(2.0, ones).fixed
    assert not KernelPenalty(2.0, ones, 0.1 * ones).fixed
    assert KernelPenalty.of_weights(1.0, ones).sharp
    assert KernelPenalty(3.0, ones, 0.1 * ones).sharp
    assert not KernelPenalty.of_weights(1.5, ones).sharp


@pytest.mark.parametrize("q", QS)
def test_sizes_of_any_scale(q):
    """Powers neither overflow nor vanish."""
    penalty = KernelPenalty(q, np.ones(N), np.zeros(N))
    sizes = np.array([1.0, 0.5, 0.0, 1e-3])
    for unit in (1e-120, 1e120):
        assert penalty.value(unit * sizes) == pytest.approx(unit**2 * penalty.value(sizes))
        assert penalty.conjugate(unit**2 * sizes) == pytest.approx(
            unit**2 * penalty.conjugate(sizes)
        )
        np.testing.assert_allclose(penalty.weights(unit * sizes), penalty.weights(sizes))
        np.testing.assert_allclose(penalty.link(unit**2 * sizes), penalty.link(sizes))


def test_nothing_is_left_of_blocks_below_their_offsets():
    penalty = KernelPenalty(4.0, np.ones(N), np.array([1.0, 2.0, 3.0, 0.0]))
    energies = np.array([0.9, 3.9, 16.0, 0.0])
    weights = penalty.link(energies)
    assert np.flatnonzero(weights).tolist() == [2]
    assert not np.any(penalty.link(np.array([0.9, 3.9, 8.9, 0.0])))
    assert penalty.conjugate(np.array([0.9, 3.9, 8.9, 0.0])) == 0.0


def test_unit_norm_with_offsets_leaves_weights_alone():
    penalty = KernelPenalty(4.0, np.ones(N), np.full(N, 0.1))
    weights = np.array([0.3, 2.0, 0.0, 1.0])
    assert np.array_equal(penalty.normalize(weights), weights)
