"""The compiled loops of block coordinate descent against plain NumPy twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from mixnorm.engines.proximal import descent_jit as jit
from mixnorm.norms import MixedNorm

# Compiled functions with the way in from Python, which the inner ones do without.
shrink, level = njit(jit.shrink.py_func), njit(jit.level.py_func)
# The compiled loops' numbers for row norms, and the norms themselves.
KINDS = {1: MixedNorm(1, 1), 2: MixedNorm(2, 1), 0: MixedNorm(np.inf, 1)}
each_kind = pytest.mark.parametrize("kind", KINDS)
each_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])
finite = st.floats(-100.0, 100.0, width=32)


def slow_level(row, amount):
    """The cut by bisection of ``sum(max(|row| - c, 0)) = amount``."""
    low, high = 0.0, float(np.max(np.abs(row)))
    if np.sum(np.abs(row)) <= amount:
        return 0.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if np.sum(np.maximum(np.abs(row) - middle, 0.0)) > amount:
            low = middle
        else:
            high = middle
    return high


def slow_shrink(row, amount, kind):
    if kind == 1:
        return np.sign(row) * np.maximum(np.abs(row) - amount, 0.0)
    if kind == 2:
        size = np.sqrt(np.sum(row**2))
        return row * max(0.0, 1.0 - amount / size) if size > 0.0 else row
    cut = slow_level(row, amount)
    return np.clip(row, -cut, cut)


def slow_epochs(weights, gradient, steps, alpha, kind, epochs):
    """The descent, with the gradient at every block computed anew by ``gradient(weights)``."""
    weights = weights.copy()
    for _ in range(epochs):
        for j in range(len(weights)):
            if steps[j] > 0.0:
                point = weights[j] - gradient(weights)[j] / steps[j]
                weights[j] = slow_shrink(point, alpha / steps[j], kind)
    return weights


@each_kind
@given(row=st.lists(finite, min_size=1, max_size=9), amount=st.floats(0.0, 300.0))
def test_shrink(kind, row, amount):
    row = np.asarray(row)
    found = row.copy()
    shrink(found, amount, kind)
    np.testing.assert_allclose(found, slow_shrink(row, amount, kind), atol=1e-10)
    np.testing.assert_allclose(found[None], KINDS[kind].prox(row[None], amount), atol=1e-10)


@given(row=st.lists(finite, min_size=1, max_size=9), amount=st.floats(0.0, 300.0))
def test_level(row, amount):
    row = np.asarray(row)
    assert level(row, amount) == pytest.approx(slow_level(row, amount), abs=1e-10)


def near_ties(count, size, dtype, seed):
    """Draw rows of few values, which differ by rounding, and amounts that cut where they lie."""
    rng = np.random.default_rng(seed)
    values = rng.integers(1, 200, (count, 2)) / 100.0
    rows = np.take_along_axis(values, rng.integers(0, 2, (count, size)), axis=1)
    rows *= 1.0 + np.finfo(dtype).eps * rng.integers(-2, 3, (count, size))
    rows *= rng.choice([-1.0, 1.0], (count, size))
    cuts = np.abs(rows[np.arange(count), rng.integers(0, size, count)])
    amounts = np.sum(np.maximum(np.abs(rows) - cuts[:, None], 0.0), axis=1)
    return rows.astype(dtype), amounts.astype(dtype)


def sorted_levels(rows, amounts):
    """The cuts of rows by sorting, all at once."""
    sizes = -np.sort(-np.abs(rows.astype(np.float64)), axis=1)
    cuts = (np.cumsum(sizes, axis=1) - amounts[:, None]) / np.arange(1, rows.shape[1] + 1)
    return np.maximum(np.max(cuts, axis=1), 0.0)


class Counted:
    """A row that counts how often it is read, and has enough after some time."""

    def __init__(self, row):
        self._row, self.shape, self.left = row, row.shape, (len(row) + 2) * (len(row) + 1)

    def __getitem__(self, place):
        self.left -= 1
        assert self.left >= 0, f"the loop goes on and on for {self._row!r}"
        return self._row[place]


@each_dtype
@pytest.mark.parametrize("size", [3, 4, 9])
def test_level_of_near_ties(size, dtype):
    rows, amounts = near_ties(60_000, size, dtype, seed=size)
    if size == 4:
        rows[0], amounts[0] = [1.16, 0.86, 0.86, 0.86], 0.3
    for row, amount in zip(rows[:1_000], amounts[:1_000], strict=True):
        jit.level.py_func(Counted(row), amount)  # first, as compiled loops cannot be interrupted
    found = [level(row, amount) for row, amount in zip(rows, amounts, strict=True)]
    expected = sorted_levels(rows, amounts)
    np.testing.assert_allclose(found, expected, rtol=0, atol=20 * np.finfo(dtype).eps)


@each_kind
@each_dtype
def test_shrink_keeps_zero_and_the_dtype(kind, dtype):
    for size in (1, 4):
        row = np.zeros(size, dtype=dtype)
        shrink(row, row.dtype.type(0.5), kind)
        assert np.all(row == 0.0)
        shrink(row, row.dtype.type(0.0), kind)
        assert np.all(row == 0.0)
        assert row.dtype == dtype


def drawn(dtype, n_rows=7, n_outputs=3, n_samples=20, seed=0):
    rng = np.random.default_rng(seed)
    columns = rng.standard_normal((n_rows, n_samples))
    columns[2] = 0.0  # a column that does nothing
    columns[4] = columns[3]
    weights = rng.standard_normal((n_rows, n_outputs)) * (rng.uniform(size=(n_rows, 1)) < 0.6)
    residual = rng.standard_normal((n_samples, n_outputs))
    return [np.ascontiguousarray(a, dtype=dtype) for a in (columns, weights, residual)]


@each_kind
@each_dtype
@pytest.mark.parametrize("n_outputs", [1, 3, 8])
def test_shared_epochs(kind, dtype, n_outputs):
    columns, weights, residual = drawn(dtype, n_outputs=n_outputs)
    gram, start, slope = columns @ columns.T, weights.copy(), columns @ residual
    steps, alpha = np.diagonal(gram).copy(), weights.dtype.type(2.0)

    def gradient(moved):
        return slope + gram @ (moved - start)

    found, kept = weights.copy(), slope.copy()
    jit.shared_epochs(gram, found, kept, steps, alpha, kind, 3)
    wanted = slow_epochs(start, gradient, steps, alpha, kind, 3)
    close = 1e-3 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(found, wanted, atol=close)
    np.testing.assert_allclose(kept, gradient(found), atol=20 * close)
    np.testing.assert_array_equal(found[2], start[2])


@each_kind
@each_dtype
@pytest.mark.parametrize("n_outputs", [1, 3, 8])
def test_separate_epochs(kind, dtype, n_outputs):
    _, weights, residual = drawn(dtype, n_outputs=n_outputs)
    parts = [drawn(dtype, seed=seed)[0] for seed in range(n_outputs)]
    grams = np.stack([columns @ columns.T for columns in parts])
    slope = np.stack([c @ residual[:, r] for r, c in enumerate(parts)], axis=1)
    start, alpha = weights.copy(), weights.dtype.type(2.0)
    steps = np.max(np.diagonal(grams, axis1=1, axis2=2), axis=0)

    def gradient(moved):
        return slope + np.einsum("rij,jr->ir", grams, moved - start)

    found, kept = weights.copy(), slope.copy()
    by_row = np.ascontiguousarray(np.moveaxis(grams, 0, 2))
    jit.separate_epochs(by_row, found, kept, steps, alpha, kind, 3)
    wanted = slow_epochs(start, gradient, steps, alpha, kind, 3)
    close = 1e-3 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(found, wanted, atol=close)
    np.testing.assert_allclose(kept, gradient(found), atol=20 * close)


@each_kind
@each_dtype
@pytest.mark.parametrize("n_outputs", [1, 3, 8])
def test_residual_epochs(kind, dtype, n_outputs):
    columns, weights, residual = drawn(dtype, n_outputs=n_outputs)
    start, steps = weights.copy(), np.sum(columns**2, axis=1)
    alpha = weights.dtype.type(2.0)

    def gradient(moved):
        return columns @ (residual + columns.T @ (moved - start))

    found, kept = weights.copy(), residual.copy()
    jit.residual_epochs(columns, found, kept, steps, alpha, kind, 3)
    wanted = slow_epochs(start, gradient, steps, alpha, kind, 3)
    close = 1e-3 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(found, wanted, atol=close)
    np.testing.assert_allclose(kept, residual + columns.T @ (found - start), atol=20 * close)
