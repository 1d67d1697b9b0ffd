"""The lean predictor says what the model says."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from mixnorm import ShareBoostClassifier, ShareBoostRegressor
from mixnorm.pools import Columns, Products, Stumps

POOLS = [None, Columns(groups=[0, 0, 1, 2]), Stumps(), Products()]


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.mark.parametrize("pool", POOLS, ids=repr)
@pytest.mark.parametrize("labels", ["numbers", "texts", "two"])
def test_labels(iris, pool, labels):
    X, y = iris
    y = {"numbers": y, "texts": np.array(["a", "b", "c"])[y], "two": y > 0}[labels]
    model = ShareBoostClassifier(3, pool=pool).fit(X, y)
    predict = model.predictor()
    expected = model.predict(X)
    assert_array_equal(predict(X), expected)
    assert [predict(x) for x in X[::10]] == expected[::10].tolist()
    assert_array_equal(pickle.loads(pickle.dumps(predict))(X), expected)


@pytest.mark.parametrize("pool", POOLS, ids=repr)
def test_numbers(iris, pool):
    X, _ = iris
    one = ShareBoostRegressor(2, pool=pool).fit(X, X[:, 0] * X[:, 2])
    assert_allclose(one.predictor()(X), one.predict(X), rtol=1e-12)
    assert one.predictor()(X[0]) == pytest.approx(one.predict(X[:1])[0])
    many = ShareBoostRegressor(2, pool=pool).fit(X, X[:, :2] ** 2)
    assert_allclose(many.predictor()(X), many.predict(X), rtol=1e-12)
    assert_allclose(many.predictor()(X[3]), many.predict(X[3:4])[0], rtol=1e-12)


def test_the_model_may_change_afterwards(iris):
    X, y = iris
    model = ShareBoostClassifier(3).fit(X, y)
    predict, expected = model.predictor(), model.predict(X)
    model.fit(X, y == 1)
    assert_array_equal(predict(X), expected)


def test_unfitted():
    with pytest.raises(NotFittedError):
        ShareBoostClassifier().predictor()
