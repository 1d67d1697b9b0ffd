"""The compiled parts of online mirror descent against plain NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from mixnorm.engines.mirror import layout as layout
from mixnorm.engines.mirror import rows_jit as jit
from mixnorm.engines.mirror import sums_jit as sums_jit
from mixnorm.engines.mirror import vectors_jit as vectors


def called(function):
    """A compiled function with the way in from Python, which the inner ones do without."""
    return njit(error_model="numpy")(function.py_func)


raise_to, climb, power_norm = map(called, (vectors.raise_to, vectors.climb, sums_jit.power_norm))
whole_scores, entry_scores = called(jit.whole_scores), called(jit.entry_scores)
add_outer, derive = called(sums_jit.add_outer), called(sums_jit.derive)

each_power = pytest.mark.parametrize("power", [2.0, 2.3, 3.0, 4.0, 6.9, 13.8, 30.0])


def scratch(size):
    return np.empty((layout.N_SCRATCH, size + 1))


def powers(values, exponent):
    out, held, other = (np.full(len(values) + 2, np.nan) for _ in range(3))
    raise_to(values, exponent, out, held, other, len(values))
    assert np.all(np.isnan(out[len(values) :]))
    return out[: len(values)]


# --- powers


@pytest.mark.parametrize("exponent", [0.3, 0.5, 1.0, 1.2346, 2.0, 3.7, 7.0, 13.1, 30.0])
def test_powers(exponent):
    rng = np.random.default_rng(0)
    values = np.concatenate([
        10.0 ** rng.uniform(-300, 300, 5000), 10.0 ** rng.uniform(-3, 3, 5000),
        2.0 ** np.arange(-60, 61), 1.0 + rng.normal(size=1000) * 1e-10,
    ])  # fmt: skip
    with np.errstate(over="ignore", under="ignore"):
        wanted = values**exponent
    inside = (wanted > 1e-300) & (wanted < 1e300)
    assert np.sum(inside) > 2000
    found = powers(values, exponent)
    error = np.abs(found[inside] / wanted[inside] - 1.0)
    assert np.max(error) < 1e-12
    near = (values > 1e-3) & (values < 1e3) & inside
    assert np.max(np.abs(found[near] / wanted[near] - 1.0)) < 1e-13
    assert np.all(np.isfinite(found))
    assert np.all(found > 0.0)


@given(value=st.floats(1e-300, 1e300), exponent=st.floats(0.3, 30.0))
def test_any_power(value, exponent):
    wanted = math.exp(min(max(exponent * math.log(value), -700.0), 700.0))
    found = powers(np.array([value]), exponent)[0]
    if 1e-300 < wanted < 1e300:
        assert found == pytest.approx(value**exponent, rel=1e-12)


def test_powers_out_of_range_are_at_its_ends():
    found = powers(np.array([1e-300, 1e300]), 30.0)
    assert found[0] < 1e-300
    assert 1e300 < found[1] < math.inf


def test_powers_of_zero():
    values = np.array([0.0, 2.0, -0.0, 5e-324])
    found = powers(values, 3.0)
    assert found[[0, 2]].tolist() == [0.0, 0.0]
    assert found[1] == pytest.approx(8.0, rel=1e-14)
    assert 0.0 <= found[3] < 1e-300


# --- norms


@each_power
@pytest.mark.parametrize("unit", [1e-150, 1e-6, 1.0, 1e6, 1e150])
@pytest.mark.parametrize("size", [1, 2, 10, 1000])
def test_norms_of_vectors(power, unit, size):
    rng = np.random.default_rng(size)
    for vector in (rng.normal(size=size), np.ones(size), rng.normal(size=size) ** 5):
        wanted = np.sum(np.abs(vector) ** power) ** (1.0 / power)
        found = power_norm(vector * unit, size, power, scratch(size)) / unit
        assert found == pytest.approx(wanted, rel=1e-12)


def test_norms_of_part_of_a_vector():
    vector = np.array([3.0, -4.0, 100.0])
    for power in (2.0, 3.0):
        wanted = (3.0**power + 4.0**power) ** (1.0 / power)
        assert power_norm(vector, 2, power, scratch(3)) == pytest.approx(wanted)
        assert power_norm(np.zeros(3), 3, power, scratch(3)) == 0.0
        assert power_norm(vector, 0, power, scratch(3)) == 0.0


# --- sums


def levels_of(width):
    levels = [0, width]
    while width > 1:
        width = -(-width // vectors.BRANCHES)
        levels.append(levels[-1] + width)
    return np.asarray(levels, dtype=np.int64)


@pytest.mark.parametrize("width", [1, 2, 63, 64, 65, 4096, 4097, 300_000])
def test_trees_of_sums(width):
    rng = np.random.default_rng(width)
    levels = levels_of(width)
    tree = np.full(levels[-1], np.nan)
    tree[:width] = rng.uniform(size=width)
    everything = np.empty(0, dtype=np.int64)
    climb(tree, levels, everything, width)
    assert tree[-1] == pytest.approx(np.sum(tree[:width]), rel=1e-13)
    for _ in range(20):
        index = np.unique(rng.integers(width, size=5))
        tree[index] = rng.uniform(size=len(index)) * 10.0
        climb(tree, levels, np.append(index, [-1, -1]), len(index))
        again = tree.copy()
        climb(again, levels, everything, width)
        assert np.array_equal(tree, again)  # parts are summed as all are
    assert tree[-1] == pytest.approx(math.fsum(tree[:width]), rel=1e-13)


# --- whole samples and their entries


@pytest.fixture
def sample():
    """A matrix with a row for each of seven outputs, and a sample with few entries."""
    rng = np.random.default_rng(0)
    matrix, value = rng.normal(size=(7, 50)), np.zeros(50)
    index = np.sort(rng.choice(50, size=6, replace=False))
    value[index] = rng.normal(size=6)
    codes = np.zeros(layout.N_CODES, dtype=np.int64)
    codes[layout.OUTPUTS] = 7
    return matrix, value, index, codes


@pytest.mark.parametrize("output", [-1, 0, 5])
def test_scores(sample, output):
    matrix, value, index, codes = sample
    whole, entries = np.full(7, np.nan), np.full(7, np.nan)
    whole_scores(50, value, 0.5, output, codes, matrix, whole)
    entry_scores(6, index, value[index], 0.5, output, codes, matrix, entries)
    wanted = 0.5 * matrix @ value
    if output >= 0:
        wanted[np.arange(7) != output] = np.nan
    np.testing.assert_allclose(whole, wanted, rtol=1e-13)
    np.testing.assert_allclose(entries, wanted, rtol=1e-13)


def test_steps(sample):
    matrix, value, index, codes = sample
    residual = np.array([1.0, 0.0, -2.0, 0.5, 0.0, 0.0, 3.0])
    wanted = matrix - np.outer(residual, value)
    whole, entries = matrix.copy(), matrix.copy()
    add_outer(50, np.empty(0, dtype=np.int64), value, residual, codes, whole)
    add_outer(6, index, value[index], residual, codes, entries)
    np.testing.assert_allclose(whole, wanted, rtol=1e-14)
    np.testing.assert_allclose(entries, wanted, rtol=1e-14)


@pytest.mark.parametrize("kind", [layout.COLUMNS, layout.ENTRIES])
@each_power
def test_what_is_derived(sample, kind, power):
    matrix, _, index, codes = sample
    codes[layout.KIND], codes[layout.SIZED], codes[layout.RULE] = kind, 1, layout.FIXED
    constants = np.zeros(5)
    constants[layout.POWER] = power
    if kind == layout.ENTRIES and power == 2.0:
        pytest.skip("entries of the plain norm are columns")
    levels, numbers = levels_of(50), np.zeros(layout.N_NUMBERS)
    numbers[layout.UNIT] = 4.0
    matrix = matrix / 4.0
    norms = (np.abs(matrix) ** power).sum(axis=0) ** (1 / power)
    norms = norms if kind == layout.ENTRIES else np.sqrt(np.sum(matrix**2, axis=0))
    for places, count in ((np.empty(0, dtype=np.int64), 50), (np.append(index, 0), 6)):
        image, column, tree = (
            np.zeros((7, 50)),
            np.zeros((layout.N_COLUMN, 50)),
            np.zeros(levels[-1]),
        )
        derive(count, places, codes, constants, 4.0 * matrix, image, column, tree, levels,
                   numbers, scratch(50))  # fmt: skip
        own = np.arange(50) if count == 50 else index
        np.testing.assert_allclose(tree[own], norms[own] ** power, rtol=1e-12)
        np.testing.assert_allclose(tree[-1], np.sum(norms[own] ** power), rtol=1e-12)
        if kind == layout.ENTRIES:
            wanted = np.sign(matrix) * np.abs(matrix) ** (power - 1.0)
            np.testing.assert_allclose(image[:, own], wanted[:, own], rtol=1e-12)
        elif power != 2.0:
            np.testing.assert_allclose(
                column[layout.FACTOR, own], norms[own] ** (power - 2), rtol=1e-12
            )


def test_entries_of_rows():
    names = ("count_entries", "pack", "pack_stored", "spread", "shift")
    count_entries, pack, pack_stored, spread, shift = (called(getattr(vectors, n)) for n in names)
    assert count_entries(np.array([0.0, 1.0, -0.0, 2.0])) == 2
    assert count_entries(np.empty(0)) == 0
    for bad in (np.nan, np.inf, -np.inf):
        assert count_entries(np.array([0.0, bad, 1.0])) == -1
    index, value = np.zeros(5, dtype=np.int64), np.zeros(5)
    pack(np.array([0.0, 7.0, 0.0, 8.0]), 0, index, value)
    assert index[:2].tolist() == [2, 4]
    assert value[:2].tolist() == [7.0, 8.0]
    pack_stored(np.array([1, 2, 3]), np.array([7.0, 0.0, 8.0]), 1, index, value)
    assert index[1:3].tolist() == [2, 4]
    assert value[1:3].tolist() == [7.0, 8.0]
    whole = np.full(5, np.nan)
    spread(np.array([1, 3]), np.array([7.0, 8.0]), whole)
    assert whole.tolist() == [0.0, 0.0, 7.0, 0.0, 8.0]
    shift(np.array([1.0, 2.0, 3.0, 4.0]), whole)
    assert whole.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
