"""Folds of rows, and rows that are sorted by their targets."""

import warnings

import numpy as np
from sklearn.model_selection import KFold, TimeSeriesSplit

from mixnorm.estimators._common.folds import row_folds, warn_of_sorted_rows


def test_which_rows_count_as_sorted():
    def told(y, n_folds):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_of_sorted_rows(np.asarray(y), np.array_split(np.arange(len(y)), n_folds))
        return [str(one.message) for one in caught]

    middle = np.r_[5:10, 0:5, 10:15, 15:20]
    assert told(range(10), 2)
    assert told(np.arange(20.0)[::-1], 4)
    assert told(middle, 4)[0].startswith("Fold 2 of cv holds the targets from 0 to 4,")
    assert not told(range(9), 2)  # folds of less than five rows are chance
    assert not told(np.repeat([0, 1], 10), 4)  # two values are labels rather than an order
    assert not told(np.tile(np.arange(5), 4), 4)
    assert not told(np.arange(20.0).reshape(10, 2), 2)
    assert not told(list("abcdefghij"), 2)
    assert told(1.7e308 * np.linspace(-1.0, 1.0, 10), 2)
    y = np.arange(20.0)
    with_gaps = np.where(np.arange(24) % 6 == 0, np.nan, np.arange(24.0))
    assert told(with_gaps, 4)
    row_folds(KFold(4, shuffle=True, random_state=0), y, y, classifier=False)  # without a warning
    row_folds(TimeSeriesSplit(3), y, y, classifier=False)


def test_folds_given_as_masks_and_from_the_end():
    mask = np.arange(10) < 4
    folds = row_folds([(~mask, mask), ([0, 1], [-1])], np.zeros(10), np.ones(10), classifier=False)
    assert [part.tolist() for part in folds[0]] == [[4, 5, 6, 7, 8, 9], [0, 1, 2, 3]]
    assert folds[1][1].tolist() == [9]
