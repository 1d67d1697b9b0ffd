"""Choosing the size of a model from held-out scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import sem

from mixnorm.selection import choose_size, standard_error

TABLES = arrays(
    float,
    st.tuples(st.integers(1, 6), st.integers(1, 8)),
    elements=st.floats(-10, 10, allow_subnormal=False),
)


def test_standard_error_is_that_of_the_mean():
    scores = np.random.default_rng(0).standard_normal((5, 4))
    np.testing.assert_allclose(standard_error(scores), sem(scores, axis=0))


def test_one_fold_has_no_standard_error():
    np.testing.assert_array_equal(standard_error(np.ones((1, 3))), np.zeros(3))


@given(TABLES)
def test_the_best_mean_wins(scores):
    size = choose_size(scores)
    mean = scores.mean(axis=0)
    assert type(size) is int
    assert mean[size] == mean.max()
    assert np.all(mean[:size] < mean[size])  # the smallest of the best


@given(TABLES)
def test_one_standard_error_rule(scores):
    size = choose_size(scores, one_standard_error=True)
    best, mean = choose_size(scores), scores.mean(axis=0)
    least = mean[best] - standard_error(scores)[best]
    assert type(size) is int
    assert size <= best
    assert mean[size] >= least
    assert np.all(mean[:size] < least)


def test_the_error_of_the_best_size_counts():
    """The first size varies a lot, but that buys it nothing."""
    scores = np.array([[0.0, 0.90, 0.95], [1.0, 0.91, 0.95], [0.5, 0.92, 0.95]])
    assert choose_size(scores) == 2
    assert choose_size(scores, one_standard_error=True) == 2
    scores[:, 2] = [0.90, 0.95, 1.00]
    assert choose_size(scores, one_standard_error=True) == 2
    scores[:, 2] = [0.85, 0.95, 1.05]
    assert choose_size(scores, one_standard_error=True) == 1


@pytest.mark.parametrize("one_standard_error", [False, True])
def test_ties_go_to_the_smaller_size(one_standard_error):
    scores = np.array([[0.2, 0.7, 0.7, 0.7], [0.2, 0.7, 0.7, 0.7]])
    assert choose_size(scores, one_standard_error=one_standard_error) == 1


def test_nothing_to_choose_from():
    scores = np.array([[0.1, np.nan], [np.nan, 0.2]])
    with pytest.raises(ValueError, match="Every size has a fold whose score is NaN"):
        choose_size(scores)
    with pytest.raises(ValueError, match=r"Every alpha has .* Check the scoring function"):
        choose_size(scores, what="alpha")


@pytest.mark.parametrize("unit", [1e300, 1e-300])
def test_scores_of_any_size(unit):
    scores = np.array([[0.5, 0.8, 0.82, 0.81], [0.6, 0.9, 0.90, 0.92]])
    np.testing.assert_allclose(standard_error(unit * scores), unit * standard_error(scores))
    chosen = choose_size(scores, one_standard_error=True)
    assert choose_size(unit * scores, one_standard_error=True) == chosen


@pytest.mark.parametrize("scores", [np.empty((0, 3)), np.empty((3, 0)), np.zeros(3), 1.0])
def test_scores_of_another_shape_are_refused(scores):
    with pytest.raises(ValueError, match=r"scores must have the shape \(n_folds, n_sizes\)"):
        choose_size(scores)
