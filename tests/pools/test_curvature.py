"""Columns ranked by the gains of Newton steps, against the formulas written out."""

import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm.data import dense
from mixnorm.pools import Columns, Curvature, Union, capped_gain
from mixnorm.pools.columns import _LEAST_BEND

NONE = frozenset()
FORMS = [np.ascontiguousarray, np.asfortranarray, sp.csr_array, sp.csc_array]


def draw(n=80, d=6, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[rng.random((n, d)) < 0.4] = 0.0
    samples = rng.uniform(0.5, 1.5, n)
    samples /= samples.sum()
    residual = rng.standard_normal((n, k)) * samples[:, None]
    residual -= samples[:, None] * residual.sum(axis=0)
    weights = rng.uniform(0.02, 0.25, (n, k)) * samples[:, None]
    return X, residual, Curvature(weights, samples, 0.7, ridge=1e-3, intercept=True)


def gains(X, residual, curvature):
    """The capped score statistic of each column, term by term."""
    share, found = curvature.samples, []
    for column in X.T:
        mean = share @ column
        z = (column - mean) / np.sqrt(share @ (column - mean) ** 2)
        total = 0.0
        for c, v in enumerate(curvature.weights.T):
            gradient = z @ residual[:, c]
            bend = v @ z**2 - (v @ z) ** 2 / v.sum() + _LEAST_BEND * v.sum() + curvature.ridge
            error = np.abs(residual[:, c]).sum()
            most = curvature.loss_per_error * min(2 * abs(gradient) / np.abs(z).max(), error)
            total += most * (1.0 - np.exp(-0.5 * gradient**2 / bend / most))
        found.append(total)
    return np.asarray(found)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(4))
def test_columns_are_ranked_by_the_capped_score_statistic(form, seed):
    X, residual, curvature = draw(seed=seed)
    pool = Columns().prepare(form(X), weight=curvature.samples)
    wanted = gains(X, residual, curvature)
    _, found = pool._compute_scores(residual, "l1", curvature)
    np.testing.assert_allclose(found, wanted, rtol=1e-8)
    top = pool.top(residual, "l1", 6, NONE, curvature=curvature)
    assert [atom for atom, _ in top] == np.argsort(-wanted).tolist()
    norms = dict(pool.top(residual, "l1", 6, NONE))
    assert all(score == pytest.approx(norms[atom], rel=1e-12) for atom, score in top)


def test_gains_do_not_depend_on_units_and_origins():
    X, residual, curvature = draw()
    Z = X * 10.0 ** np.arange(-3, 3) + 100.0 * X.std(axis=0)
    one, other = (Columns().prepare(A, weight=curvature.samples) for A in (X, Z))
    found = [pool._compute_scores(residual, "l1", curvature)[1] for pool in (one, other)]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-8)


def test_prices_divide_gains_and_groups_add_them():
    X, residual, curvature = draw()
    wanted = gains(X, residual, curvature)
    prices = np.array([1.0, 9.0, 1.0, 2.0, 0.1, 1.0])
    priced = Columns(costs=prices).prepare(X, weight=curvature.samples)
    found = [atom for atom, _ in priced.top(residual, "l1", 6, NONE, curvature=curvature)]
    assert found == np.argsort(-wanted / prices).tolist()
    groups = Columns(groups=[0, 0, 1, 1, 2, 2]).prepare(X, weight=curvature.samples)
    found = [atom for atom, _ in groups.top(residual, "l1", 3, NONE, curvature=curvature)]
    assert found == np.argsort(-wanted.reshape(3, 2).sum(axis=1)).tolist()


def test_a_union_hands_the_curvature_on():
    X, residual, curvature = draw()
    wanted = np.argsort(-gains(X, residual, curvature))
    pool = Union((Columns(),)).prepare(X, weight=curvature.samples)
    found = pool.shortlist(residual, "l1", 3, NONE, curvature=curvature)
    assert {place for (_, place), _ in found} == set(wanted[:3])


def test_a_sample_of_many_rows_is_close(monkeypatch):
    X, _, curvature = draw(n=4000)
    whole = Columns().prepare(X, weight=curvature.samples)._get_second_derivatives(curvature)
    monkeypatch.setattr(dense, "SAMPLES", 1000)
    part = Columns().prepare(X, weight=curvature.samples)._get_second_derivatives(curvature)
    assert np.any(part != whole)
    np.testing.assert_allclose(part, whole, rtol=0.15)


def test_namespaces_agree(xp):
    X, residual, curvature = draw()
    there = Curvature(
        xp.asarray(curvature.weights), xp.asarray(curvature.samples), 0.7, 1e-3, intercept=True
    )
    pool = Columns().prepare(xp.asarray(X), weight=there.samples)
    _, found = pool._compute_scores(xp.asarray(residual), "l1", there)
    np.testing.assert_allclose(found, gains(X, residual, curvature), rtol=1e-8)


def test_a_capped_gain_is_below_both_the_gain_and_its_limit():
    rng = np.random.default_rng(0)
    free, limits = 10.0 ** rng.uniform(-9, 9, (2, 1, 500))
    found = capped_gain(free, limits)
    assert np.all(found <= np.minimum(free, limits)[0] * (1 + 1e-12))
    assert np.all(found >= 0.6 * np.minimum(free, limits)[0])
    assert capped_gain(np.zeros((2, 3)), np.zeros((2, 3))).tolist() == [0.0, 0.0, 0.0]
