"""Distinct rows do not depend on order, copies or storage."""

import numpy as np
import pytest
from scipy import sparse

from mixnorm._distinct import draw_rows, find_distinct_rows


def tie_rich(seed, rows=40):
    return np.random.default_rng(seed).integers(0, 2, (rows, 3)).astype(float)


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_numpy(seed):
    X = tie_rich(seed)
    places, which = find_distinct_rows([X])
    wanted, inverse = np.unique(X, axis=0, return_inverse=True)
    assert np.array_equal(X[places], wanted)
    assert np.array_equal(which, inverse.ravel())


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array])
def test_storage_and_order_do_not_matter(form):
    X = tie_rich(0)
    order = np.random.default_rng(1).permutation(len(X))
    assert np.array_equal(X[find_distinct_rows([form(X)])[0]], X[find_distinct_rows([X])[0]])
    assert np.array_equal(
        X[order][find_distinct_rows([X[order]])[0]], X[find_distinct_rows([X])[0]]
    )


def test_heavy_rows_are_drawn_more_often():
    counts, weight = np.zeros(3), np.array([1.0, 2.0, 7.0])
    for seed in range(2000):
        counts[draw_rows(weight, 1, np.random.default_rng(seed))] += 1
    assert np.abs(counts / 2000 - weight / 10).max() < 0.04
