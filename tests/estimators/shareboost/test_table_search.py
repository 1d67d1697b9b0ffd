"""The search over sizes on tables of row blocks."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from mixnorm import ShareBoostClassifierCV, ShareBoostRegressorCV
from mixnorm.data import Fold, from_arrays


def folds_of(n_rows, count):
    """The same folds for a search in memory."""
    masks = [Fold(place, count).mask(slice(0, n_rows)) for place in range(count)]
    return [(np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in masks]


@pytest.mark.parametrize(
    ("kind", "load"),
    [(ShareBoostClassifierCV, load_iris), (ShareBoostRegressorCV, load_diabetes)],
)
def test_the_search_is_the_one_in_memory(kind, load):
    X, y = load(return_X_y=True)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    given = {"n_features_to_select": 4, "alphas": ["auto", 0.05], "one_standard_error": True}
    blocks = kind(cv=3, **given).fit(from_arrays(X, y, weight, block_rows=40))
    memory = kind(cv=folds_of(len(y), 3), **given).fit(X, y, weight)
    assert blocks.best_params_ == memory.best_params_
    for key in ("mean_test_score", "split0_test_score", "standard_error"):
        assert np.allclose(blocks.cv_results_[key], memory.cv_results_[key], rtol=1e-6)
    assert np.allclose(blocks.coef_, memory.coef_, rtol=1e-4, atol=1e-6)


def test_several_outputs():
    X, y = load_diabetes(return_X_y=True)
    Y = np.stack([y, X[:, 2]], axis=1)
    blocks = ShareBoostRegressorCV(4, cv=3).fit(from_arrays(X, Y, block_rows=100))
    memory = ShareBoostRegressorCV(4, cv=folds_of(len(y), 3)).fit(X, Y)
    assert np.allclose(
        blocks.cv_results_["mean_test_score"], memory.cv_results_["mean_test_score"], rtol=1e-6
    )


def test_folds_depend_on_the_number_of_a_row_alone():
    fold = Fold(1, 4)
    whole = fold.mask(slice(0, 10_000))
    assert np.array_equal(whole[123:4567], fold.mask(slice(123, 4567)))
    assert np.array_equal(~whole, fold.others().mask(slice(0, 10_000)))
    counts = [Fold(place, 4).mask(slice(0, 10_000)).sum() for place in range(4)]
    assert sum(counts) == 10_000
    assert min(counts) > 2_350  # 2,500 less three and a half standard deviations


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"cv": folds_of(150, 2)}, TypeError, "hash of the row numbers"),
        ({"cv": 1}, ValueError, "at least 2 folds"),
        ({"cv": 151}, ValueError, "more than the 150 rows"),
        ({"scoring": "f1_macro"}, ValueError, "scored by 'accuracy'"),
    ],
)
def test_what_needs_all_rows_is_refused(given, error, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(error, match=message):
        ShareBoostClassifierCV(2, **given).fit(from_arrays(X, y))
