"""Gradients estimated on a sample of rows: the bounds of their errors hold."""

import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm.data import ColumnStatistics, as_matrix
from mixnorm.pools import RowSample
from mixnorm.pools.blocks.screen import ColumnScreen, Gradients

N, SHARE = 3000, 1 / 3000


def draw_columns(rng):
    """Columns of many kinds: even, normal, heavy tails, rare spikes, indicators, far from zero."""
    kinds = [
        rng.uniform(-1.0, 1.0, (N, 5)),
        rng.standard_normal((N, 5)),
        rng.standard_t(2.0, (N, 5)),
        20.0 * (rng.random((N, 5)) < 0.002),
        (rng.random((N, 5)) < 0.1).astype(float),
        rng.standard_normal((N, 5)) + 1e3,
        np.full((N, 1), 2.0),
    ]
    return np.hstack(kinds)


def draw_residual(rng):
    """The residuals of a few outputs, one of which has a row with most of it."""
    found = rng.standard_normal((N, 3)) * SHARE
    found[:, 1] = (rng.random(N) < 0.05) * SHARE
    found[7, 2] = 100.0 * SHARE
    return found


def make_screen(X, rows, centred, kind):
    found = as_matrix(X, X.dtype).statistics(np.full(N, SHARE))
    found = ColumnStatistics(
        *(np.asarray(each) for each in (found.low, found.high, found.mean, found.deviation))
    )
    known = found if centred else found.about_zero()
    usable = known.high > known.low
    divisors = np.where(usable, known.deviation, np.inf)
    sample = RowSample(rows, kind(X[rows]), np.full(len(rows), 1 / len(rows)), len(X))
    return ColumnScreen(sample, known, divisors, centred, N), known, divisors


@pytest.mark.parametrize("centred", [True, False])
def test_bounds_hold_in_thousands_of_cases(centred):
    rng = np.random.default_rng(0)
    cases = 0
    for draw in range(40):
        X, residual = draw_columns(rng), draw_residual(rng)
        count = int(rng.choice([100, 400, 1500]))
        rows = np.sort(rng.choice(N, count, replace=False))
        kind = sp.csr_array if draw % 4 == 0 else np.asarray
        screen, known, divisors = make_screen(X, rows, centred, kind)
        largest = np.abs(residual).max(axis=0)
        found, radius = screen.estimate(residual[rows] * (N / count), largest)
        exact = ((X - known.mean * centred) / divisors).T @ residual
        assert np.all(np.abs(found - exact) <= radius + 1e-12)
        assert np.all(radius[-1] == 0.0)  # the constant column
        cases += found.size
    assert cases > 3000


def test_bounds_shrink_with_the_sample():
    rng = np.random.default_rng(1)
    X, residual = rng.uniform(-1.0, 1.0, (N, 4)), rng.choice([-1.0, 1.0], (N, 2)) * SHARE
    widths = []
    for count in (300, 2700):
        rows = np.sort(rng.choice(N, count, replace=False))
        screen, *_ = make_screen(X, rows, True, np.asarray)
        _, radius = screen.estimate(residual[rows] * (N / count), np.full(2, SHARE))
        widths.append(radius.max())
    assert 3.0 < widths[0] / widths[1] < 9.0


@pytest.mark.parametrize("centred", [True, False])
def test_sparse_and_dense_agree(centred):
    rng = np.random.default_rng(2)
    X, residual = draw_columns(rng)[:, :25], draw_residual(rng)
    rows = np.sort(rng.choice(N, 500, replace=False))
    largest = np.abs(residual).max(axis=0)
    dense, thin = (
        make_screen(X, rows, centred, kind)[0].estimate(residual[rows] * 6.0, largest)
        for kind in (np.asarray, sp.csr_array)
    )
    for one, other in zip(dense, thin, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_overflow_leaves_a_column_open():
    """Where the bound is not a number, nothing is known."""
    X = np.random.default_rng(3).standard_normal((N, 2))
    screen, *_ = make_screen(X, np.arange(100), True, np.asarray)
    with np.errstate(over="ignore", invalid="ignore"):
        _, radius = screen.estimate(np.full((100, 1), 1e200), np.full(1, 1e308))
    assert np.all(np.isinf(radius))


def test_known_gradients_replace_estimates():
    gradients = Gradients("model", np.array([[1.0], [-2.0]]), np.array([[0.5], [0.5]]))
    assert gradients.most.tolist() == [[1.5], [2.5]]
    gradients.set_exact(np.array([1]), np.array([[-1.75]]))
    assert gradients.most.tolist() == [[1.5], [1.75]]
    assert gradients.exact.tolist() == [False, True]
