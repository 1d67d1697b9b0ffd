"""Choosing a candidate from held-out scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import sem

from mixnorm.selection import SearchResult, choose, standard_error

TABLES = arrays(
    float,
    st.tuples(st.integers(1, 6), st.integers(1, 8)),
    elements=st.floats(-10, 10, allow_subnormal=False),
)


def result(scores, chains=None):
    scores = np.asarray(scores, dtype=float)
    chains = np.zeros(scores.shape[1], np.intp) if chains is None else np.asarray(chains)
    params = [{"size": size} for size in range(scores.shape[1])]
    return SearchResult.of(params, {"score": scores}, chains, {})


def test_standard_error_is_that_of_the_mean():
    scores = np.random.default_rng(0).standard_normal((5, 4))
    np.testing.assert_allclose(standard_error(scores), sem(scores, axis=0))


def test_standard_error_leaves_out_what_is_not_a_number():
    scores = np.random.default_rng(0).standard_normal((5, 2))
    scores[[0, 3], 0] = np.nan
    np.testing.assert_allclose(standard_error(scores), sem(scores, axis=0, nan_policy="omit"))


def test_one_fold_has_no_standard_error():
    np.testing.assert_array_equal(standard_error(np.ones((1, 3))), np.zeros(3))


@given(TABLES)
def test_the_best_mean_wins(scores):
    best = choose(result(scores))
    mean = scores.mean(axis=0)
    assert type(best) is int
    rounding = 1e-12 * np.abs(mean).max()
    assert mean[best] >= mean.max() - rounding
    assert np.all(mean[:best] < mean.max() - rounding)  # the first of the best


@given(TABLES)
def test_one_standard_error_rule(scores):
    size = choose(result(scores), one_standard_error=True)
    best, mean = choose(result(scores)), scores.mean(axis=0)
    least = mean[best] - standard_error(scores)[best]
    assert type(size) is int
    assert size <= best
    assert mean[size] >= least
    assert np.all(mean[:size] < least)


def test_one_standard_error_stays_in_the_chain_of_the_best():
    scores = [[0.8, 0.9, 0.8, 0.95], [0.9, 0.9, 0.9, 0.85]]
    found = result(scores, [0, 0, 1, 1])
    assert choose(found) == 1  # 0.9 in both; the first of equal ones
    assert choose(found, one_standard_error=True) == 1
    later = result([[0.8, 0.7, 0.8, 0.95], [0.9, 0.7, 0.9, 0.86]], [0, 0, 1, 1])
    assert choose(later) == 3
    assert choose(later, one_standard_error=True) == 3
    wide = result([[0.8, 0.7, 0.8, 1.0], [0.9, 0.7, 0.9, 0.8]], [0, 0, 1, 1])
    assert choose(wide, one_standard_error=True) == 2  # not the candidate 0 of another chain


def test_the_error_of_the_best_candidate_counts():
    """The first candidate varies a lot, but that buys it nothing."""
    scores = np.array([[0.0, 0.90, 0.95], [1.0, 0.91, 0.95], [0.5, 0.92, 0.95]])
    assert choose(result(scores), one_standard_error=True) == 2


def test_folds_without_a_score_do_not_count():
    found = result([[np.nan, 0.5, 0.4], [0.9, np.nan, 0.4]])
    assert choose(found) == 0
    assert found.cv_results["mean_test_score"].tolist() == [0.9, 0.5, 0.4]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_means_that_differ_by_rounding_are_equal(sign):
    """Losses come as negative scores, and have ties like other scores."""
    scores = sign * np.array([[0.1, 0.3], [0.2, 0.2], [0.3, 0.1], [0.7, 0.7]])
    means = scores.mean(axis=0)
    if means[0] > means[1]:  # the first candidate has the smaller mean
        scores, means = scores[:, ::-1], means[::-1]
    assert means[0] < means[1]
    assert choose(result(scores)) == 0


def test_nothing_to_choose_from():
    with pytest.raises(ValueError, match="No candidate has a held-out score that is a number"):
        choose(result(np.full((2, 3), np.nan)))


@pytest.mark.parametrize("unit", [1e300, 1.0, 1e-14, 1e-300])
def test_scores_of_any_size(unit):
    scores = np.array([[-4.0, -2.0], [-3.0, -1.0]]) * unit
    assert choose(result(scores)) == 1
    assert np.all(np.isfinite(standard_error(scores)))
