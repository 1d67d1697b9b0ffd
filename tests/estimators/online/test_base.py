"""What the user does with online learners: streams of any form, and predictions."""

import copy
import pickle
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixnorm
from mixnorm import (
    GroupPerceptron,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    OnlineMultiTaskLearner,
)
from mixnorm.engines.mirror import RowLearner
from mixnorm.engines.mirror import layout as layout
from mixnorm.engines.mirror import rows_jit as jit
from mixnorm.estimators.online import curve as _online_curve
from mixnorm.losses import Huber, MulticlassSquaredHinge, MultinomialLogistic, Squared
from mixnorm.norms import MixedNorm

N, D = 300, 20
PERCEPTRONS = [GroupPerceptron("l2,1", scale=True, average=True), GroupPerceptron("l1,1"),
               GroupPerceptron("l2,2", fit_intercept=True)]  # fmt: skip
CLASSIFIERS = [
    *PERCEPTRONS,
    MirrorDescentClassifier(),
    MirrorDescentClassifier("l2,1", "hinge", radius=5.0, average=True),
    MirrorDescentClassifier("l1,1", "margin", learning_rate="anytime", scale=False),
    MirrorDescentClassifier("trace", learning_rate="adaptive"),
]
REGRESSORS = [
    MirrorDescentRegressor(average=True),
    MirrorDescentRegressor("l2,1", "huber"),
    MirrorDescentRegressor("trace", "absolute"),
]
TASKS = [
    OnlineMultiTaskLearner(),
    OnlineMultiTaskLearner("l1,1", "logistic", average=True),
    OnlineMultiTaskLearner("l2,2", "squared", learning_rate="feature"),
    OnlineMultiTaskLearner("trace", "absolute"),
]
ALL = [*CLASSIFIERS, *REGRESSORS, *TASKS]
each_model = pytest.mark.parametrize("model", ALL, ids=str)
each_classifier = pytest.mark.parametrize("model", CLASSIFIERS, ids=str)

# --- streams


def rows(seed=0):
    """Rows, some with many and some with few entries, of columns in several units."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * (rng.uniform(size=(N, D)) < 0.6)
    X[::4] *= rng.uniform(size=(len(X[::4]), D)) < 0.1
    return X * np.logspace(-2, 2, D)


def stream(model, seed=0):
    """Arguments of partial_fit: rows, targets, and tasks where the model has them."""
    X, rng = rows(seed), np.random.default_rng(seed)
    if isinstance(model, OnlineMultiTaskLearner):
        y = X[:, 0] + X[:, 1]
        y = np.where(y > 0.0, 1.0, -1.0) if model.losses == "logistic" else y
        return {"X": X, "y": y, "task": np.array(["a", "b", "c"])[rng.integers(3, size=N)]}
    if isinstance(model, MirrorDescentRegressor):
        return {"X": X, "y": X[:, :2] + X[:, 2:3]}
    return {"X": X, "y": np.argmax(X[:, :9] / np.logspace(-2, 2, D)[:9], axis=1)}


def taken(arguments, part):
    return {name: values[part] for name, values in arguments.items()}


def begun(model, arguments):
    """A model that has seen the first rows, and knows all classes and tasks."""
    return clone(model).partial_fit(**taken(arguments, slice(0, 40)))


def learn_ones(model, arguments):
    for i in range(len(arguments["X"])):
        values = [values[i] for values in arguments.values()]
        model.learn_one(*values)
    return model


def assert_same(one, other):
    """All that was learned is the same to the last bit, but for sums of losses."""
    for name in one._learner.stored:
        found, wanted = getattr(other._learner, name), getattr(one._learner, name)
        if name == "numbers":
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
        else:
            assert np.array_equal(found, wanted), name
    for name in ("rounds", "mistakes"):
        assert np.array_equal(one.curve_[name], other.curve_[name])
    np.testing.assert_allclose(one.curve_["loss"], other.curve_["loss"], rtol=1e-12)
    assert np.array_equal(one.coef_, other.coef_)


@each_model
def test_how_rows_are_handed_over_does_not_matter(model):
    arguments = stream(model)
    rest = taken(arguments, slice(40, None))
    whole = begun(model, arguments).partial_fit(**rest)
    assert whole.n_rounds_ == N
    parts, single = begun(model, arguments), begun(model, arguments)
    for part in np.array_split(np.arange(N - 40), 7):
        parts.partial_fit(**taken(rest, part))
    for i in range(N - 40):
        single.partial_fit(**taken(rest, slice(i, i + 1)))
    sparse = begun(model, arguments).partial_fit(**rest | {"X": sp.csr_matrix(rest["X"])})
    mixed = begun(model, arguments).partial_fit(**rest | {"X": jumbled(rest["X"])})
    for other in (parts, single, sparse, mixed, learn_ones(begun(model, arguments), rest)):
        assert_same(whole, other)


def jumbled(X):
    """A CSR matrix whose indices are not sorted, with entries twice and entries of zero."""
    found = sp.csr_array(X)
    indptr, indices, data = [0], [], []
    for i in range(len(X)):
        own = slice(found.indptr[i], found.indptr[i + 1])
        places, values = found.indices[own][::-1].tolist(), found.data[own][::-1].tolist()
        if places:
            places, values = [*places, places[0], 3], [values[0] / 2, *values[1:], 0.0, 0.0]
            values[-2] = values[0]
        indices += places
        data += values
        indptr.append(len(indices))
    return sp.csr_array((data, indices, indptr), shape=X.shape)


def test_the_jumbled_matrix_is_the_same():
    X = rows()
    assert np.array_equal(jumbled(X).toarray(), X)
    assert not jumbled(X).has_sorted_indices


@each_model
@pytest.mark.parametrize("kind", ["pickle", "file", "deepcopy"])
def test_going_on_from_a_copy(model, kind, tmp_path):
    arguments = stream(model)
    rest = taken(arguments, slice(140, None))
    one = clone(model).partial_fit(**taken(arguments, slice(0, 100)))
    learn_ones(one, taken(arguments, slice(100, 140)))
    if kind == "file":
        mixnorm.save(one, tmp_path / "model")
        other = mixnorm.load(tmp_path / "model")
    else:
        other = copy.deepcopy(one) if kind == "deepcopy" else pickle.loads(pickle.dumps(one))
    learn_ones(one, taken(rest, slice(0, 50)))
    learn_ones(other, taken(rest, slice(0, 50)))
    for each in (one, other):
        each.partial_fit(**taken(rest, slice(50, None)))
    assert_same(one, other)
    assert np.array_equal(one._learner.numbers, other._learner.numbers)
    assert one.loss_ == other.loss_


@each_model
def test_fit_forgets(model):
    arguments = stream(model)
    model = clone(model).set_params(random_state=0)
    once = clone(model).fit(**arguments)
    again = clone(model).fit(**stream(model, seed=1)).fit(**arguments)
    assert_same(once, again)
    assert again.n_rounds_ == N


@each_model
def test_fit_shuffles_unless_told_not_to(model):
    arguments = stream(model)
    mixed = clone(model).set_params(random_state=3).fit(**arguments)
    order = np.random.RandomState(3).permutation(N)
    wanted = clone(model).set_params(shuffle=False)
    known = {"classes": np.unique(arguments["y"])} if model in CLASSIFIERS else {}
    assert_same(mixed, wanted.partial_fit(**taken(arguments, order), **known))
    kept = clone(model).set_params(shuffle=False).fit(**arguments)
    assert_same(kept, clone(model).partial_fit(**arguments, **known))


def test_sorted_rows_are_learned():
    from sklearn.datasets import load_wine

    X, y = load_wine(return_X_y=True)  # sorted by class
    assert MirrorDescentClassifier(random_state=0).fit(X, y).score(X, y) > 0.95
    assert MirrorDescentClassifier(shuffle=False).fit(X, y).score(X, y) < 0.9


def test_a_bad_row_is_named_by_its_place_before_the_shuffle():
    X, y = rows(), np.arange(N) % 3
    X[17, 2] = np.nan
    model = MirrorDescentClassifier(random_state=0)
    with pytest.raises(ValueError, match="Row 17 of X contains NaN or infinity"):
        model.fit(X, y)


@pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS], ids=str)
def test_one_row_is_predicted_as_many_are(model):
    arguments = stream(model)
    found = clone(model)
    assert found.predict_one(arguments["X"][0]) is None
    learn_ones(found, taken(arguments, slice(0, 100)))
    for x in arguments["X"][:50]:
        wanted = found.predict(x[None])[0]
        np.testing.assert_allclose(found.predict_one(x), wanted, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.predict_one(list(x)), wanted, rtol=1e-9, atol=1e-9)


LOSSES = {
    "squared": lambda error: 0.5 * error**2,
    "absolute": np.abs,
    "huber": lambda error: np.where(np.abs(error) < 1, 0.5 * error**2, np.abs(error) - 0.5),
}


@pytest.mark.parametrize("model", [each for each in ALL if not each.average], ids=str)
def test_coefficients_are_what_is_played_next(model):
    """Scores by coef_ and intercept_ are those of the next row, whose loss they give."""
    arguments = stream(model)
    found = clone(model).partial_fit(**taken(arguments, slice(0, 200)))
    for i in range(200, 220):
        row = taken(arguments, slice(i, i + 1))
        scores = (row["X"] @ found.coef_.T + found.intercept_)[0]
        mistakes, loss = found.mistakes_, found.loss_
        found.partial_fit(**row)
        if model in CLASSIFIERS:
            assert found.mistakes_ - mistakes == (np.argmax(scores) != row["y"][0])
            continue
        if "task" in row:
            scores = scores[found.tasks_.tolist().index(row["task"][0])]
        name = model.losses if "task" in row else model.loss
        wanted = np.sum(LOSSES[name](scores - row["y"][0]))
        assert found.loss_ - loss == pytest.approx(wanted, rel=1e-6, abs=1e-9)


def test_averages_are_of_what_was_played():
    X, y = rows(), np.arange(N) % 3
    model, played = MirrorDescentClassifier("l2,1", scale=False, average=True), []
    plain = MirrorDescentClassifier("l2,1", scale=False)
    for i in range(N):
        if i:
            played.append(plain.coef_)
        for each in (model, plain):
            each.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1, 2])
    np.testing.assert_allclose(model.coef_, np.sum(played, axis=0) / N, rtol=1e-9)
    assert np.array_equal(model._learner.theta, plain._learner.theta)
    averages, weights = model.coef_, plain.coef_
    assert not np.array_equal(averages, weights)
    assert np.array_equal(model.set_params(average=False).coef_, averages)
    assert np.array_equal(plain.set_params(average=True).coef_, weights)


# --- labels


def words(y):
    return np.array(["zero", "one", "two", "three"])[y]


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
    with pytest.raises(ValueError, match="one label per row"):
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


# --- rows of names


ROWS = [{"a": 1.0, "b": 2.0}, {"b": 1.0, "c": -1.0}, {}, {"a": 3.0, "d": "red"}, {"d": "blue"}]


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


def table(rng, n=200):
    """Numbers far from zero in every row, with a class, as dicts and as an array."""
    X = rng.normal(size=(n, 3)) * [1.0, 20.0, 0.01] + [1000.0, -5e4, 3.0]
    y = (X[:, 0] - 1000.0 + (X[:, 1] + 5e4) / 20.0 > 0).astype(int)
    return X, y, [dict(zip("abc", x.tolist(), strict=True)) for x in X]


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
    with pytest.raises(TypeError, match="rows of names"):
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


# --- what comes in


@each_model
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_before_a_bad_one_are_kept(model, bad):
    arguments = stream(model)
    one, other = begun(model, arguments), begun(model, arguments)
    rest = taken(arguments, slice(40, None))
    one.partial_fit(**taken(rest, slice(0, 100)))
    rest["X"][100, 3] = bad
    with pytest.raises(ValueError, match="Row 100 of X contains NaN or infinity; the 100 rows"):
        other.partial_fit(**rest)
    assert_same(one, other)
    rest["X"][100, 3] = 0.0
    for each in (one, other):
        each.partial_fit(**taken(rest, slice(100, None)))
    assert_same(one, other)


@each_model
def test_bad_single_rows(model):
    arguments = taken(stream(model), slice(0, 60))
    one = learn_ones(clone(model), arguments)
    values = [values[0] for values in arguments.values()]
    x, others = values[0], values[1:]
    task = others[1:] if isinstance(one, OnlineMultiTaskLearner) else []
    before = one.n_rounds_
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="Row 0 of X contains NaN or infinity"):
            one.learn_one(np.where(np.arange(D) == 2, bad, x), *others)
    for wrong in (x[:-1], np.append(x, 1.0)):
        with pytest.raises(ValueError, match=f"{D} features"):
            one.learn_one(wrong, *others)
        with pytest.raises(ValueError, match=f"{D} features"):
            one.predict_one(wrong, *task)
    with pytest.raises(ValueError, match="NaN"):
        one.predict_one(np.full(D, np.nan), *task)
    assert one.n_rounds_ == before
    one.learn_one(list(x), *others)
    one.learn_one(x.astype(np.float32), *others)
    assert one.n_rounds_ == before + 2
    assert np.all(np.isfinite(one.coef_))


def test_overflow_is_said():
    X, y = rows() * 1e200, rows()[:, 0] * 1e200
    model = MirrorDescentRegressor("l2,2", learning_rate="fixed", scale=False)
    with pytest.raises(ValueError, match="have overflowed.*Set scale=True, lower eta0"):
        model.partial_fit(X, y)
    single = MirrorDescentRegressor("l2,2", learning_rate="fixed", scale=False)
    with pytest.raises(ValueError, match="have overflowed"):
        learn_ones(single, {"X": X, "y": y})


def test_frames_and_pipelines():
    frame = pd.DataFrame(rows(), columns=[f"f{j}" for j in range(D)])
    y = np.arange(N) % 3
    model = MirrorDescentClassifier().partial_fit(frame, y)
    assert list(model.feature_names_in_) == list(frame.columns)
    model.partial_fit(frame, y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.learn_one(frame.to_numpy()[0], 1)
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame.rename(columns={"f3": "other"}), y)
    pipeline = make_pipeline(StandardScaler(), MirrorDescentClassifier()).fit(frame, y)
    assert pipeline.predict(frame).shape == (N,)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
def test_dtypes(dtype):
    X = (rows() > 0).astype(dtype)
    y = np.arange(N) % 3
    one = MirrorDescentClassifier(random_state=0).fit(X, y)
    other = MirrorDescentClassifier(random_state=0).fit(X.astype(np.float64), y)
    assert_same(one, other)
    assert one.predict(X).shape == (N,)


@pytest.mark.parametrize("shuffle", [False, True])
def test_one_compiled_loop_serves_all_arrays(shuffle, tmp_path, monkeypatch):
    from mixnorm.engines.mirror import row_learner

    monkeypatch.setattr(row_learner, "_BLOCK", 50 * D)  # several blocks
    X, y, weight = rows(), rows()[:, :2], np.ones(N)
    model = MirrorDescentRegressor(shuffle=shuffle, random_state=0)
    wanted = clone(model).fit(X, y, sample_weight=weight)
    thin = clone(model).fit(sp.csr_array(X), y)
    kinds = len(jit.learn.signatures)
    np.save(tmp_path / "X.npy", X)
    for array in (X, y, weight):
        array.flags.writeable = False
    locked = sp.csr_array(X)
    for array in (locked.data, locked.indices, locked.indptr):
        array.flags.writeable = False
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for form in (X, np.asfortranarray(X), mapped, X[:, ::-1][:, ::-1]):
        assert_same(wanted, clone(model).fit(form, y, sample_weight=weight))
    assert_same(thin, clone(model).fit(locked, y))
    single = clone(model).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.predict(X), wanted.predict(X), rtol=1e-3, atol=1e-3)
    assert len(jit.learn.signatures) == kinds


# --- weights of rows


@each_model
def test_sample_weight(model):
    arguments, model = stream(model), clone(model).set_params(random_state=0)
    ones = clone(model).fit(**arguments, sample_weight=np.ones(N))
    assert_same(clone(model).fit(**arguments), ones)
    weight = np.random.default_rng(0).uniform(size=N)
    weighted = begun(model, arguments)
    rest = taken(arguments, slice(40, None))
    weighted.partial_fit(**rest, sample_weight=np.where(weight[40:] < 0.5, 0.0, 1.0))
    assert weighted.n_rounds_ == N
    assert weighted.n_updates_ < N
    with pytest.raises(ValueError, match="zero for every row"):
        clone(model).fit(**arguments, sample_weight=np.zeros(N))
    with pytest.raises(ValueError, match="one weight per row"):
        clone(model).partial_fit(**arguments, sample_weight=np.ones(N - 1))
    for wrong in (np.nan, -1.0, np.inf):
        with pytest.raises(ValueError, match="zero or more|finite"):
            clone(model).partial_fit(**arguments, sample_weight=np.full(N, wrong))
    with pytest.raises(TypeError, match="is a name"):
        clone(model).partial_fit(**arguments, sample_weight="balanced")


def test_a_weight_counts_in_loss_and_step():
    X, y = rows()[1:2], np.array([3.0])
    for weight in (1.0, 0.5):
        model = MirrorDescentRegressor(learning_rate="fixed", scale=False, eta0=1e-3)
        model.partial_fit(X, y, sample_weight=[weight])
        np.testing.assert_allclose(model.coef_, weight * 3e-3 * X[0], rtol=1e-12)
        assert model.loss_ == pytest.approx(weight * 4.5)


@pytest.mark.parametrize("model", [each for each in ALL if each.norm != "trace"], ids=str)
def test_a_row_of_weight_two_is_the_row_twice(model):
    arguments = stream(model)
    weight = np.random.default_rng(1).integers(1, 4, size=N)
    one = begun(model, arguments).partial_fit(**arguments, sample_weight=weight)
    again = np.repeat(np.arange(N), weight)
    other = begun(model, arguments).partial_fit(**taken(arguments, again))
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.intercept_, other.intercept_)
    assert one.loss_ == pytest.approx(other.loss_, rel=1e-12)
    # The curve runs up as for repeated rows, after the last copy of each.
    curve, ends = one.curve_, 40 + np.cumsum(weight)
    wanted = np.interp(ends, other.curve_["rounds"], other.curve_["loss"])
    assert curve["rounds"].tolist() == list(range(1, 41 + N))
    np.testing.assert_allclose(curve["loss"][40:], wanted, rtol=1e-9)


# --- parameters


WRONG = [
    (dict(norm="l3,1"), "norm"),
    (dict(norm="linf,1"), "no mirror map"),
    (dict(norm=3), "norm"),
    (dict(fit_intercept=1), "fit_intercept=1 must be True or False"),
    (dict(scale="yes"), "scale='yes' must be True or False"),
    (dict(average=None), "average=None must be True or False"),
    (dict(hash_features=0), "hash_features=0"),
    (dict(hash_features=1.5), "hash_features=1.5"),
    (dict(hash_features=True), "hash_features=True"),
    (dict(radius=0.0), "radius=0.0 must be positive"),
    (dict(radius=-1), "radius=-1 must be positive"),
    (dict(radius=np.inf), "radius=inf must be"),
    (dict(radius="1"), "radius='1' must be a number or None"),
    (dict(eta0=0), "eta0=0 must be positive"),
    (dict(eta0=np.nan), "eta0=nan must be positive"),
    (dict(eta0=True), "eta0=True must be a number or None"),
    (dict(conservative=1.0), "conservative=1.0 must be"),
    (dict(conservative=-0.1), "conservative=-0.1 must be"),
    (dict(conservative=True), "conservative=True must be"),
    (dict(learning_rate="none"), "learning_rate='none' is not known"),
    (dict(learning_rate="best"), "learning_rate='best' is not known"),
    (dict(learning_rate=1), "learning_rate=1 is not known"),
    (dict(learning_rate="feature", norm="l2,1"), "'l2,2' only"),
    (dict(learning_rate="feature", norm="trace"), "'l2,2' only"),
    (dict(learning_rate="feature", norm="l2,2", radius=1.0), "has no ball"),
    (dict(block_size=0), "block_size=0 must be"),
    (dict(block_size=2.0), "block_size=2.0 must be"),
    (dict(loss="no"), "loss='no' is not known"),
    (dict(losses="no"), "loss='no' is not known"),
    (dict(losses=MulticlassSquaredHinge()), "is joint"),
]


@pytest.mark.parametrize(
    "model",
    [GroupPerceptron(), MirrorDescentClassifier(), MirrorDescentRegressor(),
     OnlineMultiTaskLearner()], ids=str,
)  # fmt: skip
def test_wrong_parameters(model):
    arguments, tried = stream(model), 0
    for params, said in WRONG:
        if not params.keys() <= model.get_params().keys():
            continue
        tried += 1
        found = clone(model).set_params(**params)
        for method in ("fit", "partial_fit"):
            with pytest.raises((ValueError, TypeError), match=said):
                getattr(found, method)(**arguments)
            assert not found.__sklearn_is_fitted__()
        found.set_params(**{name: model.get_params()[name] for name in params})
        found.partial_fit(**arguments)  # and goes on once it is mended
    assert tried > 8


def test_losses_that_cannot_be():
    X, y = rows(), np.arange(N) % 3
    with pytest.raises(ValueError, match="is no loss on labels"):
        MirrorDescentClassifier(loss=Squared()).fit(X, y)
    assert MirrorDescentClassifier(loss=MulticlassSquaredHinge()).fit(X, y).loss_ > 0.0
    with pytest.raises(ValueError, match="is not known"):
        MirrorDescentClassifier(loss="squared_hinge").fit(X, y)
    with pytest.raises(ValueError, match="not known|loss on classes"):
        MirrorDescentRegressor(loss="hinge").fit(X, y)
    assert MirrorDescentRegressor(loss=Huber(delta=3.0)).fit(X, y).loss_ > 0.0
    assert not hasattr(MirrorDescentClassifier(loss="hinge").fit(X, y), "predict_proba")


def test_unfitted():
    for model in ALL:
        assert not hasattr(model, "coef_")
        with pytest.raises(NotFittedError):
            model.predict(rows())
        with pytest.raises(NotFittedError):
            model.curve_  # noqa: B018


def test_parameters_set_in_mid_stream_are_for_the_next_model():
    X, y = rows(), np.arange(N) % 3
    model = MirrorDescentClassifier("trace", block_size=8, radius=3.0).partial_fit(X[:5], y[:5])
    model.set_params(block_size=2, radius=1.0)
    model.partial_fit(X, y).partial_fit(X, y + 1)
    assert model._learner.plan.block == 8
    assert model._learner.plan.radius == 3.0
    before = model.predict_proba(X)
    model.set_params(loss="hinge", average=True, norm="l1,1", scale=False)
    assert np.array_equal(model.predict_proba(X), before)
    assert isinstance(model._learner.plan.losses[0], MultinomialLogistic)
    assert len(model.classes_) == 4


# --- accounts


@pytest.mark.parametrize("count", [999, 1000, 1001, 2000, 2001, 5000])
def test_curves_are_thinned(count, monkeypatch):
    X, y = np.tile(rows(), (count // N + 1, 1))[:count], np.arange(count) % 3
    monkeypatch.setattr(_online_curve, "_POINTS", 1000)
    whole, parts = GroupPerceptron().partial_fit(X, y), GroupPerceptron()
    single = GroupPerceptron().partial_fit(X[:3], y[:3])
    for part in np.array_split(np.arange(count), 13):
        parts.partial_fit(X[part], y[part], classes=[0, 1, 2])
    for i in range(3, count):
        single.learn_one(X[i], int(y[i]))
    curve = whole.curve_
    stride = int(curve["rounds"][0])
    assert 450 < len(curve["rounds"]) <= 1000
    assert np.array_equal(curve["rounds"], stride * np.arange(1, count // stride + 1))
    assert curve["mistakes"][-1] <= whole.mistakes_
    assert np.array_equal(curve["mistakes"], curve["loss"])  # of a perceptron
    for other in (parts, single):
        for name in ("rounds", "mistakes", "loss"):
            assert np.array_equal(curve[name], other.curve_[name])


@pytest.mark.parametrize("norm", ["l2,1", "l1,1", "l2,2", "trace"])
def test_bounds_of_estimators(norm):
    X, y = rows() / np.logspace(-2, 2, D), np.arange(N) % 3
    model = MirrorDescentClassifier(
        norm, "hinge", radius=2.0, learning_rate="adaptive", scale=False, conservative=0.0,
        fit_intercept=False,
    ).fit(X, y)  # fmt: skip
    W = np.random.default_rng(0).normal(size=(3, D))
    W *= 2.0 / model._learner.norm.value(W.T)
    scores = X @ W.T
    margins = 1.0 + scores - scores[np.arange(N), y][:, None]
    margins[np.arange(N), y] = 0.0
    assert model.loss_ - np.sum(np.max(margins, axis=1)) <= model.regret(W) + 1e-9
    assert model.regret(W) <= model.regret_bound(W)
    with pytest.raises(ValueError, match="shape of coef_"):
        model.regret(W.T)
    if norm != "trace":
        perceptron = GroupPerceptron(norm).fit(X, y)
        assert perceptron.mistakes_ <= perceptron.mistake_bound(W)


# --- numbers


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("norm", ["l2,2", "l2,1"])
def test_targets_of_any_size(unit, norm):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 8))
    Y = np.stack([X[:, 0] + 2.0 * X[:, 1], X[:, 2] - 1.0, 1000.0 * X[:, 3]], axis=1) * unit
    params = {} if norm == "l2,2" else {"loss": "absolute", "eta0": 1000.0 * unit}
    model = MirrorDescentRegressor(norm, **params).fit(X, Y)
    found = model.predict(X)
    assert found.shape == Y.shape
    if norm == "l2,2":
        errors = np.mean((found - Y) ** 2, axis=0) / np.var(Y, axis=0)
        assert np.all(errors < 0.05)
    single = MirrorDescentRegressor(norm, **params).fit(X, Y[:, 2])
    assert single.coef_.shape == (8,)
    assert isinstance(single.intercept_, float)
    assert single.score(X, Y[:, 2]) > 0.9


def test_units_of_inputs_do_not_matter():
    X = rows()
    y = X @ np.random.default_rng(0).normal(size=D)
    units = 2.0 ** np.arange(-10, 10)
    model = MirrorDescentRegressor(random_state=0)
    one, other = clone(model).fit(X, y), clone(model).fit(X * units, y)
    np.testing.assert_allclose(one.predict(X), other.predict(X * units), rtol=1e-9)


RAW = [each for each in ALL if each.scale and each.norm != "trace"]
RAW += [MirrorDescentClassifier("trace", radius=5.0), OnlineMultiTaskLearner("trace", "huber")]


@pytest.mark.parametrize("model", RAW, ids=str)
@pytest.mark.parametrize("unit", [-1e-6, 1e6])
def test_units_and_origins_of_columns_do_not_matter(model, unit):
    arguments = stream(model)
    X = arguments["X"]
    other = unit * (X + np.std(X, axis=0) * np.linspace(-1000.0, 1000.0, D))
    first = clone(model).partial_fit(**arguments)
    second = clone(model).partial_fit(**arguments | {"X": other})
    assert abs(first.mistakes_ - second.mistakes_) <= 0.02 * N
    assert second.loss_ == pytest.approx(first.loss_, rel=1e-3)
    np.testing.assert_allclose(second.coef_ * unit, first.coef_, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_a_column_that_goes_on_and_on_does_no_harm(power):
    """Its unit grows with every row, and its weight must not."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=2000), np.linspace(0.0, 1.0, 2000)
    y = (x + rng.normal(0.0, 0.3, size=2000) > 0.5).astype(int)
    alone = MirrorDescentClassifier().partial_fit(x[:, None], y)
    beside = MirrorDescentClassifier().partial_fit(np.column_stack([x, t**power]), y)
    assert beside.mistakes_ < alone.mistakes_ + 60


@pytest.mark.parametrize("norm", ["l2,2", "l2,1", "l1,1", "trace"])
def test_a_value_very_far_out_spoils_its_column_alone(norm):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 6))
    y = np.argmax(X @ rng.normal(size=(6, 3)), axis=1)
    wild = X.copy()
    wild[300, 0] = 1e9
    rest = MirrorDescentClassifier(norm).partial_fit(np.where(np.arange(6) == 0, 0.0, X), y)
    model = MirrorDescentClassifier(norm).partial_fit(wild, y)
    assert model.mistakes_ < 1.2 * rest.mistakes_
    assert np.all(np.abs(model.intercept_) < 20.0)


def test_a_very_heavy_row_does_not_overshoot():
    X, y, _ = table(np.random.default_rng(0), 400)
    weight = np.where(np.arange(400) == 100, 1e9, 1.0)
    model = MirrorDescentClassifier().partial_fit(X, y, sample_weight=weight)
    assert model.score(X, y) > 0.85
    target = X[:, 0] + X[:, 1]
    model = MirrorDescentRegressor().partial_fit(X, target, sample_weight=weight)
    assert model.score(X, target) > 0.9


def test_sparse_rows_keep_zero_as_their_origin():
    X = sp.random(200, 30, density=0.1, format="csr", random_state=0)
    model = MirrorDescentClassifier().partial_fit(X, np.arange(200) % 3)
    assert not np.any(model._learner.column[layout.MEAN])
    other = MirrorDescentClassifier().partial_fit(X.toarray(), np.arange(200) % 3)
    assert np.any(other._learner.column[layout.MEAN])
    raw = MirrorDescentClassifier(fit_intercept=False).partial_fit(X.toarray(), np.arange(200) % 3)
    assert not np.any(raw._learner.column[layout.MEAN])
    assert not np.any(raw.intercept_)


def test_targets_of_any_origin():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4)) + 100.0
    y = X[:, 0] - 2.0 * X[:, 1]
    one = MirrorDescentRegressor().partial_fit(X, y)
    other = MirrorDescentRegressor().partial_fit(X, y + 1e5)
    assert other.loss_ == pytest.approx(one.loss_, rel=1e-3)  # the first target costs nothing
    np.testing.assert_allclose(other.predict(X), one.predict(X) + 1e5, rtol=1e-6)
    assert other.score(X, y + 1e5) > 0.9


@pytest.mark.parametrize("model", [each for each in ALL if not each.average], ids=str)
def test_the_prediction_that_counts_is_the_one_before(model):
    """Rows however far out are predicted by what was known before them."""
    arguments = stream(model)
    arguments["X"][150:] *= np.linspace(1.0, 50.0, N - 150)[:, None]
    found = clone(model).partial_fit(**taken(arguments, slice(0, 150)))
    for i in range(150, 200):
        row = taken(arguments, slice(i, i + 1))
        if model in CLASSIFIERS:
            guess = found.predict_one(row["X"][0])
            before = found.mistakes_
            found.partial_fit(**row)
            assert found.mistakes_ - before == (guess != row["y"][0])
        else:
            task = {"task": row["task"]} if "task" in row else {}
            guess, before = found.decision_function(row["X"], **task) if task else found.predict(
                row["X"]
            ), found.loss_  # fmt: skip
            found.partial_fit(**row)
            name = model.losses if task else model.loss
            if name in LOSSES:
                wanted = np.sum(LOSSES[name](guess[0] - row["y"][0]))
                assert found.loss_ - before == pytest.approx(wanted, rel=1e-6, abs=1e-6)


def test_perceptrons_work_on_tables_with_units():
    from sklearn.datasets import load_wine

    X, y = load_wine(return_X_y=True)
    model = GroupPerceptron(scale=True, random_state=0).fit(X, y)
    assert model.mistakes_ < 40 < GroupPerceptron(random_state=0).fit(X, y).mistakes_
    with pytest.raises(TypeError, match="set scale=False for a bound"):
        model.mistake_bound(np.zeros((3, 13)))


def test_no_bound_for_running_units():
    X, y = rows(), np.arange(N) % 3
    model = MirrorDescentClassifier("l2,1", radius=2.0).fit(X, y)
    for method in (model.regret, model.regret_bound):
        with pytest.raises(TypeError, match="set scale=False for a bound"):
            method(np.zeros((3, D)))


def test_targets_that_are_not_known():
    X, Y = rows(), rows()[:, :3]
    Y[::2, 1] = np.nan
    model = MirrorDescentRegressor().partial_fit(X, Y)
    assert np.all(np.isfinite(model.predict(X)))
    model.partial_fit(X, np.full((N, 3), np.nan))
    before = model.coef_
    model.learn_one(X[0], np.array([np.nan] * 3))
    assert np.array_equal(model.coef_, before)
    with pytest.raises(ValueError, match="NaN only"):
        MirrorDescentRegressor().fit(X, np.full(N, np.nan))
    for wrong in (Y[:, :2], Y[:, 0]):
        with pytest.raises(ValueError, match="had 3 before"):
            model.partial_fit(X, wrong)
    with pytest.raises(ValueError, match="inf"):
        model.partial_fit(X, np.full((N, 3), np.inf))


@pytest.mark.parametrize("several", [False, True])
def test_single_targets_are_checked(several):
    X, Y = rows(), rows()[:, :3]
    model = MirrorDescentRegressor()
    for i in range(20):
        model.learn_one(X[i], Y[i] if several else Y[i, 0])
    before = model.n_rounds_
    for wrong in (np.inf, "a", np.ones(2), 1.0 if several else np.ones(3)):
        with pytest.raises(ValueError, match="inf|string|had|columns"):
            model.learn_one(X[0], wrong)
    assert model.n_rounds_ == before
    model.learn_one(X[0], [1, 2, 3] if several else 1)
    assert np.all(np.isfinite(model.coef_))


def test_norms_of_ones_own():
    X, y = rows(), np.arange(N) % 3
    groups = np.arange(D) // 4
    for norm in (MixedNorm(2, 1.5), MixedNorm(1.4, 1.4), MixedNorm(2, 1, groups)):
        model = MirrorDescentClassifier(norm, learning_rate="adaptive").fit(X, y)
        assert model.predict(X).shape == (N,)
    assert not isinstance(model._learner, RowLearner)
    grouped = MirrorDescentClassifier(MixedNorm(2, 1, groups)).partial_fit(X, y)
    grouped.partial_fit(X, y + 1)
    assert len(grouped.classes_) == 4


@pytest.mark.parametrize("value", [[1.0], 10**400])
def test_values_of_dicts_that_are_no_numbers_are_named(value):
    with pytest.raises((TypeError, ValueError), match="The value of 'size' is no number"):
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
    with pytest.raises(TypeError, match="hash_features=4 is for rows of names"):
        MirrorDescentClassifier(hash_features=4).fit(np.eye(2), [0, 1])


def test_dicts_beside_other_rows():
    with pytest.raises(TypeError, match="Row 1 of X is a list"):
        MirrorDescentClassifier().fit([{"a": 1.0}, [1.0]], [0, 1])


def test_one_row_may_be_sparse_or_any_mapping():
    whole, thin = MirrorDescentClassifier(), MirrorDescentClassifier()
    for row, label in zip(np.eye(3), "abc", strict=True):
        whole.partial_fit(sp.csr_matrix(row), [label])
        thin.learn_one(sp.csr_matrix(row), label)
    np.testing.assert_array_equal(whole.coef_, thin.coef_)
    assert thin.predict_one(sp.csr_matrix(np.eye(3)[1])) == whole.predict_one(np.eye(3)[1])
    named = MirrorDescentClassifier()
    named.learn_one(MappingProxyType({"a": 1.0}), "u")
    assert named.predict_one(MappingProxyType({"a": 1.0})) == "u"


def test_steps_by_feature_are_for_the_euclidean_norm_also_with_few_columns():
    model = MirrorDescentClassifier("l2,1", learning_rate="feature")
    with pytest.raises(ValueError, match="goes with the norm 'l2,2' only"):
        model.learn_one(np.ones(3), 0)


def test_rows_whose_squares_vanish_are_refused():
    X, y = np.eye(4), np.arange(4)
    with pytest.raises(ValueError, match="so small that their squares are lost"):
        GroupPerceptron().fit(X * 1e-200, y)
    assert GroupPerceptron(scale=True).fit(X * 1e-200, y).mistakes_ > 0


def test_a_bad_first_row_leaves_nothing_behind():
    model = MirrorDescentClassifier()
    with pytest.raises(ValueError, match="NaN"):
        model.learn_one(np.array([np.nan, 1.0]), 0)
    assert model.predict_one(np.ones(2)) is None
    model.learn_one(np.ones(3), 0)
    assert model.coef_.shape == (1, 3)


@pytest.mark.parametrize(
    ("norm", "factor"),
    [
        ("l2,1", 5e-324), ("l1,1", 1e-310), ("trace", 1e-310),
        ("l2,1", 1.7e308), ("l1,1", 1.7e308), ("trace", 1.7e308),
    ],
)  # fmt: skip
def test_rows_of_extreme_size(norm, factor):
    """An error in words, in fit or for scores, and no warning of NumPy's."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (60, 4))
    y = np.argmax(X[:, :3], axis=1)
    model = MirrorDescentClassifier(norm, "hinge")
    with pytest.raises(ValueError, match=r"too large \(?or too small"):
        model.fit(factor * X, y).decision_function(factor * X)


@pytest.mark.parametrize("loss", ["huber", "absolute", "epsilon_insensitive"])
def test_a_huge_target_is_refused_in_words(loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = X[:, 0]
    model = MirrorDescentRegressor("l2,1", loss).partial_fit(X[:30], y[:30])
    with pytest.raises(ValueError, match="sample weights are too large"):
        model.partial_fit(X[30:32], [1.7e308, -1.7e308]).partial_fit(X[31:], y[31:])
