"""A model that was stored and read is the model that was stored, to the last bit."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, RepeatedStratifiedKFold, StratifiedKFold

import mixnorm
from mixnorm import (
    ShareBoostClassifier,
    ShareBoostClassifierCV,
    ShareBoostRegressor,
    ShareBoostRegressorCV,
    estimators,
)
from mixnorm.losses import MarginSoftmax
from mixnorm.pools import Columns

LEARNERS = [name for name in estimators.__all__ if hasattr(getattr(estimators, name), "fit")]
# What goes on from a fit is kept where a file can hold it.
PASSING = {"_resume", "_last", "_recipe"}
METHODS = ("predict", "predict_proba", "decision_function", "transform")
STAGED = ("staged_predict", "staged_decision_function")


def assert_same_model(tools, model, loaded, X):
    assert type(loaded) is type(model)
    assert tools.same(model.get_params(deep=False), loaded.get_params(deep=False))
    own, found = vars(model), vars(loaded)
    assert own.keys() - PASSING == found.keys() - PASSING
    for name in found.keys() - PASSING:
        assert tools.same(own[name], found[name]), name
    for name in METHODS:
        if hasattr(model, name):
            assert tools.same(getattr(model, name)(X), getattr(loaded, name)(X)), name
    for name in STAGED:
        if hasattr(model, name):
            both = zip(getattr(model, name)(X), getattr(loaded, name)(X), strict=True)
            assert all(tools.same(*pair) for pair in both), name
    if hasattr(model, "get_feature_names_out"):
        assert tools.same(model.get_feature_names_out(), loaded.get_feature_names_out())


@pytest.mark.parametrize("name", LEARNERS)
def test_every_estimator(tools, tmp_path, name):
    model, X = tools.train(name)
    mixnorm.save(model, tmp_path / "model.mixnorm")
    loaded = mixnorm.load(tmp_path / "model.mixnorm")
    assert_same_model(tools, model, loaded, X)
    if hasattr(model, "truncate"):
        assert_same_model(tools, model.truncate(2), loaded.truncate(2), X)
        assert_same_model(tools, model.truncate(2), tools.again(model.truncate(2)), X)
    assert tools.packed(loaded) == tools.packed(model)
    assert not [path for path in tmp_path.iterdir() if path.name != "model.mixnorm"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", LEARNERS)
def test_every_estimator_is_fitted_again(tools, name):
    (model, X), (_, _, y) = tools.train(name), tools.prepare(name)
    loaded = tools.again(model).fit(X, y)
    assert tools.same(model.predict(X), loaded.predict(X))


LABELS = {
    "two": lambda y: y % 2,
    "texts": lambda y: np.array(["zero", "öne", "𝟚"])[y % 3],
    "objects": lambda y: np.array(["a", "bb", "c"], dtype=object)[y % 3],
    "truth": lambda y: y > 4,
    "floats": lambda y: np.array([-0.0, 1.0])[y % 2],
    "times": lambda y: np.array(["2024-01-01", "2025-01-01"], dtype="M8[D]")[y % 2],
    "small": lambda y: y.astype(np.uint8),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels(tools, digits, kind):
    X, y = digits
    labels = LABELS[kind](y)
    if kind == "times":  # scikit-learn takes no times as labels; one can still set them
        model = ShareBoostClassifier(3).fit(X, y % 2)
        outputs = replace(model.model_.outputs, classes=np.unique(labels))
        model.model_ = replace(model.model_, outputs=outputs)
    else:
        model = ShareBoostClassifier(3).fit(X, labels)
    loaded = tools.again(model)
    assert_same_model(tools, model, loaded, X)
    assert loaded.classes_.dtype == model.classes_.dtype


DATA = {
    "float32": lambda X: X.astype(np.float32),
    "bytes": lambda X: X.astype(np.uint8),
    "fortran": np.asfortranarray,
    "csr": sp.csr_array,
    "csc matrix": sp.csc_matrix,
}


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("outputs", ["one", "many", "labels"])
def test_data(tools, digits, kind, outputs):
    X, y = digits
    form = DATA[kind]
    targets = {"one": np.sqrt(X[:, 20] + X[:, 10]), "many": X[:, 20:23] ** 2, "labels": y}[outputs]
    estimator = ShareBoostClassifier if outputs == "labels" else ShareBoostRegressor
    model = estimator(4).fit(form(X), targets)
    for new in (form(X), X):
        loaded = tools.again(model)
        for name in ("predict", "staged_predict"):
            assert tools.same(list(getattr(model, name)(new)), list(getattr(loaded, name)(new)))
        assert tools.same(model.coef_, loaded.coef_)
        assert tools.same(model.intercept_, loaded.intercept_)


@pytest.mark.parametrize(
    "settings",
    [
        {"loss": MarginSoftmax(0.5)},
        {"loss": "logistic", "options__rule": "l1"},
        {"options__swaps": 2, "fit_intercept": False},
        {"options__scale": False, "alpha": 0, "options__tol": 0.01},
        {"random_state": 2**70, "n_features_to_select": np.int64(3)},
    ],
)
def test_settings(tools, digits, settings):
    X, y = digits
    model = ShareBoostClassifier(4).set_params(**settings).fit(X, y)
    assert_same_model(tools, model, tools.again(model), X)


@pytest.mark.parametrize(
    "groups",
    [
        np.repeat(np.arange(8), 8),
        [f"row {column // 8}" for column in range(64)],
        tuple(np.float32(column % 7) for column in range(64)),
        np.array([("row", column // 16) for column in range(64)] + [None], dtype=object)[:64],
    ],
)
def test_groups(tools, digits, groups):
    X, y = digits
    model = ShareBoostClassifier(3, pool=Columns(groups=groups)).fit(X, y)
    loaded = tools.again(model)
    assert_same_model(tools, model, loaded, X)
    assert tools.same(loaded.pool, loaded.model_.pool)
    assert loaded.get_support().sum() > 3


@pytest.mark.parametrize(
    "cv",
    [
        3,
        None,
        StratifiedKFold(3, shuffle=True, random_state=7),
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=1),
        [(np.arange(0, 200), np.arange(200, 400)), (np.arange(200, 400), np.arange(0, 200))],
    ],
)
def test_cross_validation(tools, digits, cv):
    X, y = digits
    model = ShareBoostClassifierCV(3, cv=cv, scoring="neg_log_loss").fit(X, y)
    loaded = tools.again(model)
    assert_same_model(tools, model, loaded, X)
    assert repr(loaded.cv) == repr(model.cv)
    assert loaded.fit(X, y).best_score_ == model.best_score_


def test_regressor_with_splitter(tools, digits):
    X, _ = digits
    model = ShareBoostRegressorCV(3, cv=KFold(4)).fit(X, X[:, [20, 30]])
    assert_same_model(tools, model, tools.again(model), X)


def test_names_and_output(tools, digits):
    X, y = digits
    table = pd.DataFrame(X, columns=[f"pixel {column}" for column in range(64)])
    model = ShareBoostClassifier(3).fit(table, y).set_output(transform="pandas")
    loaded = tools.again(model)
    assert tools.same(model.feature_names_in_, loaded.feature_names_in_)
    assert tools.same(model.get_feature_names_out(), loaded.get_feature_names_out())
    pd.testing.assert_frame_equal(model.transform(table), loaded.transform(table))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(table.rename(columns={"pixel 3": "another"}))


def test_a_path_without_rounds(tools):
    with pytest.warns(mixnorm.exceptions.FewerFeaturesWarning):
        model = ShareBoostClassifier(2).fit(np.ones((4, 3)), [0, 1, 1, 1])
    assert_same_model(tools, model, tools.again(model), np.zeros((2, 3)))


# --- going on


def test_warm_start_goes_on(tools, digits):
    X, y = digits
    model = ShareBoostClassifier(4, warm_start=True).fit(X, y)
    loaded = tools.again(model)
    for each in (model, loaded):
        each.set_params(n_features_to_select=7).fit(X, y)
    assert len(loaded.selected_) == 7
    assert tools.same(model.coef_, loaded.coef_)
    assert tools.same(model.path_["loss"], loaded.path_["loss"])


@pytest.mark.parametrize("when", ["before", "after"])
def test_warm_start_with_other_settings_is_refused(tools, digits, when):
    X, _ = digits
    model = ShareBoostRegressor(2, warm_start=True).fit(X, X[:, 20])
    if when == "before":
        model.set_params(alpha=1.0)
    loaded = tools.again(model).set_params(alpha=1.0, n_features_to_select=3)
    with pytest.raises(ValueError, match="has changed since"):
        loaded.fit(X, X[:, 20])


def test_a_loss_changed_since_the_fit_is_kept_apart(tools, digits):
    X, y = digits
    model = ShareBoostClassifier(2).fit(X, y).set_params(loss="logistic")
    loaded = tools.again(model)
    assert loaded.loss == "logistic"
    assert isinstance(loaded.model_.outputs.loss, MarginSoftmax)
    assert tools.same(model.predict_proba(X), loaded.predict_proba(X))


# --- the file


def test_many_columns_make_a_small_file(tools):
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 100_000), density=1e-3, rng=rng, format="csc")
    model = ShareBoostClassifier(5).fit(X, rng.integers(3, size=60))
    content = tools.packed(model)
    assert len(content) < 10_000
    loaded = tools.read(content)
    assert loaded.coef_.shape == (3, 100_000)
    assert tools.same(model.coef_, loaded.coef_)


def test_what_scikit_learn_keeps_is_left_out(tools, digits):
    X, y = digits
    model = ShareBoostClassifier(2).fit(X, y)
    plain = tools.packed(model)
    model._skl_callbacks = [object()]
    model._callback_fit_ctx = object()
    model._metadata_request = object()
    model._sklearn_version = "1.9"
    assert tools.packed(model) == plain
    assert not {"_skl_callbacks", "_sklearn_version"} & vars(tools.read(plain)).keys()


def test_arrays_can_be_written_to(tools, model):
    loaded = tools.again(model)
    for array in (loaded.classes_, loaded.coef_, loaded.model_.path.rounds[0].weights):
        assert array.flags.writeable
        assert array.flags.aligned


def test_fortran_order_is_kept(tools, digits):
    # Another order of summing could change the last bit.
    X, y = digits
    model = ShareBoostClassifier(4).fit(X, y)
    for step in model.model_.path.rounds:
        object.__setattr__(step, "weights", np.asfortranarray(step.weights))
    loaded = tools.again(model)
    assert loaded.model_.path.rounds[-1].weights.flags.f_contiguous
    assert tools.same(model.decision_function(X), loaded.decision_function(X))


def test_document_says_who_wrote_it(tools, content):
    document, _ = tools.opened(content)
    assert document["mixnorm"] == mixnorm.__version__
    assert document["numpy"] == np.__version__
    assert set(document) == {"mixnorm", "python", "numpy", "scikit-learn", "model", "arrays"}


def test_every_estimator_is_tested_in_both_kinds():
    kinds = {is_classifier(getattr(estimators, name)()) for name in LEARNERS}
    assert kinds == {True, False}
