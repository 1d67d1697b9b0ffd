"""Quasi-Newton directions against a textbook two-loop recursion and Newton's step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixnorm._array import to_numpy
from mixnorm.engines._core.lbfgs import History


def positive(size, rng):
    """A symmetric matrix with eigenvalues from 1 to 10."""
    basis = np.linalg.qr(rng.standard_normal((size, size)))[0]
    return basis * np.linspace(1.0, 10.0, size) @ basis.T


def two_loop(pairs, model, gradient):
    """Nocedal and Wright, algorithm 7.4, around ``model`` scaled by the last pair."""
    q, firsts = gradient.copy(), []
    for step, change in reversed(pairs):
        firsts.append(step @ q / (step @ change))
        q = q - firsts[-1] * change
    step, change = pairs[-1]
    r = model @ q * (step @ change / (change @ model @ change))
    for (step, change), first in zip(pairs, reversed(firsts), strict=True):
        r = r + step * (first - change @ r / (step @ change))
    return r


def record(history, pairs):
    for step, change in pairs:
        history.record(step, change)


def draw(size, count, seed):
    """Steps of a quadratic, and a model of its inverse Hessian."""
    rng = np.random.default_rng(seed)
    hessian, model = positive(size, rng), positive(size, rng)
    steps = rng.standard_normal((count, size))
    return model, [(step, hessian @ step) for step in steps], rng.standard_normal(size)


@given(
    size=st.integers(1, 8),
    count=st.integers(1, 10),
    memory=st.integers(1, 7),
    seed=st.integers(0, 1000),
)
def test_two_loop_recursion(size, count, memory, seed):
    model, pairs, gradient = draw(size, count, seed)
    history = History(lambda vector: model @ vector, memory)
    record(history, pairs)
    wanted = two_loop(pairs[-memory:], model, gradient)
    np.testing.assert_allclose(history.direction(gradient), wanted, rtol=1e-6, atol=1e-6)


def test_without_steps_the_model_decides():
    model, _, gradient = draw(5, 1, 0)
    history = History(lambda vector: model @ vector)
    np.testing.assert_array_equal(history.direction(gradient), model @ gradient)


@pytest.mark.parametrize("size", [2, 5])
def test_newton_after_as_many_exact_steps_as_dimensions(size):
    rng = np.random.default_rng(size)
    hessian, model = positive(size, rng), positive(size, rng)
    minimum, x = rng.standard_normal((2, size))
    history = History(lambda vector: model @ vector, memory=size)
    for _ in range(size):
        gradient = hessian @ (x - minimum)
        direction = history.direction(gradient)
        length = gradient @ direction / (direction @ hessian @ direction)
        history.record(-length * direction, -length * hessian @ direction)
        x = x - length * direction
    np.testing.assert_allclose(x, minimum, atol=1e-9)
    vector = rng.standard_normal(size)
    wanted = np.linalg.solve(hessian, vector)
    np.testing.assert_allclose(history.direction(vector), wanted, rtol=1e-7, atol=1e-9)


@given(size=st.integers(1, 6), count=st.integers(0, 8), seed=st.integers(0, 100))
def test_directions_descend(size, count, seed):
    model, pairs, gradient = draw(size, count, seed)
    history = History(lambda vector: model @ vector)
    record(history, pairs)
    assert gradient @ history.direction(gradient) > 0.0


def test_the_secant_equation():
    model, pairs, _ = draw(6, 4, 3)
    history = History(lambda vector: model @ vector)
    record(history, pairs)
    step, change = pairs[-1]
    np.testing.assert_allclose(history.direction(change), step, rtol=1e-9)


@pytest.mark.parametrize("curvature", [0.0, -1.0, 1e-14])
def test_steps_without_curvature_are_forgotten(curvature):
    model, pairs, gradient = draw(4, 3, 1)
    history = History(lambda vector: model @ vector)
    record(history, pairs)
    before = history.direction(gradient)
    step = np.array([1.0, 0.0, 0.0, 0.0])
    history.record(step, np.array([curvature, 1.0, 0.0, 0.0]))
    np.testing.assert_array_equal(history.direction(gradient), before)


def test_single_precision_stays():
    model, pairs, gradient = draw(4, 3, 2)
    narrow = model.astype(np.float32)
    history = History(lambda vector: narrow @ vector)
    record(history, [(s.astype(np.float32), c.astype(np.float32)) for s, c in pairs])
    direction = history.direction(gradient.astype(np.float32))
    assert direction.dtype == np.float32
    np.testing.assert_allclose(direction, two_loop(pairs, model, gradient), rtol=1e-3, atol=1e-3)


def test_namespaces_agree(xp):
    model, pairs, gradient = draw(5, 8, 4)
    here, there = History(lambda v: model @ v), History(lambda v: xp.asarray(model) @ v)
    record(here, pairs)
    record(there, [(xp.asarray(step), xp.asarray(change)) for step, change in pairs])
    got = there.direction(xp.asarray(gradient))
    np.testing.assert_allclose(to_numpy(got), here.direction(gradient), rtol=1e-9)
