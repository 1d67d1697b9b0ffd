"""Models of tensor kernels: checked when they are read, and free of the parameters of their fit."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import mixnorm
from mixnorm import TensorKernelClassifier, TensorKernelRegressor, TensorKernelRegressorCV
from mixnorm.exceptions import ModelFileError
from mixnorm.kernels import ExponentialTensorKernel
from mixnorm.losses import Hinge, MultinomialLogistic
from mixnorm.models import BinaryOutputs, FitReport, TensorModel
from mixnorm.selection import SearchResult

MEMORY = 2**30
REFUSED = (ValueError, TypeError, AttributeError)
FORMS = {
    "features": {},
    "sampled": {"kernel": ExponentialTensorKernel(), "random_state": 0},
    "tensor": {"kernel": ExponentialTensorKernel()},
    "low-rank": {"kernel": ExponentialTensorKernel()},
}


def table():
    X = np.random.default_rng(0).normal(size=(20, 4))
    return X, X[:, 0] * X[:, 1] + X[:, 2]


def fitted(name="features"):
    return TensorKernelRegressor(**FORMS[name], representation=name).fit(*table())


@pytest.mark.parametrize("name", FORMS)
def test_a_model_scores_by_itself(name):
    X, _ = table()
    model = fitted(name)
    assert model.model_.representation == name
    np.testing.assert_array_equal(model.model_.scores(X)[:, 0], model.predict(X))
    model.model_.check(MEMORY)
    cost = model.model_.cost()
    assert set(cost) == {"floats", "multiplications"}
    assert min(cost.values()) > 0


def test_what_a_fit_leaves():
    model = TensorKernelRegressorCV(gammas=[1.0, 10.0], cv=3).fit(*table())
    own = {name for name in vars(model) if name not in model.get_params(deep=False)}
    assert {"model_", "report_", "search_", "n_features_in_"} <= own
    assert isinstance(model.model_, TensorModel)
    assert isinstance(model.report_, FitReport)
    assert isinstance(model.search_, SearchResult)
    assert model.best_params_ == {"gamma": model.gamma_}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("units", np.zeros(1)),
        ("units", np.ones(2)),
        ("norms", np.ones(2)),
        ("norms", None),
        ("frame", np.ones((3, 5))),
        ("frame", -np.ones((3, 4))),
        ("dual_coef", np.ones((20, 2))),
        ("q", 4),
        ("q", 6.0),
        ("q", 2.0),
        ("outputs", BinaryOutputs(np.arange(2))),
    ],
)
def test_a_damaged_model_is_refused(name, value):
    with pytest.raises(REFUSED):
        replace(fitted().model_, **{name: value}).check(MEMORY)


@pytest.mark.parametrize(
    ("form", "name", "value"),
    [
        ("features", "weights", np.ones((3, 1))),
        ("features", "unit", 0.0),
        ("features", "unit", np.inf),
        ("features", "q", 6.0),
        ("features", "kernel", None),
        ("features", "kernel", ExponentialTensorKernel()),
        ("sampled", "exponents", np.full((1, 4), -1)),
        ("tensor", "alpha", np.ones((3, 1))),
        ("tensor", "columns", np.ones((20, 9))),
        ("low-rank", "pairs", np.full((2, 1), 99)),
        ("low-rank", "coef", np.ones((1, 2))),
    ],
)
def test_a_damaged_function_is_refused(form, name, value):
    model = fitted(form).model_
    with pytest.raises(REFUSED):
        replace(model, expansion=replace(model.expansion, **{name: value})).check(MEMORY)


def test_more_columns_than_memory():
    with pytest.raises(MemoryError, match="max_bytes"):
        fitted().model_.check(8)


@pytest.mark.parametrize("n_scores", [2, 3])
def test_scores_that_do_not_fit_the_classes(n_scores):
    with pytest.raises(ValueError, match="classes"):
        BinaryOutputs(np.arange(2), Hinge()).check(n_scores)


def test_a_loss_of_all_classes_is_refused():
    with pytest.raises(ValueError, match="not a loss for two labels"):
        BinaryOutputs(np.arange(2), MultinomialLogistic()).check(1)


def test_a_model_of_another_kind_is_not_saved(tmp_path):
    X, y = table()
    model = TensorKernelClassifier().fit(X, y > 0.0)
    model.model_ = fitted().model_
    with pytest.raises(
        ModelFileError, match="has outputs of the class NumberOutputs, not BinaryOutputs"
    ):
        mixnorm.save(model, tmp_path / "model.mixnorm")


def test_parameters_set_later_do_not_count():
    X, y = table()
    labels = np.digitize(y, [-0.5, 0.5])
    model = TensorKernelClassifier().fit(X, labels)
    before, features = model.predict_proba(X), model.features(3)
    again = pickle.loads(pickle.dumps(model)).set_params(loss="hinge", q=6)
    np.testing.assert_array_equal(again.predict_proba(X), before)
    assert [one.name for one in again.features(3)] == [one.name for one in features]
