"""Parameters and targets that every estimator refuses in the same words."""

import warnings

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, TimeSeriesSplit

import mixnorm
from mixnorm import estimators
from mixnorm.estimators._common.search import row_folds, warn_of_sorted_rows
from mixnorm.exceptions import SortedRowsWarning

ALL = [
    kind
    for kind in (getattr(estimators, name) for name in estimators.__all__)
    if hasattr(kind, "fit")
]


def having(name):
    return [kind for kind in ALL if name in kind().get_params()]


def data(kind, n_samples=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=n_samples)
    return X, np.where(y > 0, "b", "a") if is_classifier(kind()) else y


def test_all_estimators_are_here():
    assert mixnorm.MixedNormRegressor in ALL
    assert len(having("n_jobs")) >= 6
    assert len(having("random_state")) >= 10
    assert len(having("cv")) >= 12


@pytest.mark.parametrize("value", [0, "a", 1.5, True])
@pytest.mark.parametrize("kind", having("n_jobs"))
def test_bad_numbers_of_jobs(kind, value):
    with pytest.raises((TypeError, ValueError), match=f"^n_jobs={value!r} .* -1 one for each"):
        kind(n_jobs=value).fit(*data(kind))


@pytest.mark.parametrize("value", ["a", -1, 1.5])
@pytest.mark.parametrize("kind", having("random_state"))
def test_bad_seeds(kind, value):
    with pytest.raises((TypeError, ValueError), match=f"^random_state={value!r} .* whole number"):
        kind(random_state=value).fit(*data(kind))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([], r"^cv=\[\] gives no folds"),
        (0, "^cv=0 is less than two folds; give None, a number"),
        (1, "^cv=1 is less than two folds; give None, a number"),
        ("a", "^cv='a' is no way to split rows; give None, a number"),
        (1.5, "^cv=1.5 is no way to split rows; give None, a number"),
        (41, "^cv=41 cannot split these rows: .*Give other folds, or more rows"),
        ([1, 2], r"^cv=\[1, 2\] must give pairs of training and test rows"),
        ([([0, 1], [40])], "^cv=.* gives rows that X does not have; .* from 0 to 39"),
        ([([0, 1], [])], "^cv=.* gives a fold with no rows"),
    ],
)
@pytest.mark.parametrize("kind", having("cv"))
def test_bad_folds(kind, value, told):
    with pytest.raises((TypeError, ValueError), match=told):
        kind(cv=value).fit(*data(kind))


CLASSIFIERS = [kind for kind in ALL if is_classifier(kind())]


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_labels_of_several_types(kind):
    X, y = data(kind)
    mixed = [1, *y[1:].tolist()]
    for labels in (mixed, np.array(mixed, dtype=object)):
        with pytest.raises(TypeError, match=r"labels in y are of several types \(int, str\)"):
            kind().fit(X, labels)
    with pytest.raises(TypeError, match=r"labels in y are of several types \(bytes, str\)"):
        kind().fit(X, np.array([b"a", *y[1:].tolist()], dtype=object))
    for labels in ([1, "a", None] * 14, np.array([None, *y[1:].tolist()], dtype=object)):
        with pytest.raises(ValueError, match="y contains None"):
            kind().fit(X, labels[:40])


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind not in CLASSIFIERS])
def test_targets_that_are_no_numbers(kind):
    X, _ = data(kind)
    for y in ([1, "a", None] * 14, np.array([1, "a", None] * 14, dtype=object)):
        with pytest.raises((TypeError, ValueError), match=r"y holds 'a'|targets .* not all num"):
            kind().fit(X, y[:40])


REGRESSORS = [kind for kind in having("cv") if not is_classifier(kind())]


@pytest.mark.parametrize("kind", REGRESSORS)
def test_sorted_rows_are_reported(kind):
    X, y = data(kind)
    order = np.argsort(y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SortedRowsWarning)  # which ends the fit before it is long
        with pytest.raises(SortedRowsWarning, match=r"^Fold 1 of cv .* cv=KFold\(5, shuffle=True"):
            kind().fit(X[order], y[order])


def test_sorted_rows_of_a_task():
    X, y = data(mixnorm.MultiTaskLearnerCV)
    order = np.argsort(y)
    with pytest.warns(SortedRowsWarning, match=r"^Fold 1 of cv"):
        mixnorm.MultiTaskLearnerCV(alphas=3).fit([X, X[order]], [y, y[order]])


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
