"""Online learners of all kinds, and streams for them."""

import numpy as np
import pytest
from sklearn.base import clone

from mixnorm import (
    GroupPerceptron,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    OnlineMultiTaskLearner,
)
from mixnorm.engines.mirror import layout as layout

N, D = 200, 20


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


def words(y):
    return np.array(["zero", "one", "two", "three"])[y]


ROWS = [{"a": 1.0, "b": 2.0}, {"b": 1.0, "c": -1.0}, {}, {"a": 3.0, "d": "red"}, {"d": "blue"}]


def table(rng, n=200):
    """Numbers far from zero in every row, with a class, as dicts and as an array."""
    X = rng.normal(size=(n, 3)) * [1.0, 20.0, 0.01] + [1000.0, -5e4, 3.0]
    y = (X[:, 0] - 1000.0 + (X[:, 1] + 5e4) / 20.0 > 0).astype(int)
    return X, y, [dict(zip("abc", x.tolist(), strict=True)) for x in X]
