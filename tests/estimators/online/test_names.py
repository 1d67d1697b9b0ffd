"""Rows that are dicts: names as columns, categories, and values that are not known."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import mixnorm
from mixnorm import (
    GroupPerceptron,
    MirrorDescentClassifier,
    OnlineMultiTaskLearner,
)
from mixnorm.engines.mirror import RowLearner
from mixnorm.engines.mirror import layout as layout

from .conftest import ALL, ROWS, N, assert_same, rows, table


@pytest.mark.parametrize("model", [each for each in ALL if each.norm != "trace"], ids=str)
def test_rows_of_names(model, tmp_path):
    by_task = isinstance(model, OnlineMultiTaskLearner)
    found, y = clone(model), np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    extra = {"task": ["s", "t", "s", "t", "s"]} if by_task else {}
    found.partial_fit(ROWS[:2], y[:2], **{name: values[:2] for name, values in extra.items()})
    assert found.n_features_in_ == 3
    found.partial_fit(ROWS, y, **extra)
    assert found.vocabulary_ == {"a": 0, "b": 1, "c": 2, "d=red": 3, "d=blue": 4}
    for _ in range(3):
        found.learn_one({"new": 1.0, "a": 2.0}, 1.0, *(["s"] if by_task else []))
    assert found.n_features_in_ == found.coef_.shape[-1] == 6
    more = {"task": ["s", "t"]} if by_task else {}
    unknown = [{"a": 1.0, "nobody": 5.0}, {"a": 1.0}]
    if not by_task:
        assert np.array_equal(found.predict(unknown)[0], found.predict(unknown)[1])
        assert found.predict_one({"a": 1.0}) == found.predict([{"a": 1.0}])[0]
    assert found.predict(unknown, **more).shape == (2,)
    assert found.n_features_in_ == 6
    mixnorm.save(found, tmp_path / "model")
    again = mixnorm.load(tmp_path / "model")
    for each in (found, again):
        each.partial_fit([{"later": 1.0}], y[:1], **{k: v[:1] for k, v in extra.items()})
    assert_same(found, again)


def test_names_are_columns():
    """The same as a sparse matrix whose columns were there from the start, for the plain norm."""
    y = np.array([0, 1, 1, 0, 1] * 10)
    columns = ["d=red", "d=blue", "a", "b", "c"]
    bag = [{"d": "red"}, *ROWS]  # no number is in the first row: none is measured from its mean
    X = np.zeros((6, 5))
    for i, row in enumerate(bag):
        for name, value in row.items():
            place = columns.index(name if not isinstance(value, str) else f"{name}={value}")
            X[i, place] = 1.0 if isinstance(value, str) else value
    one, other = MirrorDescentClassifier(), MirrorDescentClassifier()
    one.partial_fit(bag[:1], [0], classes=[0, 1])
    one.partial_fit(bag[1:] * 10, y)
    other.partial_fit(sp.csr_matrix(X[:1]), [0], classes=[0, 1])
    other.partial_fit(sp.csr_matrix(np.tile(X[1:], (10, 1))), y)
    found = one.coef_[:, [one.vocabulary_[name] for name in columns]]
    np.testing.assert_allclose(found, other.coef_, rtol=1e-6)


@pytest.mark.parametrize("norm", ["l2,2", "l2,1"])
def test_names_in_every_row_are_dense_columns(norm, tmp_path):
    X, y, named = table(np.random.default_rng(0))
    one = MirrorDescentClassifier(norm).partial_fit(named, y, classes=[0, 1])
    other = MirrorDescentClassifier(norm).partial_fit(X, y, classes=[0, 1])
    assert one.mistakes_ == other.mistakes_ < 40
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-6)
    np.testing.assert_allclose(one.predict_proba(named), other.predict_proba(X), rtol=1e-6)
    mixnorm.save(one, tmp_path / "model")
    again = mixnorm.load(tmp_path / "model")
    for each in (one, again):
        each.partial_fit(named[:20], y[:20])
    assert_same(one, again)


def test_a_value_that_is_not_known_is_at_the_mean():
    X, y, named = table(np.random.default_rng(0))
    model = MirrorDescentClassifier().partial_fit(named, y)
    means = dict(zip("abc", X.mean(axis=0).tolist(), strict=True))
    wanted = model.predict_proba([means | {"a": 1001.0}])
    for row in ({"a": 1001.0}, {"a": 1001.0, "b": None, "c": np.nan}):
        np.testing.assert_allclose(model.predict_proba([row]), wanted, rtol=1e-9)
    before = model._learner.column.copy()
    model.learn_one({"a": None, "b": None, "c": None}, 1)
    assert np.array_equal(model._learner.column[layout.MEAN], before[layout.MEAN])


def test_values_not_known_to_learners_by_blocks_are_zero():
    _, y, named = table(np.random.default_rng(0), 60)
    one, other = (MirrorDescentClassifier("trace", learning_rate="adaptive") for _ in range(2))
    y = np.arange(60) % 9
    one.partial_fit([row | {"b": None} for row in named], y)
    other.partial_fit([row | {"b": 0.0} for row in named], y)
    assert not isinstance(one._learner, RowLearner)
    assert np.array_equal(one.coef_, other.coef_)
    one.partial_fit([named[0] | {"b": None}], y[:1])


def test_tables_with_gaps():
    """One value of four is not known: the others are measured from their means all the same."""
    X, y, named = table(np.random.default_rng(0), 2000)
    gaps = np.random.default_rng(1).uniform(size=X.shape) < 0.25
    holes = [
        {name: None if gap else value for (name, value), gap in zip(row.items(), own, strict=True)}
        for row, own in zip(named, gaps, strict=True)
    ]
    model = MirrorDescentClassifier().partial_fit(holes, y)
    assert np.all(model._learner.column[layout.MARK, 1:] == 1.0)
    assert model.mistakes_ < 0.25 * len(y)
    filled = X.copy()
    filled[gaps] = np.nan
    np.testing.assert_allclose(
        model._learner.column[layout.MEAN, 1:], np.nanmean(filled, axis=0), rtol=1e-9
    )


def test_a_name_that_is_absent_once_in_the_first_rows_keeps_its_mean():
    _, y, named = table(np.random.default_rng(0))
    for absent in (1, 3, 8):
        rows = [row | {} for row in named]
        del rows[absent]["b"]
        model = MirrorDescentClassifier().partial_fit(rows, y)
        assert np.all(model._learner.column[layout.MARK, 1:] == 1.0)
        assert model.mistakes_ < 40


def test_a_name_that_becomes_rare_counts_from_zero():
    """The model stays the same function of rows that have the name."""
    _, y, named = table(np.random.default_rng(0))
    model = MirrorDescentClassifier(conservative=0.0).partial_fit(named, y)
    rest = [{name: row[name] for name in "ab"} for row in named]
    model.partial_fit(rest * 2, np.tile(y, 2))  # absent: not known, so far
    assert model._learner.column[layout.MARK, 3] == 1.0
    before = model.predict_proba(named[:5])
    model.partial_fit([named[0]], y[:1], sample_weight=[1e-12])
    assert model._learner.column[layout.MARK, 1:].tolist() == [1.0, 1.0, 0.0]
    np.testing.assert_allclose(model.predict_proba(named[:5]), before, rtol=1e-6)


@pytest.mark.parametrize("norm", ["l2,2", "l2,1"])
def test_hashed_names(norm, tmp_path):
    model = MirrorDescentClassifier(norm, hash_features=16)
    model.partial_fit(ROWS, [0, 1, 0, 1, 0])
    model.partial_fit([{f"name {i}": 1.0 for i in range(100)}], [1])
    assert model.n_features_in_ == model.coef_.shape[1] == 16
    assert model.predict([{"who": 1.0}, {}]).shape == (2,)
    mixnorm.save(model, tmp_path / "model")
    again = mixnorm.load(tmp_path / "model")
    for each in (model, again):
        each.learn_one({"a": 1.0, "z": 2.0}, 1)
    assert_same(model, again)
    model.set_params(hash_features=1000)
    with pytest.raises(ValueError, match="set after learning began with 16 columns"):
        model.partial_fit(ROWS, [0, 1, 0, 1, 0])
    assert np.array_equal(model.predict(ROWS), again.predict(ROWS))
    with pytest.raises(TypeError, match="rows that are dicts"):
        MirrorDescentClassifier(hash_features=16).fit(rows(), np.arange(N) % 2)


def test_rows_of_names_and_arrays_do_not_mix():
    model = GroupPerceptron().partial_fit(ROWS, [0, 1, 0, 1, 0])
    with pytest.raises(TypeError, match="learned from rows of names"):
        model.partial_fit(np.ones((1, 5)), [0])
    model = GroupPerceptron().partial_fit(np.eye(2), [0, 1])
    for act in (lambda: model.partial_fit(ROWS[:1], [0]), lambda: model.predict(ROWS)):
        with pytest.raises(TypeError, match="learned from arrays"):
            act()


def test_a_call_with_new_names_that_fails_changes_nothing(tmp_path):
    model = GroupPerceptron().partial_fit(ROWS, [0, 1, 0, 1, 0])
    before = dict(model.vocabulary_)
    for X, y in [([{"new": 1.0}], [0, 1]), ([{"new": 1.0, "x": [2]}], [0])]:
        with pytest.raises((ValueError, TypeError)):
            model.partial_fit(X, y)
        assert model.vocabulary_ == before
        assert model.predict([{"new": 1.0}]).shape == (1,)
    with pytest.raises(ValueError, match="Row 1 of X"):
        model.partial_fit([{"new": 1.0}, {"a": np.inf}], [0, 1])
    assert model.n_rounds_ == 6
    mixnorm.save(model, tmp_path / "model")


def test_empty_rows_of_names(tmp_path):
    model = GroupPerceptron().partial_fit([{}, {}], [0, 1])
    assert model.predict([{"a": 1.0}]).shape == (1,)
    mixnorm.save(model, tmp_path / "model")
    mixnorm.load(tmp_path / "model").partial_fit(ROWS, [0, 1, 0, 1, 0])


@pytest.mark.parametrize("value", [[1.0], 10**400])
def test_values_of_dicts_that_are_no_numbers_are_named(value):
    with pytest.raises((TypeError, ValueError), match="The value of 'size' is neither a number"):
        MirrorDescentClassifier().learn_one({"size": value}, "a")


def test_dicts_to_predict_are_checked():
    model = MirrorDescentClassifier().fit([{"a": 1.0}, {"b": 1.0}], ["u", "v"])
    for act in (lambda: model.predict([{"a": np.inf}]), lambda: model.predict_one({"a": np.inf})):
        with pytest.raises(ValueError, match="contains infinity; give None"):
            act()
    assert model.predict_one({"a": None}) == model.predict_one({})


@pytest.mark.parametrize("hashed", [None, 2])
def test_models_of_dicts_do_not_predict_arrays(hashed):
    model = MirrorDescentClassifier(hash_features=hashed)
    model.fit([{"a": 1.0}, {"b": 1.0}], ["u", "v"])
    with pytest.raises(TypeError, match="learned from rows of names"):
        model.predict(np.ones((1, 2)))


def test_hashing_is_for_dicts():
    with pytest.raises(TypeError, match="hash_features=4 works only with rows that are dicts"):
        MirrorDescentClassifier(hash_features=4).fit(np.eye(2), [0, 1])


def test_dicts_beside_other_rows():
    with pytest.raises(TypeError, match="Row 1 of X is a list"):
        MirrorDescentClassifier().fit([{"a": 1.0}, [1.0]], [0, 1])
