"""Model files of kernel learners: the same predictions, and checked when they are read."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.preprocessing import StandardScaler

import mixnorm
from mixnorm import (
    ConvMKLClassifier,
    ConvMKLClassifierCV,
    GreedyMKLClassifier,
    GreedyMKLClassifierCV,
    GreedyMKLRegressorCV,
    KernelMulticlassSVC,
    LinearMulticlassSVC,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    ShareBoostClassifier,
    SMSDMKLClassifier,
    SMSDMKLClassifierCV,
    UFOMKLClassifier,
    UFOMKLClassifierCV,
)
from mixnorm.exceptions import ModelFileError
from mixnorm.kernels import FunctionKernel, KernelBank, KernelStack, gaussian_bank, register_kernel
from mixnorm.losses import Squared
from mixnorm.models import NumberOutputs
from mixnorm.storage.decode import restore
from mixnorm.storage.encode import state_of_fit
from mixnorm.storage.hints import check_fields

BANK = gaussian_bank([0.125, 0.5, 2.0])
FEW = {"Cs": [1.0, 10.0], "cv": 3}
MODELS = [
    MKLClassifier(BANK),
    MKLClassifier(BANK, p=1.0, loss="squared_hinge"),
    ConvMKLClassifier(BANK, class_weight="balanced"),
    UFOMKLClassifier(BANK, beta=0.05),
    SMSDMKLClassifier(BANK, q="classes"),
    UFOMKLClassifier(BANK, solver="mirror", random_state=0),
    MKLRegressor(BANK),
    MKLClassifierCV(BANK, ps=[1.2], **FEW),
    ConvMKLClassifierCV(BANK, tails=[2], **FEW),
    SMSDMKLClassifierCV(BANK, betas=[0.01], tails=[2], **FEW),
    UFOMKLClassifierCV(BANK, betas=[0.01], **FEW),
    MKLRegressorCV(BANK, ps=[1.2], **FEW),
    GreedyMKLClassifierCV(BANK, n_kernels=2, cv=3),
    GreedyMKLRegressorCV(BANK, n_kernels=2, alphas=[0.01, 0.1], cv=3),
]
MACHINES = [
    KernelMulticlassSVC(),
    KernelMulticlassSVC(kernel="poly", degree=2, coef0=1.0, C=1.0),
    LinearMulticlassSVC(),
    LinearMulticlassSVC(fit_intercept=False, C=0.1),
]


ATTRIBUTES = ("kernel_weights_", "kernel_names_", "support_", "dual_coef_", "dual_gap_", "classes_")
ATTRIBUTES += ("objective_", "n_iter_", "tail_sums_", "intercept_", "coef_", "n_features_in_")


def short(model):
    return str(clone(model).set_params(bank=None) if "bank" in model.get_params() else model)


each_model = pytest.mark.parametrize("model", MODELS, ids=short)


def rows(n=50, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 4))
    X[np.abs(X) < 0.2] = 0.0
    return X, np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]


def fitted(model, X, K=None):
    _, y = rows(X.shape[0])
    values = X.toarray() if sp.issparse(X) else np.asarray(X)
    y = y if is_classifier(model) else values[:, 0] + 5.0
    return clone(model).fit(X if K is None else K, y)


def assert_same(model, X, tmp_path):
    path = tmp_path / "model"
    mixnorm.save(model, path)
    loaded = mixnorm.load(path)
    assert type(loaded) is type(model)
    assert np.array_equal(loaded.predict(X), model.predict(X))
    if is_classifier(model):
        assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    for name in ATTRIBUTES:
        assert np.array_equal(getattr(loaded, name, None), getattr(model, name, None)), name
    if hasattr(model, "kernel_weights_"):
        assert loaded.cost_ == model.cost_
    return loaded


@pytest.mark.parametrize("model", [*MODELS, *MACHINES], ids=short)
def test_dense_and_sparse_rows(model, tmp_path):
    X, _ = rows()
    assert_same(fitted(model, X), X, tmp_path)
    assert_same(fitted(model, sp.csr_array(X)), sp.csr_array(X), tmp_path)


@each_model
def test_given_matrices(model, tmp_path):
    X, _ = rows()
    K = KernelStack(BANK.fit(X).grams().matrices)
    model = fitted(clone(model).set_params(bank=None, kernel="precomputed"), X, K)
    assert_same(model, K, tmp_path)


@pytest.mark.parametrize("kind", ["nystrom", "random"])
@pytest.mark.parametrize(
    "model", [model for model in MODELS if "mirror" not in str(model)], ids=short
)
def test_factors(model, kind, tmp_path):
    X, _ = rows()
    bank = gaussian_bank([0.125, 0.5, 2.0], factors=kind, rank=10)
    assert_same(fitted(clone(model).set_params(bank=bank), X), X, tmp_path)


def test_columns_of_a_table(tmp_path):
    X, y = rows()
    table = pd.DataFrame(X, columns=list("abcd"))
    bank = KernelBank.from_columns(None, {"first": ["a", "b"], "rest": ["c", "d"]})
    loaded = assert_same(MKLClassifier(bank).fit(table, y), table, tmp_path)
    assert loaded.feature_names_in_.tolist() == list("abcd")
    assert loaded.bank.names == bank.names
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(table.rename(columns={"a": "z"}))


def test_transformers_of_scikit_learn_are_not_held(tmp_path):
    X, y = rows()
    model = MKLClassifier(KernelBank(["gaussian"], preprocess=StandardScaler())).fit(X, y)
    with pytest.raises(ModelFileError, match="Cannot store MKLClassifier.bank.preprocess"):
        mixnorm.save(model, tmp_path / "model")


def test_functions_need_a_name(tmp_path):
    X, y = rows()

    def product(X, Y):
        return X @ Y.T

    model = MKLClassifier(KernelBank([FunctionKernel(product)])).fit(X, y)
    with pytest.raises(ModelFileError, match="function"):
        mixnorm.save(model, tmp_path / "model")
    register_kernel("product of the tests", product)
    named = MKLClassifier(KernelBank(["product of the tests", "gaussian"])).fit(X, y)
    assert_same(named, X, tmp_path)


def test_models_are_as_small_as_their_support(tmp_path):
    """What training kept to go on from is no part of the file."""
    X, y = rows(150)
    model = MKLClassifier(BANK, C=100.0).fit(X, y)
    mixnorm.save(model, tmp_path / "model")
    n = len(model.support_)
    assert n < 100
    assert (tmp_path / "model").stat().st_size < 8 * n * (4 + 3 + 1) + 8000
    assert set(state_of_fit(model)) == {"model_", "report_"}


def test_warm_starts_after_loading_begin_anew():
    X, y = rows()
    model = MKLClassifier(BANK, warm_start=True).fit(X, y)
    found = again(model)
    assert np.array_equal(found.fit(X, y).predict(X), model.predict(X))


def test_no_kernel_left(tmp_path):
    X, y = rows()
    with pytest.warns(mixnorm.exceptions.NoKernelWarning):
        model = UFOMKLClassifier(BANK, beta=1e6).fit(X, y)
    assert_same(model, X, tmp_path)


# --- damage


GONE = object()


def changed(part, changes):
    """Return a part of a model with other fields, or without some, as a file would give it."""
    content = {field.name: getattr(part, field.name) for field in fields(part)}
    content |= {name: value for name, value in changes.items() if name in content}
    content = {name: value for name, value in content.items() if value is not GONE}
    check_fields(type(part), content)
    return type(part)(**content)


def again(model, **changes):
    """Return what is read from the model's state, with some of it changed or gone."""
    state, known = state_of_fit(model), model.model_
    parts = {name: changed(getattr(known, name), changes) for name in ("inputs", "outputs")}
    state = {name: changed(part, parts | changes) for name, part in state.items()}
    fresh = type(model)(**model.get_params(deep=False))
    restore(fresh, state, 10**8)
    return fresh


@pytest.fixture(scope="module")
def model():
    X, y = rows()
    return MKLClassifier(BANK).fit(X, y)


@pytest.fixture(scope="module")
def given():
    X, y = rows()
    return MKLClassifier(kernel="precomputed").fit(np.stack(BANK.fit(X).grams().matrices), y)


def test_a_whole_state_is_taken(model, given):
    X, _ = rows()
    assert np.array_equal(again(model).decision_function(X), model.decision_function(X))
    assert vars(again(given)).keys() == vars(given).keys() - {"_resume"}


REFUSED = (ValueError, TypeError, KeyError, AttributeError, MemoryError)


def wrong(known):
    n = len(known.support)
    return {
        "negative weights": (dict(kernel_weights=np.array([0.5, -0.1, 0.2])), "negative"),
        "few weights": (dict(kernel_weights=np.ones(2)), "kernel_names_ must be 2 names"),
        "table of weights": (dict(kernel_weights=np.ones((3, 1))), "kernel_weights_"),
        "list of weights": (dict(kernel_weights=[1.0, 1.0, 1.0]), "kernel_weights must be"),
        "whole weights": (dict(kernel_weights=np.ones(3, dtype=int)), "kernel_weights_"),
        "no weights": (dict(kernel_weights=GONE), "kernel_weights"),
        "few duals": (dict(dual_coef=known.dual_coef[:-1]), "support_ must be"),
        "narrow duals": (dict(dual_coef=known.dual_coef[:, :2]), "classes_ must be an array of 2"),
        "flat duals": (dict(dual_coef=np.ones(n)), "dual_coef_"),
        "no duals": (dict(dual_coef=GONE), "dual_coef"),
        "long support": (dict(support=np.arange(n + 1)), "support_ must be"),
        "support of floats": (dict(support=known.support + 0.5), "support_ must be"),
        "rows before the first": (dict(support=known.support - 50), "support_ must be"),
        "no support": (dict(support=GONE), "support"),
        "few names": (dict(names=("a",)), "kernel_names_ must be 3 names"),
        "names as text": (dict(names="abc"), "names must be"),
        "names that are none": (dict(names=(1, 2, 3)), "names must be"),
        "rows in words": (dict(raw_rows="no"), "raw_rows must be"),
        "few classes": (dict(classes=np.array(["a", "b"])), "classes_ must be an array of 3"),
        "list of classes": (dict(classes=["a", "b", "c"]), "classes must be"),
        "no classes": (dict(classes=GONE), "classes"),
        "NaN among weights": (dict(kernel_weights=np.array([np.nan, 1.0, 1.0])), "finite"),
        "infinite weights": (dict(kernel_weights=np.array([np.inf, 1.0, 1.0])), "finite"),
        "columns": (dict(n_features=7), "the bank is of 4 columns"),
        "columns in words": (dict(n_features="4"), "n_features must be"),
        "no columns": (dict(n_features=0), "n_features_in_ must be"),
        "gap": (dict(gap="small"), "gap must be"),
        "iterations": (dict(iterations=1.5), "iterations must be"),
        "features": (dict(features=np.zeros((2, 2))), "has no features"),
        "outputs": (dict(outputs=NumberOutputs(True, 1.0, np.zeros(1), Squared())), "outputs"),
    }


def test_wrong_states_are_refused(model):
    for changes, said in wrong(model.model_).values():
        with pytest.raises(REFUSED, match=said):
            again(model, **changes)


def test_wrong_banks_are_refused(model):
    for bank in (model.bank_.take(np.arange(3)), "bank", None, GONE):
        with pytest.raises(REFUSED, match="rows|kernels|bank|support_"):
            again(model, bank=bank)
    X, _ = rows()
    other = gaussian_bank([1.0]).fit(X).take(np.arange(len(model.support_)))
    with pytest.raises(ValueError, match="the bank must have 3 kernels"):
        again(model, bank=other)


def test_wrong_states_of_given_matrices_are_refused(given):
    n = len(given.support_)
    for changes in (dict(support=np.arange(n) + 50), dict(n_features=3)):
        with pytest.raises(ValueError, match="support_ must be .* below"):
            again(given, **changes)
    for changes in (
        dict(support=np.arange(n) - 1),
        dict(bank=BANK.fit(rows()[0])),
        dict(features=np.zeros((2, 3))),
    ):
        with pytest.raises(ValueError, match="support_|the bank is of|no features"):
            again(given, **changes)


def test_models_of_other_kinds_are_refused(model):
    X, y = rows()
    for part in ("model_", "report_"):
        with pytest.raises(ModelFileError, match=f"'{part}' of MKLClassifier is missing"):
            restore(MKLClassifier(), state_of_fit(model) | {part: None}, 10**8)
    state = state_of_fit(ShareBoostClassifier(2).fit(X, y))
    with pytest.raises(ModelFileError, match="of another kind"):
        restore(MKLClassifier(), state, 10**8)


@pytest.mark.parametrize(
    "changes",
    [
        dict(unit="large"),
        dict(unit=-1.0),
        dict(centre=np.zeros(3)),
        dict(centre=GONE),
        dict(single="yes"),
        dict(single=True, dual_coef=np.zeros((50, 2)), centre=np.zeros(2)),
    ],
    ids=lambda case: " ".join(case) if isinstance(case, dict) else str(case),
)
def test_wrong_states_of_a_regressor_are_refused(changes):
    X, _ = rows()
    model = fitted(MKLRegressor(BANK), X)
    with pytest.raises(REFUSED):
        again(model, **changes)


@pytest.mark.parametrize(
    "shape",
    [(3, 3), (29, 3), (30, 2)],
    ids=lambda case: " ".join(case) if isinstance(case, dict) else str(case),
)
def test_wrong_features_are_refused(shape):
    X, y = rows()
    model = MKLClassifier(gaussian_bank([0.5, 1.0, 2.0], factors="nystrom", rank=10)).fit(X, y)
    with pytest.raises(REFUSED):
        again(model, features=np.zeros(shape))


def test_wrong_parameters_are_refused(model):
    for params in (dict(p=0.5), dict(C=-1.0), dict(kernel="no"), dict(loss="log")):
        with pytest.raises(ValueError, match="p=|C=|kernel=|loss="):
            restore(MKLClassifier(BANK, **params), state_of_fit(model), 10**8)


def test_wrong_streams_are_refused():
    X, y = rows()
    model = UFOMKLClassifier(BANK).partial_fit(X, y)
    assert again(model).partial_fit(X, y).mistakes_ == model.partial_fit(X, y).mistakes_
    for changes in (
        dict(squares=np.ones(2)),
        dict(squares=-np.ones(3)),
        dict(offsets=np.ones((3, 1))),
        dict(offsets=np.full(3, np.nan)),
        dict(q=0.0),
        dict(q=np.nan),
        dict(cost=0.0),
        dict(rounds=0.0),
        dict(total=0.0),
        dict(met=3),
    ):
        with pytest.raises(ValueError, match="stream"):
            again(model, **changes)
    for stream in ([1, 2], None, dict(q=2.0)):
        with pytest.raises(ModelFileError, match="'_resume' of UFOMKLClassifier"):
            restore(UFOMKLClassifier(BANK), state_of_fit(model) | {"_resume": stream}, 10**8)


# --- parameters


@pytest.mark.parametrize(
    "model", [*MODELS, KernelMulticlassSVC(), GreedyMKLClassifier(n_kernels=2)], ids=short
)
def test_parameters_set_afterwards_change_nothing(model, tmp_path):
    X, _ = rows()
    model = fitted(model, X)
    before = model.predict(X), model.cost_, model.kernel_names_
    columns = KernelBank.from_columns(None, {"first": [0, 1]})
    others = {"kernel": "precomputed", "bank": columns, "loss": "squared_hinge", "n_kernels": 1}
    others = {name: value for name, value in others.items() if name in model.get_params()}
    if isinstance(model, (GreedyMKLClassifier, GreedyMKLClassifierCV)):
        others["loss"] = "logistic"
    model.set_params(**others)
    for one in (model, assert_same(model, X, tmp_path)):
        assert np.array_equal(one.predict(X), before[0])
        assert (one.cost_, one.kernel_names_) == before[1:]
        assert not hasattr(one, "predict_proba")
