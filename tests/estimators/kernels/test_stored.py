"""Model files of kernel learners: the same predictions, and checked when they are read."""

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
    KernelMulticlassSVC,
    LinearMulticlassSVC,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    SMSDMKLClassifier,
    SMSDMKLClassifierCV,
    UFOMKLClassifier,
    UFOMKLClassifierCV,
)
from mixnorm.exceptions import ModelFileError
from mixnorm.kernels import FunctionKernel, KernelBank, KernelStack, gaussian_bank, register_kernel
from mixnorm.storage.decode import restore

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
]
MACHINES = [
    KernelMulticlassSVC(),
    KernelMulticlassSVC(kernel="poly", degree=2, coef0=1.0, C=1.0),
    LinearMulticlassSVC(),
    LinearMulticlassSVC(fit_intercept=False, C=0.1),
]


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
    for name, value in vars(model).items():
        if name.endswith("_") and isinstance(value, (np.ndarray, float, int, list)):
            assert np.array_equal(getattr(loaded, name), value), name
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
    assert "_last" not in model._fitted_state()
    assert list(model._fitted_state()) == sorted(model._fitted_state())


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


def again(model, **changes):
    """Return what is read from the model's state, with some of it changed or gone."""
    state = model._fitted_state() | changes
    state = {name: value for name, value in state.items() if value is not GONE}
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
    assert vars(again(given)).keys() == vars(given).keys() - {"_last"}


REFUSED = (ValueError, TypeError, KeyError, AttributeError, MemoryError)


def wrong(model):
    n = len(model.support_)
    return {
        "negative weights": (dict(kernel_weights_=np.array([0.5, -0.1, 0.2])), "negative"),
        "few weights": (dict(kernel_weights_=np.ones(2)), "names|kernels"),
        "table of weights": (dict(kernel_weights_=np.ones((3, 1))), "kernel_weights_"),
        "list of weights": (dict(kernel_weights_=[1.0, 1.0, 1.0]), "kernel_weights_"),
        "whole weights": (dict(kernel_weights_=np.ones(3, dtype=int)), "kernel_weights_"),
        "no weights": (dict(kernel_weights_=GONE), None),
        "few duals": (dict(dual_coef_=model.dual_coef_[:-1]), "support_ must be"),
        "narrow duals": (
            dict(dual_coef_=model.dual_coef_[:, :2]),
            "classes_ must be an array of 2",
        ),
        "flat duals": (dict(dual_coef_=np.ones(n)), "dual_coef_"),
        "no duals": (dict(dual_coef_=GONE), None),
        "long support": (dict(support_=np.arange(n + 1)), "support_ must be"),
        "support of floats": (dict(support_=model.support_ + 0.5), "support_ must be"),
        "no support": (dict(support_=GONE), None),
        "few names": (dict(kernel_names_=["a"]), "kernel_names_ must be a list of 3 names"),
        "names as text": (dict(kernel_names_="abc"), "kernel_names_ must be a list"),
        "few classes": (dict(classes_=np.array(["a", "b"])), "classes_ must be an array of 3"),
        "list of classes": (dict(classes_=["a", "b", "c"]), "classes_ must be an array"),
        "no classes": (dict(classes_=GONE), None),
    }


def test_wrong_states_are_refused(model):
    for changes, said in wrong(model).values():
        with pytest.raises(REFUSED, match=said):
            again(model, **changes)


def test_wrong_banks_are_refused(model):
    for bank in (model.bank_.take(np.arange(3)), "bank", None, GONE):
        with pytest.raises(REFUSED, match="rows|kernels|bank"):
            again(model, bank_=bank)
    X, _ = rows()
    other = gaussian_bank([1.0]).fit(X).take(np.arange(len(model.support_)))
    with pytest.raises(ValueError, match="the bank must have 3 kernels"):
        again(model, bank_=other)


def test_wrong_states_of_given_matrices_are_refused(given):
    n = len(given.support_)
    for changes in (
        dict(support_=np.arange(n) + 50),
        dict(support_=np.arange(n) - 1),
        dict(n_features_in_=3),
        dict(bank_=BANK.fit(rows()[0])),
    ):
        with pytest.raises(ValueError, match="support_ is not within the training rows"):
            again(given, **changes)


UNCHECKED = {
    "NaN among weights": dict(kernel_weights_=np.array([np.nan, 1.0, 1.0])),
    "infinite weights": dict(kernel_weights_=np.array([np.inf, 1.0, 1.0])),
    "columns": dict(n_features_in_=7),
    "columns in words": dict(n_features_in_="4"),
    "gap": dict(dual_gap_="small"),
    "iterations": dict(n_iter_=1.5),
    "names that are none": dict(kernel_names_=[1, 2, 3]),
    "no features": dict(_features=np.zeros((2, 2))),
}


@pytest.mark.parametrize("name", UNCHECKED)
def test_more_wrong_states_are_refused(model, name):
    with pytest.raises(REFUSED):
        again(model, **UNCHECKED[name])


@pytest.mark.parametrize(
    "changes",
    [
        dict(_scale="large"),
        dict(_scale=-1.0),
        dict(_centre=np.zeros(3)),
        dict(_centre=GONE),
        dict(_single="yes"),
        dict(intercept_="a"),
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
        again(model, _features=np.zeros(shape))


def test_wrong_parameters_are_refused(model):
    state = model._fitted_state()
    for params in (dict(p=0.5), dict(C=-1.0), dict(kernel="no"), dict(loss="log")):
        with pytest.raises(ValueError, match="p=|C=|kernel=|loss="):
            restore(MKLClassifier(BANK, **params), dict(state), 10**8)


def test_wrong_streams_are_refused():
    X, y = rows()
    model = UFOMKLClassifier(BANK).partial_fit(X, y)
    stream = model._fitted_state()["_stream_state"]
    assert again(model).partial_fit(X, y).mistakes_ == model.partial_fit(X, y).mistakes_
    for changes in (
        dict(squares=np.ones(2)),
        dict(squares=-np.ones(3)),
        dict(offsets=np.ones((3, 1))),
        dict(q=0.0),
        dict(total=0.0),
    ):
        with pytest.raises(ValueError, match="stream"):
            again(model, _stream_state=stream | changes)
    with pytest.raises(ValueError, match="must be a dictionary"):
        again(model, _stream_state=[1, 2])
