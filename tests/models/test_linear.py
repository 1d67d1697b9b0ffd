"""Linear models: small, checked when they are read, and free of the parameters of their fit."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm import (
    LinearMulticlassSVC,
    MixedNormClassifier,
    MixedNormClassifierCV,
    MixedNormRegressor,
    MultiTaskLearner,
)
from mixnorm.losses import Huber, MultinomialLogistic, Squared
from mixnorm.models import ClassOutputs, FitReport, Inputs, LinearModel, NumberOutputs
from mixnorm.pools import Cost
from mixnorm.storage.decode import Decoder
from mixnorm.storage.encode import Encoder

REFUSED = (ValueError, TypeError, KeyError, AttributeError, MemoryError)
INPUTS = ("n_features", "names")
OUTPUTS = ("classes", "loss", "single", "unit", "centre")


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).normal(size=(60, 40))
    return X, np.argmax(X[:, :3], axis=1)


@pytest.fixture(scope="module")
def model(data):
    return MixedNormClassifier(alpha=0.1).fit(*data)


@pytest.fixture(scope="module")
def regressor():
    X = np.random.default_rng(0).normal(size=(60, 5))
    return MixedNormRegressor(alpha=0.1).fit(X, X[:, 0])


@pytest.fixture(scope="module")
def machine(data):
    X, y = data
    return LinearMulticlassSVC().fit(X[:, :4], np.array(["a", "b", "c"])[y])


def read(fitted, max_bytes=10**6):
    """Return an estimator after it was written and read."""
    encoder = Encoder()
    node = encoder.node(fitted)
    return Decoder(encoder.arrays, max_bytes).value(node)


def altered(fitted, **changes):
    """Return an estimator whose model has other content."""
    model = fitted.model_
    inputs = {name: changes.pop(name) for name in INPUTS if name in changes}
    outputs = {name: changes.pop(name) for name in OUTPUTS if name in changes}
    parts = {"inputs": replace(model.inputs, **inputs)}
    parts["outputs"] = replace(model.outputs, **outputs)
    return fitted._copy_with(replace(model, **(parts | changes)))


# --- what is kept


def test_only_weights_in_use_are_kept(model, data):
    own = model.model_
    assert own.weights.shape == (3, len(model.support_))
    assert own.coef is own.coef
    assert model.coef_.shape == (3, 40)
    assert own.cost() == Cost(3 * len(model.support_), 0)
    assert vars(model).keys() - model.get_params() == {"model_", "report_", "n_features_in_"}
    found = read(model)
    assert vars(found).keys() == vars(model).keys()
    assert np.array_equal(found.coef_, model.coef_)
    assert np.array_equal(found.predict(data[0]), model.predict(data[0]))


def test_without_features_in_use(regressor):
    X = np.random.default_rng(0).normal(size=(60, 5))
    nothing = MixedNormRegressor(alpha=1e3).fit(X, X[:, :2])
    assert nothing.model_.weights.shape == (2, 0)
    assert np.array_equal(read(nothing).predict(X), nothing.predict(X))


def test_few_columns_are_read_from_dense_rows():
    inputs, outputs = Inputs(8), NumberOutputs(True, 1.0, np.zeros(1), Squared())
    own = LinearModel.of(np.eye(1, 8), np.ones(1), inputs, outputs)
    X = np.arange(16.0).reshape(2, 8)
    X[:, 1:] = np.nan  # in columns without weight
    assert own.scores(X).tolist() == [[1.0], [9.0]]
    assert own.scores(sp.csr_array(np.nan_to_num(X))).tolist() == [[1.0], [9.0]]


def test_what_a_search_found_is_kept(data):
    searched = MixedNormClassifierCV(alphas=4, cv=3).fit(*data)
    found = read(searched)
    assert found.best_params_ == {"alpha": searched.alpha_} == searched.best_params_
    assert np.array_equal(found.alphas_, searched.alphas_)
    assert found.alpha_max_ == searched.alpha_max_
    assert found.best_score_ == searched.best_score_
    assert found.cv_results_.keys() == searched.cv_results_.keys()


def test_a_report():
    report = FitReport(1.0, 0.5, 3, True, False)
    assert (report.norm_value, report.facts) == (None, {})


# --- parameters set after a fit


def test_parameters_set_after_a_fit_change_nothing(data):
    X, y = data
    loss = MultinomialLogistic()
    model = MixedNormClassifier(alpha=0.1, loss=loss).fit(X, y)
    before = model.predict_proba(X)
    model.set_params(loss="hinge", norm="trace", alpha=9.0)
    assert np.array_equal(model.predict_proba(X), before)
    hinge = MixedNormClassifier(alpha=0.1, loss="hinge").fit(X, y)
    assert not hasattr(hinge.set_params(loss="logistic"), "predict_proba")
    loss = Huber(2.0)
    regressor = MixedNormRegressor(loss=loss).fit(X, y)
    loss.set_params(delta=1.0)
    assert regressor.model_.outputs.loss == Huber(2.0)


# --- strangers' files


WRONG = [
    dict(weights=[[1.0]]),
    dict(weights=np.zeros((3, 1))),
    dict(weights=np.zeros((0, 0))),
    dict(weights=np.zeros(3)),
    dict(weights=np.zeros((3, 3), dtype=int)),
    dict(features=None),
    dict(features=np.array([0.5])),
    dict(features=np.array([-1, 2, 3])),
    dict(n_features=2),
    dict(n_features=10**9),
    dict(n_features=-1),
    dict(n_features="40"),
    dict(names=("a", "b")),
    dict(intercept=np.zeros(2)),
    dict(intercept=np.full(3, np.nan)),
    dict(intercept=0.0),
    dict(classes=np.arange(2)),
    dict(classes=[0, 1, 2]),
    dict(classes=None),
    dict(loss=Squared()),
    dict(inputs=None),
    dict(outputs=None),
    dict(outputs=NumberOutputs(False, 1.0, np.zeros(3), Squared())),
]


def short(changes):
    return str(changes)[:50]


@pytest.mark.parametrize("changes", WRONG, ids=short)
def test_wrong_models_are_refused(model, changes):
    with pytest.raises(REFUSED):
        read(altered(model, **changes))


@pytest.mark.parametrize(
    "changes",
    [dict(gap="small"), dict(iterations=1.5), dict(objective=None), dict(norm_value="1"),
     dict(facts=[]), dict(converged=1)],
    ids=short,
)  # fmt: skip
def test_wrong_reports_are_refused(model, changes):
    found = model._copy_with(model.model_)
    found.report_ = replace(model.report_, **changes)
    with pytest.raises(REFUSED, match="FitReport"):
        read(found)


@pytest.mark.parametrize("part", ["model_", "report_", "search_"])
def test_parts_that_are_missing_or_too_many(data, model, part):
    searched = MixedNormClassifierCV(alphas=4, cv=3).fit(*data)
    found = searched._copy_with(searched.model_)
    setattr(found, part, "nothing")
    with pytest.raises(REFUSED, match=part):
        read(found)
    if part != "model_":
        del vars(found)[part]
        with pytest.raises(REFUSED, match=part):
            read(found)
    found = model._copy_with(model.model_)
    found.search_ = searched.search_  # which is no part of this kind of estimator
    assert not hasattr(read(found), "search_")


def test_features_must_rise_within_the_columns(model):
    for features in (model.support_[::-1].copy(), model.support_ + 40, model.support_ * 0):
        with pytest.raises(ValueError, match="support_ must rise|support_ must be .* below 40"):
            read(altered(model, features=features))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(single=1), "single"),
        (dict(intercept=np.zeros(2)), "intercept"),
        (dict(intercept=np.array([np.nan])), "finite"),
        (
            dict(weights=np.zeros((2, 1)), intercept=np.zeros(2), centre=np.zeros(2)),
            "single is True",
        ),
        (dict(loss=MultinomialLogistic()), "not a loss for numbers"),
        (dict(outputs=ClassOutputs(np.arange(2))), "has outputs of the class"),
    ],
    ids=short,
)
def test_wrong_models_of_a_regressor(regressor, changes, message):
    assert len(regressor.support_) == 1
    with pytest.raises(ValueError, match=message):
        read(altered(regressor, **changes))


def test_numbers_are_no_tasks(data):
    X, _ = data
    tasks = MultiTaskLearner().fit(X, X[:, :2])
    numbers = MixedNormRegressor(alpha=0.1).fit(X, X[:, :2])
    for one, other in ((tasks, numbers), (numbers, tasks)):
        with pytest.raises(ValueError, match="has outputs of the class"):
            read(one._copy_with(other.model_))


@pytest.mark.parametrize(
    "changes",
    [
        dict(weights=np.ones((2, 4))),
        dict(weights=np.ones((3, 5))),
        dict(weights=None),
        dict(intercept=np.ones(2)),
        dict(intercept=0.0),
        dict(n_features=3),
        dict(classes=np.array(["a", "b"])),
        dict(classes=["a", "b", "c"]),
    ],
    ids=short,
)
def test_wrong_models_of_a_machine(machine, changes):
    assert np.array_equal(read(machine).coef_, machine.coef_)
    with pytest.raises(REFUSED):
        read(altered(machine, **changes))


def test_wrong_parameters_are_refused(model, machine):
    for params in (dict(norm="no"), dict(alpha=-1), dict(max_iter=0)):
        wrong = model._copy_with(model.model_)
        wrong.set_params(**params)
        with pytest.raises(ValueError, match="norm|alpha|max_iter"):
            read(wrong)
    with pytest.raises(ValueError, match="intercept_scaling"):
        read(machine._copy_with(machine.model_).set_params(intercept_scaling=-1.0))
