"""Projections on balls of sums, against bisection and quadratic programs."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq

from mixnorm._array import to_numpy
from mixnorm.norms import ball
from mixnorm.norms.ball import (
    SortedRows,
    find_common_cuts,
    find_height,
    find_row_cuts,
    project_magnitudes,
)

# Whole numbers give ties, quarters give values between.
SIZES = st.one_of(st.integers(0, 3).map(float), st.floats(0.0, 10.0, width=16))


def vectors(most=12):
    return arrays(np.float64, st.integers(1, most), elements=SIZES)


def threshold(values, radius):
    """Return where values are cut off, by bisection."""
    if radius == 0.0:
        return values.max()
    return brentq(lambda t: np.maximum(values - t, 0.0).sum() - radius, 0.0, values.max() + 1.0)


@given(vectors(), st.floats(0.01, 0.99))
def test_shrink(values, share):
    assume(values.sum() > 0.01)
    radius = share * values.sum()
    wanted = np.maximum(values - threshold(values, radius), 0.0)
    found = project_magnitudes(values.copy(), radius)
    np.testing.assert_allclose(found, wanted, atol=1e-10)
    assert found.sum() == pytest.approx(radius, rel=1e-14)


@given(vectors(), st.floats(0.01, 0.99))
def test_height_sorts_in_the_end(values, share):
    assume(values.sum() > 0.01)
    radius = share * values.sum()
    largest, t = find_height(values, radius)
    sorted_height = float(SortedRows(values[None, :].copy()).find_heights(radius)[0][0])
    assert t == pytest.approx(sorted_height, rel=1e-13)
    assert largest == values.max()


def test_many_looks(monkeypatch):
    """Values of which each look drops one are sorted in the end."""
    values = 2.0 ** np.arange(40)
    wanted = find_height(values, 1.0)
    monkeypatch.setattr(ball, "_MOST_PASSES", 0)
    assert find_height(values, 1.0) == pytest.approx(wanted, rel=1e-15)
    values = np.random.default_rng(0).uniform(size=1000)
    sorted_height = find_height(values, 100.0)
    monkeypatch.setattr(ball, "_MOST_PASSES", 100)
    assert find_height(values, 100.0) == pytest.approx(sorted_height, rel=1e-14)


def test_a_radius_far_below_the_values():
    values = 1.0 + 1e-13 * np.arange(4.0)
    depth = values - values.max()
    found = project_magnitudes(values.copy(), 1e-13)
    assert found.sum() == pytest.approx(1e-13, rel=1e-10)
    assert np.argmax(found) == 3
    np.testing.assert_allclose(found, np.maximum(depth + found[3], 0.0), atol=1e-28)
    found = project_magnitudes(np.asarray([1e10, 1.0]), 1e-10)
    np.testing.assert_array_equal(found, [1e-10, 0.0])


def test_equal_values():
    for radius in (1e-200, 1e-8, 1.0, 6.9):
        found = project_magnitudes(np.full(7, 1.0), radius)
        np.testing.assert_allclose(found, radius / 7, rtol=1e-14)


@given(arrays(np.float64, (3, 4), elements=SIZES), st.floats(0.01, 20.0))
def test_row_cuts(A, amount):
    cuts = find_row_cuts(A * np.asarray([[1.0], [-1.0], [1.0]]), amount)
    for row, cut in zip(A, cuts, strict=True):
        if row.sum() <= amount:
            assert cut == pytest.approx(0.0, abs=1e-14)
        else:
            assert np.maximum(row - cut, 0.0).sum() == pytest.approx(amount, rel=1e-12)
            assert 0.0 <= cut <= row.max()


def test_row_cuts_leave_their_argument():
    A = np.random.default_rng(0).standard_normal((50, 4))
    before = A.copy()
    find_row_cuts(A, 0.1)
    find_common_cuts([A], 1.0)
    np.testing.assert_array_equal(A, before)


def by_bisection(parts, radius):
    """Return the cuts of the projection, from nested bisections."""
    rows = [np.abs(row) for part in parts for row in part]

    def cuts(amount):
        return [0.0 if row.sum() <= amount else threshold(row, amount) for row in rows]

    most = max(row.sum() for row in rows)
    amount = brentq(lambda amount: sum(cuts(amount)) - radius, 0.0, most, xtol=1e-15)
    return np.asarray(cuts(amount))


@given(
    arrays(np.float64, (4, 3), elements=SIZES),
    arrays(np.float64, (2, 5), elements=SIZES),
    st.floats(0.01, 0.99),
)
def test_common_cuts(first, second, share):
    value = first.max(axis=1).sum() + second.max(axis=1).sum()
    assume(value > 0.1)
    radius = share * value
    parts = [-first, second]
    found = find_common_cuts(parts, radius)
    np.testing.assert_allclose(found, by_bisection(parts, radius), atol=1e-9)
    assert found.sum() == pytest.approx(radius, rel=1e-13)
    assert found.sum() <= radius * (1.0 + 1e-14)


@pytest.mark.parametrize("share", [1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.9, 1.0 - 1e-9])
@pytest.mark.parametrize("shape", [(3000, 20), (400, 1), (1, 400), (60, 700)])
def test_common_cuts_of_many_rows(shape, share):
    rng = np.random.default_rng(0)
    A = rng.standard_normal(shape) * np.exp(2.0 * rng.standard_normal((shape[0], 1)))
    radius = share * np.abs(A).max(axis=1).sum()
    cuts = find_common_cuts([A], radius)
    assert cuts.sum() == pytest.approx(radius, rel=1e-13)
    # From every row that is left the same is taken, from the others all.
    taken = np.maximum(np.abs(A) - cuts[:, None], 0.0).sum(axis=1)
    amount = taken.max()
    rounding = 16.0 * np.finfo(float).eps * np.abs(A).sum(axis=1).max()
    np.testing.assert_allclose(taken[cuts > 0.0], amount, rtol=1e-12, atol=rounding)
    assert np.all(np.abs(A).sum(axis=1)[cuts == 0.0] <= amount * (1.0 + 1e-12) + rounding)


def test_newton_needs_few_steps(monkeypatch):
    steps = []
    find_cuts = SortedRows.find_cuts
    monkeypatch.setattr(
        SortedRows,
        "find_cuts",
        lambda self, amount: steps.append(amount) or find_cuts(self, amount),
    )
    A = np.random.default_rng(0).standard_normal((1000, 20))
    for share in (0.01, 0.5, 0.99):
        steps.clear()
        find_common_cuts([A], share * np.abs(A).max(axis=1).sum())
        assert len(steps) <= 10
        assert steps == sorted(steps)


def test_rows_that_vanish_are_not_sorted(monkeypatch):
    """Half of the rows hold less than is taken from each of the others."""
    A = np.random.default_rng(0).uniform(1.0, 2.0, (100, 20))
    A[::2] *= 1e-3
    sorted_rows = []
    monkeypatch.setattr(
        ball, "SortedRows", lambda rows: sorted_rows.append(len(rows)) or SortedRows(rows)
    )
    cuts = find_common_cuts([A], 10.0)
    assert np.all(cuts[::2] == 0.0)
    assert np.all(cuts[1::2] > 0.0)
    assert sum(sorted_rows) <= 50


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_namespaces(xp, dtype):
    A = np.random.default_rng(0).standard_normal((6, 5)).astype(dtype)
    rtol = 1e-12 if dtype == "float64" else 1e-5
    there = xp.asarray(A)
    for function, level in ((find_row_cuts, 2.0), (lambda A, r: find_common_cuts([A], r), 3.0)):
        got, wanted = function(there, level), function(A, level)
        assert got.dtype == getattr(xp, dtype)
        assert wanted.dtype == np.dtype(dtype)
        np.testing.assert_allclose(to_numpy(got), wanted, rtol=rtol, atol=rtol)
    got, wanted = (
        project_magnitudes(xp.abs(there[:, 0]), 1.0),
        project_magnitudes(np.abs(A[:, 0]), 1.0),
    )
    assert got.dtype == getattr(xp, dtype)
    np.testing.assert_allclose(to_numpy(got), wanted, rtol=rtol, atol=rtol)


def test_not_finite():
    A = np.asarray([[1.0, math.nan], [3.0, 1.0]])
    cuts = find_row_cuts(A, 0.5)
    assert cuts[1] == 2.5
