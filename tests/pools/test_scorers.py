"""Scores of chosen atoms, computed the quick way."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mixnorm.pools import Stumps
from mixnorm.pools.scorers import BoxScorer, StumpScorer

ATOMS = [(2, 0.5), (0, -0.25), (2, -1.0), (2, 0.5), (1, 2.0)]


@pytest.mark.parametrize("rows", [0, 1, 5, 255, 256, 1000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, bool])
def test_scores_are_those_of_the_columns(rows, dtype):
    rng = np.random.default_rng(0)
    X = (3 * rng.normal(size=(rows, 4))).round(1).astype(dtype)
    weights, intercept = rng.normal(size=(5, 3)), rng.normal(size=3)
    scorer = StumpScorer(ATOMS, weights, intercept)
    expected = Stumps().evaluate(X, ATOMS) @ weights + intercept
    assert_allclose(scorer(X), expected, rtol=1e-12, atol=1e-12)
    for x, scores in zip(X[:5], expected, strict=False):
        assert_allclose(scorer.row(x), scores, rtol=1e-12, atol=1e-12)


def test_an_entry_on_the_threshold_is_below_it():
    X = np.repeat(np.array([[0.5]]), 300, axis=0)
    scorer = StumpScorer([(0, 0.5)], np.array([[1.0, -1.0]]), np.zeros(2))
    assert_array_equal(scorer(X)[0], [1.0, -1.0])
    assert_array_equal(scorer(np.nextafter(X, 1.0))[0], [0.0, 0.0])
    assert_array_equal(scorer.row(X[0]), [1.0, -1.0])


def test_no_atoms():
    scorer = StumpScorer([], np.zeros((0, 2)), np.array([1.0, 2.0]))
    assert_array_equal(scorer(np.zeros((300, 3))), np.tile([1.0, 2.0], (300, 1)))


@pytest.mark.parametrize("scorer", [StumpScorer, BoxScorer])
def test_single_rows_and_batches_agree_for_weights_in_single_precision(scorer):
    rng = np.random.default_rng(0)
    X, thresholds = rng.standard_normal((600, 3)), rng.standard_normal(90)
    atoms = [(place % 3, threshold) for place, threshold in enumerate(thresholds.tolist())]
    if scorer is BoxScorer:
        atoms = [((column, "<=", threshold),) for column, threshold in atoms]
    weights = rng.standard_normal((90, 2)).astype(np.float32)
    found = scorer(atoms, weights, np.zeros(2, dtype=np.float32))
    batch = found(X)
    for rows in (found(X[:100]), np.vstack([found.row(x) for x in X[:100]])):
        assert_allclose(rows, batch[:100], atol=1e-12)
