"""Columns of tables of row blocks, ranked on a sample: certified choices are those of all rows."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm import GreedyOptions, ShareBoostClassifier
from mixnorm.data import from_arrays
from mixnorm.estimators.shareboost import blocks as module
from mixnorm.pools import Columns

N, D = 4000, 20


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    """Tables of some thousand rows have samples too."""
    monkeypatch.setattr(module, "_ROWS_TO_SAMPLE", 1000)


def draw(seed, *, spiky=False, near_ties=False):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (N, D))
    if spiky:
        X[:, ::3] = 30.0 * (rng.random((N, len(range(0, D, 3)))) < 0.01)
    W = np.zeros((D, 3))
    strengths = np.ones(6) if near_ties else np.linspace(4.0, 1.0, 6)
    W[:6] = rng.choice([-1.0, 1.0], (6, 3)) * strengths[:, None]
    return X, np.argmax(X @ W + rng.gumbel(size=(N, 3)), axis=1)


GROUPS = np.arange(D) // 2
VARIANTS = {
    "plain": {},
    "l1": {"options": GreedyOptions(rule="l1")},
    "l2": {"options": GreedyOptions(rule="l2")},
    "exact": {"options": GreedyOptions(rule="exact")},
    "groups": {"pool": Columns(groups=GROUPS)},
    "costs": {"pool": Columns(costs=np.linspace(1.0, 4.0, D)), "cost_budget": 12.0},
    "no intercept": {"fit_intercept": False},
    "two a round": {"options": GreedyOptions(atoms_per_round=2)},
}


def fit(data, scan, given):
    options = replace(given.get("options", GreedyOptions()), scan=scan)
    return ShareBoostClassifier(5, **(given | {"options": options})).fit(*data)


@pytest.mark.parametrize("name", VARIANTS)
def test_certified_choices_are_the_exact_ones(name):
    given = VARIANTS[name]
    for seed in range(2):
        X, y = draw(seed)
        table = from_arrays(X, y, block_rows=500)
        sample = fit((table,), "sample", given)
        assert table.n_blocks == 8
        exact = fit((from_arrays(X, y, block_rows=700),), "exact", given)
        assert sample.selected_.tolist() == exact.selected_.tolist()
        np.testing.assert_allclose(sample.coef_, exact.coef_, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", ["near ties", "spikes", "sparse", "sparse spikes"])
def test_hard_columns_end_in_the_exact_choice(kind):
    for seed in range(3):
        X, y = draw(seed, near_ties=kind == "near ties", spiky="spikes" in kind)
        if kind.startswith("sparse"):
            X = np.where(np.abs(X) > 0.8, X, 0.0)
        rows = sp.csr_array(X) if kind.startswith("sparse") else X
        sample, exact = (
            fit((from_arrays(rows, y, block_rows=500),), scan, {}) for scan in ("sample", "exact")
        )
        assert sample.selected_.tolist() == exact.selected_.tolist()


def test_rows_that_do_not_count_may_hold_anything():
    X, y = draw(0)
    weight = np.ones(N)
    weight[:300] = 0.0
    X[:5, 0] = 1e300
    found = [
        ShareBoostClassifier(3).fit(*data)
        for data in [(from_arrays(X, y, weight, block_rows=500),), (X, y, weight)]
    ]
    assert found[0].selected_.tolist() == found[1].selected_.tolist()
