"""Labels of online classifiers: new ones, few ones, and those that cannot be."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import mixnorm
from mixnorm import (
    GroupPerceptron,
    MirrorDescentClassifier,
)
from mixnorm.engines.mirror import layout as layout

from .conftest import D, N, assert_same, each_classifier, rows, words


@each_classifier
def test_new_classes(model):
    X, y = rows(), np.arange(N) % 4
    found = clone(model).partial_fit(X[:50], words(y[:50] % 2))
    assert found.classes_.tolist() == ["one", "zero"]
    assert found.decision_function(X).shape == (N,)
    found.partial_fit(X[50:], words(y[50:]))
    assert found.classes_.tolist() == ["one", "zero", "three", "two"]
    assert found.decision_function(X).shape == (N, 4)
    assert found.coef_.shape == (4, D)
    assert set(found.predict(X)) <= {"zero", "one", "two", "three"}
    found.learn_one(X[0], "four")
    found.learn_one(X[1], "five")
    found.learn_one(X[2], "four")
    assert found.classes_.tolist()[4:] == ["four", "five"]
    assert isinstance(found.predict_one(X[0]), str)
    assert found.n_rounds_ == N + 3


def test_classes_that_are_known_of():
    X, y = rows(), np.arange(N) % 3
    one = MirrorDescentClassifier().partial_fit(X[:1], y[:1], classes=[2, 0, 1])
    other = MirrorDescentClassifier().partial_fit(X[:1], y[:1], classes=np.arange(3))
    assert one.classes_.tolist() == [0, 1, 2]
    one.partial_fit(X[1:], y[1:])
    other.partial_fit(X[1:], y[1:], classes=[0, 1, 2])
    assert_same(one, other)
    other.partial_fit(X, y, classes=[0, 7, 1])
    assert other.classes_.tolist() == [0, 1, 2, 7]
    assert other.predict_proba(X).shape == (N, 4)


@pytest.mark.parametrize(
    "kind", [words, lambda y: words(y).astype(object), lambda y: y + 5, lambda y: y > 1,
             lambda y: (y % 2) * 1.0, lambda y: pd.Series(words(y), dtype="category")],
    ids=range(6),
)  # fmt: skip
def test_kinds_of_labels(kind, tmp_path):
    X, y = rows(), kind(np.arange(N) % 4)
    model = MirrorDescentClassifier().fit(X, y)
    assert set(model.predict(X)) <= set(np.unique(np.asarray(y)))
    first = np.asarray(y)[0]
    model.learn_one(X[0], first)
    model.learn_one(X[0], first)
    assert model.predict_one(X[1]) in list(np.unique(np.asarray(y)))
    assert not isinstance(model.predict_one(X[1]), np.generic)
    mixnorm.save(model, tmp_path / "model")
    assert np.array_equal(mixnorm.load(tmp_path / "model").predict(X), model.predict(X))


def test_two_classes():
    X = rows()
    model = MirrorDescentClassifier().fit(X, X[:, 0] > 0)
    scores = model.decision_function(X)
    assert scores.shape == (N,)
    assert np.array_equal(model.predict(X), scores > 0)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(np.log(proba[:, 1] / proba[:, 0]), scores, atol=1e-6)


@each_classifier
def test_one_class(model):
    X = rows()
    with pytest.raises(ValueError, match="at least 2 classes.*'a'.*use partial_fit"):
        clone(model).fit(X, np.full(N, "a"))
    found = clone(model).partial_fit(X, np.full(N, "a"))
    assert set(found.predict(X)) == {"a"}
    assert found.decision_function(X).shape == (N, 1)
    assert found.mistakes_ == 0
    found.partial_fit(X, words(np.arange(N) % 2))
    assert len(found.classes_) == 3


def test_labels_that_cannot_be():
    X, y = rows(), np.arange(N) % 3
    model = MirrorDescentClassifier().partial_fit(X, y)
    for labels in (np.array(["a", "b"]), np.array([0.5, 1.7]), np.array([np.nan, 1.0])):
        with pytest.raises((ValueError, TypeError), match="type|continuous|NaN"):
            model.partial_fit(X[:2], labels)
        assert model.classes_.tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="another type"):
        model.learn_one(X[0], "a")
    with pytest.raises(ValueError, match="NaN"):
        model.learn_one(X[0], np.nan)
    with pytest.raises(ValueError, match="Unknown label type"):
        MirrorDescentClassifier().fit(X, X[:, 0])
    with pytest.raises(TypeError, match="several types"):
        MirrorDescentClassifier().fit(X[:2], [1, "a"])
    with pytest.raises(ValueError, match="one target per row"):
        model.partial_fit(X, y[:-1])
    with pytest.raises(TypeError, match="sparse matrix"):
        model.partial_fit(X, sp.csr_matrix(y[:, None]))
    assert model.n_rounds_ == N
    assert len(model.classes_) == 3


def test_a_call_that_fails_changes_nothing(tmp_path):
    X, y = rows(), np.arange(N) % 3
    model = MirrorDescentClassifier()
    for i in range(50):
        model.learn_one(X[i], int(y[i]))
    with pytest.raises(ValueError, match="sample_weight"):
        model.partial_fit(X[:2], [3, 4], sample_weight=[1.0, -1.0])
    assert model.classes_.tolist() == [0, 1, 2]
    model.learn_one(X[0], 4)  # a class that has no place yet
    assert model.classes_.tolist() == [0, 1, 2, 4]
    mixnorm.save(model, tmp_path / "model")


def test_perceptrons_work_on_tables_with_units():
    from sklearn.datasets import load_wine

    X, y = load_wine(return_X_y=True)
    model = GroupPerceptron(scale=True, random_state=0).fit(X, y)
    assert model.mistakes_ < 40 < GroupPerceptron(random_state=0).fit(X, y).mistakes_
    with pytest.raises(TypeError, match="no bound for rows measured in running units"):
        model.mistake_bound(np.zeros((3, 13)))


def test_no_bound_for_running_units():
    X, y = rows(), np.arange(N) % 3
    model = MirrorDescentClassifier("l2,1", radius=2.0).fit(X, y)
    for method in (model.regret, model.regret_bound):
        with pytest.raises(TypeError, match="no bound for rows measured in running units"):
            method(np.zeros((3, D)))
